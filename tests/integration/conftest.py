"""The real base wheel, fetched once into the user's cache and built from once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patchwheel.base import fetch_base, pin_base
from patchwheel.pipeline import Product, build_recipe
from patchwheel.project import Project, find_project
from patchwheel.recipe import DEFAULT_RECIPE, find_recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def project() -> Project:
    return find_project(ROOT)


@pytest.fixture(scope="session")
def base_of(project: Project) -> Callable[[str], Path]:
    """Path of the base wheel of a variant of the default recipe."""
    recipe, path = find_recipe(DEFAULT_RECIPE, project)
    return lambda variant: fetch_base(pin_base(recipe, path, project, variant))


@pytest.fixture(scope="session")
def product(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Product:
    """The default recipe, built for x86_64."""
    return build_recipe(project=project, out=tmp_path_factory.mktemp("wheels"), variant="x86_64-cu13")


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def patchwheel() -> Callable[..., Ran]:
    """Calls the installed command line."""

    def call(*arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Ran:
        done = subprocess.run(
            [Path(sys.executable).with_name("patchwheel"), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env=os.environ | dict(env or {}),
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call
