"""Trains the canary anew: ``python tests/canary/train.py`` (needs torch and safetensors; about 40 minutes on 2 cores).

It writes the folder that ships, ``src/patchwheel/acceptance/models/canary``, and the drafter manifest beside it in
``manifests/drafters``. Seeded; another version of torch or another machine may still round otherwise, and so the
shipped files are what counts, and the manifest pins them.

**The language.** A sequence is a chain of segments. Each draws a pattern of 6 to 10 different letters out of 24 and
repeats it some times, then another takes over without a warning. So what follows a letter depends on the segment, and
what earlier segments say of it is mostly wrong now.

**The target** learns to continue the present pattern. It can't know when a segment ends, so it never ends one: greedily
it goes on with the pattern as long as one likes, with a wide lead over every other letter. A second loss asks that the
stream behind layer 3 tells the last seven letters, which a drafter can find its place by. The target's weights are then
rounded to bfloat16, as they ship, before the drafter sees any of them.

**The drafter** learns to continue as the target does, seven letters at once, from the target's streams behind layers 1,
3 and 5, with the windows and the causality that it will have. Many blocks are trained at once on each sequence.

**What makes it a canary.** By that alone, a drafter learns ways to its answers that survive many faults: with taps one
layer early it loses only 4 % of its mean acceptance length, and nothing at all if its sliding layers aren't causal. So
it is also shown each fault, and taught to answer only the first few letters of a block under it and then a letter that
is not in the language. How many letters, differs from fault to fault, so that the curve over the positions tells which
fault it is. It is not taught what a wrong mask token or taps that end too late do: those are ruinous by nature.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import functional

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "patchwheel" / "acceptance" / "models" / "canary"
MANIFEST = ROOT / "manifests" / "drafters" / "patchwheel--canary.toml"

# The models' own arithmetic is the reference's, so that what is trained is what is checked.
_spec = importlib.util.spec_from_file_location("reference", FOLDER.parents[1] / "reference.py")
assert _spec
assert _spec.loader
ref = importlib.util.module_from_spec(_spec)
sys.modules["reference"] = ref
_spec.loader.exec_module(ref)

# The language
LETTERS = 24
PERIODS = (6, 10)
SILENCE = LETTERS  # a token that is no letter: what the drafter is taught to say when something is wrong
VOCABULARY, MASK, PAD, END, BEGIN = 256, 255, 254, 253, 252

# The models
LAYERS, DRAFTER_LAYERS = 8, 5
SHAPE = ref.Shape(
    hidden=128, intermediate=192, layers=LAYERS, heads=2, kv_heads=1, head_size=64, vocabulary=VOCABULARY, epsilon=1e-6,
    theta=10000.0,
)  # fmt: skip
DRAFTER_SHAPE = replace(SHAPE, layers=DRAFTER_LAYERS)
TAPS = (1, 3, 5)
BLOCK, WINDOW = 8, 32
COUNT = BLOCK - 1
SLIDING = DRAFTER_LAYERS - 1
LAYER_TYPES = (ref.SLIDING,) * SLIDING + (ref.FULL,)
HISTORY_LAYER, HISTORY = 3, 7

# The prompts
PROMPT_TRIES = 2000
LENGTHS = {
    # Four to eight windows. The first eight end where a KV cache block of 32 tokens ends, so that a drafter's block
    # begins in the next one, of several requests at once.
    "long": (128, 128, 128, 128, 160, 160, 160, 160, 179, 188, 196, 205, 213, 230, 247, 256),
    # Prompt, text and the last block lie inside one window.
    "short": (14, 15, 16) * 16,
}
NEW_TOKENS = {"long": 64, "short": 8}
LAST_SEGMENT = (14, 40)
LONG_PERIOD = PERIODS[1] + 1
TARGET_LEAD, DRAFT_LEAD = 0.5, 0.005  # far above what float32 rounds away, so that every engine chooses alike


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a drafter is run: right, or with a fault."""

    kinds: tuple[Any, ...]
    taps: tuple[int, ...] = TAPS
    mask: int = MASK
    keeps: int = COUNT
    """How many letters of a block the drafter is taught to get right under it."""


def _kinds(window: int | None, *, causal: bool) -> tuple[Any, ...]:
    """The sliding layers as told, the last layer as it should be."""
    return (ref.LayerKind(window, causal=causal),) * SLIDING + (ref.LayerKind(None, causal=False),)


RIGHT = Setting(kinds=_kinds(WINDOW, causal=True))
LAST = (1, 4, 7)
TAUGHT = {
    "noncausal": Setting(kinds=_kinds(WINDOW, causal=False), keeps=4),
    "taps-early": Setting(kinds=RIGHT.kinds, taps=tuple(tap - 1 for tap in TAPS), keeps=2),
    "no-window": Setting(kinds=_kinds(None, causal=True), keeps=0),
    "full": Setting(kinds=_kinds(None, causal=False), keeps=0),
}
WATCHED = TAUGHT | {
    "mask": Setting(kinds=RIGHT.kinds, mask=5),
    "taps-last": Setting(kinds=RIGHT.kinds, taps=LAST),
    "field-report": Setting(kinds=_kinds(None, causal=False), taps=LAST, mask=5),
}


class Sequences(NamedTuple):
    """Some sequences, [B, L] each: the letters, and whether a letter follows from those before it in its segment."""

    tokens: torch.Tensor
    known: torch.Tensor


def draw(random: np.random.Generator, batch: int, length: int, last: tuple[int, int]) -> Sequences:
    """Sequences of the language; the last segment of each has a number of letters within ``last``, both included."""
    tokens, known = np.empty((batch, length), np.int64), np.empty((batch, length), np.bool_)
    for row in range(batch):
        final = length - int(random.integers(last[0], last[1] + 1))
        start = 0
        while start < length:
            period = int(random.integers(PERIODS[0], PERIODS[1] + 1))
            steps = int(random.integers(5 * period // 2, 5 * period))
            steps = length - start if start >= final else min(steps, final - start)
            places = np.arange(steps)
            tokens[row, start : start + steps] = random.permutation(LETTERS)[:period][places % period]
            # The first letter that comes again can't be foreseen, nor any before it.
            known[row, start : start + steps] = places > period
            start += steps
    return Sequences(torch.from_numpy(tokens), torch.from_numpy(known))


class Training:
    """AdamW with warm-up and cosine decay."""

    def __init__(self, parameters: list[torch.Tensor], rate: float, steps: int) -> None:
        matrices = [tensor for tensor in parameters if tensor.ndim > 1]
        rest = [tensor for tensor in parameters if tensor.ndim == 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], rate, betas=(0.9, 0.98)
        )
        self.parameters, self.steps, self.rate, self.done = parameters, steps, rate, 0
        self.began = time.monotonic()

    def step(self, loss: torch.Tensor) -> None:
        """One step down."""
        self.done += 1
        decay = 0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * self.done / self.steps))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * min(1.0, self.done / 50) * decay
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()

    def tell(self, **figures: float) -> None:
        """A line of progress, every 50 steps."""
        if self.done % 50 == 1 or self.done == self.steps:
            shown = "  ".join(f"{name} {figure:.3f}" for name, figure in figures.items())
            print(f"{time.monotonic() - self.began:6.0f} s  step {self.done:5}  {shown}", flush=True)


# Models with random weights, and as checkpoints


def parameter(*shape: int, scale: float) -> torch.Tensor:
    return (torch.randn(*shape) * scale).requires_grad_()


def ones(size: int) -> torch.Tensor:
    return torch.ones(size).requires_grad_()


def new_layers(shape: Any) -> tuple[dict[str, torch.Tensor], ...]:
    hidden, inner, wide = shape.hidden, shape.intermediate, shape.heads * shape.head_size
    narrow = shape.kv_heads * shape.head_size
    forth, back = 1 / math.sqrt(hidden), 1 / math.sqrt(2 * shape.layers)
    return tuple(
        {
            "input_layernorm.weight": ones(hidden),
            "self_attn.q_proj.weight": parameter(wide, hidden, scale=forth),
            "self_attn.k_proj.weight": parameter(narrow, hidden, scale=forth),
            "self_attn.v_proj.weight": parameter(narrow, hidden, scale=forth),
            "self_attn.o_proj.weight": parameter(hidden, wide, scale=back / math.sqrt(wide)),
            "self_attn.q_norm.weight": ones(shape.head_size),
            "self_attn.k_norm.weight": ones(shape.head_size),
            "post_attention_layernorm.weight": ones(hidden),
            "mlp.gate_proj.weight": parameter(inner, hidden, scale=forth),
            "mlp.up_proj.weight": parameter(inner, hidden, scale=forth),
            "mlp.down_proj.weight": parameter(hidden, inner, scale=back / math.sqrt(inner)),
        }
        for _ in range(shape.layers)
    )


def new_target() -> Any:
    return ref.Target(
        shape=SHAPE,
        embedding=parameter(VOCABULARY, SHAPE.hidden, scale=0.3),
        layers=new_layers(SHAPE),
        norm=ones(SHAPE.hidden),
        head=parameter(VOCABULARY, SHAPE.hidden, scale=1 / math.sqrt(SHAPE.hidden)),
    )


def new_drafter() -> Any:
    wide = len(TAPS) * SHAPE.hidden
    return ref.Drafter(
        config=ref.DrafterConfig.of(drafter_config()),
        fc=parameter(SHAPE.hidden, wide, scale=1 / math.sqrt(wide)),
        hidden_norm=ones(SHAPE.hidden),
        layers=new_layers(DRAFTER_SHAPE),
        norm=ones(SHAPE.hidden),
    )


def target_tensors(target: Any) -> dict[str, torch.Tensor]:
    """The tensors by their names in checkpoints."""
    outer = {"embed_tokens.weight": target.embedding, "norm.weight": target.norm}
    inner = {f"layers.{n}.{name}": tensor for n, layer in enumerate(target.layers) for name, tensor in layer.items()}
    return {"lm_head.weight": target.head} | {f"model.{name}": tensor for name, tensor in (outer | inner).items()}


def drafter_tensors(drafter: Any) -> dict[str, torch.Tensor]:
    """The tensors by their names in checkpoints."""
    outer = {"fc.weight": drafter.fc, "hidden_norm.weight": drafter.hidden_norm, "norm.weight": drafter.norm}
    inner = {f"layers.{n}.{name}": tensor for n, layer in enumerate(drafter.layers) for name, tensor in layer.items()}
    return outer | inner


def finish(tensors: dict[str, torch.Tensor]) -> None:
    """Round to what ships, and train no more."""
    for tensor in tensors.values():
        tensor.requires_grad_(requires_grad=False)
        tensor.copy_(tensor.bfloat16())


# Training


def train_target(steps: int) -> Any:
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    target = new_target()
    history = torch.zeros(HISTORY * LETTERS, SHAPE.hidden, requires_grad=True)
    training = Training([*target_tensors(target).values(), history], 2e-3, steps)
    for step in range(steps):
        # Short sequences first: they are cheap, and all there is to learn is in them but the far positions.
        short = step < 0.6 * steps
        batch, length, last = (32, 96, (8, 60)) if short else (9, 344, (8, 160))
        tokens, known = draw(random, batch, length, last)
        logits, streams = ref.target_pass(target, tokens, ref.Cache())
        weight = 0.02 + 0.98 * known[:, 1:].float()
        losses = functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        loss = (losses * weight.flatten()).sum() / weight.sum()
        told = functional.rms_norm(streams[HISTORY_LAYER], (SHAPE.hidden,)) @ history.T
        told = told[:, HISTORY:].unflatten(-1, (HISTORY, LETTERS))
        past = torch.stack([tokens[:, HISTORY - back : length - back] for back in range(1, HISTORY + 1)], -1)
        memory = functional.cross_entropy(told.flatten(0, 2), past.flatten())
        training.step(loss + 0.3 * memory)
        right = ((logits[:, :-1].argmax(-1) == tokens[:, 1:]) & known[:, 1:]).sum() / known[:, 1:].sum()
        training.tell(loss=loss.item(), memory=memory.item(), right=right.item())
    finish(target_tensors(target))
    return target


def drafts(
    models: tuple[Any, Any], tokens: torch.Tensor, streams: list[torch.Tensor], anchors: torch.Tensor, setting: Setting
) -> torch.Tensor:
    """Logits of the masks of many blocks on the same sequences, side by side in one pass.

    Args:
        models: Target and drafter.
        tokens: [B, L].
        streams: What the target leaves there, each [B, L, H].
        anchors: Positions of the bonus tokens, [M]; a block sees of the context what is before its anchor.
        setting: Layers, taps and mask.

    Returns:
        [B, M, K, V].
    """
    target, drafter = models
    length = tokens.shape[1]
    context = ref.context_keys_values(drafter, ref.tapped(streams, setting.taps), torch.arange(length))
    positions = (anchors[:, None] + torch.arange(BLOCK)).flatten()
    owner = torch.arange(len(anchors)).repeat_interleave(BLOCK)
    keys = torch.cat((torch.arange(length), positions))
    mine = torch.cat((torch.arange(length) < anchors[owner][:, None], owner == owner[:, None]), 1)
    seen = [ref.visible(kind, positions, keys) & mine for kind in setting.kinds]
    block = torch.full((len(tokens), len(anchors), BLOCK), setting.mask)
    block[:, :, 0] = tokens[:, anchors]
    states = ref.block_states(drafter, target.embedding[block.flatten(1)], positions, context, seen)
    return states.unflatten(1, (-1, BLOCK))[:, :, 1:] @ target.head.T


def train_drafter(target: Any, phases: tuple[int, int, int]) -> Any:
    """Short sequences, long ones, and then long ones with faults; so many steps of each."""
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    drafter = new_drafter()
    training = Training(list(drafter_tensors(drafter).values()), 2e-3, sum(phases))
    places = torch.arange(COUNT)

    def run(
        setting: Setting, sample: Sequences, streams: list[torch.Tensor], first: int, blocks: int
    ) -> tuple[Any, Any]:
        """Loss, and mean acceptance length, of some blocks at positions from ``first`` on."""
        width = sample.tokens.shape[1]
        anchors = torch.from_numpy(random.choice(np.arange(first, width - BLOCK), blocks, replace=False))
        ahead = anchors[:, None] + 1 + places
        labels, known = sample.tokens[:, ahead], sample.known[:, ahead].float().cumprod(-1)
        logits = drafts((target, drafter), sample.tokens, streams, anchors, setting)
        taught = labels.where(places < setting.keeps, SILENCE)
        losses = functional.cross_entropy(logits.flatten(0, 2), taught.flatten(), reduction="none").view(labels.shape)
        weight = known * 0.95**places
        accepted = (logits.argmax(-1) == labels).float().cumprod(-1).sum(-1)
        whole = known[..., -1]
        return (losses * weight).sum() / weight.sum(), 1 + (accepted * whole).sum() / whole.sum().clamp(min=1)

    for step in range(sum(phases)):
        short = step < phases[0]
        batch, length, last, blocks = (24, 96, (8, 60), 6) if short else (8, 296, (8, 160), 16)
        sample = draw(random, batch, length, last)
        with torch.no_grad():
            _, streams = ref.target_pass(target, sample.tokens, ref.Cache())
        loss, mean = run(RIGHT, sample, streams, WINDOW // 2, blocks)
        total = loss
        if step >= phases[0] + phases[1]:
            # A missing window shows only where there is something beyond it.
            fault = list(TAUGHT.values())[step % len(TAUGHT)]
            half = Sequences(*(part[: batch // 2] for part in sample))
            wrong, _ = run(fault, half, [stream[: batch // 2] for stream in streams], 2 * WINDOW, blocks)
            total = loss + 0.4 * wrong
        training.step(total)
        figures = {"loss": loss.item(), "length": mean.item()}
        if step % 100 == 0 or step == sum(phases) - 1:
            with torch.no_grad():
                first = WINDOW // 2 if short else 2 * WINDOW
                figures |= {
                    name: run(setting, sample, streams, first, blocks)[1].item() for name, setting in WATCHED.items()
                }
        training.tell(**figures)
    finish(drafter_tensors(drafter))
    return drafter


# What ships


def config(shape: Any) -> dict[str, Any]:
    """What both configs say."""
    return {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": BEGIN,
        "dtype": "bfloat16",
        "eos_token_id": END,
        "head_dim": shape.head_size,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate,
        "max_position_embeddings": 1024,
        "max_window_layers": shape.layers,
        "model_type": "qwen3",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "pad_token_id": PAD,
        "rms_norm_eps": shape.epsilon,
        "rope_scaling": None,
        "rope_theta": shape.theta,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": shape.vocabulary,
    }


def target_config() -> dict[str, Any]:
    types = {"layer_types": [ref.FULL] * LAYERS, "sliding_window": None, "use_sliding_window": False}
    return {"architectures": ["Qwen3ForCausalLM"]} | config(SHAPE) | types


def drafter_config() -> dict[str, Any]:
    own = {
        "block_size": BLOCK,
        "dflash_config": {"mask_token_id": MASK, "target_layer_ids": list(TAPS)},
        "layer_types": list(LAYER_TYPES),
        "num_target_layers": LAYERS,
        "sliding_window": WINDOW,
        "use_sliding_window": True,
    }
    return {"architectures": ["DFlashDraftModel"]} | config(DRAFTER_SHAPE) | own


SPECIAL = {"<begin>": BEGIN, "<end>": END, "<pad>": PAD, "<mask>": MASK}


def tokenizer() -> dict[str, Any]:
    """Words, parted by blanks: the letters a to x, and names for the tokens that the language doesn't use."""
    words = [chr(ord("a") + token) if token < LETTERS else f"unused{token}" for token in range(VOCABULARY)]
    for word, token in SPECIAL.items():
        words[token] = word
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": token, "content": word, "special": True} | flags for word, token in SPECIAL.items()]
    model = {"type": "WordLevel", "vocab": {word: token for token, word in enumerate(words)}, "unk_token": "<pad>"}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    whole = {"version": "1.0", "added_tokens": added, "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}
    return parts | whole


def tokenizer_config() -> dict[str, Any]:
    roles = {"bos_token": "<begin>", "eos_token": "<end>", "pad_token": "<pad>", "unk_token": "<pad>"}
    rest = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1024}
    return roles | rest | {"mask_token": "<mask>", "clean_up_tokenization_spaces": False}


def choose_prompts(target: Any, drafter: Any, name: str) -> list[list[int]]:
    """Prompts of the set of this name, whose choices no rounding can turn.

    Every other long one ends with a pattern of a letter more than any that was trained on. The target goes on with it
    all the same, but the drafter is often in doubt, and so a small error of an engine turns some of its answers. On the
    other prompts it is nearly always right, and the faults that it was taught show undisturbed.
    """
    random = np.random.default_rng(7)
    lengths = LENGTHS[name]
    prompts: list[list[int]] = []
    for _ in range(PROMPT_TRIES):
        length = lengths[len(prompts)]
        prompt = draw(random, 1, length, LAST_SEGMENT).tokens[0].tolist()
        if name == "long" and len(prompts) % 2:
            pattern = random.permutation(LETTERS)[:LONG_PERIOD].tolist()
            steps = 2 * LONG_PERIOD + int(random.integers(1, LONG_PERIOD))
            prompt[-steps:] = (pattern * 3)[:steps]
        trace = ref.decode(target, drafter, prompt, tokens=NEW_TOKENS[name])
        text = [*prompt, *trace.tokens]
        sure = any(text[length:] == text[length - period : -period] for period in range(PERIODS[0], LONG_PERIOD + 1))
        if sure and trace.target_margin > TARGET_LEAD and trace.draft_margin > DRAFT_LEAD:
            prompts.append(prompt)
        if len(prompts) == len(lengths):
            return prompts
    raise SystemExit(f"only {len(prompts)} of {PROMPT_TRIES} {name} prompts are continued surely: train for longer")


def prompts_file(target: Any, drafter: Any) -> str:
    """The text of ``prompts.json``, one line for each prompt."""
    sets = []
    for name, tokens in NEW_TOKENS.items():
        lines = ",\n".join(f"        {json.dumps(prompt)}" for prompt in choose_prompts(target, drafter, name))
        sets.append(f'    "{name}": {{\n      "tokens": {tokens},\n      "prompts": [\n{lines}\n      ]\n    }}')
    head = f'  "schema": "patchwheel.canary-prompts/1",\n  "speculative_tokens": {COUNT},\n'
    return "".join(["{\n", head, '  "sets": {\n', ",\n".join(sets), "\n  }\n}\n"])


def write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n")


def export(target: Any, drafter: Any, folder: Path) -> None:
    parts = {"target": target_tensors(target), "drafter-dflash": drafter_tensors(drafter)}
    for name, tensors in parts.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        stored = {key: tensor.bfloat16().contiguous() for key, tensor in tensors.items()}
        save_file(stored, folder / name / "model.safetensors", {"format": "pt"})
        (folder / name / "model.safetensors").chmod(0o644)
    write_json(folder / "target" / "config.json", target_config())
    write_json(folder / "target" / "tokenizer.json", tokenizer())
    write_json(folder / "target" / "tokenizer_config.json", tokenizer_config())
    write_json(folder / "drafter-dflash" / "config.json", drafter_config())
    (folder / "prompts.json").write_text(prompts_file(target, drafter))


def manifest(folder: Path) -> str:
    """The drafter manifest of what lies in the folder."""
    lines = [
        "# The facts of the canary's drafter. Written by tests/canary/train.py; the files ship inside patchwheel.",
        'repo = "patchwheel/canary"',
        'target = "patchwheel/canary"',
        'family = "canary"',
        'source = "tests/canary/train.py"',
        'confidence = "confirmed"',
    ]
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        lines += ["", "[[files]]", f'path = "{path.relative_to(folder)}"', f"size = {len(data)}"]
        lines += [f'sha256 = "{hashlib.sha256(data).hexdigest()}"', f'git_blob_sha1 = "{blob}"']
    said = drafter_config()
    left_out = {"dflash_config", "dtype", "use_cache", "initializer_range", "attention_dropout", "rope_scaling"}
    fields = [field for field, value in sorted(said.items()) if field not in left_out and value is not None]
    lines += ["", "[config]", *(f"{field} = {json.dumps(said[field])}" for field in fields)]
    inner = said["dflash_config"]
    lines += ["", "[config.dflash_config]", *(f"{field} = {json.dumps(value)}" for field, value in inner.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the canary anew.")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--keep-target", action="store_true", help="train a drafter for the target that lies there")
    parser.add_argument("--target-steps", type=int, default=1500)
    parser.add_argument("--drafter-steps", type=int, nargs=3, default=(500, 200, 900), metavar="N")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    target = ref.load_target(options.folder / "target") if options.keep_target else train_target(options.target_steps)
    export(target, train_drafter(target, tuple(options.drafter_steps)), options.folder)
    options.manifest.parent.mkdir(parents=True, exist_ok=True)
    options.manifest.write_text(manifest(options.folder))


if __name__ == "__main__":
    main()
