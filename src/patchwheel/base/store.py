"""The cache: files by their sha256, whole or absent, each fetched once however many processes want it.

A file lies at ``<cache>/sha256/<first two digits>/<digest>/<file name>``, read-only. Nothing is believed
because of its name: every use hashes the file anew, through the descriptor that is then read from.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from patchwheel.errors import IntegrityError, OutputError
from patchwheel.files import sha256_bytes, sha256_file, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from patchwheel.progress import Reporter

__all__ = ["ELSEWHERE", "Entry", "Store", "default_store", "holding", "open_verified"]

ELSEWHERE = "in another folder, named by PATCHWHEEL_CACHE_DIR"
"""What to do where the cache can't be written."""

_READ_ONLY = 0o444
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The place of one file in the cache, whether it is there or not."""

    folder: Path
    file: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where the file lies once it is whole."""
        return self.folder / self.file

    @property
    def partial(self) -> Path:
        """Where its bytes are gathered; it stays there when the process is killed."""
        return self.folder / f".{self.file}.partial"

    def open(self) -> IO[bytes] | None:
        """The file, open and verified, or nothing if it isn't cached.

        Raises:
            IntegrityError: It is there, but damaged.
            OutputError: It is there, but can't be read.
        """
        try:
            return open_verified(
                self.path, self.sha256, next_step="run the same command with network: it fetches the file again"
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise OutputError(
                f"can't read the cached {self.file}: {error.strerror}",
                where=str(self.path),
                next_step="remove it, or keep the cache " + ELSEWHERE,
            ) from error

    @contextmanager
    def held(self, reporter: Reporter) -> Iterator[None]:
        """Hold the entry against other processes; tells so if another one has it.

        Raises:
            OutputError: The cache can't be written.
        """
        with holding(self.folder / ".lock", f"another process is fetching {self.file}: waiting for it", reporter):
            yield

    def admit(self, file: IO[bytes]) -> None:
        """Give the partial file, which ``file`` has open and has verified, its good name."""
        # No fsync: a cached file is hashed at every use, so that one lost in a crash is noticed and fetched
        # again.
        with writing(self.path, ELSEWHERE):
            os.fchmod(file.fileno(), _READ_ONLY)
            self.partial.replace(self.path)

    def evict(self) -> None:
        """Remove a damaged file."""
        with writing(self.path, ELSEWHERE):
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Store:
    """The cache under one folder. Knows nothing of where files come from."""

    root: Path

    def find(self, sha256: str) -> Path | None:
        """A regular file of this digest, whatever its name; not verified. None if it isn't a digest at all."""
        if not _SHA256.fullmatch(sha256):
            return None  # it may come from a stranger's record, and ``..`` would lead out of the cache
        folder = self.entry("", sha256).folder
        return next((path for path in sorted(folder.glob("[!.]*")) if path.is_file()), None)

    def entry(self, file: str, sha256: str) -> Entry:
        """The place of a file.

        Raises:
            ValueError: ``sha256`` is not 64 lower-case hex digits.
        """
        if not _SHA256.fullmatch(sha256):
            raise ValueError(f"not a sha256: {sha256!r}")
        return Entry(folder=self.root / "sha256" / sha256[:2] / sha256, file=file, sha256=sha256)

    def lock_of(self, path: Path) -> Path:
        """Where the lock on a file outside of the cache lies, so that none is left beside that file."""
        return self.root / "locks" / f"{sha256_bytes(os.fsencode(path.resolve()))}.lock"


def default_store(environ: Mapping[str, str] | None = None) -> Store:
    """The user's cache: the folder in ``PATCHWHEEL_CACHE_DIR``, else the system's usual place."""
    named = (os.environ if environ is None else environ).get("PATCHWHEEL_CACHE_DIR")
    if named:
        return Store(root=Path(named).expanduser().absolute())
    from platformdirs import user_cache_path  # noqa: PLC0415  (only needed without the variable)

    return Store(root=user_cache_path("patchwheel"))


@contextmanager
def holding(lock_file: Path, waiting: str, reporter: Reporter) -> Iterator[None]:
    """Hold a lock in the cache against other processes, and say ``waiting`` if one of them has it.

    Raises:
        OutputError: The cache can't be written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415  (not needed for what is cached)

    with writing(lock_file, ELSEWHERE):
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_file)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            reporter.say(waiting)
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def open_verified(path: Path, sha256: str, *, next_step: str) -> IO[bytes]:
    """Open a file whose content is pinned, at its start.

    Args:
        path: The file.
        sha256: Digest that it must have.
        next_step: What the error tells to do if it has another.

    Raises:
        IntegrityError: The content is another.
        OSError: It can't be opened or read.
    """
    file = path.open("rb")
    try:
        _check(file, path, sha256, next_step)
    except BaseException:
        file.close()
        raise
    return file


def _check(file: IO[bytes], path: Path, sha256: str, next_step: str) -> None:
    if (found := sha256_file(file)) != sha256:
        raise IntegrityError(
            f"{path.name} has another content than pinned",
            where=str(path),
            expected=f"sha256 {sha256}",
            found=f"sha256 {found} ({os.fstat(file.fileno()).st_size} bytes)",
            next_step=next_step,
        )
