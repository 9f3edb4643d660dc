"""A stand-in for ``vllm serve``: speaks as much of its HTTP as the harness needs, and misbehaves on demand.

Each completion continues the prompt by counting up. Speculation, if asked for, drafts once for each two tokens, twice
if the drafter is the one that is full, and has two of its tokens accepted. How to misbehave comes from the variable
``FAKE_VLLM``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["install_fake_vllm"]

_SCRIPT = r'''
import json, os, signal, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

flags = dict(zip(sys.argv[3::2], sys.argv[4::2]))
mood = os.environ.get("FAKE_VLLM", "")
print("starting", sys.argv[1:], flush=True)
if mood == "crash":
    print("(Worker pid=1) ERROR 12-01 10:00:00 [core.py:1] ValueError: no window is set", flush=True)
    print("RuntimeError: the engine failed", flush=True)
    sys.exit(3)
if mood == "hang":
    time.sleep(600)
if mood == "stubborn":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
if mood == "child":
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    print("child", subprocess.Popen([sys.executable, "-c", code]).pid, flush=True)

lock, seen = Lock(), set()
speculation = json.loads(flags.get("--speculative-config", "null"))
counters = {"drafts": 0, "asked": 0, "cached": 0, "under way": 0, "most": 0}

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, body, code=200):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        if self.path == "/health":
            return self.answer(b"")
        text = f"""
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total {counters["asked"]}.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total {counters["cached"]}.0
"""
        if speculation:
            text += f"""
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{{engine="0"}} {counters["drafts"]}.0
vllm:spec_decode_num_drafts_created{{engine="0"}} 1.7e9
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="1"}} {counters["drafts"]}.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="0"}} {counters["drafts"]}.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="2"}} 0.0
"""
        self.answer(text.encode())
    def do_POST(self):
        if self.path == "/reset_prefix_cache":
            seen.clear()
            return self.answer(b"")
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert request["model"] == flags["--served-model-name"]
        assert request["temperature"] == 0 and request["ignore_eos"]
        with lock:
            counters["under way"] += 1
            counters["most"] = max(counters["most"], counters["under way"])
        time.sleep(0.05)
        with lock:
            counters["under way"] -= 1
            prompt = tuple(request["prompt"])
            counters["asked"] += len(prompt)
            counters["cached"] += len(prompt) // 2 if prompt in seen else 0
            seen.add(prompt)
            double = speculation and "full-dflash" in speculation.get("model", "")
            counters["drafts"] += request["max_tokens"] // 2 * (2 if double else 1)
        if mood == "refuse":
            return self.answer({"error": "no"}, 500)
        count = request["max_tokens"] - (mood == "short")
        self.answer({"choices": [{"token_ids": [prompt[-1] + 1 + i for i in range(count)]}], "most": counters["most"]})

ThreadingHTTPServer((flags["--host"], int(flags["--port"])), Handler).serve_forever()
'''


def install_fake_vllm(folder: Path) -> Path:
    """Put the stand-in into the ``bin`` of an environment; returns the environment's Python."""
    binaries = folder / "bin"
    binaries.mkdir(parents=True)
    (binaries / "vllm").write_text(f"#!{sys.executable}\n{_SCRIPT}", "utf-8")
    (binaries / "vllm").chmod(0o755)
    return binaries / "python"
