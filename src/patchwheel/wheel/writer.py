"""Writing an archive whose bytes depend on nothing but its input.

Members that come from another archive are copied as they are, compressed. New content is *stored*: deflate output
differs between zlib versions and zlib-ng, which CPython builds mix freely, and the changed files of an overlay are
small (docs/explanation/overlay.md has the figures). Times, modes, flags and order are fixed.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zlib
from typing import TYPE_CHECKING, Protocol

from patchwheel.wheel import zipformat as zf

if TYPE_CHECKING:
    from patchwheel.wheel.archive import Archive, Member

__all__ = ["ArchiveWriter", "Writable"]

_DATE = 1 << 5 | 1
"""1980-01-01, the earliest date that the format can hold: a fixed one, since no date is input to the build."""
_TIME = 0
_VERSION = 20
_VERSION_64 = 45
_FILE = stat.S_IFREG | 0o644
_PROGRAM = stat.S_IFREG | 0o755


class Writable(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Take them all."""
        ...


class ArchiveWriter:
    """Writes members one after the other, and the directory at the end.

    Attributes:
        size: Bytes written so far.
    """

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._directory: list[bytes] = []
        self.size = 0

    @property
    def sha256(self) -> str:
        """Hex sha256 of what was written so far."""
        return self._digest.hexdigest()

    def copy(self, archive: Archive, member: Member, name: str | None = None) -> None:
        """Take over a member with its compressed bytes untouched, perhaps under another name.

        Raises:
            ArchiveError: The member can't be read.
        """
        self._begin(
            name or member.name,
            method=member.method,
            crc32=member.crc32,
            compressed_size=member.compressed_size,
            size=member.size,
            executable=member.is_executable,
        )
        for chunk in archive.raw_chunks(member):
            self._write(chunk)

    def store(self, name: str, data: bytes, *, executable: bool = False) -> None:
        """Add new content, uncompressed."""
        self._begin(
            name,
            method=zf.STORED,
            crc32=zlib.crc32(data),
            compressed_size=len(data),
            size=len(data),
            executable=executable,
        )
        self._write(data)

    def finish(self) -> None:
        """Write the central directory and the end record; nothing may be added afterwards."""
        offset, count = self.size, len(self._directory)
        for entry in self._directory:
            self._write(entry)
        size = self.size - offset
        if count >= zf.MAX_16 or size >= zf.MAX_32 or offset >= zf.MAX_32:
            end64 = self.size
            made_by = zf.UNIX << 8 | _VERSION_64
            record_size = zf.END64.size - 12
            self._write(
                zf.END64.pack(zf.END64_MAGIC, record_size, made_by, _VERSION_64, 0, 0, count, count, size, offset)
            )
            self._write(zf.END64_LOCATOR.pack(zf.END64_LOCATOR_MAGIC, 0, end64, 1))
        short = min(count, zf.MAX_16)
        self._write(zf.END.pack(zf.END_MAGIC, 0, 0, short, short, min(size, zf.MAX_32), min(offset, zf.MAX_32), 0))

    def _begin(self, name: str, *, method: int, crc32: int, compressed_size: int, size: int, executable: bool) -> None:
        raw_name = name.encode()
        flags = 0 if name.isascii() else zf.UTF8
        offset = self.size
        large_sizes = [value for value in (size, compressed_size) if value >= zf.MAX_32]
        if large_sizes:  # a local header carries both or none
            local_sizes, local_extra = (zf.MAX_32, zf.MAX_32), _zip64([size, compressed_size])
        else:
            local_sizes, local_extra = (compressed_size, size), b""
        extra = _zip64(large_sizes + ([offset] if offset >= zf.MAX_32 else []))
        version = _VERSION_64 if extra else _VERSION
        shared = (flags, method, _TIME, _DATE, crc32)
        self._write(
            zf.LOCAL.pack(zf.LOCAL_MAGIC, version, *shared, *local_sizes, len(raw_name), len(local_extra))
            + raw_name
            + local_extra
        )
        self._directory.append(
            zf.CENTRAL.pack(
                zf.CENTRAL_MAGIC,
                zf.UNIX << 8 | version,
                version,
                *shared,
                min(compressed_size, zf.MAX_32),
                min(size, zf.MAX_32),
                len(raw_name),
                len(extra),
                0,
                0,
                0,
                (_PROGRAM if executable else _FILE) << 16,
                min(offset, zf.MAX_32),
            )
            + raw_name
            + extra
        )

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)


def _zip64(values: list[int]) -> bytes:
    if not values:
        return b""
    return struct.pack(f"<2H{len(values)}Q", zf.ZIP64_EXTRA, 8 * len(values), *values)
