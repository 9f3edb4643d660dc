"""Starts a vLLM server, watches it, and is sure to stop it.

There is no limit on how long a server may take to load: a large model on a slow disk is fine. What ends the wait is
that nothing moves, neither its log nor its processor time, or that the process ends.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil
import requests

from patchwheel.errors import ToolError
from patchwheel.install import clean_variables
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Server", "Watch", "serve"]

HOST = "127.0.0.1"
_LINES = 12
_FAULT = re.compile(r"(?:^|[\s.\]])(?!Exception\b)(\w*(?:Error|Exception)): \S")
_PREFIX = re.compile(r"^(?:\(\w+ pid=\d+\) )?(?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^]]*\] ?)?")


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When to give up on a server, in seconds.

    Attributes:
        stall: Without a new line in the log and with less than a hundredth of one core at work for so long, it hangs.
        poll: Between two looks.
        farewell: How long each way of stopping gets before the next, harder one.
        given_up: Set from elsewhere to give up at once on servers that are still starting.
    """

    stall: float = 300.0
    poll: float = 0.25
    farewell: float = 20.0
    given_up: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that answers.

    Attributes:
        url: Where, without a slash at the end.
        model: The name that requests must give.
        log: What it writes.
        seconds: How long it took to get ready.
    """

    url: str
    model: str
    log: Path
    seconds: float


@contextmanager
def serve(
    python: Path,
    model: Path,
    flags: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    reporter: Reporter = SILENT,
) -> Iterator[Server]:
    """Serve a model while the block runs, in a process group of its own.

    Args:
        python: The interpreter of an environment with vLLM.
        model: Folder of the target.
        flags: Further arguments of ``vllm serve``.
        log: File to write the server's output to; its folder is the server's working directory.
        environment: Variables to set beside the present ones.
        watch: When to give up.
        reporter: Is told when the server is ready.

    Raises:
        ToolError: The server can't be started, ended by itself, or hangs. Names the log and shows its decisive lines.
    """
    watch = watch or Watch()
    port = _free_port()
    name = "model"
    command = [str(python.parent / "vllm"), "serve", str(model), "--host", HOST, "--port", str(port)]
    command += ["--served-model-name", name, *flags]
    started = time.monotonic()
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(  # noqa: S603  (its first word is a path, and there is no shell)
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                env=clean_variables(environment or {}),
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(
                f"can't start vllm: {error.strerror}",
                where=command[0],
                next_step="is vLLM installed in this environment?",
            ) from error
    try:
        url = f"http://{HOST}:{port}"
        _wait(process, url, log, watch)
        server = Server(url=url, model=name, log=log, seconds=time.monotonic() - started)
        reporter.say(f"{log.stem}: the server is ready after {server.seconds:.0f} s")
        yield server
    finally:
        _stop(process, watch.farewell)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], url: str, log: Path, watch: Watch) -> None:
    moved, seen = time.monotonic(), (0, 0.0)
    with requests.Session() as session:
        session.trust_env = False  # no proxy on the way to this machine
        while True:
            with suppress(requests.RequestException):
                if session.get(f"{url}/health", timeout=5).ok:
                    return
            if (code := process.poll()) is not None:
                raise ToolError(
                    f"the server ended while it was starting, with exit code {code}",
                    where=str(log),
                    details=_decisive(log),
                    next_step="read the log",
                )
            if watch.given_up.is_set():
                raise ToolError("the server was given up while it was starting", where=str(log))
            now = (log.stat().st_size, _processor_time(process.pid))
            if now[0] != seen[0] or now[1] - seen[1] > watch.stall / 100:
                moved, seen = time.monotonic(), now
            elif time.monotonic() - moved > watch.stall:
                raise ToolError(
                    f"the server hangs: for {watch.stall:.0f} s no line in its log, and no work done",
                    where=str(log),
                    details=_decisive(log),
                    next_step="read the log; py-spy dump tells where a process stands",
                )
            time.sleep(watch.poll)


def _processor_time(pid: int) -> float:
    """Seconds that a process and all below it have computed; those that have ended don't count."""
    total = 0.0
    with suppress(psutil.Error):
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total


def _decisive(log: Path) -> str:
    """The errors that a log names, first ones first since later ones follow from them, and its last lines."""
    lines = [_PREFIX.sub("", line).rstrip() for line in log.read_text("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line.strip()]
    faults = list(dict.fromkeys(line.strip() for line in lines if _FAULT.search(line)))
    told = [f"  | {line}" for line in faults[:_LINES]] or [f"  | {line}" for line in lines[-_LINES:]]
    return "\n".join(told)


def _stop(process: subprocess.Popen[bytes], farewell: float) -> None:
    """End the whole process group, the harder the longer it takes."""
    group = process.pid  # it leads its session
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if number is signal.SIGINT:
            process.send_signal(number)  # the leader takes the others along
        else:
            with suppress(ProcessLookupError):
                os.killpg(group, number)
        deadline = time.monotonic() + farewell
        while time.monotonic() < deadline:
            process.poll()
            if not _alive(group):
                process.wait()
                return
            time.sleep(0.1)
    raise ToolError(f"the server's process group {group} can't be stopped", next_step=f"kill -9 -{group}")


def _alive(group: int) -> bool:
    for process in psutil.process_iter(["pid", "status"]):
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.info["pid"]) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False
