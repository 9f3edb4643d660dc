"""A strict reader for ZIP archives, stricter than Python's own.

Readers of ZIP files disagree on archives with duplicate names, with local headers that contradict the central
directory, with data before, between or after the members, or with several end records; such an archive can install
other files than the ones that were checked. Here each of these is an error. All problems are collected before one
`ArchiveError` is raised.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

# It inflates twice as fast as most builds of zlib. What is read does not depend on the library, only what is written.
from zlib_ng import zlib_ng as zlib

from patchwheel.errors import ArchiveError
from patchwheel.wheel import zipformat as zf
from patchwheel.wheel.directory import Member, check_extra, name_problems, read_directory, zip64_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from patchwheel.wheel.source import Source

__all__ = ["Archive", "Member"]

_CHUNK = 1 << 18
_SHOWN = 20
_MAX_READ = 16 << 20
"""Bytes that are read into memory at once. RECORD of the largest vLLM wheel has 0.8 MB."""


class Archive:
    """The members of an archive, and their content.

    Attributes:
        source: Where the bytes come from.
        members: By offset, which is the order in the file.
    """

    def __init__(self, source: Source) -> None:
        """Read the central directory.

        Raises:
            ArchiveError: It is damaged, or holds entries that wheels may not have.
        """
        self.source = source
        self.directory_offset, members, problems = read_directory(source)
        self.members = tuple(sorted(members, key=lambda member: member.header_offset))
        problems += name_problems(members)
        _raise_if(problems, source)
        self._by_name = {member.name: member for member in self.members}

    @property
    def by_name(self) -> Mapping[str, Member]:
        """The members by name."""
        return self._by_name

    def get(self, name: str) -> Member | None:
        """The member of this name, if there is one."""
        return self._by_name.get(name)

    def check_layout(self) -> None:
        """Read every local header: it must agree with the directory, and members must follow without gap or overlap.

        Raises:
            ArchiveError: Some don't.
        """
        problems: list[str] = []
        position = 0
        for member in self.members:
            if member.header_offset != position:
                problems.append(_gap(member.name, position, member.header_offset))
            try:
                position = self.data_offset(member) + member.compressed_size
            except ArchiveError as error:
                problems.append(error.what)
                position = member.header_offset
            else:
                position += self._descriptor_size(member, position)
        if not problems and position != self.directory_offset:
            problems.append(_gap("the central directory", position, self.directory_offset))
        _raise_if(problems, self.source)

    def data_offset(self, member: Member) -> int:
        """Where the member's compressed bytes begin.

        Raises:
            ArchiveError: The local header contradicts the directory.
        """
        header = self.source.read_at(member.header_offset, zf.LOCAL.size + len(member.raw_name))
        if len(header) < zf.LOCAL.size + len(member.raw_name):
            raise ArchiveError(f"{member.name}: its local header is cut off", where=self.source.name)
        (magic, _, flags, method, _, _, crc32, compressed_size, size, name_length, extra_length) = zf.LOCAL.unpack_from(
            header
        )
        if magic != zf.LOCAL_MAGIC:
            raise ArchiveError(f"{member.name}: no local header where one should be", where=self.source.name)
        start = member.header_offset + zf.LOCAL.size + name_length
        if extra_length:
            extra = self.source.read_at(start, extra_length)
            try:
                check_extra(extra)
                size, compressed_size = zip64_values(extra, [size, compressed_size])
            except ArchiveError as error:
                raise ArchiveError(f"{member.name}: {error.what}", where=self.source.name) from error
        differing = [
            label
            for label, local, central in (
                (
                    "name",
                    header[zf.LOCAL.size :] if name_length == len(member.raw_name) else b"",
                    member.raw_name,
                ),
                ("flags", flags, member.flags),
                ("method", method, member.method),
                ("CRC", crc32, member.crc32),
                ("compressed size", compressed_size, member.compressed_size),
                ("size", size, member.size),
            )
            # With a data descriptor, the local header may leave these to it.
            if local != central
            and not (member.flags & zf.DESCRIPTOR and local == 0 and label not in ("flags", "method"))
        ]
        if differing:
            what = f"{member.name}: local header and central directory disagree on {', '.join(differing)}"
            raise ArchiveError(what, where=self.source.name)
        return int(start + extra_length)

    def raw_chunks(self, member: Member) -> Iterator[bytes]:
        """The member's bytes as they lie in the archive, compressed.

        Raises:
            ArchiveError: The local header contradicts the directory, or the archive ends too early.
        """
        offset, left = self.data_offset(member), member.compressed_size
        while left:
            chunk = self.source.read_at(offset, min(left, _CHUNK))
            if not chunk:
                raise ArchiveError(f"{member.name}: the archive ends within its data", where=self.source.name)
            yield chunk
            offset += len(chunk)
            left -= len(chunk)

    def chunks(self, member: Member) -> Iterator[bytes]:
        """The member's content; size and CRC are checked on the way, and never more than ``size`` bytes come.

        Raises:
            ArchiveError: The content can't be decompressed, or its size or CRC is not as recorded.
        """
        crc32 = size = 0
        for chunk in self._inflated(member) if member.method == zf.DEFLATED else self.raw_chunks(member):
            size += len(chunk)
            if size > member.size:
                break
            crc32 = zlib.crc32(chunk, crc32)
            yield chunk
        if size != member.size:
            raise ArchiveError(
                f"{member.name}: its content has another size than recorded",
                where=self.source.name,
                expected=f"{member.size} bytes",
                found=f"{'more' if size > member.size else size} bytes",
            )
        if crc32 != member.crc32:
            raise ArchiveError(f"{member.name}: its content has another CRC than recorded", where=self.source.name)

    def read(self, name: str) -> bytes:
        """The whole content of a text member: Python, data, metadata.

        Raises:
            ArchiveError: There is no such member, it has more than 16 MiB, or as for `chunks`.
        """
        member = self.get(name)
        if member is None:
            raise ArchiveError(f"{name} is missing", where=self.source.name)
        if member.size > _MAX_READ:
            raise ArchiveError(
                f"{name} has {member.size} bytes, more than such a file may have", where=self.source.name
            )
        return b"".join(self.chunks(member))

    def read_if_there(self, name: str) -> bytes | None:
        """`read`, or nothing if there is no such member."""
        return None if self.get(name) is None else self.read(name)

    def _inflated(self, member: Member) -> Iterator[bytes]:
        engine = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            for chunk in self.raw_chunks(member):
                data = chunk
                while data:
                    yield engine.decompress(data, _CHUNK)
                    data = engine.unconsumed_tail
                if engine.unused_data:
                    break
            while not engine.eof and (rest := engine.decompress(b"", _CHUNK)):
                yield rest
        except zlib.error as error:  # type: ignore[misc]  # its stub takes the class for an instance
            raise ArchiveError(f"{member.name}: its data is damaged ({error})", where=self.source.name) from error
        if not engine.eof or engine.unused_data:
            end = "goes on after" if engine.unused_data else "stops before"
            raise ArchiveError(f"{member.name}: its data {end} the end of the stream", where=self.source.name)

    def _descriptor_size(self, member: Member, position: int) -> int:
        """Length of the data descriptor at ``position``; 0 if there is none, or none that agrees."""
        if not member.flags & zf.DESCRIPTOR:
            return 0
        found = self.source.read_at(position, 24)
        for magic in (zf.DESCRIPTOR_MAGIC, b""):
            for sizes in ("2I", "2Q"):
                numbers = (member.crc32, member.compressed_size, member.size)
                try:
                    expected = magic + struct.pack(f"<I{sizes}", *numbers)
                except struct.error:
                    continue
                if found.startswith(expected):
                    return len(expected)
        return 0


def _gap(name: str, expected: int, found: int) -> str:
    kind = "overlap before" if found < expected else "unlisted bytes before"
    return f"{abs(found - expected)} bytes {kind} {name}"


def _raise_if(problems: list[str], source: Source) -> None:
    if not problems:
        return
    shown = problems[:_SHOWN]
    if len(problems) > _SHOWN:
        shown.append(f"and {len(problems) - _SHOWN} more")
    raise ArchiveError(
        problems[0] if len(problems) == 1 else f"the archive has {len(problems)} faults",
        where=source.name,
        details=None if len(problems) == 1 else "\n".join(f"  - {problem}" for problem in shown),
        next_step="readers differ on such archives; get the wheel again from where it was published",
        data={"problems": problems},
    )
