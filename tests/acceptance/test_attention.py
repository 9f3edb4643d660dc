"""What the dflash-cpu series makes of attention on the CPU is exact, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from patchwheel.install import run_script

if TYPE_CHECKING:
    from patchwheel.install import Environment

SCRIPT = Path(__file__).with_name("attention.py")


def test_attention_is_exact(patched: Environment) -> None:
    done = run_script(patched, SCRIPT, variables={"VLLM_LOGGING_LEVEL": "ERROR"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["worst"]) == 10
    assert {kind: worst for kind, worst in found["worst"].items() if worst > 1e-5} == {}
    assert found["refuses"]
