"""Wheel file names, their tags, and the dist-info folder that belongs to them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchwheel.errors import ArchiveError

__all__ = ["WheelName", "parse_wheel_name", "wheel_arch"]

_LINUX = re.compile(r"(?:manylinux|musllinux)_\d+_\d+_(?P<new>\w+)|(?:linux|manylinux1|manylinux20\d\d)_(?P<old>\w+)")


@dataclass(frozen=True, kw_only=True)
class WheelName:
    """The parts of ``name-version[-build]-python-abi-platform.whl``, as they are spelled."""

    distribution: str
    version: str
    build: str | None
    python: str
    abi: str
    platform: str

    @property
    def file_name(self) -> str:
        """The parts joined again."""
        build = [self.build] if self.build else []
        return "-".join([self.distribution, self.version, *build, self.python, self.abi, self.platform]) + ".whl"

    @property
    def dist_info(self) -> str:
        """Name of the metadata folder inside the wheel."""
        return f"{self.distribution}-{self.version}.dist-info"

    @property
    def tags(self) -> tuple[str, ...]:
        """Every single tag that the compressed tag set stands for, in the order of the file name."""
        return tuple(
            f"{python}-{abi}-{platform}"
            for python in self.python.split(".")
            for abi in self.abi.split(".")
            for platform in self.platform.split(".")
        )

    def with_version(self, version: str) -> WheelName:
        """The same wheel under another version."""
        return replace(self, version=version)

    def with_distribution(self, name: str | None) -> WheelName:
        """The same wheel of another project, by its normalised name; of the same one if there is none."""
        return self if name is None else replace(self, distribution=name.replace("-", "_"))

    def other_than(self, base: WheelName) -> str | None:
        """The normalised name of its project if that is another than the base's."""
        ours = canonicalize_name(self.distribution)
        return None if ours == canonicalize_name(base.distribution) else ours

    def names_dist_info(self, folder: str) -> bool:
        """Whether a dist-info folder is this wheel's, by normalised name and version."""
        name, dash, version = folder.removesuffix(".dist-info").partition("-")
        if not dash or not folder.endswith(".dist-info"):
            return False
        try:
            same_version = Version(version) == Version(self.version)
        except ValueError:
            return False
        return same_version and canonicalize_name(name) == canonicalize_name(self.distribution)


def parse_wheel_name(file_name: str) -> WheelName:
    """Take a wheel's file name apart.

    Raises:
        ArchiveError: It is no valid wheel file name.
    """
    try:
        parse_wheel_filename(file_name)
    except ValueError as error:  # also of a number with thousands of digits
        raise ArchiveError(
            "not a wheel file name",
            where=file_name,
            expected="name-version[-build]-python-abi-platform.whl",
            found=str(error),
        ) from error
    distribution, version, *build, python, abi, platform = file_name.removesuffix(".whl").split("-")
    return WheelName(
        distribution=distribution,
        version=version,
        build=build[0] if build else None,
        python=python,
        abi=abi,
        platform=platform,
    )


def wheel_arch(file_name: str) -> str | None:
    """The machine that a wheel is for, such as ``x86_64``.

    Returns:
        Nothing if the wheel is not for Linux, is for any machine, or for several.

    Raises:
        packaging.utils.InvalidWheelFilename: It is no wheel file name (a ``ValueError``, which models may raise).
    """
    matches = [_LINUX.fullmatch(tag.platform) for tag in parse_wheel_filename(file_name)[3]]
    arches = {(match["new"] or match["old"]) if match else None for match in matches}
    return arches.pop() if len(arches) == 1 else None
