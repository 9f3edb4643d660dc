"""Runs a gate: the reference first, then one server for each row, several side by side."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from patchwheel.acceptance import canary
from patchwheel.acceptance.counts import Counts
from patchwheel.acceptance.gate import CONTROL, RIGHT
from patchwheel.acceptance.server import Watch, serve
from patchwheel.acceptance.table import LONG, Expected, Outcome, Table, failed_row, judge, not_run
from patchwheel.acceptance.trial import Measured, measure
from patchwheel.errors import ConfigError, PatchwheelError, ToolError
from patchwheel.progress import SILENT, Reporter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from patchwheel.acceptance.gate import Gate, Row

__all__ = ["UNDER_TEST", "Served", "run_gate", "run_reference"]

UNDER_TEST = "right"
"""The name of the wheel under test among those that are served."""

MOST_JOBS = 4
"""Servers side by side, if nothing is said: each takes some 2 GB."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A wheel that is installed.

    Attributes:
        file: Its file name.
        sha256: Its digest.
        python: The interpreter of the environment that it is in.
    """

    file: str
    sha256: str
    python: Path


def run_gate(
    gate: Gate,
    wheels: Mapping[str, Served],
    *,
    folder: Path,
    jobs: int = MOST_JOBS,
    watch: Watch | None = None,
    reporter: Reporter = SILENT,
) -> Table:
    """Run all rows that the wheels allow, and judge them.

    Args:
        gate: The gate.
        wheels: The wheel under test (`UNDER_TEST`), and those with something left out by the gate's names for them.
        folder: For drafters and logs; must exist.
        jobs: How many servers run side by side, each on processors of its own.
        watch: When to give up on a server.
        reporter: Is told what happens.

    Raises:
        ConfigError: The gate names drafters that there aren't.
        OutputError: The folder can't be written.
        ToolError: The reference failed. (A server that fails makes its row fail.)
    """
    drafters = _write_drafters(gate, folder)
    with reporter.step("decoded with the reference"):
        expected = run_reference(wheels[UNDER_TEST].python, drafters, folder=folder)
    trials = _Trials(gate=gate, drafters=drafters, folder=folder, watch=watch or Watch(), reporter=reporter)
    rows = [row for row in gate.rows if (row.wheel or UNDER_TEST) in wheels]
    found: dict[str, list[Measured] | PatchwheelError] = {}
    shares = _Shares(jobs)
    with ThreadPoolExecutor(len(rows)) as pool:
        futures = {pool.submit(trials.run, row, wheels[row.wheel or UNDER_TEST], shares): row for row in rows}
        try:
            for done in as_completed(futures):
                found[futures[done].name] = done.result()
        except BaseException:  # interrupted: the pool waits for its servers, so they must hurry
            trials.watch.given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Table(
        gate=gate,
        outcomes=tuple(_outcome(row, found, expected) for row in gate.rows),
        wheels={name: {"file": wheel.file, "sha256": wheel.sha256} for name, wheel in wheels.items()},
    )


def run_reference(python: Path, drafters: Mapping[str, Path], *, folder: Path) -> Expected:
    """Decode all prompts with the reference.

    Args:
        python: An interpreter that has torch and safetensors.
        drafters: Folders of drafters, by the name of the variant.
        folder: For the prompts' files.

    Raises:
        ToolError: It failed.
    """
    files = {}
    for name, prompts in canary.prompt_sets().items():
        files[name] = folder / f"prompts-{name}.json"
        files[name].write_text(json.dumps({"tokens": prompts.tokens, "prompts": prompts.prompts}), "utf-8")

    # One process for each processor, with one thread each: more are slower on models this small.
    names, count = list(drafters), len(_processors())
    groups = [group for number in range(count) if (group := names[number::count])]

    def decode(group: list[str]) -> list[dict[str, Counts]]:
        parts = [_decode(python, [drafters[name] for name in group], file) for file in files.values()]
        return [dict(zip(files, counts, strict=True)) for counts in zip(*parts, strict=True)]

    with ThreadPoolExecutor(len(groups)) as pool:
        decoded = pool.map(decode, groups)
        found = {
            name: one
            for group, part in zip(groups, decoded, strict=True)
            for name, one in zip(group, part, strict=True)
        }
    return {name: found[name] for name in drafters}


def _decode(python: Path, drafters: Sequence[Path], prompts: Path) -> list[Counts]:
    script = Path(__file__).with_name("reference.py")
    command = [str(python), "-I", str(script), "--target", str(canary.canary_folder() / canary.TARGET)]
    command += ["--prompts", str(prompts), "--threads", "1"]
    for drafter in drafters:
        command += ["--drafter", str(drafter)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (what is shipped)
    if done.returncode:
        raise ToolError("the reference failed", where=str(script), details=done.stderr.strip())
    found = json.loads(done.stdout)["drafters"]
    return [Counts(drafts=part["drafts"], accepted=tuple(part["accepted"])) for part in found]


def _write_drafters(gate: Gate, folder: Path) -> dict[str, Path]:
    variants = {variant.name: variant for variant in canary.variants()}
    names = dict.fromkeys(name for row in gate.rows for name in (row.drafter, row.like) if name)
    if unknown := sorted(set(names) - set(variants)):
        raise ConfigError(
            f"the gate {gate.name} names drafters that there aren't: {', '.join(unknown)}",
            expected="one of " + ", ".join(variants),
        )
    return {name: canary.write_variant(variants[name], folder / f"{name}-dflash") for name in names}


@dataclass(frozen=True, kw_only=True)
class _Trials:
    """What all rows have in common."""

    gate: Gate
    drafters: Mapping[str, Path]
    folder: Path
    watch: Watch
    reporter: Reporter

    def run(self, row: Row, wheel: Served, shares: _Shares) -> list[Measured] | PatchwheelError:
        """Measure a row as soon as there are processors for it; an error is a result like any other."""
        with shares.take() as processors:
            try:
                return self._measure(row, wheel, processors)
            except PatchwheelError as error:
                return error

    def _measure(self, row: Row, wheel: Served, processors: Sequence[int]) -> list[Measured]:
        sets = canary.prompt_sets()
        flags = list(self.gate.serve.flags)
        if row.drafter:
            speculation = {
                "method": "dflash",
                "model": str(self.drafters[row.drafter]),
                "num_speculative_tokens": sets[LONG].speculative_tokens,
            }
            flags += ["--speculative-config", json.dumps(speculation)]
        environment = {
            **self.gate.serve.environment,
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)),
            "VLLM_SERVER_DEV_MODE": "1",  # lets the prefix cache be emptied
        }
        with serve(
            wheel.python,
            canary.canary_folder() / canary.TARGET,
            flags,
            log=self.folder / f"{row.name.replace(' ', '-')}.log",
            environment=environment,
            watch=self.watch,
            reporter=self.reporter,
        ) as server:
            return measure(
                server,
                {name: prompts.prompts for name, prompts in sets.items()},
                tokens={name: prompts.tokens for name, prompts in sets.items()},
                repeats=row.repeats,
            )


def _outcome(row: Row, found: Mapping[str, list[Measured] | PatchwheelError], expected: Expected) -> Outcome:
    if row.name not in found:
        return not_run(row, f"needs the wheel {row.wheel}")
    measured, right, plain = (found[name] for name in (row.name, RIGHT, CONTROL))
    if isinstance(measured, PatchwheelError):
        return failed_row(row, str(measured))
    if isinstance(right, PatchwheelError) or isinstance(plain, PatchwheelError):
        return failed_row(row, f"nothing to compare with: the row {RIGHT} or {CONTROL} failed")
    return judge(row, measured, expected=expected, right=right, plain=plain)


def _processors() -> list[int]:
    return sorted(os.sched_getaffinity(0))


class _Shares:
    """Shares of this machine's processors, each for one server at a time."""

    def __init__(self, jobs: int) -> None:
        processors = _processors()
        jobs = max(1, min(jobs, len(processors)))
        self._free: SimpleQueue[tuple[int, ...]] = SimpleQueue()
        for number in range(jobs):
            self._free.put(tuple(processors[number::jobs]))

    @contextmanager
    def take(self) -> Iterator[tuple[int, ...]]:
        """A share, when one is free."""
        share = self._free.get()
        try:
            yield share
        finally:
            self._free.put(share)
