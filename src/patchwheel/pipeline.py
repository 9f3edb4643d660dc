"""The way of the data, from a recipe to a published wheel: each stage called once, in order."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from patchwheel.base import find_cached_base, open_base, peek_base, pin_base
from patchwheel.build import make_record, write_overlay
from patchwheel.documents import canonical_json
from patchwheel.errors import CheckFailedError, UsageError
from patchwheel.files import check_space, drafting, locked
from patchwheel.plan import Plan, make_plan
from patchwheel.progress import SILENT, Reporter
from patchwheel.recipe import DEFAULT_RECIPE, Recipe, find_recipe
from patchwheel.series import Series, derive_series, leave_out, load_series
from patchwheel.verify import Base, Report, peek_record, verify_wheel
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchwheel.project import Project

__all__ = ["Product", "build_recipe", "open_wheel", "plan_recipe", "verify_path", "verify_paths"]


@dataclass(frozen=True, kw_only=True)
class Product:
    """A finished build.

    Attributes:
        wheel: The published wheel.
        record: The file beside it, with the build record, the wheel's digest, and the checks it passed.
        plan: What was built.
        sha256: Hex digest of the wheel.
        size: Its size in bytes.
        report: What the read-back said; None if it was left out.
    """

    wheel: Path
    record: Path
    plan: Plan
    sha256: str
    size: int
    report: Report | None

    def as_document(self) -> dict[str, object]:
        """The build as a JSON-ready document."""
        return {
            "schema": "patchwheel.build/1",
            "wheel": str(self.wheel),
            "record": str(self.record),
            "sha256": self.sha256,
            "size": self.size,
            "plan": self.plan.as_document(),
            "verify": self.report.as_document() if self.report else None,
        }


def plan_recipe(
    name: str = DEFAULT_RECIPE,
    *,
    project: Project,
    variant: str | None = None,
    left_out: Sequence[str] = (),
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Plan:
    """Work out what a build would do. Arguments as for `build_recipe`.

    Writes nothing, but for the history of a git source, which goes into the cache. Of a base that is not cached, only
    the needed parts are read.

    Raises:
        PatchwheelError: Of any kind that the stages raise.
    """
    recipe, path = find_recipe(name, project)
    pin = pin_base(recipe, path, project, recipe.choose_variant(variant))
    series = _load_all(recipe, path, project, left_out, offline=offline, reporter=reporter)
    with peek_base(pin, offline=offline, reporter=reporter) as source:
        archive = Archive(source)
        if isinstance(source, FileSource):  # over a network that would be a request for every member
            archive.check_layout()
        return make_plan(recipe, pin, series, archive)


def build_recipe(
    name: str = DEFAULT_RECIPE,
    *,
    project: Project,
    out: Path,
    variant: str | None = None,
    left_out: Sequence[str] = (),
    offline: bool = False,
    reporter: Reporter = SILENT,
    strategy: str = "auto",
    read_back: bool = True,
) -> Product:
    """Fetch, apply, build, verify, and publish atomically into ``out``.

    Killed at any moment, this leaves nothing or the finished wheel; running it again goes on from what is cached and
    ends with the same bytes.

    Args:
        name: The recipe's name, or the path of its file.
        project: Where recipes, locks and patches are.
        out: Folder for the wheel and the record beside it.
        variant: Variant to build; by default the one for this machine.
        left_out: Patches to do without, as ``<series>/<patch>``; the wheel's version and record tell of the rest.
        offline: Use only what the cache has.
        reporter: Whom to tell of progress.
        strategy: How to build, one of `patchwheel.plan.STRATEGIES`.
        read_back: Read the written wheel back and run all checks on it. Leave this out only to time the rest.

    Raises:
        CheckFailedError: The wheel did not pass the checks; it is not published.
        PatchwheelError: Of any other kind that the stages raise.
    """
    recipe, path = find_recipe(name, project)
    pin = pin_base(recipe, path, project, recipe.choose_variant(variant))
    series = _load_all(recipe, path, project, left_out, offline=offline, reporter=reporter)
    with open_base(pin, offline=offline, reporter=reporter) as file:
        base = Archive(FileSource(file, pin.file))
        base.check_layout()
        with reporter.step("applied the patches"):
            plan = make_plan(recipe, pin, series, base, strategy)
        target = out / plan.name.file_name
        beside = target.with_name(f"{target.name}.record.json")
        report = None
        with (
            locked(out, lambda: reporter.say(f"another patchwheel is working in {out}: waiting for it")),
            drafting(target) as draft,
            drafting(beside) as note,
        ):
            check_space(out, plan.size)
            with reporter.step("built the wheel"):
                built = write_overlay(plan, base, draft)
                draft.flush()
            with ThreadPoolExecutor(1) as disk:
                synced = disk.submit(draft.sync)  # the disk works while the cores check
                if read_back:
                    with reporter.step("read it back and checked it"):
                        report = verify_wheel(draft.file, target.name, Base(file, pin.file), probes=project.probes)
                    _refuse_unless_sound(report, built.sha256)
                synced.result()
            note.write(_record_beside(plan, built.sha256, built.size, report))
            note.sync()
            _tell_replaced(beside, built.sha256, reporter)
            # The wheel last: once it is there, all is there.
            note.publish()
            draft.publish()
    return Product(wheel=target, record=beside, plan=plan, sha256=built.sha256, size=built.size, report=report)


def verify_path(path: Path, *, base: Path | None = None, project: Project | None = None) -> Report:
    """Run every check on a wheel.

    Args:
        path: The wheel.
        base: The base wheel to compare with; by default the one that the build record names, if the cache has it.
        project: Has the probes of the wheel's series; without it they are not checked.

    Raises:
        UsageError: A file can't be opened.
        ArchiveError: The base wheel is malformed.
    """
    return verify_paths([path], base=base, project=project)[0]


def verify_paths(paths: Sequence[Path], *, base: Path | None = None, project: Project | None = None) -> list[Report]:
    """`verify_path` for several wheels; all are opened before the first is checked."""
    with ExitStack() as stack:
        files = [(stack.enter_context(open_wheel(path)), path.name) for path in paths]
        given = Base(stack.enter_context(open_wheel(base)), base.name) if base else None
        return [_verify(file, name, given, project.probes if project else None) for file, name in files]


def _verify(file: IO[bytes], name: str, given: Base | None, probes: Path | None) -> Report:
    record = peek_record(file, name)
    cached = find_cached_base(record.base.sha256) if record and not given else None
    if record is None or cached is None:
        told = "name it with --base, or run patchwheel base fetch"
        return verify_wheel(file, name, given, no_base=told, probes=probes)
    with cached.open("rb") as base_file:
        base = Base(base_file, cached.name)
        if base.sha256 != record.base.sha256:
            told = "the cached one is damaged; patchwheel base fetch gets it again"
            return verify_wheel(file, name, no_base=told, probes=probes)
        return verify_wheel(file, name, base, probes=probes)


def _load_all(
    recipe: Recipe, recipe_path: Path, project: Project, left_out: Sequence[str], *, offline: bool, reporter: Reporter
) -> list[Series]:
    series = [
        load_series(one, recipe.base.version, project)
        if isinstance(one, str)
        else derive_series(one, folder=recipe_path.parent, offline=offline, reporter=reporter)
        for one in recipe.series
    ]
    return leave_out(series, left_out)


def open_wheel(path: Path) -> IO[bytes]:
    """Open a wheel that somebody has named.

    Raises:
        UsageError: There is none, or it is no regular file.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path.name} is no regular file", where=str(path), next_step="name the file of a wheel")
        return path.open("rb")
    except OSError as error:
        raise UsageError(
            f"can't open {path.name}: {error.strerror}", where=str(path), next_step="name the file of a wheel"
        ) from error


def _refuse_unless_sound(report: Report, written: str) -> None:
    if report and report.sha256 == written:
        return
    what = "the wheel did not pass its checks and was not published"
    if report.sha256 != written:
        what = "the wheel on the disk is not what was written, and was not published"
    raise CheckFailedError(
        what,
        details=report.as_text(),
        next_step="run the build again; if it fails the same way, please report it",
        data={"verify": report.as_document()},
    )


def _tell_replaced(beside: Path, sha256: str, reporter: Reporter) -> None:
    with suppress(OSError, ValueError, AttributeError):  # no earlier build, or nothing to be learnt from it
        if json.loads(beside.read_bytes()).get("sha256") != sha256:
            reporter.say("replacing an earlier build of this version, of other bytes: another patchwheel made it")


def _record_beside(plan: Plan, sha256: str, size: int, report: Report | None) -> bytes:
    checks = {result.check: result.status.value for result in report.results} if report else {}
    return canonical_json(
        {
            "schema": "patchwheel.wheel/1",
            "wheel": plan.name.file_name,
            "sha256": sha256,
            "size": size,
            "checks": checks,
            "plan": plan.as_document(),
            "record": make_record(plan),
        }
    )
