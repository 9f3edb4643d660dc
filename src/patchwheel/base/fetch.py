"""Get the file of a pin: from the recipe's path, the cache, or the network, and never unverified."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

from patchwheel.base.access import USUAL, Access
from patchwheel.base.settings import forbids_network
from patchwheel.base.store import Entry, open_verified
from patchwheel.errors import ConfigError, IntegrityError, NetworkError
from patchwheel.progress import SILENT, Reporter
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import requests

    from patchwheel.base.patience import Patience
    from patchwheel.base.pin import BasePin
    from patchwheel.base.settings import IndexSettings
    from patchwheel.wheel.source import Source

__all__ = ["fetch_base", "find_cached_base", "open_base", "peek_base"]


@contextmanager
def open_base(
    pin: BasePin,
    *,
    access: Access = USUAL,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Iterator[IO[bytes]]:
    """Open the pinned file, fetching it first if need be. What was hashed is what is read, by one descriptor.

    Args:
        pin: The file.
        access: Where files come from and go.
        offline: Don't use the network; ``PATCHWHEEL_OFFLINE=1`` in the environment says the same.
        reporter: Is told what happens.

    Raises:
        IntegrityError: The bytes that can be had differ from the pin.
        NetworkError: The file could not be had, or offline it is not in the cache.
        ConfigError: The recipe's path leads to no file, or the settings can't be read.
        UsageError: A variable of patchwheel's says something that it may not say.
        OutputError: The cache can't be written.
    """
    if pin.path is not None:
        file = _open_given(pin, pin.path)
    else:
        entry = access.entry(pin)
        file = _open_cached(entry, offline=offline or forbids_network(), reporter=SILENT) or _fetch(
            pin, entry, access, reporter
        )
    with file:
        yield file


def fetch_base(
    pin: BasePin,
    *,
    access: Access = USUAL,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Path:
    """Fetch the pinned file unless it is on this machine, and say where. All else as for `open_base`."""
    with open_base(pin, access=access, offline=offline, reporter=reporter):
        return pin.path or access.entry(pin).path


@contextmanager
def peek_base(
    pin: BasePin,
    *,
    access: Access = USUAL,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Iterator[Source]:
    """Read parts of the pinned file, touching nothing: from its path or the cache, else over the network.

    A file on this machine is verified. Of one on a server only the length can be compared with the pin, so
    that what is read from it is good enough to plan with, not to build from. Arguments as for `open_base`.

    Raises:
        IntegrityError: The file on this machine is damaged, or the one on the server has another length than
            pinned.
        NetworkError: It can't be reached, offline it is not in the cache, or the server grants no byte
            ranges.
        ConfigError: The recipe's path leads to no file, or the settings can't be read.
        UsageError: A variable of patchwheel's says something that it may not say.
    """
    if pin.path is not None:
        file: IO[bytes] | None = _open_given(pin, pin.path)
    else:
        file = _open_cached(access.entry(pin), offline=offline or forbids_network(), reporter=reporter)
    if file is not None:
        with file:
            yield FileSource(file)
        return
    from patchwheel.base.http import open_session  # noqa: PLC0415  (requests takes long to import)

    settings = access.read_settings()
    with ExitStack() as stack:
        session = stack.enter_context(open_session(settings))
        failures: list[NetworkError | IntegrityError] = []
        for url in _addresses(pin, settings, session, access.patience, reporter):
            try:
                source = _open_remote(stack, pin, url, session, patience=access.patience, reporter=reporter)
            except (NetworkError, IntegrityError) as error:
                failures.append(error)
            else:
                yield source
                return
        raise _none_of(pin, failures)


def find_cached_base(sha256: str, *, access: Access = USUAL) -> Path | None:
    """Where the cache has a file of this digest, if it does. Not verified here: hash what you open.

    ``sha256`` may come from anywhere; there is no file for what is no digest.
    """
    return access.find_store().find(sha256)


def _open_given(pin: BasePin, path: Path) -> IO[bytes]:
    try:
        return open_verified(
            path, pin.sha256, next_step="correct its path or its sha256 under base.wheels of the recipe"
        )
    except OSError as error:
        raise ConfigError(
            f"can't read the base wheel: {error.strerror}",
            where=str(path),
            next_step="correct its path under base.wheels of the recipe",
        ) from error


def _open_cached(entry: Entry, *, offline: bool, reporter: Reporter) -> IO[bytes] | None:
    """The cached file; online a damaged one counts as absent, for it can be had anew."""
    try:
        file = entry.open()
    except IntegrityError:
        if offline:
            raise
        reporter.say(f"the cached {entry.file} is damaged, so the server's is read; patchwheel base fetch mends it")
        return None
    if file is None and offline:
        raise NetworkError(
            f"{entry.file} is not in the cache, and the network may not be used",
            where=str(entry.path),
            next_step="run `patchwheel base fetch` with network (no --offline, PATCHWHEEL_OFFLINE unset), "
            "or copy the file there by hand",
        )
    return file


def _fetch(pin: BasePin, entry: Entry, access: Access, reporter: Reporter) -> IO[bytes]:
    with entry.held(reporter):
        try:
            file = entry.open()  # again: whoever held it before may have fetched it
        except IntegrityError as error:
            reporter.say(f"the cached {entry.file} is damaged ({error.found}): fetching it again")
            entry.evict()
            file = None
        if file is None:
            file = _download(pin, entry, access, reporter)
            entry.admit(file)
        return file


def _download(pin: BasePin, entry: Entry, access: Access, reporter: Reporter) -> IO[bytes]:
    """Try one address after the other; any that gives the pinned bytes will do."""
    from patchwheel.base.download import download  # noqa: PLC0415  (requests takes long to import)
    from patchwheel.base.http import open_session  # noqa: PLC0415

    failures: list[NetworkError | IntegrityError] = []
    settings = access.read_settings()
    with open_session(settings) as session:
        for url in _addresses(pin, settings, session, access.patience, reporter):
            try:
                return download(
                    session,
                    url,
                    entry.partial,
                    sha256=pin.sha256,
                    size=pin.size,
                    label=pin.file,
                    patience=access.patience,
                    reporter=reporter,
                )
            except (NetworkError, IntegrityError) as error:
                failures.append(error)
    raise _none_of(pin, failures)


def _open_remote(
    stack: ExitStack,
    pin: BasePin,
    url: str,
    session: requests.Session,
    *,
    patience: Patience,
    reporter: Reporter,
) -> Source:
    """The file at an address, once it has shown that it can be read."""
    from patchwheel.base.download import local_path, unreadable  # noqa: PLC0415  (requests takes long to import)
    from patchwheel.base.remote import RemoteSource  # noqa: PLC0415

    if (path := local_path(url)) is not None:
        try:
            file = open_verified(
                path, pin.sha256, next_step="get it from another index, or find out who changed the published file"
            )
        except OSError as error:
            raise unreadable(path, error) from error
        return FileSource(stack.enter_context(file))
    source = RemoteSource(session, url, size=pin.size, patience=patience, reporter=reporter)
    source.read_at(source.size - 1, 1)  # the end, which holds the archive's directory and is needed first
    return source


def _none_of(pin: BasePin, failures: list[NetworkError | IntegrityError]) -> NetworkError | IntegrityError:
    """The one failure, or one that tells of all."""
    if len(failures) == 1:
        return failures[0]
    return NetworkError(
        f"none of {len(failures)} addresses gave the pinned {pin.file}",
        details="\n".join(f"  - {error.where}: {error.what}" for error in failures),
        next_step=failures[0].next_step,
    )


def _addresses(
    pin: BasePin,
    settings: IndexSettings,
    session: requests.Session,
    patience: Patience,
    reporter: Reporter,
) -> Iterator[str]:
    if pin.url is not None:
        yield pin.url
        return
    from patchwheel.base.index import Index  # noqa: PLC0415  (its parser takes long to import)

    index = Index(settings, session, patience=patience, reporter=reporter)
    for found in index.addresses(pin.project, pin.file, pin.sha256):
        yield found.url
