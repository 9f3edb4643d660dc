"""The checks, in the order in which they are reported. Each is a function of the subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patchwheel.build.record import RECORD_NAME
from patchwheel.errors import ArchiveError
from patchwheel.progress import format_size
from patchwheel.verify.report import Result, judged, skipped
from patchwheel.wheel.content import digest_members
from patchwheel.wheel.metadata import find_dist_info, headers
from patchwheel.wheel.names import parse_wheel_name
from patchwheel.wheel.record import is_exempt
from patchwheel.wheel.relabel import find_version_modules, relabelled

if TYPE_CHECKING:
    from patchwheel.build.record import BuildRecord
    from patchwheel.verify.subject import Base, Subject
    from patchwheel.wheel.archive import Archive, Member

__all__ = ["check_archive", "check_base", "check_changes", "check_identity", "check_record"]


def check_archive(subject: Subject) -> Result:
    """The archive is well-formed for every reader, and all content can be read in whole."""
    archive = subject.archive
    problems = []
    try:
        archive.check_layout()
    except ArchiveError as error:
        problems += _problems_of(error)
    problems += [content.problem for content in subject.contents.values() if content.problem]
    unpacked = sum(member.size for member in archive.members)
    return judged(
        "archive",
        f"{len(archive.members)} members, {format_size(archive.source.size)}, {format_size(unpacked)} unpacked",
        problems,
        "it is damaged, or made so that readers differ on it: build or download it again",
    )


def check_record(subject: Subject) -> Result:
    """RECORD and archive list the same files, and every digest and size is right."""
    dist_info, contents = subject.dist_info, subject.contents
    problems = []
    listed: set[str] = set()
    for row in subject.rows:
        if row.path in listed:
            problems.append(f"{row.path}: listed twice")
        listed.add(row.path)
        member = subject.archive.get(row.path)
        if member is None:
            problems.append(f"{row.path}: listed, but not in the wheel")
        elif row.digest is None:
            if not is_exempt(row.path, dist_info):
                problems.append(f"{row.path}: listed without digest")
        elif row.size != member.size:
            problems.append(f"{row.path}: {member.size} bytes, RECORD says {row.size}")
        elif contents[row.path].problem:
            problems.append(f"{row.path}: its content can't be read, so not compared")
        elif row.digest != contents[row.path].digest:
            problems.append(f"{row.path}: its content is not what RECORD says")
    problems += [
        f"{member.name}: in the wheel, but not listed"
        for member in subject.archive.members
        if member.name not in listed and not member.is_folder and not is_exempt(member.name, dist_info)
    ]
    if f"{dist_info}/RECORD" not in listed:
        problems.append("RECORD does not list itself")
    return judged(
        "record",
        f"{len(listed)} files listed, compared both ways with digest and size",
        problems,
        "the wheel is not whole: build or download it again",
    )


def check_identity(subject: Subject) -> Result:
    """File name, dist-info folder, METADATA, WHEEL and the package's own version module agree."""
    dist_info, archive = subject.dist_info, subject.archive
    metadata = headers(archive.read(f"{dist_info}/METADATA"))
    wheel = headers(archive.read(f"{dist_info}/WHEEL"))
    named, versioned = metadata.get("name", []), metadata.get("version", [])
    tags, builds = wheel.get("tag", []), wheel.get("build", [])
    problems = [
        f"METADATA has {len(values)} {field} fields"
        for field, values in (("Name", named), ("Version", versioned))
        if len(values) != 1
    ]
    distribution, version = (values[0] if values else "" for values in (named, versioned))
    name = subject.name
    if canonicalize_name(distribution) != canonicalize_name(name.distribution):
        problems.append(f"METADATA says Name: {distribution}, the file name {name.distribution}")
    if not _same_version(version, name.version):
        problems.append(f"METADATA says Version: {version}, the file name {name.version}")
    if not name.names_dist_info(dist_info):
        problems.append(f"its folder is {dist_info}, the file name wants {name.dist_info}")
    note = ""
    if set(tags) != set(name.tags):
        told = f"WHEEL says Tag: {', '.join(tags) or 'none'}, the file name {', '.join(name.tags)}"
        if subject.build_record is None and _retagged_by_publisher(tags, name.tags):
            note = "; WHEEL has the tag from before its publisher renamed it"
        else:
            problems.append(told)
    if builds != ([name.build] if name.build else []) and (builds or subject.build_record):
        problems.append(f"WHEEL says Build: {', '.join(builds) or 'none'}, the file name {name.build or 'none'}")
    if (formats := wheel.get("wheel-version", [])) != ["1.0"]:
        problems.append(f"WHEEL says Wheel-Version: {', '.join(formats) or 'none'}, not 1.0")
    modules = find_version_modules(archive, version)
    problems += [
        f"{member.name} does not say {version}"
        for member in archive.members
        if member.name.count("/") == 1 and member.name.endswith("/_version.py") and member.name not in modules
    ]
    record = subject.build_record
    if record and (record.wheel, record.version) != (name.file_name, name.version):
        problems.append(f"the build record is of {record.wheel}")
    return judged(
        "identity",
        f"{distribution} {version}, {', '.join(name.tags)}{note}",
        problems,
        f"rename it back to {record.wheel}"
        if record
        else "installers and indexes would see another wheel than its name says: get it under its own name",
    )


def _retagged_by_publisher(inside: list[str], outside: tuple[str, ...]) -> bool:
    """Whether the tags differ in this alone: linux became manylinux of the same machine, as vLLM's wheels do."""
    one, many = ([tag.split("-") for tag in tags] for tags in (inside, outside))
    return bool(one) and all(
        any(
            ours[:2] == theirs[:2]
            and re.fullmatch(rf"manylinux\w*_{re.escape(theirs[2].removeprefix('linux_'))}", ours[2])
            for theirs in one
            if len(theirs) == len(ours) and theirs[2].startswith("linux_")
        )
        for ours in many
    )


def check_base(subject: Subject) -> Result:
    """The base wheel at hand is the one that the build record names, by sha256."""
    record, base = subject.build_record, subject.base
    if record is None:
        return skipped("base", "no build record: patchwheel did not build this wheel")
    if base is None:
        return skipped("base", f"{record.base.file} is not at hand: {subject.no_base}")
    problems = []
    if base.sha256 != record.base.sha256:
        problems.append(f"{base.file_name} has sha256 {base.sha256}, the record says {record.base.sha256}")
    return judged(
        "base",
        f"{base.file_name}, sha256 {base.sha256[:12]}…",
        problems,
        f"name the right one with --base: {record.base.file}",
    )


def check_changes(subject: Subject) -> Result:
    """Exactly the declared members differ from the base, and hold exactly what the record says."""
    record = subject.build_record
    if subject.base is None:
        return skipped("changes", "no base wheel to compare with")
    if record and record.base.sha256 != subject.base.sha256:
        return skipped("changes", "not compared: this base is not the one that the build record names")
    differing = _differing(subject, subject.base)
    declared = {change.path: change for change in record.changes} if record else {}
    expected = _rewritten(subject, subject.base, record) if record else {}
    undeclared = sorted(differing.keys() - declared.keys() - expected.keys())
    problems = [f"{path}: {differing[path]}, but no patch declares it" for path in undeclared]
    for path, data in expected.items():
        if data is not None and subject.archive.read(path) != data:
            problems.append(f"{path}: differs from the base in more than the version and tags")
    touched = [member for path in declared if (member := subject.archive.get(path))]
    actual = digest_members(subject.archive, touched)
    for path, change in declared.items():
        found = actual[path].digest if path in actual else None
        if path not in differing:
            problems.append(f"{path}: declared as changed, but is the base's")
        elif found != change.after:
            problems.append(f"{path}: is not what the patches make of it")
    same = len(subject.archive.members) - sum(path in subject.archive.by_name for path in differing)
    return judged(
        "changes",
        f"{same} members are the base's, byte for byte; {len(declared)} changed by patches,"
        f" {len(differing.keys() & expected.keys())} by the new version",
        problems,
        "the wheel holds something that its record does not account for: do not use it",
    )


def _differing(subject: Subject, base: Base) -> dict[str, str]:
    """Paths of the wheel that differ from the base, with how; dist-info under the wheel's own folder name."""
    base_folder = find_dist_info(base.archive, parse_wheel_name(base.file_name))
    theirs = {_moved(member.name, base_folder, subject.dist_info): member for member in base.archive.members}
    ours = subject.archive.by_name
    differing = dict.fromkeys(ours.keys() - theirs.keys(), "added")
    differing |= {path: "missing" for path, member in theirs.items() if path not in ours and not member.is_folder}
    for path in ours.keys() & theirs.keys():
        if not _same_content(subject.archive, ours[path], base.archive, theirs[path]):
            differing[path] = "changed"
        elif ours[path].is_executable != theirs[path].is_executable:
            differing[path] = "changed its mode"
    return differing


def _rewritten(subject: Subject, base: Base, record: BuildRecord) -> dict[str, bytes | None]:
    """What the build itself changes: path, and the exact new content where the base determines it."""
    base_name = parse_wheel_name(base.file_name)
    folder = find_dist_info(base.archive, base_name)
    rewritten: dict[str, bytes | None] = {
        _moved(path, folder, subject.dist_info): data
        for path, data in relabelled(base.archive, folder, base_name, parse_wheel_name(record.wheel)).items()
    }
    rewritten[f"{subject.dist_info}/{RECORD_NAME}"] = None
    # RECORD is checked row by row; signatures of the base's RECORD can't hold for another one.
    exempt = [member.name for member in base.archive.members if is_exempt(member.name, folder)]
    rewritten |= {_moved(path, folder, subject.dist_info): None for path in exempt}
    return rewritten


def _same_content(archive: Archive, member: Member, other_archive: Archive, other: Member) -> bool:
    if (member.size, member.crc32) != (other.size, other.crc32):
        return False
    if (member.method, member.compressed_size) == (other.method, other.compressed_size):
        pairs = zip(archive.raw_chunks(member), other_archive.raw_chunks(other), strict=True)
        if all(ours == theirs for ours, theirs in pairs):
            return True
    ours, theirs = (digest_members(each, [one])[one.name] for each, one in ((archive, member), (other_archive, other)))
    return ours.digest == theirs.digest and not ours.problem and not theirs.problem


def _moved(path: str, old_folder: str, new_folder: str) -> str:
    return new_folder + path[len(old_folder) :] if path.startswith(f"{old_folder}/") else path


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _problems_of(error: ArchiveError) -> list[str]:
    problems = (error.data or {}).get("problems")
    return [str(problem) for problem in problems] if isinstance(problems, list) else [error.what]
