"""The variant of a wheel, from the modules in it."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.elf import shared_object
from support.wheels import pack_wheel

from patchwheel.base import IndexSettings, read_variant
from patchwheel.base.http import open_session
from patchwheel.base.remote import RemoteSource
from patchwheel.base.variant import needed_libraries
from patchwheel.errors import ArchiveError
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path

    from support.fileserver import FileServer

    from patchwheel.base import Patience

FILE = "vllm-1.0-cp38-abi3-manylinux_2_28_aarch64.whl"


class Bytes:
    """A source in memory that counts what is read."""

    name = FILE

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.read = 0

    def read_at(self, offset: int, count: int) -> bytes:
        self.read += count
        return self.data[offset : offset + count]


def variant(files: dict[str, bytes], file: str = FILE) -> str:
    return read_variant(Bytes(pack_wheel(files)), file)


@pytest.mark.parametrize(
    ("library", "device"),
    [
        ("libcudart.so.13", "cu13"),
        ("libcudart.so.12", "cu12"),
        ("libcublas.so.13", "cu13"),
        ("libcublasLt.so.12", "cu12"),
        ("libnvrtc.so.13", "cu13"),
        ("libcudart-1a2b3c4d.so.12.9.79", "cu12"),
        ("libgomp.so.1", "cpu"),
    ],
)
def test_the_runtime_library_tells(library: str, device: str) -> None:
    assert variant({"vllm/_C.abi3.so": shared_object("libc.so.6", library)}) == f"aarch64-{device}"


def test_libraries_with_a_count_of_their_own_do_not_tell() -> None:
    files = {
        "a.so": shared_object("libcufft.so.12", "libcurand.so.10"),
        "b.so": shared_object("libcudart.so.13", padding=5000),
    }
    assert variant(files) == "aarch64-cu13"


def test_the_smallest_module_that_tells_is_enough() -> None:
    noise = random.Random(5).randbytes(300_000)
    files = {
        "large.so": shared_object("libcudart.so.12") + noise,
        "small.so": shared_object("libcuda.so.1"),
        "medium.so": shared_object("libcudart.so.13", padding=100),
    }
    source = Bytes(pack_wheel(files))
    assert read_variant(source, FILE) == "aarch64-cu13"
    damaged = {**files, "large.so": b"not looked at" + noise}
    assert variant(damaged) == "aarch64-cu13"


def test_without_modules_it_is_for_the_cpu() -> None:
    assert variant({"a.py": b"", "b.so.txt": b""}) == "aarch64-cpu"


def test_modules_in_versioned_names_are_seen() -> None:
    assert variant({"x.libs/liba.so.1.2": shared_object("libcudart.so.13")}) == "aarch64-cu13"


@pytest.mark.parametrize("library", ["libcuda.so.1", "libtorch_cuda.so", "libamdhip64.so.6", "libsycl.so.8"])
def test_a_device_without_a_release_is_not_called_cpu(library: str) -> None:
    with pytest.raises(ArchiveError, match="built for a device") as caught:
        variant({"a.so": shared_object(library)})
    assert caught.value.found == library


@pytest.mark.parametrize("file", ["vllm-1.0-py3-none-any.whl", "vllm-1.0-cp38-abi3-win_amd64.whl"])
def test_other_systems_are_refused(file: str) -> None:
    with pytest.raises(ArchiveError, match="architecture of Linux"):
        variant({}, file)


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh", b"\x7fELF", shared_object("libc.so.6")[:100]])
def test_what_is_no_module_is_told(data: bytes) -> None:
    with pytest.raises(ArchiveError, match="not a readable ELF file") as caught:
        variant({"bad.so": data})
    assert "bad.so" in (caught.value.where or "")


WHOLE = shared_object("libcudart.so.13", "libc.so.6")


@given(at=st.integers(0, len(WHOLE) - 1), value=st.integers(0, 255))
def test_damage_never_ends_in_another_error(at: int, value: int) -> None:
    damaged = WHOLE[:at] + bytes([value]) + WHOLE[at + 1 :]
    try:
        names = needed_libraries(io.BytesIO(damaged), "damaged")
    except ArchiveError:
        return
    assert all(isinstance(name, str) for name in names)


def test_little_of_a_wheel_on_a_server_is_read(server: FileServer, patience: Patience, tmp_path: Path) -> None:
    noise = random.Random(5).randbytes(3_000_000)
    files = {
        "small.so": shared_object("libcudart.so.13"),
        "large.so": shared_object("libcudart.so.12") + noise,
        "x.dist-info/RECORD": b"",
    }
    data = pack_wheel(files)
    server.files["/w.whl"] = data
    with open_session(IndexSettings()) as session:
        source = RemoteSource(session, server.url("/w.whl"), size=len(data), patience=patience)
        assert read_variant(source, FILE) == "aarch64-cu13"
    assert source.transferred < len(data) / 3
    (tmp_path / "w.whl").write_bytes(data)
    with (tmp_path / "w.whl").open("rb") as file:
        assert read_variant(FileSource(file), FILE) == "aarch64-cu13"


def test_a_real_module_is_read(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    for name, extra in (
        ("libcudart.so.13", []),
        ("module.so", ["-Wl,--no-as-needed", str(tmp_path / "libcudart.so.13")]),
    ):
        command = [compiler, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none", *extra]
        command += ["-o", str(tmp_path / name), f"-Wl,-soname,{name}"]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("gcc does not link here")
    with (tmp_path / "module.so").open("rb") as file:
        assert needed_libraries(file, "module.so") == ["libcudart.so.13"]
