"""The central directory of a ZIP archive, read strictly: where it is, what it lists, and what no wheel may list."""

from __future__ import annotations

import stat
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchwheel.errors import ArchiveError
from patchwheel.wheel import zipformat as zf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchwheel.wheel.source import Source

__all__ = ["Member", "check_extra", "name_problems", "read_directory", "zip64_values"]

_MAX_COMMENT = zf.MAX_16
_ALLOWED_FLAGS = zf.COMPRESSION_LEVEL | zf.DESCRIPTOR | zf.UTF8
_MAX_DIRECTORY = 32 << 20
"""Bytes of directory that are read at once; vLLM's have half a megabyte."""
_MAX_EXTRA = 64
"""Bytes of extra fields that a member may carry; ZIP64 and time stamps need less."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One entry of the central directory. Sizes and offsets in bytes."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc32: int
    compressed_size: int
    size: int
    header_offset: int
    mode: int
    """Unix mode with file type; 0 if the archive has none."""

    @property
    def is_folder(self) -> bool:
        """Whether it is an entry for a folder, which wheels don't need."""
        return self.name.endswith("/")

    @property
    def is_executable(self) -> bool:
        """Whether its owner may execute it."""
        return bool(self.mode & stat.S_IXUSR)


def read_directory(source: Source) -> tuple[int, list[Member], list[str]]:
    """Offset of the central directory, its entries, and the problems found in them.

    Raises:
        ArchiveError: There is no directory to read entries from.
    """
    count, size, offset, end = _find_end(source)
    if offset + size != end:
        raise ArchiveError(
            "the central directory is not where the end record says",
            where=source.name,
            expected=f"{size} bytes from offset {offset}, up to {end}",
            next_step="the file may be cut off, or have data in front of the archive",
        )
    if size > _MAX_DIRECTORY:
        raise ArchiveError(f"the central directory has {size} bytes, more than any wheel needs", where=source.name)
    data = source.read_at(offset, size)
    members: list[Member] = []
    problems: list[str] = []
    position = 0
    while position < len(data):
        fixed = data[position : position + zf.CENTRAL.size]
        if len(fixed) < zf.CENTRAL.size or fixed[:4] != zf.CENTRAL_MAGIC:
            problems.append(f"the central directory is damaged at offset {offset + position}")
            break
        fields = zf.CENTRAL.unpack(fixed)
        name_length, extra_length, comment_length = fields[10:13]
        start = position + zf.CENTRAL.size
        raw_name = data[start : start + name_length]
        extra = data[start + name_length : start + name_length + extra_length]
        members.append(_member(fields, raw_name, extra, problems))
        position = start + name_length + extra_length + comment_length
    if not problems and (len(members) != count or position != size):
        problems.append(f"the central directory has {len(members)} entries, its end record says {count}")
    return offset, members, problems


def _find_end(source: Source) -> tuple[int, int, int, int]:
    """Entry count, directory size, directory offset, and the offset at which the directory must end."""
    end = source.size - zf.END.size
    record = source.read_at(max(end, 0), zf.END.size)
    if record[:4] != zf.END_MAGIC or record[-2:] != b"\0\0":
        raise _no_end(source)
    _, disk, directory_disk, here, count, size, offset, _ = zf.END.unpack(record)
    locator = (
        source.read_at(end - zf.END64_LOCATOR.size, zf.END64_LOCATOR.size) if end >= zf.END64_LOCATOR.size else b""
    )
    if locator[:4] == zf.END64_LOCATOR_MAGIC:
        _, _, end64, disks = zf.END64_LOCATOR.unpack(locator)
        record64 = source.read_at(end64, zf.END64.size)
        wanted = end - zf.END64_LOCATOR.size - zf.END64.size
        if end64 != wanted or record64[:4] != zf.END64_MAGIC or disks > 1:
            raise ArchiveError("the ZIP64 end record is damaged or misplaced", where=source.name)
        end = end64
        small = (here, count, size, offset)
        _, _, _, _, disk, directory_disk, here, count, size, offset = zf.END64.unpack(record64)
        limits = (zf.MAX_16, zf.MAX_16, zf.MAX_32, zf.MAX_32)
        large = (here, count, size, offset)
        if any(short not in (limit, long) for short, limit, long in zip(small, limits, large, strict=True)):
            raise ArchiveError("the two end records disagree", where=source.name)
    if disk or directory_disk or here != count:
        raise ArchiveError("archives in several parts are not wheels", where=source.name)
    return count, size, offset, end


def _no_end(source: Source) -> ArchiveError:
    tail_size = min(source.size, zf.END.size + _MAX_COMMENT)
    tail = source.read_at(source.size - tail_size, tail_size)
    place = tail.rfind(zf.END_MAGIC)
    if place >= 0:
        extra = len(tail) - place - zf.END.size
        return ArchiveError(
            f"{extra} bytes of data after the archive's end" if extra > 0 else "the archive's end record is damaged",
            where=source.name,
            expected="nothing behind the end record, no comment in it",
        )
    if source.read_at(0, 4) != zf.LOCAL_MAGIC:
        return ArchiveError("the file is no ZIP archive, so no wheel", where=source.name)
    return ArchiveError(
        "the file has no end record: it is cut off",
        where=source.name,
        next_step="get it again; an interrupted download ends like this",
    )


def _member(fields: tuple[int, ...], raw_name: bytes, extra: bytes, problems: list[str]) -> Member:
    flags, method = fields[3:5]
    crc32, compressed_size, size = fields[7:10]
    disk, _, attributes, offset = fields[13:17]
    try:
        name = raw_name.decode("utf-8" if flags & zf.UTF8 else "ascii")
    except UnicodeDecodeError:
        # Without the UTF-8 flag the encoding is anybody's guess, and readers guess differently.
        name = raw_name.decode("utf-8", "backslashreplace")
        problems.append(f"{name}: its name is neither ASCII nor flagged and valid UTF-8")
    try:
        check_extra(extra)
        size, compressed_size, offset = zip64_values(extra, [size, compressed_size, offset])
    except ArchiveError as error:
        problems.append(f"{name}: {error.what}")
    mode = attributes >> 16  # whatever system it says it was made by: installers do the same
    if flags & zf.ENCRYPTED:
        problems.append(f"{name}: is encrypted")
    elif flags & ~_ALLOWED_FLAGS:
        problems.append(f"{name}: has unknown flags {flags:#06x}")
    if method not in (zf.STORED, zf.DEFLATED):
        problems.append(f"{name}: compression method {method} is not one that wheels use")
    elif method == zf.STORED and size != compressed_size:
        problems.append(f"{name}: is stored but has two sizes")
    if disk:
        problems.append(f"{name}: lies on another disk")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR if name.endswith("/") else 0):
        problems.append(f"{name}: is a link or another special file")
    return Member(
        name=name,
        raw_name=raw_name,
        flags=flags,
        method=method,
        crc32=crc32,
        compressed_size=compressed_size,
        size=size,
        header_offset=offset,
        mode=mode,
    )


def check_extra(extra: bytes) -> None:
    """Refuse extra fields that give a second name, or hide data.

    Raises:
        ArchiveError: Says what they have.
    """
    if zf.UNICODE_PATH_EXTRA in dict(_extras(extra)):
        raise ArchiveError("has a second name in an extra field")
    if len(extra) > _MAX_EXTRA:
        raise ArchiveError(f"carries {len(extra)} bytes in extra fields")


def _extras(extra: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(extra):
        if position + 4 > len(extra):
            raise ArchiveError("its extra field is damaged")
        kind, size = struct.unpack_from("<2H", extra, position)
        data = extra[position + 4 : position + 4 + size]
        if len(data) < size:
            raise ArchiveError("its extra field is damaged")
        yield kind, data
        position += 4 + size


def zip64_values(extra: bytes, values: list[int]) -> list[int]:
    """Each value, from the ZIP64 extra field if it is too large for its 32 bits; there they have a fixed order.

    Raises:
        ArchiveError: The field lacks a value, or is damaged.
    """
    if zf.MAX_32 not in values:
        return values
    data = dict(_extras(extra)).get(zf.ZIP64_EXTRA, b"")
    result = []
    for value in values:
        if value == zf.MAX_32:
            if len(data) < 8:  # noqa: PLR2004  (eight bytes hold one value)
                raise ArchiveError("its ZIP64 field lacks a value")
            result.append(int.from_bytes(data[:8], "little"))
            data = data[8:]
        else:
            result.append(value)
    return result


def name_problems(members: list[Member]) -> list[str]:
    """Names that lead outside, collide, or are read differently by different systems."""
    problems = []
    seen: dict[str, str] = {}
    for member in members:
        name = member.name
        if reason := _unsafe(name):
            problems.append(f"{name!r}: {reason}")
        if member.is_folder and member.size:
            problems.append(f"{name}: is a folder with content")
        folded = name.rstrip("/").casefold()
        if folded in seen:
            other = seen[folded]
            problems.append(
                f"{name}: is there twice" if other == name else f"{name}: differs from {other} in case only"
            )
        seen[folded] = name
    files = {member.name.casefold() for member in members if not member.is_folder}
    for member in members:
        parent = member.name.casefold().rstrip("/")
        while "/" in parent:
            parent = parent.rpartition("/")[0]
            if parent in files:
                problems.append(f"{member.name}: lies under {parent}, which is a file")
                break
    return problems


def _unsafe(name: str) -> str | None:
    """Why a member's name could be written outside of the target folder, or read differently, if so."""
    if not name or not name.isprintable():
        return "is empty or has control or invisible characters"
    if name.startswith("/") or "\\" in name or ":" in name.partition("/")[0]:
        return "is an absolute path, or one of another system"
    if any(part in ("", ".", "..") for part in name.removesuffix("/").split("/")):
        return "has empty or dot parts, which could lead outside"
    return None
