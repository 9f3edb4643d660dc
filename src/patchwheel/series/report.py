"""What is told of a patch that does not apply: the same facts as text and as data."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchwheel.series.lines import show_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "LINES_COMPARED",
    "Finding",
    "Near",
    "Place",
    "Row",
    "compare",
    "describe",
    "signed",
    "similarity",
    "where",
]

LINES_COMPARED = 60
"""Most lines of one hunk that are compared with the file."""

_ROWS_TOLD = 24


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a comparison: in both (blank), only expected (``-``), only found (``+``); lines from 1."""

    mark: Literal[" ", "-", "+"]
    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the lines of a hunk stand, and how many lines below the stated place that is."""

    line: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Near:
    """The place most like a hunk's lines; similarity from 0 to 1."""

    line: int
    offset: int
    similarity: float


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a person needs to know about one failure.

    Args:
        file: Path of the file.
        reason: As in `Failure`.
        what: What is wrong, as one clause.
        hunk: Number of the hunk, from 1, if it is about one.
        hunks: Number of hunks that the patch has for this file.
        line: Line at which the patch says that the hunk stands.
        section: Function or class that git saw above it.
        rows: Expected and found lines side by side.
        first_difference: Line of the found file at which they part, if they do.
        places: Where the expected lines stand, unchanged.
        near: The place most like them, if they stand nowhere.
        already_applied: Whether the file has the change, or looks so.
        earlier: Patches that have changed this file before, as ``<series>/<patch>``.
        next_step: What to do now.
    """

    file: str
    reason: str
    what: str
    next_step: str
    hunk: int | None = None
    hunks: int = 0
    line: int | None = None
    section: str = ""
    rows: tuple[Row, ...] = ()
    first_difference: int | None = None
    places: tuple[Place, ...] = ()
    near: Near | None = None
    already_applied: bool = False
    earlier: tuple[str, ...] = ()


def compare(expected: Sequence[bytes], expected_at: int, found: Sequence[bytes], found_at: int) -> tuple[Row, ...]:
    """Expected and found lines, aligned, from a little above the first difference on.

    Args:
        expected: Lines of a hunk.
        expected_at: Number of lines above them, as the patch says.
        found: Lines of the file.
        found_at: Number of lines above them.

    Returns:
        The rows; common lines bear the number that they have in the file.
    """
    expected, found = expected[:LINES_COMPARED], found[:LINES_COMPARED]
    rows: list[Row] = []
    for tag, a, a_end, b, b_end in _opcodes(expected, found):
        if tag == "equal":
            rows += [_row(" ", found_at + at, found[at]) for at in range(b, b_end)]
            continue
        rows += [_row("-", expected_at + at, expected[at]) for at in range(a, a_end)]
        rows += [_row("+", found_at + at, found[at]) for at in range(b, b_end)]
    first = next((at for at, row in enumerate(rows) if row.mark != " "), 0)
    start = max(0, first - 3)
    return tuple(rows[start : start + _ROWS_TOLD])


def similarity(first: Sequence[bytes], second: Sequence[bytes]) -> float:
    """How much of two lists of lines is common, from 0 to 1."""
    return difflib.SequenceMatcher[bytes](None, first, second, autojunk=False).ratio()


def _opcodes(expected: Sequence[bytes], found: Sequence[bytes]) -> Sequence[tuple[str, int, int, int, int]]:
    return difflib.SequenceMatcher[bytes](None, expected, found, autojunk=False).get_opcodes()


def _row(mark: Literal[" ", "-", "+"], index: int, line: bytes) -> Row:
    return Row(mark=mark, line=index + 1, text=show_line(line))


def describe(finding: Finding, *, alone: bool) -> Iterator[str]:
    """A finding as lines of text; the next step is left to the error itself if no finding has another one."""
    yield f"{where(finding)}: {finding.what}"
    if finding.earlier:
        yield f"  changed before by {', '.join(finding.earlier)}"
    if not finding.places and any(row.mark != " " for row in finding.rows):
        yield "  expected (-) and found (+):"
        marked = False
        for row in finding.rows:
            first = not marked and row.mark != " "
            marked = marked or first
            yield f"  {'>' if first else ' '} {row.line:>6} {row.mark} {row.text}".rstrip()
    for place in finding.places:
        yield f"  its lines stand at line {place.line} ({signed(place.offset)})"
    if finding.near:
        near = finding.near
        share = f"{near.similarity:.0%} the same, white space aside"
        yield f"  most alike: line {near.line} ({signed(near.offset)}), {share}"
    if not alone:
        yield f"  next: {finding.next_step}"


def where(finding: Finding) -> str:
    """The place of a finding: file, hunk and line."""
    if finding.hunk is None:
        return finding.file
    section = f", in {finding.section!r}" if finding.section else ""
    return f"{finding.file}, hunk {finding.hunk} of {finding.hunks}, line {finding.line}{section}"


def signed(offset: int) -> str:
    """An offset in lines with its sign; down is positive."""
    return f"{offset:+d}"
