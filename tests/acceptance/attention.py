"""Compares the CPU backend's attention with explicit masks; run by the Python of an environment with the wheel.

One JSON document: the largest difference found for each kind of attention, over lengths, blocks and windows.
"""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import torch
from vllm import envs
from vllm.v1.attention.backends import cpu_attn

HEADS, KV_HEADS, SIZE = 2, 1, 64
LENGTHS = ([33, 64, 65], [48, 100, 257], [128, 127, 129, 31])


def largest_difference(lengths: list[int], queries: int, window: int | None, block: int, *, causal: bool) -> float:
    requests, blocks = len(lengths), max(-(-length // block) for length in lengths)
    layer = cpu_attn.CPUAttentionBackendImpl(HEADS, SIZE, SIZE**-0.5, KV_HEADS, None, window, "auto")
    if window and not causal:
        layer.sliding_window = (window - 1, window - 1)
    cache = torch.randn(2, requests * blocks + 1, KV_HEADS, block, SIZE) * 5  # what is left over from others
    table = (torch.randperm(requests * blocks) + 1).view(requests, blocks).to(torch.int32)
    keys, values = ([torch.randn(length, KV_HEADS, SIZE) for length in lengths] for _ in range(2))
    for request, length in enumerate(lengths):
        at = torch.arange(length)
        layer.do_kv_cache_update(
            None, keys[request], values[request], cache, table[request][at // block].long() * block + at % block
        )
    isa = cpu_attn._get_attn_isa(torch.float32, block, SIZE)
    metadata = cpu_attn.CPUAttentionMetadata(
        isa=isa,
        num_actual_tokens=requests * queries,
        max_query_len=queries,
        query_start_loc=torch.arange(requests + 1, dtype=torch.int32) * queries,
        max_seq_len=max(lengths),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
        block_table=table,
        slot_mapping=torch.empty(0),
        scheduler_metadata=None,
        causal=causal,
    )
    if causal:
        metadata.scheduler_metadata = cpu_attn.ops.cpu_attn_get_scheduler_metadata(
            num_reqs=requests,
            num_heads=HEADS,
            num_kv_heads=KV_HEADS,
            head_dim=SIZE,
            seq_lens=metadata.seq_lens,
            dtype=torch.float32,
            query_start_loc=metadata.query_start_loc,
            causal=True,
            sliding_window_size=-1,
            isa=isa,
            enable_kv_split=envs.VLLM_CPU_ATTN_SPLIT_KV,
        )
    query, output = torch.randn(requests * queries, HEADS, SIZE), torch.empty(requests * queries, HEADS, SIZE)
    layer.forward(None, query, None, None, cache, metadata, output)
    worst = 0.0
    for request, length in enumerate(lengths):
        part = slice(request * queries, (request + 1) * queries)
        here, there = torch.arange(length - queries, length)[:, None], torch.arange(length)[None]
        seen = torch.ones(queries, length, dtype=torch.bool)
        if window:
            seen &= (there > here - window) & (there < here + window)
        if causal:
            seen &= there <= here
        exact = torch.nn.functional.scaled_dot_product_attention(
            query[part].transpose(0, 1),
            keys[request].transpose(0, 1).expand(HEADS, -1, -1),
            values[request].transpose(0, 1).expand(HEADS, -1, -1),
            attn_mask=seen,
        )
        worst = max(worst, float((exact.transpose(0, 1) - output[part]).abs().max()))
    return worst


def refuses(**changes: Any) -> bool:
    """Whether blocks of different lengths are refused."""
    layer = cpu_attn.CPUAttentionBackendImpl(HEADS, SIZE, 1.0, KV_HEADS, None, None, "auto")
    metadata = cpu_attn.CPUAttentionMetadata(
        isa="vec", num_actual_tokens=5, max_query_len=3, query_start_loc=torch.tensor([0, 3, 5]), max_seq_len=9,
        seq_lens=torch.tensor([9, 9]), block_table=torch.zeros(2, 1), slot_mapping=torch.empty(0),
        scheduler_metadata=None, causal=False,
    )  # fmt: skip
    query, cache = torch.randn(5, HEADS, SIZE), torch.zeros(2, 2, KV_HEADS, 16, SIZE)
    try:
        layer.forward(None, query, None, None, cache, metadata, torch.empty_like(query))
    except NotImplementedError:
        return True
    return False


def main() -> None:
    document_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.manual_seed(0)
    worst: dict[str, float] = {}
    for window, causal in itertools.product((None, 3, 8, 32, 64), (True, False)):
        kind = f"window {window}, {'causal' if causal else 'not causal'}"
        worst[kind] = max(
            largest_difference(lengths, queries, window, block, causal=causal)
            for lengths, queries, block in itertools.product(LENGTHS, (2, 8, 16), (16, 32, 128))
        )
    with document_to:
        json.dump({"worst": worst, "refuses": refuses()}, document_to)


if __name__ == "__main__":
    main()
