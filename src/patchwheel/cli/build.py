"""``patchwheel build``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.cli.common import (
    add_network_options,
    add_output_options,
    add_recipe_options,
    print_document,
    reporter_of,
    tell,
)
from patchwheel.pipeline import build_recipe
from patchwheel.progress import format_size
from patchwheel.project import find_project

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recipe_options(parser)
    parser.add_argument(
        "--strategy",
        choices=("auto", "overlay"),
        default="auto",
        help="how to build; auto takes what the plan says (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("wheels"),
        metavar="DIR",
        help="where the wheel goes (default: %(default)s)",
    )
    add_network_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Build, and say what came out and how to install it."""
    product = build_recipe(
        arguments.recipe,
        project=find_project(arguments.project),
        out=arguments.out,
        variant=arguments.variant,
        offline=arguments.offline,
        reporter=reporter_of(arguments),
    )
    if arguments.json:
        print_document(product.as_document())
        return 0
    if product.report:
        tell(product.report.as_text())
    tell(f"{product.wheel}\n  {format_size(product.size)}; its record: {product.record.name}")
    tell(f"  install it: pip install '{product.wheel}'")
    return 0
