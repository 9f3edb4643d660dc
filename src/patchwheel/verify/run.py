"""All checks on one wheel; every one runs, whatever the others say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from patchwheel.errors import ArchiveError
from patchwheel.files import sha256_file
from patchwheel.verify import checks
from patchwheel.verify.report import Report, Result, Status, skipped
from patchwheel.verify.subject import Base, Subject
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from patchwheel.build import BuildRecord

__all__ = ["peek_record", "verify_wheel"]

_CHECKS: dict[str, Callable[[Subject], Result]] = {
    "archive": checks.check_archive,
    "record": checks.check_record,
    "identity": checks.check_identity,
    "base": checks.check_base,
    "changes": checks.check_changes,
    "probes": checks.check_probes,
}


_COMPARING = ("base", "changes")
"""The checks that read the base wheel; they run beside the others."""


def verify_wheel(
    file: IO[bytes],
    file_name: str,
    base: Base | None = None,
    *,
    no_base: str = "name it with --base",
    probes: Path | None = None,
) -> Report:
    """Run every check on a wheel.

    Args:
        file: The wheel, open for reading.
        file_name: The name it has or is about to get.
        base: The base wheel to compare with, if at hand.
        no_base: What the report says to do if it isn't.
        probes: Folder of the series' probes, if at hand.

    Returns:
        A report; damage to the wheel is a failed check in it, not an exception.
    """
    source = FileSource(file, file_name)
    with ThreadPoolExecutor() as pool:  # reading, hashing and comparing all let go of Python's global lock
        sha256 = pool.submit(sha256_file, file)
        try:
            archive = Archive(source)
            archive.check_layout()
        except ArchiveError as error:
            # Nothing in such an archive is what it seems, and reading it may never end.
            results = [_failed("archive", error)]
            results += [skipped(name, "the archive is malformed") for name in _CHECKS if name != "archive"]
        else:
            subject = Subject(archive, file_name, base, no_base, probes)
            comparing = pool.submit(lambda: [_run(name, subject) for name in _COMPARING])
            found = {name: _run(name, subject) for name in _CHECKS if name not in _COMPARING}
            found |= dict(zip(_COMPARING, comparing.result(), strict=True))
            results = [found[name] for name in _CHECKS]
        return Report(wheel=file_name, sha256=sha256.result(), size=source.size, results=tuple(results))


def peek_record(file: IO[bytes], file_name: str) -> BuildRecord | None:
    """The build record of a wheel, if it has one that can be read; nothing is checked."""
    with suppress(ArchiveError):
        return Subject(Archive(FileSource(file, file_name)), file_name).build_record
    return None


def _run(name: str, subject: Subject) -> Result:
    try:
        return _CHECKS[name](subject)
    except ArchiveError as error:
        return _failed(name, error)


def _failed(name: str, error: ArchiveError) -> Result:
    problems = (error.data or {}).get("problems")
    lines = tuple(str(problem) for problem in problems) if isinstance(problems, list) else ()
    found = f" (expected {error.expected}, found {error.found})" if error.expected and error.found else ""
    return Result(
        check=name,
        status=Status.FAILED,
        evidence=error.what + found,
        problems=lines,
        remedy=error.next_step or "build or download the wheel again",
    )
