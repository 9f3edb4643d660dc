"""The command line. Each command is a module with ``configure`` and ``run``, imported only when it is called.

People read standard error; ``--json`` puts one document on standard output. Exit codes: docs/reference/errors.md.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from patchwheel.errors import PatchwheelError

__all__ = ["COMMANDS", "main", "make_parser"]

COMMANDS = {
    "plan": "say what a build would do and why; builds nothing",
    "build": "fetch, apply, build, verify and publish a patched wheel",
    "verify": "check a wheel: is it whole, and is it what it says",
    "smoke": "install a wheel in a clean environment, import it, and call what its patches change",
    "accept": "serve a wheel with the canary, and hold what it accepts to the reference",
    "needed": "say whether releases still need a series, patch by patch",
    "base": "pin base wheels in the lock, or fetch them ahead of time",
}

_INTERRUPTED = 130
_TERMINATED = 143
_NO_READER = 141
_BUG = 70


def make_parser(configured: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser, with the options of the ``configured`` commands; the others are only named."""
    import argparse  # noqa: PLC0415  (imports stay out of the way of --version)
    import importlib  # noqa: PLC0415

    import patchwheel  # noqa: PLC0415

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            from patchwheel.errors import UsageError  # noqa: PLC0415

            raise UsageError(message, next_step=f"{self.prog} --help")

    parser = Parser(
        prog="patchwheel",
        description="Build, check, package and prove a patched vLLM wheel.",
        epilog="patchwheel COMMAND --help tells more of a command. What people read goes to standard error; --json puts"
        " one document on standard output. Exit codes: 0 it holds, 1 a check failed, 2 wrong use, others by kind of"
        " error (docs/reference/errors.md).",
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
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(given)
    except BrokenPipeError:
        # Who read our output has left, which is no error; the interpreter must not flush into the void at its end.
        sys.stdout = None
        return _NO_READER
    except KeyboardInterrupt:
        return _told_stopped(_INTERRUPTED, as_json="--json" in given)
    except _StoppedError:
        return _told_stopped(_TERMINATED, as_json="--json" in given)


def _run(given: Sequence[str]) -> int:
    parser = make_parser([name for name in COMMANDS if name in given])
    as_json = "--json" in given
    try:
        arguments = parser.parse_args(given)
        _stop_politely()
        return int(arguments.run(arguments))
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001  (the last resort is to tell of a bug, with a code of its own)
        from patchwheel.errors import PatchwheelError  # noqa: PLC0415

        if isinstance(error, PatchwheelError):
            _tell(error, as_json=as_json)
            return error.exit_code
        import traceback  # noqa: PLC0415

        traceback.print_exc()
        print("this is a bug in patchwheel: please report it with the lines above", file=sys.stderr)
        return _BUG


def _stop_politely() -> None:
    import signal  # noqa: PLC0415

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)


class _StoppedError(BaseException):
    """Raised by SIGTERM and SIGHUP, so that everything unwinds and drafts are removed."""


def _stop(_number: int, _frame: object) -> None:
    raise _StoppedError


def _told_stopped(code: int, *, as_json: bool) -> int:
    print("stopped; nothing half-done is left", file=sys.stderr)
    if as_json:
        _print({"schema": "patchwheel.error/1", "kind": "stopped", "exit_code": code, "what": "stopped"})
    return code


def _tell(error: PatchwheelError, *, as_json: bool) -> None:
    print(f"error: {error}", file=sys.stderr)
    if as_json:
        _print(error.as_document())


def _print(document: object) -> None:
    from patchwheel.cli.common import print_document  # noqa: PLC0415
    from patchwheel.errors import OutputError  # noqa: PLC0415

    with suppress(OutputError):  # perhaps the very error that is being told
        print_document(document)
