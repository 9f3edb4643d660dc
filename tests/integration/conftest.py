"""The real base wheel, fetched once into the user's cache and built from once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.commands import ROOT

from patchwheel.base import fetch_base, pin_base
from patchwheel.pipeline import Product, build_recipe
from patchwheel.project import Project, find_project
from patchwheel.recipe import DEFAULT_RECIPE, find_recipe

if TYPE_CHECKING:
    from collections.abc import Callable


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
