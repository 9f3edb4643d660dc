"""The members in which a wheel says its name, version and tags, rewritten for another version or name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from patchwheel.wheel.metadata import (
    read_version_module,
    with_name,
    with_version,
    with_version_module,
    with_wheel_tags,
)

if TYPE_CHECKING:
    from patchwheel.wheel.archive import Archive
    from patchwheel.wheel.names import WheelName

__all__ = ["find_version_modules", "relabelled", "renamed"]

_VERSION_MODULE = re.compile(r"[^/]+/_version\.py")
_FOLDERS = (".dist-info", ".data")
"""The two folders of a wheel that are named after it."""


def find_version_modules(archive: Archive) -> dict[str, str]:
    """The generated ``<package>/_version.py`` files, and the version that each says.

    Raises:
        ArchiveError: One of them can't be read, or is no valid Python.
    """
    paths = [member.name for member in archive.members if _VERSION_MODULE.fullmatch(member.name)]
    told = {path: read_version_module(archive.read(path)) for path in paths}
    return {path: version for path, version in told.items() if version is not None}


def relabelled(archive: Archive, dist_info: str, old: WheelName, new: WheelName) -> dict[str, bytes]:
    """METADATA, WHEEL and the version modules for the new name, under the paths that they have in ``archive``.

    Raises:
        ArchiveError: One of them is missing, or not laid out as known.
    """
    metadata, wheel = f"{dist_info}/METADATA", f"{dist_info}/WHEEL"
    told = with_version(archive.read(metadata), new.version)
    if (name := new.other_than(old)) is not None:
        told = with_name(told, name)
    rewritten = {
        metadata: told,
        wheel: with_wheel_tags(archive.read(wheel), new),
    }
    for module, version in find_version_modules(archive).items():
        if version == old.version:  # other packages in the wheel may have versions of their own
            rewritten[module] = with_version_module(archive.read(module), old.version, new.version)
    return rewritten


def renamed(path: str, old: WheelName, new: WheelName) -> str:
    """Where a file of the base wheel lies in the wheel of the new name: the folders named after it follow."""
    top, slash, rest = path.partition("/")
    for suffix in _FOLDERS:
        own = canonicalize_name(top.removesuffix(suffix).partition("-")[0]) == canonicalize_name(old.distribution)
        if slash and top.endswith(suffix) and own:
            return f"{new.distribution}-{new.version}{suffix}/{rest}"
    return path
