"""RECORD: the wheel's own list of its files, with their digests (the binary distribution format, PEP 427)."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from dataclasses import dataclass

from patchwheel.errors import ArchiveError

__all__ = ["STRONG", "Row", "format_record", "is_exempt", "parse_record", "row_for"]

STRONG = ("sha256", "sha384", "sha512")
"""Algorithms that RECORD may use; the format asks for sha256 or better."""

_SIGNATURES = ("RECORD", "RECORD.jws", "RECORD.p7s")
_COLUMNS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One file: its path in the wheel, its digest (hex) and its size in bytes; both None if RECORD leaves them out."""

    path: str
    algorithm: str | None
    digest: str | None
    size: int | None


def is_exempt(path: str, dist_info: str) -> bool:
    """Whether a file need not be listed with a digest: RECORD itself and its signatures."""
    folder, _, name = path.rpartition("/")
    return folder == dist_info and name in _SIGNATURES


def row_for(path: str, data: bytes) -> Row:
    """The row of a file with this content."""
    return Row(path=path, algorithm="sha256", digest=hashlib.sha256(data).hexdigest(), size=len(data))


def parse_record(data: bytes) -> tuple[Row, ...]:
    """Read RECORD.

    Raises:
        ArchiveError: Rows are malformed; all of them are named.
    """
    try:
        table = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArchiveError(f"RECORD can't be read: {error}") from error
    rows, problems = [], []
    for number, columns in enumerate(table, 1):
        try:
            rows.append(_row(columns))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise ArchiveError(
            f"RECORD has {len(problems)} malformed rows",
            details="\n".join(f"  - {problem}" for problem in problems[:20]),
            data={"problems": problems},
        )
    return tuple(rows)


def format_record(rows: tuple[Row, ...] | list[Row]) -> bytes:
    """Write RECORD, with LF line ends and in the given order."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        if row.algorithm is None or row.digest is None:
            writer.writerow((row.path, "", ""))
        else:
            digest = base64.urlsafe_b64encode(bytes.fromhex(row.digest)).rstrip(b"=").decode()
            writer.writerow((row.path, f"{row.algorithm}={digest}", row.size))
    return text.getvalue().encode()


def _row(columns: list[str]) -> Row:
    if len(columns) != _COLUMNS:
        raise ValueError(f"has {len(columns)} columns, not {_COLUMNS}")
    path, digest, size = columns
    if not digest and not size:
        return Row(path=path, algorithm=None, digest=None, size=None)
    algorithm, equals, encoded = digest.partition("=")
    if not equals or algorithm not in STRONG:
        raise ValueError(f"{path}: {digest!r} is no digest by {', '.join(STRONG)}")
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{path}: {digest!r} is not base64") from error
    if len(raw) != hashlib.new(algorithm).digest_size:
        raise ValueError(f"{path}: {digest!r} has the wrong length")
    if not (size.isascii() and size.isdecimal()):
        raise ValueError(f"{path}: {size!r} is no size")
    return Row(path=path, algorithm=algorithm, digest=raw.hex(), size=int(size))
