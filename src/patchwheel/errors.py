"""What can go wrong, one class per kind of failure, each with its own exit code.

Every message answers four questions: what happened, where, what was expected against what was found, and what to
do next. The answers are separate fields so that ``--json`` can carry them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from patchwheel.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ArchiveError",
    "CheckFailedError",
    "ConfigError",
    "ConflictError",
    "IntegrityError",
    "NetworkError",
    "OutputError",
    "PatchError",
    "PatchwheelError",
    "PinError",
    "StrategyError",
    "ToolError",
    "UsageError",
]


class PatchwheelError(Exception):
    """Base of all errors that patchwheel raises on purpose; anything else is a bug.

    Args:
        what: What happened, as one sentence without a full stop.
        where: File, key, patch, hunk or address at which it happened.
        expected: What should have been there.
        found: What was there instead.
        next_step: What the user can do now.
        details: Further lines for people, such as a conflict report.
        data: The same details for machines, put into the JSON document.
    """

    exit_code: ClassVar[int]
    kind: ClassVar[str]

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        next_step: str | None = None,
        details: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.next_step = next_step
        self.details = details
        self.data = data

    def __str__(self) -> str:
        rows = (
            ("where", self.where),
            ("expected", self.expected),
            ("found", self.found),
            ("next", self.next_step),
        )
        lines = [self.what]
        if self.details:
            lines.append(self.details)
        lines += [f"  {label + ':':<10}{text}" for label, text in rows if text]
        return printable("\n".join(lines))

    def as_document(self) -> dict[str, object]:
        """The error as a JSON-ready document with a ``schema`` field."""
        document: dict[str, object] = {
            "schema": "patchwheel.error/1",
            "kind": self.kind,
            "exit_code": self.exit_code,
            "what": self.what,
            "where": self.where,
            "expected": self.expected,
            "found": self.found,
            "next": self.next_step,
        }
        if self.data:
            document["data"] = dict(self.data)
        return document


class CheckFailedError(PatchwheelError):
    """A check ran to its end and its answer is no."""

    exit_code = 1
    kind = "check"


class UsageError(PatchwheelError):
    """The command was called wrongly: unknown recipe, variant, option or path."""

    exit_code = 2
    kind = "usage"


class ConfigError(PatchwheelError):
    """A recipe, series or lock file can't be read, or says something that it may not say."""

    exit_code = 3
    kind = "config"


class PinError(PatchwheelError):
    """An input is not pinned: no lock entry, a moving reference, or no digest."""

    exit_code = 4
    kind = "pin"


class NetworkError(PatchwheelError):
    """A file could not be had: unreachable, cut off, stalled, or offline and not cached."""

    exit_code = 5
    kind = "network"


class IntegrityError(PatchwheelError):
    """Bytes differ from their pin."""

    exit_code = 6
    kind = "integrity"


class ArchiveError(PatchwheelError):
    """A wheel is not a well-formed wheel, or is built in a way that readers disagree on."""

    exit_code = 7
    kind = "archive"


class PatchError(PatchwheelError):
    """A patch is malformed, unsafe, or does something other than declared."""

    exit_code = 8
    kind = "patch"


class ConflictError(PatchwheelError):
    """A well-formed patch does not apply exactly to this base."""

    exit_code = 9
    kind = "conflict"


class StrategyError(PatchwheelError):
    """The patches can't be built by the strategy that was chosen."""

    exit_code = 10
    kind = "strategy"


class OutputError(PatchwheelError):
    """A result could not be written: no space, no permission, read-only file system."""

    exit_code = 11
    kind = "output"


class ToolError(PatchwheelError):
    """A program that patchwheel needs is missing or failed."""

    exit_code = 12
    kind = "tool"
