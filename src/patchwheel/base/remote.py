"""Read parts of a file that stays where it is: on a server that grants byte ranges, or in a local folder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchwheel.base.download import local_path, unreadable
from patchwheel.base.http import check_status, classified, read_head
from patchwheel.base.patience import TransientError, persist
from patchwheel.base.settings import redact
from patchwheel.errors import IntegrityError, NetworkError
from patchwheel.progress import SILENT, Reporter
from patchwheel.wheel.source import FileSource, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    import requests

    from patchwheel.base.patience import Patience

__all__ = ["RemoteSource", "open_source"]

BLOCK = 1 << 18
"""Bytes that are fetched and kept together."""

AHEAD = 8
"""Blocks fetched at once when reading goes on where it left off."""

KEPT = 64
"""Blocks kept in memory."""


class RemoteSource:
    """A file on a server, read by ranges. Threads may share it; they take turns.

    Attributes:
        transferred: Bytes that were fetched so far.
    """

    def __init__(
        self,
        session: requests.Session,
        url: str,
        *,
        size: int | None = None,
        patience: Patience,
        reporter: Reporter = SILENT,
    ) -> None:
        """Prepare to read; with an unknown ``size``, the server is asked for it at once.

        Raises:
            NetworkError: The server can't be reached, or grants no ranges.
        """
        self.transferred = 0
        self._session = session
        self._url = url
        self._patience = patience
        self._reporter = reporter
        self._lock = threading.Lock()
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._tag: str | None = None
        self._size = size
        if size is None:
            self._fetch(0, 1)

    @property
    def name(self) -> str:
        """The address, without secrets."""
        return redact(self._url)

    @property
    def size(self) -> int:
        """Length in bytes."""
        assert self._size is not None, "known since the first request"  # noqa: S101
        return self._size

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly ``count`` bytes from ``offset``, or fewer only at the end.

        Raises:
            NetworkError: The server failed too often, grants no ranges, or its file changed meanwhile.
            IntegrityError: The file has another length than pinned.
        """
        end = min(offset + count, self.size)
        if end <= offset:
            return b""
        first, last = offset // BLOCK, (end - 1) // BLOCK
        with self._lock:
            data = b"".join([self._block(number, last) for number in range(first, last + 1)])
        return data[offset - first * BLOCK : end - first * BLOCK]

    def _block(self, number: int, last: int) -> bytes:
        if number not in self._blocks:
            ahead = AHEAD if number - 1 in self._blocks else min(last - number + 1, AHEAD)
            start = number * BLOCK
            data = self._fetch(start, min(start + ahead * BLOCK, self.size))
            for at in range(0, len(data), BLOCK):
                self._blocks[number + at // BLOCK] = data[at : at + BLOCK]
            while len(self._blocks) > KEPT:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]

    def _fetch(self, start: int, end: int) -> bytes:
        return persist(
            lambda: self._request(start, end),
            patience=self._patience,
            where=self.name,
            reporter=self._reporter,
        )

    def _request(self, start: int, end: int) -> bytes:
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={start}-{end - 1}"}
        with (
            classified(self.name),
            self._session.get(self._url, headers=headers, stream=True, timeout=self._patience.timeout) as response,
        ):
            check_status(response, self.name)
            self._check(response, start)
            data: bytes = response.raw.read(end - start, decode_content=False)
        self.transferred += len(data)
        if len(data) < end - start:
            raise TransientError(f"the server sent {len(data)} of {end - start} bytes")
        return data

    def _check(self, response: requests.Response, start: int) -> None:
        head = read_head(response)
        if head.start != start or head.total is None:
            raise NetworkError(
                "the server grants no byte ranges",
                where=self.name,
                expected=f"206 with bytes from {start}",
                found=f"{response.status_code}, Content-Range {response.headers.get('Content-Range')}",
                next_step="run `patchwheel base fetch`, then the whole file is read from the cache",
            )
        if self._size is None:
            self._size = head.total
        elif head.total != self._size:
            raise IntegrityError(
                "the file on the server has another length than pinned",
                where=self.name,
                expected=f"{self._size} bytes",
                found=f"{head.total} bytes",
                next_step="get it from another index, or find out who changed the published file",
            )
        if head.is_of_another(self._tag):
            raise NetworkError(
                "the file on the server changed while it was read",
                where=self.name,
                next_step="run the same command again",
            )
        self._tag = head.tag or self._tag


@contextmanager
def open_source(
    session: requests.Session,
    url: str,
    *,
    size: int | None = None,
    patience: Patience,
    reporter: Reporter = SILENT,
) -> Iterator[Source]:
    """The file at an http, https or ``file:`` address, to read from anywhere in it.

    Raises:
        NetworkError: It can't be opened.
    """
    if (path := local_path(url)) is None:
        yield RemoteSource(session, url, size=size, patience=patience, reporter=reporter)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        yield FileSource(file)
