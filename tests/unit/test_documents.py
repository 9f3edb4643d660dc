from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from patchwheel.base import BasesLock
from patchwheel.documents import canonical_json, load_toml, parse_toml
from patchwheel.errors import ConfigError
from patchwheel.recipe import Recipe
from patchwheel.series import SeriesFile

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
        ("x = " + "[" * 5000, "f.toml", "not valid TOML"),
        ("x = " + "9" * 5000, "f.toml", "not valid TOML"),
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


SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=5), st.just("vllm"), st.just("0" * 64)
)
KEYS = st.sampled_from(
    ["name", "base", "series", "wheels", "variants", "commit", "patches", "0.20.2", "sdist", "x", "a.b"]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
GOOD = {
    "name": "r",
    "summary": "s",
    "label": "l",
    "series": ["one", {"name": "two", "purpose": "p", "url": "u", "commit": "0" * 40, "base-commit": "0" * 40}],
    "base": {
        "project": "vllm",
        "version": "0.20.2",
        "wheels": [{"variant": "x86_64-cpu", "sha256": "0" * 64, "path": "p"}],
    },
}


@given(st.data(), st.sampled_from([Recipe, SeriesFile, BasesLock]))
def test_whatever_stands_in_a_file_only_config_errors_come_of_it(
    data: st.DataObject, model: type[Recipe | SeriesFile | BasesLock]
) -> None:
    values: Any = copy.deepcopy(GOOD) if data.draw(st.booleans()) else {}
    spot = values
    while isinstance(spot, dict) and spot and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(spot)))
        spot = spot[key][0] if isinstance(spot[key], list) and isinstance(spot[key][0], dict) else spot[key]
    if isinstance(spot, dict):
        spot[data.draw(KEYS)] = data.draw(VALUES)
    with suppress(ConfigError):
        parse_toml(tomli_w.dumps(values).encode(), model, "f.toml")


def test_a_key_that_is_written_to_confuse() -> None:
    for key in ("x`", "` - at `$.q", "a.b", "[0]"):
        with pytest.raises(ConfigError):
            parse_toml(tomli_w.dumps({key: 1, "inner": {key: 2}}).encode(), Outer, "f.toml")
