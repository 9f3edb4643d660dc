"""The machine architecture that a wheel's file name stands for."""

from __future__ import annotations

import re

from packaging.utils import parse_wheel_filename

__all__ = ["wheel_arch"]

_LINUX = re.compile(r"(?:manylinux|musllinux)_\d+_\d+_(?P<new>\w+)|(?:linux|manylinux1|manylinux20\d\d)_(?P<old>\w+)")


def wheel_arch(file_name: str) -> str | None:
    """For example ``x86_64``; nothing if the wheel is not for Linux, for any machine, or for several.

    Raises:
        packaging.utils.InvalidWheelFilename: It is no wheel file name (a ``ValueError``).
    """
    matches = [_LINUX.fullmatch(tag.platform) for tag in parse_wheel_filename(file_name)[3]]
    arches = {(match["new"] or match["old"]) if match else None for match in matches}
    return arches.pop() if len(arches) == 1 else None
