"""Parts of a file on a server."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support.fileserver import Act, FileServer

from patchwheel.base import remote
from patchwheel.base.remote import RemoteSource, open_source
from patchwheel.errors import IntegrityError, NetworkError

if TYPE_CHECKING:
    from pathlib import Path

    import requests

    from patchwheel.base import Patience

DATA = random.Random(3).randbytes(50_000)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BLOCK", 1000)
    monkeypatch.setattr(remote, "KEPT", 10)


@pytest.fixture
def source(server: FileServer, session: requests.Session, patience: Patience) -> RemoteSource:
    server.files["/f"] = DATA
    return RemoteSource(session, server.url("/f"), size=len(DATA), patience=patience)


def test_reads_are_right_wherever_they_are(source: RemoteSource) -> None:
    chooser = random.Random(4)
    for _ in range(100):
        offset, count = chooser.randrange(51_000), chooser.choice([0, 1, 10, 999, 1001, 30_000])
        assert source.read_at(offset, count) == DATA[offset : offset + count]
        assert len(source._blocks) <= 10 + remote.AHEAD


def test_what_was_read_is_kept(source: RemoteSource, server: FileServer) -> None:
    source.read_at(1500, 10)
    source.read_at(1990, 10)
    assert [seen.headers["Range"] for seen in server.seen] == ["bytes=1000-1999"]
    assert source.transferred == 1000


def test_the_cache_is_bounded(source: RemoteSource) -> None:
    assert source.read_at(0, len(DATA)) == DATA
    assert len(source._blocks) == 10


def test_reading_on_asks_for_more_at_once(source: RemoteSource, server: FileServer) -> None:
    for offset in range(0, 9000, 500):
        source.read_at(offset, 500)
    assert [seen.headers["Range"] for seen in server.seen] == ["bytes=0-999", "bytes=1000-8999"]


def test_threads_may_share_it(source: RemoteSource) -> None:
    offsets = [random.Random(number).randrange(49_000) for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda offset: source.read_at(offset, 700), offsets))
    assert parts == [DATA[offset : offset + 700] for offset in offsets]


def test_troubles_that_pass_are_waited_for(source: RemoteSource, server: FileServer) -> None:
    server.acts = [Act(status=503), Act(cut=10), Act(stall=10), Act()]
    with pytest.raises(NetworkError, match="gave up after 3") as caught:
        source.read_at(0, 1000)
    assert "again" in (caught.value.next_step or "")
    server.acts = [Act(status=503), Act(cut=10)]
    assert source.read_at(0, 1000) == DATA[:1000]


def test_the_length_is_asked_for_if_it_is_not_known(
    server: FileServer, session: requests.Session, patience: Patience
) -> None:
    server.files["/f"] = DATA
    source = RemoteSource(session, server.url("/f"), patience=patience)
    assert source.size == len(DATA)
    assert source.transferred == 1


def test_another_length_than_pinned_is_refused(
    server: FileServer, session: requests.Session, patience: Patience
) -> None:
    server.files["/f"] = DATA
    source = RemoteSource(session, server.url("/f"), size=len(DATA) - 1, patience=patience)
    with pytest.raises(IntegrityError, match="another length") as caught:
        source.read_at(0, 1)
    assert (caught.value.expected, caught.value.found) == ("49999 bytes", "50000 bytes")
    assert caught.value.next_step


def test_a_file_that_changes_meanwhile_is_refused(source: RemoteSource, server: FileServer) -> None:
    source.read_at(0, 1)
    server.acts = [Act(tag=None)]
    source.read_at(3000, 1)
    server.default = Act(tag='"two"')
    with pytest.raises(NetworkError, match="changed") as caught:
        source.read_at(5000, 1)
    assert caught.value.next_step


def test_weak_tags_prove_nothing(source: RemoteSource, server: FileServer) -> None:
    server.acts = [Act(tag='W/"one"'), Act(tag='W/"two"')]
    assert source.read_at(0, 1) + source.read_at(5000, 1) == DATA[:1] + DATA[5000:5001]


@pytest.mark.parametrize("act", [Act(ranges=False), Act(shift=1)], ids=["whole", "elsewhere"])
def test_a_server_that_grants_no_ranges_is_told(source: RemoteSource, server: FileServer, act: Act) -> None:
    server.default = act
    with pytest.raises(NetworkError, match="no byte ranges"):
        source.read_at(0, 1)
    assert len(server.seen) == 1


def test_the_name_holds_no_secret(session: requests.Session, patience: Patience) -> None:
    source = RemoteSource(session, "https://user:secret@host/f?token=secret", size=1, patience=patience)
    assert source.name == "https://***@host/f?***"


def test_local_files_are_opened_in_place(session: requests.Session, patience: Patience, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(DATA)
    with open_source(session, (tmp_path / "f").as_uri(), patience=patience) as source:
        assert source.read_at(10, 20) == DATA[10:30]
    missing = (tmp_path / "g").as_uri()
    with pytest.raises(NetworkError, match="can't read g"), open_source(session, missing, patience=patience):
        pass
