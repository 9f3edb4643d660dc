"""Hunks: one change at one place, read from the lines between two ``@@`` lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from patchwheel.series.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Hunk", "Line", "hunk_problems", "is_signature", "read_hunk"]

_HEADER = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: ([^\n]*))?\n")


class Line(NamedTuple):
    """One line of a hunk: context (blank), removed (``-``) or added (``+``).

    The content has its LF, unless the file ends here without one.
    """

    kind: Literal[" ", "-", "+"]
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """A change at one place. Line numbers and counts are as in the patch: from 1, and 0 in an empty file.

    Args:
        old_start: Line of the old file at which the hunk begins.
        old_count: Number of lines that the hunk has in the old file.
        new_start: Line of the new file at which the hunk begins.
        new_count: Number of lines that the hunk has in the new file.
        section: The function or class that git saw above the hunk, for people.
        lines: Its lines in order.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    lines: tuple[Line, ...]

    @property
    def before(self) -> tuple[bytes, ...]:
        """What must be there: context and removed lines."""
        return tuple(line.content for line in self.lines if line.kind != "+")

    @property
    def after(self) -> tuple[bytes, ...]:
        """What will be there: context and added lines."""
        return tuple(line.content for line in self.lines if line.kind != "-")

    @property
    def old_index(self) -> int:
        """Number of lines above the hunk in the old file (one without old lines names the line above)."""
        return self.old_start - 1 if self.old_count else self.old_start

    @property
    def new_index(self) -> int:
        """Number of lines above the hunk in the new file."""
        return self.new_start - 1 if self.new_count else self.new_start

    @property
    def ends_file(self) -> bool:
        """Whether the old or the new file ends with this hunk, without a newline."""
        return any(not line.content.endswith(b"\n") for line in self.lines)


def read_hunk(lines: Sequence[bytes], start: int, end: int) -> Hunk:
    """Read the hunk whose ``@@`` line is at ``start``, and see to it that nothing is left up to ``end``.

    Raises:
        Refusal: The lines are not what the header counts, or there is something else among them.
    """
    header = _HEADER.fullmatch(lines[start])
    if not header:
        combined = lines[start].startswith(b"@@@")
        raise Refusal(start, "hunk of a combined diff" if combined else "unreadable hunk header")
    numbers = [1 if text is None else int(text) for text in header.groups()[:4]]
    old_start, old_count, new_start, new_count = numbers
    body, after = _read_lines(lines, start + 1, end, old_count, new_count)
    if after < end and is_signature(lines, after):
        after = end
    hunk = Hunk(
        old_start=old_start,
        old_count=old_count,
        new_start=new_start,
        new_count=new_count,
        section=(header[5] or b"").decode("utf-8", "backslashreplace"),
        lines=tuple(body),
    )
    sides = (hunk.before, hunk.after)
    more = after < end and lines[after][:1] in (b" ", b"-", b"+")
    if more or (len(hunk.before), len(hunk.after)) != (old_count, new_count):
        there = "more" if more else f"{len(hunk.before)} and {len(hunk.after)}"
        text = f"hunk header counts {old_count} old and {new_count} new lines, but there are {there}"
        if after < len(lines) and lines[after] in (b"\n", b"\r\n"):
            text += " up to an empty line (context lines begin with a blank: was it stripped?)"
        raise Refusal(start, text)
    if after < end:
        raise Refusal(after, "text between hunks that belongs to none")
    if all(line.kind == " " for line in body):
        raise Refusal(start, "hunk without changes")
    if any(not content.endswith(b"\n") for side in sides for content in side[:-1]):
        raise Refusal(start, "a line without newline that is not the last one")
    return hunk


def _read_lines(lines: Sequence[bytes], start: int, end: int, old: int, new: int) -> tuple[list[Line], int]:
    """The lines of a hunk as far as its header counts them, and where they end."""
    body: list[Line] = []
    for number in range(start, end):
        sign, content = lines[number][:1], lines[number][1:]
        if sign == b"\\" and content.startswith(b" ") and body and body[-1].content.rstrip(b"\n"):
            body[-1] = body[-1]._replace(content=body[-1].content.removesuffix(b"\n"))
        elif sign == b" " and old and new:
            body.append(Line(" ", content))
            old, new = old - 1, new - 1
        elif sign == b"-" and old:
            body.append(Line("-", content))
            old -= 1
        elif sign == b"+" and new:
            body.append(Line("+", content))
            new -= 1
        else:
            return body, number
    return body, end


def is_signature(lines: Sequence[bytes], number: int) -> bool:
    """Whether the patch ends here with the two lines that ``git format-patch`` puts at the end of a mail."""
    if lines[number] != b"-- \n":
        return False
    rest = [line for line in lines[number + 1 : number + 4] if line.strip()]
    return len(lines) - number <= 3 and len(rest) <= 1  # noqa: PLR2004  (the dashes, a version, an empty line)


def hunk_problems(hunks: Sequence[Hunk]) -> list[str]:
    """What is wrong with the hunks of one file taken together."""
    found: list[str] = []
    end = shift = 0
    for number, hunk in enumerate(hunks, 1):
        if hunk.old_index < end:
            found.append(f"hunk {number} overlaps the one before it, or stands out of order")
        elif hunk.new_index != hunk.old_index + shift:
            found.append(f"hunk {number}: its new line number does not follow from the old one")
        if hunk.ends_file and number < len(hunks):
            found.append(f"hunk {number} ends the file, but more hunks follow")
        end = hunk.old_index + hunk.old_count
        shift += hunk.new_count - hunk.old_count
    return found
