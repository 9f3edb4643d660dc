"""Running the installed command line as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("patchwheel")


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


def patchwheel(*arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Ran:
    """Call ``patchwheel`` to its end."""
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | dict(env or {}),
    )
    return Ran(done.returncode, done.stdout, done.stderr)
