from __future__ import annotations

import datetime as dt

import pytest
from support.patches import file_diff

from patchwheel.errors import ConflictError, UsageError
from patchwheel.files import sha256_bytes
from patchwheel.series import Series, apply_series, leave_out
from patchwheel.series.diff import read_patch
from patchwheel.series.header import Header
from patchwheel.series.model import Patch
from patchwheel.series.problems import Problems

A = "vllm/a.py"
BASE = b"".join(f"line {number}\n".encode() for number in range(1, 41))
FIRST = BASE.replace(b"line 5\n", b"five\nand a half\n")
SECOND = FIRST.replace(b"line 30\n", b"thirty\n")
TOUCHING = FIRST.replace(b"five\n", b"FIVE\n")


def patch(number: int, before: bytes, after: bytes) -> Patch:
    data = file_diff(A, before, after)
    name = f"000{number}-x.patch"
    header = Header(description="x", origin="x", forwarded="no", last_update=dt.date(2026, 12, 1), drop_when=None)
    return Patch(name=name, sha256=sha256_bytes(data), header=header, files=read_patch(data, Problems(name)).files)


def series(*patches: Patch, name: str = "s") -> Series:
    return Series(name=name, purpose="for the tests", package="vllm", patches=patches)


def test_the_rest_applies_where_it_now_belongs() -> None:
    (rest,) = leave_out([series(patch(1, BASE, FIRST), patch(2, FIRST, SECOND))], ["s/0001-x.patch"])
    applied = apply_series([rest], {A: BASE}.get)
    assert [change.after for change in applied.changes] == [BASE.replace(b"line 30\n", b"thirty\n")]
    assert [offset.lines for offset in applied.offsets] == [(-1,)]


def test_nothing_left_out_changes_nothing() -> None:
    given = [series(patch(1, BASE, FIRST), patch(2, FIRST, SECOND))]
    assert leave_out(given, []) == given


def test_a_series_without_patches_is_left_out_as_a_whole() -> None:
    rest = leave_out([series(patch(1, BASE, FIRST)), series(patch(1, BASE, SECOND), name="t")], ["s/0001-x.patch"])
    assert [one.name for one in rest] == ["t"]


def test_a_patch_that_builds_on_the_missing_one_is_a_conflict() -> None:
    rest = leave_out([series(patch(1, BASE, FIRST), patch(2, FIRST, TOUCHING))], ["s/0001-x.patch"])
    with pytest.raises(ConflictError):
        apply_series(rest, {A: BASE}.get)


@pytest.mark.parametrize("name", ["s/0009-x.patch", "0001-x.patch", "t/0001-x.patch"])
def test_unknown_patches(name: str) -> None:
    with pytest.raises(UsageError, match="no such patch") as caught:
        leave_out([series(patch(1, BASE, FIRST))], [name])
    assert caught.value.expected == "among s/0001-x.patch"


def test_all_left_out() -> None:
    with pytest.raises(UsageError, match="every patch is left out"):
        leave_out([series(patch(1, BASE, FIRST))], ["s/0001-x.patch"])
