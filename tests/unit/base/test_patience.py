"""When to try again, and when not to."""

from __future__ import annotations

import time

import pytest
import requests
import urllib3

from patchwheel.base.http import check_status, classified
from patchwheel.base.patience import Patience, TransientError, persist
from patchwheel.errors import NetworkError


def test_pauses_grow_up_to_a_limit() -> None:
    patience = Patience(first_pause=1.0, longest_pause=10.0)
    for failure, most in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 10.0), (5000, 10.0)):
        assert most / 2 <= patience.pause(failure) <= most
    assert patience.pause(1, wait=7.0) == 7.0
    assert patience.pause(1, wait=3600.0) == 10.0
    assert len({patience.pause(3) for _ in range(10)}) > 1, "clients must spread out"


def test_it_waits_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    failures = iter([TransientError("one", wait=5.0), TransientError("two")])

    def attempt() -> str:
        if error := next(failures, None):
            raise error
        return "done"

    assert persist(attempt, patience=Patience(first_pause=2.0), where="x") == "done"
    assert slept[0] == 5.0
    assert 2.0 <= slept[1] <= 4.0


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError):
        persist(lambda: 1 // 0, patience=Patience(), where="x")


def answer(status: int, **headers: str) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.headers.update(headers)
    return response


@pytest.mark.parametrize(("header", "wait"), [("7", 7.0), ("Wed, 21 Oct 2015 07:28:00 GMT", None), ("", None)])
def test_servers_may_ask_to_wait(header: str, wait: float | None) -> None:
    with pytest.raises(TransientError) as caught:
        check_status(answer(503, **{"Retry-After": header}), "x")
    assert caught.value.wait == wait


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (requests.ReadTimeout("x"), "stalled"),
        (urllib3.exceptions.ReadTimeoutError(None, "u", "Read timed out."), "stalled"),  # type: ignore[arg-type]
        (requests.ConnectTimeout("x"), "in time"),
        (requests.exceptions.ProxyError("x"), "proxy"),
        (requests.ConnectionError("Max retries exceeded: Failed to resolve 'h'"), "name can't be resolved"),
        (requests.ConnectionError("Max retries exceeded"), "can't be reached"),
        (requests.exceptions.SSLError("EOF occurred in violation of protocol"), "cut"),
        (urllib3.exceptions.ProtocolError("x"), "cut"),
        (ConnectionResetError("x"), "cut"),
    ],
)
def test_troubles_that_may_pass(error: Exception, reason: str) -> None:
    with pytest.raises(TransientError, match=reason), classified("x"):
        raise error


def test_a_certificate_that_is_not_trusted_stays_so() -> None:
    with pytest.raises(NetworkError, match="isn't trusted") as caught, classified("x"):
        raise requests.exceptions.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed")
    assert "SSL_CERT_FILE" in (caught.value.next_step or "")


def test_other_failures_are_told_without_secrets() -> None:
    with pytest.raises(NetworkError) as caught, classified("x"):
        raise requests.TooManyRedirects("https://user:secret@host/?token=secret")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
