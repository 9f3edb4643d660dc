"""Behavioural probes on real vLLM: each holds on the patched wheel, and fails on the one that was published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.commands import ROOT

import patchwheel.probes
from patchwheel.acceptance.run import UNDER_TEST
from patchwheel.install import run_script
from patchwheel.probes import load_probes
from patchwheel.project import Project
from patchwheel.smoke import smoke

if TYPE_CHECKING:
    from patchwheel.install import Environment

SCRIPT = Path(patchwheel.probes.__file__).parent / "calls.py"
PROBES = load_probes("dflash-swa-support", Project(root=ROOT).probes)
assert PROBES
CALLS = {probe.name: probe.call for probe in PROBES.behavioural}


def called(environment: Environment) -> dict[str, Any]:
    done = run_script(environment, SCRIPT, list(CALLS.values()), variables={"VLLM_LOGGING_LEVEL": "ERROR"})
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    return dict(zip(CALLS, results, strict=True))


@pytest.fixture(scope="session")
def on_patched(patched: Environment) -> dict[str, Any]:
    return called(patched)


@pytest.fixture(scope="session")
def on_unpatched(unpatched: Environment) -> dict[str, Any]:
    return called(unpatched)


@pytest.mark.parametrize("name", CALLS)
def test_it_holds_where_the_patch_is(on_patched: dict[str, Any], name: str) -> None:
    assert on_patched[name]["holds"], on_patched[name]["evidence"]


@pytest.mark.parametrize("name", CALLS)
def test_it_fails_where_the_patch_is_not(on_unpatched: dict[str, Any], name: str) -> None:
    assert not on_unpatched[name]["holds"], on_unpatched[name]["evidence"]


def test_smoke_holds(wheels: dict[str, Path], project: Project) -> None:
    report = smoke(wheels[UNDER_TEST], project=project)
    assert report, report.as_text()
    assert [result.check for result in report.results] == ["import", "version", "native", "behaviour"]


def test_smoke_asks_of_a_wheel_only_what_its_record_claims(wheels: dict[str, Path], project: Project) -> None:
    report = smoke(wheels["no-layer-ids"], project=project)
    assert report, report.as_text()
    (behaviour,) = [result for result in report.results if result.check == "behaviour"]
    assert behaviour.evidence == f"{len(CALLS) - 2} of {len(CALLS) - 2} probes hold"
