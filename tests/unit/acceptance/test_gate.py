from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patchwheel.acceptance.counts import Counts
from patchwheel.acceptance.gate import Gate, Row, find_gate, load_gate
from patchwheel.acceptance.table import Outcome, Table, Verdict, judge, not_run
from patchwheel.acceptance.trial import REPEATS, Measured
from patchwheel.errors import ConfigError, UsageError

SHIPPED = Path(__file__).parents[3] / "manifests" / "gates"

GATE = """
name = "small"
summary = "a test"
recipe = "r"
models = "canary"
rows = [
  { name = "no speculation", says = "text" },
  { name = "right", says = "all is well", drafter = "right" },
  { name = "fault", says = "a fault", drafter = "full", wheel = "less" },
]
[wheels]
less = ["s/0001-a.patch"]
"""

RIGHT = Counts(drafts=10, accepted=(10, 9, 8, 3))
FAULT = Counts(drafts=30, accepted=(6, 3, 0, 0))
EXPECTED = {"right": {"long": RIGHT}, "full": {"long": FAULT}}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(text, "utf-8")
    return path


def part(counts: Counts, text: tuple[int, ...] = (1, 2, 3), **changes: Any) -> Measured:
    measured = Measured(prompts="long", phase=REPEATS[0], counts=counts, texts=(text, (4, 5)), cached=0.0, seconds=1.0)
    return replace(measured, **changes)


def judged(row: Row, *measured: Measured) -> Outcome:
    plain = [part(Counts(drafts=0, accepted=()), phase=phase) for phase in REPEATS]
    right = [part(RIGHT, phase=phase, cached=0.5 if phase.warm else 0.0) for phase in REPEATS]
    return judge(row, measured, expected=EXPECTED, right=right, plain=plain)


def row(**fields: Any) -> Row:
    return Row(**({"name": "right", "says": "", "drafter": "right"} | fields))


def test_the_shipped_gates_are_sound() -> None:
    names = [path.stem for path in SHIPPED.glob("*.toml")]
    assert "canary" in names
    for name in names:
        assert find_gate(name, SHIPPED).name == name


def test_a_gate_is_read(tmp_path: Path) -> None:
    gate = load_gate(written(tmp_path, GATE))
    assert gate.row("fault").wheel == "less"
    assert gate.row("fault").reference == "full"
    with pytest.raises(UsageError, match="no row 'other'"):
        gate.row("other")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('name = "fault"', 'name = "right"', "two rows"),
        ('name = "right"', 'name = "left"', "must be there"),
        ('wheel = "less"', 'wheel = "more"', "more"),
        ('says = "text"', 'says = "text", drafter = "right"', "has a drafter"),
        ('name = "fault"', 'name = "Fault!"', "name"),
        ('says = "a fault"', 'says = "a fault", repeats = true', "some rows repeat"),
        ('says = "a fault"', "of-right-at-most = 1.5, says = 'x'", "<= 1.0|< 1.0|float"),
        ('says = "a fault"', "ceiling = 1, says = 'x'", "ceiling"),
    ],
)
def test_a_gate_that_does_not_fit_together(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GATE
    with pytest.raises(ConfigError, match=told):
        load_gate(written(tmp_path, GATE.replace(old, new)))


def test_unknown_gate(tmp_path: Path) -> None:
    written(tmp_path, GATE)
    with pytest.raises(UsageError, match="no gate 'large'") as caught:
        find_gate("large", tmp_path)
    assert caught.value.expected == "one of small"


def test_equal_counts_pass() -> None:
    outcome = judged(row(mean_length_at_least=4.0), part(RIGHT))
    assert outcome.verdict is Verdict.PASSED
    assert outcome.same_text == (2, 2)


def test_one_token_less_fails() -> None:
    outcome = judged(row(), part(replace(RIGHT, accepted=(10, 9, 8, 2))))
    assert outcome.verdict is Verdict.FAILED
    assert "accepted 10 9 8 2; the reference" in outcome.problems[0]


def test_one_draft_more_fails() -> None:
    assert judged(row(), part(replace(RIGHT, drafts=11))).verdict is Verdict.FAILED


def test_every_phase_counts() -> None:
    late = part(replace(RIGHT, drafts=12), phase=REPEATS[3])
    outcome = judged(row(), part(RIGHT), late)
    assert [REPEATS[3].name in problem for problem in outcome.problems] == [True]


def test_other_text_fails_and_says_where() -> None:
    outcome = judged(row(), part(RIGHT, text=(1, 9, 3)))
    assert outcome.same_text == (1, 2)
    assert "prompt 0, token 1 is 9 for 2" in outcome.problems[0]


def test_text_is_compared_with_the_same_phase() -> None:
    both = [part(RIGHT), part(RIGHT, text=(7, 7, 7), phase=REPEATS[2])]
    outcome = judge(row(), both, expected=EXPECTED, right=both, plain=both)
    assert outcome.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"mean_length_at_least": 4.5}, "4.50 or more"),
        ({"of_right_at_most": 0.9}, "100% of the row right"),
        ({"rate_at_most": 0.5}, "50.00% or less"),
    ],
)
def test_limits(limits: dict[str, float], told: str) -> None:
    outcome = judged(row(**limits), part(RIGHT))
    assert told in outcome.problems[0]


def test_a_fault_that_does_not_show_fails_the_gate() -> None:
    outcome = judged(row(name="fault"), part(RIGHT))
    assert "can't see this fault" in outcome.problems[0]


def test_a_fault_may_show_in_the_prefix_cache_alone() -> None:
    warm = part(RIGHT, phase=REPEATS[1], cached=0.25)
    assert judged(row(name="fault"), part(RIGHT), warm).verdict is Verdict.PASSED
    assert judged(row(name="fault"), part(RIGHT), replace(warm, cached=0.5)).verdict is Verdict.FAILED


def test_a_fault_without_a_reference_must_stray_somewhere() -> None:
    late = part(replace(RIGHT, drafts=12), phase=REPEATS[3])
    assert judged(row(name="fault", strays=True), part(RIGHT), late).verdict is Verdict.PASSED
    assert judged(row(name="fault", strays=True), part(RIGHT)).verdict is Verdict.FAILED


def test_like_names_what_the_reference_decodes() -> None:
    assert judged(row(name="fault", like="full", of_right_at_most=0.5), part(FAULT)).verdict is Verdict.PASSED
    assert judged(row(name="fault", like="full"), part(RIGHT)).verdict is Verdict.FAILED


def test_the_table() -> None:
    gate = msgspec.toml.decode(GATE, type=Gate)
    outcomes = (
        judged(Row(name="no speculation", says="text"), part(Counts(drafts=0, accepted=()))),
        judged(gate.row("right"), part(RIGHT)),
        not_run(gate.row("fault"), "needs the wheel less"),
    )
    table = Table(gate=gate, outcomes=outcomes, wheels={"right": {"file": "a.whl", "sha256": "0" * 64}})
    assert table
    text = table.as_text()
    assert "4.00         100%      75.0%   2/2      right" in text
    assert "the gate holds: 2 rows passed, 1 not run" in text
    document = table.as_document()
    assert document["ok"] is True
    assert msgspec.json.decode(msgspec.json.encode(document)) == document
    worse = replace(table, outcomes=(*outcomes[:2], judged(gate.row("fault"), part(RIGHT))))
    assert not worse
    assert "1 of 3 rows failed" in worse.as_text()


def test_counters_never_go_back() -> None:
    assert RIGHT.since(Counts(drafts=4, accepted=(4, 4, 4, 1))) == Counts(drafts=6, accepted=(6, 5, 4, 2))
    assert RIGHT.since(Counts(drafts=0, accepted=())) == RIGHT
    with pytest.raises(ValueError, match="went back"):
        RIGHT.since(replace(RIGHT, drafts=11))


def test_nothing_drafted() -> None:
    nothing = Counts(drafts=0, accepted=(0, 0, 0))
    assert (nothing.mean_length, nothing.rate) == (1, 0)
