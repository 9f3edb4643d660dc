"""Reads a series from ``patches/<series>/`` and holds it to what its ``series.toml`` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.documents import load_toml
from patchwheel.errors import ConfigError
from patchwheel.files import sha256_bytes
from patchwheel.series.diff import MAX_BYTES, FilePatch, read_patch
from patchwheel.series.header import read_header
from patchwheel.series.model import BasePatches, Patch, PatchEntry, Series, SeriesFile
from patchwheel.series.paths import glob_pattern, source_of_the_build, stale_globs, why_not_dropped
from patchwheel.series.problems import Problems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchwheel.project import Project

__all__ = ["load_series", "load_series_file"]


def load_series_file(name: str, project: Project) -> SeriesFile:
    """Read ``patches/<name>/series.toml``, for all its base versions.

    Raises:
        ConfigError: There is no such series, or its file says something that it may not say.
    """
    known = sorted(path.parent.name for path in project.patches.glob("*/series.toml"))
    if name not in known:
        raise ConfigError(
            f"unknown series {name!r}",
            where=str(project.patches),
            expected="one of " + ", ".join(known) if known else "a folder with a series.toml for each series",
        )
    path = project.patches / name / "series.toml"
    file = load_toml(path, SeriesFile)
    if file.name != name:
        raise ConfigError(
            "a series is named as its folder",
            where=f"{path}: name",
            expected=name,
            found=file.name,
            next_step="rename the one or the other",
        )
    return file


def load_series(name: str, base_version: str, project: Project) -> Series:
    """Read a series for one base version, and check all that can be checked without the base.

    Raises:
        ConfigError: Unknown series or base version, a patch file that is not listed or not there, patches out
            of order, a dropped glob that matches nothing, or a patch that this base no longer needs.
        PatchError: A patch is malformed, unsafe, lacks a header field, or changes other files than declared;
            lists all problems of all patches.
    """
    file = load_series_file(name, project)
    where = f"{project.patches / name / 'series.toml'}: base"
    base = file.base.get(base_version)
    if base is None:
        raise ConfigError(
            f"series {name} has no patches for {base_version}",
            where=where,
            expected="one of " + ", ".join(file.base),
            next_step="choose another base, or make the patches for this one and list them there",
        )
    where += f".{base_version}"
    folder = project.patches / name / base_version
    _check_listing(folder, base, where)
    problems = Problems(name)
    patches = [_load_patch(folder, entry, base.dropped, file.package, problems) for entry in base.patches]
    problems.raise_any("mend the patch, or what series.toml says of it; CONTRIBUTING.md shows both", str(folder))
    series = Series(
        name=name,
        purpose=file.purpose,
        package=file.package,
        patches=tuple(patch for patch in patches if patch),
        dropped=base.dropped,
    )
    _check_globs_used(series, where)
    _check_needed(series, base_version, where)
    return series


def keep_files(
    files: Sequence[FilePatch], dropped: Sequence[str], package: str, problems: Problems
) -> tuple[tuple[FilePatch, ...], tuple[str, ...]]:
    """Part the files of a patch into those to apply and the paths of those to leave out.

    Notes a problem for each file that is neither in the package nor dropped. Native sources and build files must
    be kept: whether they can be built is for the plan to say.
    """
    patterns = [glob_pattern(glob) for glob in dropped]
    prefix = package.replace(".", "/") + "/"
    kept: list[FilePatch] = []
    left_out: list[str] = []
    for file in files:
        outside = [path for path in file.paths if not any(pattern.fullmatch(path) for pattern in patterns)]
        if not outside:
            left_out += file.paths
            for path in file.paths:
                if reason := why_not_dropped(path, package):
                    problems.add(path, reason)
            continue
        kept.append(file)
        for path in file.paths:
            if path not in outside:
                problems.add(path, "renamed between files that wheels carry and files that they don't")
            elif not path.startswith(prefix) and not source_of_the_build(path):
                problems.add(path, f"outside of {prefix}; a file that wheels don't carry is left out by 'dropped'")
    return tuple(kept), tuple(left_out)


def _check_globs_used(series: Series, where: str) -> None:
    """Refuse globs that leave nothing out: they are mistyped, or were forgotten.

    Raises:
        ConfigError: Names them.
    """
    paths = [path for patch in series.patches for path in patch.dropped]
    if stale := stale_globs(series.dropped, paths):
        raise ConfigError(
            f"nothing matches {', '.join(map(repr, stale))}",
            where=f"{where}.dropped",
            expected="globs of files that the patches change",
            next_step="correct or remove it",
        )


def _check_listing(folder: Path, base: BasePatches, where: str) -> None:
    listed = [entry.file for entry in base.patches]
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if missing := [name for name in listed if name not in there]:
        raise ConfigError(
            f"listed, but not there: {', '.join(missing)}",
            where=f"{where}.patches",
            expected=f"files in {folder}",
            next_step="add the file, or take it off the list",
        )
    if extra := [name for name in there if name not in listed and not name.startswith(".")]:
        raise ConfigError(
            f"there, but not listed: {', '.join(extra)}",
            where=str(folder),
            expected=f"only the files listed in {where}.patches",
            next_step="list the file, or remove it",
        )
    numbers = [name[:4] for name in listed]
    if numbers != sorted(set(numbers)):
        raise ConfigError(
            "patches are not in the order of their numbers",
            where=f"{where}.patches",
            expected="numbers that rise, each used once",
            found=", ".join(numbers),
            next_step="list them in the order of their numbers, or renumber them",
        )


def _load_patch(
    folder: Path, entry: PatchEntry, dropped: Sequence[str], package: str, problems: Problems
) -> Patch | None:
    problems.patch = entry.file
    path = folder / entry.file
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"can't read {entry.file}: {error.strerror}", where=str(path)) from error
    known = len(problems.found)
    parsed = read_patch(data, problems)
    header = read_header(parsed.preamble, problems)
    if header is None or len(problems.found) > known:
        return None  # which files it changes may not be known
    files, left_out = keep_files(parsed.files, dropped, package, problems)
    changed = {path for file in files for path in file.paths}
    for name in sorted(changed - set(entry.changes)):
        problems.add(name, "changed by the patch, but not declared under 'changes' in series.toml")
    for name in sorted(set(entry.changes) - changed):
        problems.add(name, "declared under 'changes' in series.toml, but not changed by the patch")
    return Patch(
        name=entry.file,
        sha256=sha256_bytes(data),
        header=header,
        files=files,
        dropped=left_out,
        allow_offset=entry.allow_offset,
    )


def _check_needed(series: Series, base_version: str, where: str) -> None:
    for patch in series.patches:
        drop = patch.header.drop_when
        if drop and drop.matches(base_version):
            raise ConfigError(
                f"{patch.name} is not needed on {base_version}: {drop.reason}",
                where=where,
                expected=f"only patches whose X-Drop-When does not match {base_version}",
                found=f"X-Drop-When: {drop.specifier}",
                next_step="take the patch off the list for this base",
            )
