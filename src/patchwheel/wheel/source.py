"""Random access to the bytes of an archive, wherever they are."""

from __future__ import annotations

import os
from typing import IO, Protocol

__all__ = ["FileSource", "Source"]


class Source(Protocol):
    """Bytes that can be read at any offset, from several threads at once."""

    @property
    def name(self) -> str:
        """What errors call it: a path or an address."""
        ...

    @property
    def size(self) -> int:
        """Length in bytes."""
        ...

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly ``count`` bytes from ``offset``, or fewer only at the end."""
        ...


class FileSource:
    """A file on this machine. Reads by descriptor, so what was hashed is what is read."""

    def __init__(self, file: IO[bytes], name: str | None = None) -> None:
        self._file = file
        self._descriptor = file.fileno()
        self._name = name or str(file.name)

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def size(self) -> int:
        """Length in bytes, now."""
        return os.fstat(self._descriptor).st_size

    def read_at(self, offset: int, count: int) -> bytes:
        """Read without moving the file's position."""
        data = os.pread(self._descriptor, count, offset)
        while len(data) < count and (more := os.pread(self._descriptor, count - len(data), offset + len(data))):
            data += more
        return data
