"""``patchwheel accept``."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
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
from patchwheel.errors import UsageError
from patchwheel.files import writing
from patchwheel.project import find_project

if TYPE_CHECKING:
    import argparse

GATE = "canary"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "wheel",
        type=Path,
        nargs="?",
        metavar="WHEEL",
        help="wheel to prove (default: build the gate's recipe, and its controls)",
    )
    parser.add_argument(
        "--control",
        action="append",
        default=[],
        metavar="NAME=WHEEL",
        help="with WHEEL: a wheel with something left out, by the gate's name; rows that need others are not run",
    )
    parser.add_argument(
        "--gate", default=GATE, metavar="NAME", help="name of a gate in manifests/gates (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="servers side by side (default: one per processor, 4 at most)"
    )
    parser.add_argument(
        "--logs", type=Path, metavar="DIR", help="keep logs and built wheels here (default: only if a row fails)"
    )
    add_install_options(parser)
    add_project_option(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Install, serve, measure; 1 if a row failed."""
    try:
        from patchwheel.acceptance.prove import build_all, prove  # noqa: PLC0415
        from patchwheel.acceptance.run import MOST_JOBS, UNDER_TEST  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"accept needs the package {error.name}", next_step="pip install 'patchwheel[accept]'"
        ) from error

    project, reporter = find_project(arguments.project), reporter_of(arguments)
    with ExitStack() as stack:
        folder = _logs_of(arguments.logs, stack)
        if arguments.wheel is None:
            if arguments.control:
                raise UsageError(
                    "--control belongs to a WHEEL", next_step="name the wheel to prove, or leave --control away"
                )
            wheels = build_all(
                arguments.gate, project=project, out=folder / "wheels", offline=arguments.offline, reporter=reporter
            )
        else:
            wheels = _with_controls({UNDER_TEST: arguments.wheel}, arguments.control)
        table = prove(
            wheels,
            gate=arguments.gate,
            project=project,
            folder=folder,
            jobs=arguments.jobs or MOST_JOBS,
            offline=arguments.offline,
            reporter=reporter,
        )
        if not table:
            stack.pop_all()  # the logs are wanted now
            tell(f"the servers' logs are in {folder}")
    if arguments.json:
        print_document(table.as_document())
    else:
        tell(table.as_text())
    return 0 if table else 1


def _with_controls(wheels: dict[str, Path], given: list[str]) -> dict[str, Path]:
    for control in given:
        name, equals, path = control.partition("=")
        if not equals or name in wheels:
            raise UsageError("a control is NAME=WHEEL, each name once", found=control)
        wheels = {**wheels, name: Path(path)}
    return wheels


def _logs_of(named: Path | None, stack: ExitStack) -> Path:
    """The named folder, made if need be; else a temporary one that goes with the stack, whatever happens."""
    if named is None:
        folder = Path(tempfile.mkdtemp(prefix="patchwheel-accept-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder
    with writing(named, "elsewhere with --logs"):
        named.mkdir(parents=True, exist_ok=True)
    return named.absolute()
