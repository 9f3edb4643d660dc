"""The user's own package index settings, taken from where pip and uv take theirs.

Every input is pinned by sha256, so it does not matter for safety which index serves it: all that are
configured are tried. What is read, in the order in which indexes are tried:

1. ``PATCHWHEEL_INDEX_URL`` (one or more addresses or folders, separated by spaces).
2. uv: ``UV_DEFAULT_INDEX``, ``UV_INDEX_URL``, ``UV_INDEX``, ``UV_EXTRA_INDEX_URL``, ``UV_FIND_LINKS``; then
   ``uv.toml`` of the user and of the system, or the one named by ``UV_CONFIG_FILE`` (none with
   ``UV_NO_CONFIG``): ``[[index]]``, ``index-url``, ``extra-index-url``, ``find-links``, there and under
   ``[pip]``. Settings of a uv project (``pyproject.toml``) and ``UV_INDEX_<NAME>_USERNAME`` are not read.
3. pip: ``PIP_INDEX_URL``, ``PIP_EXTRA_INDEX_URL``, ``PIP_FIND_LINKS``, ``PIP_NO_INDEX``, ``PIP_CERT``,
   ``PIP_CLIENT_CERT``, ``PIP_PROXY``; then the same keys in ``[download]`` and ``[global]`` of the
   configuration files of the system, the user, the environment, and ``PIP_CONFIG_FILE``, of which the later
   ones win.
4. The public index, unless one of these replaced it (an ``index-url`` or a default index) or forbade it.

Indexes are addresses of simple repositories (http, https, or ``file:`` and folders in the same layout);
find-links are folders of files, or pages that link to them. CA bundle: ``PIP_CERT``, pip's ``cert``,
``REQUESTS_CA_BUNDLE``, ``CURL_CA_BUNDLE``, ``SSL_CERT_FILE``, the first that is set. Proxies: pip's
``proxy``, else ``*_PROXY`` and ``NO_PROXY``. Credentials: in the address, or in ``.netrc``; keyrings are not
asked.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.errors import ConfigError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["IndexSettings", "forbids_network", "read_settings", "redact"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:")
_USER = re.compile(r"//[^/\s]*@")
_QUERY = re.compile(r"\?[^\s'\"<>)#]+")


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """Where packages may come from. Addresses may hold credentials, so they are left out of the ``repr``.

    Attributes:
        indexes: Addresses of simple repositories; ``None`` among them stands for the public index.
        find_links: Addresses of folders and pages.
        ca_bundle: File of certificates to trust in place of the usual ones.
        client_cert: File with the client's own certificate and key.
        proxy: Address of the proxy for everything.
    """

    indexes: tuple[str | None, ...] = field(default=(None,), repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    ca_bundle: str | None = None
    client_cert: str | None = None
    proxy: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What one tool's settings say. A ``default`` index replaces the public one."""

    default: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False


def read_settings(
    environ: Mapping[str, str] | None = None,
    *,
    etc: Path = Path("/etc"),
    prefix: Path | None = None,
) -> IndexSettings:
    """Collect the settings.

    Args:
        environ: Environment variables, by default the process's.
        etc: Folder of the system's configuration.
        prefix: Folder of the Python environment, by default the running one's.

    Raises:
        ConfigError: A configuration file of pip or uv can't be read.
        UsageError: ``PATCHWHEEL_INDEX_URL`` names neither an address nor a folder.
    """
    environ = os.environ if environ is None else environ
    own = tuple(map(_checked, _words(environ.get("PATCHWHEEL_INDEX_URL"))))
    pip = _pip_values(environ, etc, Path(sys.prefix) if prefix is None else prefix)
    sources = (_Found(default=own), _read_uv(environ, etc), _read_pip(pip))
    indexes: list[str | None] = [_as_url(url) for found in sources for url in (*found.default, *found.extra)]
    if not any(found.default for found in sources):
        indexes.append(None)
    if any(found.no_index for found in sources):
        indexes = [_as_url(url) for url in own]
    bundles = (pip.get("cert"), *map(environ.get, ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")))
    return IndexSettings(
        indexes=tuple(dict.fromkeys(indexes)),
        find_links=tuple(dict.fromkeys(_as_url(link) for found in sources for link in found.find_links)),
        ca_bundle=next(filter(None, bundles), None),
        client_cert=pip.get("client-cert") or None,
        proxy=pip.get("proxy") or None,
    )


def forbids_network(environ: Mapping[str, str] | None = None) -> bool:
    """Whether ``PATCHWHEEL_OFFLINE`` says to stay off the network.

    Raises:
        UsageError: It says neither yes nor no.
    """
    value = (os.environ if environ is None else environ).get("PATCHWHEEL_OFFLINE", "")
    if not _is_true(value) and value.strip().lower() not in ("", "0", "false", "no", "off", "n", "f"):
        raise UsageError("PATCHWHEEL_OFFLINE says neither yes nor no", expected="1 or 0", found=repr(value))
    return _is_true(value)


def redact(text: str) -> str:
    """The text without what may be secret in addresses: user, password, and query."""
    return _QUERY.sub("?***", _USER.sub("//***@", text))


def _read_uv(environ: Mapping[str, str], etc: Path) -> _Found:
    environment = _Found(
        default=_words(environ.get("UV_DEFAULT_INDEX")) or _words(environ.get("UV_INDEX_URL")),
        extra=_words(environ.get("UV_INDEX")) + _words(environ.get("UV_EXTRA_INDEX_URL")),
        find_links=_words((environ.get("UV_FIND_LINKS") or "").replace(",", " ")),
        no_index=_is_true(environ.get("UV_NO_INDEX")),
    )
    tables = [table for path in _uv_files(environ, etc) for table in _uv_tables(path)]
    found = [environment, *map(_uv_table, tables)]
    return _Found(
        default=tuple(_unnamed(url) for each in found for url in each.default),
        extra=tuple(_unnamed(url) for each in found for url in each.extra),
        find_links=tuple(link for each in found for link in each.find_links),
        no_index=any(each.no_index for each in found),
    )


def _uv_table(table: Mapping[str, object]) -> _Found:
    entries = [entry for entry in _items(table.get("index")) if isinstance(entry, dict) and "url" in entry]
    flat = [str(entry["url"]) for entry in entries if entry.get("format") == "flat"]
    simple = [entry for entry in entries if entry.get("format") != "flat"]
    return _Found(
        default=(
            *(str(entry["url"]) for entry in simple if entry.get("default")),
            *_words(table.get("index-url")),
        ),
        extra=(
            *(str(entry["url"]) for entry in simple if not entry.get("default")),
            *map(str, _items(table.get("extra-index-url"))),
        ),
        find_links=(*flat, *map(str, _items(table.get("find-links")))),
        no_index=table.get("no-index") is True,
    )


def _uv_tables(path: Path) -> list[Mapping[str, object]]:
    try:
        values: dict[str, object] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise _unreadable("uv", path) from error
    nested = values.get("pip")
    return [values, nested] if isinstance(nested, dict) else [values]


def _uv_files(environ: Mapping[str, str], etc: Path) -> list[Path]:
    if named := environ.get("UV_CONFIG_FILE"):
        return [Path(named)]
    if _is_true(environ.get("UV_NO_CONFIG")):
        return []
    folders = [_user_folder(environ), *_system_folders(environ, etc), etc]
    return [folder / "uv" / "uv.toml" for folder in folders]


def _read_pip(values: Mapping[str, str]) -> _Found:
    return _Found(
        default=_words(values.get("index-url")),
        extra=_words(values.get("extra-index-url")),
        find_links=_words(values.get("find-links")),
        no_index=_is_true(values.get("no-index")),
    )


def _pip_values(environ: Mapping[str, str], etc: Path, prefix: Path) -> dict[str, str]:
    """What pip's files and variables say; the later file wins, and a variable over all files."""
    values: dict[str, str] = {}
    sections: list[dict[str, dict[str, str]]] = [_pip_sections(path) for path in _pip_files(environ, etc, prefix)]
    for name in ("global", "download"):
        for section in sections:
            values.update(section.get(name, {}))
    for key in ("index-url", "extra-index-url", "find-links", "no-index", "cert", "client-cert", "proxy"):
        if value := environ.get("PIP_" + key.upper().replace("-", "_")):
            values[key] = value
    return values


def _pip_sections(path: Path) -> dict[str, dict[str, str]]:
    from configparser import Error, RawConfigParser  # noqa: PLC0415  (keeps the start of commands quick)

    parser = RawConfigParser()
    try:
        parser.read_string(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, Error) as error:
        raise _unreadable("pip", path) from error
    return {
        section: {key.replace("_", "-"): value for key, value in parser.items(section)} for section in parser.sections()
    }


def _pip_files(environ: Mapping[str, str], etc: Path, prefix: Path) -> list[Path]:
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:  # pip's own way to say: none at all
        return []
    files = [folder / "pip" / "pip.conf" for folder in reversed(_system_folders(environ, etc))]
    files.append(etc / "pip.conf")
    if not named or not Path(named).exists():
        files += [_home(environ) / ".pip" / "pip.conf", _user_folder(environ) / "pip" / "pip.conf"]
    files.append(prefix / "pip.conf")
    if named:
        files.append(Path(named))
    return files


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def _user_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ["XDG_CONFIG_HOME"]) if environ.get("XDG_CONFIG_HOME") else _home(environ) / ".config"


def _system_folders(environ: Mapping[str, str], etc: Path) -> list[Path]:
    named = environ.get("XDG_CONFIG_DIRS")
    return [Path(folder) for folder in named.split(os.pathsep) if folder] if named else [etc / "xdg"]


def _checked(text: str) -> str:
    """What our own variable says; others' variables are taken as their tools take them."""
    if not _URL.match(text) and not Path(text).expanduser().is_dir():
        raise UsageError(
            "PATCHWHEEL_INDEX_URL names neither an address nor a folder",
            expected="addresses such as https://host/simple/, or existing folders, separated by spaces",
            found=redact(f"//{text}")[2:],  # it may be an address, with a password, that lacks its https:
            next_step="correct it, or unset it",
        )
    return text


def _as_url(text: str) -> str:
    return text if _URL.match(text) else Path(text).expanduser().absolute().as_uri()


def _unnamed(url: str) -> str:
    """Without the name that uv allows in front: ``name=https://…``."""
    name, equals, address = url.partition("=")
    return address if equals and re.fullmatch(r"[\w.-]+", name) else url


def _words(value: object) -> tuple[str, ...]:
    return tuple(value.split()) if isinstance(value, str) else ()


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in ("1", "true", "yes", "on", "y", "t")


def _unreadable(tool: str, path: Path) -> ConfigError:
    # The parser's own text is left out: it may quote a line with a password.
    return ConfigError(
        f"can't read the settings of {tool}",
        where=str(path),
        next_step=f"correct the file, or point {tool.upper()}_CONFIG_FILE at another",
    )
