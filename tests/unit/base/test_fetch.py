"""The pinned file, verified at every use, from wherever it can be had."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.fileserver import Act, FileServer

from patchwheel.base import (
    Access,
    BasePin,
    IndexSettings,
    Store,
    fetch_base,
    find_cached_base,
    open_base,
    peek_base,
)
from patchwheel.base.store import default_store
from patchwheel.errors import ConfigError, IntegrityError, NetworkError, OutputError

if TYPE_CHECKING:
    from pathlib import Path

    from unit.base.conftest import Listener

FILE = "vllm-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"
DATA = b"the wheel" * 20_000
SHA256 = hashlib.sha256(DATA).hexdigest()


def pin_of(**changes: Any) -> BasePin:
    values: dict[str, Any] = {
        "project": "vllm",
        "version": "1.0",
        "variant": "x86_64-cu13",
        "file": FILE,
        "size": len(DATA),
        "sha256": SHA256,
    }
    return BasePin(**{**values, **changes})


PIN = pin_of()


class Fetcher:
    """The public functions with the fixtures put in."""

    def __init__(self, access: Access, listener: Listener) -> None:
        self.access = access
        self.listener = listener
        self.path = access.find_store().entry(FILE, SHA256).path

    def options(self, *, offline: bool = False, **changes: Any) -> dict[str, Any]:
        return {"access": replace(self.access, **changes), "offline": offline, "reporter": self.listener}

    def read(self, pin: BasePin = PIN, **changes: Any) -> bytes:
        with open_base(pin, **self.options(**changes)) as file:
            return file.read()

    def peek(self, pin: BasePin = PIN, **changes: Any) -> tuple[int, bytes]:
        with peek_base(pin, **self.options(**changes)) as source:
            return source.size, source.read_at(4, 5)


@pytest.fixture
def fetcher(server: FileServer, access: Access, listener: Listener) -> Fetcher:
    server.index("vllm", {FILE: DATA})
    return Fetcher(access, listener)


@pytest.fixture
def cached(fetcher: Fetcher) -> Path:
    """The file in the cache."""
    fetcher.path.parent.mkdir(parents=True)
    fetcher.path.write_bytes(DATA)
    return fetcher.path


def test_is_fetched_once_and_kept_read_only(fetcher: Fetcher, server: FileServer, store: Store) -> None:
    assert fetcher.read() == DATA
    assert fetcher.read() == DATA
    assert len(server.requests(f"/files/{FILE}")) == 1
    assert fetcher.path == store.root / "sha256" / SHA256[:2] / SHA256 / FILE
    assert stat.S_IMODE(fetcher.path.stat().st_mode) == 0o444
    assert [path.name for path in fetcher.path.parent.iterdir() if path.suffix == ".partial"] == []


def test_fetch_says_where(fetcher: Fetcher) -> None:
    assert find_cached_base(SHA256, access=fetcher.access) is None
    assert fetch_base(PIN, **fetcher.options()) == fetcher.path
    assert find_cached_base(SHA256, access=fetcher.access) == fetcher.path
    assert find_cached_base(SHA256) == fetcher.path, "the user's own cache is the usual one"


@pytest.mark.parametrize(
    "digest",
    ["", "..", "../..", "/", "a" * 63, "a" * 65, "A" * 64, "a" * 64 + "\n", "../" * 21 + "a", "\N{DIGIT ONE}\0"],
)
def test_what_is_no_digest_leads_nowhere(store: Store, tmp_path: Path, digest: str) -> None:
    (store.root / "sha256" / "aa").mkdir(parents=True)
    for folder in (tmp_path, store.root, store.root / "sha256"):
        (folder / "secret").write_bytes(b"not for strangers")
    assert find_cached_base(digest, access=Access(store=store)) is None
    with pytest.raises(ValueError, match="not a sha256"):
        store.entry(FILE, digest)


def test_only_regular_files_count_as_cached(fetcher: Fetcher) -> None:
    fetcher.path.mkdir(parents=True)
    (fetcher.path.parent / ".hidden").write_bytes(b"")
    os.mkfifo(fetcher.path.parent / "pipe.whl")
    assert find_cached_base(SHA256, access=fetcher.access) is None
    (fetcher.path.parent / "z.whl").write_bytes(DATA)
    assert find_cached_base(SHA256, access=fetcher.access) == fetcher.path.parent / "z.whl"


@pytest.mark.parametrize("damage", [b"x" + DATA[1:], DATA[:-1], b""], ids=["changed", "cut", "empty"])
def test_a_damaged_cached_file_is_told_and_fetched_anew(
    fetcher: Fetcher, listener: Listener, cached: Path, damage: bytes
) -> None:
    cached.write_bytes(damage)
    cached.chmod(0o444)
    assert fetcher.read() == DATA
    assert "damaged" in listener.said[0]
    assert cached.read_bytes() == DATA


def test_a_damaged_cached_file_is_gone_even_if_it_cannot_be_had_anew(
    fetcher: Fetcher, server: FileServer, cached: Path
) -> None:
    cached.write_bytes(b"damaged")
    server.files.clear()
    with pytest.raises(NetworkError):
        fetcher.read()
    assert not cached.exists()


def test_what_was_hashed_is_what_is_read(fetcher: Fetcher, cached: Path) -> None:
    with open_base(PIN, **fetcher.options()) as file:
        cached.unlink()
        cached.write_bytes(bytes(len(DATA)))
        assert file.read() == DATA


def test_offline_the_cache_is_enough(fetcher: Fetcher, server: FileServer, cached: Path) -> None:
    assert fetcher.read(offline=True) == DATA
    assert fetcher.peek(offline=True) == (len(DATA), DATA[4:9])
    assert server.seen == []


@pytest.mark.parametrize("by", ["environment", "option"])
def test_offline_without_the_cache_is_told(
    fetcher: Fetcher, server: FileServer, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "environment":
        monkeypatch.setenv("PATCHWHEEL_OFFLINE", "1")
    for action in (fetcher.read, fetcher.peek):
        with pytest.raises(NetworkError, match="not in the cache") as caught:
            action(offline=by == "option")
        assert "patchwheel base fetch" in (caught.value.next_step or "")
    assert server.seen == []


def test_offline_is_off_when_the_variable_says_so(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHWHEEL_OFFLINE", "0")
    assert fetcher.read() == DATA


def test_offline_a_damaged_file_is_told(fetcher: Fetcher, cached: Path) -> None:
    cached.write_bytes(b"damaged")
    for action in (fetcher.read, fetcher.peek):
        with pytest.raises(IntegrityError, match="another content") as caught:
            action(offline=True)
        assert "with network" in (caught.value.next_step or "")


def test_a_given_path_is_used_in_place(fetcher: Fetcher, server: FileServer, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(DATA)
    pin = pin_of(path=path, size=None)
    assert fetcher.read(pin) == DATA
    assert fetcher.peek(pin) == (len(DATA), DATA[4:9])
    assert fetch_base(pin, **fetcher.options()) == path
    assert server.seen == []


def test_a_given_path_is_held_to_the_pin(fetcher: Fetcher, tmp_path: Path) -> None:
    pin = pin_of(path=tmp_path / FILE)
    for action in (fetcher.read, fetcher.peek):
        with pytest.raises(ConfigError, match="can't read the base wheel"):
            action(pin)
    (tmp_path / FILE).write_bytes(b"another")
    for action in (fetcher.read, fetcher.peek):
        with pytest.raises(IntegrityError, match="another content than pinned") as caught:
            action(pin)
        assert SHA256 in (caught.value.expected or "")
        assert "base.wheels" in (caught.value.next_step or "")
    assert (tmp_path / FILE).exists(), "a file of the user's is not ours to remove"


def test_a_given_address_is_used_without_an_index(fetcher: Fetcher, server: FileServer) -> None:
    server.files["/elsewhere/x.whl"] = DATA
    pin = pin_of(url=server.url("/elsewhere/x.whl"), size=None)
    assert fetcher.peek(pin) == (len(DATA), DATA[4:9])
    assert fetcher.read(pin) == DATA
    assert server.requests("/simple/vllm/") == []


def test_a_given_address_is_held_to_its_size(
    fetcher: Fetcher, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/x.whl"] = DATA
    with pytest.raises(IntegrityError, match="longer than pinned"):
        fetcher.read(pin_of(url=server.url("/x.whl"), size=5))
    monkeypatch.setattr("patchwheel.base.download.CEILING", len(DATA) - 1)
    with pytest.raises(IntegrityError, match="not pinned") as caught:
        fetcher.read(pin_of(url=server.url("/x.whl"), size=None))
    assert "base.wheels" in (caught.value.next_step or "")
    assert fetcher.read(pin_of(url=server.url("/x.whl"))) == DATA


def test_any_index_that_has_the_pinned_bytes_will_do(fetcher: Fetcher, server: FileServer, listener: Listener) -> None:
    other = b"another build" * 100
    page = f'<a href="/files/other/{FILE}#sha256={hashlib.sha256(other).hexdigest()}">{FILE}</a>'
    server.files["/other/vllm/"] = page.encode()
    server.types["/other/vllm/"] = "text/html"
    settings = IndexSettings(
        indexes=("http://127.0.0.1:1/", server.url("/none/"), server.url("/other/"), server.url("/simple/"))
    )
    assert fetcher.read(settings=settings) == DATA
    assert any("passing over" in text for text in listener.said)


def test_the_next_address_is_tried_when_one_fails(fetcher: Fetcher, server: FileServer) -> None:
    server.files["/mirror/vllm/"] = f'<a href="/gone/{FILE}#sha256={SHA256}">{FILE}</a>'.encode()
    server.types["/mirror/vllm/"] = "text/html"
    indexes = (server.url("/mirror/"), server.url("/simple/"))
    assert fetcher.read(settings=IndexSettings(indexes=indexes)) == DATA
    fetcher.path.unlink()
    del server.files[f"/files/{FILE}"]
    with pytest.raises(NetworkError, match="none of 2 addresses") as caught:
        fetcher.read(settings=IndexSettings(indexes=indexes))
    assert (caught.value.details or "").count("answered 404") == 2


def test_a_file_that_was_replaced_on_the_index_is_refused(fetcher: Fetcher, server: FileServer) -> None:
    server.index("vllm", {FILE: b"replaced"})
    with pytest.raises(IntegrityError, match="another one than pinned") as caught:
        fetcher.read()
    assert hashlib.sha256(b"replaced").hexdigest() in (caught.value.found or "")


def test_an_index_that_lies_about_its_digest_is_refused(fetcher: Fetcher, server: FileServer) -> None:
    server.files[f"/files/{FILE}"] = bytes(len(DATA))
    with pytest.raises(IntegrityError, match="another content than pinned"):
        fetcher.read()
    assert find_cached_base(SHA256, access=fetcher.access) is None


def test_a_release_that_no_index_has_is_told(fetcher: Fetcher, server: FileServer) -> None:
    with pytest.raises(NetworkError, match="no index has") as caught:
        fetcher.read(pin_of(project="nothing"))
    assert "doesn't have it" in str(caught.value)


def test_folders_serve_as_index_and_as_links(fetcher: Fetcher, server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "simple" / "vllm").mkdir(parents=True)
    (tmp_path / "simple" / FILE).write_bytes(DATA)
    (tmp_path / "simple" / "vllm" / "index.html").write_text(f'<a href="../{FILE}#sha256={SHA256}">{FILE}</a>')
    index = IndexSettings(indexes=((tmp_path / "simple").as_uri(),))
    assert fetcher.read(settings=index) == DATA
    fetcher.path.unlink()
    links = IndexSettings(indexes=(server.url("/simple/"),), find_links=((tmp_path / "simple").as_uri(),))
    assert fetcher.read(settings=links) == DATA
    assert server.seen == [], "what lies here is tried first"


def test_what_is_wrong_with_a_folder_is_told(fetcher: Fetcher, tmp_path: Path) -> None:
    (tmp_path / "links.html").write_text(f'<a href="{FILE}#sha256={SHA256}">{FILE}</a>')
    links = IndexSettings(indexes=(), find_links=((tmp_path / "links.html").as_uri(),))
    for action in (fetcher.read, fetcher.peek):
        with pytest.raises(NetworkError, match="can't read") as missing:
            action(settings=links)
        assert "PATCHWHEEL_INDEX_URL" in (missing.value.next_step or "")
    (tmp_path / FILE).write_bytes(bytes(len(DATA)))
    for action in (fetcher.read, fetcher.peek):
        with pytest.raises(IntegrityError, match="another content than pinned") as wrong:
            action(settings=links)
        assert "another index" in (wrong.value.next_step or "")


def test_a_folder_with_a_wrong_file_is_passed_over(fetcher: Fetcher, server: FileServer, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(bytes(len(DATA)))
    links = IndexSettings(indexes=(server.url("/simple/"),), find_links=(tmp_path.as_uri(),))
    assert fetcher.peek(settings=links) == (len(DATA), DATA[4:9])
    assert fetcher.read(settings=links) == DATA


def test_peek_tries_the_next_address_too(fetcher: Fetcher, server: FileServer) -> None:
    server.files["/mirror/vllm/"] = f'<a href="/gone/{FILE}#sha256={SHA256}">{FILE}</a>'.encode()
    server.types["/mirror/vllm/"] = "text/html"
    settings = IndexSettings(indexes=(server.url("/mirror/"), server.url("/simple/")))
    assert fetcher.peek(settings=settings) == (len(DATA), DATA[4:9])
    del server.files[f"/files/{FILE}"]
    with pytest.raises(NetworkError, match="none of 2 addresses"):
        fetcher.peek(settings=settings)


def test_a_cache_that_cannot_be_written_is_told(fetcher: Fetcher, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(OutputError, match="can't write"):
        fetcher.read(store=Store(root=tmp_path / "taken"))


def test_a_cache_that_cannot_be_read_is_told(fetcher: Fetcher) -> None:
    fetcher.path.mkdir(parents=True)
    with pytest.raises(OutputError, match="can't read the cached") as caught:
        fetcher.read()
    assert "PATCHWHEEL_CACHE_DIR" in (caught.value.next_step or "")


def test_peek_reads_parts_from_the_server_and_touches_nothing(
    fetcher: Fetcher, server: FileServer, store: Store
) -> None:
    assert fetcher.peek() == (len(DATA), DATA[4:9])
    assert not store.root.exists()
    assert server.requests(f"/files/{FILE}")[0].headers["Range"].startswith("bytes=0-")


def test_peek_tells_of_a_damaged_cached_file_and_passes_it_by(
    fetcher: Fetcher, listener: Listener, cached: Path
) -> None:
    cached.write_bytes(b"damaged")
    assert fetcher.peek() == (len(DATA), DATA[4:9])
    [said] = listener.said
    assert "is damaged" in said
    assert "patchwheel base fetch" in said
    assert cached.read_bytes() == b"damaged", "peeking touches nothing"


def test_peek_needs_ranges(fetcher: Fetcher, server: FileServer) -> None:
    server.default = Act(ranges=False)
    with pytest.raises(NetworkError, match="no byte ranges") as caught:
        fetcher.peek()
    assert "patchwheel base fetch" in (caught.value.next_step or "")


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_store().root == tmp_path / "cache"
    monkeypatch.delenv("PATCHWHEEL_CACHE_DIR")
    assert default_store().root == tmp_path / "home" / ".cache" / "patchwheel"
    assert default_store({"PATCHWHEEL_CACHE_DIR": "~/x"}).root == tmp_path / "home" / "x"


def test_the_pin_does_not_show_its_address() -> None:
    assert "secret" not in repr(pin_of(url="https://user:secret@host/x.whl"))


def test_settings_of_the_environment_are_the_default(
    fetcher: Fetcher, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHWHEEL_INDEX_URL", server.url("/simple"))
    with open_base(PIN, access=Access(store=fetcher.access.store)) as file:
        assert os.fstat(file.fileno()).st_size == len(DATA)
