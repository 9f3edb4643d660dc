"""Clean environments with a wheel and its dependencies in them, made by uv and kept in the cache.

An environment is known by what went into it: the wheel's digest, the overrides and the interpreter. It is made where it
stays, since scripts in it name their own place, and a marker that is written last says that it is whole. One without
marker is what an interrupted run left, and is made anew.

A virtual environment shares its files with uv's cache where both are on one file system, so that several
environments cost little more than one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from patchwheel.base.store import ELSEWHERE, Store, default_store, holding
from patchwheel.documents import canonical_json
from patchwheel.errors import ToolError, UsageError
from patchwheel.files import sha256_bytes, sha256_file, write_atomically, writing
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Environment", "check_overrides", "clean_variables", "create_environment", "find_uv", "run_script"]

MARKER = "patchwheel-environment.json"
_TOLD = 25


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A whole environment.

    Attributes:
        folder: Where it is.
        wheel: File name of the wheel that it was made for.
        sha256: The wheel's digest.
    """

    folder: Path
    wheel: str
    sha256: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


def create_environment(
    wheel: Path,
    *,
    overrides: Sequence[str] = (),
    python: Path | None = None,
    store: Store | None = None,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Environment:
    """An environment with the wheel and all that it requires; made, or found as it was made before.

    Args:
        wheel: The wheel file.
        overrides: Requirements that take the place of what any package says of the same project, as for uv; one with a
            marker that never holds leaves the project out.
        python: The interpreter to make it with, by default the one that runs this.
        store: The cache, by default the user's.
        offline: Use only what uv has cached.
        reporter: Is told what uv does.

    Raises:
        UsageError: The wheel can't be read, or an override is no requirement.
        OutputError: The cache can't be written.
        ToolError: There is no uv, or it failed; shows what it said last.
    """
    store = store or default_store()
    wanted = check_overrides(overrides)
    interpreter = python or Path(sys.executable)
    sha256 = _digest(wheel)
    contents = {
        "schema": "patchwheel.environment/1",
        "wheel": wheel.name,
        "sha256": sha256,
        "overrides": list(wanted),
        "python": f"{interpreter.resolve()} {_version(interpreter)}",
    }
    marker = canonical_json(contents)
    key = sha256_bytes(marker)[:16]
    folder = store.root / "environments" / key
    environment = Environment(folder=folder, wheel=wheel.name, sha256=sha256)
    with holding(store.root / "environments" / f"{key}.lock", f"another process makes {folder}: waiting", reporter):
        if _is_whole(folder, marker):
            return environment
        with writing(folder, ELSEWHERE):
            shutil.rmtree(folder, ignore_errors=True)
        with reporter.step(f"installed {wheel.name} with its dependencies"):
            _fill(folder, wheel, wanted, interpreter, offline=offline, reporter=reporter)
        write_atomically(folder / MARKER, marker)
    return environment


def check_overrides(overrides: Sequence[str]) -> tuple[str, ...]:
    """Overrides in one spelling and order.

    Raises:
        UsageError: One is not a requirement.
    """
    try:
        return tuple(sorted(str(Requirement(override)) for override in overrides))
    except InvalidRequirement as error:
        raise UsageError(f"an override is no requirement: {error}", expected="such as torch==2.11.0") from error


def run_script(
    environment: Environment,
    script: Path,
    arguments: Sequence[str] = (),
    *,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a script by an environment's interpreter, apart from the user's Python settings and this folder.

    It has no time limit, leads a process group of its own, and doesn't outlive an interruption of this process.

    Returns:
        Exit code, standard output and standard error.

    Raises:
        ToolError: It can't be started.
    """
    command = [str(environment.python), "-I", str(script), *arguments]
    with _running(command, subprocess.PIPE, variables) as process:
        out, err = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def clean_variables(added: Mapping[str, str]) -> dict[str, str]:
    """This process's variables, but for those that change what an interpreter finds or whether it keeps bytecode."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **added}


def find_uv() -> str:
    """The uv program: that of the installed package, else one on the path.

    Raises:
        ToolError: There is none.
    """
    with suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin  # noqa: PLC0415  (an optional extra)

        return str(find_uv_bin())
    if found := shutil.which("uv"):
        return found
    raise ToolError("uv is not installed", next_step="pip install 'patchwheel[install]', or put uv on the path")


def _fill(
    folder: Path, wheel: Path, overrides: Sequence[str], interpreter: Path, *, offline: bool, reporter: Reporter
) -> None:
    uv = find_uv()
    _uv([uv, "venv", "--no-project", "--python", str(interpreter), str(folder)], reporter)
    file = folder / "overrides.txt"
    file.write_text("".join(f"{override}\n" for override in overrides), "utf-8")
    command = [uv, "pip", "install", "--python", str(folder / "bin" / "python"), "--override", str(file), str(wheel)]
    _uv([*command, *(["--offline"] if offline else [])], reporter)


def _uv(command: Sequence[str], reporter: Reporter) -> None:
    """Run uv and pass on what it says, but for the list of packages.

    It looks for a project in the root folder alone: it would obey the ``[tool.uv]`` of one that lies around, which may
    add overrides or leave out dependencies, and which the environment's key doesn't count.
    """
    last: deque[str] = deque(maxlen=_TOLD)
    with _running([*command, "--project", "/"], subprocess.STDOUT) as process:
        for line in process.stdout or ():
            last.append(line.rstrip())
            if not line.startswith((" + ", " - ", " ~ ")):
                reporter.say(f"uv: {line.strip()}")
        code = process.wait()
    if code:
        words = takewhile(lambda word: not word.startswith("-"), command[1:])
        raise ToolError(
            f"uv {' '.join(words)} failed with exit code {code}",
            details="\n".join(f"  | {line}" for line in last),
            next_step="mend what uv complains of, and run the same command again: what was fetched is kept",
        )


@contextmanager
def _running(
    command: Sequence[str], stderr: int, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, all of which is killed if the caller is interrupted."""
    try:
        process = subprocess.Popen(  # noqa: S603  (no shell)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            env=clean_variables(variables or {}),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"can't start {Path(command[0]).name}: {error.strerror}", where=command[0]) from error
    with process:
        try:
            yield process
        except BaseException:
            # The first of the group may have ended, and others of it may still be there.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _is_whole(folder: Path, marker: bytes) -> bool:
    with suppress(OSError):
        return (folder / MARKER).read_bytes() == marker and (folder / "bin" / "python").exists()
    return False


def _digest(wheel: Path) -> str:
    try:
        file: IO[bytes]
        with wheel.open("rb") as file:
            return sha256_file(file)
    except OSError as error:
        raise UsageError(f"can't read {wheel.name}: {error.strerror}", where=str(wheel)) from error


def _version(interpreter: Path) -> str:
    command = [str(interpreter), "-I", "-c", "import sys; print(sys.version)"]
    with _running(command, subprocess.PIPE) as process:
        out, err = process.communicate()
    if process.returncode:
        raise ToolError(f"{interpreter.name} does not run", where=str(interpreter), details=err.strip())
    return " ".join(out.split())
