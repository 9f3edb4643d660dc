"""The applier and git agree: on every patch that git makes, and on every base that it does not fit."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.patches import HEADER

from patchwheel.errors import ConflictError
from patchwheel.files import git_blob_id
from patchwheel.series import Series, apply_series
from patchwheel.series.diff import read_patch
from patchwheel.series.header import read_header
from patchwheel.series.model import Patch
from patchwheel.series.problems import Problems

ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": "/"}
QUICK = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)

# Few different lines, so that places repeat; all that git and Python's splitlines see differently; no NUL (binary).
LINE = st.sampled_from(
    [b"", b"a", b"b", b"if x:", b"    y", b"\ttab", b"cr\r", b"\x0b\x0c", b"\x85\xe9", b"-- ", b"@@"]
)
END = st.sampled_from([b"\n", b"\n", b"\n", b""])


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(LINE, max_size=30))
    return b"\n".join(lines) + (draw(END) if lines and lines[-1] else b"")


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A file and an edited copy of it."""
    before = draw(contents())
    lines = before.split(b"\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 2))] = draw(st.lists(LINE, max_size=2))
    return before, b"\n".join(lines)


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=ENVIRONMENT, check=False, capture_output=True, timeout=60
    )


def diff(folder: Path, before: bytes, after: bytes, context: int = 3) -> bytes:
    """The patch that git makes of two versions of vllm/f."""
    for side, data in (("a", before), ("b", after)):
        (folder / side / "vllm").mkdir(parents=True)
        (folder / side / "vllm" / "f").write_bytes(data)
    options = ("--no-index", "--no-prefix", "--full-index", "--text", f"--unified={context}")
    return git(folder, "diff", *options, "--", "a/vllm/f", "b/vllm/f").stdout


def diff_with_nothing(folder: Path, data: bytes, *, delete: bool) -> bytes:
    """The patch that git makes of adding or deleting vllm/f."""
    (folder / "vllm").mkdir(exist_ok=True)
    (folder / "vllm" / "f").write_bytes(data)
    names = ("vllm/f", os.devnull) if delete else (os.devnull, "vllm/f")
    return git(folder, "diff", "--no-index", "--full-index", "--text", "--", *names).stdout


def ours(data: bytes, base: bytes | None, allow_offset: int = 0) -> bytes | None:
    """What our applier makes of vllm/f."""
    header = read_header(HEADER, Problems("p"))
    assert header is not None
    files = read_patch(data, Problems("p")).files
    patch = Patch(name="p", sha256="", header=header, files=files, allow_offset=allow_offset)
    series = Series(name="s", purpose="", package="vllm", patches=(patch,))
    (change,) = apply_series([series], {"vllm/f": base}.get).changes
    return change.after


def git_applies(folder: Path, data: bytes, base: bytes, *options: str) -> bytes | None:
    """What git makes of vllm/f, None if it refuses."""
    target = folder / "t" / "vllm" / "f"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(base)
    (folder / "p").write_bytes(data)
    done = git(folder / "t", "apply", "--whitespace=nowarn", *options, "../p")
    return None if done.returncode else target.read_bytes()


@QUICK
@given(pair=edits(), context=st.sampled_from([3, 3, 1, 0]))
def test_every_patch_of_git_gives_the_same_bytes(pair: tuple[bytes, bytes], context: int) -> None:
    before, after = pair
    with tempfile.TemporaryDirectory() as name:
        data = diff(Path(name), before, after, context)
        if before == after:
            assert data == b""
            return
        assert ours(data, before) == after
        if context:  # without any, git 2.39 itself puts some hunks in the wrong place
            assert git_applies(Path(name), data, before) == after


@QUICK
@given(pair=edits(), data=st.data())
def test_on_another_base_neither_applies_or_ours_is_the_stricter(
    pair: tuple[bytes, bytes], data: st.DataObject
) -> None:
    before, after = pair
    if before == after or not before:
        return
    with tempfile.TemporaryDirectory() as name:
        patch = diff(Path(name), before, after)
        (file,) = read_patch(patch, Problems("p")).files
        lines = before.split(b"\n")
        touched = [at for hunk in file.hunks for at in range(hunk.old_index, hunk.old_index + hunk.old_count)]
        at = data.draw(st.sampled_from(touched or [0]))
        lines[at] += b"!"
        other = b"\n".join(lines)
        with pytest.raises(ConflictError):
            ours(patch, other)
        if touched and len(file.hunks) == 1 and file.hunks[0].old_count == len(before.splitlines()):
            assert git_applies(Path(name), patch, other) is None  # the whole file is context: no other place


@QUICK
@given(pair=edits(), top=st.integers(1, 4))
def test_with_an_offset_ours_and_git_agree_where_ours_applies(pair: tuple[bytes, bytes], top: int) -> None:
    before, after = pair
    if before == after or not before:
        return
    moved = b"top\n" * top + before
    with tempfile.TemporaryDirectory() as name:
        patch = diff(Path(name), before, after)
        with pytest.raises(ConflictError):
            ours(patch, moved)
        try:
            outcome = ours(patch, moved, allow_offset=top)
        except ConflictError:
            return
        assert outcome == b"top\n" * top + after


@pytest.mark.parametrize("data", [b"", b"x", b"x\n", b"x\r\n\r\n", b"\xff\xfe\n"])
def test_added_and_deleted_files(data: bytes, tmp_path: Path) -> None:
    assert ours(diff_with_nothing(tmp_path, data, delete=False), None) == data
    assert ours(diff_with_nothing(tmp_path, data, delete=True), data) is None


def test_git_names_blobs_as_the_reader_does(tmp_path: Path) -> None:
    (file,) = read_patch(diff(tmp_path, b"a\n", b"b\n"), Problems("p")).files
    assert (file.old_id, file.new_id) == (git_blob_id(b"a\n"), git_blob_id(b"b\n"))
