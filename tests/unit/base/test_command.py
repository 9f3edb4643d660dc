"""``patchwheel base lock`` and ``list``, against a server that is the only index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.elf import shared_object
from support.wheels import pack_wheel

from patchwheel.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from support.fileserver import FileServer

FIRST = "vllm-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"
SECOND = "vllm-1.0-1-cp38-abi3-manylinux_2_28_x86_64.whl"
CUDA = pack_wheel({"vllm/_C.abi3.so": shared_object("libcudart.so.13")})


@pytest.fixture
def project(tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project" / "manifests" / "recipes").mkdir(parents=True)
    monkeypatch.setenv("PATCHWHEEL_INDEX_URL", server.url("/simple/"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PATCHWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    server.index("vllm", {FIRST: CUDA, SECOND: CUDA, "vllm-1.0.tar.gz": b"source"})
    return tmp_path / "project"


def test_lock_and_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["base", "lock", "vllm==1.0", "--project", str(project), "-q"]
    assert main(arguments) == 0
    told = capsys.readouterr().err
    assert "was written: review the change" in told
    assert f"{FIRST}  (an older build, not used)" in told
    assert f"{SECOND}\n" in told
    before = (project / "manifests" / "bases.lock.toml").read_bytes()
    assert main(arguments) == 0
    assert "had all of this already" in capsys.readouterr().err
    assert (project / "manifests" / "bases.lock.toml").read_bytes() == before

    assert main(["base", "list", "--json", "--project", str(project)]) == 0
    [base] = json.loads(capsys.readouterr().out)["bases"]
    assert (base["version"], len(base["wheels"]), base["sdist"]["file"]) == ("1.0", 2, "vllm-1.0.tar.gz")


def test_a_release_that_no_index_has(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["base", "lock", "vllm==9.9", "--json", "--project", str(project)]) == 5
    printed = capsys.readouterr()
    assert json.loads(printed.out)["kind"] == "network"
    assert "has vllm, the newest being 1.0" in printed.err
    assert not (project / "manifests" / "bases.lock.toml").exists()
