"""Series with patches left out: for wheels that show what a patch is for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from patchwheel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from patchwheel.series.model import Series

__all__ = ["leave_out"]

MOST_LINES = 500
"""By how many lines a hunk may be moved because an earlier patch is missing; its place must still be the only one."""


def leave_out(series: Sequence[Series], names: Collection[str]) -> list[Series]:
    """The series without some of their patches.

    What is left may be moved, since it was made for files that the missing patches had changed. It must still fit
    word for word in one place alone, and what came to lie elsewhere is told like any declared offset.

    Args:
        series: All series of a recipe.
        names: Patches, as ``<series>/<patch>``.

    Raises:
        UsageError: There is no such patch, or nothing would be left.
    """
    if not names:
        return list(series)
    known = [f"{one.name}/{patch.name}" for one in series for patch in one.patches]
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"no such patch to leave out: {', '.join(unknown)}", expected="among " + ", ".join(known))
    rest = [
        replace(
            one,
            patches=tuple(
                replace(patch, allow_offset=max(patch.allow_offset, MOST_LINES))
                for patch in one.patches
                if f"{one.name}/{patch.name}" not in names
            ),
        )
        for one in series
    ]
    rest = [one for one in rest if one.patches]
    if not rest:
        raise UsageError("every patch is left out", next_step="install the base wheel itself")
    return rest
