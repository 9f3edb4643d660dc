"""Files that are either whole or absent, and digests of what was really read.

Nothing half-done has a good name: a file is written beside its target under a hidden name, flushed to the disk and
only then renamed. A process killed on the way leaves at most a hidden ``.part`` file, which the next run removes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from patchwheel.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK = 1 << 20
"""Bytes moved at a time; memory does not grow with the file."""

_LOCK_NAME = ".patchwheel.lock"
_PART = ".part"
_TOKEN = 6
_LEFTOVER = re.compile(rf"\..+\.[0-9a-f]{{{2 * _TOKEN}}}{re.escape(_PART)}")
"""What `Draft` calls its files; another program's ``.part`` files are not ours to remove."""


def sha256_bytes(data: bytes) -> str:
    """Hex sha256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(file: IO[bytes]) -> str:
    """Hex sha256 of an open file, all of it. Its position stays, so that several threads may use the file at once."""
    digest = hashlib.sha256()
    offset = 0
    while chunk := os.pread(file.fileno(), CHUNK, offset):
        digest.update(chunk)
        offset += len(chunk)
    return digest.hexdigest()


def git_blob_id(data: bytes) -> str:
    """The id git gives to a blob with this content: sha1 over ``blob <size>NUL<content>``."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Draft:
    """A file in the making: written under ``path``, seen under ``target`` only after `publish`.

    Every method raises `OutputError` where the file can't be created or written: no space, read-only, no permission.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN)}{_PART}")
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            # 0o666 less the umask, as any program would create it: who the user allows must be able to read a result.
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.file: IO[bytes] = os.fdopen(descriptor, "w+b", buffering=CHUNK)

    def write(self, data: bytes) -> int:
        """Add bytes at the end."""
        with writing(self.target):
            return self.file.write(data)

    def flush(self) -> None:
        """Hand all bytes to the system, so that they can be read back."""
        with writing(self.target):
            self.file.flush()

    def sync(self) -> None:
        """Hand all bytes to the disk, so that they are still there after a crash."""
        with writing(self.target):
            self.file.flush()
            os.fsync(self.file.fileno())

    def publish(self) -> None:
        """Give the file its good name, atomically."""
        self.sync()
        with writing(self.target):
            self.file.close()
            self.path.replace(self.target)
            _sync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove what was written, unless it was published."""
        with suppress(OSError):  # close() flushes, and a full disk must not hide the first error
            self.file.close()
        with writing(self.target):
            self.path.unlink(missing_ok=True)


@contextmanager
def drafting(target: Path) -> Iterator[Draft]:
    """Write a file that gets its name only when the caller publishes it.

    Raises:
        OutputError: As `Draft` says.
    """
    draft = Draft(target)
    try:
        yield draft
    finally:
        draft.discard()


def write_atomically(target: Path, data: bytes) -> None:
    """Write a small file whole or not at all.

    Raises:
        OutputError: As `Draft` says.
    """
    with drafting(target) as draft:
        draft.write(data)
        draft.publish()


@contextmanager
def writing(target: Path, elsewhere: str = "elsewhere with --out") -> Iterator[None]:
    """Turn refusals of the operating system into an `OutputError`, which says where else to write.

    Only calls that write ``target`` belong inside.
    """
    try:
        yield
    except OSError as error:
        raise _output_error(target, error, elsewhere) from error


@contextmanager
def locked(folder: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a folder against other patchwheel processes, and sweep what killed ones left in it.

    Args:
        folder: Made if it isn't there.
        on_wait: Called once if another process holds it.

    Raises:
        OutputError: The folder can't be created or written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415  (not needed for a command that only reads)

    lock = FileLock(folder / _LOCK_NAME)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            on_wait()
            lock.acquire()
    try:
        with writing(folder):
            for leftover in folder.iterdir():
                if _LEFTOVER.fullmatch(leftover.name) and leftover.is_file() and not leftover.is_symlink():
                    leftover.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def check_space(folder: Path, size: int) -> None:
    """Refuse to begin what will not fit, rather than to fail in the middle. ``size`` is in bytes.

    Raises:
        OutputError: The file system of ``folder`` has less room.
    """
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OutputError(
            "there is no room for the result",
            where=str(folder),
            expected=f"{size / 1e6:.0f} MB free",
            found=f"{free / 1e6:.0f} MB",
            next_step="free some space there, or write elsewhere with --out",
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _output_error(target: Path, error: OSError, elsewhere: str) -> OutputError:
    remedies = {
        errno.ENOSPC: f"free some space there, or write {elsewhere}",
        errno.EDQUOT: f"your quota there is used up: free some space, or write {elsewhere}",
        errno.EEXIST: "a file stands where a folder is needed: remove it, or write elsewhere",
        errno.ENOTDIR: "a file stands where a folder is needed: remove it, or write elsewhere",
        errno.EROFS: f"that file system is read-only: write {elsewhere}",
        errno.EACCES: f"you may not write there: change its permissions, or write {elsewhere}",
        errno.EPERM: f"you may not write there: change its permissions, or write {elsewhere}",
    }
    return OutputError(
        f"can't write {target.name}: {error.strerror or error}",
        where=str(error.filename or target),
        next_step=remedies.get(error.errno or 0, "check that the folder exists and can be written"),
    )
