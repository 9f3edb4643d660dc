"""The real vLLM 0.20.2 wheel: built, accepted by the tools that install it, the same everywhere."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.commands import COMMAND, ROOT, patchwheel

from patchwheel.files import sha256_file
from patchwheel.pipeline import build_recipe, verify_path
from patchwheel.verify import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchwheel.pipeline import Product
    from patchwheel.project import Project

RUNNER = "vllm/v1/worker/gpu_model_runner.py"


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return sha256_file(file)


def test_every_check_passes(product: Product) -> None:
    assert product.report
    assert {result.check: result.status for result in product.report.results} == dict.fromkeys(
        ("archive", "record", "identity", "base", "changes", "probes"), Status.PASSED
    )
    assert product.wheel.name.startswith("vllm-0.20.2+dflash.swa.")
    assert product.wheel.name.endswith("-cp38-abi3-manylinux_2_35_x86_64.whl")


def test_it_is_upstream_but_for_the_patches(product: Product, base_of: Callable[[str], Path]) -> None:
    """Python's own zipfile as the second opinion: every other member has the base's size and CRC."""
    with zipfile.ZipFile(base_of("x86_64-cu13")) as base, zipfile.ZipFile(product.wheel) as built:
        theirs = {info.filename: (info.file_size, info.CRC) for info in base.infolist()}
        ours = {info.filename: (info.file_size, info.CRC) for info in built.infolist()}
    version = product.plan.name.version
    moved = {name.replace("vllm-0.20.2.dist-info", f"vllm-{version}.dist-info"): fact for name, fact in theirs.items()}
    differing = {name for name in ours.keys() | moved.keys() if ours.get(name) != moved.get(name)}
    info = f"vllm-{version}.dist-info"
    assert differing == {change.path for change in product.plan.applied.changes} | {
        "vllm/_version.py",
        f"{info}/METADATA",
        f"{info}/WHEEL",
        f"{info}/RECORD",
        f"{info}/patchwheel.json",
    }


def test_stored_members_cost_little(product: Product, base_of: Callable[[str], Path]) -> None:
    assert product.size - base_of("x86_64-cu13").stat().st_size < 1_000_000


def layers_of(wheel: Path, **config: object) -> object:
    """What the runner of a wheel makes of a drafter's config: its method alone, run on stand-ins."""
    with zipfile.ZipFile(wheel) as archive:
        tree = ast.parse(archive.read(RUNNER))
    method = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_get_eagle3_aux_layers_from_config"
    )
    space: dict[str, object] = {}
    exec(compile(ast.Module([method], []), RUNNER, "exec"), space)
    drafter = type("Config", (), config)
    speculative = type("Speculative", (), {"draft_model_config": type("Draft", (), {"hf_config": drafter})})
    runner = type("Runner", (), {"speculative_config": speculative})
    return space[method.name](runner)  # type: ignore[operator]


def test_layer_ids_are_shifted_once_and_only_dflash_s_own(product: Product, base_of: Callable[[str], Path]) -> None:
    ids = [1, 16, 31, 46, 61]
    dflash = {"target_layer_ids": ids, "mask_token_id": 248070}
    assert layers_of(base_of("x86_64-cu13"), dflash_config=dflash) == tuple(ids)
    assert layers_of(product.wheel, dflash_config=dflash) == (2, 17, 32, 47, 62)
    assert layers_of(product.wheel, dflash_config={"target_layer_ids": (0, 11)}) == (1, 12)
    given = {"eagle_aux_hidden_state_layer_ids": [2, 10], "dflash_config": {"target_layer_ids": [2, 10]}}
    assert layers_of(product.wheel, **given) == (2, 10)
    assert layers_of(product.wheel, dflash_config={}) is None
    assert layers_of(product.wheel) is None
    assert ids == [1, 16, 31, 46, 61]


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", "{folder}", "{wheel}"),
        (
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--target",
            "{folder}",
            "{wheel}",
        ),
        ("-m", "installer", "--destdir", "{folder}", "{wheel}"),
        ("-m", "wheel", "unpack", "--dest", "{folder}", "{wheel}"),
        ("-m", "twine", "check", "--strict", "{wheel}"),
    ],
    ids=lambda command: command[1],
)
def test_the_tools_accept_it(product: Product, tmp_path: Path, command: tuple[str, ...]) -> None:
    filled = [part.format(folder=tmp_path, wheel=product.wheel) for part in command]
    done = subprocess.run([sys.executable, *filled], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if command[1] != "twine":
        [runner] = tmp_path.rglob(RUNNER)
        with zipfile.ZipFile(product.wheel) as archive:
            assert runner.read_bytes() == archive.read(RUNNER)
    shutil.rmtree(tmp_path)


def test_installed_it_says_its_version(product: Product, tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--target",
            tmp_path,
            product.wheel,
        ],
        check=True,
    )
    program = (
        "import importlib.metadata, runpy, sys; sys.path.insert(0, sys.argv[1])\n"
        "print(importlib.metadata.version('vllm'), runpy.run_path(sys.argv[1] + '/vllm/_version.py')['__version__'])"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [product.plan.name.version] * 2
    shutil.rmtree(tmp_path)


def test_the_other_architecture_can_be_built_here_too(project: Project, product: Product, tmp_path: Path) -> None:
    other = build_recipe(project=project, out=tmp_path, variant="aarch64-cu13")
    assert other.wheel.name.endswith("_aarch64.whl")
    assert other.report
    assert other.report.results[-1].status is Status.PASSED
    assert other.plan.name.version != product.plan.name.version


STRANGER = """
import os, sys
from pathlib import Path
from patchwheel.pipeline import build_recipe
from patchwheel.project import find_project
# A stranger may not read what root has installed, so all of it is imported before.
import filelock, zlib_ng.zlib_ng, encodings.idna, concurrent.futures.thread
import patchwheel.build.overlay, patchwheel.verify.run
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.umask(0o027)
project, out = find_project(Path(sys.argv[1])), Path(sys.argv[2])
product = build_recipe(project=project, out=out, variant="x86_64-cu13", offline=True)
print(product.sha256, os.geteuid())
"""


def test_another_user_time_zone_locale_and_umask_give_the_same_bytes(
    product: Product, project: Project, base_of: Callable[[str], Path]
) -> None:
    base = base_of("x86_64-cu13")
    with tempfile.TemporaryDirectory() as name:  # not under tmp_path, which no other user may enter
        folder = Path(name)
        folder.chmod(0o755)
        cache = folder / "cache" / "sha256" / product.plan.base.sha256[:2] / product.plan.base.sha256
        cache.mkdir(parents=True)
        shutil.copyfile(base, cache / base.name)
        for part in ("manifests", "patches"):
            shutil.copytree(project.root / part, folder / "project" / part)
        out = folder / "out"
        out.mkdir(mode=0o777)
        out.chmod(0o777)
        environment = os.environ | {
            "PATCHWHEEL_CACHE_DIR": str(folder / "cache"),
            "TZ": "Pacific/Auckland",
            "LC_ALL": "C",
            "PYTHONHASHSEED": "1",
            "SOURCE_DATE_EPOCH": "1",
        }
        command = [sys.executable, "-c", STRANGER, str(folder / "project"), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/")
        assert done.returncode == 0, done.stderr
        digest_told, user = done.stdout.split()
        assert user == ("65534" if os.geteuid() == 0 else str(os.geteuid()))
        assert digest_told == product.sha256 == digest(out / product.wheel.name)


def test_memory_does_not_grow_with_the_wheel(tmp_path: Path, product: Product) -> None:
    del product  # it only sees to it that the base is cached
    command = [str(COMMAND), "build", "-q", "--offline", "--out", str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_maxrss / 1024 < 120


def test_verify_command(product: Product, tmp_path: Path) -> None:
    good = patchwheel("verify", product.wheel, "--json")
    assert good.code == 0
    document = json.loads(good.stdout)
    assert (document["schema"], document["ok"]) == ("patchwheel.verify/1", True)
    assert {check["status"] for check in document["reports"][0]["checks"]} == {"passed"}

    bad = tmp_path / product.wheel.name
    shutil.copy(product.wheel, bad)
    with bad.open("r+b") as file:
        file.seek(bad.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    damaged = patchwheel("verify", bad)
    assert damaged.code == 1
    assert "FAIL archive" in damaged.stderr
    assert "FAIL changes" in damaged.stderr
    bad.unlink()


def test_upstream_s_own_wheel_holds(base_of: Callable[[str], Path]) -> None:
    """Its WHEEL file names another platform than its file name, which is told but no fault."""
    report = verify_path(base_of("x86_64-cu13"))
    assert report
    assert "WHEEL has the tag from before its publisher renamed it" in report.as_text()
