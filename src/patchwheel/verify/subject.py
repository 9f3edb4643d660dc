"""The wheel under check, with the things that several checks need worked out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING

from patchwheel.build.record import RECORD_NAME, read_record
from patchwheel.errors import ArchiveError
from patchwheel.files import sha256_file
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.content import digest_members
from patchwheel.wheel.metadata import find_dist_info, only_dist_info
from patchwheel.wheel.names import WheelName, parse_wheel_name
from patchwheel.wheel.record import Row, parse_record
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from patchwheel.build.record import BuildRecord
    from patchwheel.wheel.content import Content

__all__ = ["Base", "Subject"]


@dataclass(frozen=True)
class Base:
    """The base wheel to compare with. Properties raise `ArchiveError` where it is malformed."""

    file: IO[bytes]
    file_name: str

    @cached_property
    def sha256(self) -> str:
        """Digest of the file as it is now; a file can be written to while it is open."""
        return sha256_file(self.file)

    @cached_property
    def archive(self) -> Archive:
        """Its members."""
        return Archive(FileSource(self.file, self.file_name))

    @cached_property
    def name(self) -> WheelName:
        """Its file name, taken apart."""
        return parse_wheel_name(self.file_name)

    @cached_property
    def dist_info(self) -> str:
        """Its metadata folder."""
        return find_dist_info(self.archive, self.name)


@dataclass(frozen=True)
class Subject:
    """A wheel whose archive can be read. Properties raise `ArchiveError` where the wheel is malformed."""

    archive: Archive
    file_name: str
    base: Base | None = None
    no_base: str = ""
    """What to do about an absent base."""
    probes: Path | None = None
    """Folder of the series' probes, if it is at hand."""

    @cached_property
    def name(self) -> WheelName:
        """The file name, taken apart."""
        return parse_wheel_name(self.file_name)

    @cached_property
    def dist_info(self) -> str:
        """The metadata folder, whether it fits the file name or not: the identity check tells."""
        return only_dist_info(self.archive)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows of RECORD."""
        return parse_record(self.archive.read(f"{self.dist_info}/RECORD"))

    @cached_property
    def contents(self) -> Mapping[str, Content]:
        """Every member's content digested, by the algorithm that RECORD uses for it (sha256 if it has none)."""
        try:
            algorithms = {row.path: row.algorithm for row in self.rows if row.algorithm}
        except ArchiveError:  # the record check tells; the archive check wants the content all the same
            algorithms = {}
        return digest_members(self.archive, self.archive.members, algorithms)

    @cached_property
    def build_record(self) -> BuildRecord | None:
        """The build record, if patchwheel built this wheel."""
        data = self.archive.read_if_there(f"{self.dist_info}/{RECORD_NAME}")
        return None if data is None else read_record(data)
