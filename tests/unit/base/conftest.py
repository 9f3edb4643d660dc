"""A server, a cache, and an environment in which no setting of this machine is seen."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.fileserver import FileServer, running_server

from patchwheel.base import Access, IndexSettings, Patience, Store
from patchwheel.base.http import open_session
from patchwheel.progress import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import requests

QUICK = Patience(connect=2.0, stall=0.15, tries=3, failures=30, first_pause=0.0)


class Listener(Reporter):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.moved: list[int] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    @contextmanager
    def transfer(self, label: str, total: int | None, done: int = 0) -> Iterator[Callable[[int], None]]:
        del label, total
        self.moved.append(done)
        yield self.moved.append


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("PIP_", "UV_", "PATCHWHEEL_", "XDG_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATCHWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with open_session(IndexSettings(indexes=())) as session:
        yield session


@pytest.fixture
def patience() -> Patience:
    return QUICK


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(root=tmp_path / "cache")


@pytest.fixture
def settings(server: FileServer) -> IndexSettings:
    """The server as the only index."""
    return IndexSettings(indexes=(server.url("/simple/"),))


@pytest.fixture
def access(settings: IndexSettings, store: Store, patience: Patience) -> Access:
    """The server, an empty cache, and little patience."""
    return Access(settings=settings, store=store, patience=patience)
