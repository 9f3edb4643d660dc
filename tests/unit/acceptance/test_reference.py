"""The reference decoder against independent answers: transformers, brute force, and a toy counted by hand."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

REFERENCE = Path(__file__).parents[3] / "src" / "patchwheel" / "acceptance" / "reference.py"


def load() -> Any:
    """The module by its file, as an environment without patchwheel has it."""
    spec = importlib.util.spec_from_file_location("reference", REFERENCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ref = load()
torch.set_num_threads(1)  # the tensors are tiny, and several tests run at once
S, F = "sliding_attention", "full_attention"
SIZES: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 23,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000.0,
    "max_position_embeddings": 512,
}
LAYERS = 3


def config(**edits: Any) -> dict[str, Any]:
    """A drafter's config; ``dflash`` edits the inner table, None leaves a field out."""
    inner = {"mask_token_id": 22, "target_layer_ids": [0, 2]} | edits.pop("dflash", {})
    whole = SIZES | {"block_size": 6, "dflash_config": inner} | edits
    return {key: value for key, value in whole.items() if value is not None}


def layer(sizes: dict[str, Any], prefix: str) -> dict[str, Any]:
    hidden, inner, size = sizes["hidden_size"], sizes["intermediate_size"], sizes["head_dim"]
    wide, narrow = sizes["num_attention_heads"] * size, sizes["num_key_value_heads"] * size
    shapes = {
        "input_layernorm": (hidden,),
        "self_attn.q_proj": (wide, hidden),
        "self_attn.k_proj": (narrow, hidden),
        "self_attn.v_proj": (narrow, hidden),
        "self_attn.o_proj": (hidden, wide),
        "self_attn.q_norm": (size,),
        "self_attn.k_norm": (size,),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    return {f"{prefix}{name}.weight": torch.randn(shape) * 0.5 for name, shape in shapes.items()}


def write(folder: Path, config: dict[str, Any], tensors: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    return folder


def target_folder(folder: Path, *, tied: bool = False, **edits: Any) -> Path:
    torch.manual_seed(3)
    sizes = SIZES | {"tie_word_embeddings": tied} | edits
    tensors = {"model.embed_tokens.weight": torch.randn(23, 16), "model.norm.weight": torch.randn(16)}
    if not tied:
        tensors["lm_head.weight"] = torch.randn(23, 16)
    for number in range(LAYERS):
        tensors |= layer(SIZES, f"model.layers.{number}.")
    return write(folder, {key: value for key, value in sizes.items() if value is not None}, tensors)


def drafter_folder(folder: Path, **edits: Any) -> Path:
    torch.manual_seed(4)
    tensors = {"fc.weight": torch.randn(16, 32), "hidden_norm.weight": torch.randn(16), "norm.weight": torch.randn(16)}
    for number in range(LAYERS):
        tensors |= layer(SIZES, f"layers.{number}.")
    return write(folder, config(**edits), tensors)


def cut(config: dict[str, Any]) -> Any:
    return ref.DrafterConfig.of(config)


def kinds(config: dict[str, Any]) -> list[tuple[int | None, bool]]:
    return [(kind.window, kind.causal) for kind in ref.resolve_layers(cut(config))]


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"layer_types": [S, S, F], "use_sliding_window": True, "sliding_window": 9},
            [(9, True)] * 2 + [(None, False)],
        ),
        ({"layer_types": [F, F, F]}, [(None, False)] * 3),
        ({"layer_types": [F, F, F], "use_sliding_window": True, "sliding_window": 9}, [(None, False)] * 3),
        # The loader's own doings.
        ({}, [(None, False)] * 3),
        ({"use_sliding_window": True, "sliding_window": 9}, [(None, False)] * 3),
        (
            {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2},
            [(None, False), (None, False), (9, True)],
        ),
        ({"layer_types": [S, F, F], "use_sliding_window": True}, [(4096, True), (None, False), (None, False)]),
        # The inner window wins, and needs no switch.
        ({"layer_types": [S, F, F], "dflash": {"swa_window_size": 5}}, [(5, True), (None, False), (None, False)]),
        (
            {
                "layer_types": [S, S, S],
                "use_sliding_window": True,
                "sliding_window": 9,
                "dflash": {"swa_window_size": 5},
            },
            [(5, True)] * 3,
        ),
        # use_swa: everywhere, but only if no entry slides; and then not causal.
        ({"layer_types": [F, F, F], "dflash": {"use_swa": True, "swa_window_size": 5}}, [(5, False)] * 3),
        (
            {"layer_types": [S, F, F], "dflash": {"use_swa": True, "swa_window_size": 5}},
            [(5, True), (None, False), (None, False)],
        ),
        # Causality: the top level, the inner table, the layer type.
        (
            {"layer_types": [S, F, F], "dflash": {"swa_window_size": 5, "causal": False}},
            [(5, False)] + [(None, False)] * 2,
        ),
        (
            {"layer_types": [S, F, F], "dflash": {"swa_window_size": 5, "causal": True}},
            [(5, True)] + [(None, True)] * 2,
        ),
        (
            {"layer_types": [S, F, F], "is_causal": False, "dflash": {"swa_window_size": 5, "causal": True}},
            [(5, False)] + [(None, False)] * 2,
        ),
        ({"layer_types": [F, F, F], "is_causal": True}, [(None, True)] * 3),
    ],
)
def test_windows_and_causality(edits: dict[str, Any], expected: list[tuple[int | None, bool]]) -> None:
    assert kinds(config(**edits)) == expected


@pytest.mark.parametrize(
    "edits",
    [
        {"layer_types": [S, F, F]},
        {"layer_types": [S, F, F], "sliding_window": 9},
        {"layer_types": [S, F, F], "sliding_window": 9, "use_sliding_window": False},
        {"layer_types": [S, F, F], "sliding_window": 0, "use_sliding_window": True},
        {
            "layer_types": [S, F, F],
            "sliding_window": 9,
            "use_sliding_window": True,
            "dflash": {"swa_window_size": None},
        },
        {"dflash": {"use_swa": True}},
    ],
)
def test_a_sliding_layer_without_a_window_is_an_error_that_says_what_to_set(edits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"set dflash_config\.swa_window_size, or sliding_window"):
        ref.resolve_layers(cut(config(**edits)))


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"layer_types": [F, F]}, "3 entries"),
        ({"layer_types": [F, F, "swa"]}, "3 entries"),
        ({"dflash": {"mask_token_id": 23}}, "mask_token_id"),
        ({"dflash": {"target_layer_ids": []}}, "target_layer_ids"),
        ({"block_size": 1}, "block_size"),
        ({"model_type": "llama"}, "model_type"),
        ({"rope_theta": None}, "rope_theta"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "yarn"),
        ({"attention_bias": True}, "attention_bias"),
        ({"hidden_size": "16"}, "hidden_size"),
    ],
)
def test_configs_that_are_not_computed_here_are_refused(edits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cut(config(**edits))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 3, 5])
def test_masks_by_brute_force(window: int | None, causal: bool) -> None:  # noqa: FBT001
    queries, keys = range(7, 12), range(12)
    seen = ref.visible(ref.LayerKind(window, causal=causal), torch.tensor(list(queries)), torch.tensor(list(keys)))
    for row, query in enumerate(queries):
        reach = 100 if window is None else window
        expected = {key for key in keys if query - reach < key and (key <= query if causal else key < query + reach)}
        assert {key for key in keys if seen[row, key]} == expected


@pytest.mark.parametrize("tied", [True, False])
def test_the_target_computes_what_transformers_does(tmp_path: Path, tied: bool) -> None:  # noqa: FBT001
    transformers = pytest.importorskip("transformers")
    folder = target_folder(tmp_path / "target", tied=tied)
    target = ref.load_target(folder)
    model = transformers.Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.randint(0, 23, (2, 40))
    with torch.no_grad():
        streams: list[Any] = []
        for part in model.model.layers:
            part.register_forward_hook(lambda _, __, out: streams.append(out[0] if isinstance(out, tuple) else out))
        expected = model(input_ids=tokens).logits
        cache = ref.Cache()
        first, _ = ref.target_pass(target, tokens[:, :25], cache)
        second, rest = ref.target_pass(target, tokens[:, 25:], cache)
    torch.testing.assert_close(torch.cat((first, second), 1), expected, rtol=1e-4, atol=1e-4)
    assert len(rest) == len(streams) == LAYERS
    for ours, theirs in zip(rest, streams, strict=True):
        torch.testing.assert_close(ours, theirs[:, 25:], rtol=1e-4, atol=1e-4)


def test_theta_is_read_from_either_place(tmp_path: Path) -> None:
    prompt = [1, 2, 3, 4, 5, 6]
    texts = []
    for name, edits in (
        ("a", {"rope_theta": 50.0}),
        ("b", {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
        ("c", {"rope_theta": 10.0, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
    ):
        target = ref.load_target(target_folder(tmp_path / name, **edits))
        assert target.shape.theta == 50.0
        texts.append(ref.greedy(target, prompt, 10).tokens)
    assert texts[0] == texts[1] == texts[2]


def naive(target: Any, drafter: Any, prompt: list[int], tokens: int, count: int) -> tuple[list[int], int, list[int]]:
    """The same algorithm without any cache and with loops for the masks: all is computed anew in each step."""
    settings, windows = drafter.config, ref.resolve_layers(drafter.config)

    def read(text: list[int]) -> tuple[Any, Any]:
        logits, streams = ref.target_pass(target, torch.tensor([text]), ref.Cache())
        return logits[0].argmax(-1).tolist(), torch.cat([streams[tap] for tap in settings.taps], -1)

    best, _ = read(prompt)
    text, drafts, accepted = [*prompt, best[-1]], 0, [0] * count
    while len(text) - len(prompt) < tokens:
        end = len(text) - 1
        _, taps = read(text[:end])
        context = ref.context_keys_values(drafter, taps, torch.arange(end))
        seen = []
        for kind in windows:
            mask = torch.zeros(1 + count, end + 1 + count, dtype=torch.bool)
            for row in range(1 + count):
                for key in range(end + 1 + count):
                    ahead = key - (end + row)
                    mask[row, key] = not (kind.causal and ahead > 0) and (
                        kind.window is None or abs(ahead) < kind.window
                    )
            seen.append(mask)
        block = target.embedding[torch.tensor([[text[-1]] + [settings.mask] * count])]
        states = ref.block_states(drafter, block, torch.arange(end, end + 1 + count), context, seen)
        guesses = (states @ target.head.T)[0, 1:].argmax(-1).tolist()
        best, _ = read(text + guesses)
        right = 0
        while right < count and guesses[right] == best[end + right]:
            accepted[right] += 1
            right += 1
        drafts += 1
        text += [*guesses[:right], best[end + right]]
    return text[len(prompt) : len(prompt) + tokens], drafts, accepted


def turned(vector: Any, position: int) -> Any:
    """Rotary embedding of one head, [D], as a product of complex numbers."""
    half = len(vector) // 2
    angles = torch.tensor([position * SIZES["rope_theta"] ** (-place / half) for place in range(half)])
    product = torch.complex(vector[:half], vector[half:]) * torch.polar(torch.ones(half), angles)
    return torch.cat((product.real, product.imag))


def rms(vector: Any, weight: Any) -> Any:
    return torch.nn.functional.rms_norm(vector, vector.shape[-1:], weight, SIZES["rms_norm_eps"])


def drafter_by_loops(tensors: dict[str, Any], taps: Any, block: Any, kinds: list[Any]) -> Any:
    """A drafter's answer to one block, position by position and head by head; taps are [C, taps x H], block [Q, H]."""
    size, groups = SIZES["head_dim"], SIZES["num_attention_heads"] // SIZES["num_key_value_heads"]
    context = [rms(tensors["fc.weight"] @ tap, tensors["hidden_norm.weight"]) for tap in taps]
    states = list(block)
    for number, kind in enumerate(kinds):
        part = {name.removeprefix(f"layers.{number}."): tensor for name, tensor in tensors.items()}
        inner = [rms(state, part["input_layernorm.weight"]) for state in states]
        sources = list(enumerate(context + inner))  # context first: the block's positions follow on its own
        new = []
        for place, state in enumerate(states):
            position, heads = len(context) + place, []
            for head in range(SIZES["num_attention_heads"]):
                own, shared = slice(head * size, (head + 1) * size), head // groups
                held = slice(shared * size, (shared + 1) * size)
                query = (part["self_attn.q_proj.weight"] @ inner[place])[own]
                query = turned(rms(query, part["self_attn.q_norm.weight"]), position)
                scores, values = [], []
                for where, source in sources:
                    if kind.causal and where > position:
                        continue
                    if kind.window is not None and abs(where - position) >= kind.window:
                        continue
                    key = (part["self_attn.k_proj.weight"] @ source)[held]
                    scores.append(query @ turned(rms(key, part["self_attn.k_norm.weight"]), where) / size**0.5)
                    values.append((part["self_attn.v_proj.weight"] @ source)[held])
                heads.append(torch.stack(scores).softmax(0) @ torch.stack(values))
            middle = state + part["self_attn.o_proj.weight"] @ torch.cat(heads)
            fed = rms(middle, part["post_attention_layernorm.weight"])
            gate = torch.nn.functional.silu(part["mlp.gate_proj.weight"] @ fed)
            new.append(middle + part["mlp.down_proj.weight"] @ (gate * (part["mlp.up_proj.weight"] @ fed)))
        states = new
    return torch.stack([rms(state, tensors["norm.weight"]) for state in states])


def test_the_drafter_computes_what_loops_over_positions_and_heads_do(tmp_path: Path) -> None:
    folder = drafter_folder(tmp_path, layer_types=[S, S, F], use_sliding_window=True, sliding_window=4)
    drafter = ref.load_drafter(folder)
    layers = list(ref.resolve_layers(drafter.config))
    taps, block = torch.randn(9, 32), torch.randn(4, 16)
    context = ref.context_keys_values(drafter, taps[None], torch.arange(9))
    seen = [ref.visible(kind, torch.arange(9, 13), torch.arange(13)) for kind in layers]
    ours = ref.block_states(drafter, block[None], torch.arange(9, 13), context, seen)[0]
    expected = drafter_by_loops(safetensors.load_file(folder / "model.safetensors"), taps, block, layers)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


CONFIGS: dict[str, dict[str, Any]] = {
    "mixed": {"layer_types": [S, S, F], "use_sliding_window": True, "sliding_window": 4},
    "full": {"layer_types": [F, F, F]},
    "noncausal": {"layer_types": [S, S, F], "dflash": {"causal": False, "swa_window_size": 4}},
    "taps": {"layer_types": [S, S, F], "dflash": {"swa_window_size": 4, "target_layer_ids": [1, 0]}},
    "mask": {"layer_types": [S, S, F], "dflash": {"swa_window_size": 4, "mask_token_id": 2}},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_decoding_equals_greedy_and_a_decoder_without_caches(tmp_path: Path, name: str) -> None:
    target = ref.load_target(target_folder(tmp_path / "target"))
    drafter = ref.load_drafter(drafter_folder(tmp_path / "drafter", **CONFIGS[name]))
    prompt = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]
    trace = ref.decode(target, drafter, prompt, tokens=40, speculative_tokens=3)
    with torch.no_grad():
        text, drafts, accepted = naive(target, drafter, prompt, 40, 3)
    assert trace.tokens == tuple(text) == ref.greedy(target, prompt, 40).tokens
    assert (trace.drafts, list(trace.accepted)) == (drafts, accepted)
    assert trace.target_margin > 0


def counting(folder: Path) -> tuple[Path, Path]:
    """A target that counts upwards, and a drafter that answers every mask with one more than the bonus token.

    All layers give nothing, so that the residual stream is the embedding. Tokens are unit vectors; the head reads token
    t from the unit vector of t - 1 (mod 23), so that the target says t + 1 after t. The mask's embedding is empty, and
    the drafter's only layer that does anything copies the bonus token's vector to all positions.
    """
    torch.manual_seed(0)
    sizes = SIZES | {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1}
    sizes |= {"head_dim": 24, "tie_word_embeddings": False}
    zero = {name: torch.zeros_like(tensor) for name, tensor in layer(sizes, "").items()}
    zero["input_layernorm.weight"] = torch.ones(24)
    unit = torch.eye(24)[:23]
    unit[22] = 0.0
    head = torch.eye(24)[[(token - 1) % 22 for token in range(22)] + [23]]
    target = write(
        folder / "target",
        sizes,
        {
            "model.embed_tokens.weight": unit,
            "lm_head.weight": head,
            "model.norm.weight": torch.ones(24),
            **{f"model.layers.0.{name}": tensor for name, tensor in zero.items()},
        },
    )
    # q and k are zero: all that is seen counts alike. v and o hand the vectors on; context states are zero.
    copying = zero | {"self_attn.v_proj.weight": torch.eye(24), "self_attn.o_proj.weight": torch.eye(24)}
    drafter = write(
        folder / "drafter",
        sizes | {"block_size": 6, "dflash_config": {"mask_token_id": 22, "target_layer_ids": [0]}},
        {
            "fc.weight": torch.zeros(24, 24),
            "hidden_norm.weight": torch.ones(24),
            "norm.weight": torch.ones(24),
            **{f"layers.0.{name}": tensor for name, tensor in copying.items()},
        },
    )
    return target, drafter


def test_a_toy_that_can_be_counted_by_hand(tmp_path: Path) -> None:
    target, drafter = (
        load(folder) for load, folder in zip((ref.load_target, ref.load_drafter), counting(tmp_path), strict=True)
    )
    trace = ref.decode(target, drafter, [4, 5], tokens=9, speculative_tokens=3)
    # The prompt gives 6. Each step drafts the same token three times, one of which is right, and adds one bonus token:
    # 6 | 7 8 | 9 10 | 11 12 | 13 14.
    assert trace.tokens == tuple(range(6, 15))
    assert (trace.drafts, trace.accepted) == (4, (4, 0, 0))
    # A step may accept more than was asked for; it counts in full.
    short = ref.decode(target, drafter, [4, 5], tokens=2, speculative_tokens=3)
    assert (short.tokens, short.drafts, short.accepted) == ((6, 7), 1, (1, 0, 0))
    # One token needs no draft.
    assert ref.decode(target, drafter, [4, 5], tokens=1).drafts == 0


def test_pairs_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    target = ref.load_target(target_folder(tmp_path / "target"))
    drafter = ref.load_drafter(drafter_folder(tmp_path / "drafter"))
    beyond = ref.load_drafter(drafter_folder(tmp_path / "beyond", dflash={"target_layer_ids": [1, 3]}))
    with pytest.raises(ValueError, match="0 to 2"):
        ref.decode(target, beyond, [1], tokens=3)
    for count in (0, 6):
        with pytest.raises(ValueError, match="must be 1 to 5"):
            ref.decode(target, drafter, [1], tokens=3, speculative_tokens=count)
    with pytest.raises(ValueError, match=r"fc.weight must be \(16, 48\)"):
        ref.load_drafter(drafter_folder(tmp_path / "wide", dflash={"target_layer_ids": [0, 1, 2]}))


def test_the_command_line_runs_isolated(tmp_path: Path) -> None:
    target = target_folder(tmp_path / "target")
    drafters = [drafter_folder(tmp_path / name, **CONFIGS[name]) for name in ("mixed", "full")]
    prompts = tmp_path / "prompts.json"
    prompts.write_text(json.dumps({"tokens": 12, "prompts": [[1, 2, 3], [4, 5, 6, 7]]}))
    command = [sys.executable, "-I", str(REFERENCE), "--target", str(target), "--prompts", str(prompts), "-k", "3"]
    run = subprocess.run(
        [*command, *(part for folder in drafters for part in ("--drafter", str(folder)))],
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(run.stdout)
    assert document["schema"] == ref.SCHEMA
    assert len(document["greedy"]) == 2
    for folder, result in zip(drafters, document["drafters"], strict=True):
        trace = ref.decode(
            ref.load_target(target), ref.load_drafter(folder), [1, 2, 3], tokens=12, speculative_tokens=3
        )
        first = result["prompts"][0]
        assert (first["tokens"], first["drafts"]) == (list(trace.tokens), trace.drafts)
        assert result["same_text"]
        assert math.isclose(result["mean_length"], 1 + sum(result["accepted"]) / result["drafts"])
    bad = subprocess.run([*command, "--drafter", str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert bad.stderr.startswith("error: ")
