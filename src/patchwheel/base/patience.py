"""How long to wait for a server, and when to try again. Knows nothing of HTTP."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from patchwheel.errors import NetworkError
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Patience", "TransientError", "persist"]

Result = TypeVar("Result")


class TransientError(Exception):
    """A failure that may be gone at the next try; never leaves this stage.

    Args:
        reason: What happened, without credentials.
        wait: Seconds the server asked to wait, if it did.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Limits on waiting. None of them is on the whole: a slow transfer that moves is let go on.

    Attributes:
        connect: Seconds to wait for a connection.
        stall: Seconds without a byte after which a connection counts as dead.
        tries: Failures in a row, without a new byte between them, before giving up.
        failures: Failures in all before giving up; bounds a server that cuts every connection after a few
            bytes.
        first_pause: Seconds before the second try; doubled for each further one.
        longest_pause: Seconds that no pause exceeds, whatever the server asks for.
    """

    connect: float = 30.0
    stall: float = 60.0
    tries: int = 6
    failures: int = 200
    first_pause: float = 1.0
    longest_pause: float = 60.0

    @property
    def timeout(self) -> tuple[float, float]:
        """The limits as requests takes them."""
        return self.connect, self.stall

    def pause(self, failure: int, wait: float | None = None) -> float:
        """Seconds to wait after the ``failure``-th failure in a row, at random so that clients spread out."""
        backoff = self.first_pause * 2.0 ** min(failure - 1, 16)
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  (not a secret)
        return min(max(backoff * jitter, wait or 0.0), self.longest_pause)


def persist(
    attempt: Callable[[], Result],
    *,
    patience: Patience,
    where: str,
    next_step: str = "check the connection and the server, and run the same command again",
    progress: Callable[[], int] = lambda: 0,
    reporter: Reporter = SILENT,
) -> Result:
    """Call ``attempt`` until it gives a result or an error that another try won't cure.

    Args:
        attempt: Raises `TransientError` for what is worth another try.
        patience: When to give up.
        where: What errors call the place.
        next_step: What to do when it fails for good.
        progress: A number that grows when a failed attempt still achieved something; then failures count
            anew.
        reporter: Is told of each failure.

    Raises:
        NetworkError: ``attempt`` failed too often.
    """
    row = total = 0
    best = progress()
    while True:
        try:
            return attempt()
        except TransientError as error:
            if (reached := progress()) > best:
                best, row = reached, 0
            row, total = row + 1, total + 1
            if row >= patience.tries or total >= patience.failures:
                count = total if row < patience.tries else row
                raise NetworkError(
                    f"gave up after {count} failures, the last one: {error}", where=where, next_step=next_step
                ) from error
            pause = patience.pause(row, error.wait)
            reporter.say(f"{error}: trying again in {pause:.1f} s")
        time.sleep(pause)
