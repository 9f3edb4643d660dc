from __future__ import annotations

import io

import pytest

from patchwheel.progress import SILENT, PlainReporter, TerminalReporter, format_size, reporter_for


def test_plain_lines_tell_amount_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    with PlainReporter(stream, heartbeat=1).transfer("base.whl", 400_000_000, 100_000_000) as advance:
        advance(100_000_000)
        advance(200_000_000)
    first, *middle, last = stream.getvalue().splitlines()
    assert first == "base.whl: 100.0 MB of 400.0 MB"
    assert all("MB/s" in line for line in middle)
    assert "s left" in middle[0]
    assert last.startswith("base.whl: 400.0 MB of 400.0 MB")
    assert last.endswith(", done")


def test_plain_lines_come_at_a_calm_pace() -> None:
    stream = io.StringIO()
    with PlainReporter(stream).transfer("base.whl", 1000) as advance:
        for _ in range(1000):
            advance(1)
    assert len(stream.getvalue().splitlines()) == 2


def test_a_terminal_gets_a_bar() -> None:
    stream = io.StringIO()
    reporter = TerminalReporter(stream)
    with reporter.transfer("base.whl", 2_000_000) as advance:
        reporter.say("[cut off]: trying again")
        advance(2_000_000)
    assert "base.whl" in stream.getvalue()
    assert "[cut off]: trying again\n" in stream.getvalue()
    assert "2.0/2.0 MB" in stream.getvalue()


def test_the_stream_decides() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert type(reporter_for(io.StringIO())) is PlainReporter
    assert type(reporter_for(Terminal())) is TerminalReporter


def test_steps_and_silence() -> None:
    stream = io.StringIO()
    with PlainReporter(stream).step("built the wheel"):
        pass
    assert stream.getvalue().startswith("built the wheel (0.")
    with SILENT.step("x"), SILENT.transfer("y", None) as advance:
        advance(3)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (244_425_988, "244.4 MB"),
        (5.5e9, "5.5 GB"),
        (2e13, "20000.0 GB"),
    ],
)
def test_sizes(count: float, text: str) -> None:
    assert format_size(count) == text
