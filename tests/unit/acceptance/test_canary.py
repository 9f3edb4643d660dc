"""The canary as it ships: whole, as its manifest says, and its variants differ in what they say and in nothing else."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from patchwheel.acceptance.canary import (
    DRAFTER,
    PROMPTS_SCHEMA,
    TARGET,
    Variant,
    canary_folder,
    drafter_config,
    evenly,
    prompts,
    variants,
    write_variant,
)
from patchwheel.errors import OutputError
from patchwheel.files import git_blob_id, sha256_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MANIFEST = Path(__file__).parents[3] / "manifests" / "drafters" / "patchwheel--canary.toml"


def manifest() -> dict[str, Any]:
    return tomllib.loads(MANIFEST.read_text())


def shipped() -> dict[str, bytes]:
    folder = canary_folder()
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def header(path: Path) -> dict[str, Any]:
    """What a safetensors file says of its tensors."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors: dict[str, Any] = json.loads(data[8 : 8 + size])
    tensors.pop("__metadata__", None)
    return tensors


def named(name: str) -> Variant:
    return next(variant for variant in variants() if variant.name == name)


def problems_with(listed: list[dict[str, Any]], files: dict[str, bytes]) -> list[str]:
    problems = [f"{path} is not listed" for path in files.keys() - {entry["path"] for entry in listed}]
    for entry in listed:
        data = files.get(entry["path"])
        if data is None:
            problems.append(f"{entry['path']} is not there")
        elif (entry["sha256"], entry["size"], entry["git_blob_sha1"]) != (
            sha256_bytes(data),
            len(data),
            git_blob_id(data),
        ):
            problems.append(f"{entry['path']} is another file")
    return problems


def test_the_manifest_names_exactly_the_shipped_bytes() -> None:
    assert problems_with(manifest()["files"], shipped()) == []


def test_the_comparison_with_the_manifest_can_fail() -> None:
    listed, files = manifest()["files"], shipped()
    prompt_file = files["prompts.json"]
    assert problems_with(listed, files | {"prompts.json": prompt_file + b"\n"}) == ["prompts.json is another file"]
    assert problems_with(listed, files | {"new": b""}) == ["new is not listed"]
    del files["prompts.json"]
    assert problems_with(listed, files) == ["prompts.json is not there"]


def test_the_manifest_s_fields_are_those_of_the_config() -> None:
    fields, config = manifest()["config"], drafter_config()
    assert {key: config.get(key) for key in fields} == fields
    assert {"layer_types", "sliding_window", "use_sliding_window", "dflash_config", "block_size"} <= fields.keys()


def test_weights_are_small_and_of_the_kind_that_configs_state() -> None:
    sizes = [(canary_folder() / name / "model.safetensors").stat().st_size for name in (TARGET, DRAFTER)]
    assert sum(sizes) <= 4_000_000
    config = drafter_config()
    drafter, target = (header(canary_folder() / name / "model.safetensors") for name in (DRAFTER, TARGET))
    assert {tensor["dtype"] for tensor in [*drafter.values(), *target.values()]} == {"BF16"}
    taps = config["dflash_config"]["target_layer_ids"]
    assert drafter["fc.weight"]["shape"] == [config["hidden_size"], len(taps) * config["hidden_size"]]
    layers = {name.split(".")[1] for name in drafter if name.startswith("layers.")}
    assert len(layers) == config["num_hidden_layers"]
    assert not any("embed" in name or "lm_head" in name for name in drafter)


def test_target_and_drafter_fit() -> None:
    drafter = drafter_config()
    target = json.loads((canary_folder() / TARGET / "config.json").read_bytes())
    shared = ("hidden_size", "vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rope_theta")
    assert {key: drafter[key] for key in shared} == {key: target[key] for key in shared}
    assert drafter["num_target_layers"] == target["num_hidden_layers"]
    taps = drafter["dflash_config"]["target_layer_ids"]
    assert taps == evenly(len(taps), 1, target["num_hidden_layers"] - 3)
    # Legal for FlashAttention on a GPU, too.
    assert target["head_dim"] % 32 == 0
    assert "dflash" in DRAFTER
    assert "dflash" not in TARGET


def test_prompts_reach_beyond_the_window() -> None:
    shown, config = prompts(), drafter_config()
    document = json.loads((canary_folder() / "prompts.json").read_bytes())
    assert document["schema"] == PROMPTS_SCHEMA
    assert len(shown.prompts) == 16
    assert all(4 * config["sliding_window"] <= len(prompt) <= 256 for prompt in shown.prompts)
    assert shown.speculative_tokens == config["block_size"] - 1
    assert all(config["dflash_config"]["mask_token_id"] not in prompt for prompt in shown.prompts)
    longest = max(map(len, shown.prompts)) + shown.tokens + config["block_size"]
    assert longest <= config["max_position_embeddings"]


@pytest.mark.parametrize(
    ("layers", "count", "taps"),
    [(64, 5, [1, 16, 31, 46, 61]), (36, 5, [1, 9, 17, 25, 33]), (40, 8, [1, 6, 11, 16, 22, 27, 32, 37]), (9, 1, [1])],
)
def test_taps_by_the_family_s_rule(layers: int, count: int, taps: list[int]) -> None:
    assert evenly(count, 1, layers - 3) == taps


def written(name: str, folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((write_variant(named(name), folder / name) / "config.json").read_bytes())
    return config


def test_variants_differ_from_the_right_config_in_what_they_say(tmp_path: Path) -> None:
    right = drafter_config()
    names = [variant.name for variant in variants()]
    assert names == ["right", "taps-early", "full", "noncausal", "mask", "taps-last", "field-report"]
    configs = {name: written(name, tmp_path) for name in names}
    assert configs["right"] == right
    assert len({json.dumps(config) for config in configs.values()}) == len(names)
    window = {"layer_types", "sliding_window", "use_sliding_window"}
    changed = {"full": window, "field-report": window | {"dflash_config"}}
    for name, config in configs.items():
        fields = {key for key in config.keys() | right.keys() if config.get(key) != right.get(key)}
        assert fields == changed.get(name, set() if name == "right" else {"dflash_config"})
    inner = {name: config["dflash_config"] for name, config in configs.items()}
    layers, taps = right["num_target_layers"], right["dflash_config"]["target_layer_ids"]
    assert inner["taps-early"]["target_layer_ids"] == [tap - 1 for tap in taps]
    assert inner["taps-last"]["target_layer_ids"][-1] == layers - 1
    assert inner["noncausal"]["causal"] is False
    assert any(inner["mask"]["mask_token_id"] in prompt for prompt in prompts().prompts)
    assert inner["field-report"] == inner["taps-last"] | {"mask_token_id": inner["mask"]["mask_token_id"]}
    assert set(configs["full"]["layer_types"]) == {"full_attention"}
    assert configs["full"]["sliding_window"] is None


def test_a_variant_has_the_shipped_weights_and_leaves_them_alone(tmp_path: Path) -> None:
    before = shipped()
    folder = write_variant(named("full"), tmp_path / "dflash")
    write_variant(named("mask"), folder)  # over another one
    assert json.loads((folder / "config.json").read_bytes())["sliding_window"] is not None
    assert (folder / "model.safetensors").read_bytes() == before[f"{DRAFTER}/model.safetensors"]
    assert shipped() == before


def test_weights_are_copied_where_they_cannot_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    folder = write_variant(named("right"), tmp_path / "dflash")
    source = canary_folder() / DRAFTER / "model.safetensors"
    assert (folder / "model.safetensors").read_bytes() == source.read_bytes()
    assert not (folder / "model.safetensors").samefile(source)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        write_variant(named("right"), tmp_path / "file" / "dflash")
