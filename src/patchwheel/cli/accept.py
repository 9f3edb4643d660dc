"""``patchwheel accept``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.cli.common import add_output_options, add_project_option, print_document, reporter_of, tell
from patchwheel.errors import UsageError
from patchwheel.files import writing
from patchwheel.project import find_project

if TYPE_CHECKING:
    import argparse

GATE = "canary"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("wheel", type=Path, metavar="WHEEL", help="wheel to prove")
    parser.add_argument(
        "--control",
        action="append",
        default=[],
        metavar="NAME=WHEEL",
        help="a wheel with something left out, by the gate's name for it; rows that need others are not run",
    )
    parser.add_argument(
        "--gate", default=GATE, metavar="NAME", help="name of a gate in manifests/gates (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="servers side by side (default: one per processor, 4 at most)"
    )
    parser.add_argument(
        "--logs", type=Path, metavar="DIR", help="keep the servers' logs here (default: only of failed rows)"
    )
    parser.add_argument("--offline", action="store_true", help="install only what uv has cached")
    add_project_option(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Install, serve, measure; 1 if a row failed."""
    try:
        from patchwheel.acceptance.prove import prove  # noqa: PLC0415
        from patchwheel.acceptance.run import MOST_JOBS, UNDER_TEST  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"accept needs the package {error.name}", next_step="pip install 'patchwheel[accept]'"
        ) from error

    wheels = {UNDER_TEST: arguments.wheel}
    for control in arguments.control:
        name, equals, path = control.partition("=")
        if not equals or name in wheels:
            raise UsageError("a control is NAME=WHEEL, each name once", found=control)
        wheels[name] = Path(path)
    folder = _logs_of(arguments.logs)
    table = prove(
        wheels,
        gate=arguments.gate,
        project=find_project(arguments.project),
        folder=folder,
        jobs=arguments.jobs or MOST_JOBS,
        offline=arguments.offline,
        reporter=reporter_of(arguments),
    )
    if not table:
        tell(f"the servers' logs are in {folder}")
    elif arguments.logs is None:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        print_document(table.as_document())
    else:
        tell(table.as_text())
    return 0 if table else 1


def _logs_of(named: Path | None) -> Path:
    """The named folder, made if need be; else a temporary one."""
    if named is None:
        return Path(tempfile.mkdtemp(prefix="patchwheel-accept-"))
    with writing(named, "elsewhere with --logs"):
        named.mkdir(parents=True, exist_ok=True)
    return named.absolute()
