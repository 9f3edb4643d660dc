"""Makes a series from the commits of a git branch, so that the same commits always give the same bytes.

Every option that shapes a diff is given outright, and git is called without any configuration (see
`repository`), so that the bytes depend on the commits alone.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from typing import TYPE_CHECKING

from patchwheel.base.settings import forbids_network
from patchwheel.base.store import default_store
from patchwheel.errors import ConfigError, PatchError, PinError
from patchwheel.files import sha256_bytes
from patchwheel.progress import SILENT, Reporter
from patchwheel.series.diff import MAX_BYTES, read_patch
from patchwheel.series.header import read_header
from patchwheel.series.load import keep_files
from patchwheel.series.model import Patch, Series
from patchwheel.series.paths import glob_pattern, path_problem, stale_globs, why_not_dropped
from patchwheel.series.problems import Problems
from patchwheel.series.repository import Repository, check_address, fetch_missing, is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from patchwheel.recipe import GitSeries

__all__ = ["derive_series"]

_DIFF = (
    *(
        "diff-tree",
        "-r",
        "-p",
        "--no-commit-id",
        "--full-index",
        "--no-renames",
        "--no-color",
        "--no-relative",
    ),
    *("--no-ext-diff", "--no-textconv", "--diff-algorithm=myers", "--indent-heuristic", "--unified=3"),
    *("--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "-O/dev/null"),
)
_PATHS_TOLD = 5
_ARGUMENTS = 100_000
"""Most bytes of paths given to one call of git; the system takes no more than about 2 MB, less the environment."""


def derive_series(
    source: GitSeries,
    *,
    folder: Path | None = None,
    cache: Path | None = None,
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> Series:
    """Make a series from the commits between the merge base with the base release and the pinned commit.

    The first call for a repository fetches its history into the cache; later ones need no network. Only
    ids count: where a branch stands today makes no difference.

    Args:
        source: Which commits.
        folder: From where a relative path in ``url`` counts, by default the working folder.
        cache: The cache, by default the user's; repositories lie below ``git``, one for each address.
        offline: Use only what is in the cache; ``PATCHWHEEL_OFFLINE`` says so too.
        reporter: Gets told of the fetch and of commits that are left out.

    Raises:
        ConfigError: The address is of a kind that is not allowed, or the range is empty or has merge commits.
        PinError: The repository does not have a pinned commit, or the two have no history in common.
        NetworkError: The repository can't be reached, or is not in the cache and may not be fetched.
        PatchError: A commit does what no patch may do, or the changes are too many to be read.
        ToolError: git is missing or fails.
        OutputError: The cache can't be written, but must be.
    """
    address = check_address(source.url, folder)
    cache = default_store().root if cache is None else cache
    place = cache / "git" / hashlib.sha256(address.encode()).hexdigest()[:32]
    repository = Repository(place / "repository.git")
    fetch_missing(repository, source, address, offline=offline or forbids_network(), reporter=reporter)
    spans = _spans(repository, source)
    patches = [_make_patch(repository, source, span, reporter) for span in spans]
    series = Series(
        name=source.name,
        purpose=source.purpose,
        package=source.package,
        patches=tuple(patch for patch in patches if patch),
        dropped=source.dropped,
    )
    where = f"git series {source.name}"
    if not any(patch.files for patch in series.patches):
        raise ConfigError(
            "none of the commits changes a file that wheels carry",
            where=where,
            found=f"{len(spans)} commits up to {source.commit[:12]}",
            next_step="check commit, base-commit and dropped",
        )
    left_out = [path for patch in series.patches for path in patch.dropped]
    for glob in stale_globs(series.dropped, left_out):  # a branch may well not touch its tests, unlike a patch file
        reporter.say(f"{where}: nothing matches {glob!r} of 'dropped'")
    return series


def _spans(repository: Repository, source: GitSeries) -> list[tuple[str, str]]:
    """The commits to make patches of, each after the state that it is compared with, in order."""
    where = f"series {source.name}"
    bases = repository.merge_bases(source.base_commit, source.commit)
    if not bases:
        raise PinError(
            "commit and base-commit have no history in common",
            where=where,
            found=f"{source.commit} and {source.base_commit}",
            next_step="check that base-commit is the one that the release was built from",
        )
    if len(bases) > 1:
        raise ConfigError(
            "commit and base-commit have several merge bases",
            where=where,
            found=", ".join(base[:12] for base in bases),
            next_step="rebase the branch on base-commit",
        )
    base = bases[0]
    listed = repository.read("rev-list", "--reverse", "--topo-order", "--parents", f"{base}..{source.commit}")
    rows = [row.split() for row in listed.decode().splitlines()]
    if not rows:
        raise ConfigError(
            "there is nothing between base-commit and commit",
            where=where,
            found=f"commit {source.commit[:12]} is part of base-commit {source.base_commit[:12]}",
            next_step="the release has these changes already: drop the series, or correct the commits",
        )
    if source.squash:
        return [(base, source.commit)]
    if merges := [row[0][:12] for row in rows if len(row) > 2]:  # noqa: PLR2004  (itself and one parent)
        raise ConfigError(
            f"{len(merges)} of the {len(rows)} commits are merges, which no patch can stand for",
            where=where,
            found=", ".join(merges[:5]),
            next_step="set squash = true to take the whole range as one patch, or rebase the branch",
        )
    return [(parent, commit) for commit, parent in rows]


def _make_patch(repository: Repository, source: GitSeries, span: tuple[str, str], reporter: Reporter) -> Patch | None:
    """The patch for one span; None for a commit that changes nothing."""
    commit = span[1]
    listed = repository.read("diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", *span)
    paths = [os.fsdecode(path) for path in listed.split(b"\0") if path]
    patterns = [glob_pattern(glob) for glob in source.dropped]
    dropped = tuple(path for path in paths if any(pattern.fullmatch(path) for pattern in patterns))
    left_out = set(dropped)
    kept = [path for path in paths if path not in left_out]
    header, title = _header(repository, source, commit)
    name = f"{span[0][:12]}..{commit[:12]}" if source.squash else f"{commit[:12]}-{title}"
    if dropped:
        more = " …" * (len(dropped) > _PATHS_TOLD)
        reporter.say(f"{name}: left out {', '.join(dropped[:_PATHS_TOLD])}{more}; wheels don't carry it")
    if not paths:
        reporter.say(f"{name}: changes nothing")
        return None
    # Dropped files are left out here already, so that a picture in the documentation is no reason to refuse.
    problems = Problems(name)
    for path in paths:
        if problem := path_problem(path):
            problems.add(ascii(path), problem)
    for path in dropped:
        if reason := why_not_dropped(path, source.package):
            problems.add(ascii(path), reason)
    changes = b"" if problems.found else _diff(repository, span, kept)
    data = header + changes
    parsed = read_patch(data, problems) if changes else None
    files, _ = keep_files(parsed.files if parsed else (), (), source.package, problems)
    read = read_header(header, problems, drop_when=False)
    problems.raise_any(
        "change the branch, or leave out files that wheels don't carry with 'dropped'", f"series {source.name}"
    )
    if read is None:
        return None
    return Patch(name=name, sha256=sha256_bytes(data), header=read, files=files, dropped=dropped)


def _diff(repository: Repository, span: tuple[str, str], paths: Sequence[str]) -> bytes:
    """The changes of some files between two commits."""
    parts: list[bytes] = []
    left = MAX_BYTES
    for batch in _batches(paths):
        parts.append(repository.read(*_DIFF, *span, "--", *batch, limit=left))
        left -= len(parts[-1])
    return b"".join(parts)


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    start = size = 0
    for number, path in enumerate(paths):
        size += len(os.fsencode(path)) + 1
        if size > _ARGUMENTS and number > start:
            yield paths[start:number]
            start, size = number, len(os.fsencode(path)) + 1
    if paths[start:]:
        yield paths[start:]


def _header(repository: Repository, source: GitSeries, commit: str) -> tuple[bytes, str]:
    """DEP-3 header of a commit, and its title as part of a name."""
    shown = repository.read("show", "--no-patch", "--encoding=UTF-8", "--format=%ct%n%B", commit)
    stamp, _, message = shown.decode("utf-8", "replace").partition("\n")
    try:
        day = dt.datetime.fromtimestamp(int(stamp), tz=dt.timezone.utc).date()
    except (ValueError, OverflowError, OSError) as error:  # which of them depends on the system and the number
        raise PatchError(
            f"the date of commit {commit} is none that a calendar has",
            where=f"git series {source.name}",
            expected="seconds since 1970, up to the year 9999",
            found=stamp[:40],
            next_step="make that commit again, on a machine whose clock is right",
        ) from error
    lines = ["".join(c if c.isprintable() else " " for c in line).rstrip() for line in message.split("\n")]
    text = "\n".join(lines).strip() or "(no message)"
    first, *rest = text.split("\n")
    # A path on this machine says nothing elsewhere, and would make the patch's bytes differ there.
    fields = [
        f"Description: {first}",
        *(f" {line or '.'}" for line in rest),
        f"Origin: other, {source.url}@{commit}" if is_remote(source.url) else f"Origin: other, commit {commit}",
        "Forwarded: no",
        f"Last-Update: {day.isoformat()}",
        "---",
    ]
    title = re.sub(r"[^a-z0-9]+", "-", first.lower()).strip("-")[:48].strip("-")
    return ("\n".join(fields) + "\n").encode(), title or "untitled"
