"""``patchwheel verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.cli.common import add_output_options, add_project_option, print_document, tell
from patchwheel.errors import UsageError
from patchwheel.pipeline import verify_paths
from patchwheel.project import find_project

if TYPE_CHECKING:
    import argparse

    from patchwheel.project import Project


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("wheel", type=Path, nargs="+", metavar="WHEEL", help="wheel file to check")
    parser.add_argument(
        "--base",
        type=Path,
        metavar="WHEEL",
        help="base wheel to compare with (default: the one that the build record names, if it is cached)",
    )
    add_project_option(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a report for each wheel; 1 if any check failed."""
    reports = verify_paths(arguments.wheel, base=arguments.base, project=_project(arguments.project))
    if arguments.json:
        documents = [report.as_document() for report in reports]
        print_document({"schema": "patchwheel.verify/1", "ok": all(reports), "reports": documents})
    else:
        for report in reports:
            tell(report.as_text())
    return 0 if all(reports) else 1


def _project(named: Path | None) -> Project | None:
    """The project, for its probes; a wheel can be verified without one, and the report then says what was left out."""
    try:
        return find_project(named)
    except UsageError:
        if named is not None:
            raise
        return None
