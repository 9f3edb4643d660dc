"""What indexes list, and what they may not make us believe."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from support.fileserver import Act, FileServer

from patchwheel.base import IndexSettings, Patience
from patchwheel.base.index import Index, IndexFile, _with_credentials
from patchwheel.errors import IntegrityError, NetworkError

if TYPE_CHECKING:
    from pathlib import Path

    import requests
    from unit.base.conftest import Listener

WHEEL = "vllm-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"
SDIST = "vllm-1.0.tar.gz"
OTHER = "vllm-1.0.1.tar.gz"
DATA = b"data"
SHA256 = hashlib.sha256(DATA).hexdigest()


class Asker:
    def __init__(self, server: FileServer, session: requests.Session, patience: Patience, listener: Listener) -> None:
        self.server, self.session, self.patience, self.listener = server, session, patience, listener

    def index(self, *indexes: str, find_links: tuple[str, ...] = ()) -> Index:
        urls = tuple(self.server.url(url) if url.startswith("/") else url for url in indexes)
        settings = IndexSettings(indexes=urls, find_links=find_links)
        return Index(settings, self.session, patience=self.patience, reporter=self.listener)

    def addresses(self, *indexes: str, find_links: tuple[str, ...] = ()) -> list[IndexFile]:
        return list(self.index(*indexes, find_links=find_links).addresses("vllm", WHEEL, SHA256))


@pytest.fixture
def asker(server: FileServer, session: requests.Session, patience: Patience, listener: Listener) -> Asker:
    return Asker(server, session, patience, listener)


def test_html_pages(asker: Asker) -> None:
    asker.server.index("vllm", {WHEEL: DATA, SDIST: None, OTHER: DATA, "vllm-1.0.exe": DATA})
    wheel, sdist = asker.index("/simple/").files("vllm", "1.0")
    assert wheel == IndexFile(file=WHEEL, url=asker.server.url(f"/files/{WHEEL}"), sha256=SHA256)
    assert (sdist.file, sdist.sha256) == (SDIST, None)


def test_json_pages(asker: Asker) -> None:
    entry = {"filename": WHEEL, "url": "/f", "hashes": {"sha256": SHA256}, "size": 4, "yanked": "broken"}
    page = {"meta": {"api-version": "1.1"}, "name": "vllm", "versions": ["1.0"], "files": [entry]}
    asker.server.files["/simple/vllm/"] = json.dumps(page).encode()
    asker.server.types["/simple/vllm/"] = "application/vnd.pypi.simple.v1+json"
    [found] = asker.index("/simple").files("VLLM", "1.0.0")
    assert found == IndexFile(file=WHEEL, url=asker.server.url("/f"), size=4, sha256=SHA256, yanked=True)


def test_the_first_index_with_the_release_is_believed(asker: Asker) -> None:
    asker.server.index("vllm", {WHEEL: DATA})
    asker.server.files["/first/vllm/"] = f'<a href="/f#sha256={SHA256}">{OTHER}</a>'.encode()
    asker.server.files["/first/vllm/"] += b'<a href="/g">vllm-0.9.tar.gz</a><a href="/h">vllm.exe</a>'
    asker.server.types["/first/vllm/"] = "text/html"
    assert [each.file for each in asker.index("/first/", "/simple/").files("vllm", "1.0")] == [WHEEL]
    assert [each.file for each in asker.index("/first/", "/simple/").files("vllm", "1.0.1")] == [OTHER]
    with pytest.raises(NetworkError, match=r"no index has vllm 2\.0") as caught:
        asker.index("/first/", "/simple/", "/none/").files("vllm", "2.0")
    assert (caught.value.details or "").splitlines() == [
        f"  - {asker.server.url('/first/')}: has vllm, the newest being 1.0.1",
        f"  - {asker.server.url('/simple/')}: has vllm, the newest being 1.0",
        f"  - {asker.server.url('/none/')}: doesn't have it",
    ]


def test_an_index_is_asked_again_if_it_falters(asker: Asker) -> None:
    asker.server.index("vllm", {WHEEL: DATA})
    asker.server.acts = [Act(status=503), Act(cut=5)]
    assert len(asker.addresses("/simple/")) == 1


def test_an_index_that_stays_down_is_told(asker: Asker) -> None:
    asker.server.default = Act(status=500)
    with pytest.raises(NetworkError, match="no index has") as caught:
        asker.addresses("/simple/")
    assert "answered 500" in (caught.value.details or "")
    assert len(asker.server.seen) == 3


def test_an_index_that_wants_credentials_is_told_without_them(asker: Asker) -> None:
    asker.server.default = Act(status=401)
    url = asker.server.url("/simple/").replace("//", "//user:secret@")
    with pytest.raises(NetworkError, match="no index has") as caught:
        asker.addresses(url)
    assert "answered 401" in str(caught.value)
    assert "secret" not in str(caught.value) + "".join(asker.listener.said)
    assert "Authorization" in asker.server.seen[0].headers


@pytest.mark.parametrize(
    ("kind", "page", "said"),
    [
        ("application/json", b"{}", "no package index page"),
        ("application/vnd.pypi.simple.v1+json", b"{nonsense", "not valid JSON"),
        ("application/vnd.pypi.simple.v1+json", b"{}", "no package index page"),
        ("application/vnd.pypi.simple.v1+json", b"[1]", "no package index page"),
    ],
)
def test_nonsense_is_told(asker: Asker, kind: str, page: bytes, said: str) -> None:
    asker.server.files["/simple/vllm/"] = page
    asker.server.types["/simple/vllm/"] = kind
    with pytest.raises(NetworkError, match="no index has") as caught:
        asker.addresses("/simple/")
    assert said in (caught.value.details or "")


def test_credentials_of_an_index_go_to_its_own_server_only(asker: Asker) -> None:
    near = asker.server.url(f"/files/{WHEEL}")
    page = f'<a href="{near}#sha256={SHA256}">{WHEEL}</a><a href="http://other/{WHEEL}#sha256={SHA256}">{WHEEL}</a>'
    asker.server.files["/simple/vllm/"] = page.encode()
    asker.server.types["/simple/vllm/"] = "text/html"
    url = asker.server.url("/simple/").replace("//", "//user:secret@")
    found = asker.addresses(url)
    assert found[0].url.startswith("http://user:secret@127.0.0.1:")
    assert found[1].url.startswith("http://other/")
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("url", "same_server"),
    [
        ("https://host/f", True),
        ("http://host/f", False),
        ("https://host:444/f", False),
        ("https://other/f", False),
        ("https://host.other/f", False),
    ],
)
def test_credentials_go_over_the_same_scheme_only(url: str, same_server: bool) -> None:  # noqa: FBT001
    expected = url.replace("//", "//user:secret@") if same_server else url
    assert _with_credentials(url, "https://user:secret@host/simple/") == expected


def test_pages_from_the_network_may_not_name_local_files(asker: Asker, tmp_path: Path) -> None:
    page = f'<a href="{tmp_path.as_uri()}/{WHEEL}#sha256={SHA256}">{WHEEL}</a>'
    asker.server.files["/simple/vllm/"] = page.encode()
    asker.server.types["/simple/vllm/"] = "text/html"
    with pytest.raises(NetworkError, match="no index has"):
        asker.addresses("/simple/")


def test_files_without_a_digest_come_last(asker: Asker) -> None:
    asker.server.index("vllm", {WHEEL: None})
    asker.server.files["/second/vllm/"] = f'<a href="/sure#sha256={SHA256}">{WHEEL}</a>'.encode()
    asker.server.types["/second/vllm/"] = "text/html"
    urls = [each.url for each in asker.addresses("/simple/", "/second/")]
    assert urls == [asker.server.url("/sure"), asker.server.url(f"/files/{WHEEL}")]


def test_a_file_with_another_digest_is_not_offered(asker: Asker) -> None:
    asker.server.index("vllm", {WHEEL: b"another"})
    with pytest.raises(IntegrityError, match="another one than pinned"):
        asker.addresses("/simple/")


def test_later_indexes_are_not_asked_without_need(asker: Asker) -> None:
    asker.server.index("vllm", {WHEEL: DATA})
    next(asker.index("/simple/", "/second/").addresses("vllm", WHEEL, SHA256))
    assert asker.server.requests("/second/vllm/") == []


def test_link_pages(asker: Asker, tmp_path: Path) -> None:
    asker.server.files["/links"] = f'<a href="/f/{WHEEL}">{WHEEL}</a>'.encode()
    asker.server.types["/links"] = "text/html"
    [found] = asker.addresses(find_links=(asker.server.url("/links"),))
    assert found.url == asker.server.url(f"/f/{WHEEL}")
    (tmp_path / "links.html").write_text(f'<a href="{WHEEL}#sha256={SHA256}">{WHEEL}</a>')
    [found] = asker.addresses(find_links=((tmp_path / "links.html").as_uri(),))
    assert found.url == (tmp_path / WHEEL).as_uri()


def test_local_indexes(asker: Asker, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="no index has") as caught:
        asker.addresses(tmp_path.as_uri(), (tmp_path / "none").as_uri())
    assert (caught.value.details or "").splitlines() == [
        f"  - {tmp_path.as_uri()}: doesn't have it",
        f"  - {tmp_path.as_uri()}/none: no such file or folder",
    ]
    (tmp_path / "vllm" / "index.html").mkdir(parents=True)
    with pytest.raises(NetworkError, match="no index has") as caught:
        asker.addresses(tmp_path.as_uri())
    assert "can't be read" in (caught.value.details or "")


def test_the_public_index_is_asked_when_nothing_else_is_set(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    asker.server.index("vllm", {WHEEL: DATA})
    monkeypatch.setattr("pypi_simple.PYPI_SIMPLE_ENDPOINT", asker.server.url("/simple/"))
    index = Index(IndexSettings(), asker.session, patience=asker.patience)
    assert len(index.files("vllm", "1.0")) == 1
