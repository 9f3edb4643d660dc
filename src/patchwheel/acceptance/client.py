"""Asks a server for completions, and reads what it counted meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import requests
from prometheus_client.parser import text_string_to_metric_families

from patchwheel.acceptance.counts import Counts
from patchwheel.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchwheel.acceptance.server import Server

__all__ = ["Readings", "Text", "complete", "forget_prefixes", "read_counters"]

Text = tuple[int, ...]
"""Token ids of one completion."""

PATIENCE = (10.0, 600.0)
"""Seconds until a connection must stand, and until a request must be answered."""

_DRAFTS = "vllm:spec_decode_num_drafts_total"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
_ASKED, _CACHED = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"


@dataclass(frozen=True, kw_only=True, slots=True)
class Readings:
    """Counters of a server at one moment.

    Attributes:
        counts: Of speculation; no positions if the server does not speculate or has not yet.
        asked: Tokens looked up in the prefix cache.
        cached: Tokens found there.
    """

    counts: Counts
    asked: int
    cached: int


def complete(server: Server, prompts: Sequence[Text], *, tokens: int, concurrency: int) -> list[Text]:
    """Greedy completions of exactly ``tokens`` tokens each, in the order of the prompts.

    Args:
        server: Whom to ask.
        prompts: Token ids.
        tokens: How many; end-of-text doesn't end a completion.
        concurrency: How many requests are under way at once.

    Raises:
        ToolError: A request failed, or was answered with something else.
    """
    with requests.Session() as session, ThreadPoolExecutor(concurrency) as pool:
        session.trust_env = False
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=concurrency))
        return list(pool.map(lambda prompt: _complete(session, server, prompt, tokens), prompts))


def _complete(session: requests.Session, server: Server, prompt: Text, tokens: int) -> Text:
    body = {
        "model": server.model,
        "prompt": list(prompt),
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }
    try:
        answer = session.post(f"{server.url}/v1/completions", json=body, timeout=PATIENCE)
        answer.raise_for_status()
        text = answer.json()["choices"][0]["token_ids"]
    except (requests.RequestException, LookupError, TypeError, ValueError) as error:
        raise ToolError(f"a completion failed: {error}", where=str(server.log), next_step="read the log") from error
    if not isinstance(text, list) or len(text) != tokens:
        raise ToolError(
            "a completion is not what was asked for",
            where=str(server.log),
            expected=f"{tokens} tokens",
            found=repr(text),
        )
    return tuple(text)


def forget_prefixes(server: Server) -> None:
    """Empty the prefix cache; the server must run with ``VLLM_SERVER_DEV_MODE=1``.

    Raises:
        ToolError: It refused.
    """
    _ask(server, "POST", "/reset_prefix_cache")


def read_counters(server: Server) -> Readings:
    """The server's counters, once they stand still: the last step is counted a moment after its answer.

    Raises:
        ToolError: They can't be read.
    """
    last = None
    while (now := _read(server)) != last:
        last = now
        time.sleep(0.2)
    return now


def _read(server: Server) -> Readings:
    drafts = asked = cached = 0
    accepted: dict[int, int] = {}
    for family in text_string_to_metric_families(_ask(server, "GET", "/metrics").text):
        for sample in family.samples:
            if sample.name not in {_DRAFTS, _ACCEPTED, _ASKED, _CACHED}:
                continue
            value = int(sample.value)
            if sample.name == _DRAFTS:
                drafts += value
            elif sample.name == _ACCEPTED:
                position = int(sample.labels["position"])
                accepted[position] = accepted.get(position, 0) + value
            elif sample.name == _ASKED:
                asked += value
            else:
                cached += value
    positions = tuple(accepted[position] for position in sorted(accepted))
    return Readings(counts=Counts(drafts=drafts, accepted=positions), asked=asked, cached=cached)


def _ask(server: Server, method: str, path: str) -> requests.Response:
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.request(method, server.url + path, timeout=PATIENCE)
            answer.raise_for_status()
            return answer
    except requests.RequestException as error:
        raise ToolError(
            f"the server does not answer: {error}", where=str(server.log), next_step="read the log"
        ) from error
