"""The cache: files by their sha256, whole or absent, each fetched once however many processes want it.

A file lies at ``<cache>/sha256/<first two digits>/<digest>/<file name>``, read-only. Nothing is believed
because of its name: every use hashes the file anew, through the descriptor that is then read from.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from patchwheel.errors import IntegrityError, OutputError
from patchwheel.files import sha256_file, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from patchwheel.progress import Reporter

__all__ = ["Entry", "Store", "default_store", "open_verified"]

_ELSEWHERE = "in another folder, named by PATCHWHEEL_CACHE_DIR"
_READ_ONLY = 0o444


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
            return open_verified(self.path, self.sha256)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise OutputError(
                f"can't read the cached {self.file}: {error.strerror}",
                where=str(self.path),
                next_step="remove it, or keep the cache " + _ELSEWHERE,
            ) from error

    @contextmanager
    def held(self, reporter: Reporter) -> Iterator[None]:
        """Hold the entry against other processes; tells so if another one has it.

        Raises:
            OutputError: The cache can't be written.
        """
        from filelock import FileLock, Timeout  # noqa: PLC0415  (not needed for what is cached)

        with writing(self.folder, _ELSEWHERE):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                reporter.say(f"another process is fetching {self.file}: waiting for it")
                lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def admit(self, file: IO[bytes]) -> None:
        """Give the partial file, which ``file`` has open and has verified, its good name."""
        # No fsync: a cached file is hashed at every use, so that one lost in a crash is noticed and fetched
        # again.
        with writing(self.path, _ELSEWHERE):
            os.fchmod(file.fileno(), _READ_ONLY)
            self.partial.replace(self.path)

    def evict(self) -> None:
        """Remove a damaged file."""
        with writing(self.path, _ELSEWHERE):
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Store:
    """The cache under one folder. Knows nothing of where files come from."""

    root: Path

    def find(self, sha256: str) -> Path | None:
        """A file of this digest, whatever its name; not verified."""
        folder = self.entry("", sha256).folder
        return next(iter(sorted(folder.glob("[!.]*"))), None)

    def entry(self, file: str, sha256: str) -> Entry:
        """The place of a file."""
        return Entry(folder=self.root / "sha256" / sha256[:2] / sha256, file=file, sha256=sha256)


def default_store(environ: Mapping[str, str] | None = None) -> Store:
    """The user's cache: the folder in ``PATCHWHEEL_CACHE_DIR``, else the system's usual place."""
    named = (os.environ if environ is None else environ).get("PATCHWHEEL_CACHE_DIR")
    if named:
        return Store(root=Path(named).expanduser().absolute())
    from platformdirs import user_cache_path  # noqa: PLC0415  (only needed without the variable)

    return Store(root=user_cache_path("patchwheel"))


def open_verified(path: Path, sha256: str) -> IO[bytes]:
    """Open a file whose content is pinned, at its start.

    Raises:
        IntegrityError: The content is another.
        OSError: It can't be opened or read.
    """
    file = path.open("rb")
    try:
        _check(file, path, sha256)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _check(file: IO[bytes], path: Path, sha256: str) -> None:
    if (found := sha256_file(file)) != sha256:
        raise IntegrityError(
            f"{path.name} has another content than pinned",
            where=str(path),
            expected=f"sha256 {sha256}",
            found=f"sha256 {found} ({os.fstat(file.fileno()).st_size} bytes)",
        )
