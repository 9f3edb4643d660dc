"""Digests of all members at once, on all cores.

Inflating and hashing let go of Python's global lock, so threads are enough; the largest members go first, since one
of them alone can take half of the time.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchwheel.errors import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from patchwheel.wheel.archive import Archive, Member

__all__ = ["Content", "digest_member", "digest_members"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What a member really holds.

    Attributes:
        digest: Hex digest of the content, by the algorithm that was asked for; empty if it can't be read.
        problem: Why it can't be read in whole (damaged data, another size or CRC than the directory says), else None.
    """

    digest: str
    problem: str | None = None


def digest_members(
    archive: Archive, members: Iterable[Member], algorithms: Mapping[str, str] | None = None
) -> dict[str, Content]:
    """Read members in whole and digest them, by sha256 unless ``algorithms`` names another for that member."""
    algorithms = algorithms or {}
    ordered = sorted(members, key=lambda member: -member.size)
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:  # one waits for bytes now and then
        contents = pool.map(lambda member: digest_member(archive, member, algorithms.get(member.name)), ordered)
        return dict(zip((member.name for member in ordered), contents, strict=True))


def digest_member(archive: Archive, member: Member, algorithm: str | None = None) -> Content:
    """Read a member in whole and digest it, by sha256 unless another algorithm is named."""
    state = hashlib.new(algorithm or "sha256")
    try:
        for chunk in archive.chunks(member):
            state.update(chunk)
    except ArchiveError as error:
        return Content(digest="", problem=error.what)
    return Content(digest=state.hexdigest())
