"""The patch that shifts a DFlash drafter's layer ids: that it loads, and that its lines act as its header says."""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from support.patches import layer_taps

from patchwheel.project import Project
from patchwheel.series import load_series

if TYPE_CHECKING:
    from patchwheel.series.model import Patch

PROJECT = Project(root=Path(__file__).parents[3])
PATH = "vllm/v1/worker/gpu_model_runner.py"

# Stands for what vLLM has above and below the lines of the hunk; the hunk brings the rest of the function.
FRAME = """\
class GPUModelRunner:
    def _get_eagle3_aux_layers_from_config(self):
        hf_config = self.speculative_config.draft_model_config.hf_config
        layer_ids = getattr(hf_config, "eagle_aux_hidden_state_layer_ids", None)
        if not layer_ids:
{hunk}
        return None
"""


@pytest.fixture(scope="module")
def patch() -> Patch:
    patch, *_ = load_series("dflash-swa-support", "0.20.2", PROJECT).patches
    return patch


def framed(lines: tuple[bytes, ...]) -> str:
    return FRAME.format(hunk=textwrap.indent(textwrap.dedent(b"".join(lines).decode()), " " * 8))


def hunk_sides(patch: Patch) -> tuple[str, str]:
    (file,) = patch.files
    (hunk,) = file.hunks
    return framed(hunk.before), framed(hunk.after)


def dflash(ids: object) -> SimpleNamespace:
    return SimpleNamespace(dflash_config={"target_layer_ids": ids})


def test_it_is_for_releases_before_0_22(patch: Patch) -> None:
    assert patch.paths == (PATH,)
    assert patch.header.drop_when is not None
    assert not patch.header.drop_when.matches("0.21.0")
    assert patch.header.drop_when.matches("0.22.0")


@pytest.mark.parametrize("kind", [list, tuple])
def test_ids_become_taps(patch: Patch, kind: type) -> None:
    raw, shifted = hunk_sides(patch)
    ids = kind([1, 16, 31, 46, 61])
    assert layer_taps(shifted, dflash(ids)) == (2, 17, 32, 47, 62)
    assert layer_taps(raw, dflash(ids)) == (1, 16, 31, 46, 61)  # the fault that the patch mends
    assert ids == kind([1, 16, 31, 46, 61])  # the config itself stays as it is


def test_taps_that_are_given_as_taps_stay(patch: Patch) -> None:
    _, shifted = hunk_sides(patch)
    config = SimpleNamespace(
        eagle_aux_hidden_state_layer_ids=[2, 17, 32], dflash_config={"target_layer_ids": [2, 17, 32]}
    )
    assert layer_taps(shifted, config) == (2, 17, 32)


@pytest.mark.parametrize(
    "config",
    [SimpleNamespace(), SimpleNamespace(dflash_config=None), SimpleNamespace(dflash_config={}), dflash([]), dflash(3)],
)
def test_without_ids_there_are_no_taps(patch: Patch, config: SimpleNamespace) -> None:
    assert layer_taps(hunk_sides(patch)[1], config) is None
