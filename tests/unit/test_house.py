"""The house: what the README promises is what continuous integration runs, and generated pages are current."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "name", ["errors.md", "command-line.md", "recipe.schema.json", "series.schema.json", "bases-lock.schema.json"]
)
def test_generated_pages_are_current(name: str) -> None:
    path = ROOT / "docs" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "reference" / name).read_text() == module.pages()[name], "run nox -s docs"


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
