"""Which wheel a recipe's base is: one file, by sha256, from the lock or from the recipe itself."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchwheel.base.lock import LockedBase, LockedFile, load_lock
from patchwheel.base.settings import redact
from patchwheel.errors import ConfigError, PinError
from patchwheel.wheel.names import wheel_arch

if TYPE_CHECKING:
    from pathlib import Path

    from patchwheel.project import Project
    from patchwheel.recipe import PinnedWheel, Recipe

__all__ = ["BasePin", "pin_base", "pin_locked", "pin_sdist"]


@dataclass(frozen=True, kw_only=True)
class BasePin:
    """One file of a base, named by its digest. The ``repr`` leaves out its address: it may hold credentials.

    Attributes:
        project: Distribution name, as the index spells it.
        version: Version of the release.
        variant: Architecture and device, such as ``x86_64-cu13``, or ``source`` for an sdist.
        file: File name.
        size: Length in bytes, if it is pinned.
        sha256: Digest that the file must have.
        url: Where the recipe says to get it; without this and ``path`` the user's indexes are asked.
        path: Where it lies on this machine.
    """

    project: str
    version: str
    variant: str
    file: str
    size: int | None
    sha256: str
    url: str | None = field(default=None, repr=False)
    path: Path | None = None


def pin_base(recipe: Recipe, recipe_path: Path, project: Project, variant: str | None = None) -> BasePin:
    """The base wheel to build on.

    Args:
        recipe: Names the base.
        recipe_path: The recipe's file; paths of wheels are relative to it.
        project: Has the lock.
        variant: The variant to build, by default the one that fits this machine.

    Raises:
        UsageError: The recipe has no such variant.
        PinError: The lock has no such base or variant.
        ConfigError: The lock can't be read, or the recipe names a wheel of another project, version or
            architecture.
    """
    variant = recipe.choose_variant(variant)
    for number, wheel in enumerate(recipe.base.wheels):
        if wheel.variant == variant:
            return _pin_given(wheel, recipe, recipe_path, f"{recipe_path}: base.wheels[{number}]")
    base = _locked(recipe, project)
    locked = base.wheel(variant)
    if locked is None:
        raise PinError(
            f"the lock has no {variant} wheel of {base.project} {base.version}",
            where=str(project.bases_lock),
            expected=variant,
            found=", ".join(sorted({wheel.variant for wheel in base.wheels})) or "no wheels",
            next_step="choose one of these in the recipe, or name a wheel of your own under base.wheels",
        )
    return pin_locked(base, locked, variant)


def pin_sdist(recipe: Recipe, project: Project) -> BasePin:
    """The source distribution of the base, for strategies that compile.

    Raises:
        PinError: The lock has no such base, or the base was published without sources.
        ConfigError: The lock can't be read.
    """
    base = _locked(recipe, project)
    if base.sdist is None:
        raise PinError(
            f"the lock has no source distribution of {recipe.base.project} {recipe.base.version}",
            where=str(project.bases_lock),
            next_step="use the overlay strategy, which needs the wheel alone",
        )
    return pin_locked(base, base.sdist, "source")


def pin_locked(base: LockedBase, file: LockedFile, variant: str) -> BasePin:
    """The pin of one file of a locked base."""
    return BasePin(
        project=base.project,
        version=base.version,
        variant=variant,
        file=file.file,
        size=file.size,
        sha256=file.sha256,
    )


def _locked(recipe: Recipe, project: Project) -> LockedBase:
    wanted = recipe.base
    base = load_lock(project.bases_lock).find(wanted.project, wanted.version)
    if base is None:
        raise PinError(
            f"{wanted.project} {wanted.version} is not locked",
            where=str(project.bases_lock),
            next_step=f"run `patchwheel base lock {wanted.project}=={wanted.version}` and review its entry",
        )
    return base


def _pin_given(wheel: PinnedWheel, recipe: Recipe, recipe_path: Path, where: str) -> BasePin:
    path = recipe_path.parent / wheel.path if wheel.path is not None else None
    if wheel.url is not None:
        _check_url(wheel.url, where)
    file = PurePosixPath(unquote(urlsplit(wheel.url).path)).name if wheel.url is not None else str(path and path.name)
    _check_name(file, wheel.variant, recipe, where)
    return BasePin(
        project=recipe.base.project,
        version=recipe.base.version,
        variant=wheel.variant,
        file=file,
        size=wheel.size,
        sha256=wheel.sha256,
        url=wheel.url,
        path=path,
    )


def _check_name(file: str, variant: str, recipe: Recipe, where: str) -> None:
    """A wheel may have a local version, but must be of the recipe's release and the variant's machine."""
    wanted = recipe.base
    try:
        project, version, _, _ = parse_wheel_filename(file)
        arch = wheel_arch(file)
    except ValueError as error:
        raise ConfigError("not a wheel file name", where=where, found=file) from error
    expected = canonicalize_name(wanted.project), Version(wanted.version).public, variant.rpartition("-")[0]
    if (project, version.public, arch) != expected:
        raise ConfigError(
            f"{file} is not a wheel of this base and variant",
            where=where,
            expected=" ".join(expected),
            found=f"{project} {version.public} {arch or 'no single Linux architecture'}",
        )


def _check_url(url: str, where: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        return
    raise ConfigError(
        "a wheel's address must be https",
        where=where,
        found=redact(url),
        next_step="use https, or download the file and name its path",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
