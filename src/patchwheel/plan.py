"""Plan: what a build would do and why, worked out without side effects.

The strategy follows from what the patches touch. If every file they touch is a Python or data member of the base
wheel, or a new file inside its package, then nothing needs compiling and the strategy is ``overlay``: those members
are replaced and all others are copied as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from patchwheel.documents import canonical_json
from patchwheel.errors import ArchiveError, StrategyError
from patchwheel.files import sha256_bytes
from patchwheel.progress import format_size
from patchwheel.series import apply_series, shapes_the_wheel
from patchwheel.text import printable
from patchwheel.wheel.metadata import find_dist_info
from patchwheel.wheel.names import WheelName, parse_wheel_name
from patchwheel.wheel.relabel import find_version_modules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchwheel.base import BasePin
    from patchwheel.recipe import Recipe
    from patchwheel.series import Applied, Series
    from patchwheel.wheel.archive import Archive

__all__ = ["STRATEGIES", "Plan", "local_version", "make_plan"]

STRATEGIES = ("auto", "overlay")
"""Ways to build. ``auto`` chooses; so far there is one to choose."""

_COMPILED = re.compile(r"\.(so(\.\d+)*|pyd|pyc|a|o)$")
_DIGITS = 8
_BYTES_PER_SECOND = 120e6
"""Slow side of what copying, hashing and reading back reached on two cores (docs/explanation/overlay.md)."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What will be built, from what, and how.

    Attributes:
        strategy: Always ``overlay`` so far.
        reasons: Why this strategy, one sentence each.
        name: File name of the wheel to be, taken apart.
        base_name: The same of the base wheel.
        dist_info: Metadata folder of the base wheel.
        applied: The changed files with their content before and after.
        seconds: Rough time for the build, less any download.
        size: Rough size of the wheel in bytes.
    """

    recipe: Recipe
    base: BasePin
    series: tuple[Series, ...]
    strategy: str
    reasons: tuple[str, ...]
    name: WheelName
    base_name: WheelName
    dist_info: str
    applied: Applied
    seconds: float
    size: int

    def as_document(self) -> dict[str, object]:
        """The plan as a JSON-ready document."""
        return {
            "schema": "patchwheel.plan/1",
            "recipe": self.recipe.name,
            "strategy": self.strategy,
            "reasons": list(self.reasons),
            "base": {
                "project": self.base.project,
                "version": self.base.version,
                "variant": self.base.variant,
                "file": self.base.file,
                "sha256": self.base.sha256,
            },
            "series": [
                {
                    "name": series.name,
                    "patches": [{"name": patch.name, "sha256": patch.sha256} for patch in series.patches],
                }
                for series in self.series
            ],
            "changes": [
                {"path": change.path, "kind": change.kind, "patches": list(change.patches)}
                for change in self.applied.changes
            ],
            "offsets": [vars(offset) for offset in self.applied.offsets],
            "dropped": list(self.applied.dropped),
            "wheel": self.name.file_name,
            "project": canonicalize_name(self.name.distribution),
            "version": self.name.version,
            "estimate": {"seconds": round(self.seconds, 1), "bytes": self.size},
        }

    def as_text(self) -> str:
        """The plan as a person reads it."""
        lines = [
            f"recipe    {self.recipe.name}: {self.recipe.summary}",
            f"base      {self.base.file}",
            f"          {self.base.project} {self.base.version}, {self.base.variant}, sha256 {self.base.sha256}",
        ]
        for series in self.series:
            lines.append(f"series    {series.name}: {series.purpose}")
            lines += [f"          {patch.name}  sha256 {patch.sha256[:12]}…" for patch in series.patches]
        lines += [f"change    {change.kind:<7}{change.path}" for change in self.applied.changes]
        lines += [
            f"moved     {offset.path}: hunks by {', '.join(map(str, offset.lines))} lines"
            for offset in self.applied.offsets
        ]
        lines += [f"dropped   {path} (wheels don't carry it)" for path in self.applied.dropped]
        lines.append(f"strategy  {self.strategy}")
        lines += [f"          because {reason}" for reason in self.reasons]
        lines.append(f"wheel     {self.name.file_name}")
        if (name := self.name.other_than(self.base_name)) is not None:
            lines.append(f"          called {name}, for the base's {self.base.project}")
        lines.append(f"estimate  {format_size(self.size)} in about {self.seconds:.0f} s, once the base is in the cache")
        return printable("\n".join(lines))


def make_plan(
    recipe: Recipe, base: BasePin, series: Sequence[Series], archive: Archive, strategy: str = "auto"
) -> Plan:
    """Choose the strategy and work out every changed file.

    Args:
        recipe: What to build.
        base: The pinned base wheel.
        series: The recipe's series, loaded, in order.
        archive: The base wheel.
        strategy: One of `STRATEGIES`; ``auto`` is the cheapest that will do.

    Raises:
        StrategyError: A patch touches what an overlay can't rebuild, or the wanted strategy is not to be had.
        ConflictError: A patch does not apply exactly.
        ArchiveError: The base wheel is malformed.
    """
    if strategy not in STRATEGIES:
        raise StrategyError(f"there is no strategy {strategy!r}", expected="one of " + ", ".join(STRATEGIES))
    base_name = parse_wheel_name(base.file)
    dist_info = find_dist_info(archive, base_name)
    _refuse_other_versions(archive, base_name, series)
    _refuse_unless_overlay(series, archive, recipe)

    applied = apply_series(series, archive.read_if_there, names=archive.by_name)
    patches = [patch.sha256 for one in series for patch in one.patches]
    new_name = base_name.with_distribution(recipe.wheel.name)
    version = local_version(base_name.version, recipe.label, base.sha256, patches, name=new_name.other_than(base_name))
    count = len(applied.changes)
    growth = sum(len(change.after or b"") for change in applied.changes)
    size = archive.source.size + growth
    return Plan(
        recipe=recipe,
        base=base,
        series=tuple(series),
        strategy="overlay",
        reasons=(
            f"{_counted(count)} in the base wheel's package, and Python or data",
            _PROVEN if not applied.offsets else _MOVED,
            "no native source, build file or requirement is touched: no compiler is needed",
        ),
        name=new_name.with_version(version),
        base_name=base_name,
        dist_info=dist_info,
        applied=applied,
        seconds=max(1.0, size / _BYTES_PER_SECOND),
        size=size,
    )


def local_version(version: str, label: str, base: str, patches: Sequence[str], *, name: str | None = None) -> str:
    """The version of the wheel to be: ``<base version>+<label>.<8 hex digits>``.

    The digits are the start of a sha256 over the digests of the base wheel and of every patch in order, so two
    wheels of one version were made from the same input.

    Args:
        version: The base wheel's.
        label: The recipe's.
        base: sha256 of the base wheel.
        patches: sha256 of each patch, in order.
        name: The wheel's project if it is another than the base's; then it counts, too.
    """
    counted = {"base": base, "patches": list(patches), **({} if name is None else {"name": name})}
    digest = sha256_bytes(canonical_json(counted))[:_DIGITS]
    joint = "." if "+" in version else "+"
    # The normal form: a digest of decimal digits only counts as a number there and loses leading zeros.
    return str(Version(f"{version}{joint}{label}.{digest}"))


def _refuse_other_versions(archive: Archive, name: WheelName, series: Sequence[Series]) -> None:
    """The version module of a package that is patched must be one that the build knows how to write anew."""
    for path, told in find_version_modules(archive).items():
        if path.partition("/")[0] in {one.package for one in series} and told != name.version:
            raise ArchiveError(
                "the base wheel does not agree with itself on its version",
                where=f"{archive.source.name}: {path}",
                expected=name.version,
                found=told,
                next_step="choose another base, under the file name that it was published with",
            )


def _refuse_unless_overlay(series: Sequence[Series], archive: Archive, recipe: Recipe) -> None:
    refusals = [
        {"patch": patch.name, "path": path, "reason": reason}
        for one in series
        for patch in one.patches
        for path in patch.paths
        if (reason := _why_no_overlay(path, archive))
    ]
    if refusals:
        raise StrategyError(
            "these patches can't be built as an overlay",
            where=f"recipe {recipe.name}",
            details="\n".join(f"  - {entry['patch']}: {entry['path']}: {entry['reason']}" for entry in refusals),
            expected="only Python and data files of the base wheel, or new ones inside its package",
            next_step="take these files out of the patches; strategies that compile are not in this version",
            data={"refusals": refusals},
        )


def _why_no_overlay(path: str, archive: Archive) -> str | None:
    if path.count("/") == 1 and path.endswith("/_version.py"):
        return "the build writes this file itself"
    if _COMPILED.search(path):
        return "it is compiled code"
    # A header in the wheel is data, compiled on the user's machine; elsewhere it is source.
    return None if archive.get(path) else shapes_the_wheel(path)


_PROVEN = "before the patches, each file that they change was byte for byte the one that they were made for"
_MOVED = "hunks fit exactly, some of them moved by as many lines as the series allows"


def _counted(files: int) -> str:
    return "the one touched file is" if files == 1 else f"all {files} touched files are"
