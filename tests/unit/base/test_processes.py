"""Several processes on one cache, and processes that are killed."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from support.fileserver import Act, FileServer
from unit.base.test_fetch import pin_of

import patchwheel
from patchwheel.base import Access, IndexSettings, open_base

if TYPE_CHECKING:
    from patchwheel.base import Patience, Store

DATA = random.Random(2).randbytes(300_000)
SHA256 = hashlib.sha256(DATA).hexdigest()

PROGRAM = """
import sys
from pathlib import Path
from patchwheel.base import BasePin, fetch_base
from patchwheel.progress import PlainReporter
url, sha256, size, file = sys.argv[1:]
known = {"project": "vllm", "version": "1.0", "variant": "x86_64-cu13"}
pin = BasePin(**known, file=file, size=int(size), sha256=sha256, url=url)
print(fetch_base(pin, reporter=PlainReporter(sys.stderr)))
"""


def start(server: FileServer, file: str = "x.whl") -> subprocess.Popen[str]:
    """A process that fetches the file into the cache of this test."""
    source = str(Path(patchwheel.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, server.url("/x.whl"), SHA256, str(len(DATA)), file],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_download_is_gone_on_with(server: FileServer, store: Store, patience: Patience) -> None:
    server.files["/x.whl"] = DATA
    server.acts = [Act(stall=200_000)]
    pin = pin_of(file="x.whl", sha256=SHA256, size=len(DATA), url=server.url("/x.whl"))
    entry = store.entry("x.whl", SHA256)
    process = start(server)
    with process:
        deadline = time.monotonic() + 10
        while not (entry.partial.exists() and entry.partial.stat().st_size >= 200_000):
            assert process.poll() is None, process.stderr
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert not entry.path.exists(), "nothing half-done has a good name"
    server.gate.set()
    with open_base(pin, access=Access(settings=IndexSettings(), store=store, patience=patience)) as file:
        assert file.read() == DATA
    assert server.requests("/x.whl")[1].headers["Range"] == "bytes=200000-"


def test_several_processes_fetch_once(server: FileServer, store: Store) -> None:
    server.files["/x.whl"] = DATA
    server.acts = [Act(stall=100_000)]
    processes = [start(server) for _ in range(2)]
    waiting = 0
    for process in processes:
        assert process.stderr is not None
        waiting += "waiting for it" in process.stderr.readline()
    assert waiting == 1, "one fetches, and the other says that it waits"
    server.gate.set()
    for process in processes:
        output, errors = process.communicate(timeout=20)
        assert process.returncode == 0, errors
        assert output.strip() == str(store.entry("x.whl", SHA256).path)
    starts = [seen for seen in server.requests("/x.whl") if "Range" not in seen.headers]
    assert len(starts) == 1
    assert server.sent == len(DATA)


def test_importing_the_stage_is_quick() -> None:
    program = (
        "import sys, patchwheel.base\n"
        "print(sorted({'requests', 'pypi_simple', 'elftools', 'filelock', 'rich'} & sys.modules.keys()))"
    )
    source = str(Path(patchwheel.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    output = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert output.stdout.strip() == "[]"
