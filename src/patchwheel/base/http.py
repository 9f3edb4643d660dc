"""HTTP as this stage uses it: one configured session, and which failures are worth another try.

Imported only when the network is really used, for requests takes long to import.
"""

from __future__ import annotations

from contextlib import contextmanager
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

__all__ = ["check_status", "classified", "open_session"]

_TOO_MANY = 429
_BAD = 400
_BROKEN = 500
_UNAUTHORISED = (401, 403, 407)


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
        next_step="check the credentials of this index" if status in _UNAUTHORISED else None,
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
            raise NetworkError("the answer is not valid JSON", where=where) from None
        raise NetworkError(f"the request failed: {redact(text)}", where=where) from None


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
