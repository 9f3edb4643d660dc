"""The table of a gate: what was measured, what had to come out, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from patchwheel.acceptance.gate import RIGHT
from patchwheel.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchwheel.acceptance.client import Text
    from patchwheel.acceptance.counts import Counts
    from patchwheel.acceptance.gate import Gate, Row
    from patchwheel.acceptance.trial import Measured

    _Pair = tuple[str, int, Text, Text]

__all__ = ["LONG", "Expected", "Outcome", "Table", "Verdict", "failed_row", "judge", "not_run"]

Expected = dict[str, dict[str, "Counts"]]
"""Counts of the reference: variant of the drafter, then set of prompts."""

LONG = "long"
"""The set of prompts that floors and ceilings are about."""


class Verdict(Enum):
    """What became of a row."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A row and what came of it.

    Attributes:
        row: The row.
        verdict: Passed, failed, or not run.
        measured: What was measured, by set of prompts and phase.
        expected: What the reference counts, by set of prompts.
        same_text: Of all completions, how many are those of the row without speculation, and how many there are.
        problems: What is wrong, one line each, or why the row was not run.
    """

    row: Row
    verdict: Verdict
    measured: tuple[Measured, ...] = ()
    expected: Mapping[str, Counts] | None = None
    same_text: tuple[int, int] | None = None
    problems: tuple[str, ...] = ()

    def first(self, prompts: str = LONG) -> Measured | None:
        """What was measured on a set of prompts when it was first asked."""
        return _first(self.measured, prompts)

    def as_document(self) -> dict[str, object]:
        """The outcome as part of a JSON document."""
        return {
            "row": self.row.name,
            "says": self.row.says,
            "drafter": self.row.drafter,
            "wheel": self.row.wheel,
            "verdict": self.verdict.value,
            "measured": [
                {
                    "prompts": measured.prompts,
                    "phase": measured.phase.name,
                    "concurrency": measured.phase.concurrency,
                    "cached": round(measured.cached, 4),
                    "seconds": round(measured.seconds, 2),
                    **measured.counts.as_document(),
                }
                for measured in self.measured
            ],
            "reference": {name: counts.as_document() for name, counts in (self.expected or {}).items()},
            "same_text": list(self.same_text) if self.same_text else None,
            "problems": list(self.problems),
        }


@dataclass(frozen=True, kw_only=True)
class Table:
    """All outcomes; true if none failed.

    Attributes:
        gate: The gate.
        outcomes: One for each of its rows.
        wheels: The wheels that were served, by name (``right`` for the one under test), with file name and sha256.
    """

    gate: Gate
    outcomes: tuple[Outcome, ...]
    wheels: Mapping[str, Mapping[str, str]]

    def __bool__(self) -> bool:
        return not any(outcome.verdict is Verdict.FAILED for outcome in self.outcomes)

    def outcome(self, name: str) -> Outcome:
        """The outcome of the row of this name."""
        return next(outcome for outcome in self.outcomes if outcome.row.name == name)

    def as_document(self) -> dict[str, object]:
        """The table as a JSON-ready document."""
        return {
            "schema": "patchwheel.accept/1",
            "gate": self.gate.name,
            "summary": self.gate.summary,
            "wheels": {name: dict(wheel) for name, wheel in self.wheels.items()},
            "ok": bool(self),
            "rows": [outcome.as_document() for outcome in self.outcomes],
        }

    def as_text(self) -> str:
        """The table as a person reads it."""
        right = self.outcome(RIGHT).first()
        lines = [f"{wheel['file']}\n  sha256 {wheel['sha256']}" for wheel in self.wheels.values()]
        lines.append(f"  {'':<5}{'mean length':<13}{'of right':<10}{'rate':<8}{'text':<9}row")
        marks = {Verdict.PASSED: "ok", Verdict.FAILED: "FAIL", Verdict.NOT_RUN: "-"}
        for outcome in self.outcomes:
            cells = ("",) * 4
            if first := outcome.first():
                same = f"{outcome.same_text[0]}/{outcome.same_text[1]}" if outcome.same_text else ""
                if outcome.row.drafter is None:
                    cells = ("", "", "", same)
                else:
                    share = first.counts.mean_length / right.counts.mean_length if right else None
                    cells = (
                        f"{first.counts.mean_length:.2f}",
                        f"{share:.0%}" if share is not None else "",
                        f"{first.counts.rate:.1%}",
                        same,
                    )
            lines.append(
                f"  {marks[outcome.verdict]:<5}{cells[0]:<13}{cells[1]:<10}{cells[2]:<8}{cells[3]:<9}{outcome.row.name}"
            )
            lines += [f"         - {problem}" for problem in outcome.problems]
        failed = sum(outcome.verdict is Verdict.FAILED for outcome in self.outcomes)
        left = sum(outcome.verdict is Verdict.NOT_RUN for outcome in self.outcomes)
        count = len(self.outcomes)
        verdict = f"{failed} of {count} rows failed" if failed else f"the gate holds: {count - left} rows passed"
        lines.append(f"  {verdict}" + (f", {left} not run" if left else ""))
        return printable("\n".join(lines))


def judge(
    row: Row,
    measured: Sequence[Measured],
    *,
    expected: Expected,
    right: Sequence[Measured],
    plain: Sequence[Measured],
) -> Outcome:
    """Compare what was measured with what had to come out.

    Args:
        row: The row.
        measured: What was measured for it.
        expected: What the reference counts, for each variant.
        right: What was measured for the row ``right``.
        plain: What was measured for the row without speculation.
    """
    problems: list[str] = []
    reference = None
    if row.reference is not None:
        reference = expected[row.reference]
        if not row.strays:
            problems += _counted(row, measured, reference)
        problems += _bounds(row, measured, right)
        if row.name != RIGHT:
            problems += _telling(measured, right)
    pairs = _pairs(measured, plain)
    same, count = sum(text == other for _place, _number, text, other in pairs), len(pairs)
    if same < count:
        problems.append(
            f"{count - same} of {count} completions differ from those without speculation, first "
            f"{_first_difference(pairs)}"
        )
    return Outcome(
        row=row,
        verdict=Verdict.FAILED if problems else Verdict.PASSED,
        measured=tuple(measured),
        expected=reference,
        same_text=(same, count),
        problems=tuple(problems),
    )


def _counted(row: Row, measured: Sequence[Measured], reference: Mapping[str, Counts]) -> list[str]:
    return [
        f"{part.prompts} prompts, {part.phase.name}: {part.counts}; the reference with the drafter {row.reference} "
        f"has {reference[part.prompts]}"
        for part in measured
        if part.counts != reference[part.prompts]
    ]


def _telling(measured: Sequence[Measured], right: Sequence[Measured]) -> list[str]:
    """A fault must show, in counts or in what the prefix cache gave: otherwise the gate can't see what it guards."""
    best = {(part.prompts, part.phase.name): (part.counts, round(part.cached, 3)) for part in right}
    if any((part.counts, round(part.cached, 3)) != best[part.prompts, part.phase.name] for part in measured):
        return []
    return ["all is as in the row right: the gate can't see this fault"]


def _bounds(row: Row, measured: Sequence[Measured], right: Sequence[Measured]) -> list[str]:
    first, best = _first(measured, LONG), _first(right, LONG)
    if first is None:
        return []
    problems = []
    counts, length = first.counts, first.counts.mean_length
    if row.mean_length_at_least is not None and length < row.mean_length_at_least:
        problems.append(f"mean length {length:.2f}, and it must be {row.mean_length_at_least:.2f} or more")
    if row.of_right_at_most is not None and best is not None:
        share = length / best.counts.mean_length
        if share > row.of_right_at_most:
            problems.append(
                f"mean length {length:.2f} is {share:.0%} of the row right, and it must be {row.of_right_at_most:.0%} "
                "or less"
            )
    if row.rate_at_most is not None and counts.rate > row.rate_at_most:
        problems.append(f"acceptance rate {counts.rate:.2%}, and it must be {row.rate_at_most:.2%} or less")
    return problems


def _first(measured: Sequence[Measured], prompts: str) -> Measured | None:
    return next((part for part in measured if part.prompts == prompts), None)


def _pairs(measured: Sequence[Measured], plain: Sequence[Measured]) -> list[_Pair]:
    """Completions beside those without speculation in the same phase: place, number of the prompt, both texts."""
    others = {(part.prompts, part.phase.name): part for part in plain}
    return [
        (f"{part.prompts} prompts, {part.phase.name}", number, text, other)
        for part in measured
        for number, (text, other) in enumerate(
            zip(part.texts, others[part.prompts, part.phase.name].texts, strict=True)
        )
    ]


def _first_difference(pairs: Sequence[_Pair]) -> str:
    for place, number, text, other in pairs:
        for at, (token, wanted) in enumerate(zip(text, other, strict=True)):
            if token != wanted:
                return f"{place}: prompt {number}, token {at} is {token} for {wanted}"
    return ""


def not_run(row: Row, why: str) -> Outcome:
    """The outcome of a row that could not be run."""
    return Outcome(row=row, verdict=Verdict.NOT_RUN, problems=(why,))


def failed_row(row: Row, problem: str) -> Outcome:
    """The outcome of a row whose server failed."""
    return Outcome(row=row, verdict=Verdict.FAILED, problems=(problem,))
