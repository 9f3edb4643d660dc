"""The tests of the reference decoder and of the canary's figures, run where torch is: in the wheel's environment."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from typing import TYPE_CHECKING

from support.commands import ROOT

if TYPE_CHECKING:
    from patchwheel.install import Environment


def test_reference_and_figures(patched: Environment) -> None:
    suites = ["tests/unit/acceptance/test_reference.py", "tests/unit/acceptance/test_canary_figures.py"]
    command = [str(patched.python), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *suites]
    # pytest and patchwheel come from here, torch and transformers from there, where they are found first.
    variables = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")]),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    told = re.search(r"(\d+) passed", done.stdout)
    assert told
    assert int(told[1]) > 50
    assert "skipped" not in done.stdout.splitlines()[-1]
