"""TOML that people edit and JSON that machines read, both checked against typed models."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from patchwheel.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["canonical_json", "load_toml", "parse_toml"]

Model = TypeVar("Model", bound=msgspec.Struct)

_AT = re.compile(r"^(?P<what>.*?) - at `\$?\.?(?P<key>.*)`$", re.DOTALL)
_STEP = re.compile(r"\[[^]]*\]|[^.\[]+")
_MISSING = re.compile(r"^Object missing required field `(?P<field>.*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>.*)`$")


def load_toml(path: Path, model: type[Model]) -> Model:
    """Read a TOML file into a model, refusing unknown keys.

    Raises:
        ConfigError: The file can't be read or isn't TOML, or a key is unknown, missing or of the wrong type; names
            the file and the key.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"can't read {path.name}: {error.strerror}", where=str(path)) from error
    return parse_toml(data, model, str(path))


def parse_toml(data: bytes, model: type[Model], name: str) -> Model:
    """Read TOML from bytes; ``name`` says in errors where they came from.

    Raises:
        ConfigError: As for `load_toml`.
    """
    try:
        values = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # of the encoding, the grammar, or its nesting and numbers
        raise ConfigError(f"not valid TOML: {error}", where=name) from error
    try:
        return msgspec.convert(values, model)
    except msgspec.ValidationError as error:
        raise _config_error(str(error), model, values, name) from error


def canonical_json(value: object) -> bytes:
    """JSON with one spelling: sorted keys, two spaces, UTF-8, a newline at the end."""
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _config_error(message: str, model: type[msgspec.Struct], values: object, name: str) -> ConfigError:
    """Msgspec's message, told by the key: what may stand there, what was found, and what was perhaps meant."""
    key = ""
    if found := _AT.match(message):
        message, key = found["what"], found["key"]
    steps = [step.strip("'[]") for step in _STEP.findall(key)]
    node = _schema_of(model, steps)
    next_step = None
    expected, actual = node.get("description"), None
    if unknown := _UNKNOWN.match(message):
        keys = sorted(node.get("properties", {}))
        close = get_close_matches(unknown["field"], keys, 1)
        key = f"{key}.{unknown['field']}" if key else unknown["field"]
        message, expected = f"unknown key {key!r}", "one of " + ", ".join(keys)
        next_step = f"did you mean {close[0]}?" if close else None
    elif missing := _MISSING.match(message):
        message = f"the key {missing['field']} is missing"
        expected = node.get("properties", {}).get(missing["field"], {}).get("description")
    elif steps and "..." not in steps:  # msgspec does not tell which key of a free table it was
        with suppress(LookupError, TypeError, ValueError):  # a key may be written so that its path can't be read back
            actual = repr(_value_at(values, steps))
    return ConfigError(
        message.replace("`", ""),
        where=f"{name}: {key}" if key else name,
        expected=expected,
        found=actual,
        next_step=next_step,
    )


def _value_at(values: Any, steps: list[str]) -> object:
    for step in steps:
        values = values[int(step) if isinstance(values, list) else step]
    return values


def _schema_of(model: type[msgspec.Struct], steps: list[str]) -> dict[str, Any]:
    """The part of the model's JSON schema that a key leads to; empty where the way is not plain."""
    schema = msgspec.json.schema(model)
    definitions = schema["$defs"]

    def resolved(node: dict[str, Any]) -> dict[str, Any]:
        choices = [choice for choice in node.get("anyOf", ()) if "$ref" in choice]
        reference = (choices[0] if choices else node).get("$ref")
        return definitions[reference.rpartition("/")[2]] if reference else node

    node = resolved(schema)
    for step in steps:
        inside = node.get("properties", {}).get(step) or node.get("items") or node.get("additionalProperties")
        if not isinstance(inside, dict):
            return {}
        node = resolved(inside)
    return dict(node)
