"""A branch named dflash-swa-support on top of the real source release gives the series that the branch is."""

from __future__ import annotations

import os
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING

from patchwheel.base import fetch_base, pin_sdist
from patchwheel.pipeline import build_recipe
from patchwheel.recipe import DEFAULT_RECIPE, find_recipe

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from patchwheel.pipeline import Product
    from patchwheel.project import Project

RUNNER = "vllm/v1/worker/gpu_model_runner.py"


def git(folder: Path, *arguments: str) -> str:
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_branch_on_the_source_release(
    tmp_path: Path, project: Project, product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, _ = find_recipe(DEFAULT_RECIPE, project)
    repository = tmp_path / "vllm"
    with tarfile.open(fetch_base(pin_sdist(recipe, project))) as archive:
        members = [member for member in archive if "/vllm/v1/" in member.name or member.name.endswith("/setup.py")]
        archive.extractall(tmp_path, members, filter="data")
    (tmp_path / "vllm-0.20.2").rename(repository)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "vLLM 0.20.2")
    base_commit = git(repository, "rev-parse", "HEAD")

    git(repository, "checkout", "-q", "-b", "dflash-swa-support")
    with zipfile.ZipFile(product.wheel) as wheel:
        (repository / RUNNER).write_bytes(wheel.read(RUNNER))
    (repository / "tests").mkdir(exist_ok=True)
    (repository / "tests" / "test_ids.py").write_text("def test_ids(): ...\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Count DFlash's layers as the runner does\n\nA reason.")
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "main")

    path = tmp_path / "branch.toml"
    path.write_text(
        'name = "branch"\nsummary = "from git"\nlabel = "dflash.swa"\n'
        f'[[series]]\nname = "dflash-swa-support"\npurpose = "p"\nurl = "{repository}"\n'
        f'ref = "dflash-swa-support"\ncommit = "{commit}"\nbase-commit = "{base_commit}"\ndropped = ["tests/**"]\n'
        '[base]\nproject = "vllm"\nversion = "0.20.2"\nvariants = ["x86_64-cu13"]\n'
    )
    built = build_recipe(str(path), project=project, out=tmp_path / "wheels")
    with zipfile.ZipFile(built.wheel) as ours, zipfile.ZipFile(product.wheel) as theirs:
        assert ours.read(RUNNER) == theirs.read(RUNNER)
    assert built.plan.applied.dropped == ("tests/test_ids.py",)
    [patch] = built.plan.series[0].patches
    assert commit in patch.header.origin
    assert patch.header.description.startswith("Count DFlash's layers as the runner does")
    # Once fetched, the pinned commit is enough: no network, no matter where the branch points now.
    monkeypatch.setenv("PATCHWHEEL_OFFLINE", "1")
    git(repository, "branch", "-f", "dflash-swa-support", "main")
    assert build_recipe(str(path), project=project, out=tmp_path / "wheels").sha256 == built.sha256
