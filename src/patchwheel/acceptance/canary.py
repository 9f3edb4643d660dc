"""The canary: a tiny trained target and drafter that come with patchwheel and show any fault of the chain as a number.

``models/canary`` in this package holds:

- ``target``: a Qwen3 of 8 layers, and ``drafter-dflash``: a DFlash drafter of 5, four of them sliding and causal, the
  last full and not causal. Both are folders as vLLM serves them. (vLLM takes a drafter for DFlash by the word in its
  path, and a target path with that word confuses it.)
- ``prompts.json``: sets of prompts as token ids, with ``tokens``, how many new ones belong to each. The ``long`` ones
  have at least four times the drafter's window; the ``short`` ones lie inside it, with their text and the last block.
  ``speculative_tokens`` is the K that belongs to them all.

What faults look like is described by `Variant`: the right drafter with some fields of its ``config.json`` edited, as if
an engine had read them wrongly or a stale file lay there. The weights stay. How many drafts an engine must accept of
each is not written down anywhere: the reference (`patchwheel.acceptance.reference`) computes it.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchwheel.documents import canonical_json
from patchwheel.files import write_atomically, writing

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DRAFTER",
    "TARGET",
    "Prompts",
    "Variant",
    "canary_folder",
    "drafter_config",
    "evenly",
    "prompt_sets",
    "prompts",
    "variants",
    "write_variant",
]

TARGET = "target"
DRAFTER = "drafter-dflash"
"""Names of the two folders."""

PROMPTS_SCHEMA = "patchwheel.canary-prompts/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompts:
    """What the canary is asked.

    Attributes:
        prompts: Token ids.
        tokens: How many new tokens belong to each.
        speculative_tokens: K.
    """

    prompts: tuple[tuple[int, ...], ...]
    tokens: int
    speculative_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """The canary's drafter under one config.

    Attributes:
        name: Short, fit for a file name.
        explanation: What is the matter, in one line.
        edits: Fields of ``config.json`` that differ from the right one; tables are merged.
    """

    name: str
    explanation: str
    edits: Mapping[str, Any]


def canary_folder() -> Path:
    """Where the shipped files lie."""
    return Path(str(files("patchwheel.acceptance"))) / "models" / "canary"


def prompt_sets() -> dict[str, Prompts]:
    """The shipped prompts by the name of their set."""
    document = json.loads((canary_folder() / "prompts.json").read_bytes())
    return {
        name: Prompts(
            prompts=tuple(tuple(prompt) for prompt in part["prompts"]),
            tokens=part["tokens"],
            speculative_tokens=document["speculative_tokens"],
        )
        for name, part in document["sets"].items()
    }


def prompts(name: str = "long") -> Prompts:
    """One set of the shipped prompts."""
    return prompt_sets()[name]


def drafter_config() -> dict[str, Any]:
    """The right ``config.json`` of the drafter."""
    config: dict[str, Any] = json.loads((canary_folder() / DRAFTER / "config.json").read_bytes())
    return config


def evenly(count: int, first: int, last: int) -> list[int]:
    """Layer ids evenly spaced from first to last, rounded.

    z-lab takes its taps so, from 1 to three below the target's number of layers. A count of one gives the first.
    """
    if count == 1:
        return [first]
    return [round(first + place * (last - first) / (count - 1)) for place in range(count)]


def variants() -> tuple[Variant, ...]:
    """The right config, and one for each fault; made from the shipped config, so that they follow it."""
    config = drafter_config()
    taps: list[int] = config["dflash_config"]["target_layer_ids"]
    full = {
        "layer_types": ["full_attention"] * config["num_hidden_layers"],
        "sliding_window": None,
        "use_sliding_window": False,
    }
    ending_late = {"target_layer_ids": evenly(len(taps), 1, config["num_target_layers"] - 1)}
    other_mask = {"mask_token_id": prompts().prompts[0][0]}
    return (
        Variant(name="right", explanation="the config that the weights were trained with", edits={}),
        Variant(
            name="taps-early",
            explanation="each tap one layer too early: what an engine sees that lacks the layer-id patch",
            edits={"dflash_config": {"target_layer_ids": [tap - 1 for tap in taps]}},
        ),
        Variant(
            name="full",
            explanation="all layers full and not causal: a stale config, or an engine that lacks sliding windows",
            edits=full,
        ),
        Variant(
            name="noncausal",
            explanation="the sliding layers keep their window but see what comes after",
            edits={"dflash_config": {"causal": False}},
        ),
        Variant(
            name="mask",
            explanation="another mask token, one that has a meaning in the language",
            edits={"dflash_config": other_mask},
        ),
        Variant(
            name="taps-last",
            explanation="taps that end at the target's last layer rather than three below its depth",
            edits={"dflash_config": ending_late},
        ),
        Variant(
            name="field-report",
            explanation="all at once, as in the field report: full attention, taps that end late, a wrong mask token",
            edits=full | {"dflash_config": ending_late | other_mask},
        ),
    )


def write_variant(variant: Variant, folder: Path) -> Path:
    """Make a drafter folder with a variant's config and the shipped weights.

    Args:
        variant: What to write.
        folder: Made if it isn't there. vLLM tells a DFlash drafter by the word ``dflash`` in its path.

    Returns:
        The folder.

    Raises:
        OutputError: The folder can't be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((canary_folder() / DRAFTER).iterdir()):
        if source.name != "config.json":
            _link_or_copy(source, folder / source.name)
    config = _merged(drafter_config(), variant.edits)
    write_atomically(folder / "config.json", canonical_json(config))
    return folder


def _merged(table: Mapping[str, Any], edits: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(table)
    for key, value in edits.items():
        result[key] = _merged(result[key], value) if isinstance(value, dict) else value
    return result


def _link_or_copy(source: Path, target: Path) -> None:
    with writing(target):
        target.unlink(missing_ok=True)
        with suppress(OSError):  # another file system, or one without hard links
            os.link(source, target)
            return
        shutil.copyfile(source, target)
