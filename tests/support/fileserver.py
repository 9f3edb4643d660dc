"""A web server on this machine that misbehaves as told."""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class Act:
    """How one request is answered; by default well, with byte ranges and an entity tag."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    tag: str | None = '"one"'
    ranges: bool = True
    if_range: bool = True
    cut: int | None = None
    """Close the connection after so many bytes of the body."""
    stall: int | None = None
    """Fall silent after so many bytes of the body."""
    length: int | None = None
    """Announce another length than the body's."""
    endless: bool = False
    """Announce no length, and don't stop sending before 20 MB, which bounds a test that fails."""
    shift: int = 0
    """Give a range that begins so many bytes later than asked."""


WELL = Act()


@dataclass(frozen=True)
class Seen:
    """One request."""

    path: str
    headers: dict[str, str]


class FileServer:
    """Serves ``files`` by path; requests use up ``acts``, then ``default`` holds."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.types: dict[str, str] = {}
        self.acts: list[Act] = []
        self.default = WELL
        self.seen: list[Seen] = []
        self.sent = 0
        self.gate = threading.Event()
        """Where stalled connections wait."""
        self.lock = threading.Lock()
        self.port = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def requests(self, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.path == path]

    def index(self, project: str, files: dict[str, bytes | None], *, attributes: str = "") -> None:
        """Serve files and an index page of a project, with the digests of the given bytes."""
        links = ""
        for name, data in files.items():
            fragment = "" if data is None else f"#sha256={hashlib.sha256(data).hexdigest()}"
            links += f'<a href="../../files/{name}{fragment}" {attributes}>{name}</a>\n'
            if data is not None:
                self.files.setdefault(f"/files/{name}", data)
        self.files[f"/simple/{project}/"] = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        self.types[f"/simple/{project}/"] = "text/html"


@contextmanager
def running_server() -> Iterator[FileServer]:
    """A server, up for the time of the context."""
    state = FileServer()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # joined on close, so that no test leaves sockets behind
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002})
    thread.start()
    try:
        yield state
    finally:
        state.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_state: FileServer
    protocol_version = "HTTP/1.1"
    timeout = 5

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def do_GET(self) -> None:
        state = self.server_state
        path = self.path.partition("?")[0]
        with state.lock:
            state.seen.append(Seen(path, dict(self.headers)))
            act = state.acts.pop(0) if state.acts else state.default
        self.close_connection = True
        data = act.body if act.body is not None else state.files.get(path)
        if act.status is not None:
            self._head(act.status, {"Content-Length": "0", **act.headers})
            return
        if data is None:
            self._head(404, {"Content-Length": "0"})
            return
        with suppress(ConnectionError):
            self._answer(act, path, data)

    def _answer(self, act: Act, path: str, data: bytes) -> None:
        headers = {
            "Content-Type": self.server_state.types.get(path, "application/octet-stream"),
            **act.headers,
        }
        if act.tag:
            headers["ETag"] = act.tag
        status, start, end = 200, 0, len(data)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if wanted and act.ranges and not (act.if_range and condition and condition != act.tag):
            start = int(wanted[1]) + act.shift
            end = min(int(wanted[2]) + 1, end) if wanted[2] else end
            if start >= len(data):
                self._head(416, {"Content-Range": f"bytes */{len(data)}", "Content-Length": "0"})
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        body = data[start:end]
        if not act.endless:
            headers["Content-Length"] = str(len(body) if act.length is None else act.length)
        self._head(status, headers)
        self._body(act, body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _body(self, act: Act, body: bytes) -> None:
        state = self.server_state
        if act.length is not None:
            body = (body + b"\0" * act.length)[: act.length] if act.length < len(body) else body
        limit = min(len(body), *(at for at in (act.cut, act.stall) if at is not None), len(body))
        for at in range(0, limit, 1 << 16):
            self._send(body[at : min(at + (1 << 16), limit)])
        if act.stall is not None:
            state.gate.wait(5)
        while act.endless and state.sent < 20_000_000:
            self._send(b"\0" * 4096)

    def _send(self, data: bytes) -> None:
        with self.server_state.lock:  # before it is written: the client may be done before this thread goes on
            self.server_state.sent += len(data)
        self.wfile.write(data)
