r"""Reads git's unified diffs, strictly and as bytes, and refuses what patchwheel does not apply.

The grammar is the one that ``git diff --full-index`` writes. One property of it keeps this reader simple:
inside a hunk each line begins with a blank, ``-``, ``+`` or ``\``, so that ``diff --git`` and ``@@`` at the
start of a line always begin a file and a hunk. The patch is therefore cut into files and hunks first, and a
fault in one of them hides no fault in another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchwheel.series.hunks import Hunk, hunk_problems, is_signature, read_hunk
from patchwheel.series.lines import split_lines
from patchwheel.series.paths import path_problem, unquote
from patchwheel.series.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchwheel.series.problems import Problems

__all__ = ["MAX_BYTES", "MAX_LINES", "FilePatch", "Kind", "ParsedPatch", "read_patch"]

MAX_BYTES = 16 << 20
"""Size in bytes above which a patch is refused unread."""
MAX_LINES = 1_000_000
"""Number of lines above which a patch is refused unread."""

Kind = Literal["modify", "add", "delete", "rename"]

_FILE_START = re.compile(rb"diff --(?:git|cc|combined) ")
_FOREIGN = re.compile(rb"\+\+\+ |@@|\*\*\* |Index: |\d+(?:,\d+)?[acd]\n|GIT binary patch|Binary files ")
_FIELD = re.compile(
    rb"(old mode|new mode|new file mode|deleted file mode|similarity index|rename from|rename to"
    rb"|copy from|copy to|index|---|\+\+\+) ([^\n]*)\n"
)
_INDEX = re.compile(rb"([0-9a-f]+)\.\.([0-9a-f]+)(?: ([0-7]{6}))?")
_ID_DIGITS = 40
_FILE_MODE, _PROGRAM_MODE = b"100644", b"100755"
_SPECIAL_MODES = {b"120000": "a symbolic link", b"160000": "a submodule"}
_KIND_FIELDS: Mapping[bytes, Kind] = {
    b"new file mode": "add",
    b"deleted file mode": "delete",
    b"rename from": "rename",
    b"rename to": "rename",
}


@dataclass(frozen=True, kw_only=True)
class FilePatch:
    """What a patch does to one file.

    Args:
        kind: modify, add, delete or rename.
        old: Path before, None for an added file.
        new: Path after, None for a deleted file.
        old_id: Git's blob id of the content before, 40 hex digits, all zero for an added file.
        new_id: The same of the content after, all zero for a deleted file.
        hunks: The changes, from top to bottom.
    """

    kind: Kind
    old: str | None
    new: str | None
    old_id: str
    new_id: str
    hunks: tuple[Hunk, ...]

    @property
    def path(self) -> str:
        """The path after, or that of the deleted file."""
        return self.new or self.old or ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that changes: two for a rename, else one."""
        return tuple(dict.fromkeys(path for path in (self.old, self.new) if path is not None))


@dataclass(frozen=True, kw_only=True)
class ParsedPatch:
    """A patch: what stands above the first ``diff --git`` line, and what it does to each file."""

    preamble: bytes
    files: tuple[FilePatch, ...]


def read_patch(data: bytes, problems: Problems) -> ParsedPatch:
    """Read a patch and note its problems: all that is malformed, unsafe, or not applied by patchwheel.

    With any problem, the result holds only what could be read.
    """
    if len(data) > MAX_BYTES or data.count(b"\n") > MAX_LINES:
        problems.add("whole patch", f"larger than {MAX_BYTES} bytes or {MAX_LINES} lines")
        return ParsedPatch(preamble=b"", files=())
    lines = split_lines(data)
    starts = [number for number, line in enumerate(lines) if _FILE_START.match(line)]
    first = starts[0] if starts else len(lines)
    for number in range(first):
        if _FOREIGN.match(lines[number]):
            problems.add_line(number, "a diff in another form than git's; only git's is applied")
            break
    if not starts:
        problems.add("whole patch", "no 'diff --git' line: the patch is empty, or not in git's form")
    elif not lines[-1].endswith(b"\n"):
        problems.add_line(len(lines) - 1, "the patch ends in the middle of a line: it was cut off")
        lines[-1] += b"\n"
    files: list[FilePatch] = []
    seen: set[str] = set()
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        if not (file := _FileReader(lines, start, end, problems).read()):
            continue
        files.append(file)
        if twice := seen.intersection(file.paths):
            problems.add_line(start, f"{min(twice)} is changed twice in one patch")
        seen.update(file.paths)
    return ParsedPatch(preamble=b"".join(lines[:first]), files=tuple(files))


class _FileReader:
    """Reads the lines from one ``diff --git`` line to the next."""

    def __init__(self, lines: Sequence[bytes], start: int, end: int, problems: Problems) -> None:
        self.lines = lines
        self.start = start
        self.problems = problems
        starts = [number for number in range(start + 1, end) if lines[number].startswith(b"@@")]
        self.hunk_spans = list(zip(starts, [*starts[1:], end], strict=False))
        self.header_end = starts[0] if starts else end

    def complain(self, text: str) -> None:
        self.problems.add_line(self.start, text)

    def read(self) -> FilePatch | None:
        """The file's changes, or None if there was anything to complain about."""
        known = len(self.problems.found)
        try:
            file = self._read()
        except Refusal as refusal:
            self.problems.add_line(refusal.line, refusal.text)
            return None
        if len(self.problems.found) == known:
            # These compare parts with each other, which says nothing new about parts that are broken.
            for text in _file_problems(file):
                self.complain(text)
        return file if len(self.problems.found) == known else None

    def _read(self) -> FilePatch:
        if not self.lines[self.start].startswith(b"diff --git "):
            raise Refusal(self.start, "combined diff of a merge; make it against one parent")
        fields = self._read_fields()
        kinds = {kind for field, kind in _KIND_FIELDS.items() if field in fields}
        if len(kinds) > 1:
            raise Refusal(self.start, f"says at once that it would {' and '.join(sorted(kinds))} the file")
        kind = kinds.pop() if kinds else "modify"
        self._check_modes(fields)
        old, new = self._read_paths(fields, rename=kind == "rename")
        old_id, new_id = self._read_ids(fields, kind)
        return FilePatch(
            kind=kind,
            old=None if kind == "add" else old,
            new=None if kind == "delete" else new,
            old_id=old_id,
            new_id=new_id,
            hunks=self._read_hunks(),
        )

    def _read_fields(self) -> dict[bytes, bytes]:
        """The lines between ``diff --git`` and the first hunk."""
        fields: dict[bytes, bytes] = {}
        for number in range(self.start + 1, self.header_end):
            line = self.lines[number]
            if line.startswith((b"GIT binary patch", b"Binary files ")):
                raise Refusal(number, "binary change; only text is patched")
            if is_signature(self.lines, number):
                break
            if not (found := _FIELD.fullmatch(line)):
                raise Refusal(number, "unexpected line above the first hunk of a file")
            if found[1] in fields:
                raise Refusal(number, f"second {_text(found[1])!r} line for one file")
            fields[found[1]] = found[2]
        return fields

    def _check_modes(self, fields: Mapping[bytes, bytes]) -> None:
        if b"old mode" in fields or b"new mode" in fields:
            self.complain("changes a file's mode; wheels keep the modes of their base")
        if b"copy from" in fields or b"copy to" in fields:
            self.complain("copies a file; make the patch with --no-renames, so that it is added in full")
        if fields.get(b"new file mode") == _PROGRAM_MODE:
            self.complain("adds an executable file")
        index = _INDEX.fullmatch(fields.get(b"index", b""))
        modes = {fields.get(b"new file mode"), fields.get(b"deleted file mode"), index and index[3]}
        for mode in sorted(mode for mode in modes if mode):
            if mode in _SPECIAL_MODES:
                self.complain(f"changes {_SPECIAL_MODES[mode]} (mode {_text(mode)})")
            elif mode not in (_FILE_MODE, _PROGRAM_MODE):
                self.complain(f"unknown file mode {_text(mode)}")

    def _read_paths(self, fields: Mapping[bytes, bytes], *, rename: bool) -> tuple[str, str]:
        """The paths of the ``diff --git`` line, after checking that all other lines name the same ones."""
        names = self.lines[self.start][len(b"diff --git ") : -1]
        if rename:
            old = _prefixed(fields.get(b"rename from", b""), b"a/")
            new = _prefixed(fields.get(b"rename to", b""), b"b/")
        else:
            # The two differ in their first letter only, so they are equally long, however they are spelled.
            old, new = names[: len(names) // 2], names[len(names) // 2 + 1 :]
        old_path, new_path = self._read_path(old, b"a/"), self._read_path(new, b"b/")
        if names != old + b" " + new or (old_path == new_path) == rename:
            hint = " (the patch's own lines end in CRLF)" if names.endswith(b"\r") else ""
            self.complain("the lines about one file name different files" + hint)
        for key, token, absent in ((b"---", old, b"new file mode"), (b"+++", new, b"deleted file mode")):
            self._check_name(key, fields.get(key), b"/dev/null" if absent in fields else token)
        return old_path, new_path

    def _read_path(self, token: bytes, prefix: bytes) -> str:
        """A path from its spelling in the patch, without ``a/`` or ``b/``."""
        spelled = unquote(token)
        if spelled is None or not spelled.startswith(prefix):
            self.complain(f"expected a path that begins with {_text(prefix)}, found {_text(token)!a}")
            return ""
        try:
            path = spelled[len(prefix) :].decode()
        except UnicodeDecodeError:
            self.complain(f"path is not UTF-8: {_text(token)!a}")
            return ""
        if problem := path_problem(path):
            self.complain(problem)
        return path

    def _check_name(self, key: bytes, value: bytes | None, expected: bytes) -> None:
        """``---`` and ``+++`` are there with hunks and only then, and name the file or that there is none."""
        if (value is None) == bool(self.hunk_spans):
            self.complain(
                f"{'no' if value is None else 'a'} {_text(key)!r} line for a file "
                f"{'with' if self.hunk_spans else 'without'} hunks"
            )
        elif value not in (None, expected, expected + b"\t"):  # git ends a path that has blanks with a tab
            self.complain(f"the {_text(key)} line names {_text(value or b'')!a}, expected {_text(expected)!a}")

    def _read_ids(self, fields: Mapping[bytes, bytes], kind: Kind) -> tuple[str, str]:
        index = _INDEX.fullmatch(fields.get(b"index", b""))
        if not index or len(index[1]) != _ID_DIGITS or len(index[2]) != _ID_DIGITS:
            # Part of an id would do for finding a file by mistake, but not against one made to look like it.
            what = "abbreviated blob ids in the" if index else "unreadable" if b"index" in fields else "no"
            self.complain(
                f"{what} 'index' line, which alone proves what file the patch was made for (by two blob ids of "
                f"{_ID_DIGITS} hex digits); make the patch with git diff --full-index --no-renames"
            )
            return "", ""
        old_id, new_id = _text(index[1]), _text(index[2])
        for blob, side, absent in ((old_id, "old", kind == "add"), (new_id, "new", kind == "delete")):
            if (not blob.strip("0")) != absent:
                self.complain(f"{side} blob id {blob[:12]} does not fit a patch that would {kind} the file")
        return old_id, new_id

    def _read_hunks(self) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        for start, end in self.hunk_spans:
            try:
                hunks.append(read_hunk(self.lines, start, end))
            except Refusal as refusal:
                self.problems.add_line(refusal.line, refusal.text)
        return tuple(hunks)


def _file_problems(file: FilePatch) -> list[str]:
    found = hunk_problems(file.hunks)
    if not file.hunks and file.kind == "modify":
        found.append("changes nothing")
    if file.kind == "add" and any(hunk.old_count or hunk.old_start for hunk in file.hunks):
        found.append("adds a file, but has a hunk with old lines")
    if file.kind == "delete" and any(hunk.new_count or hunk.new_start for hunk in file.hunks):
        found.append("deletes a file, but has a hunk with new lines")
    return found


def _prefixed(token: bytes, prefix: bytes) -> bytes:
    """How the ``diff --git`` line spells a path that another line spells without ``a/`` or ``b/``."""
    return b'"' + prefix + token[1:] if token.startswith(b'"') else prefix + token


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
