"""Recipes: what to build. A recipe is a base, its series in order, and a version label."""

from __future__ import annotations

import platform
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta
from packaging.utils import canonicalize_name, is_normalized_name
from packaging.version import InvalidVersion, Version

from patchwheel.documents import load_toml
from patchwheel.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from patchwheel.project import Project

__all__ = [
    "DEFAULT_RECIPE",
    "BaseChoice",
    "GitSeries",
    "Install",
    "PinnedWheel",
    "Recipe",
    "WheelChoice",
    "find_recipe",
    "load_recipe",
]

DEFAULT_RECIPE = "dflash-swa-support"

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="sha256, 64 lower-case hex digits")]
Commit = Annotated[str, Meta(pattern="^[0-9a-f]{40}$", description="full git commit id, 40 lower-case hex digits")]
Variant = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9_]+-(cpu|cu[0-9]+)$",
        description="architecture and device of a wheel, such as x86_64-cu13 or aarch64-cpu",
    ),
]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of a recipe: unknown keys are refused, names are written with dashes."""


class PinnedWheel(_Table, frozen=True, kw_only=True):
    """A base wheel that is not in the lock: a file or an address, and the digest that it must have."""

    variant: Variant
    sha256: Sha256
    size: Annotated[int, Meta(gt=0, description="length in bytes; a longer download stops at once")] | None = None
    url: Annotated[str | None, Meta(description="https address of the wheel")] = None
    path: Annotated[str | None, Meta(description="wheel on this machine, relative to the recipe file")] = None

    def __post_init__(self) -> None:
        if (self.url is None) == (self.path is None):
            raise ValueError("give exactly one of url and path")


class BaseChoice(_Table, frozen=True, kw_only=True):
    """Which published release the patches go on."""

    project: Annotated[str, Meta(description="distribution name on the package index")]
    version: Annotated[str, Meta(description="exact version of the release")]
    variants: Annotated[
        tuple[Variant, ...],
        Meta(description="variants to build from the lock; without --variant the one for this machine is built"),
    ] = ()
    wheels: Annotated[
        tuple[PinnedWheel, ...], Meta(description="base wheels from files or addresses, in place of the lock")
    ] = ()

    def __post_init__(self) -> None:
        if bool(self.variants) == bool(self.wheels):
            raise ValueError("give either variants (from the lock) or wheels (files or addresses)")
        if canonicalize_name(self.project) != self.project:
            raise ValueError(f"write project as the index does: {canonicalize_name(self.project)!r}")
        try:
            version = Version(self.version)
        except InvalidVersion as error:
            raise ValueError(f"{self.version!r} is no version") from error
        if str(version) != self.version:
            raise ValueError(f"write version {self.version!r} as {str(version)!r}")

    @property
    def variant_names(self) -> tuple[str, ...]:
        """All variants that the recipe can be built for, the preferred first."""
        return self.variants or tuple(wheel.variant for wheel in self.wheels)


class GitSeries(_Table, frozen=True, kw_only=True):
    """A series taken from a git branch: the commits between its merge-base with the base release and ``commit``."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="name of the series")]
    purpose: Annotated[str, Meta(description="one sentence: what the series is for")]
    url: Annotated[str, Meta(description="address or path of the git repository")]
    commit: Annotated[Commit, Meta(description="the tip; only this counts")]
    base_commit: Annotated[Commit, Meta(description="commit that the base release was built from")]
    ref: Annotated[str | None, Meta(description="branch or pull request, for people; never resolved")] = None
    package: Annotated[str, Meta(description="import package that the series may touch")] = "vllm"
    dropped: Annotated[
        tuple[str, ...],
        Meta(description="globs of files that wheels don't carry, such as tests/**; changes to them are left out"),
    ] = ()
    squash: Annotated[
        bool, Meta(description="take the whole range as one patch (needed if it contains merge commits)")
    ] = False


class WheelChoice(_Table, frozen=True, kw_only=True):
    """What the wheel is called."""

    name: Annotated[
        str | None, Meta(description="distribution name of the wheel; without it that of the base wheel")
    ] = None

    def __post_init__(self) -> None:
        if self.name is not None and not is_normalized_name(self.name):
            raise ValueError(f"{self.name!r} is no distribution name as indexes write them: lower case, single dashes")


class Install(_Table, frozen=True, kw_only=True):
    """How the wheel is installed where it is tried. Nothing of this is in the wheel."""

    overrides: Annotated[
        tuple[str, ...],
        Meta(
            description="requirements that take the place of what any package says of the same project, such as "
            "torch==2.11.0; with a marker that never holds (sys_platform == 'never') the project is left out"
        ),
    ] = ()

    def __post_init__(self) -> None:
        if not self.overrides:
            return
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  (slow to import)

        for override in self.overrides:
            try:
                Requirement(override)
            except InvalidRequirement as error:
                raise ValueError(f"{override!r} is no requirement") from error


class Recipe(_Table, frozen=True, kw_only=True):
    """What to build. The schema of ``manifests/recipes/*.toml``."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="the recipe's name, as its file's")]
    summary: Annotated[str, Meta(description="one sentence: what the built wheel is for")]
    label: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9]+(\.[a-z0-9]+)*$",
            max_length=64,
            description="local version label (PEP 440) such as dflash.swa; a digest of base and patches is appended",
        ),
    ]
    base: BaseChoice
    series: Annotated[
        tuple[str | GitSeries, ...],
        Meta(
            min_length=1,
            description="what is applied, in this order: names of folders under patches/, or git sources",
        ),
    ]
    wheel: Annotated[WheelChoice, Meta(description="what the wheel is called")] = WheelChoice()
    install: Annotated[Install, Meta(description="how the wheel is installed where it is tried")] = Install()

    def __post_init__(self) -> None:
        names = [one if isinstance(one, str) else one.name for one in self.series]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"series lists {twice[0]!r} twice")

    def choose_variant(self, wanted: str | None = None) -> str:
        """The variant to build: the wanted one, else the one for this machine, else the recipe's first.

        Raises:
            UsageError: The recipe has no such variant.
        """
        names = self.base.variant_names
        if wanted is None:
            machine = re.sub("^arm64$", "aarch64", platform.machine().lower())
            return next((name for name in names if name.startswith(f"{machine}-")), names[0])
        if wanted not in names:
            raise UsageError(
                f"recipe {self.name} has no variant {wanted!r}",
                expected="one of " + ", ".join(names),
                next_step="choose one of these with --variant, or add it to the recipe",
            )
        return wanted


def load_recipe(path: Path) -> Recipe:
    """Read one recipe.

    Raises:
        ConfigError: The file can't be read, or says something that a recipe may not say.
    """
    recipe = load_toml(path, Recipe)
    if recipe.name != path.stem:
        raise ConfigError(
            "a recipe is named as its file",
            where=f"{path}: name",
            expected=path.stem,
            found=recipe.name,
            next_step="rename the one or the other",
        )
    return recipe


def find_recipe(name: str, project: Project) -> tuple[Recipe, Path]:
    """A recipe by name, or by path if ``name`` ends in ``.toml``; with the file it came from.

    Raises:
        UsageError: There is no such recipe.
        ConfigError: The recipe can't be read.
    """
    if name.endswith(".toml"):
        if not Path(name).is_file():
            raise UsageError("there is no such recipe file", where=name)
        return load_recipe(Path(name)), Path(name)
    known = sorted(entry.stem for entry in project.recipes.glob("*.toml"))
    if name not in known:
        close = get_close_matches(name, known, 1)
        raise UsageError(
            f"unknown recipe {name!r}",
            where=str(project.recipes),
            expected="one of " + ", ".join(known) + ", or the path of a .toml file",
            next_step=f"did you mean {close[0]}?" if close else None,
        )
    path = project.recipes / f"{name}.toml"
    return load_recipe(path), path
