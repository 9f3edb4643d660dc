"""Gates: what is served, what is asked of it, and what must come out. Data, in ``manifests/gates``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from patchwheel.documents import load_toml
from patchwheel.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CONTROL", "RIGHT", "Gate", "Row", "Serve", "find_gate", "load_gate"]

RIGHT = "right"
"""Name of the row that all faults are compared with."""

CONTROL = "no speculation"
"""Name of the row whose text all others must give."""

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(?:[ -][a-z0-9]+)*$", description="lower-case words")]
_Share = Annotated[float, msgspec.Meta(gt=0, lt=1, description="a number between 0 and 1")]
_Length = Annotated[float, msgspec.Meta(ge=1, description="a mean acceptance length, 1 or more")]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A TOML table."""


class Serve(_Table, frozen=True):
    """How the server is started, the same for all rows.

    Attributes:
        flags: Arguments of ``vllm serve``.
        environment: Variables.
    """

    flags: tuple[str, ...] = ()
    environment: dict[str, str] = msgspec.field(default_factory=dict)


class Row(_Table, frozen=True):
    """One server, and what must come out.

    Attributes:
        name: What the row is called.
        says: What is different here, and what that shows.
        drafter: The variant of the drafter that is served; without one the server does not speculate.
        wheel: Which wheel is served: the one under test, or one of the gate's ``wheels``.
        like: The variant that the reference decodes with, if not ``drafter``: what the wheel makes of the drafter.
        repeats: Whether the prompts are asked in every way: one by one, several at once, and both again with the prefix
            cache filled; otherwise several at once, which is quickest.
        strays: The fault has no reference: somewhere the counts must be others than the reference's.
        mean_length_at_least: Floor of the mean acceptance length on long prompts.
        of_right_at_most: Ceiling of that length, as share of the row ``right``.
        rate_at_most: Ceiling of the acceptance rate on long prompts.
    """

    name: _Name
    says: str
    drafter: str | None = None
    wheel: str | None = None
    like: str | None = None
    repeats: bool = False
    strays: bool = False
    mean_length_at_least: _Length | None = None
    of_right_at_most: _Share | None = None
    rate_at_most: _Share | None = None

    @property
    def reference(self) -> str | None:
        """The variant that tells what must come out."""
        return self.like or self.drafter


class Gate(_Table, frozen=True):
    """A table of rows on one pair of models.

    Attributes:
        name: What the gate is called.
        summary: What it proves.
        recipe: The recipe whose wheel it is made for.
        models: The pair of models, among those that patchwheel ships.
        rows: The table; one of them is called ``right``, one ``no speculation``.
        serve: How servers are started.
        wheels: Wheels with something left out, by name: the patches, as ``<series>/<file>``.
    """

    name: _Name
    summary: str
    recipe: str
    models: Literal["canary"]
    rows: tuple[Row, ...]
    serve: Serve = Serve()
    wheels: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def row(self, name: str) -> Row:
        """The row of this name.

        Raises:
            UsageError: There is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise UsageError(
            f"the gate {self.name} has no row {name!r}", expected="one of " + ", ".join(row.name for row in self.rows)
        )


def load_gate(path: Path) -> Gate:
    """Read a gate and check that it fits together.

    Raises:
        ConfigError: It can't be read, or says something that it may not say.
    """
    gate = load_toml(path, Gate)
    names = [row.name for row in gate.rows]
    problem = None
    if len(set(names)) < len(names):
        problem = "two rows have one name"
    elif not {RIGHT, CONTROL} <= set(names):
        problem = f"the rows {RIGHT} and {CONTROL} must be there: the others are compared with them"
    elif unknown := sorted({row.wheel for row in gate.rows if row.wheel} - set(gate.wheels)):
        problem = f"rows name wheels that are not in the table wheels: {', '.join(unknown)}"
    elif gate.row(CONTROL).drafter is not None:
        problem = f"the row {CONTROL} has a drafter"
    elif any(row.repeats for row in gate.rows) and not (gate.row(RIGHT).repeats and gate.row(CONTROL).repeats):
        problem = f"some rows repeat, and so must {RIGHT} and {CONTROL}, which they are compared with"
    if problem:
        raise ConfigError(problem, where=str(path))
    return gate


def find_gate(name: str, folder: Path) -> Gate:
    """The gate of this name among those in a folder.

    Raises:
        UsageError: There is none.
        ConfigError: It can't be read.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = sorted(file.stem for file in folder.glob("*.toml"))
        raise UsageError(f"no gate {name!r}", where=str(folder), expected="one of " + ", ".join(known))
    return load_gate(path)
