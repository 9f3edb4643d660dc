"""The members in which a wheel says its version and tags, rewritten for another version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.wheel.metadata import read_version_module, with_version, with_version_module, with_wheel_tags

if TYPE_CHECKING:
    from patchwheel.wheel.archive import Archive
    from patchwheel.wheel.names import WheelName

__all__ = ["find_version_modules", "relabelled"]


def find_version_modules(archive: Archive, version: str) -> tuple[str, ...]:
    """Paths of the generated ``<package>/_version.py`` files that name this version.

    Raises:
        ArchiveError: One of them can't be read, or is no valid Python.
    """
    candidates = [
        member.name
        for member in archive.members
        if member.name.count("/") == 1 and member.name.endswith("/_version.py")
    ]
    return tuple(name for name in candidates if read_version_module(archive.read(name)) == version)


def relabelled(archive: Archive, dist_info: str, old: WheelName, new: WheelName) -> dict[str, bytes]:
    """METADATA, WHEEL and the version modules for the new name, under the paths that they have in ``archive``.

    Raises:
        ArchiveError: One of them is missing, or not laid out as known.
    """
    metadata, wheel = f"{dist_info}/METADATA", f"{dist_info}/WHEEL"
    rewritten = {
        metadata: with_version(archive.read(metadata), new.version),
        wheel: with_wheel_tags(archive.read(wheel), new),
    }
    for module in find_version_modules(archive, old.version):
        rewritten[module] = with_version_module(archive.read(module), old.version, new.version)
    return rewritten
