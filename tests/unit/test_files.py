"""Nothing half-done has a good name."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patchwheel.errors import OutputError
from patchwheel.files import check_space, drafting, git_blob_id, locked, sha256_file, write_atomically

FULL = Path("/dev/full")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_draft_is_seen_only_when_published(tmp_path: Path) -> None:
    target = tmp_path / "new" / "wheel.whl"
    with drafting(target) as draft:
        draft.write(b"content")
        draft.sync()
        assert not target.exists()
        assert draft.path.read_bytes() == b"content"
        draft.publish()
    assert target.read_bytes() == b"content"
    assert names(target.parent) == ["wheel.whl"]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "wheel.whl"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), drafting(target) as draft:
        draft.write(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["wheel.whl"]


def test_a_draft_that_is_not_published_vanishes(tmp_path: Path) -> None:
    with drafting(tmp_path / "wheel.whl"):
        pass
    assert names(tmp_path) == []


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_locked_sweeps_what_killed_processes_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".wheel.whl.0123456789ab.part").write_bytes(b"half")
    (tmp_path / "wheel.whl").write_bytes(b"whole")
    (tmp_path / ".holiday.mkv.part").write_bytes(b"another program's")
    (tmp_path / ".folder.0123456789ab.part").mkdir()
    (tmp_path / ".link.0123456789ab.part").symlink_to(tmp_path / "wheel.whl")
    with locked(tmp_path):
        assert [name for name in names(tmp_path) if not name.endswith(".lock")] == [
            ".folder.0123456789ab.part",
            ".holiday.mkv.part",
            ".link.0123456789ab.part",
            "wheel.whl",
        ]


def test_locked_keeps_others_out(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from patchwheel.files import locked\n"
        "with locked(Path(sys.argv[1]), lambda: print('waiting', flush=True)): print('in', flush=True)"
    )
    with locked(tmp_path):
        other = subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE)
        assert other.stdout
        assert other.stdout.readline() == b"waiting\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.3)
    output, _ = other.communicate(timeout=10)
    assert output == b"in\n"


@pytest.mark.parametrize("broken", ["flush", "sync", "publish"])
def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutputError) as caught, drafting(tmp_path / "wheel.whl") as draft:
        draft.write(b"content")
        if broken == "flush":
            monkeypatch.setattr(draft.file, "flush", lambda: fail(0), raising=False)
        monkeypatch.setattr(os, "fsync", fail)
        getattr(draft, broken)()
        draft.sync()
    assert "No space left" in str(caught.value)
    assert "free some space" in str(caught.value)
    assert names(tmp_path) == []


def test_errors_of_others_are_not_taken_for_ours(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cable") as caught, locked(tmp_path), drafting(tmp_path / "wheel.whl"):
        raise OSError(errno.EIO, "cable")
    assert not isinstance(caught.value, OutputError)
    with pytest.raises(BrokenPipeError), drafting(tmp_path / "wheel.whl"):
        raise BrokenPipeError


def test_publishing_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content before the name, and the name before we go on."""
    events: list[str] = []
    replace = Path.replace

    def synced(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")

    def replaced(path: Path, target: Path) -> Path:
        events.append("name")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    write_atomically(tmp_path / "wheel.whl", b"x")
    assert events == ["content", "name", "folder"]


def test_room_is_asked_for_before(tmp_path: Path) -> None:
    check_space(tmp_path, 1)
    with pytest.raises(OutputError, match="no room"):
        check_space(tmp_path, 1 << 60)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_device_that_is_really_full(tmp_path: Path) -> None:
    with pytest.raises(OutputError), drafting(tmp_path / "wheel.whl") as draft:
        draft.file.close()
        draft.file = FULL.open("wb")
        draft.write(b"x" * 10)
        draft.publish()
    assert names(tmp_path) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "wheels").write_bytes(b"")
    with pytest.raises(OutputError, match="can't write"):
        write_atomically(tmp_path / "wheels" / "a", b"x")


def test_digests(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"hello\n" * 500_000)
    with path.open("rb") as file:
        file.read(10)
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(sha256_file, [file] * 8)) == {hashlib.sha256(path.read_bytes()).hexdigest()}
        assert file.tell() == 10
    # The well-known ids of git's empty blob and of "hello\n".
    assert git_blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert git_blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
