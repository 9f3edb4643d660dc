"""``patchwheel needed``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.cli.common import (
    add_network_options,
    add_output_options,
    add_project_option,
    print_document,
    reporter_of,
    tell,
)
from patchwheel.needed import needed
from patchwheel.project import find_project
from patchwheel.recipe import DEFAULT_RECIPE

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "series", nargs="?", default=DEFAULT_RECIPE, metavar="SERIES", help="name of a series (default: %(default)s)"
    )
    parser.add_argument(
        "--base",
        action="append",
        metavar="VERSION",
        help="locked release to look at; may be repeated (default: all of them)",
    )
    add_project_option(parser)
    add_network_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print an answer for each patch and release."""
    releases = needed(
        arguments.series,
        arguments.base,
        project=find_project(arguments.project),
        offline=arguments.offline,
        reporter=reporter_of(arguments),
    )
    if arguments.json:
        documents = [release.as_document() for release in releases]
        print_document({"schema": "patchwheel.needed/1", "releases": documents})
    else:
        for release in releases:
            tell(release.as_text())
    return 0
