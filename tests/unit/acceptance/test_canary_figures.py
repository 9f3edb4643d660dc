"""What the canary shows of each fault, by the reference: a minute's work where torch is, skipped where it isn't."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchwheel.acceptance.canary import (
    DRAFTER,
    TARGET,
    Variant,
    canary_folder,
    drafter_config,
    prompts,
    variants,
    write_variant,
)

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from patchwheel.acceptance import reference as ref  # noqa: E402  (needs torch)

SURE = 1e-3
"""Leads below this could be turned by another engine's rounding of float32."""


@dataclass(frozen=True)
class Row:
    drafts: int
    accepted: tuple[int, ...]
    texts: tuple[tuple[int, ...], ...]
    target_lead: float
    draft_lead: float

    @property
    def mean(self) -> float:
        return 1 + sum(self.accepted) / self.drafts

    @property
    def rate(self) -> float:
        return sum(self.accepted) / (self.drafts * len(self.accepted))


@pytest.fixture(scope="module")
def target() -> Any:
    torch.set_num_threads(1)
    return ref.load_target(canary_folder() / TARGET)


def run(target: Any, folder: Path) -> Row:
    asked = prompts()
    drafter = ref.load_drafter(folder)
    traces = [
        ref.decode(target, drafter, prompt, tokens=asked.tokens, speculative_tokens=asked.speculative_tokens)
        for prompt in asked.prompts
    ]
    leads = [trace.draft_margin for trace in traces if trace.draft_margin is not None]
    return Row(
        drafts=sum(trace.drafts for trace in traces),
        accepted=tuple(map(sum, zip(*(trace.accepted for trace in traces), strict=True))),
        texts=tuple(trace.tokens for trace in traces),
        target_lead=min(trace.target_margin for trace in traces),
        draft_lead=min(leads),
    )


@pytest.fixture(scope="module")
def right(target: Any) -> Row:
    return run(target, canary_folder() / DRAFTER)


def test_right_is_high_and_sure(target: Any, right: Row) -> None:
    asked = prompts()
    assert right.mean >= 4
    assert right.texts == tuple(ref.greedy(target, prompt, asked.tokens).tokens for prompt in asked.prompts)
    assert right.target_lead > SURE
    assert right.draft_lead > SURE


HIGHEST = {"taps-early": 0.8, "full": 0.6, "noncausal": 0.9, "mask": 0.5, "taps-last": 0.4, "field-report": 0.4}
"""Mean acceptance length of each fault, at most this part of the right one."""


@pytest.mark.parametrize("variant", [variant for variant in variants() if variant.edits], ids=lambda it: it.name)
def test_faults_show(target: Any, right: Row, variant: Variant, tmp_path: Path) -> None:
    row = run(target, write_variant(variant, tmp_path / "dflash"))
    assert row.texts == right.texts
    assert row.mean <= HIGHEST[variant.name] * right.mean
    assert (row.drafts, row.accepted) != (right.drafts, right.accepted)
    if variant.name == "field-report":
        assert row.rate <= 0.015


SMALL: dict[str, dict[str, Any]] = {
    "a window of one less": {"sliding_window": drafter_config()["sliding_window"] - 1},
    "a window of one more": {"sliding_window": drafter_config()["sliding_window"] + 1},
    "the last layer slides, too": {"layer_types": ["sliding_attention"] * drafter_config()["num_hidden_layers"]},
    "the last layer is causal, too": {"is_causal": True},
}


@pytest.mark.parametrize("edits", SMALL.values(), ids=SMALL)
def test_small_faults_change_the_counts(target: Any, right: Row, edits: dict[str, Any], tmp_path: Path) -> None:
    variant = Variant(name="small", explanation="", edits=edits)
    row = run(target, write_variant(variant, tmp_path / "dflash"))
    assert row.texts == right.texts
    assert (row.drafts, row.accepted) != (right.drafts, right.accepted)


def test_the_shipped_folder_is_what_the_training_script_writes(right: Row) -> None:
    """All but the weights, which take it most of an hour."""
    pytest.importorskip("numpy")
    root = Path(__file__).parents[3]
    spec = importlib.util.spec_from_file_location("train", root / "tests" / "canary" / "train.py")
    assert spec
    assert spec.loader
    train = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = train
    spec.loader.exec_module(train)
    folder = canary_folder()
    written = {
        f"{TARGET}/config.json": train.target_config(),
        f"{TARGET}/tokenizer.json": train.tokenizer(),
        f"{TARGET}/tokenizer_config.json": train.tokenizer_config(),
        f"{DRAFTER}/config.json": train.drafter_config(),
    }
    for name, document in written.items():
        assert json.loads((folder / name).read_bytes()) == document
    assert train.manifest(folder) == (root / "manifests" / "drafters" / "patchwheel--canary.toml").read_text()
    models = train.ref.load_target(folder / TARGET), train.ref.load_drafter(folder / DRAFTER)
    assert train.prompts_file(*models) == (folder / "prompts.json").read_text()
    assert right.draft_lead > train.DRAFT_LEAD
