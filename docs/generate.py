"""Writes the generated pages of docs/reference: exit codes, command line, JSON schemas, and what was measured.

``nox -s docs`` runs it; a unit test compares the pages with what it would write. Measured things come from two files
that are kept: ``canary.json`` (``nox -s accept -- --json``) and ``needed.json`` (``nox -s needed -- --json``).
"""

from __future__ import annotations

import argparse
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import canary
import msgspec

from patchwheel import errors
from patchwheel.acceptance.gate import Gate
from patchwheel.base import BasesLock
from patchwheel.cli import make_parser
from patchwheel.needed import WORDS
from patchwheel.probes import SeriesProbes
from patchwheel.recipe import Recipe
from patchwheel.series import SeriesFile

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py (nox -s docs); don't edit. -->\n\n"


def pages() -> dict[str, str]:
    """Every generated page by file name."""
    return {
        "errors.md": errors_page(),
        "command-line.md": command_line_page(),
        "recipe.schema.json": schema(Recipe, "A recipe: manifests/recipes/*.toml"),
        "series.schema.json": schema(SeriesFile, "A series: patches/<series>/series.toml"),
        "bases-lock.schema.json": schema(BasesLock, "The lock: manifests/bases.lock.toml"),
        "probes.schema.json": schema(SeriesProbes, "Probes of a series: manifests/probes/*.toml"),
        "gate.schema.json": schema(Gate, "A gate: manifests/gates/*.toml"),
        "canary.md": canary.page(measured("canary.json"), NOTE),
        "canary.svg": canary.chart(measured("canary.json")),
        "needed.md": needed_page(measured("needed.json")),
    }


def measured(name: str) -> dict[str, Any]:
    """A document that a command wrote."""
    document: dict[str, Any] = json.loads((REFERENCE / name).read_bytes())
    return document


def needed_page(document: dict[str, Any]) -> str:
    """Which release needs which patch, and why."""
    releases = document["releases"]
    patches = [need["patch"] for need in releases[0]["patches"]]
    parts = [
        NOTE,
        "# Which release needs which patch\n\n",
        f"The answers of `patchwheel needed {releases[0]['series']}` for the locked releases of vLLM, each from the\n",
        "release's own wheel. What the words stand on follows below.\n\n",
        "| patch | " + " | ".join(release["version"] for release in releases) + " |\n",
        "|---|" + "---|" * len(releases) + "\n",
    ]
    for number, patch in enumerate(patches):
        verdicts = [WORDS[release["patches"][number]["verdict"]] for release in releases]
        parts.append(f"| {patch} | " + " | ".join(verdicts) + " |\n")
    for number, patch in enumerate(patches):
        parts.append(f"\n## {patch}\n\n| release | | why | where |\n|---|---|---|---|\n")
        for release in releases:
            need = release["patches"][number]
            where = f"`{need['evidence']}`" if need["evidence"] else ""
            parts.append(f"| {release['version']} | {WORDS[need['verdict']]} | {need['says']} | {where} |\n")
    return "".join(parts)


def errors_page() -> str:
    """One row per error class."""
    kinds = sorted(errors.PatchwheelError.__subclasses__(), key=lambda kind: kind.exit_code)
    rows = [f"| {kind.exit_code} | `{kind.kind}` | {inspect.getdoc(kind)} |" for kind in kinds]
    return (
        NOTE
        + "# Exit codes\n\n"
        + "Each kind of failure has its own exit code, and a message that says what happened, where, what was\n"
        + "expected against what was found, and what to do next. With `--json` the same comes as one document on\n"
        + 'standard output, `"schema": "patchwheel.error/1"`.\n\n'
        + "| code | kind | what it means |\n|---|---|---|\n| 0 | | it holds |\n"
        + "\n".join(rows)
        + "\n| 70 | | a bug in patchwheel: please report it |\n"
        + "| 130, 143 | `stopped` | interrupted or terminated; nothing half-done is left |\n"
        + "| 141 | | whoever read standard output has left |\n"
    )


def command_line_page() -> str:
    """A table of arguments for every command; not argparse's own layout, which differs between Pythons."""
    parts = [NOTE, "# Command line\n"]
    for name, parser in commands(make_parser()):
        parts.append(f"\n## {name}\n\n{parser.description}\n\n| argument | what it means |\n|---|---|\n")
        parts += [row(action, parser.prog) for action in parser._actions if action.dest != "help"]  # noqa: SLF001
    return "".join(parts)


def row(action: argparse.Action, prog: str) -> str:
    """One argument; for a choice of sub-commands, a row for each."""
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  (argparse has no public name for it)
        helps = {choice.dest: choice.help for choice in action._choices_actions}  # noqa: SLF001
        return "".join(f"| `{prog} {name}` | {text} |\n" for name, text in helps.items())
    value = action.metavar or (" or ".join(action.choices) if action.choices else "")
    many = " …" if action.nargs == "+" else ""
    optional = not action.option_strings and action.nargs == "?"
    name = " ".join(filter(None, [", ".join(action.option_strings), str(value)])) + many
    help_text = (action.help or "").replace("%(default)s", str(action.default)).replace("program's", "the")
    return f"| `{f'[{name}]' if optional else name}` | {help_text} |\n"


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A parser and all those below it, by their names."""
    yield parser.prog, parser
    for action in parser._actions:  # noqa: SLF001  (argparse has no public way to its sub-parsers)
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                yield from commands(below)


def schema(model: type[msgspec.Struct], title: str) -> str:
    """The JSON schema of a model, for editors."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **ordered(msgspec.json.schema(model)),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def ordered(node: Any) -> Any:
    """The same schema with alternatives in one order and texts without indent; msgspec's releases differ in both."""
    if isinstance(node, dict):
        cleaned = (
            {"description": inspect.cleandoc(node["description"])} if isinstance(node.get("description"), str) else {}
        )
        return {key: ordered(value) for key, value in (node | cleaned).items()}
    if isinstance(node, list):
        inner = [ordered(value) for value in node]
        return sorted(inner, key=json.dumps) if all(isinstance(value, dict) for value in inner) else inner
    return node


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
        print(f"wrote docs/reference/{name}")
