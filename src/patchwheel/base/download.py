"""Download one pinned file, over as many connections as it takes.

There is no limit on the whole time. A connection that was cut, or went silent, is taken up again from the
last byte that arrived, also after this process was killed. What counts in the end is the sha256 of the whole
file; entity tags are only watched to notice early that the file behind the address has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from patchwheel.base.http import PART, check_status, classified, read_head
from patchwheel.base.patience import TransientError, persist
from patchwheel.base.settings import redact
from patchwheel.base.store import ELSEWHERE
from patchwheel.errors import IntegrityError, NetworkError
from patchwheel.files import CHUNK, sha256_file, writing
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

    from patchwheel.base.patience import Patience

__all__ = ["download", "local_path", "unreadable"]

CEILING = 4 << 30
"""Bytes at which a download of unknown length is stopped, so that an endless one can't fill the disk.

No wheel comes near: a plain zip archive can't be larger, and vLLM's wheels have about a tenth of it.
"""

_READ = 1 << 18
"""Bytes to ask the connection for at a time; it gives what has arrived."""

_OK = 200
_NOT_THERE = 416


def download(
    session: requests.Session,
    url: str,
    partial: Path,
    *,
    sha256: str,
    size: int | None,
    label: str,
    patience: Patience,
    reporter: Reporter = SILENT,
) -> IO[bytes]:
    """Make ``partial`` the whole file, beginning with the bytes that it already has.

    Args:
        session: Makes the requests; see `patchwheel.base.http.open_session`.
        url: http, https or ``file:`` address.
        partial: Where the bytes are gathered. Kept after a failure, for the next call; removed if its bytes
            are wrong.
        sha256: Digest that the whole file must have.
        size: Its length in bytes, if that is known; otherwise `CEILING` bounds it.
        label: What people call the file.
        patience: When to give up on a connection, and on the server.
        reporter: Follows the transfer.

    Returns:
        The file, open for reading, at its start; its content was hashed through this very descriptor.

    Raises:
        NetworkError: The server refuses, or failed too often.
        IntegrityError: The file is longer than pinned or than `CEILING`, or its digest is another.
        OutputError: ``partial`` can't be written.
    """
    found = ""
    for last_chance in (False, True):
        resumed = _gather(session, url, partial, size=size, label=label, patience=patience, reporter=reporter)
        file = partial.open("rb")
        if (found := sha256_file(file)) == sha256:
            return file
        file.close()
        partial.unlink(missing_ok=True)
        if last_chance or not resumed:
            break
        reporter.say(f"{label}: the parts don't fit together: starting over")
    raise IntegrityError(
        f"{label} has another content than pinned",
        where=redact(url),
        expected=f"sha256 {sha256}",
        found=f"sha256 {found}",
        next_step="get it from another index, or find out who changed the published file",
    )


def _gather(
    session: requests.Session,
    url: str,
    partial: Path,
    *,
    size: int | None,
    label: str,
    patience: Patience,
    reporter: Reporter,
) -> bool:
    """Fetch what is missing; whether the file was put together from more than one piece."""
    with writing(partial, ELSEWHERE):
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()
        file = partial.open("r+b", buffering=0)
    with file, reporter.transfer(label, size, partial.stat().st_size) as advance:
        gathering = _Gathering(file, url, partial, size, advance)
        try:
            if (local := local_path(url)) is not None:
                gathering.copy(local)
            else:
                persist(
                    lambda: gathering.request(session, patience),
                    patience=patience,
                    where=redact(url),
                    next_step="run the same command again: it goes on from the byte it has reached",
                    progress=lambda: gathering.reached,
                    reporter=reporter,
                )
        except IntegrityError:
            partial.unlink(missing_ok=True)
            raise
    return gathering.resumed


class _Gathering:
    """The state of one file in the making.

    Attributes:
        have: Bytes from the start that are there.
        reached: The most that ``have`` ever was; only more than this is progress.
        resumed: Whether the file has pieces from more than one answer.
    """

    def __init__(
        self, file: IO[bytes], url: str, partial: Path, size: int | None, advance: Callable[[int], None]
    ) -> None:
        self._file = file
        self._url = url
        self._where = redact(url)
        self._partial = partial
        self._size = size
        self._limit = CEILING if size is None else size
        self._advance = advance
        self._tag: str | None = None
        self.have = self.reached = file.seek(0, 2)
        self.resumed = self.have > 0
        if self.have > self._limit:
            self._start_over()

    def request(self, session: requests.Session, patience: Patience) -> None:
        """Ask for the missing rest, once, and take what comes."""
        if self.have == self._size:
            return
        headers = {"Accept-Encoding": "identity"}
        if self.have:
            headers["Range"] = f"bytes={self.have}-"
            if self._tag:
                headers["If-Range"] = self._tag
        with (
            classified(self._where),
            session.get(self._url, headers=headers, stream=True, timeout=patience.timeout) as response,
        ):
            if self._takes_body(response):
                self._take(_reader(response))
        if self._size is not None and self.have < self._size:
            raise TransientError(f"the server ended after {self.have} of {self._size} bytes")

    def copy(self, source: Path) -> None:
        """Take the whole from a file on this machine."""
        self._start_over()
        try:
            with source.open("rb") as file:
                self._take(lambda: file.read(CHUNK))
        except OSError as error:
            raise unreadable(source, error) from error

    def _takes_body(self, response: requests.Response) -> bool:
        """Decide by the head of the answer where its body belongs; whether there is one to take."""
        head = read_head(response)
        if response.status_code == _NOT_THERE:
            if self._size is None and head.total == self.have:
                return False
            self._start_over()
            raise TransientError("the server has nothing behind what was fetched so far")
        check_status(response, self._where)
        if response.status_code == PART:
            # A part must continue what is there, and come from the same file.
            if head.start != self.have or head.is_of_another(self._tag):
                self._start_over()
                raise TransientError("the file on the server has changed")
            self.resumed = True
        elif response.status_code == _OK:
            self._start_over()
        else:
            raise NetworkError(
                f"the server answered {response.status_code}",
                where=self._where,
                next_step="check that the address is right, or get it from another index",
            )
        self._tag = head.tag or self._tag
        if head.length is not None:
            self._refuse_excess(self.have + head.length)
        return True

    def _take(self, read: Callable[[], bytes]) -> None:
        while chunk := read():
            self._refuse_excess(self.have + len(chunk))
            with writing(self._partial, ELSEWHERE):
                view = memoryview(chunk)
                while view:  # an unbuffered write may be short
                    view = view[self._file.write(view) :]
            self.have += len(chunk)
            self.reached = max(self.reached, self.have)
            self._advance(len(chunk))

    def _refuse_excess(self, length: int) -> None:
        if length <= self._limit:
            return
        if self._size is None:
            raise IntegrityError(
                "the file on the server is longer than any wheel whose size is not pinned may be",
                where=self._where,
                expected=f"at most {self._limit} bytes",
                found=f"{length} bytes or more",
                next_step="if it really is that long, give its size under base.wheels of the recipe",
            )
        raise IntegrityError(
            "the file on the server is longer than pinned",
            where=self._where,
            expected=f"{self._size} bytes",
            found=f"{length} bytes or more",
            next_step="get it from another index, or find out who changed the published file",
        )

    def _start_over(self) -> None:
        self._tag = None
        if not self.have:
            return
        self._advance(-self.have)
        self.have = 0
        self.resumed = False
        with writing(self._partial, ELSEWHERE):
            self._file.seek(0)
            self._file.truncate()


def local_path(url: str) -> Path | None:
    """The path that a ``file:`` address stands for."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def unreadable(path: Path, error: OSError) -> NetworkError:
    """What to raise for a file of a local index."""
    return NetworkError(
        f"can't read {path.name}: {error.strerror}",
        where=str(path),
        next_step="check the folder that your index settings name, or name another in PATCHWHEEL_INDEX_URL",
    )


def _reader(response: requests.Response) -> Callable[[], bytes]:
    """Reads whatever has arrived, so that nothing is lost when the connection breaks."""
    # urllib3 before 2 has no read1; with it, a broken connection costs up to one block.
    read = getattr(response.raw, "read1", response.raw.read)
    return lambda: cast("bytes", read(_READ, decode_content=False))
