"""What a person sees while long work runs.

Stages take a `Reporter` and tell it what they do; how that looks is decided here alone. A terminal gets a moving
bar, anything else plain lines at a calm pace, so that a log stays readable and a CI runner sees a sign of life.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from patchwheel.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

__all__ = ["SILENT", "PlainReporter", "Reporter", "TerminalReporter", "format_size", "reporter_for"]

HEARTBEAT = 10.0
"""Seconds between two plain lines about the same transfer."""


class Reporter:
    """Tells nobody; the base of those that do, and the default of every public function."""

    def say(self, message: str) -> None:
        """Tell one fact."""

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Tell that a step begins, and on success how long it took."""
        started = time.monotonic()
        yield
        self.say(f"{title} ({time.monotonic() - started:.2f} s)")

    @contextmanager
    def transfer(self, label: str, total: int | None, done: int = 0) -> Iterator[Callable[[int], None]]:
        """Follow a transfer of ``total`` bytes of which ``done`` are already here.

        Yields a function to call with the number of bytes that have just arrived.
        """
        del label, total, done
        yield lambda _count: None


SILENT = Reporter()


class PlainReporter(Reporter):
    """Plain lines, for logs and pipes."""

    def __init__(self, stream: IO[str], heartbeat: float = HEARTBEAT) -> None:
        self._stream = stream
        self._heartbeat = heartbeat

    def say(self, message: str) -> None:
        """Write one line."""
        print(printable(message), file=self._stream, flush=True)

    @contextmanager
    def transfer(self, label: str, total: int | None, done: int = 0) -> Iterator[Callable[[int], None]]:
        """Write a line at the start, one every heartbeat, and one at the end."""
        meter = _Meter(total, done)
        last = meter.started
        self.say(f"{label}: {meter.describe()}")

        def advance(count: int) -> None:
            nonlocal last
            meter.done += count
            if (now := time.monotonic()) - last >= self._heartbeat:
                last = now
                self.say(f"{label}: {meter.describe()}")

        yield advance
        self.say(f"{label}: {meter.describe()}, done")


class TerminalReporter(PlainReporter):
    """A moving bar with rate and time left, for a terminal."""

    _bar: Progress | None = None

    def say(self, message: str) -> None:
        """Write one line, above the bar if there is one."""
        if self._bar is None:
            super().say(message)
        else:
            self._bar.console.print(printable(message), markup=False, highlight=False)

    @contextmanager
    def transfer(self, label: str, total: int | None, done: int = 0) -> Iterator[Callable[[int], None]]:
        """Draw a bar until the transfer ends."""
        from rich.console import Console  # noqa: PLC0415  (slow to import, and only needed with a terminal)
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self.say(label)  # on a line of its own: names of wheels are long, terminals narrow
        columns = (
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(file=self._stream)) as bar:
            self._bar = bar
            task = bar.add_task("", total=total, completed=done)
            try:
                yield lambda count: bar.advance(task, count)
            finally:
                self._bar = None


class _Meter:
    """Rate and time left of one transfer."""

    def __init__(self, total: int | None, done: int) -> None:
        self.total = total
        self.done = done
        self._at_start = done
        self.started = time.monotonic()

    def describe(self) -> str:
        """For example ``81.0 of 244.4 MB, 40.1 MB/s, 4 s left``."""
        if self.total is None:
            text = format_size(self.done)
        else:
            text = f"{format_size(self.done)} of {format_size(self.total)}"
        elapsed = time.monotonic() - self.started
        moved = self.done - self._at_start
        if moved <= 0 or elapsed <= 0:
            return text
        rate = moved / elapsed
        text += f", {format_size(rate)}/s"
        if self.total is not None and self.done < self.total:
            text += f", {(self.total - self.done) / rate:.0f} s left"
        return text


def format_size(count: float) -> str:
    """Bytes as people read them, in powers of 1000: ``244.4 MB``."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:  # noqa: PLR2004
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def reporter_for(stream: IO[str] | None = None) -> Reporter:
    """The reporter that fits a stream, by default standard error."""
    stream = sys.stderr if stream is None else stream
    return TerminalReporter(stream) if stream.isatty() else PlainReporter(stream)
