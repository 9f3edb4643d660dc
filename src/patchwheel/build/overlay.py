"""The overlay strategy: the base wheel with some members replaced, and everything else copied as it is.

Order: the base wheel's members in its own order, then new members by name, then the dist-info folder with the
build record and, last, RECORD.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchwheel.build.record import RECORD_NAME, make_record, record_bytes
from patchwheel.errors import ArchiveError
from patchwheel.wheel.record import Row, format_record, is_exempt, parse_record, row_for
from patchwheel.wheel.relabel import relabelled, renamed
from patchwheel.wheel.writer import ArchiveWriter, Writable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from patchwheel.plan import Plan
    from patchwheel.wheel.archive import Archive

__all__ = ["Built", "write_overlay"]


@dataclass(frozen=True, kw_only=True)
class Built:
    """What was written: sha256 and size in bytes, both taken from the bytes on their way to the file."""

    sha256: str
    size: int


def write_overlay(plan: Plan, archive: Archive, file: Writable) -> Built:
    """Write the wheel of a plan.

    Args:
        plan: An overlay plan made for this archive.
        archive: The base wheel, its layout checked.
        file: Where to write; memory does not grow with the wheel.

    Raises:
        ArchiveError: The base wheel is malformed.
    """
    old, new = plan.dist_info, plan.name.dist_info
    contents = _contents(plan, archive)
    removed = {change.path for change in plan.applied.changes if change.after is None}
    listed = _listed_rows(archive, old)
    kept = [
        member.name
        for member in archive.members
        if not member.is_folder and member.name not in removed and not is_exempt(member.name, old)
    ]
    names = [*kept, *sorted(contents.keys() - set(kept))]
    writer = ArchiveWriter(file)
    rows: list[Row] = []
    for name in sorted(names, key=lambda name: name.startswith(f"{old}/")):  # a stable sort: dist-info goes last
        member = archive.get(name)
        target = renamed(name, plan.base_name, plan.name)
        if (data := contents.get(name)) is not None:
            writer.store(target, data, executable=member is not None and member.is_executable)
            rows.append(row_for(target, data))
        elif member is not None:
            writer.copy(archive, member, target)
            rows.append(_listed(listed, name, target))
    record = f"{new}/RECORD"
    rows.append(Row(path=record, algorithm=None, digest=None, size=None))
    writer.store(record, format_record(rows))
    writer.finish()
    return Built(sha256=writer.sha256, size=writer.size)


def _contents(plan: Plan, archive: Archive) -> dict[str, bytes]:
    """New content by name, with the dist-info folder still under its old name."""
    old = plan.dist_info
    contents = {change.path: change.after for change in plan.applied.changes if change.after is not None}
    contents |= relabelled(archive, old, plan.base_name, plan.name)
    contents[f"{old}/{RECORD_NAME}"] = record_bytes(make_record(plan))
    return contents


def _listed_rows(archive: Archive, dist_info: str) -> dict[str, Row]:
    """The rows of the base wheel's RECORD by path; it must not promise a file that the base lost on the way."""
    rows = {row.path: row for row in parse_record(archive.read(f"{dist_info}/RECORD"))}
    if lost := sorted(path for path in rows if archive.get(path) is None):
        raise ArchiveError(
            f"the base wheel's RECORD lists {len(lost)} files that the wheel lacks",
            where=archive.source.name,
            found=", ".join(lost[:5]),
            next_step="the base is not whole: choose another one",
        )
    return rows


def _listed(listed: Mapping[str, Row], name: str, target: str) -> Row:
    row = listed.get(name)
    if row is None or row.digest is None:
        raise ArchiveError(
            f"the base wheel's RECORD has no digest of {name}",
            next_step="patchwheel verify says what else is wrong with this wheel",
        )
    return replace(row, path=target)
