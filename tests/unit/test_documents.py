from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

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
        ("inner = {count = 'a'}", "f.toml: inner.count", "Expected `int`, got `str`"),
        ("items = []", "f.toml", "missing required field `inner`"),
        ("= 1", "f.toml", "not valid TOML"),
    ],
)
def test_errors_name_file_and_key(text: str, where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_toml(text.encode(), Outer, "f.toml")
    assert caught.value.where == where
    assert what in caught.value.what


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
