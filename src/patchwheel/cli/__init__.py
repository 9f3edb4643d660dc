"""The command line. Each command is a module with ``configure`` and ``run``, imported only when it is called.

People read standard error; ``--json`` puts one document on standard output. Exit codes: docs/reference/errors.md.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from patchwheel.errors import PatchwheelError

__all__ = ["COMMANDS", "main", "make_parser"]

COMMANDS = {
    "plan": "say what a build would do and why; builds nothing",
    "build": "fetch, apply, build, verify and publish a patched wheel",
    "verify": "check a wheel: is it whole, and is it what it says",
    "base": "pin base wheels in the lock, or fetch them ahead of time",
}

_INTERRUPTED = 130
_TERMINATED = 143
_BUG = 70


def make_parser(configured: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser, with the options of the ``configured`` commands; the others are only named."""
    import argparse  # noqa: PLC0415  (imports stay out of the way of --version)
    import importlib  # noqa: PLC0415

    import patchwheel  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="patchwheel",
        description="Build, check, package and prove a patched vLLM wheel.",
        epilog="patchwheel COMMAND --help tells more of a command. Exit codes: 0 it holds, 1 a check failed,"
        " 2 wrong use, others by kind of error (docs/reference/errors.md).",
    )
    parser.add_argument("--version", action="version", version=f"patchwheel {patchwheel.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name in configured:
            module = importlib.import_module(f"patchwheel.cli.{name}")
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments_given = sys.argv[1:] if argv is None else list(argv)
    arguments = make_parser([name for name in COMMANDS if name in arguments_given]).parse_args(arguments_given)

    import signal  # noqa: PLC0415

    from patchwheel.errors import PatchwheelError  # noqa: PLC0415

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)  # unwinds, so that drafts are removed

    signal.signal(signal.SIGTERM, stop)
    try:
        return int(arguments.run(arguments))
    except PatchwheelError as error:
        _tell(error, as_json=getattr(arguments, "json", False))
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the next run goes on from what is there", file=sys.stderr)
        return _INTERRUPTED
    except Exception:  # noqa: BLE001  (the last resort: its own exit code, and the trace for the report)
        import traceback  # noqa: PLC0415

        traceback.print_exc()
        print("this is a bug in patchwheel: please report it with the lines above", file=sys.stderr)
        return _BUG


def _tell(error: PatchwheelError, *, as_json: bool) -> None:
    if as_json:
        from patchwheel.cli.common import print_document  # noqa: PLC0415

        print_document(error.as_document())
    print(f"error: {error}", file=sys.stderr)
