from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.wheels import VERSION_MODULE, write_wheel

from patchwheel.errors import ArchiveError
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.metadata import (
    find_dist_info,
    headers,
    read_version_module,
    with_version,
    with_version_module,
    with_wheel_tags,
)
from patchwheel.wheel.names import parse_wheel_name
from patchwheel.wheel.relabel import relabelled
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path

NEW = "0.20.2+dflash.swa.0123abcd"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_version_field_changes(end: str) -> None:
    lines = ["Name: vllm", "Version: 0.20.2", "Requires-Dist: a", "", "Version: in the text"]
    data = end.join(lines).encode()
    assert with_version(data, NEW) == data.replace(b"Version: 0.20.2", f"Version: {NEW}".encode(), 1)


@pytest.mark.parametrize("data", [b"Name: a\n\nVersion: 1\n", b"Version: 1\nVersion: 2\n\n"])
def test_metadata_without_one_version_is_refused(data: bytes) -> None:
    with pytest.raises(ArchiveError, match="one Version field"):
        with_version(data, "2")


def test_wheel_gets_the_tags_of_its_file_name() -> None:
    name = parse_wheel_name("vllm-0.21.0-1-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    data = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: cp38-abi3-linux_x86_64\n\n"
    assert with_wheel_tags(data, name).decode() == (
        "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nBuild: 1\n"
        "Tag: cp38-abi3-manylinux_2_17_x86_64\nTag: cp38-abi3-manylinux2014_x86_64\n"
    )


def test_the_version_module_changes_in_its_two_values_only() -> None:
    old = VERSION_MODULE.format(version="0.20.2", tuple=(0, 20, 2)).encode()
    new = with_version_module(old, "0.20.2", NEW)
    space: dict[str, object] = {}
    exec(new, space)
    assert space["__version__"] == space["version"] == NEW
    assert space["__version_tuple__"] == space["version_tuple"] == (0, 20, 2, "dflash.swa.0123abcd")
    assert space["commit_id"] == "gbc150f502"
    changed = [line for line in new.splitlines() if line not in old.splitlines()]
    assert len(changed) == 2
    assert read_version_module(new) == NEW


@pytest.mark.parametrize(
    "source",
    [
        b"__version__ = '0.20.3'\n",
        b"__version__ = '0.20.2'\n__version__ = '0.20.2'\n",
        b"__version__ = '0.20.2'\n__version_tuple__ = (0, 20,\n 2)\n",
    ],
)
def test_an_unknown_layout_is_refused(source: bytes) -> None:
    with pytest.raises(ArchiveError, match="known layout"):
        with_version_module(source, "0.20.2", NEW)


def test_a_version_module_is_not_run() -> None:
    assert read_version_module(b"raise SystemExit\n__version__ = '1'\n") == "1"
    assert read_version_module(b"__version__ = compute()\n") is None
    assert read_version_module(b"x = 1\n") is None
    with pytest.raises(ArchiveError, match="no valid Python"):
        read_version_module(b"def\n")


def test_headers_keep_all_values() -> None:
    assert headers(b"Tag: a\nTag: b\nName: x\n\nTag: text\n") == {"tag": ["a", "b"], "name": ["x"]}


def test_relabelled(tmp_path: Path) -> None:
    path = write_wheel(tmp_path)
    old = parse_wheel_name(path.name)
    with path.open("rb") as file:
        archive = Archive(FileSource(file))
        changed = relabelled(archive, find_dist_info(archive, old), old, old.with_version(NEW))
    assert set(changed) == {
        "vllm/_version.py",
        "vllm-0.20.2.dist-info/METADATA",
        "vllm-0.20.2.dist-info/WHEEL",
    }
    assert all(NEW.encode() in data for path, data in changed.items() if not path.endswith("WHEEL"))


def test_dist_info_must_be_the_wheels_own(tmp_path: Path) -> None:
    path = write_wheel(tmp_path)
    with path.open("rb") as file:
        archive = Archive(FileSource(file))
        with pytest.raises(ArchiveError, match="belongs to another wheel"):
            find_dist_info(archive, parse_wheel_name("vllm-0.20.3-py3-none-any.whl"))
