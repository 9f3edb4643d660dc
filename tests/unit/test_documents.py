from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import msgspec
import pytest
from msgspec import Meta

from patchwheel.documents import canonical_json, load_toml, parse_toml
from patchwheel.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int = 0


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    inner: Inner
    items: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("x = 1", "f.toml: x", "unknown key 'x'"),
        ("inner = {y = 1}", "f.toml: inner.y", "unknown key 'inner.y'"),
        ("inner = {}\nitems = [{}, {z = 1}]", "f.toml: items[1].z", "unknown key 'items[1].z'"),
        ("inner = {count = 'a'}", "f.toml: inner.count", "Expected int, got str"),
        ("items = []", "f.toml", "the key inner is missing"),
        ("= 1", "f.toml", "not valid TOML"),
    ],
)
def test_errors_name_file_and_key(text: str, where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_toml(text.encode(), Outer, "f.toml")
    assert caught.value.where == where
    assert what in caught.value.what


class Described(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    label: Annotated[str, Meta(pattern="^[a-z]+$", description="a word, such as dflash")]
    tables: dict[str, Inner] = {}
    either: str | Inner = ""


@pytest.mark.parametrize(
    ("text", "expected", "found", "next_step"),
    [
        ("label = 'X'", "a word, such as dflash", "'X'", None),
        ("labell = 'x'", "one of either, label, tables", None, "did you mean label?"),
        ("label = 'x'\nzzz = 1", "one of either, label, tables", None, None),
        ("label = 'x'\neither = {cuont = 1}", "one of count", None, "did you mean count?"),
        ("label = 'x'\ntables = {a = {count = 'q'}}", None, None, None),
        ("tables = {}", "a word, such as dflash", None, None),
    ],
)
def test_errors_say_what_may_stand_there(
    text: str, expected: str | None, found: str | None, next_step: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_toml(text.encode(), Described, "f.toml")
    assert (caught.value.expected, caught.value.found, caught.value.next_step) == (expected, found, next_step)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_toml(tmp_path / "none.toml", Outer)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_toml(tmp_path / "latin.toml", Outer)


def test_json_has_one_spelling() -> None:
    data = canonical_json({"b": (1, "ü"), "a": Outer(inner=Inner())})
    assert data.decode().splitlines() == [
        "{",
        '  "a": {',
        '    "inner": {',
        '      "count": 0',
        "    },",
        '    "items": []',
        "  },",
        '  "b": [',
        "    1,",
        '    "ü"',
        "  ]",
        "}",
    ]
    assert data.endswith(b"}\n")
    assert json.loads(data)["b"] == [1, "ü"]
