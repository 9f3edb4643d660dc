"""TOML that people edit and JSON that machines read, both checked against typed models."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, TypeVar

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
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"not valid TOML: {error}", where=name) from error
    try:
        return msgspec.convert(values, model)
    except msgspec.ValidationError as error:
        raise _config_error(str(error), model, name) from error


def canonical_json(value: object) -> bytes:
    """JSON with one spelling: sorted keys, two spaces, UTF-8, a newline at the end."""
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _config_error(message: str, model: type[msgspec.Struct], name: str) -> ConfigError:
    key = ""
    if found := _AT.match(message):
        message, key = found["what"], found["key"]
    if unknown := _UNKNOWN.match(message):
        key = f"{key}.{unknown['field']}" if key else unknown["field"]
        message = f"unknown key {key!r}"
    schema = getattr(model, "SCHEMA_PAGE", None)
    return ConfigError(
        message,
        where=f"{name}: {key}" if key else name,
        next_step=f"the keys are listed in {schema}" if schema else None,
    )
