"""``patchwheel plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.cli.common import (
    add_network_options,
    add_output_options,
    add_recipe_options,
    print_document,
    reporter_of,
    tell,
)
from patchwheel.pipeline import plan_recipe
from patchwheel.project import find_project

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recipe_options(parser)
    add_network_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    plan = plan_recipe(
        arguments.recipe,
        project=find_project(arguments.project),
        variant=arguments.variant,
        left_out=arguments.leave_out,
        offline=arguments.offline,
        reporter=reporter_of(arguments),
    )
    if arguments.json:
        print_document(plan.as_document())
    else:
        tell(plan.as_text())
    return 0
