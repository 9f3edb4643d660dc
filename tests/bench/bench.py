"""The figures that patchwheel promises, as ratios to plain tools, all measured in one run on this machine.

Absolute times say little on a shared machine; a ratio within one run does. Each time is the best of several rounds,
and the rounds of what is compared alternate. Run it by ``nox -s bench``; the base wheel must fit into the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from patchwheel.base import fetch_base, pin_base
from patchwheel.progress import reporter_for
from patchwheel.project import find_project
from patchwheel.recipe import DEFAULT_RECIPE, find_recipe

WITHOUT_READ_BACK = """
import sys; from pathlib import Path
from patchwheel.pipeline import build_recipe; from patchwheel.project import find_project
build_recipe(project=find_project(), out=Path(sys.argv[1]), offline=True, read_back=False)
"""


@dataclass(frozen=True)
class Run:
    """Seconds and peak resident memory (MB) of one process and its children."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    value: float
    limit: float
    unit: str
    measured: str

    @property
    def holds(self) -> bool:
        return self.value <= self.limit


def run(*command: str | Path) -> Run:
    started = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} failed with {process.returncode}:\n{errors.decode()}")
    return Run(seconds, usage.ru_maxrss / 1024)


def best(runs: list[Run]) -> float:
    return min(one.seconds for one in runs)


def measure(base: Path, rounds: int) -> list[Figure]:
    command = Path(sys.executable).with_name("patchwheel")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        work = Path(folder)
        copies, hashes, builds, fulls, starts, passes = [], [], [], [], [], []
        for _ in range(rounds):
            copies.append(run("cp", base, work / "copy.whl"))
            hashes.append(run("sha256sum", base))
            builds.append(run(sys.executable, "-c", WITHOUT_READ_BACK, work / "a"))
            fulls.append(run(command, "build", "--offline", "--quiet", "--out", work / "b"))
        for _ in range(rounds * 4):
            passes.append(run(sys.executable, "-c", "pass"))
            starts.append(run(command, "--version"))
        (work / "copy.whl").unlink()
        unpack = run(sys.executable, "-m", "wheel", "unpack", base, "--dest", work / "tree")
        pack = run(sys.executable, "-m", "wheel", "pack", next((work / "tree").iterdir()), "--dest-dir", work)
        built = next((work / "b").glob("*.whl"))
        print(
            f"base {base.stat().st_size / 1e6:.1f} MB, built {built.stat().st_size / 1e6:.1f} MB",
            file=sys.stderr,
        )
        shutil.rmtree(work / "tree")
    plain = best(copies) + best(hashes)
    repack = unpack.seconds + pack.seconds
    peak = max(one.megabytes for one in [*builds, *fulls])
    ratios = (
        ("build without read-back : cp + sha256sum", best(builds), plain, 2.0),
        ("build with all checks : cp + sha256sum", best(fulls), plain, 4.0),
        ("build with all checks : wheel unpack + pack", best(fulls), repack, 1 / 8),
        ("patchwheel --version : python -c pass", best(starts), best(passes), 5.0),
    )
    figures = [
        Figure(name, ours / theirs, limit, "x", f"{ours:.3f} s : {theirs:.3f} s")
        for name, ours, theirs, limit in ratios
    ]
    figures.append(Figure("peak memory of a build", peak, 120.0, "MB", f"most of {2 * rounds} builds"))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    project = find_project()
    recipe, path = find_recipe(DEFAULT_RECIPE, project)
    base = fetch_base(pin_base(recipe, path, project), reporter=reporter_for())
    figures = measure(base, options.rounds)
    if options.json:
        rows = [vars(figure) | {"holds": figure.holds} for figure in figures]
        print(json.dumps({"schema": "patchwheel.bench/1", "figures": rows}, indent=2))
    for figure in figures:
        mark = "ok  " if figure.holds else "MISS"
        value = f"{figure.value:.3f} {figure.unit}"
        print(
            f"{mark} {figure.name:<46}{value:>10}  (limit {figure.limit:g}; {figure.measured})",
            file=sys.stderr,
        )
    sys.exit(0 if all(figure.holds for figure in figures) else 1)


if __name__ == "__main__":
    main()
