"""The lock of all bases, ``manifests/bases.lock.toml``: which files a release consists of, by sha256.

The lock names no index. Where a file comes from does not matter as long as its digest is the locked one.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import tomli_w
from msgspec import Meta
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from patchwheel.documents import load_toml
from patchwheel.files import write_atomically
from patchwheel.recipe import Sha256, Variant  # noqa: TC001  (msgspec reads annotations at run time)
from patchwheel.wheel.names import wheel_arch

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BasesLock", "LockedBase", "LockedFile", "LockedWheel", "load_lock", "write_lock"]

_HEADER = """\
# The files of each base. Written by `patchwheel base lock PROJECT==VERSION`; not meant to be edited.

"""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A table of the lock: unknown keys are refused, names are written with dashes."""


class LockedFile(_Table, frozen=True):
    """A published file. ``size`` is in bytes."""

    file: Annotated[str, Meta(description="file name on the package index")]
    size: Annotated[int, Meta(gt=0)]
    sha256: Sha256

    def __post_init__(self) -> None:
        if PurePosixPath(self.file).name != self.file:
            raise ValueError(f"{self.file!r} is no plain file name")


class LockedWheel(LockedFile, frozen=True):
    """A published wheel and the variant that it is."""

    variant: Variant

    def __post_init__(self) -> None:
        super().__post_init__()
        if (arch := wheel_arch(self.file)) != (named := self.variant.rpartition("-")[0]):
            raise ValueError(f"{self.file} is for {arch}, not for {named}")


class LockedBase(_Table, frozen=True):
    """One release: its wheels and, if it was published, its source distribution."""

    project: str
    version: str
    sdist: LockedFile | None = None
    wheels: tuple[LockedWheel, ...] = ()

    def __post_init__(self) -> None:
        release = canonicalize_name(self.project), Version(self.version)
        names = [wheel.file for wheel in self.wheels]
        found = [parse_wheel_filename(name)[:2] for name in names]
        if self.sdist:
            names.append(self.sdist.file)
            found.append(parse_sdist_filename(self.sdist.file))
        for name, parts in zip(names, found, strict=True):
            if parts != release:
                raise ValueError(f"{name} is no file of {self.project} {self.version}")
        if len(set(names)) < len(names):
            raise ValueError(f"a file of {self.project} {self.version} is listed twice")

    @property
    def files(self) -> tuple[LockedFile, ...]:
        """Wheels and sdist."""
        return (*self.wheels, *((self.sdist,) if self.sdist else ()))

    def wheel(self, variant: str) -> LockedWheel | None:
        """The wheel of a variant; of several, the one with the highest build tag, as installers choose."""
        fitting = [wheel for wheel in self.wheels if wheel.variant == variant]
        return max(fitting, key=lambda wheel: parse_wheel_filename(wheel.file)[2], default=None)


class BasesLock(_Table, frozen=True):
    """All locked bases. The schema of ``manifests/bases.lock.toml``."""

    schema: Literal["patchwheel.bases/1"]
    bases: tuple[LockedBase, ...] = ()

    def __post_init__(self) -> None:
        releases = [_release(base) for base in self.bases]
        if len(set(releases)) < len(releases):
            raise ValueError("a base is listed twice")

    def find(self, project: str, version: str) -> LockedBase | None:
        """The base of this project and version, however they are spelled."""
        wanted = canonicalize_name(project), Version(version)
        return next((base for base in self.bases if _release(base) == wanted), None)

    def with_base(self, base: LockedBase) -> BasesLock:
        """The same lock with one base added, or put in place of the one of the same release."""
        others = [other for other in self.bases if _release(other) != _release(base)]
        return BasesLock(schema="patchwheel.bases/1", bases=tuple(sorted([*others, base], key=_release)))


def load_lock(path: Path) -> BasesLock:
    """Read the lock; a missing file is an empty lock.

    Raises:
        ConfigError: It can't be read, or says something that a lock may not say.
    """
    return load_toml(path, BasesLock) if path.exists() else BasesLock(schema="patchwheel.bases/1")


def write_lock(path: Path, lock: BasesLock) -> None:
    """Write the lock, whole or not at all, in an order that depends on its content alone.

    Raises:
        OutputError: It can't be written.
    """
    ordered = BasesLock(schema="patchwheel.bases/1", bases=tuple(sorted(map(_in_order, lock.bases), key=_release)))
    write_atomically(path, (_HEADER + tomli_w.dumps(msgspec.to_builtins(ordered))).encode())


def _in_order(base: LockedBase) -> LockedBase:
    wheels = sorted(base.wheels, key=lambda wheel: (wheel.variant, parse_wheel_filename(wheel.file)[2], wheel.file))
    return msgspec.structs.replace(base, wheels=tuple(wheels))


def _release(base: LockedBase) -> tuple[str, Version]:
    return canonicalize_name(base.project), Version(base.version)
