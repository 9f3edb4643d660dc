"""Applies series to files, in memory, exactly or not at all.

A hunk fits if every context and removed line is there, byte for byte, at the line that the patch states. The
blob ids of the patch must name the file before and after as well, so that what comes out is what its author
had. The one way round is a declared ``allow-offset``: then each hunk must have a single place in the whole
file, no farther away than allowed, and the result says so. Nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchwheel.errors import PatchError
from patchwheel.files import git_blob_id
from patchwheel.series.conflict import Failure, conflict_error
from patchwheel.series.lines import find_places, matches, split_lines
from patchwheel.series.names import Names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from patchwheel.series.diff import FilePatch
    from patchwheel.series.model import Patch, Series

__all__ = ["Applied", "Change", "Offset", "apply_series"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What all patches together do to one file.

    Args:
        path: Path in the wheel.
        kind: add, modify or delete; a renamed file is deleted and added.
        before: Content in the base, None if it isn't there.
        after: Content in the patched wheel, None if it is deleted.
        patches: Who touched it, in order, as ``<series>/<patch>``.
    """

    path: str
    kind: Literal["add", "modify", "delete"]
    before: bytes | None
    after: bytes | None
    patches: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Offset:
    """A file that is not the one a patch was made for, but was patched because the series allows offsets.

    Args:
        patch: The patch, as ``<series>/<patch>``.
        path: The file.
        lines: For each hunk, by how many lines it was moved down (or up, if negative).
        made_for: Blob id of the file that the patch was made for.
        found: Blob id of the file that was patched.
    """

    patch: str
    path: str
    lines: tuple[int, ...]
    made_for: str
    found: str


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The outcome of applying series.

    Args:
        changes: One for each file that changes, by path.
        offsets: Files for which an allowed offset stood in for the proof by blob ids, as they came.
        dropped: Paths of the files that patches change but wheels don't carry, sorted.
    """

    changes: tuple[Change, ...]
    offsets: tuple[Offset, ...]
    dropped: tuple[str, ...]


def apply_series(series: Sequence[Series], read: Callable[[str], bytes | None], names: Collection[str] = ()) -> Applied:
    """Apply series to a base, one patch after the other.

    Args:
        series: What to apply, in this order.
        read: Gives the content of a file of the base, None if it has no such file. Called once for each path.
        names: The names of all files of the base. An added file must neither be one of their folders nor differ
            from one of them in case only, which can't be seen through ``read``.

    Raises:
        ConflictError: A patch does not apply; reports on all of its hunks.
        PatchError: Patches cancel each other out, or a dropped file is in the base after all.
    """
    tree = _Tree(read, names)
    offsets: list[Offset] = []
    for one in series:
        for patch in one.patches:
            offsets += _apply_patch(tree, one, patch)
    dropped = sorted({path for one in series for patch in one.patches for path in patch.dropped})
    if carried := [path for path in dropped if tree.read(path) is not None]:
        raise PatchError(
            f"dropped, but the base has it: {', '.join(carried)}",
            expected="'dropped' globs that match only files which wheels don't carry",
            next_step="narrow the glob, so that the change is applied",
        )
    return Applied(changes=tree.changes(), offsets=tuple(offsets), dropped=tuple(dropped))


class _Tree:
    """The files touched so far, over those of the base."""

    def __init__(self, read: Callable[[str], bytes | None], names: Collection[str]) -> None:
        self._read = read
        self.names = set(names)
        self._before: dict[str, bytes | None] = {}
        self._now: dict[str, bytes | None] = {}
        self._patches: dict[str, list[str]] = {}

    def read(self, path: str) -> bytes | None:
        if path not in self._now:
            self._now[path] = self._before[path] = self._read(path)
        return self._now[path]

    def write(self, path: str, data: bytes | None, patch: str) -> None:
        self._now[path] = data
        if data is None:
            self.names.discard(path)
        else:
            self.names.add(path)
        self._patches.setdefault(path, []).append(patch)

    def patches(self, path: str) -> tuple[str, ...]:
        return tuple(self._patches.get(path, ()))

    def changes(self) -> tuple[Change, ...]:
        changes: list[Change] = []
        for path in sorted(self._patches):
            before, after = self._before[path], self._now[path]
            if before == after:
                raise PatchError(
                    f"patches cancel each other out: {path} ends as it was",
                    found=", ".join(self._patches[path]),
                    next_step="remove what is undone later",
                )
            kind: Literal["add", "modify", "delete"] = "modify"
            if before is None:
                kind = "add"
            elif after is None:
                kind = "delete"
            changes.append(Change(path=path, kind=kind, before=before, after=after, patches=self.patches(path)))
        return tuple(changes)


def _apply_patch(tree: _Tree, series: Series, patch: Patch) -> list[Offset]:
    """Apply a patch whole, or raise with everything that stands in its way and the tree untouched."""
    name = f"{series.name}/{patch.name}"
    results: list[_Result] = []
    failures: list[Failure] = []
    for file in patch.files:
        result = _apply_file(tree, file, patch.allow_offset)
        if isinstance(result, _Result):
            results.append(result)
        else:
            failures += result
    failures += _clashes(tree, patch, {failure.file.path for failure in failures})
    if failures:
        earlier = {failure.file.path: tree.patches(failure.file.old or failure.file.path) for failure in failures}
        raise conflict_error(series.name, patch.name, failures, earlier)
    offsets: list[Offset] = []
    for result in results:
        file = result.file
        for path in file.paths:
            tree.write(path, result.data if path == file.new else None, name)
        if result.moved is not None:
            made_for, found = file.old_id, result.found_id
            offsets.append(Offset(patch=name, path=file.path, lines=result.moved, made_for=made_for, found=found))
    return offsets


@dataclass(frozen=True, kw_only=True)
class _Result:
    """A file patch that applies; ``moved`` is None if blob ids have proven it."""

    file: FilePatch
    data: bytes
    found_id: str = ""
    moved: tuple[int, ...] | None = None


def _apply_file(tree: _Tree, file: FilePatch, allow_offset: int) -> _Result | list[Failure]:
    if file.new is not None and file.new != file.old and (blocked := _blocked(tree, file)):
        return [blocked]
    if file.old is None:
        data = b"".join(line for hunk in file.hunks for line in hunk.after)
        return _proven(file, data, b"")
    source = tree.read(file.old)
    if source is None:
        return [Failure(reason="missing", file=file)]
    return _change(file, source, allow_offset)


def _change(file: FilePatch, source: bytes, allow_offset: int) -> _Result | list[Failure]:
    found_id = git_blob_id(source)
    same_file = found_id == file.old_id
    if found_id == file.new_id:
        return [Failure(reason="applied", file=file, source=source)]
    allowed = 0 if same_file or file.kind == "delete" else allow_offset
    places, failures = _place_hunks(file, source, allowed)
    if failures:
        return failures
    data = _replace(split_lines(source), file, places)
    if same_file:
        return _proven(file, data, source)
    if not allowed:
        return [Failure(reason="other-file", file=file, source=source)]
    moved = tuple(place - hunk.old_index for place, hunk in zip(places, file.hunks, strict=True))
    return _Result(file=file, data=data, found_id=found_id, moved=moved)


def _blocked(tree: _Tree, file: FilePatch) -> Failure | None:
    """What stands where a file is to be added: a file of that name, or one in the place of its folder."""
    parts = file.path.split("/")
    for count in range(len(parts), 0, -1):
        path = "/".join(parts[:count])
        if (source := tree.read(path)) is not None:
            return Failure(reason="exists", file=file, source=source, path=path)
    return None


def _clashes(tree: _Tree, patch: Patch, failed: Collection[str]) -> list[Failure]:
    """The added files whose names can't be in one wheel with the others that are there after the patch."""
    added = [file for file in patch.files if file.new is not None and file.new != file.old]
    if not added:
        return []
    names = Names(tree.names.difference(file.old for file in patch.files if file.old != file.new))
    failures: list[Failure] = []
    for file in added:
        if file.path not in failed and (clash := names.clash(file.path)):
            failures.append(Failure(reason=clash.reason, file=file, path=clash.path))
        names.add(file.path)
    return failures


def _proven(file: FilePatch, data: bytes, source: bytes) -> _Result | list[Failure]:
    """The result, if it is the one that the patch's author had."""
    wrong = bool(data) if file.kind == "delete" else git_blob_id(data) != file.new_id
    if wrong:
        return [Failure(reason="other-result", file=file, source=source, found_id=git_blob_id(data))]
    return _Result(file=file, data=data)


def _place_hunks(file: FilePatch, source: bytes, allowed: int) -> tuple[list[int], list[Failure]]:
    """Where each hunk goes, as the number of lines above it in the old file; and those that go nowhere."""
    lines = split_lines(source)
    places: list[int] = []
    failures: list[Failure] = []
    end = 0
    for number, hunk in enumerate(file.hunks, 1):
        before, after = hunk.before, hunk.after
        candidates = find_places(source, before, 2) if allowed else [hunk.old_index]
        fits = [place for place in candidates if place >= end and matches(lines, place, before, after)]
        near = [place for place in fits if abs(place - hunk.old_index) <= allowed]
        if len(candidates) == 1 and near:
            places.append(near[0])
            end = near[0] + len(before)
        else:
            failures.append(Failure(reason="hunk", file=file, source=source, hunk=number, allowed=allowed))
    return places, failures


def _replace(lines: Sequence[bytes], file: FilePatch, places: Sequence[int]) -> bytes:
    parts: list[bytes] = []
    end = 0
    for hunk, place in zip(file.hunks, places, strict=True):
        parts += lines[end:place]
        parts += hunk.after
        end = place + len(hunk.before)
    parts += lines[end:]
    return b"".join(parts)
