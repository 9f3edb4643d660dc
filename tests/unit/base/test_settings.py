"""The settings that pip and uv would use, from each of their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchwheel.base import IndexSettings, read_settings, redact
from patchwheel.base.http import open_session
from patchwheel.base.settings import forbids_network
from patchwheel.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


class Machine:
    """A machine with nothing set but what a test sets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"HOME": str(root / "home")}

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def read(self, **environ: str) -> IndexSettings:
        return read_settings({**self.environ, **environ}, etc=self.root / "etc", prefix=self.root / "venv")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_set_means_the_public_index(machine: Machine) -> None:
    assert machine.read() == IndexSettings(indexes=(None,))


def test_our_own_variable_comes_first(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "simple").mkdir()
    monkeypatch.chdir(tmp_path)
    settings = machine.read(PATCHWHEEL_INDEX_URL=f"https://a/ {tmp_path} simple", UV_DEFAULT_INDEX="https://d/")
    assert settings.indexes == ("https://a/", tmp_path.as_uri(), (tmp_path / "simple").as_uri(), "https://d/")


@pytest.mark.parametrize("value", ["nonsense", "https://a/ nonsense", "user:secret@host/simple", "host?token=secret"])
def test_our_own_variable_must_make_sense(machine: Machine, value: str) -> None:
    with pytest.raises(UsageError, match="neither an address nor a folder") as caught:
        machine.read(PATCHWHEEL_INDEX_URL=value)
    assert caught.value.found in ("nonsense", "***@host/simple", "host?***")
    with pytest.raises(UsageError, match="neither an address nor a folder"):
        machine.read(PATCHWHEEL_INDEX_URL=str(machine.write("file", "")))


def test_others_variables_are_taken_as_they_are(machine: Machine, tmp_path: Path) -> None:
    assert machine.read(PIP_INDEX_URL=str(tmp_path / "none")).indexes == ((tmp_path / "none").as_uri(),)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, False),
        ("", False),
        ("0", False),
        ("No", False),
        (" off ", False),
        ("1", True),
        ("YES", True),
        ("t", True),
    ],
)
def test_whether_the_network_is_forbidden(value: str | None, expected: bool) -> None:  # noqa: FBT001
    assert forbids_network({} if value is None else {"PATCHWHEEL_OFFLINE": value}) is expected


@pytest.mark.parametrize("value", ["2", "maybe", "off line"])
def test_whether_the_network_is_forbidden_must_be_clear(value: str) -> None:
    with pytest.raises(UsageError, match="neither yes nor no") as caught:
        forbids_network({"PATCHWHEEL_OFFLINE": value})
    assert caught.value.found == repr(value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("UV_DEFAULT_INDEX", "https://a/", ("https://a/",)),
        ("UV_DEFAULT_INDEX", "mine=https://a/", ("https://a/",)),
        ("UV_INDEX_URL", "https://a/?x=y", ("https://a/?x=y",)),
        ("UV_INDEX", "mine=https://a/ https://b/", ("https://a/", "https://b/", None)),
        ("UV_EXTRA_INDEX_URL", "https://a/ https://b/", ("https://a/", "https://b/", None)),
        ("UV_NO_INDEX", "1", ()),
        ("PIP_INDEX_URL", "https://a/", ("https://a/",)),
        ("PIP_EXTRA_INDEX_URL", "https://a/ file:///b", ("https://a/", "file:///b", None)),
        ("PIP_NO_INDEX", "true", ()),
        ("PATCHWHEEL_INDEX_URL", "https://a/", ("https://a/",)),
    ],
)
def test_variables_with_indexes(machine: Machine, name: str, value: str, expected: tuple[str | None, ...]) -> None:
    assert machine.read(**{name: value}).indexes == expected


@pytest.mark.parametrize(
    ("name", "value"), [("UV_FIND_LINKS", "/wheels,https://a/"), ("PIP_FIND_LINKS", "/wheels https://a/")]
)
def test_variables_with_links(machine: Machine, name: str, value: str) -> None:
    assert machine.read(**{name: value}).find_links == ("file:///wheels", "https://a/")


UV = """
index-url = "https://old/"
extra-index-url = ["https://extra/"]
find-links = ["/wheels"]
[[index]]
url = "https://named/"
name = "mine"
[[index]]
url = "https://default/"
default = true
[[index]]
url = "/flat"
format = "flat"
[pip]
extra-index-url = ["https://extra-pip/"]
"""


@pytest.mark.parametrize(
    ("place", "environ"),
    [
        ("home/.config/uv/uv.toml", {}),
        ("xdg/uv/uv.toml", {"XDG_CONFIG_HOME": "xdg"}),
        ("etc/uv/uv.toml", {}),
        ("etc/xdg/uv/uv.toml", {}),
        ("dirs/uv/uv.toml", {"XDG_CONFIG_DIRS": "dirs"}),
        ("any.toml", {"UV_CONFIG_FILE": "any.toml"}),
    ],
)
def test_files_of_uv(machine: Machine, place: str, environ: dict[str, str]) -> None:
    machine.write(place, UV)
    absolute = {name: str(machine.root / value) for name, value in environ.items()}
    settings = machine.read(**absolute)
    assert settings.indexes == (
        "https://default/",
        "https://old/",
        "https://named/",
        "https://extra/",
        "https://extra-pip/",
    )
    assert settings.find_links == ("file:///flat", "file:///wheels")
    if not environ:
        assert machine.read(UV_NO_CONFIG="1") == IndexSettings()


PIP = """
[global]
index-url = https://a/
extra-index-url =
    https://b/
    https://c/
find-links = /wheels
cert = /ca.pem
client-cert = /client.pem
proxy = http://proxy/
[install]
index-url = https://never/
[download]
index_url = https://d/
"""


@pytest.mark.parametrize(
    ("place", "environ"),
    [
        ("home/.config/pip/pip.conf", {}),
        ("home/.pip/pip.conf", {}),
        ("xdg/pip/pip.conf", {"XDG_CONFIG_HOME": "xdg"}),
        ("etc/pip.conf", {}),
        ("etc/xdg/pip/pip.conf", {}),
        ("dirs/pip/pip.conf", {"XDG_CONFIG_DIRS": "dirs"}),
        ("venv/pip.conf", {}),
        ("any.conf", {"PIP_CONFIG_FILE": "any.conf"}),
    ],
)
def test_files_of_pip(machine: Machine, place: str, environ: dict[str, str]) -> None:
    machine.write(place, PIP)
    absolute = {name: str(machine.root / value) for name, value in environ.items()}
    assert machine.read(**absolute) == IndexSettings(
        indexes=("https://d/", "https://b/", "https://c/"),
        find_links=("file:///wheels",),
        ca_bundle="/ca.pem",
        client_cert="/client.pem",
        proxy="http://proxy/",
    )
    assert machine.read(**absolute, PIP_INDEX_URL="https://e/").indexes[0] == "https://e/"
    if not environ:
        assert machine.read(PIP_CONFIG_FILE="/dev/null") == IndexSettings()


def test_later_files_of_pip_win(machine: Machine) -> None:
    for number, place in enumerate(["etc/pip.conf", "home/.config/pip/pip.conf", "venv/pip.conf", "any.conf"]):
        path = machine.write(place, f"[global]\nindex-url = https://{number}/\n")
        environ = {"PIP_CONFIG_FILE": str(path)} if place == "any.conf" else {}
        assert machine.read(**environ).indexes == (f"https://{number}/",)


def test_a_named_file_of_pip_stands_for_the_users_own(machine: Machine) -> None:
    machine.write("home/.config/pip/pip.conf", "[global]\nextra-index-url = https://user/\n")
    named = machine.write("any.conf", "[global]\nindex-url = https://named/\n")
    assert machine.read(PIP_CONFIG_FILE=str(named)).indexes == ("https://named/",)


def test_all_sources_add_up(machine: Machine) -> None:
    machine.write("home/.config/uv/uv.toml", 'extra-index-url = ["https://uv/"]')
    machine.write("home/.config/pip/pip.conf", "[global]\nextra-index-url = https://pip/ https://uv/\n")
    settings = machine.read(UV_EXTRA_INDEX_URL="https://env/")
    assert settings.indexes == ("https://env/", "https://uv/", "https://pip/", None)


def test_without_indexes_the_own_one_is_still_used(machine: Machine) -> None:
    assert machine.read(PIP_NO_INDEX="1", PATCHWHEEL_INDEX_URL="https://a/").indexes == ("https://a/",)


@pytest.mark.parametrize(
    ("place", "text"),
    [("etc/pip.conf", "index-url = https://user:secret@a/"), ("home/.config/uv/uv.toml", "x = [secret")],
)
def test_unreadable_files_are_told_without_quoting_them(machine: Machine, place: str, text: str) -> None:
    path = machine.write(place, text)
    with pytest.raises(ConfigError, match="can't read the settings") as caught:
        machine.read()
    assert caught.value.where == str(path)
    assert "secret" not in str(caught.value)


def test_certificates_by_order(machine: Machine) -> None:
    environ: dict[str, str] = {}
    for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT"):
        environ[name] = f"/{name}"
        assert machine.read(**environ).ca_bundle == f"/{name}"


def test_the_session_prefers_explicit_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/environment.pem")
    monkeypatch.setenv("HTTPS_PROXY", "http://environment/")
    explicit = IndexSettings(ca_bundle="/explicit.pem", proxy="http://explicit/", client_cert="/client.pem")
    with open_session(explicit) as session:
        merged = session.merge_environment_settings("https://a/", {}, None, None, None)
        assert (merged["verify"], merged["proxies"]["https"]) == ("/explicit.pem", "http://explicit/")
        assert merged["cert"] == "/client.pem"
    with open_session(IndexSettings()) as session:
        merged = session.merge_environment_settings("https://a/", {}, None, None, None)
        assert (merged["verify"], merged["proxies"]["https"]) == ("/environment.pem", "http://environment/")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:pass@host/x", "https://***@host/x"),
        ("https://token@host/x", "https://***@host/x"),
        ("https://user:p@ss@host/x", "https://***@host/x"),
        (
            "see https://u:p@host/x?sig=abc&y=1#f and http://a:b@c/",
            "see https://***@host/x?***#f and http://***@c/",
        ),
        ("https://host/@scope/x", "https://host/@scope/x"),
        ("nothing here", "nothing here"),
    ],
)
def test_redaction(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_settings_do_not_show_addresses(machine: Machine) -> None:
    url = "https://user:secret@host/"
    settings = machine.read(PATCHWHEEL_INDEX_URL=url, PIP_FIND_LINKS=url, PIP_PROXY=url)
    assert settings.proxy == url
    assert "secret" not in repr(settings)
