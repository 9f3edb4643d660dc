"""HTTP as this stage uses it: one configured session, and which failures are worth another try.

Imported only when the network is really used, for requests takes long to import.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests
import urllib3

from patchwheel import __version__
from patchwheel.base.patience import TransientError
from patchwheel.base.settings import redact
from patchwheel.errors import NetworkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchwheel.base.settings import IndexSettings

__all__ = ["PART", "Head", "check_status", "classified", "open_session", "read_head"]

PART = 206
"""The status of an answer that gives the range that was asked for."""

_TOO_MANY = 429
_BAD = 400
_BROKEN = 500
_UNAUTHORISED = (401, 403, 407)
_CHECK_ADDRESS = "check that the address is right and still serves what is wanted"
# Numbers of absurd length are no numbers: int() refuses them.
_NUMBER = re.compile(r"[0-9]{1,18}")
_CONTENT_RANGE = re.compile(r"bytes (?:(?P<start>[0-9]{1,18})-[0-9]{1,18}|\*)/(?P<total>[0-9]{1,18}|\*)")


class _Session(requests.Session):
    """Lets the user's explicit settings win over the environment; requests has it the other way round."""

    def __init__(self, settings: IndexSettings) -> None:
        super().__init__()
        self._settings = settings
        self.headers["User-Agent"] = f"patchwheel/{__version__}"
        self.cert = settings.client_cert

    def merge_environment_settings(self, *args: Any, **kwargs: Any) -> Any:
        """As requests does it, then the settings on top."""
        merged = super().merge_environment_settings(*args, **kwargs)
        if self._settings.ca_bundle:
            merged["verify"] = self._settings.ca_bundle
        if self._settings.proxy:
            merged["proxies"] = {"http": self._settings.proxy, "https": self._settings.proxy}
        return merged


def open_session(settings: IndexSettings) -> requests.Session:
    """A session with the user's certificates and proxy; close it after use."""
    return _Session(settings)


def check_status(response: requests.Response, where: str) -> None:
    """Refuse answers that are errors.

    Raises:
        TransientError: The server is overloaded or broken, which may pass.
        NetworkError: It refuses, and will again.
    """
    status = response.status_code
    if status < _BAD:
        return
    if status == _TOO_MANY or status >= _BROKEN:
        wait = response.headers.get("Retry-After", "")
        raise TransientError(f"the server answered {status}", float(wait) if wait.isdecimal() else None)
    raise NetworkError(
        f"the server answered {status}",
        where=where,
        next_step="check your credentials for this address" if status in _UNAUTHORISED else _CHECK_ADDRESS,
    )


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the head of an answer tells of the file on the server.

    Attributes:
        start: Place of the body's first byte in the file, if the answer is a part of it.
        total: Length of the whole file in bytes, if the answer is a part of it or tells that there is none.
        length: Length of the body in bytes, if told.
        tag: Its strong entity tag, if it has one. A weak tag promises no equal bytes, so it counts for nothing.
    """

    start: int | None
    total: int | None
    length: int | None
    tag: str | None

    def is_of_another(self, tag: str | None) -> bool:
        """Whether the file can't be the one that had this tag. Without two tags to compare, nothing is known."""
        return None not in (tag, self.tag) and tag != self.tag


def read_head(response: requests.Response) -> Head:
    """Read what an answer tells of the file, as far as it does."""
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    start, total = (match["start"], match["total"]) if match else (None, None)
    length = response.headers.get("Content-Length", "").strip()
    tag = response.headers.get("ETag", "")
    return Head(
        start=int(start) if start and response.status_code == PART else None,
        total=int(total) if total and total != "*" else None,
        length=int(length) if _NUMBER.fullmatch(length) else None,
        tag=tag if tag.startswith('"') else None,
    )


@contextmanager
def classified(where: str) -> Iterator[None]:
    """Turn what requests and urllib3 raise into this stage's errors.

    Raises:
        TransientError: A connection could not be made, was cut, or stalled.
        NetworkError: Anything else, such as a certificate that isn't trusted or an address that can't be
            used.
    """
    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        text = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            raise NetworkError(
                "the server's certificate isn't trusted",
                where=where,
                next_step="name the file of certificates to trust in SSL_CERT_FILE",
            ) from None  # the cause's text holds the address
        if isinstance(error, _PASSING):
            raise TransientError(_reason(error, text)) from None
        if isinstance(error, requests.exceptions.InvalidJSONError):
            raise NetworkError("the answer is not valid JSON", where=where, next_step=_CHECK_ADDRESS) from None
        raise NetworkError(f"the request failed: {redact(text)}", where=where, next_step=_CHECK_ADDRESS) from None


_PASSING = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    urllib3.exceptions.ProtocolError,
    urllib3.exceptions.TimeoutError,
    urllib3.exceptions.SSLError,
    ConnectionError,
    TimeoutError,
)


def _reason(error: Exception, text: str) -> str:
    if isinstance(error, (requests.ReadTimeout, urllib3.exceptions.ReadTimeoutError)) or "Read timed out" in text:
        return "the connection stalled"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy can't be reached"
    if isinstance(error, requests.ConnectTimeout):
        return "the server can't be reached in time"
    if "Failed to resolve" in text or "NameResolution" in text:
        return "the server's name can't be resolved"
    if isinstance(error, requests.ConnectionError) and "Max retries exceeded" in text:
        return "the server can't be reached"
    return "the connection was cut"
