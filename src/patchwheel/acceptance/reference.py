"""DFlash speculative decoding in plain torch: what an engine must compute, without an engine.

Two models take part. The **target** is an ordinary causal language model. The **drafter** is a few layers that guess
the next K tokens in one pass; it has no embedding and no output head of its own, it borrows the target's. A step:

1. The target has read positions 0..n-1 and has chosen the token of position n, the *bonus* token. It has not read it
   yet.
2. On its way the target left, at each position, the residual stream that comes out of some of its layers, the *taps*.
   Side by side they go through ``fc`` and ``hidden_norm`` and give one *context state* for each of the n positions.
3. Every drafter layer makes keys and values of the context states. They depend on that position alone, on no layer
   below, and so they are computed once and kept.
4. The drafter's own input, the *block*, is the embedding of [bonus, mask x K] at positions n..n+K. Each layer attends
   over context and block, as far as its window and its causality allow. The answers at the K masks are the *drafts* of
   positions n+1..n+K.
5. The target reads bonus and drafts in one pass. The drafts that are what it would have chosen itself are accepted, up
   to the first that is not; its own choice after the last accepted one is the next bonus token.

So the text is always the target's own; only the number of accepted drafts tells how well the drafter fits, and it tells
of every detail: taps, mask token, windows, causality, rotary embedding.

This file needs the standard library, torch and safetensors and nothing else, so that the Python of any environment that
has them can run it: ``python -I reference.py --target DIR --drafter DIR --prompts FILE``. Weights are computed in
float32, whatever they are stored in.

In shapes, B is the batch, T the tokens of a pass, C the context, Q the block's positions (1 + K), H the hidden size, N
the heads, G the key and value heads, D the head size, and V the vocabulary.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Cache",
    "Drafter",
    "DrafterConfig",
    "LayerKind",
    "Shape",
    "Target",
    "Trace",
    "block_states",
    "context_keys_values",
    "decode",
    "greedy",
    "load_drafter",
    "load_target",
    "main",
    "resolve_layers",
    "target_pass",
    "visible",
]

SCHEMA = "patchwheel.reference/1"
SLIDING, FULL = "sliding_attention", "full_attention"
DEFAULT_WINDOW = 4096  # of the loader, if a window is in use but none is stated
DEFAULT_MAX_WINDOW_LAYERS = 28  # likewise

Layer = dict[str, torch.Tensor]
KeysValues = tuple[torch.Tensor, torch.Tensor]
Rotation = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Sizes that target and drafter state alike in their ``config.json``."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    epsilon: float
    theta: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """Read the sizes of a Qwen3 config.

        Raises:
            ValueError: The config asks for something that is not computed here, or lacks a field.
        """
        rope = config.get("rope_parameters") or {}
        scaling = config.get("rope_scaling") or {}
        kind = rope.get("rope_type", scaling.get("rope_type", scaling.get("type", "default")))
        for holds, what in (
            (config.get("model_type") == "qwen3", "model_type must be qwen3"),
            (kind == "default", f"rotary embedding of type {kind} is not supported"),
            (not config.get("attention_bias"), "attention_bias is not supported"),
            (config.get("hidden_act", "silu") == "silu", "hidden_act must be silu"),
            ("quantization_config" not in config, "quantized weights are not supported"),
        ):
            if not holds:
                raise ValueError(what)
        theta = rope.get("rope_theta", config.get("rope_theta"))
        if theta is None:
            raise ValueError("rope_theta is stated neither at the top level nor in rope_parameters")
        heads = _count(config, "num_attention_heads")
        hidden = _count(config, "hidden_size")
        return cls(
            hidden=hidden,
            intermediate=_count(config, "intermediate_size"),
            layers=_count(config, "num_hidden_layers"),
            heads=heads,
            kv_heads=_count(config, "num_key_value_heads"),
            head_size=_count(config, "head_dim") if config.get("head_dim") is not None else hidden // heads,
            vocabulary=_count(config, "vocab_size"),
            epsilon=float(config.get("rms_norm_eps", 1e-6)),
            theta=float(theta),
        )


@dataclass(frozen=True, slots=True)
class LayerKind:
    """How far one drafter layer sees: ``window`` in positions (None: all), ``causal``: not what comes after."""

    window: int | None
    causal: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class DrafterConfig:
    """What a drafter's ``config.json`` says once the loader has been through it.

    Attributes:
        shape: Sizes; ``shape.layers`` are the drafter's.
        block: Positions of a block that it was trained on, the bonus token included; K is at most one less.
        taps: Target layers by 0-based id; tap n is the residual stream that comes *out of* layer n.
        mask: Token whose embedding stands at the positions to be guessed.
        layer_types: One entry per layer.
        window: Top-level window; None unless ``use_sliding_window`` is true, as transformers' loader leaves it.
        dflash: The ``dflash_config`` table.
        is_causal: Top-level override of every layer's causality.
    """

    shape: Shape
    block: int
    taps: tuple[int, ...]
    mask: int
    layer_types: tuple[str, ...]
    window: int | None
    dflash: Mapping[str, Any]
    is_causal: bool | None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> DrafterConfig:
        """Read a drafter's config as the loader of transformers and vLLM would.

        Raises:
            ValueError: A field is missing or not legal.
        """
        shape = Shape.of(config)
        dflash = config.get("dflash_config") or {}
        taps, mask = dflash.get("target_layer_ids"), dflash.get("mask_token_id")
        block = config.get("block_size", dflash.get("block_size"))
        if not isinstance(taps, list) or not taps or not all(isinstance(tap, int) for tap in taps):
            raise ValueError("dflash_config.target_layer_ids must be a list of layer ids")
        if not isinstance(mask, int) or not 0 <= mask < shape.vocabulary:
            raise ValueError("dflash_config.mask_token_id must be a token of the vocabulary")
        if not isinstance(block, int) or block <= 1:
            raise ValueError("block_size must be stated, and be at least 2")
        window = config.get("sliding_window", DEFAULT_WINDOW) if config.get("use_sliding_window") else None
        types = config.get("layer_types")
        if types is None:
            late = config.get("max_window_layers", DEFAULT_MAX_WINDOW_LAYERS)
            types = [SLIDING if window is not None and layer >= late else FULL for layer in range(shape.layers)]
        if len(types) != shape.layers or not set(types) <= {SLIDING, FULL}:
            raise ValueError(f"layer_types must have {shape.layers} entries, each {SLIDING} or {FULL}")
        return cls(
            shape=shape,
            block=block,
            taps=tuple(taps),
            mask=mask,
            layer_types=tuple(types),
            window=window,
            dflash=dflash,
            is_causal=config.get("is_causal"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A Qwen3 model.

    Attributes:
        shape: Its sizes.
        embedding: [V, H].
        layers: Per layer its tensors, by the names they have in the checkpoint below ``model.layers.N.``.
        norm: [H], the norm before the head.
        head: [V, H].
    """

    shape: Shape
    embedding: torch.Tensor
    layers: tuple[Layer, ...]
    norm: torch.Tensor
    head: torch.Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Drafter:
    """A DFlash drafter.

    Attributes:
        config: What it was made for.
        fc: [H, taps x H], makes one state of the taps.
        hidden_norm: [H], the norm after ``fc``.
        layers: As in `Target`.
        norm: [H], the norm before the target's head.
    """

    config: DrafterConfig
    fc: torch.Tensor
    hidden_norm: torch.Tensor
    layers: tuple[Layer, ...]
    norm: torch.Tensor


@dataclass(slots=True)
class Cache:
    """Keys and values of the positions read so far, per layer: each [B, G, positions, D]."""

    layers: list[KeysValues] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Positions held."""
        return int(self.layers[0][0].shape[2]) if self.layers else 0

    def extend(self, new: Sequence[KeysValues]) -> None:
        """Add positions to every layer."""
        if not self.layers:
            self.layers = list(new)
        else:
            self.layers = [
                (torch.cat((old_keys, keys), 2), torch.cat((old_values, values), 2))
                for (old_keys, old_values), (keys, values) in zip(self.layers, new, strict=True)
            ]

    def keep(self, length: int) -> None:
        """Forget all positions from ``length`` on: those of rejected drafts."""
        self.layers = [(keys[:, :, :length], values[:, :, :length]) for keys, values in self.layers]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """One prompt, decoded.

    Attributes:
        tokens: The new tokens, as many as were asked for.
        drafts: Steps in which the drafter was asked.
        accepted: How often the draft of each position was accepted, K numbers. As vLLM does, the last step counts in
            full, also what it accepted beyond the tokens that were asked for.
        target_margin: Least lead of a chosen token's logit over the next best, over all choices of the target. Another
            engine may well choose otherwise where this is not far above its rounding errors.
        draft_margin: The same for the drafts that were looked at, up to the first rejected one of each step.
    """

    tokens: tuple[int, ...]
    drafts: int
    accepted: tuple[int, ...]
    target_margin: float
    draft_margin: float | None


# What an attention layer sees


def resolve_layers(config: DrafterConfig) -> tuple[LayerKind, ...]:
    """Window and causality of each drafter layer, as vLLM 0.33.0 resolves them.

    - A layer slides if its entry in ``layer_types`` says so. ``dflash_config.use_swa`` makes all slide, if no entry
      does.
    - The window is ``dflash_config.swa_window_size`` if that key is there, else the top-level ``sliding_window``.
    - Causality is the top-level ``is_causal``, else ``dflash_config.causal``, else: as ``layer_types`` says, sliding
      layers are causal and full ones are not. So layers that slide by ``use_swa`` alone are not causal.

    Raises:
        ValueError: A layer slides but no window is stated.
    """
    sliding = [entry == SLIDING for entry in config.layer_types]
    slides = sliding if any(sliding) else [bool(config.dflash.get("use_swa"))] * len(sliding)
    window = config.dflash.get("swa_window_size", config.window)
    if any(slides) and (not isinstance(window, int) or isinstance(window, bool) or window < 1):
        raise ValueError(
            "a layer slides but has no window: set dflash_config.swa_window_size, or sliding_window together with "
            "use_sliding_window = true"
        )
    everywhere = config.dflash.get("causal") if config.is_causal is None else config.is_causal
    return tuple(
        LayerKind(window if slide else None, own if everywhere is None else bool(everywhere))
        for slide, own in zip(slides, sliding, strict=True)
    )


def visible(kind: LayerKind, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Which key positions each query position may see.

    A causal window of w shows position p the w positions p-w+1..p. Without causality the same window reaches as far
    forward as back, p-w+1..p+w-1: vLLM's FlashAttention backend widens a window that way for non-causal layers.

    Args:
        kind: Window and causality.
        queries: Positions, [Q].
        keys: Positions, [T].

    Returns:
        Booleans, [Q, T].
    """
    ahead = keys[None, :] - queries[:, None]
    seen = torch.ones_like(ahead, dtype=torch.bool)
    if kind.causal:
        seen &= ahead <= 0
    if kind.window is not None:
        seen &= ahead.abs() < kind.window
    return seen


# The parts that both models are made of


def normed(states: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Root mean square norm over the last axis; any shape in, the same out."""
    return states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def rotation(positions: torch.Tensor, shape: Shape) -> Rotation:
    """Cosine and sine of position x theta^(-2i/D), for i below D/2; positions are [T], the two are [T, D/2]."""
    frequencies = shape.theta ** (-torch.arange(0, shape.head_size, 2, dtype=torch.float32) / shape.head_size)
    angles = positions[:, None].float() * frequencies
    return angles.cos(), angles.sin()


def rotated(heads: torch.Tensor, turn: Rotation) -> torch.Tensor:
    """Rotary embedding: turns the pairs (i, i + D/2) of each head by the angle of its position; [B, heads, T, D]."""
    cosine, sine = turn
    first, second = heads.chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def split_heads(states: torch.Tensor, size: int) -> torch.Tensor:
    """[B, T, heads x D] to [B, heads, T, D]."""
    return states.unflatten(-1, (-1, size)).transpose(1, 2)


def keys_values(layer: Layer, states: torch.Tensor, turn: Rotation, shape: Shape) -> KeysValues:
    """Keys (normed per head, rotated) and values of some states.

    Args:
        layer: The layer's tensors.
        states: [B, T, H].
        turn: The rotation of their positions.
        shape: The model's sizes.

    Returns:
        Keys and values, each [B, G, T, D].
    """
    keys = split_heads(states @ layer["self_attn.k_proj.weight"].T, shape.head_size)
    keys = rotated(normed(keys, layer["self_attn.k_norm.weight"], shape.epsilon), turn)
    return keys, split_heads(states @ layer["self_attn.v_proj.weight"].T, shape.head_size)


def attention(
    layer: Layer,
    states: torch.Tensor,
    turn: Rotation,
    *,
    seen: torch.Tensor,
    held: KeysValues,
    shape: Shape,
) -> torch.Tensor:
    """Attention of some states over keys and values, in groups of N / G heads to one key head.

    Args:
        layer: The layer's tensors.
        states: The queries' states, [B, Q, H].
        turn: The rotation of the queries' positions.
        seen: What each query may see, [Q, T].
        held: Keys and values, each [B, G, T, D].
        shape: The model's sizes.

    Returns:
        [B, Q, H].
    """
    queries = split_heads(states @ layer["self_attn.q_proj.weight"].T, shape.head_size)
    queries = rotated(normed(queries, layer["self_attn.q_norm.weight"], shape.epsilon), turn)
    keys, values = (heads.repeat_interleave(shape.heads // shape.kv_heads, 1) for heads in held)
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(shape.head_size)
    weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
    return (weights @ values).transpose(1, 2).flatten(2) @ layer["self_attn.o_proj.weight"].T


def layer_pass(
    layer: Layer,
    states: torch.Tensor,
    turn: Rotation,
    shape: Shape,
    *,
    seen: torch.Tensor,
    before: KeysValues | None,
) -> tuple[torch.Tensor, KeysValues]:
    """One decoder layer: attention over what is held before and the states themselves, then the gated feed-forward.

    Args:
        layer: The layer's tensors.
        states: Residual stream, [B, T, H].
        turn: The rotation of their positions.
        shape: The model's sizes.
        seen: What each state may see, [T, positions before + T].
        before: Keys and values of earlier positions, each [B, G, positions before, D].

    Returns:
        The residual stream that comes out, [B, T, H], and the keys and values of the states, each [B, G, T, D].
    """
    inner = normed(states, layer["input_layernorm.weight"], shape.epsilon)
    own = keys_values(layer, inner, turn, shape)
    held = own if before is None else (torch.cat((before[0], own[0]), 2), torch.cat((before[1], own[1]), 2))
    states = states + attention(layer, inner, turn, seen=seen, held=held, shape=shape)
    inner = normed(states, layer["post_attention_layernorm.weight"], shape.epsilon)
    gate = torch.nn.functional.silu(inner @ layer["mlp.gate_proj.weight"].T)
    return states + (gate * (inner @ layer["mlp.up_proj.weight"].T)) @ layer["mlp.down_proj.weight"].T, own


# The two models


def target_pass(target: Target, tokens: torch.Tensor, cache: Cache) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Let the target read tokens behind those that it has read, and remember them.

    Args:
        target: The target.
        tokens: [B, T].
        cache: What it has read so far; gets the new positions.

    Returns:
        Logits, [B, T, V], and the residual streams that come out of layer 0, 1, ..., each [B, T, H].
    """
    start = cache.length
    positions = torch.arange(start, start + tokens.shape[1])
    seen = visible(LayerKind(None, causal=True), positions, torch.arange(start + tokens.shape[1]))
    turn = rotation(positions, target.shape)
    states = target.embedding[tokens]
    streams, new = [], []
    for number, layer in enumerate(target.layers):
        before = cache.layers[number] if start else None
        states, own = layer_pass(layer, states, turn, target.shape, seen=seen, before=before)
        streams.append(states)
        new.append(own)
    cache.extend(new)
    return normed(states, target.norm, target.shape.epsilon) @ target.head.T, streams


def tapped(streams: Sequence[torch.Tensor], taps: Sequence[int]) -> torch.Tensor:
    """The streams, each [B, T, H], that come out of the tapped layers, side by side: [B, T, taps x H]."""
    return torch.cat([streams[tap] for tap in taps], -1)


def context_keys_values(drafter: Drafter, taps: torch.Tensor, positions: torch.Tensor) -> list[KeysValues]:
    """Keys and values that each drafter layer has of context positions.

    Note that they skip each layer's ``input_layernorm``: that norm is the block's alone.

    Args:
        drafter: The drafter.
        taps: What the target left there, [B, T, taps x H].
        positions: [T].

    Returns:
        Per layer, keys and values, each [B, G, T, D].
    """
    shape = drafter.config.shape
    states = normed(taps @ drafter.fc.T, drafter.hidden_norm, shape.epsilon)
    turn = rotation(positions, shape)
    return [keys_values(layer, states, turn, shape) for layer in drafter.layers]


def block_states(
    drafter: Drafter,
    block: torch.Tensor,
    positions: torch.Tensor,
    context: Sequence[KeysValues],
    seen: Sequence[torch.Tensor],
) -> torch.Tensor:
    """The drafter's pass over a block.

    Args:
        drafter: The drafter.
        block: Embeddings of bonus and masks, [B, Q, H].
        positions: [Q].
        context: Per layer, keys and values of the context, each [B, G, C, D].
        seen: Per layer, what each position of the block may see of context and block, [Q, C + Q].

    Returns:
        States for the target's head, [B, Q, H].
    """
    turn = rotation(positions, drafter.config.shape)
    states = block
    for layer, held, mask in zip(drafter.layers, context, seen, strict=True):
        states, _ = layer_pass(layer, states, turn, drafter.config.shape, seen=mask, before=held)
    return normed(states, drafter.norm, drafter.config.shape.epsilon)


# Decoding


def greedy(target: Target, prompt: Sequence[int], tokens: int) -> Trace:
    """The target's own continuation, one token at a time: the text that speculation must not change.

    Args:
        target: The target.
        prompt: Token ids.
        tokens: How many new ones.

    Returns:
        The text; no drafts.
    """
    with torch.no_grad():
        cache = Cache()
        logits, _ = target_pass(target, torch.tensor([list(prompt)]), cache)
        chosen, margin = _choice(logits[0, -1:])
        text = chosen
        while len(text) < tokens:
            logits, _ = target_pass(target, torch.tensor([text[-1:]]), cache)
            chosen, lead = _choice(logits[0])
            text, margin = text + chosen, margin + lead
    return Trace(tokens=tuple(text), drafts=0, accepted=(), target_margin=min(margin), draft_margin=None)


def decode(
    target: Target, drafter: Drafter, prompt: Sequence[int], *, tokens: int, speculative_tokens: int | None = None
) -> Trace:
    """Decode one prompt greedily with drafts.

    Args:
        target: The target.
        drafter: The drafter.
        prompt: Token ids, at least one.
        tokens: How many new tokens; decoding stops with the step that reaches them.
        speculative_tokens: K; all that the drafter was trained on if None.

    Raises:
        ValueError: The drafter doesn't fit the target, or K its block.
    """
    config = drafter.config
    count = config.block - 1 if speculative_tokens is None else speculative_tokens
    _check_pair(target, config, count)
    kinds = resolve_layers(config)
    accepted, drafts, target_leads, draft_leads = [0] * count, 0, [], []
    with torch.no_grad():
        read, context = Cache(), Cache()
        logits, streams = target_pass(target, torch.tensor([list(prompt)]), read)
        bonus, leads = _choice(logits[0, -1:])
        text = list(bonus)
        target_leads += leads
        while True:
            # Context states for all that the target has read since the last draft and that was accepted.
            start, end = context.length, read.length
            taps = tapped(streams, config.taps)[:, : end - start]
            context.extend(context_keys_values(drafter, taps, torch.arange(start, end)))
            if len(text) >= tokens:
                break
            block = torch.tensor([bonus + [config.mask] * count])
            positions = torch.arange(end, end + 1 + count)
            keys = torch.arange(end + 1 + count)
            masks = {kind: visible(kind, positions, keys) for kind in set(kinds)}
            seen = [masks[kind] for kind in kinds]
            states = block_states(drafter, target.embedding[block], positions, context.layers, seen)
            guesses, guess_leads = _choice((states @ target.head.T)[0, 1:])
            logits, streams = target_pass(target, torch.tensor([bonus + guesses]), read)
            choices, leads = _choice(logits[0])
            right = 0
            while right < count and guesses[right] == choices[right]:
                accepted[right] += 1
                right += 1
            drafts += 1
            read.keep(end + 1 + right)
            bonus = choices[right : right + 1]
            text += guesses[:right] + bonus
            target_leads += leads[: right + 1]
            draft_leads += guess_leads[: right + 1]
    return Trace(
        tokens=tuple(text[:tokens]),
        drafts=drafts,
        accepted=tuple(accepted),
        target_margin=min(target_leads),
        draft_margin=min(draft_leads, default=None),
    )


def _choice(logits: torch.Tensor) -> tuple[list[int], list[float]]:
    """Best tokens of some positions, and their leads over the next best; logits are [T, V]."""
    best = logits.topk(2, -1)
    leads = best.values[:, 0] - best.values[:, 1]
    return [int(token) for token in best.indices[:, 0]], [float(lead) for lead in leads]


def _check_pair(target: Target, config: DrafterConfig, count: int) -> None:
    if config.shape.hidden != target.shape.hidden or config.shape.vocabulary != target.shape.vocabulary:
        raise ValueError("hidden size and vocabulary of target and drafter differ")
    if not all(0 <= tap < target.shape.layers for tap in config.taps):
        raise ValueError(f"taps must be layers of the target, 0 to {target.shape.layers - 1}")
    if not 1 <= count < config.block:
        raise ValueError(f"the number of speculative tokens must be 1 to {config.block - 1}, one less than the block")


# Files


def load_target(folder: Path) -> Target:
    """Read a Qwen3 model from a Hugging Face folder with ``config.json`` and ``model.safetensors``.

    Raises:
        ValueError: The config or the weights are not what is computed here.
        OSError: A file can't be read.
    """
    config = _config(folder)
    if config.get("use_sliding_window"):
        raise ValueError("a target with a sliding window is not supported")
    shape = Shape.of(config)
    take = _weights(folder)
    embedding = take("model.embed_tokens.weight", (shape.vocabulary, shape.hidden))
    tied = bool(config.get("tie_word_embeddings"))
    return Target(
        shape=shape,
        embedding=embedding,
        layers=_layers(take, "model.", shape),
        norm=take("model.norm.weight", (shape.hidden,)),
        head=embedding if tied else take("lm_head.weight", (shape.vocabulary, shape.hidden)),
    )


def load_drafter(folder: Path) -> Drafter:
    """Read a DFlash drafter from a folder as z-lab publishes them.

    Raises:
        ValueError: The config or the weights are not what is computed here.
        OSError: A file can't be read.
    """
    config = DrafterConfig.of(_config(folder))
    shape = config.shape
    take = _weights(folder)
    return Drafter(
        config=config,
        fc=take("fc.weight", (shape.hidden, len(config.taps) * shape.hidden)),
        hidden_norm=take("hidden_norm.weight", (shape.hidden,)),
        layers=_layers(take, "", shape),
        norm=take("norm.weight", (shape.hidden,)),
    )


def _config(folder: Path) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_bytes())
    if not isinstance(config, dict):
        raise ValueError(f"{folder.name}/config.json must be an object")  # noqa: TRY004  (of the file, not of a caller)
    return config


def _weights(folder: Path) -> Callable[[str, tuple[int, ...]], torch.Tensor]:
    """A function that takes a tensor by name, checks its shape, and gives it as float32."""
    tensors = load_file(folder / "model.safetensors")

    def take(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if name not in tensors:
            raise ValueError(f"{folder.name}/model.safetensors: no tensor {name}")
        tensor = tensors[name]
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{folder.name}/model.safetensors: {name} must be {shape}, not {tuple(tensor.shape)}")
        return tensor.float()

    return take


def _layers(take: Callable[[str, tuple[int, ...]], torch.Tensor], prefix: str, shape: Shape) -> tuple[Layer, ...]:
    hidden, inner, size = shape.hidden, shape.intermediate, shape.head_size
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (shape.heads * size, hidden),
        "self_attn.k_proj.weight": (shape.kv_heads * size, hidden),
        "self_attn.v_proj.weight": (shape.kv_heads * size, hidden),
        "self_attn.o_proj.weight": (hidden, shape.heads * size),
        "self_attn.q_norm.weight": (size,),
        "self_attn.k_norm.weight": (size,),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    return tuple(
        {name: take(f"{prefix}layers.{number}.{name}", size) for name, size in shapes.items()}
        for number in range(shape.layers)
    )


def _count(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{key} must be a whole number above 0")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: one JSON document with the counts of each drafter folder on standard output."""
    parser = argparse.ArgumentParser(description="Decode prompts with DFlash drafters, in plain torch.")
    parser.add_argument("--target", type=Path, required=True, metavar="DIR")
    parser.add_argument("--drafter", type=Path, action="append", default=[], metavar="DIR", help="may be repeated")
    parser.add_argument("--prompts", type=Path, required=True, metavar="FILE", help="JSON with prompts as token ids")
    parser.add_argument("--tokens", type=int, metavar="N", help="new tokens per prompt; default: what the file says")
    parser.add_argument("-k", "--speculative-tokens", type=int, metavar="K", help="default: one less than the block")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="more is slower on models this small")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    try:
        file = json.loads(options.prompts.read_bytes())
        tokens = options.tokens or int(file["tokens"])
        prompts = [[int(token) for token in prompt] for prompt in file["prompts"]]
        target = load_target(options.target)
        plain = [greedy(target, prompt, tokens) for prompt in prompts]
        drafters = []
        for folder in options.drafter:
            drafter = load_drafter(folder)
            traces = [
                decode(target, drafter, prompt, tokens=tokens, speculative_tokens=options.speculative_tokens)
                for prompt in prompts
            ]
            drafters.append(_summary(folder, traces, plain))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    document = {"schema": SCHEMA, "tokens": tokens, "greedy": [asdict(trace) for trace in plain], "drafters": drafters}
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
    return 0


def _summary(folder: Path, traces: Sequence[Trace], plain: Sequence[Trace]) -> dict[str, Any]:
    drafts, accepted = sum(trace.drafts for trace in traces), [0] * len(traces[0].accepted)
    for trace in traces:
        accepted = [total + count for total, count in zip(accepted, trace.accepted, strict=True)]
    return {
        "drafter": str(folder),
        "drafts": drafts,
        "accepted": accepted,
        "mean_length": 1 + sum(accepted) / drafts,
        "rate": sum(accepted) / (drafts * len(accepted)),
        "same_text": [trace.tokens for trace in traces] == [trace.tokens for trace in plain],
        "prompts": [asdict(trace) for trace in traces],
    }


if __name__ == "__main__":
    sys.exit(main())
