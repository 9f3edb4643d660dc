"""Put a published release into the lock: the only moment at which an index is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patchwheel.base.access import USUAL, Access
from patchwheel.base.lock import BasesLock, LockedBase, LockedFile, LockedWheel, load_lock, write_lock
from patchwheel.base.settings import forbids_network
from patchwheel.base.store import holding
from patchwheel.errors import IntegrityError, NetworkError, PinError, UsageError
from patchwheel.progress import SILENT, Reporter, format_size
from patchwheel.wheel.names import wheel_arch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import requests

    from patchwheel.base.index import IndexFile
    from patchwheel.base.patience import Patience

__all__ = ["lock_base"]

ARCHES = ("x86_64", "aarch64")
"""Machines whose wheels are locked."""


def lock_base(
    requirement: str,
    lock_path: Path,
    *,
    access: Access = USUAL,
    reporter: Reporter = SILENT,
) -> LockedBase:
    """Add one release to the lock file, or the files that it has gained since. Files once locked stay.

    Others may write to the lock file meanwhile: it is held only to add the result, and read again for that.

    Args:
        requirement: ``PROJECT==VERSION``.
        lock_path: The lock file; made if it isn't there.
        access: Where files come from, and the cache, which has the lock on the lock file.
        reporter: Is told what happens, also that a file was withdrawn by its publisher.

    Raises:
        UsageError: ``requirement`` is not of that form, or a variable of patchwheel's says something that it
            may not say.
        NetworkError: No index has the release, or its wheels can't be read, or ``PATCHWHEEL_OFFLINE`` forbids
            to ask.
        PinError: The release has no wheel that could be a base, or the index gives no sha256 of a file.
        IntegrityError: The index has another file than locked under the same name.
        ArchiveError: A wheel's variant can't be told.
        ConfigError: The lock or the settings can't be read.
        OutputError: The lock or the cache can't be written.
    """
    project, version = _release(requirement)
    if forbids_network():
        raise NetworkError(
            f"can't lock {project} {version} without the network",
            next_step="unset PATCHWHEEL_OFFLINE",
        )
    from patchwheel.base.http import open_session  # noqa: PLC0415  (requests takes long to import)
    from patchwheel.base.index import Index  # noqa: PLC0415

    locked = _find(load_lock(lock_path), project, version)
    known = {entry.file: entry for entry in locked.files}
    settings = access.read_settings()
    with open_session(settings) as session:
        listed = Index(settings, session, patience=access.patience, reporter=reporter).files(project, version)
        wheels = [each for each in listed if each.file.endswith(".whl") and wheel_arch(each.file) in ARCHES]
        sdists = [each for each in listed if each.file.endswith(".tar.gz")]
        _check(project, version, [*wheels, *sdists], known, reporter)
        added = [
            _lock_file(each, session, access.patience, reporter)
            for each in [*wheels, *sdists]
            if each.file not in known
        ]
    waiting = f"another process is writing {lock_path.name}: waiting for it"
    with holding(access.find_store().lock_of(lock_path), waiting, reporter):
        lock = load_lock(lock_path)
        base = _with_files(_find(lock, project, version), added)
        write_lock(lock_path, lock.with_base(base))
    return base


def _find(lock: BasesLock, project: str, version: str) -> LockedBase:
    return lock.find(project, version) or LockedBase(project=project, version=version)


def _with_files(base: LockedBase, added: Iterable[LockedFile]) -> LockedBase:
    """The base with more files; those that it has stay, and must be the same."""
    entries = {entry.file: entry for entry in base.files}
    for each in added:
        present = entries.setdefault(each.file, each)
        if present.sha256 != each.sha256:
            raise _changed(each.file, present.sha256, each.sha256)
    return LockedBase(
        project=base.project,
        version=base.version,
        sdist=next((entry for entry in entries.values() if not isinstance(entry, LockedWheel)), None),
        wheels=tuple(entry for entry in entries.values() if isinstance(entry, LockedWheel)),
    )


def _release(requirement: str) -> tuple[str, str]:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  (slow to import)

    try:
        parsed = Requirement(requirement)
        [specifier] = parsed.specifier
        version = str(Version(specifier.version))
    except (InvalidRequirement, InvalidVersion, ValueError) as error:
        raise _not_exact(requirement) from error
    if specifier.operator != "==" or parsed.extras or parsed.marker or parsed.url:
        raise _not_exact(requirement)
    return canonicalize_name(parsed.name), version


def _not_exact(requirement: str) -> UsageError:
    return UsageError(
        "a base is locked by its exact version",
        expected="PROJECT==VERSION, such as vllm==0.20.2",
        found=requirement,
    )


def _check(
    project: str,
    version: str,
    listed: list[IndexFile],
    known: Mapping[str, LockedFile],
    reporter: Reporter,
) -> None:
    for each in listed:
        locked = known.get(each.file)
        if each.sha256 is not None and locked is not None and locked.sha256 != each.sha256:
            raise _changed(each.file, locked.sha256, each.sha256)
        if each.yanked:
            reporter.say(f"{each.file} was withdrawn by its publisher")
    for file in known.keys() - {each.file for each in listed}:
        reporter.say(f"{file} is locked, but the index no longer lists it")
    if not any(file.endswith(".whl") for file in {*known, *(each.file for each in listed)}):
        raise PinError(
            f"{project} {version} has no wheel that could be a base",
            expected=f"wheels for Linux on {' or '.join(ARCHES)}",
            found=", ".join(each.file for each in listed) or "no such files",
            next_step="lock a release that has one, or name a wheel of your own under base.wheels of the recipe",
        )


def _changed(file: str, locked: str, found: str) -> IntegrityError:
    return IntegrityError(
        f"the index has another {file} than the one that is locked",
        where=file,
        expected=f"sha256 {locked}",
        found=f"sha256 {found}",
        next_step="find out why a published file changed before you remove it from the lock",
    )


def _lock_file(listed: IndexFile, session: requests.Session, patience: Patience, reporter: Reporter) -> LockedFile:
    from patchwheel.base.remote import open_source  # noqa: PLC0415  (requests takes long to import)
    from patchwheel.base.variant import read_variant  # noqa: PLC0415

    if listed.sha256 is None:
        raise PinError(
            f"the index gives no sha256 of {listed.file}",
            where=listed.file,
            next_step="lock from an index that gives one, or name the wheel under base.wheels of the recipe",
        )
    is_wheel = listed.file.endswith(".whl")
    if not is_wheel and listed.size is not None:
        return LockedFile(file=listed.file, size=listed.size, sha256=listed.sha256)
    with open_source(session, listed.url, size=listed.size, patience=patience, reporter=reporter) as source:
        if not is_wheel:
            return LockedFile(file=listed.file, size=source.size, sha256=listed.sha256)
        variant = read_variant(source, listed.file)
        read = format_size(getattr(source, "transferred", source.size))
        reporter.say(f"{listed.file} is {variant} (read {read} of {format_size(source.size)})")
        return LockedWheel(file=listed.file, size=source.size, sha256=listed.sha256, variant=variant)
