"""Results of checks, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from patchwheel.text import printable

__all__ = ["Report", "Result", "Status"]

_SHOWN = 12


class Status(Enum):
    """Outcome of one check. ``SKIPPED`` says aloud that something was not looked at."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Result:
    """One check's answer.

    Attributes:
        check: The check's name.
        evidence: What was seen, in one line, whatever the outcome.
        problems: What is wrong, one line each; a check fails if there are any.
        remedy: What to do about them.
    """

    check: str
    status: Status
    evidence: str
    problems: tuple[str, ...] = ()
    remedy: str | None = None

    def __bool__(self) -> bool:
        return self.status is not Status.FAILED


def judged(check: str, evidence: str, problems: list[str], remedy: str) -> Result:
    """A result that fails if there are problems."""
    status = Status.FAILED if problems else Status.PASSED
    return Result(
        check=check,
        status=status,
        evidence=evidence,
        problems=tuple(problems),
        remedy=remedy if problems else None,
    )


def skipped(check: str, why: str) -> Result:
    """A result of a check that could not be made."""
    return Result(check=check, status=Status.SKIPPED, evidence=why)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results about one wheel; true if none failed. ``sha256`` and ``size`` (bytes) are the wheel file's."""

    wheel: str
    sha256: str
    size: int
    results: tuple[Result, ...]

    def __bool__(self) -> bool:
        return all(self.results)

    @property
    def failed(self) -> tuple[Result, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if not result)

    def as_document(self) -> dict[str, object]:
        """The report as part of a JSON document."""
        return {
            "wheel": self.wheel,
            "sha256": self.sha256,
            "size": self.size,
            "ok": bool(self),
            "checks": [
                {
                    "check": result.check,
                    "status": result.status.value,
                    "evidence": result.evidence,
                    "problems": list(result.problems),
                    "remedy": result.remedy,
                }
                for result in self.results
            ],
        }

    def as_text(self) -> str:
        """The report as a person reads it."""
        marks = {Status.PASSED: "ok", Status.FAILED: "FAIL", Status.SKIPPED: "-"}
        lines = [self.wheel, f"  sha256 {self.sha256}"]
        for result in self.results:
            lines.append(f"  {marks[result.status]:<5}{result.check:<10}{result.evidence}")
            lines += [f"         - {problem}" for problem in result.problems[:_SHOWN]]
            if len(result.problems) > _SHOWN:
                lines.append(f"         - and {len(result.problems) - _SHOWN} more (--json lists all)")
            if result.remedy:
                lines.append(f"         next: {result.remedy}")
        count, failed = len(self.results), len(self.failed)
        lines.append(f"  {failed} of {count} checks failed" if failed else f"  the wheel holds: {self._summary()}")
        return printable("\n".join(lines))

    def _summary(self) -> str:
        passed = sum(result.status is Status.PASSED for result in self.results)
        return f"{passed} checks passed" + (
            f", {len(self.results) - passed} not made" if passed < len(self.results) else ""
        )
