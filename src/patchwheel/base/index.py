"""What the user's package indexes have: the files of a release, and the addresses of one pinned file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pypi_simple
import requests
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from patchwheel.base.download import local_path
from patchwheel.base.http import check_status, classified
from patchwheel.base.patience import persist
from patchwheel.base.settings import redact
from patchwheel.errors import IntegrityError, NetworkError
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from patchwheel.base.patience import Patience
    from patchwheel.base.settings import IndexSettings

__all__ = ["Index", "IndexFile"]

_ASKED = 3
"""How often an index is asked; there may be others."""


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """One file that an index lists. Its address may hold credentials, so it is left out of the ``repr``.

    Attributes:
        file: File name.
        url: Where it can be had.
        size: Length in bytes, if the index tells.
        sha256: Digest, if the index tells.
        yanked: Whether its publisher has withdrawn it.
    """

    file: str
    url: str = field(repr=False)
    size: int | None = None
    sha256: str | None = None
    yanked: bool = False


class Index:
    """All indexes that the settings name, asked one after the other."""

    def __init__(
        self,
        settings: IndexSettings,
        session: requests.Session,
        *,
        patience: Patience,
        reporter: Reporter = SILENT,
    ) -> None:
        self._session = session
        self._patience = replace(patience, tries=min(patience.tries, _ASKED))
        self._reporter = reporter
        endpoints = [pypi_simple.PYPI_SIMPLE_ENDPOINT if url is None else url for url in settings.indexes]
        self._places = [_Place(url, flat=False) for url in endpoints]
        self._places += [_Place(url, flat=True) for url in settings.find_links]

    def files(self, project: str, version: str) -> tuple[IndexFile, ...]:
        """The files of a release, as the first index that has the release lists them.

        Raises:
            NetworkError: No index has it; tells what each one answered.
        """
        answers: list[str] = []
        wanted = canonicalize_name(project), Version(version)
        for place in self._places:
            listed = self._list(place, project, answers)
            found = [each for each in listed if _release_of(each.file) == wanted]
            if found:
                return tuple(found)
            if releases := {release[1] for each in listed if (release := _release_of(each.file))}:
                answers.append(f"{redact(place.url)}: has {project}, the newest being {max(releases)}")
        raise _nowhere(f"{project} {version}", answers)

    def addresses(self, project: str, file: str, sha256: str) -> Iterator[IndexFile]:
        """Where a pinned file may be had: local places first, then by the order of the indexes.

        An index is asked only when the addresses before it have been used up. Files listed without a digest
        come after those with the pinned one.

        Raises:
            IntegrityError: Indexes have a file of this name, but each with another digest.
            NetworkError: None has it; tells what each one answered.
        """
        answers: list[str] = []
        others: list[str] = []
        unsure: list[IndexFile] = []
        count = 0
        for place in sorted(self._places, key=lambda place: place.folder is None):
            for each in self._list(place, project, answers):
                if each.file != file:
                    continue
                if each.sha256 == sha256 or (each.sha256 is None and place.folder):
                    count += 1
                    yield each
                elif each.sha256 is None:
                    unsure.append(each)
                else:
                    others.append(f"sha256 {each.sha256} at {redact(place.url)}")
        yield from unsure
        if others and not count and not unsure:
            raise IntegrityError(
                f"the index has a file named {file}, but it is another one than pinned",
                where=file,
                expected=f"sha256 {sha256}",
                found="; ".join(others),
                next_step="find out who changed the published file before you trust it",
            )
        if not count and not unsure:
            raise _nowhere(file, answers)

    def _list(self, place: _Place, project: str, answers: list[str]) -> list[IndexFile]:
        """What one place lists for a project; a place that fails is noted in ``answers`` and passed over."""
        try:
            found = self._ask(place, project)
        except NetworkError as error:
            answers.append(f"{redact(place.url)}: {error.what}")
            self._reporter.say(f"passing over the index {answers[-1]}")
            return []
        if not found:
            answers.append(f"{redact(place.url)}: doesn't have it")
        return found

    def _ask(self, place: _Place, project: str) -> list[IndexFile]:
        if place.folder is not None:
            return _read_folder(place, project)
        where = redact(place.url)
        return persist(
            lambda: self._request(place, project),
            patience=self._patience,
            where=where,
            reporter=self._reporter,
        )

    def _request(self, place: _Place, project: str) -> list[IndexFile]:
        where = redact(place.url)
        timeout = self._patience.timeout
        try:
            if place.flat:
                with classified(where), self._session.get(place.url, timeout=timeout) as response:
                    check_status(response, where)
                    page = pypi_simple.ProjectPage.from_response(response, project)
            else:
                client = pypi_simple.PyPISimple(place.url, session=self._session)
                with classified(where):
                    page = _project_page(client, project, timeout, where)
        except pypi_simple.NoSuchProjectError:
            return []
        except (
            ValueError,
            pypi_simple.UnsupportedContentTypeError,
            pypi_simple.UnsupportedRepoVersionError,
        ) as error:
            raise NetworkError("its answer is no package index page", where=where) from error
        return _files(page, place)


@dataclass(frozen=True)
class _Place:
    """An index, or (``flat``) a page or folder of files."""

    url: str
    flat: bool

    @property
    def folder(self) -> Path | None:
        """Its path, if it is on this machine."""
        return local_path(self.url)


def _project_page(
    client: pypi_simple.PyPISimple, project: str, timeout: tuple[float, float], where: str
) -> pypi_simple.ProjectPage:
    try:
        return client.get_project_page(project, timeout=timeout)
    except requests.HTTPError as error:
        check_status(error.response, where)
        raise


def _read_folder(place: _Place, project: str) -> list[IndexFile]:
    path = local_path(place.url)
    assert path is not None, "only asked for local places"  # noqa: S101
    if not path.exists():
        raise NetworkError("no such file or folder", where=str(path))
    if not place.flat:
        path = path / canonicalize_name(project) / "index.html"
    elif path.is_dir():
        return [IndexFile(file=each.name, url=each.as_uri(), size=each.stat().st_size) for each in _plain_files(path)]
    try:
        html = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise NetworkError(f"can't be read: {error.strerror}", where=str(path)) from error
    return _files(pypi_simple.ProjectPage.from_html(project, html, path.as_uri()), place)


def _plain_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz") and path.is_file())


def _files(page: pypi_simple.ProjectPage, place: _Place) -> list[IndexFile]:
    return [
        IndexFile(
            file=each.filename,
            url=_with_credentials(each.url, place.url),
            size=each.size,
            sha256=each.digests.get("sha256"),
            yanked=each.is_yanked,
        )
        for each in page.packages
        # A page from the network has no business with this machine's files.
        if place.folder or local_path(each.url) is None
    ]


def _with_credentials(url: str, index_url: str) -> str:
    """Use the credentials of an index for its files too, if they are on the same server."""
    parts, index = urlsplit(url), urlsplit(index_url)
    user, at, host = index.netloc.rpartition("@")
    if not at or parts.netloc != host or parts.scheme != index.scheme:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}@{host}"))


def _release_of(file: str) -> tuple[str, Version] | None:
    try:
        if file.endswith(".whl"):
            return parse_wheel_filename(file)[:2]
        return parse_sdist_filename(file)
    except ValueError:  # eggs, installers, and names from before there were rules
        return None


def _nowhere(what: str, answers: list[str]) -> NetworkError:
    return NetworkError(
        f"no index has {what}",
        details="\n".join(f"  - {answer}" for answer in answers) or None,
        next_step="check the network, or name an index that has it in PATCHWHEEL_INDEX_URL",
    )
