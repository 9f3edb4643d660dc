"""Behavioural probes: calls what the patches change, in the environment that the wheel is installed in.

Run by that environment's Python as a script of its own, with the names of probes as arguments; it imports vLLM and
nothing of patchwheel. Stand-ins take the place of models and devices, so that no GPU is needed. One JSON document on
standard output says of each probe whether it holds and what was seen.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any
from unittest import mock

SCHEMA = "patchwheel.calls/1"
S, F = "sliding_attention", "full_attention"
WINDOW = 2048


def drafter(**changes: Any) -> Any:
    """A drafter's config as vLLM sees it after loading: five layers, four of them sliding."""
    values: dict[str, Any] = {
        "num_hidden_layers": 5,
        "layer_types": [S, S, S, S, F],
        "sliding_window": WINDOW,
        "block_size": 16,
        "dtype": "bfloat16",
        "dflash_config": {"mask_token_id": 248070, "target_layer_ids": [1, 16, 31, 46, 61]},
    }
    return SimpleNamespace(**(values | changes))


def expect(seen: object, wanted: object) -> str:
    """What was seen, if it is what was wanted."""
    if seen != wanted:
        raise AssertionError(f"{seen}, and it must be {wanted}")
    return str(seen)


def refused(call: Any, *words: str) -> str:
    """The message of the ValueError that a call raises, which must have some words in it."""
    try:
        call()
    except ValueError as error:
        missing = [word for word in words if word not in str(error)]
        if missing:
            raise AssertionError(f"the error does not say {missing}: {error}") from error
        return str(error)
    raise AssertionError("it was not refused")


def taps_of(config: Any) -> Any:
    """The taps that the model runner makes of a drafter's config."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    runner = SimpleNamespace(speculative_config=SimpleNamespace(draft_model_config=SimpleNamespace(hf_config=config)))
    return GPUModelRunner._get_eagle3_aux_layers_from_config(runner)


def taps() -> str:
    return expect(taps_of(drafter()), (2, 17, 32, 47, 62))


def given_taps() -> str:
    """Taps that a checkpoint states as such stay, also those of a speculators checkpoint."""
    from vllm.transformers_utils.configs.speculators.algos import update_dflash

    expect(taps_of(drafter(eagle_aux_hidden_state_layer_ids=[2, 14, 26])), (2, 14, 26))
    made: dict[str, Any] = {}
    update_dflash({"mask_token_id": 1, "aux_hidden_state_layer_ids": [2, 10, 20]}, made)
    given = expect(taps_of(SimpleNamespace(**made)), (2, 10, 20))
    return f"{given}; and shifted once elsewhere: {taps()}"


def attention(config: Any) -> list[Any]:
    """Window and causality of each layer of a drafter."""
    from vllm.model_executor.models.qwen3_dflash import dflash_layer_attention

    return [dflash_layer_attention(config, index) for index in range(config.num_hidden_layers)]


def windows() -> str:
    windows = tuple(window for window, _causal in attention(drafter()))
    causal = tuple(causal for _window, causal in attention(drafter()))
    expect(windows, (WINDOW, WINDOW, WINDOW, WINDOW, None))
    expect(causal, (True, True, True, True, False))
    everywhere = drafter(layer_types=[F] * 5, dflash_config={"use_swa": True, "swa_window_size": 1024})
    expect(attention(everywhere), [(1024, False)] * 5)
    expect(attention(drafter(is_causal=False)), [(WINDOW, False)] * 4 + [(None, False)])
    return f"windows {windows}, causal {causal}"


def no_window() -> str:
    refused(lambda: attention(drafter(layer_types=[S, S])), "layer_types")
    return refused(lambda: attention(drafter(sliding_window=None)), "sliding_window", "use_sliding_window")


def metadata() -> str:
    """Attention metadata by layer, from a builder that notes what it is asked for."""
    from vllm.v1.spec_decode.dflash import DFlashProposer

    class Metadata(SimpleNamespace):
        def replace(self, **changes: Any) -> Any:
            return Metadata(**(vars(self) | changes))

    names = [f"model.layers.{64 + index}.self_attn.attn" for index in range(5)]
    layers = [
        SimpleNamespace(self_attn=SimpleNamespace(causal=index < 4, attn=SimpleNamespace(layer_name=name)))
        for index, name in enumerate(names)
    ]

    def build(*, common_attn_metadata: Any, draft_index: int) -> Any:
        return SimpleNamespace(causal=common_attn_metadata.causal)

    builder = SimpleNamespace(build_for_drafting=build)
    proposer = object.__new__(DFlashProposer)
    proposer.model = SimpleNamespace(model=SimpleNamespace(layers=layers))
    proposer.draft_attn_groups = [SimpleNamespace(layer_names=names, get_metadata_builder=lambda: builder)]
    _groups, by_layer = proposer.build_per_group_and_layer_attn_metadata(Metadata(causal=False))
    return expect(tuple(by_layer[name].causal for name in names), (True, True, True, True, False))


def full_kv() -> str:
    """The cache spec of a sliding layer of a drafter."""
    import torch
    from vllm.model_executor.models.qwen3_dflash import DFlashAttention
    from vllm.v1.attention.backend import AttentionType

    layer = DFlashAttention.__new__(DFlashAttention)
    torch.nn.Module.__init__(layer)
    layer.attn_type, layer.kv_cache_dtype, layer.kv_cache_torch_dtype = AttentionType.DECODER, "auto", torch.bfloat16
    layer.num_kv_heads, layer.head_size, layer.head_size_v, layer.sliding_window = 8, 128, 128, WINDOW
    config = SimpleNamespace(cache_config=SimpleNamespace(block_size=16), model_config=SimpleNamespace(use_mla=False))
    spec = layer.get_kv_cache_spec(config)
    expect(layer.sliding_window, WINDOW)
    return expect(type(spec).__name__, "FullAttentionSpec")


def scheduler(*, method: str) -> tuple[bool, int]:
    """Whether a scheduler drops the last cached block, and how many slots it reserves ahead, for 7 draft tokens."""
    from vllm.v1.core.sched import scheduler as module

    class Reached(Exception):  # noqa: N818  (no error)
        pass

    seen: dict[str, Any] = {}

    def manager(**given: Any) -> Any:
        seen.update(given)
        raise Reached

    config = mock.MagicMock()
    config.speculative_config.num_speculative_tokens = 7
    config.speculative_config.use_eagle.return_value = True
    config.speculative_config.use_dflash.return_value = method == "dflash"
    config.speculative_config.uses_draft_model.return_value = False
    config.kv_transfer_config = config.ec_transfer_config = None
    config.kv_events_config = config.structured_outputs_config = None
    config.observability_config.kv_cache_metrics = False
    config.cache_config.num_gpu_blocks = 100
    config.scheduler_config.policy = "fcfs"
    config.model_config.is_encoder_decoder = False
    registry = mock.MagicMock()
    registry.supports_multimodal_inputs.return_value = False
    config.parallel_config.data_parallel_index = 0
    made = module.Scheduler.__new__(module.Scheduler)
    with mock.patch.object(module, "KVCacheManager", manager):
        try:
            made.__init__(config, mock.MagicMock(), mock.MagicMock(), block_size=16, mm_registry=registry)
        except Reached:
            return bool(seen["use_eagle"]), made.num_lookahead_tokens
    raise AssertionError("the scheduler made no KV cache manager")


def no_drop() -> str:
    expect(scheduler(method="eagle3")[0], True)
    dropped, _ahead = scheduler(method="dflash")
    expect(dropped, False)
    return "EAGLE drops the last cached block, DFlash doesn't"


def lookahead() -> str:
    expect(scheduler(method="eagle3")[1], 7)
    _dropped, ahead = scheduler(method="dflash")
    expect(ahead, 8)
    return "8 slots ahead for 7 draft tokens"


def speculators() -> str:
    from vllm.transformers_utils.configs.speculators.algos import update_dflash

    stated = {"layer_types": [S, F], "sliding_window": 512, "use_sliding_window": True}
    made: dict[str, Any] = {}
    update_dflash({"mask_token_id": 1, "aux_hidden_state_layer_ids": [2, 10], **stated}, made)
    seen = expect({key: made.get(key) for key in stated}, stated)
    expect(made["dflash_config"].get("causal"), False)
    return seen


def speculation(**changes: Any) -> Any:
    """The check of a speculative config with a drafter."""
    import torch
    from vllm.config.speculative import SpeculativeConfig

    tokens, dtype = changes.pop("tokens", 15), changes.pop("runs", torch.bfloat16)
    model = SimpleNamespace(hf_config=drafter(**changes), model="drafter", dtype=dtype)
    return SpeculativeConfig._verify_dflash(SimpleNamespace(draft_model_config=model, num_speculative_tokens=tokens))


def block() -> str:
    speculation(tokens=15)
    nested = drafter().dflash_config | {"block_size": 8}
    refused(lambda: speculation(tokens=8, block_size=None, dflash_config=nested), "7 or less")
    return refused(lambda: speculation(tokens=16), "15 or less")


def dtype() -> str:
    import torch

    speculation(dtype="float16", runs=torch.float16)
    return refused(lambda: speculation(runs=torch.float16), "--dtype bfloat16")


PROBES = {
    call.__name__: call
    for call in (
        taps,
        given_taps,
        windows,
        no_window,
        metadata,
        full_kv,
        no_drop,
        lookahead,
        speculators,
        block,
        dtype,
    )
}


def main(names: list[str]) -> int:
    # vLLM and what it imports write to standard output; that is kept for the document.
    document_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    results = []
    for name in names:
        try:
            results.append({"call": name, "holds": True, "evidence": PROBES[name]()})
        except Exception as error:
            traceback.print_exc()
            results.append({"call": name, "holds": False, "evidence": f"{type(error).__name__}: {error}"})
    with document_to:
        json.dump({"schema": SCHEMA, "results": results}, document_to)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
