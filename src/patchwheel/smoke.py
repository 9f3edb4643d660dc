"""Installs a wheel where nothing else is, imports it, and calls what its patches change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchwheel.errors import ToolError
from patchwheel.install import Environment, create_environment, run_script
from patchwheel.pipeline import open_wheel
from patchwheel.probes import load_probes
from patchwheel.progress import SILENT, Reporter
from patchwheel.recipe import find_recipe
from patchwheel.verify import Report, Result, Status, peek_record
from patchwheel.wheel.names import parse_wheel_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchwheel.build import BuildRecord
    from patchwheel.probes.model import BehaviouralProbe
    from patchwheel.project import Project

__all__ = ["smoke"]

_IMPORT = Path(__file__).parent / "probes" / "imported.py"
_CALLS = Path(__file__).parent / "probes" / "calls.py"


def smoke(
    wheel: Path,
    *,
    project: Project,
    recipe: str | None = None,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Report:
    """Install a wheel in a clean environment and try it there; needs no GPU.

    Args:
        wheel: The wheel file.
        project: Has the recipe that says how the wheel is installed, and the probes of its series.
        recipe: Name of that recipe; by default what the record beside the wheel names, if there is one.
        offline: Install only what uv has cached.
        reporter: Is told what happens.

    Returns:
        A report; what does not work in the environment is a failed check in it.

    Raises:
        UsageError: The wheel or the recipe can't be found.
        ConfigError: The recipe or the probes can't be read.
        ToolError: The environment can't be made, or its Python does not run.
        OutputError: The cache can't be written.
    """
    with open_wheel(wheel) as file:
        record = peek_record(file, wheel.name)
    name = recipe or _recipe_beside(wheel)
    overrides = find_recipe(name, project)[0].install.overrides if name else ()
    environment = create_environment(wheel, overrides=overrides, offline=offline, reporter=reporter)
    results = [
        *_imported(environment, parse_wheel_name(wheel.name).version),
        _behaves(environment, _listed(record, project), record),
    ]
    size = wheel.stat().st_size
    return Report(wheel=wheel.name, sha256=environment.sha256, size=size, results=tuple(results))


def _recipe_beside(wheel: Path) -> str | None:
    try:
        document = json.loads(wheel.with_name(f"{wheel.name}.record.json").read_bytes())
        name = document["plan"]["recipe"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return name if isinstance(name, str) else None


def _imported(environment: Environment, version: str) -> list[Result]:
    """That vLLM imports, has the version of the file name, and that its extensions load as far as this machine goes."""
    found = _run(environment, _IMPORT, [])
    told = found.get("version")
    results = [
        Result(
            check="import",
            status=Status.PASSED if found["imported"] else Status.FAILED,
            evidence=f"vllm imports on Python {found['python']}" if found["imported"] else str(found["error"]),
            remedy=None if found["imported"] else "patchwheel verify says whether the wheel is whole",
        ),
        Result(
            check="version",
            status=Status.PASSED if told == version else Status.FAILED,
            evidence=f"{told} is installed, and vllm says {found['module_version']}",
            problems=() if told == version else (f"the file name says {version}",),
            remedy=None if told == version else "the environment holds another wheel: remove its folder, and try again",
        ),
    ]
    loaded, absent, broken = (found["extensions"][key] for key in ("loaded", "absent", "broken"))
    results.append(
        Result(
            check="native",
            status=Status.FAILED if broken else Status.PASSED,
            evidence=f"{len(loaded)} extensions load"
            + (
                f"; {len(absent)} need a GPU's driver or another processor, not tried: {', '.join(sorted(absent))}"
                if absent
                else ""
            ),
            problems=tuple(f"{path}: {why}" for path, why in sorted(broken.items())),
            remedy="the wheel doesn't fit this torch or this machine" if broken else None,
        )
    )
    return results


def _listed(record: BuildRecord | None, project: Project) -> list[BehaviouralProbe]:
    """The behavioural probes of the patches that a wheel says it has."""
    probes: list[BehaviouralProbe] = []
    for series in record.series if record else ():
        patches = {patch.name for patch in series.patches}
        listed = load_probes(series.name, project.probes)
        probes += [probe for probe in (listed.behavioural if listed else ()) if probe.patch in patches]
    return probes


def _behaves(environment: Environment, probes: Sequence[BehaviouralProbe], record: BuildRecord | None) -> Result:
    if not probes:
        why = "no build record: patchwheel did not build this wheel" if record is None else "its series have none"
        return Result(check="behaviour", status=Status.SKIPPED, evidence=why)
    found = _run(environment, _CALLS, [probe.call for probe in probes])["results"]
    problems = tuple(
        f"{probe.name}: {result['evidence']}"
        for probe, result in zip(probes, found, strict=True)
        if not result["holds"]
    )
    return Result(
        check="behaviour",
        status=Status.FAILED if problems else Status.PASSED,
        evidence=f"{len(probes) - len(problems)} of {len(probes)} probes hold",
        problems=problems,
        remedy="a patch is in the wheel but does not act: has something else changed the same code?"
        if problems
        else None,
    )


def _run(environment: Environment, script: Path, arguments: Sequence[str]) -> dict[str, Any]:
    done = run_script(environment, script, arguments, variables={"VLLM_LOGGING_LEVEL": "ERROR"})
    try:
        document = json.loads(done.stdout)
    except ValueError as error:
        raise ToolError(
            f"{script.name} failed in the environment, with exit code {done.returncode}",
            where=str(environment.python),
            details="\n".join(f"  | {line}" for line in done.stderr.splitlines()[-20:]),
        ) from error
    if not isinstance(document, dict):
        raise ToolError(f"{script.name} said something else than it should", found=done.stdout[:200])
    return document
