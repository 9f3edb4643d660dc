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
from patchwheel.plan import STRATEGIES
from patchwheel.progress import format_size
from patchwheel.project import find_project

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recipe_options(parser)
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="auto",
        help="how to build; auto takes what the plan says (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where the wheel goes (default: wheels/ of the project, or of this folder where there is none)",
    )
    add_network_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Build, and say what came out and how to install it."""
    project = find_project(arguments.project)
    product = build_recipe(
        arguments.recipe,
        project=project,
        out=arguments.out or (Path("wheels") if project.is_packaged else project.root / "wheels"),
        variant=arguments.variant,
        left_out=arguments.leave_out,
        offline=arguments.offline,
        reporter=reporter_of(arguments),
        strategy=arguments.strategy,
    )
    if arguments.json:
        print_document(product.as_document())
        return 0
    if product.report:
        tell(product.report.as_text())
    wheel = _from_here(product.wheel)
    tell(f"{wheel}\n  {format_size(product.size)}; its record: {product.record.name}")
    tell(f"  install it: pip install '{wheel}'")
    return 0


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
