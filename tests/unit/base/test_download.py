"""Whatever the server does, the bytes are right or there are none."""

from __future__ import annotations

import hashlib
import os
import random
from typing import TYPE_CHECKING

import pytest
import requests
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.fileserver import Act, FileServer, running_server

from patchwheel.base import IndexSettings, Patience
from patchwheel.base.download import download
from patchwheel.base.http import Head, open_session, read_head
from patchwheel.errors import IntegrityError, NetworkError, OutputError
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from pathlib import Path

    from unit.base.conftest import Listener

DATA = random.Random(1).randbytes(200_000)
SHA256 = hashlib.sha256(DATA).hexdigest()


class Case:
    """One download from one server."""

    def __init__(
        self,
        server: FileServer,
        session: requests.Session,
        tmp_path: Path,
        patience: Patience,
        reporter: Reporter,
    ) -> None:
        server.files["/f"] = DATA
        self.server = server
        self.session = session
        self.partial = tmp_path / ".f.partial"
        self.patience = patience
        self.reporter = reporter

    def run(self, *acts: Act, size: int | None = len(DATA), url: str | None = None) -> bytes:
        self.server.acts = list(acts)
        file = download(
            self.session,
            url or self.server.url("/f"),
            self.partial,
            sha256=SHA256,
            size=size,
            label="f",
            patience=self.patience,
            reporter=self.reporter,
        )
        with file:
            file.seek(0)
            return file.read()

    @property
    def ranges(self) -> list[str | None]:
        return [seen.headers.get("Range") for seen in self.server.requests("/f")]


@pytest.fixture
def case(server: FileServer, session: requests.Session, tmp_path: Path, patience: Patience, listener: Listener) -> Case:
    return Case(server, session, tmp_path, patience, listener)


def test_one_request_when_all_is_well(case: Case, listener: Listener) -> None:
    assert case.run() == DATA
    assert case.ranges == [None]
    assert case.server.seen[0].headers["Accept-Encoding"] == "identity"
    assert sum(listener.moved) == len(DATA)
    assert listener.said == []


def test_an_endless_file_of_unknown_length_does_not_fill_the_disk(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchwheel.base.download.CEILING", 300_000)
    with pytest.raises(IntegrityError, match="not pinned") as caught:
        case.run(Act(endless=True), size=None)
    assert caught.value.expected == "at most 300000 bytes"
    assert not case.partial.exists()
    assert case.server.sent < 20_000_000, "it was the client that stopped"
    case.partial.write_bytes(bytes(300_001))
    monkeypatch.setattr("patchwheel.base.download.CEILING", len(DATA))
    case.server.seen.clear()
    assert case.run(size=None) == DATA, "the ceiling itself may be reached"
    assert case.ranges == [None]


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {}, (None, None, None, None)),
        (200, {"Content-Length": "5", "ETag": '"x"'}, (None, None, 5, '"x"')),
        (200, {"Content-Range": "bytes 1-2/3", "ETag": 'W/"x"'}, (None, 3, None, None)),
        (206, {"Content-Range": "bytes 1-2/3"}, (1, 3, None, None)),
        (206, {"Content-Range": "bytes 1-2/*"}, (1, None, None, None)),
        (416, {"Content-Range": "bytes */3"}, (None, 3, None, None)),
        (206, {"Content-Range": "lines 1-2/3", "Content-Length": "-5"}, (None, None, None, None)),
        (206, {"Content-Range": f"bytes {DIGITS}-2/3", "Content-Length": DIGITS}, (None, None, None, None)),
        (206, {"Content-Range": f"bytes 1-2/{DIGITS}", "Content-Length": "\N{SUPERSCRIPT TWO}"}, (None,) * 4),
    ],
)
def test_what_the_head_of_an_answer_tells(status: int, headers: dict[str, str], expected: tuple[object, ...]) -> None:
    response = requests.Response()
    response.status_code = status
    response.headers.update(headers)
    head = read_head(response)
    assert (head.start, head.total, head.length, head.tag) == expected


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [(None, None, False), (None, '"b"', False), ('"a"', None, False), ('"a"', '"a"', False), ('"a"', '"b"', True)],
)
def test_only_two_tags_prove_a_change(before: str | None, now: str | None, changed: bool) -> None:  # noqa: FBT001
    assert Head(start=None, total=None, length=None, tag=now).is_of_another(before) is changed


def test_redirects_are_followed_with_the_range(case: Case) -> None:
    case.partial.write_bytes(DATA[:1000])
    assert case.run(Act(status=302, headers={"Location": case.server.url("/f")})) == DATA
    assert case.ranges == ["bytes=1000-", "bytes=1000-"]


def test_goes_on_where_the_connection_was_cut(case: Case, listener: Listener) -> None:
    assert case.run(Act(cut=70_000), Act(cut=30_000)) == DATA
    assert case.ranges == [None, "bytes=70000-", "bytes=100000-"]
    assert case.server.seen[1].headers["If-Range"] == '"one"'
    assert "the connection was cut" in listener.said[0]
    assert case.server.sent == len(DATA), "no byte was sent twice"


def test_goes_on_after_a_stall(case: Case, listener: Listener) -> None:
    assert case.run(Act(stall=50_000)) == DATA
    assert case.ranges == [None, "bytes=50000-"]
    assert "stalled" in listener.said[0]


def test_stalls_before_the_first_byte_are_noticed(case: Case) -> None:
    with pytest.raises(NetworkError, match="stalled"):
        case.run(Act(stall=0), Act(stall=0), Act(stall=0))
    assert len(case.ranges) == 3


def test_failures_count_anew_after_progress(case: Case) -> None:
    assert case.run(*[Act(cut=5_000)] * 12) == DATA, "more cuts than tries, but each brought something"


def test_progress_in_crumbs_is_bounded(case: Case) -> None:
    case.server.default = Act(cut=10)
    with pytest.raises(NetworkError, match="gave up after 30 failures") as caught:
        case.run()
    assert case.partial.read_bytes() == DATA[:300], "what came is kept for the next call"
    assert "goes on" in (caught.value.next_step or "")


def test_gives_up_without_progress(case: Case) -> None:
    case.server.default = Act(cut=1000, ranges=False)
    with pytest.raises(NetworkError, match="gave up after 3 failures"):
        case.run()
    assert len(case.ranges) == 3, "bytes that were there before are no progress"


def test_a_length_announced_too_short_is_no_end(case: Case) -> None:
    assert case.run(Act(length=1_000)) == DATA
    assert case.ranges == [None, "bytes=1000-"]


def test_a_length_announced_too_long_stops_at_once(case: Case) -> None:
    with pytest.raises(IntegrityError, match="longer than pinned") as caught:
        case.run(Act(length=len(DATA) + 1))
    assert caught.value.expected == "200000 bytes"
    assert not case.partial.exists()


def test_a_longer_file_stops_a_resume_at_once(case: Case) -> None:
    with pytest.raises(IntegrityError, match="longer than pinned"):
        case.run(Act(cut=10), Act(body=DATA + b"more"))
    assert not case.partial.exists()


def test_an_endless_file_does_not_fill_the_disk(case: Case) -> None:
    with pytest.raises(IntegrityError, match="longer than pinned"):
        case.run(Act(endless=True))
    assert not case.partial.exists()
    assert case.server.sent < 20_000_000, "it was the client that stopped"


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_passing_troubles_of_the_server_are_waited_for(case: Case, status: int) -> None:
    assert case.run(Act(status=status), Act(status=status)) == DATA


def test_troubles_that_stay_are_told(case: Case) -> None:
    case.server.default = Act(status=503)
    with pytest.raises(NetworkError, match="the server answered 503"):
        case.run()
    assert len(case.ranges) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_refusals_are_not_asked_again(case: Case, status: int) -> None:
    with pytest.raises(NetworkError, match=f"the server answered {status}"):
        case.run(Act(status=status))
    assert len(case.ranges) == 1


def test_other_answers_are_refused(case: Case) -> None:
    with pytest.raises(NetworkError, match="answered 204"):
        case.run(Act(status=204))


def test_a_server_without_ranges_gives_the_whole_again(case: Case, listener: Listener) -> None:
    assert case.run(Act(cut=70_000), Act(ranges=False)) == DATA
    assert case.ranges == [None, "bytes=70000-"]
    assert sum(listener.moved) == len(DATA), "the bar goes back too"


def test_a_file_that_changed_is_fetched_anew(case: Case) -> None:
    old = bytes(len(DATA))
    assert case.run(Act(body=old, cut=70_000), Act(tag='"two"')) == DATA
    assert case.ranges == [None, "bytes=70000-"]


def test_a_change_is_noticed_though_the_server_ignores_the_condition(case: Case, listener: Listener) -> None:
    old = bytes(len(DATA))
    assert case.run(Act(body=old, cut=70_000), Act(tag='"two"', if_range=False)) == DATA
    assert any("has changed" in text for text in listener.said), "before the rest was fetched in vain"
    assert case.ranges == [None, "bytes=70000-", None]


def test_parts_that_do_not_fit_are_fetched_anew_once(case: Case, listener: Listener) -> None:
    old = bytes(len(DATA))
    assert case.run(Act(body=old, cut=70_000, tag=None), Act(tag=None)) == DATA
    assert case.ranges == [None, "bytes=70000-", None]
    assert any("don't fit together" in text for text in listener.said)


def test_a_part_from_elsewhere_in_the_file_is_refused(case: Case) -> None:
    assert case.run(Act(cut=70_000), Act(shift=5)) == DATA
    assert case.ranges == [None, "bytes=70000-", None]


def test_weak_tags_are_no_condition(case: Case) -> None:
    assert case.run(Act(cut=70_000, tag='W/"one"'), Act(tag='W/"one"')) == DATA
    assert "If-Range" not in case.server.seen[1].headers


def test_wrong_content_is_refused_and_removed(case: Case) -> None:
    wrong = bytes(len(DATA))
    with pytest.raises(IntegrityError, match="another content than pinned") as caught:
        case.run(Act(body=wrong))
    assert caught.value.expected == f"sha256 {SHA256}"
    assert caught.value.found == f"sha256 {hashlib.sha256(wrong).hexdigest()}"
    assert not case.partial.exists()
    assert len(case.ranges) == 1


def test_wrong_content_is_refused_after_a_resume_too(case: Case) -> None:
    case.server.default = Act(body=bytes(len(DATA)))
    with pytest.raises(IntegrityError, match="another content than pinned"):
        case.run(Act(body=bytes(len(DATA)), cut=10))
    assert case.ranges == [None, "bytes=10-", None]


def test_a_partial_file_of_another_process_is_gone_on_with(case: Case) -> None:
    case.partial.write_bytes(DATA[:150_000])
    assert case.run() == DATA
    assert case.server.sent == 50_000


def test_a_partial_file_that_is_whole_needs_no_request(case: Case) -> None:
    case.partial.write_bytes(DATA)
    assert case.run() == DATA
    assert case.ranges == []


@pytest.mark.parametrize(
    "leftover", [bytes(1000), bytes(len(DATA)), bytes(len(DATA) + 1)], ids=["part", "whole", "long"]
)
def test_a_damaged_partial_file_is_fetched_anew(case: Case, leftover: bytes) -> None:
    case.partial.write_bytes(leftover)
    assert case.run() == DATA


def test_of_an_unknown_length_the_digest_decides(case: Case) -> None:
    assert case.run(Act(cut=70_000), size=None) == DATA
    case.partial.write_bytes(DATA)
    assert case.run(size=None) == DATA
    assert case.ranges[-1] == "bytes=200000-", "answered by 416: there is no more"
    case.partial.write_bytes(DATA + b"more")
    assert case.run(size=None) == DATA


def test_a_full_disk_is_told_as_such(case: Case) -> None:
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("this system has no /dev/full")
    case.partial.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left") as caught:
        case.run()
    assert "PATCHWHEEL_CACHE_DIR" in (caught.value.next_step or "")
    assert len(case.ranges) == 1, "a full disk is no reason to ask again"


def test_local_files_are_copied(case: Case, tmp_path: Path) -> None:
    source = tmp_path / "with space"
    source.write_bytes(DATA)
    assert case.run(url=source.as_uri()) == DATA
    case.partial.write_bytes(b"something else")
    assert case.run(url=source.as_uri()) == DATA


def test_local_files_are_held_to_the_pin_too(case: Case, tmp_path: Path) -> None:
    source = tmp_path / "f"
    with pytest.raises(NetworkError, match="can't read f"):
        case.run(url=source.as_uri())
    source.write_bytes(DATA + b"more")
    with pytest.raises(IntegrityError, match="longer than pinned"):
        case.run(url=source.as_uri())
    source.write_bytes(DATA[:-1])
    with pytest.raises(IntegrityError, match="another content"):
        case.run(url=source.as_uri())


def test_a_server_that_is_not_there_is_told(case: Case) -> None:
    with pytest.raises(NetworkError, match="can't be reached") as caught:
        case.run(url="http://user:secret@127.0.0.1:1/f?token=secret")
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value.__cause__, OSError)


def test_an_address_that_makes_no_sense_is_told_without_its_secrets(case: Case) -> None:
    with pytest.raises(NetworkError) as caught:
        case.run(url="nothing://user:secret@host/f?token=secret")
    assert "secret" not in str(caught.value)


@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 4000), max_size=6), size_known=st.booleans())
def test_any_cuts_give_the_same_bytes(tmp_path: Path, cuts: list[int], size_known: bool) -> None:  # noqa: FBT001
    data = DATA[:4000]
    partial = tmp_path / "any.partial"
    patience = Patience(stall=1.0, tries=8, first_pause=0.0)
    with running_server() as server, open_session(IndexSettings(indexes=())) as session:
        server.files["/f"] = data
        server.acts = [Act(cut=cut) for cut in cuts]
        size = len(data) if size_known else None
        sha256 = hashlib.sha256(data).hexdigest()
        url = server.url("/f")
        with download(
            session, url, partial, sha256=sha256, size=size, label="f", patience=patience, reporter=SILENT
        ) as file:
            file.seek(0)
            assert file.read() == data
    partial.unlink()
