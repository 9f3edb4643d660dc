"""The report of a smoke test, with a stand-in for the environment; tests/acceptance runs it on real vLLM."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.projects import write_project

from patchwheel import smoke as module
from patchwheel.errors import ToolError, UsageError
from patchwheel.files import sha256_bytes
from patchwheel.install import Environment
from patchwheel.pipeline import Product, build_recipe
from patchwheel.smoke import smoke
from patchwheel.verify import Status

if TYPE_CHECKING:
    from pathlib import Path

    from patchwheel.project import Project

PROBES = """
series = "s"
[[behavioural]]
name = "ids become taps"
patch = "0001-shift.patch"
call = "taps"
[[behavioural]]
name = "of a patch that this wheel lacks"
patch = "0002-other.patch"
call = "windows"
"""


class Stand:
    """What the environment says, and what it was asked."""

    def __init__(self, product: Product) -> None:
        self.version = product.plan.name.version
        self.imported: dict[str, Any] = {
            "python": "3.11.0",
            "imported": True,
            "error": None,
            "version": self.version,
            "module_version": self.version,
            "extensions": {"loaded": ["_C.abi3.so"], "absent": {}, "broken": {}},
        }
        self.holds = True
        self.overrides: tuple[str, ...] = ()
        self.calls: list[str] = []

    def create(self, wheel: Path, *, overrides: tuple[str, ...], **_rest: Any) -> Environment:
        self.overrides = overrides
        return Environment(folder=wheel.parent, wheel=wheel.name, sha256=sha256_bytes(wheel.read_bytes()))

    def run(self, _environment: Environment, script: Path, arguments: list[str], **_rest: Any) -> Any:
        document: Any = self.imported
        if script.name == "calls.py":
            self.calls = list(arguments)
            document = {"results": [{"call": one, "holds": self.holds, "evidence": "seen"} for one in arguments]}
        return subprocess.CompletedProcess([], 0, json.dumps(document), "")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = write_project(tmp_path / "project")
    recipe = project.recipes / "r.toml"
    recipe.write_text(recipe.read_text() + '[install]\noverrides = ["torch==2.11.0"]\n')
    (project.probes / "s.toml").write_text(PROBES)
    return project


@pytest.fixture
def product(project: Project, tmp_path: Path) -> Product:
    return build_recipe("r", project=project, out=tmp_path / "out")


@pytest.fixture
def stand(product: Product, monkeypatch: pytest.MonkeyPatch) -> Stand:
    stand = Stand(product)
    monkeypatch.setattr(module, "create_environment", stand.create)
    monkeypatch.setattr(module, "run_script", stand.run)
    return stand


def failing(product: Product, project: Project) -> list[str]:
    return [result.check for result in smoke(product.wheel, project=project).failed]


def test_all_holds(stand: Stand, product: Product, project: Project) -> None:
    report = smoke(product.wheel, project=project)
    assert [result.check for result in report.results] == ["import", "version", "native", "behaviour"]
    assert report
    assert stand.overrides == ("torch==2.11.0",)
    assert stand.calls == ["taps"]
    assert report.sha256 == product.sha256


def test_an_import_that_fails(stand: Stand, product: Product, project: Project) -> None:
    stand.imported |= {"imported": False, "error": "ImportError: no torch"}
    report = smoke(product.wheel, project=project)
    assert [result.evidence for result in report.failed] == ["ImportError: no torch"]


def test_another_version(stand: Stand, product: Product, project: Project) -> None:
    stand.imported["version"] = "0.20.2"
    assert failing(product, project) == ["version"]


def test_a_broken_extension(stand: Stand, product: Product, project: Project) -> None:
    stand.imported["extensions"]["broken"] = {"_C.abi3.so": "undefined symbol: x"}
    report = smoke(product.wheel, project=project)
    assert [result.problems for result in report.failed] == [("_C.abi3.so: undefined symbol: x",)]


def test_what_this_machine_lacks_is_told_but_no_fault(stand: Stand, product: Product, project: Project) -> None:
    stand.imported["extensions"]["absent"] = {"_C.abi3.so": "libcuda.so.1: no such file"}
    report = smoke(product.wheel, project=project)
    assert report
    assert "not tried: _C.abi3.so" in report.as_text()


def test_a_patch_that_does_not_act(stand: Stand, product: Product, project: Project) -> None:
    stand.holds = False
    report = smoke(product.wheel, project=project)
    assert [result.problems for result in report.failed] == [("ids become taps: seen",)]


def test_a_series_without_probes_is_said_aloud(stand: Stand, product: Product, project: Project) -> None:
    (project.probes / "s.toml").unlink()
    report = smoke(product.wheel, project=project)
    assert report.results[-1].status is Status.SKIPPED


def test_overrides_come_from_the_recipe_that_is_named(stand: Stand, product: Product, project: Project) -> None:
    product.record.unlink()
    seen = []
    for recipe in (None, "r"):
        smoke(product.wheel, project=project, recipe=recipe)
        seen.append(stand.overrides)
    assert seen == [(), ("torch==2.11.0",)]


def test_an_environment_that_says_nothing(
    stand: Stand, product: Product, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.CompletedProcess([], 139, "", "Segmentation fault")
    monkeypatch.setattr(module, "run_script", lambda *_given, **_rest: dead)
    with pytest.raises(ToolError, match="exit code 139") as caught:
        smoke(product.wheel, project=project)
    assert "Segmentation fault" in (caught.value.details or "")


def test_no_wheel(project: Project, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't open"):
        smoke(tmp_path / "none.whl", project=project)
