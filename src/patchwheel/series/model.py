"""What a series is: the schema of ``patches/<series>/series.toml``, and a series ready to be applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from patchwheel.series.diff import FilePatch
    from patchwheel.series.header import Header

__all__ = ["BasePatches", "Patch", "PatchEntry", "Series", "SeriesFile"]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of a series file: unknown keys are refused, names are written with dashes."""


class PatchEntry(_Table, frozen=True):
    """One patch of a series."""

    file: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{4}-[A-Za-z0-9][A-Za-z0-9._-]*\.patch$",
            description="file name in the folder of the base version, such as 0001-layer-ids.patch",
        ),
    ]
    changes: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="every file that the patch changes in the wheel, and no other"),
    ]
    allow_offset: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="number of lines by which a hunk may be moved if its place is unique; 0 asks for "
            "the very file that the patch was made for",
        ),
    ] = 0


class BasePatches(_Table, frozen=True):
    """The patches of a series for one base version."""

    patches: Annotated[tuple[PatchEntry, ...], Meta(min_length=1, description="in the order of their numbers")]
    dropped: Annotated[
        tuple[str, ...],
        Meta(description="globs of files that wheels don't carry, such as tests/**; their changes are left out"),
    ] = ()


class SeriesFile(_Table, frozen=True):
    """A series. The schema of ``patches/<series>/series.toml``."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="the series' name, as its folder's")]
    purpose: Annotated[str, Meta(description="one sentence: what the series is for")]
    base: Annotated[
        dict[str, BasePatches],
        Meta(min_length=1, description="the patches by base version; there is a folder of that name for each"),
    ]
    package: Annotated[
        str,
        Meta(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", description="import package that the series may touch"),
    ] = "vllm"

    def __post_init__(self) -> None:
        for version in self.base:
            try:
                plain = str(Version(version))
            except InvalidVersion as error:
                raise ValueError(f"base {version!r} is no version") from error
            if plain != version:
                raise ValueError(f"write base version {version!r} as {plain!r}")


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One patch, read and checked, ready to be applied.

    Args:
        name: File name, or short commit id and title.
        sha256: Digest of its bytes.
        header: What it is for.
        files: What it does to the files that wheels carry.
        dropped: Paths of the files that it also changes, but which were left out.
        allow_offset: Number of lines by which a hunk may be moved.
    """

    name: str
    sha256: str
    header: Header
    files: tuple[FilePatch, ...]
    dropped: tuple[str, ...] = ()
    allow_offset: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files that it changes in the wheel, in order."""
        return tuple(path for file in self.files for path in file.paths)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Patches for one base version, in order.

    Args:
        name: Name of the series.
        purpose: What it is for, as one sentence.
        package: Import package that it may touch.
        patches: The patches.
        dropped: Globs of files that were left out.
    """

    name: str
    purpose: str
    package: str
    patches: tuple[Patch, ...]
    dropped: tuple[str, ...] = ()
