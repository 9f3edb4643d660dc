"""A gate run from end to end, with stand-ins for the server and for the reference's interpreter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from support.commands import patchwheel
from support.fakevllm import install_fake_vllm
from support.projects import write_project
from support.wheels import write_wheel

from patchwheel.acceptance import prove as prove_module
from patchwheel.acceptance.gate import Gate
from patchwheel.acceptance.prove import build_all, prove
from patchwheel.acceptance.run import UNDER_TEST, Served, _Shares, run_gate, run_reference
from patchwheel.acceptance.server import Watch
from patchwheel.acceptance.table import Verdict
from patchwheel.errors import ConfigError, ToolError, UsageError
from patchwheel.install import Environment

if TYPE_CHECKING:
    from pathlib import Path

    from patchwheel.project import Project

# Stands for the reference: one draft for each two tokens, two for each where the drafter is the full one, all of
# them accepted at the first two positions. The fake server counts the same.
REFERENCE = """\
#!/usr/bin/env python3
import json, sys
given = dict(zip(sys.argv[3::2], sys.argv[4::2]))
drafters = [value for name, value in zip(sys.argv[3::2], sys.argv[4::2]) if name == "--drafter"]
prompts = json.load(open(given["--prompts"]))
assert "--target" in given and given["--threads"] == "1"
half = sum(prompts["tokens"] // 2 for _ in prompts["prompts"])
counts = [half * (2 if "full-dflash" in drafter else 1) for drafter in drafters]
print(json.dumps({"drafters": [{"drafts": count, "accepted": [count, count, 0]} for count in counts]}))
"""

GATE = """
name = "small"
summary = "a test"
recipe = "r"
models = "canary"
rows = [
  { name = "no speculation", says = "text", repeats = true },
  { name = "right", says = "all is well", drafter = "right", repeats = true },
  { name = "full", says = "a fault", drafter = "full" },
  { name = "less", says = "left out", drafter = "right", wheel = "less" },
]
[wheels]
less = ["s/0001-shift.patch"]
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    python = install_fake_vllm(tmp_path / "env")
    python.write_text(REFERENCE, "utf-8")
    python.chmod(0o755)
    return python


def served(python: Path) -> Served:
    return Served(file="a.whl", sha256="0" * 64, python=python)


def gate(text: str = GATE) -> Gate:
    return msgspec.toml.decode(text, type=Gate)


def test_rows_are_served_and_held_to_the_reference(python: Path, tmp_path: Path) -> None:
    table = run_gate(gate(), {UNDER_TEST: served(python)}, folder=tmp_path)
    assert {outcome.row.name: outcome.verdict for outcome in table.outcomes} == {
        "no speculation": Verdict.PASSED,
        "right": Verdict.PASSED,
        "full": Verdict.PASSED,
        "less": Verdict.NOT_RUN,
    }
    assert table
    right, full = table.outcome("right"), table.outcome("full")
    assert len(right.measured) == 2 * 4
    assert len(full.measured) == 2
    assert full.first()
    assert sorted(path.name for path in tmp_path.glob("*.log")) == ["full.log", "no-speculation.log", "right.log"]
    assert "needs the wheel less" in table.as_text()


def test_a_control_that_does_not_differ_fails(python: Path, tmp_path: Path) -> None:
    table = run_gate(gate(), {UNDER_TEST: served(python), "less": served(python)}, folder=tmp_path)
    assert not table
    assert table.outcome("less").problems == ("all is as in the row right: the gate can't see this fault",)


def test_a_server_that_fails_makes_its_row_fail(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "crash")
    table = run_gate(gate(), {UNDER_TEST: served(python)}, folder=tmp_path)
    assert {outcome.verdict for outcome in table.outcomes} == {Verdict.FAILED, Verdict.NOT_RUN}
    assert "no window is set" in table.outcome("right").problems[0]


def test_a_reference_that_fails(python: Path, tmp_path: Path) -> None:
    python.write_text("#!/bin/sh\necho no torch >&2; exit 2\n", "utf-8")
    with pytest.raises(ToolError, match="the reference failed") as caught:
        run_gate(gate(), {UNDER_TEST: served(python)}, folder=tmp_path)
    assert caught.value.details == "no torch"


def test_each_drafter_gets_its_own_counts(python: Path, tmp_path: Path) -> None:
    names = ["a", "full", "b", "c"]
    found = run_reference(python, {name: tmp_path / f"{name}-dflash" for name in names}, folder=tmp_path)
    assert list(found) == names
    half, whole = found["a"]["long"].drafts, found["full"]["long"].drafts
    assert [found[name]["long"].drafts for name in names] == [half, whole, half, half]
    assert whole == 2 * half


def test_drafters_that_there_are_not(python: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="drafters that there aren't: fool"):
        run_gate(
            gate(GATE.replace('drafter = "full"', 'drafter = "fool"')), {UNDER_TEST: served(python)}, folder=tmp_path
        )


def test_an_interruption_ends_servers_that_start(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "hang")

    def interrupted(_futures: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("patchwheel.acceptance.run.as_completed", interrupted)
    watch = Watch(farewell=1)
    with pytest.raises(KeyboardInterrupt):
        run_gate(gate(), {UNDER_TEST: served(python)}, folder=tmp_path, watch=watch)
    assert watch.given_up.is_set()


def test_processors_are_shared_out() -> None:
    shares = _Shares(10_000)
    with shares.take() as one:
        assert len(one) == 1
    whole = _Shares(1)
    with whole.take() as all_of_them:
        assert len(all_of_them) >= 1


def written(root: Path) -> Project:
    project = write_project(root)
    project.gates.mkdir()
    (project.gates / "small.toml").write_text(GATE)
    return project


def test_wheels_are_built_installed_and_proven(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def create(wheel: Path, *, overrides: object, **_rest: object) -> Environment:
        asked.append((wheel.name, overrides))
        return Environment(folder=python.parent.parent, wheel=wheel.name, sha256="0" * 64)

    monkeypatch.setattr(prove_module, "create_environment", create)
    project = written(tmp_path / "project")
    wheel = write_wheel(tmp_path)
    table = prove({UNDER_TEST: wheel}, gate="small", project=project, folder=tmp_path)
    assert table
    assert table.wheels[UNDER_TEST]["file"] == wheel.name
    assert asked == [(wheel.name, ())]
    with pytest.raises(UsageError, match="no control other"):
        prove({UNDER_TEST: wheel, "other": wheel}, gate="small", project=project, folder=tmp_path)


def test_what_cannot_be_built_without_a_patch_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="every patch is left out"):
        build_all("small", project=written(tmp_path / "project"), out=tmp_path / "out")


def test_the_command_refuses_what_does_not_fit(tmp_path: Path) -> None:
    project = written(tmp_path / "project")
    for arguments, told in {
        ("--gate", "large"): "no gate 'large'",
        ("--control", "less=x.whl"): "belongs to a WHEEL",
        ("x.whl", "--control", "less"): "NAME=WHEEL",
        ("x.whl", "--control", "a=1", "--control", "a=2"): "each name once",
        ("x.whl", "--control", "right=y.whl"): "each name once",
    }.items():
        temporary = tmp_path / "temporary"
        temporary.mkdir(exist_ok=True)
        done = patchwheel(
            "accept", *arguments, "--project", str(project.root), "--json", env={"TMPDIR": str(temporary)}
        )
        assert done.code == 2
        assert told in json.loads(done.stdout)["what"]
        assert not list(temporary.iterdir())
