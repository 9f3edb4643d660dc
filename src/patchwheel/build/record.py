"""The build record: what went into a wheel and what came out changed, carried inside the wheel itself.

It holds nothing that differs between two builds of one version: no time, no machine, no path, and none of the words in
which recipe and series describe themselves, since the version's digest covers base and patches alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

import patchwheel
from patchwheel.documents import canonical_json
from patchwheel.errors import ArchiveError
from patchwheel.files import sha256_bytes
from patchwheel.recipe import Sha256  # noqa: TC001  (msgspec reads annotations at run time)

if TYPE_CHECKING:
    from patchwheel.plan import Plan

__all__ = ["RECORD_NAME", "BuildRecord", "make_record", "read_record", "record_bytes"]

RECORD_NAME = "patchwheel.json"
"""Name inside the dist-info folder."""

SCHEMA = "patchwheel.record/1"


class RecordedBase(msgspec.Struct, frozen=True, kw_only=True):
    """The base wheel."""

    project: str
    version: str
    variant: str
    file: str
    sha256: Sha256


class RecordedPatch(msgspec.Struct, frozen=True, kw_only=True):
    """One patch, with what its header says, the files it changed, and those that wheels don't carry."""

    name: str
    sha256: Sha256
    description: str
    origin: str
    forwarded: str
    drop_when: str | None
    changes: tuple[str, ...]
    dropped: tuple[str, ...]


class RecordedSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One series, in the order in which it was applied."""

    name: str
    patches: tuple[RecordedPatch, ...]


class RecordedChange(msgspec.Struct, frozen=True, kw_only=True):
    """One member of the wheel that differs from the base: sha256 of its content before and after, None if absent."""

    path: str
    kind: Literal["add", "modify", "delete"]
    before: Sha256 | None
    after: Sha256 | None
    patches: tuple[str, ...]


class RecordedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """A file other than the one a patch was made for, patched because the series allows offsets.

    ``lines`` has for each hunk the number of lines by which it was moved; the two files are named by git blob id.
    """

    patch: str
    path: str
    lines: tuple[int, ...]
    made_for: str
    found: str


class BuildRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA):
    """The whole record; ``patchwheel`` is the version of the program that built the wheel."""

    patchwheel: str
    label: str
    base: RecordedBase
    series: tuple[RecordedSeries, ...]
    strategy: str
    version: str
    wheel: str
    changes: tuple[RecordedChange, ...]
    offsets: tuple[RecordedOffset, ...]


def make_record(plan: Plan) -> BuildRecord:
    """The record of a plan; all that it says follows from the plan's inputs."""
    return BuildRecord(
        patchwheel=patchwheel.__version__,
        label=plan.recipe.label,
        base=RecordedBase(
            project=plan.base.project,
            version=plan.base.version,
            variant=plan.base.variant,
            file=plan.base.file,
            sha256=plan.base.sha256,
        ),
        series=tuple(
            RecordedSeries(
                name=series.name,
                patches=tuple(
                    RecordedPatch(
                        name=patch.name,
                        sha256=patch.sha256,
                        description=patch.header.description,
                        origin=patch.header.origin,
                        forwarded=patch.header.forwarded,
                        drop_when=str(patch.header.drop_when) if patch.header.drop_when else None,
                        changes=patch.paths,
                        dropped=patch.dropped,
                    )
                    for patch in series.patches
                ),
            )
            for series in plan.series
        ),
        strategy=plan.strategy,
        version=plan.name.version,
        wheel=plan.name.file_name,
        changes=tuple(
            RecordedChange(
                path=change.path,
                kind=change.kind,
                before=None if change.before is None else sha256_bytes(change.before),
                after=None if change.after is None else sha256_bytes(change.after),
                patches=change.patches,
            )
            for change in plan.applied.changes
        ),
        offsets=tuple(
            RecordedOffset(
                patch=offset.patch,
                path=offset.path,
                lines=offset.lines,
                made_for=offset.made_for,
                found=offset.found,
            )
            for offset in plan.applied.offsets
        ),
    )


def record_bytes(record: BuildRecord) -> bytes:
    """The record as it lies in the wheel."""
    return canonical_json(record)


def read_record(data: bytes) -> BuildRecord:
    """Read a record from a wheel.

    Raises:
        ArchiveError: It is damaged, or of a schema that this version does not know.
    """
    try:
        return msgspec.json.decode(data, type=BuildRecord)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ArchiveError(
            f"the build record can't be read: {error}",
            where=RECORD_NAME,
            expected=SCHEMA,
            next_step="the wheel may be from a newer patchwheel: upgrade",
        ) from error
