"""From wheels to a verdict: install each in a clean environment, and run a gate on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.acceptance.gate import find_gate
from patchwheel.acceptance.run import MOST_JOBS, UNDER_TEST, Served, run_gate
from patchwheel.errors import UsageError
from patchwheel.install import create_environment
from patchwheel.progress import SILENT, Reporter
from patchwheel.recipe import find_recipe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from patchwheel.acceptance.table import Table
    from patchwheel.project import Project

__all__ = ["prove"]


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
