"""Options and output that the commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.documents import canonical_json
from patchwheel.errors import OutputError
from patchwheel.progress import SILENT, Reporter, reporter_for
from patchwheel.recipe import DEFAULT_RECIPE

if TYPE_CHECKING:
    import argparse

__all__ = [
    "add_install_options",
    "add_network_options",
    "add_output_options",
    "add_recipe_options",
    "print_document",
    "reporter_of",
    "tell",
]


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """``--json`` and ``--quiet``."""
    parser.add_argument("--json", action="store_true", help="put one JSON document on standard output")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, only the result")


def add_network_options(parser: argparse.ArgumentParser) -> None:
    """``--offline``."""
    parser.add_argument(
        "--offline", action="store_true", help="use only what the cache has (also: PATCHWHEEL_OFFLINE=1)"
    )


def add_install_options(parser: argparse.ArgumentParser) -> None:
    """``--offline``, of commands that make environments."""
    parser.add_argument("--offline", action="store_true", help="use only what the caches have, uv's as well")


def add_project_option(parser: argparse.ArgumentParser) -> None:
    """``--project``."""
    parser.add_argument(
        "--project",
        type=Path,
        metavar="DIR",
        help="folder with manifests/ and patches/ (default: the nearest one above, else what patchwheel ships)",
    )


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """The recipe, ``--variant`` and ``--project``."""
    parser.add_argument(
        "recipe",
        nargs="?",
        default=DEFAULT_RECIPE,
        metavar="RECIPE",
        help="name of a recipe in manifests/recipes, or path of a .toml file (default: %(default)s)",
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="SERIES/PATCH",
        help="do without this patch, to see what it is for; may be repeated",
    )
    parser.add_argument("--variant", metavar="V", help="such as x86_64-cu13 or aarch64-cu13 (default: this machine's)")
    add_project_option(parser)


def reporter_of(arguments: argparse.Namespace) -> Reporter:
    """The reporter that the options ask for."""
    return SILENT if arguments.quiet else reporter_for()


def tell(text: str) -> None:
    """Tell a person something, on standard error: standard output is for documents."""
    print(text, file=sys.stderr)


def print_document(document: object) -> None:
    """Put a JSON document on standard output.

    Raises:
        OutputError: Standard output is closed, or can't be written.
        BrokenPipeError: Who read it has left.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed", next_step="leave --json away, or give it somewhere to write")
    try:
        sys.stdout.buffer.write(canonical_json(document))  # UTF-8, whatever the terminal's encoding
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"can't write to standard output: {error.strerror}") from error
