"""From wheels to a verdict: build them if need be, install each in a clean environment, and run a gate on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.acceptance.gate import find_gate
from patchwheel.acceptance.run import MOST_JOBS, UNDER_TEST, Served, run_gate
from patchwheel.errors import UsageError
from patchwheel.install import create_environment
from patchwheel.pipeline import build_recipe
from patchwheel.progress import SILENT, Reporter
from patchwheel.recipe import find_recipe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from patchwheel.acceptance.table import Table
    from patchwheel.project import Project

__all__ = ["build_all", "prove"]


def build_all(
    gate: str, *, project: Project, out: Path, offline: bool = False, reporter: Reporter = SILENT
) -> dict[str, Path]:
    """Build the wheel that a gate is about, and those with something left out that its rows need.

    Args:
        gate: Name of the gate.
        project: Has the gate and its recipe.
        out: Folder for the wheels.
        offline: Use only what the cache has.
        reporter: Is told what happens.

    Returns:
        The wheels by the names that `prove` wants.

    Raises:
        PatchwheelError: Of any kind that a build raises.
    """
    table = find_gate(gate, project.gates)
    wheels = {}
    for name, left_out in {UNDER_TEST: (), **table.wheels}.items():
        product = build_recipe(
            table.recipe, project=project, out=out, left_out=left_out, offline=offline, reporter=reporter
        )
        wheels[name] = product.wheel
    return wheels


def prove(
    wheels: Mapping[str, Path],
    *,
    gate: str,
    project: Project,
    folder: Path,
    jobs: int = MOST_JOBS,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Table:
    """Install wheels and run a gate on them.

    Args:
        wheels: The wheel under test as ``right``, and those with something left out by the gate's names for them.
        gate: Name of the gate.
        project: Has the gate, and the recipe that says how its wheels are installed.
        folder: For drafters and logs; must exist.
        jobs: Servers side by side.
        offline: Install only what uv has cached.
        reporter: Is told what happens.

    Raises:
        UsageError: A wheel can't be read or has a name that the gate doesn't know, or there is no such gate.
        ConfigError: The gate or its recipe can't be read.
        ToolError: An environment can't be made, or the reference failed.
        OutputError: The cache or the folder can't be written.
    """
    table = find_gate(gate, project.gates)
    if unknown := sorted(set(wheels) - {UNDER_TEST} - set(table.wheels)):
        raise UsageError(
            f"the gate {gate} has no control {', '.join(unknown)}", expected="among " + ", ".join(table.wheels)
        )
    recipe, _path = find_recipe(table.recipe, project)
    served = {}
    for name, wheel in wheels.items():
        environment = create_environment(wheel, overrides=recipe.install.overrides, offline=offline, reporter=reporter)
        served[name] = Served(file=wheel.name, sha256=environment.sha256, python=environment.python)
    return run_gate(table, served, folder=folder, jobs=jobs, reporter=reporter)
