"""``patchwheel smoke``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.cli.common import (
    add_install_options,
    add_output_options,
    add_project_option,
    print_document,
    reporter_of,
    tell,
)
from patchwheel.project import find_project
from patchwheel.smoke import smoke

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("wheel", type=Path, metavar="WHEEL", help="wheel to try")
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="recipe that says how the wheel is installed (default: the one that the record beside the wheel names)",
    )
    add_install_options(parser)
    add_project_option(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a report; 1 if anything failed."""
    report = smoke(
        arguments.wheel,
        project=find_project(arguments.project),
        recipe=arguments.recipe,
        offline=arguments.offline,
        reporter=reporter_of(arguments),
    )
    if arguments.json:
        print_document({"schema": "patchwheel.smoke/1", **report.as_document()})
    else:
        tell(report.as_text())
    return 0 if report else 1
