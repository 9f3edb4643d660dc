"""What is wrong with patches, collected so that a person sees all of it in one run."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from patchwheel.errors import PatchError

__all__ = ["PROBLEMS_TOLD", "Problem", "Problems", "Refusal"]

PROBLEMS_TOLD = 50
"""Most problems told one by one; a patch made to be refused could have a million."""


class Refusal(Exception):  # noqa: N818  (never leaves this package)
    """One part of a patch can't be read; the rest of it still is."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


@dataclass(frozen=True)
class Problem:
    """One thing that a patch may not be or do.

    Args:
        patch: File name of the patch.
        at: Where in it: ``line 12``, ``field Origin`` or the path of a changed file.
        text: What is wrong there.
    """

    patch: str
    at: str
    text: str

    def __str__(self) -> str:
        return f"{self.patch}, {self.at}: {self.text}"


class Problems:
    """Collects the problems of one patch after the other."""

    def __init__(self, patch: str) -> None:
        self.patch = patch
        self.found: list[Problem] = []

    def add(self, at: str, text: str) -> None:
        """Note a problem and go on."""
        problem = Problem(self.patch, at, text)
        if problem not in self.found[-5:]:  # two lines about one path say the same of it
            self.found.append(problem)

    def add_line(self, number: int, text: str) -> None:
        """Note a problem of a line, counted from 0."""
        self.add(f"line {number + 1}", text)

    def raise_any(
        self,
        next_step: str = "mend the patch, or make it again with git diff --full-index --no-renames",
        where: str | None = None,
    ) -> None:
        """End here if anything was found.

        Raises:
            PatchError: Lists every problem, in ``details`` for people and in ``data`` for machines.
        """
        if not self.found:
            return
        names = sorted({problem.patch for problem in self.found})
        count = len(self.found)
        told = self.found[:PROBLEMS_TOLD]
        lines = [f"  {problem}" for problem in told]
        if count > len(told):
            lines.append(f"  … and {count - len(told)} more")
        raise PatchError(
            f"{count} problem{'s' * (count > 1)} in {', '.join(names)}",
            where=where,
            details="\n".join(lines),
            next_step=next_step,
            data={"problems": [asdict(problem) for problem in told]},
        )
