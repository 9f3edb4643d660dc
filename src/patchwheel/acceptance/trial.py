"""One row measured: prompts sent to a server, and what was accepted meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchwheel.acceptance.client import Text, complete, forget_prefixes, read_counters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchwheel.acceptance.counts import Counts
    from patchwheel.acceptance.server import Server

__all__ = ["AT_ONCE", "REPEATS", "Measured", "Phase", "measure"]

MANY = 8
"""Requests at once, where several are asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A way of asking.

    Attributes:
        name: What it is called.
        concurrency: Requests under way at once.
        warm: Whether the same prompts have been asked before, so that the prefix cache has them.
    """

    name: str
    concurrency: int
    warm: bool


AT_ONCE = Phase(name=f"{MANY} at once", concurrency=MANY, warm=False)
"""The quickest; all that a row without repeats needs."""

REPEATS = (
    Phase(name="one by one", concurrency=1, warm=False),
    Phase(name="one by one, repeated", concurrency=1, warm=True),
    AT_ONCE,
    Phase(name=f"{MANY} at once, repeated", concurrency=MANY, warm=True),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What came of one set of prompts in one phase.

    Attributes:
        prompts: Name of the set.
        phase: How it was asked.
        counts: Drafts and accepted ones.
        texts: The completions, in the order of the prompts.
        cached: Share of the prompts' tokens that came from the prefix cache, 0 to 1.
        seconds: How long it took.
    """

    prompts: str
    phase: Phase
    counts: Counts
    texts: tuple[Text, ...]
    cached: float
    seconds: float


def measure(
    server: Server, sets: Mapping[str, Sequence[Text]], *, tokens: Mapping[str, int], repeats: bool
) -> list[Measured]:
    """Send all sets of prompts in all phases.

    Args:
        server: Whom to ask.
        sets: Prompts by name of the set.
        tokens: For each set, how many tokens to generate.
        repeats: All phases, or `AT_ONCE` alone.

    Raises:
        ToolError: The server failed.
    """
    results = []
    for name, prompts in sets.items():
        for phase in REPEATS if repeats else (AT_ONCE,):
            if not phase.warm:
                forget_prefixes(server)
            before, started = read_counters(server), time.monotonic()
            texts = complete(server, prompts, tokens=tokens[name], concurrency=phase.concurrency)
            seconds = time.monotonic() - started
            after = read_counters(server)
            asked = after.asked - before.asked
            results.append(
                Measured(
                    prompts=name,
                    phase=phase,
                    counts=after.counts.since(before.counts),
                    texts=tuple(texts),
                    cached=(after.cached - before.cached) / asked if asked else 0.0,
                    seconds=seconds,
                )
            )
    return results
