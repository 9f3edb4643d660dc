"""Real vLLM on the CPU: the wheels of the canary's gate, built, installed and served once for all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.commands import ROOT

from patchwheel.acceptance.gate import Gate, find_gate
from patchwheel.acceptance.prove import build_all, prove
from patchwheel.acceptance.run import UNDER_TEST
from patchwheel.base import fetch_base, pin_base
from patchwheel.documents import canonical_json
from patchwheel.install import Environment, create_environment
from patchwheel.progress import reporter_for
from patchwheel.project import Project, find_project
from patchwheel.recipe import Recipe, find_recipe

if TYPE_CHECKING:
    from patchwheel.acceptance.table import Table

GATE = "canary"
TABLE = "PATCHWHEEL_CANARY_TABLE"
"""Names a file to which the measured table is written: docs/reference/canary.json is made so."""


@pytest.fixture(scope="session")
def project() -> Project:
    return find_project(ROOT)


@pytest.fixture(scope="session")
def gate(project: Project) -> Gate:
    return find_gate(GATE, project.gates)


@pytest.fixture(scope="session")
def recipe(gate: Gate, project: Project) -> Recipe:
    return find_recipe(gate.recipe, project)[0]


@pytest.fixture(scope="session")
def wheels(project: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_all(GATE, project=project, out=tmp_path_factory.mktemp("wheels"), reporter=reporter_for())


@pytest.fixture(scope="session")
def patched(wheels: dict[str, Path], recipe: Recipe) -> Environment:
    return create_environment(wheels[UNDER_TEST], overrides=recipe.install.overrides, reporter=reporter_for())


@pytest.fixture(scope="session")
def unpatched(gate: Gate, recipe: Recipe, project: Project) -> Environment:
    """The base wheel as it was published."""
    _recipe, path = find_recipe(gate.recipe, project)
    wheel = fetch_base(pin_base(recipe, path, project))
    return create_environment(wheel, overrides=recipe.install.overrides, reporter=reporter_for())


@pytest.fixture(scope="session")
def table(wheels: dict[str, Path], project: Project, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Every row of the gate, served and judged."""
    measured = prove(
        wheels, gate=GATE, project=project, folder=tmp_path_factory.mktemp("rows"), reporter=reporter_for()
    )
    if TABLE in os.environ:
        Path(os.environ[TABLE]).write_bytes(canonical_json(measured.as_document()))
    return measured
