"""The canary's table. Each row is a test; what it must show stands in manifests/gates/canary.toml."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.commands import ROOT

from patchwheel.acceptance.gate import find_gate
from patchwheel.acceptance.table import Verdict
from patchwheel.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from patchwheel.acceptance.gate import Gate
    from patchwheel.acceptance.table import Table

ROWS = [row.name for row in find_gate("canary", Project(root=ROOT).gates).rows]


@pytest.mark.parametrize("name", ROWS)
def test_row(table: Table, name: str) -> None:
    outcome = table.outcome(name)
    assert outcome.verdict is Verdict.PASSED, "\n".join(outcome.problems)


def test_the_gate_asks_for_what_the_canary_is_for(gate: Gate) -> None:
    right = gate.row("right")
    assert right.mean_length_at_least is not None
    assert right.mean_length_at_least >= 4
    assert right.repeats
    limits = {row.name: row.of_right_at_most for row in gate.rows}
    assert limits["layer-id patch left out"] == 0.8
    assert limits["sliding-window patches left out"] == limits["config says full attention"] == 0.6
    assert gate.row("field report").rate_at_most == 0.015


def test_the_table_says_which_wheels_it_is_about(table: Table, wheels: dict[str, Path]) -> None:
    assert {name: wheel["file"] for name, wheel in table.wheels.items()} == {
        name: path.name for name, path in wheels.items()
    }
    assert len({wheel["sha256"] for wheel in table.wheels.values()}) == len(wheels)


def test_what_the_server_logs_of_the_drafter(table: Table, tmp_path_factory: pytest.TempPathFactory) -> None:
    (log,) = [path for path in tmp_path_factory.getbasetemp().rglob("right.log") if path.parent.name.startswith("rows")]
    text = log.read_text("utf-8", "replace")
    told = re.search(
        r"DFlash drafter: taps \(([^)]*)\), mask token (\d+), (\d+) draft tokens, attention by layer: (.*)", text
    )
    assert told
    assert told.groups() == (
        "2, 4, 6",
        "255",
        "7",
        "32 causal, 32 causal, 32 causal, 32 causal, full non-causal",
    )
    assert table.outcome("right").measured
