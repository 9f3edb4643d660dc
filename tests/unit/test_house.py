"""The house: what the README promises is what continuous integration runs, and generated pages are current."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patchwheel.acceptance.gate import find_gate
from patchwheel.base import load_lock
from patchwheel.plan import local_version
from patchwheel.project import Project
from patchwheel.recipe import load_recipe
from patchwheel.series import load_series

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(__file__).parents[2]


def readme_commands() -> list[str]:
    """The fenced commands of the README's first section."""
    block = re.search(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block
    return [line for line in block[1].splitlines() if line and not line.startswith("#")]


def test_continuous_integration_runs_the_readme_s_commands() -> None:
    build, test = readme_commands()
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert test in script
    assert build in script


PAGES = [
    "errors.md",
    "command-line.md",
    "recipe.schema.json",
    "series.schema.json",
    "bases-lock.schema.json",
    "probes.schema.json",
    "gate.schema.json",
    "canary.md",
    "canary.svg",
    "needed.md",
]


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    folder = ROOT / "docs"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("generate", folder / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(folder))


def test_all_generated_pages_are_known(generate: ModuleType) -> None:
    assert sorted(generate.pages()) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(generate: ModuleType, name: str) -> None:
    assert (ROOT / "docs" / "reference" / name).read_text() == generate.pages()[name], "run nox -s docs"


def test_the_shown_table_is_of_this_gate_and_these_patches() -> None:
    """The measured table must be made anew when a patch of the recipe changes: its wheel's version tells."""
    shown = json.loads((ROOT / "docs" / "reference" / "canary.json").read_bytes())
    project = Project(root=ROOT)
    gate = find_gate("canary", project.gates)
    assert [row["row"] for row in shown["rows"]] == [row.name for row in gate.rows]
    recipe = load_recipe(project.recipes / f"{gate.recipe}.toml")
    series = [load_series(str(name), recipe.base.version, project) for name in recipe.series]
    patches = [patch.sha256 for one in series for patch in one.patches]
    base = next(one for one in load_lock(project.bases_lock).bases if one.project == recipe.base.project)
    wheel = base.wheel("x86_64-cpu")
    assert wheel
    version = local_version("0.20.2", recipe.label, wheel.sha256, patches, name=recipe.wheel.name)
    assert f"-{version}-" in shown["wheels"]["right"]["file"], (
        "run nox -s accept -- --json > docs/reference/canary.json"
    )


def test_links_in_the_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 5
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_dependencies_have_bounds() -> None:
    requirements = importlib.metadata.requires("patchwheel")
    assert requirements
    assert all(">=" in requirement for requirement in requirements)
