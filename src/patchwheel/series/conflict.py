"""The report on a patch that does not apply: what was expected, what was found, and what to do now.

Each failed hunk is looked at on its own. The report says whether the base already has the change, where else
its lines stand, which place is most like them, and shows the first line that differs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from patchwheel.errors import ConflictError
from patchwheel.files import git_blob_id
from patchwheel.series.lines import find_places, matches, split_lines
from patchwheel.series.report import (
    LINES_COMPARED,
    Finding,
    Near,
    Place,
    compare,
    describe,
    similarity,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchwheel.series.diff import FilePatch
    from patchwheel.series.hunks import Hunk

__all__ = ["Failure", "conflict_error"]

PLACES_TOLD = 5
"""Most places named at which the lines of a hunk stand instead."""
FINDINGS_TOLD = 20
"""Most failed hunks looked at closely; the others are counted only."""

_WINDOW = 300  # lines above and below the stated one in which a similar place is sought
_SIMILAR = 0.5
_CANDIDATES = 8


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One thing for which a patch does not apply, as the applier meets it.

    Args:
        reason: applied (the file is what the patch would make of it), missing (no such file), exists (a
            file is in the way), folder (a folder is), case (a name is that differs from the file's in case
            only), hunk (it does not fit), other-file (the hunks fit, but the file is not the
            one that the patch was made for), other-result (the hunks fit, but what comes out is not what the
            patch says).
        file: The changes to the file.
        source: The content that was found.
        hunk: Number of the hunk, from 1; None if it is about the whole file.
        allowed: Number of lines by which hunks may be moved.
        path: What is in the way.
        found_id: Blob id of what came out.
    """

    reason: Literal["applied", "missing", "exists", "folder", "case", "hunk", "other-file", "other-result"]
    file: FilePatch
    source: bytes = b""
    hunk: int | None = None
    allowed: int = 0
    path: str = ""
    found_id: str = ""


def conflict_error(
    series: str, patch: str, failures: Sequence[Failure], earlier: Mapping[str, tuple[str, ...]]
) -> ConflictError:
    """The error for a patch that does not apply, with a report for people and for machines.

    Args:
        series: Name of the series.
        patch: Name of the patch.
        failures: All that stands in its way; not empty.
        earlier: For each file, the patches that have changed it before.
    """
    findings = [_look_at(failure, earlier.get(failure.file.path, ())) for failure in failures[:FINDINGS_TOLD]]
    steps = {finding.next_step for finding in findings}
    texts = ["\n".join(describe(finding, alone=len(steps) == 1)) for finding in findings]
    if more := len(failures) - len(findings):
        texts.append(f"… and {more} more failures")
    first = findings[0]
    return ConflictError(
        f"{series}/{patch} does not apply: {_count(failures)}",
        where=where(first),
        next_step=first.next_step if len(steps) == 1 else "see the next step of each hunk above",
        details="\n".join(texts),
        data={
            "series": series,
            "patch": patch,
            "failures": len(failures),
            "findings": [asdict(finding) for finding in findings],
        },
    )


def _look_at(failure: Failure, earlier: tuple[str, ...]) -> Finding:
    if failure.hunk is None:
        return _look_at_file(failure, earlier)
    return _look_at_hunk(failure, failure.file.hunks[failure.hunk - 1], failure.hunk, earlier)


def _look_at_file(failure: Failure, earlier: tuple[str, ...]) -> Finding:
    file = failure.file
    found = git_blob_id(failure.source)
    applied = _has_result(failure)
    if failure.reason == "applied":
        what, step = "the file already is what the patch would make of it", ""
    elif failure.reason == "missing":
        what = f"there is no {file.old} in the base"
        step = "look where this release has that code; it may have moved, or be gone, and the patch with it"
    elif failure.reason == "exists":
        what = f"{failure.path} is already there"
        step = "make the patch again on this base, as a change of that file"
    elif failure.reason == "folder":
        what = f"{failure.path} is a folder there"
        step = "choose another name for the file: no wheel can hold both"
    elif failure.reason == "case":
        what = f"{failure.path} is already there, and differs in case only"
        step = "choose another name for the file: where case doesn't count, the one would replace the other"
    elif failure.reason == "other-file":
        what = (
            f"all hunks fit, but this is not the file that the patch was made for "
            f"(blob {found[:12]}, the patch says {file.old_id[:12]})"
        )
        step = "look at what differs, then make the patch again on this base"
    else:
        what = (
            f"all hunks fit, but the outcome is not what the patch says (blob {failure.found_id[:12]}, "
            f"the patch says {file.new_id[:12]}): it was edited by hand"
        )
        step = "make the patch again with git diff --full-index"
    if applied:
        step = "drop the patch: the file already has its outcome"
    return Finding(
        file=file.path,
        reason=failure.reason,
        what=what,
        hunks=len(file.hunks),
        already_applied=applied,
        earlier=earlier,
        next_step=step,
    )


def _look_at_hunk(failure: Failure, hunk: Hunk, number: int, earlier: tuple[str, ...]) -> Finding:
    source, stated = failure.source, hunk.old_index
    lines = split_lines(source)
    found = find_places(source, hunk.before, PLACES_TOLD)
    places = tuple(Place(line=place + 1, offset=place - stated) for place in found)
    applied = not places and _looks_applied(lines, source, hunk)
    near = None if found else _nearest(lines, hunk)
    index = near.line - 1 if near else stated
    rows = compare(hunk.before, stated, lines[index : index + len(hunk.before)], index)
    differing = [row.line for row in rows if row.mark != " "]
    return Finding(
        file=failure.file.path,
        reason=failure.reason,
        what=_what_of_hunk(failure, places, near, applied=applied),
        hunk=number,
        hunks=len(failure.file.hunks),
        line=hunk.old_start,
        section=hunk.section,
        rows=rows,
        first_difference=differing[0] if differing else None,
        places=places,
        near=near,
        already_applied=applied,
        earlier=earlier,
        next_step=_next_step_of_hunk(failure, places, applied=applied),
    )


def _has_result(failure: Failure) -> bool:
    """Whether the whole file already is what the patch would make of it."""
    file = failure.file
    if file.kind == "delete":
        return failure.reason == "missing"
    if failure.reason in ("missing", "folder", "case") or failure.path not in ("", file.path):
        return False
    return git_blob_id(failure.source) == file.new_id


def _looks_applied(lines: Sequence[bytes], source: bytes, hunk: Hunk) -> bool:
    """Whether the hunk's outcome stands in the file.

    A hunk that only removes leaves context, which may stand anywhere by chance: only its place counts.
    """
    if any(line.kind == "+" and line.content.strip() for line in hunk.lines):
        return bool(find_places(source, hunk.after, 1))
    after = hunk.after
    return bool(after) and any(matches(lines, at, after, ()) for at in (hunk.old_index, hunk.new_index))


def _what_of_hunk(failure: Failure, places: Sequence[Place], near: Near | None, *, applied: bool) -> str:
    if applied:
        return "the file already has what this hunk would make of it"
    if near and near.similarity == 1:
        return "its lines are there, but with other white space"
    if not places:
        return "its lines stand nowhere in the file"
    if len(places) > 1:
        return "its lines stand at several places"
    if abs(places[0].offset) > failure.allowed:
        offset = places[0].offset
        way = f"{abs(offset)} line{'s' * (abs(offset) > 1)} {'below' if offset > 0 else 'above'}"
        return f"its lines stand {way} ({failure.allowed} allowed)"
    return "its lines stand above those of the hunk before it, or the file goes on where the patch ends it"


def _next_step_of_hunk(failure: Failure, places: Sequence[Place], *, applied: bool) -> str:
    if applied:
        return "see whether this release has the change; if so, drop this hunk or the patch"
    if len(places) == 1 and abs(places[0].offset) > failure.allowed:
        if git_blob_id(failure.source) == failure.file.old_id:
            return "this is the file that the patch was made for, so its @@ line is wrong: make the patch again"
        return (
            f"look at line {places[0].line}, then make the patch again on this base; a patch file may also be"
            f" given allow-offset = {abs(places[0].offset)} where series.toml lists it"
        )
    return "make the patch again on this base, after a look at what has changed there"


def _nearest(lines: Sequence[bytes], hunk: Hunk) -> Near | None:
    """The place around the stated one that is most like the hunk, leaving indentation aside."""
    wanted = [line.strip() for line in hunk.before[:LINES_COMPARED]]
    telling = {line for line in wanted if line}
    low = max(0, hunk.old_index - _WINDOW)
    window = [line.strip() for line in lines[low : hunk.old_index + len(wanted) + _WINDOW]]
    if not telling or not window:
        return None
    hits = [line in telling for line in window]
    scores = [
        (-sum(hits[at : at + len(wanted)]), abs(low + at - hunk.old_index), at)
        for at in range(max(1, len(window) - len(wanted) + 1))
    ]
    best = (0.0, 0)
    for _score, _distance, at in sorted(scores)[:_CANDIDATES]:
        best = max(best, (similarity(window[at : at + len(wanted)], wanted), -at))
    ratio, at = best[0], -best[1]
    if ratio < _SIMILAR:
        return None
    offset = low + at - hunk.old_index
    return Near(line=low + at + 1, offset=offset, similarity=round(ratio, 2))


def _count(failures: Sequence[Failure]) -> str:
    files = len({failure.file.path for failure in failures})
    hunks = sum(failure.hunk is not None for failure in failures)
    if hunks < len(failures):
        return f"{len(failures)} failure{'s' * (len(failures) > 1)} in {files} file{'s' * (files > 1)}"
    return f"{hunks} hunk{'s' * (hunks > 1)} in {files} file{'s' * (files > 1)} fail{'s' * (hunks == 1)}"
