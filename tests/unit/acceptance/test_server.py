from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest
from support.fakevllm import install_fake_vllm

from patchwheel.acceptance.client import complete, forget_prefixes, read_counters
from patchwheel.acceptance.counts import Counts
from patchwheel.acceptance.server import Watch, serve
from patchwheel.acceptance.trial import measure
from patchwheel.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

SPECULATION = ["--speculative-config", '{"method": "dflash"}']


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return install_fake_vllm(tmp_path / "env")


def running(log: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        with suppress(psutil.Error):
            if process.info["cwd"] == str(log.parent) and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
    return [process for process in found if process.pid != os.getpid()]


def test_serves_and_stops(python: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "right.log"
    log.parent.mkdir()
    with serve(python, tmp_path, SPECULATION, log=log) as server:
        assert complete(server, [(1, 2), (7,)], tokens=3, concurrency=2) == [(3, 4, 5), (8, 9, 10)]
        assert running(log)
    assert not running(log)
    assert "starting" in log.read_text("utf-8")


def test_counters_are_read_by_position(python: Path, tmp_path: Path) -> None:
    with serve(python, tmp_path, SPECULATION, log=tmp_path / "log") as server:
        before = read_counters(server)
        complete(server, [(1, 2)], tokens=8, concurrency=1)
        counts = read_counters(server).counts.since(before.counts)
    assert counts == Counts(drafts=4, accepted=(4, 4, 0))
    assert counts.mean_length == 3
    assert counts.rate == pytest.approx(2 / 3)


def test_a_server_without_speculation_has_no_positions(python: Path, tmp_path: Path) -> None:
    with serve(python, tmp_path, [], log=tmp_path / "log") as server:
        assert read_counters(server).counts == Counts(drafts=0, accepted=())


def test_phases(python: Path, tmp_path: Path) -> None:
    prompts = [(1, 2, 3, 4), (5, 6, 7, 8)] * 4
    with serve(python, tmp_path, SPECULATION, log=tmp_path / "log") as server:
        results = measure(server, {"long": prompts[:2]}, tokens={"long": 4}, repeats=True)
        once = measure(server, {"long": prompts[:2]}, tokens={"long": 4}, repeats=False)
    assert [(part.phase.concurrency, part.phase.warm) for part in results] == [
        (1, False),
        (1, True),
        (8, False),
        (8, True),
    ]
    assert [part.cached for part in results] == [0, 0.5, 0, 0.5]
    assert {part.counts for part in results} == {Counts(drafts=4, accepted=(4, 4, 0))}
    assert [(part.phase.concurrency, part.phase.warm) for part in once] == [(8, False)]
    assert once[0].cached == 0


def test_prefixes_are_forgotten(python: Path, tmp_path: Path) -> None:
    with serve(python, tmp_path, [], log=tmp_path / "log") as server:
        for _ in range(2):
            complete(server, [(1, 2)], tokens=2, concurrency=1)
            forget_prefixes(server)
        assert read_counters(server).cached == 0


def test_a_crash_shows_the_decisive_lines(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "crash")
    with pytest.raises(ToolError) as caught, serve(python, tmp_path, [], log=tmp_path / "log"):
        pass
    assert "exit code 3" in caught.value.what
    assert caught.value.details == "  | ValueError: no window is set\n  | RuntimeError: the engine failed"
    assert caught.value.where == str(tmp_path / "log")


def test_a_server_that_hangs_is_given_up(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "hang")
    watch = Watch(stall=1, poll=0.05)
    with pytest.raises(ToolError, match="hangs"), serve(python, tmp_path, [], log=tmp_path / "log", watch=watch):
        pass
    assert not [process for process in running(tmp_path / "log") if "vllm" in " ".join(process.cmdline())]


def test_a_server_can_be_given_up_from_elsewhere(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "hang")
    watch = Watch()
    watch.given_up.set()
    with pytest.raises(ToolError, match="given up"), serve(python, tmp_path, [], log=tmp_path / "log", watch=watch):
        pass


@pytest.mark.parametrize("mood", ["stubborn", "child"])
def test_whatever_ignores_a_polite_stop_is_killed(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mood: str
) -> None:
    monkeypatch.setenv("FAKE_VLLM", mood)
    log = tmp_path / "logs" / "log"
    log.parent.mkdir()
    with serve(python, tmp_path, [], log=log, watch=Watch(farewell=1)):
        started = time.monotonic()
        if mood == "child":
            assert re.search(r"child \d+", log.read_text("utf-8"))
    assert not running(log)
    assert time.monotonic() - started < 30


def test_the_server_stops_when_the_block_fails(python: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "log"
    log.parent.mkdir()
    with pytest.raises(KeyboardInterrupt), serve(python, tmp_path, [], log=log):
        raise KeyboardInterrupt
    assert not running(log)


@pytest.mark.parametrize(("mood", "told"), [("refuse", "500"), ("short", "not what was asked")])
def test_bad_answers(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mood: str, told: str) -> None:
    monkeypatch.setenv("FAKE_VLLM", mood)
    with serve(python, tmp_path, [], log=tmp_path / "log") as server, pytest.raises(ToolError, match=told):
        complete(server, [(1, 2)], tokens=2, concurrency=1)


def test_an_environment_without_vllm(tmp_path: Path) -> None:
    with (
        pytest.raises(ToolError, match="can't start vllm"),
        serve(tmp_path / "bin" / "python", tmp_path, [], log=tmp_path / "log"),
    ):
        pass
