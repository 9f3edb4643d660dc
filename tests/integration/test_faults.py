"""What happens when something goes wrong with the real wheel: nothing half-done is left, and the next run goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.commands import COMMAND, ROOT, patchwheel

from patchwheel.files import sha256_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from patchwheel.pipeline import Product
    from patchwheel.project import Project

KILLS = 50


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("[!.]*")} if folder.exists() else set()


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return sha256_file(file)


def test_killed_at_any_moment_it_leaves_nothing_or_the_wheel(tmp_path: Path, product: Product) -> None:
    command = [str(COMMAND), "build", "-q", "--offline", "--variant", "x86_64-cu13", "--out", str(tmp_path)]
    started = time.monotonic()
    subprocess.run(command, check=True, cwd=ROOT, stderr=subprocess.DEVNULL)
    duration = time.monotonic() - started
    chance = random.Random(20261201)
    wheel = tmp_path / product.wheel.name
    killed = 0
    for number in range(3 * KILLS):
        if number % 10 == 0:
            for path in tmp_path.glob("[!.]*"):
                path.unlink()
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, duration))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        assert visible(tmp_path) <= {wheel.name, f"{wheel.name}.record.json"}
        if wheel.exists():
            assert digest(wheel) == product.sha256
            assert json.loads(wheel.with_name(f"{wheel.name}.record.json").read_bytes())["sha256"] == product.sha256
        if killed == KILLS:
            break
    assert killed == KILLS
    subprocess.run(command, check=True, cwd=ROOT, stderr=subprocess.DEVNULL)
    assert digest(wheel) == product.sha256
    assert visible(tmp_path) == {wheel.name, f"{wheel.name}.record.json"}
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_politely_it_leaves_no_draft_either(tmp_path: Path, product: Product, number: int) -> None:
    del product
    process = subprocess.Popen(
        [COMMAND, "build", "-q", "--offline", "--out", tmp_path], cwd=ROOT, stderr=subprocess.PIPE
    )
    while not list(tmp_path.glob(".*.part")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert not list(tmp_path.glob(".*.part"))
    assert b"Traceback" not in stderr


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A small file system of its own, where the machine lets us."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize(
    ("options", "says"),
    [("size=64m", "there is no room"), ("size={}k", "No space left"), ("ro", "Read-only file system")],
    ids=["small", "full", "read-only"],
)
def test_a_full_or_read_only_folder(tmp_path: Path, product: Product, options: str, says: str) -> None:
    # Enough for what the plan estimates, not for the wheel, so that the disk fills up within the last member.
    between = (product.plan.size + product.size) // 2 // 1024
    folder = tmp_path / "wheels"
    folder.mkdir()
    with mounted(folder, options.format(between)):
        ran = patchwheel("build", "--offline", "--json", "--out", folder)
        assert ran.code == 11
        assert says in ran.stderr
        document = json.loads(ran.stdout)
        assert (document["schema"], document["kind"]) == ("patchwheel.error/1", "output")
        assert visible(folder) == set()
        assert not list(folder.glob(".*.part"))


def test_no_network_and_no_cache(tmp_path: Path) -> None:
    environment = {"PATCHWHEEL_CACHE_DIR": str(tmp_path / "cache")}
    for command in ("build", "plan"):
        ran = patchwheel(command, "--offline", "--project", ROOT, env=environment, cwd=tmp_path)
        assert ran.code == 5
        assert "not in the cache" in ran.stderr
    assert visible(tmp_path / "wheels") == set()


def test_a_truncated_or_damaged_cached_base_offline(
    tmp_path: Path, product: Product, base_of: Callable[[str], Path]
) -> None:
    cached = base_of("x86_64-cu13")
    digest_folder = tmp_path / "cache" / "sha256" / product.plan.base.sha256[:2] / product.plan.base.sha256
    digest_folder.mkdir(parents=True)
    copy = digest_folder / cached.name
    shutil.copyfile(cached, copy)
    os.truncate(copy, 100_000_000)
    ran = patchwheel(
        "build",
        "--offline",
        "--variant",
        "x86_64-cu13",
        "--out",
        tmp_path / "wheels",
        env={"PATCHWHEEL_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert ran.code == 6
    assert "another content than pinned" in ran.stderr
    assert visible(tmp_path / "wheels") == set()
    copy.unlink()


def test_a_conflicting_patch(tmp_path: Path, project: Project, product: Product) -> None:
    del product
    changed = tmp_path / "project"
    shutil.copytree(project.root / "manifests", changed / "manifests")
    shutil.copytree(project.root / "patches", changed / "patches")
    [patch] = (changed / "patches/dflash-swa-support/0.20.2").glob("0001-*.patch")
    text = patch.read_text()
    assert 'dflash_config = getattr(hf_config, "dflash_config", None)' in text
    patch.write_text(text.replace('getattr(hf_config, "dflash_config", None)', 'hf_config.get("dflash_config")'))
    ran = patchwheel("build", "--offline", "--project", changed, "--out", tmp_path / "wheels")
    assert ran.code == 9
    assert patch.name in ran.stderr
    assert "gpu_model_runner.py" in ran.stderr
    assert visible(tmp_path / "wheels") == set()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("build", "no-such-recipe"), 2, "unknown recipe 'no-such-recipe'"),
        (("build", "--variant", "x86_64-cu99"), 2, "no variant 'x86_64-cu99'"),
        (("plan", "--project", "/"), 2, "no patchwheel project"),
        (("verify", "/no/such.whl"), 2, "No such file"),
        (("base", "lock", "vllm>=0.20"), 2, "PROJECT==VERSION"),
        (("frobnicate",), 2, "invalid choice"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], code: int, says: str) -> None:
    ran = patchwheel(*arguments)
    assert (ran.code, ran.stdout) == (code, "")
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
