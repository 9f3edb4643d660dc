from __future__ import annotations

import datetime as dt
import json

import pytest
from support.patches import file_diff

from patchwheel.errors import ConflictError, PatchError
from patchwheel.files import git_blob_id, sha256_bytes
from patchwheel.series import Applied, Series, apply_series
from patchwheel.series.conflict import FINDINGS_TOLD
from patchwheel.series.diff import read_patch
from patchwheel.series.header import Header
from patchwheel.series.model import Patch
from patchwheel.series.problems import Problems

A = "vllm/a.py"
LINES = [f"line {number}\n".encode() for number in range(1, 31)]
BASE = b"".join(LINES)
EDITED = BASE.replace(b"line 10\n", b"ten\n").replace(b"line 25\n", b"line 25\nmore\n")


def patch(*diffs: bytes, name: str = "0001-x.patch", allow_offset: int = 0, dropped: tuple[str, ...] = ()) -> Patch:
    data = b"".join(diffs)
    return Patch(
        name=name,
        sha256=sha256_bytes(data),
        header=Header(description="x", origin="x", forwarded="no", last_update=dt.date(2026, 12, 1), drop_when=None),
        files=read_patch(data, Problems(name)).files if diffs else (),
        dropped=dropped,
        allow_offset=allow_offset,
    )


def series(*patches: Patch, name: str = "s") -> Series:
    return Series(name=name, purpose="for the tests", package="vllm", patches=patches)


def apply(files: dict[str, bytes], *patches: Patch) -> Applied:
    return apply_series([series(*patches)], files.get)


def conflict(files: dict[str, bytes], *patches: Patch) -> ConflictError:
    with pytest.raises(ConflictError) as caught:
        apply(files, *patches)
    return caught.value


def test_modify_add_delete() -> None:
    one = patch(
        file_diff(A, BASE, EDITED),
        file_diff("vllm/new.py", None, b"new\n"),
        file_diff("vllm/old.py", b"old\n", None),
        file_diff("vllm/empty.py", None, b""),
    )
    applied = apply({A: BASE, "vllm/old.py": b"old\n"}, one)
    assert [(change.path, change.kind, change.before, change.after) for change in applied.changes] == [
        (A, "modify", BASE, EDITED),
        ("vllm/empty.py", "add", None, b""),
        ("vllm/new.py", "add", None, b"new\n"),
        ("vllm/old.py", "delete", b"old\n", None),
    ]
    assert {change.patches for change in applied.changes} == {("s/0001-x.patch",)}
    assert applied.offsets == ()


def test_rename_is_delete_and_add() -> None:
    rename = file_diff(A, BASE, EDITED).replace(b"--- a", b"rename from vllm/a.py\nrename to vllm/b.py\n--- a", 1)
    one = patch(rename.replace(b"b/vllm/a.py", b"b/vllm/b.py"))
    applied = apply({A: BASE}, one)
    assert [(change.path, change.kind, change.after) for change in applied.changes] == [
        (A, "delete", None),
        ("vllm/b.py", "add", EDITED),
    ]
    error = conflict({A: BASE, "vllm/b.py": b"there\n"}, one)
    assert "vllm/b.py is already there" in str(error)


def test_patches_and_series_build_on_each_other() -> None:
    first = patch(file_diff(A, BASE, EDITED), name="0001-a.patch")
    second = patch(file_diff(A, EDITED, EDITED + b"end\n"), name="0002-b.patch")
    third = patch(file_diff(A, EDITED + b"end\n", b"all new\n"), name="0001-c.patch")
    applied = apply_series([series(first, second), series(third, name="t")], {A: BASE}.get)
    (change,) = applied.changes
    assert change.patches == ("s/0001-a.patch", "s/0002-b.patch", "t/0001-c.patch")
    assert (change.before, change.after) == (BASE, b"all new\n")


def test_reads_each_file_once() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return {A: BASE}.get(path)

    first = patch(file_diff(A, BASE, EDITED))
    second = patch(file_diff(A, EDITED, b"x\n"), file_diff("vllm/n.py", None, b"n\n"))
    apply_series([series(first, second)], read)
    assert sorted(asked) == ["vllm", A, "vllm/n.py"]


@pytest.mark.parametrize(
    ("content", "text"), [(BASE, "all hunks fit, but this is not the file"), (EDITED, "the outcome is not what")]
)
def test_every_digit_of_an_id_counts(content: bytes, text: str) -> None:
    blob = git_blob_id(content).encode()
    wrong = blob[:-1] + (b"1" if blob.endswith(b"0") else b"0")
    assert text in str(conflict({A: BASE}, patch(file_diff(A, BASE, EDITED).replace(blob, wrong))))


def test_hunks_that_fit_another_file_are_refused() -> None:
    error = conflict({A: BASE + b"line 31\n"}, patch(file_diff(A, BASE, EDITED)))
    assert "all hunks fit, but this is not the file that the patch was made for" in str(error)
    assert git_blob_id(BASE)[:12] in str(error)
    assert git_blob_id(BASE + b"line 31\n")[:12] in str(error)


def test_an_outcome_that_the_patch_does_not_state_is_refused() -> None:
    edited_by_hand = file_diff(A, BASE, EDITED).replace(b"+ten\n", b"+TEN\n")
    error = conflict({A: BASE}, patch(edited_by_hand))
    assert "all hunks fit, but the outcome is not what the patch says" in str(error)


def test_added_file_must_not_exist() -> None:
    one = patch(file_diff("vllm/n.py", None, b"new\n"))
    error = conflict({"vllm/n.py": b"other\n"}, one)
    assert "vllm/n.py is already there" in str(error)
    same = conflict({"vllm/n.py": b"new\n"}, one)
    assert same.next_step == "drop the patch: the file already has its outcome"


def test_a_file_in_the_place_of_a_folder_is_refused() -> None:
    error = conflict({"vllm/n": b"a file\n"}, patch(file_diff("vllm/n/m.py", None, b"new\n")))
    assert "vllm/n is already there" in str(error)


def clash(names: list[str], *diffs: bytes) -> str:
    """What is told of the last of these patches, on a base whose files can't be read but have these names."""
    *earlier, last = [patch(data, name=f"000{number}-x.patch") for number, data in enumerate(diffs, 1)]
    if earlier:
        apply_series([series(*earlier)], {A: BASE}.get, names)
    with pytest.raises(ConflictError) as caught:
        apply_series([series(*earlier, last)], {A: BASE}.get, names)
    json.dumps(caught.value.as_document())
    return str(caught.value)


def new(path: str, data: bytes = b"new\n") -> bytes:
    return file_diff(path, None, data)


@pytest.mark.parametrize("data", [b"new\n", b""])
def test_an_added_file_must_not_be_a_folder(data: bytes) -> None:
    one = new("vllm/v1", data)
    text = clash([A, "vllm/v1/deep/x.py"], one)
    assert "vllm/v1: vllm/v1 is a folder there" in text
    assert "next:     choose another name" in text
    assert "vllm/v1 is a folder there" in clash([A], new("vllm/v1/x.py"), one)
    assert apply_series(
        [series(patch(one))], lambda _path: None, [A, "vllm/v1.py", "vllm/v10/x.py", "x/vllm/v1/y"]
    ).changes


@pytest.mark.parametrize("name", ["vllm/N.py", "vllm/N.py/x", "Vllm/n.py"])
def test_an_added_file_must_not_differ_in_case_only(name: str) -> None:
    text = clash([A, name], new("vllm/n.py"))
    assert "is already there, and differs in case only" in text
    assert "changed before" not in text


def test_names_of_earlier_and_of_the_same_patch_count() -> None:
    assert "vllm/N.py is already there, and differs" in clash([A], new("vllm/N.py"), new("vllm/n.py"))
    assert "vllm/N.py is already there, and differs" in clash([A], new("vllm/N.py") + new("vllm/n.py"))
    assert "vllm/n is a folder there" in clash([A], new("vllm/n/m.py") + new("vllm/n"))
    assert "vllm/n is already there" in clash([A], new("vllm/n") + new("vllm/n/m.py"))
    assert "vllm/N is already there, and differs" in clash([A], new("vllm/N") + new("vllm/n/m.py"))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", ["vllm/a.py/x.py", "vllm/A.py", "vllm/A.PY/x/y"])
def test_a_name_is_free_once_its_file_is_gone(name: str, *, together: bool) -> None:
    diffs = [file_diff(A, BASE, None), new(name)]
    patches = [patch(*diffs)] if together else [patch(diff) for diff in diffs]
    if together and name.startswith(A):  # the file is looked for in the base as it is before the patch
        return
    changes = apply_series([series(*patches)], {A: BASE}.get, [A]).changes
    assert {change.path for change in changes} == {A, name}


def test_a_rename_may_change_the_case() -> None:
    rename = file_diff(A, BASE, EDITED).replace(b"--- a", b"rename from vllm/a.py\nrename to vllm/A.py\n--- a", 1)
    one = patch(rename.replace(b"b/vllm/a.py", b"b/vllm/A.py"))
    assert len(apply_series([series(one)], {A: BASE}.get, [A]).changes) == 2


def test_deleted_file_must_be_the_whole_one() -> None:
    one = patch(file_diff(A, b"old\n", None), allow_offset=9)
    assert "not the file" in str(conflict({A: b"old\nand more\n"}, one))
    assert conflict({}, one).next_step == "drop the patch: the file already has its outcome"


def test_an_allowed_offset_is_used_and_told() -> None:
    moved = b"top\n" * 5 + BASE
    one = patch(file_diff(A, BASE, EDITED), allow_offset=5)
    applied = apply({A: moved}, one)
    assert applied.changes[0].after == b"top\n" * 5 + EDITED
    (offset,) = applied.offsets
    assert (offset.patch, offset.path, offset.lines) == ("s/0001-x.patch", A, (5, 5))
    assert (offset.made_for, offset.found) == (git_blob_id(BASE), git_blob_id(moved))


def test_offsets_up_are_allowed_too_and_may_differ() -> None:
    moved = b"".join(LINES[3:20]) + b"between\n" + b"".join(LINES[20:])
    applied = apply({A: moved}, patch(file_diff(A, BASE, EDITED), allow_offset=3))
    assert applied.offsets[0].lines == (-3, -2)


def test_no_offset_is_noted_for_the_very_file() -> None:
    assert apply({A: BASE}, patch(file_diff(A, BASE, EDITED), allow_offset=5)).offsets == ()


def test_an_offset_that_is_too_large_is_refused() -> None:
    error = conflict({A: b"top\n" * 6 + BASE}, patch(file_diff(A, BASE, EDITED), allow_offset=5))
    assert "its lines stand 6 lines below (5 allowed)" in str(error)


def test_a_place_that_is_not_the_only_one_is_refused() -> None:
    error = conflict({A: b"top\n" + BASE + BASE}, patch(file_diff(A, BASE, EDITED), allow_offset=50))
    assert "its lines stand at several places" in str(error)


def test_a_hunk_without_context_is_never_moved() -> None:
    insert = file_diff(A, b"a\n", b"a\nb\n").replace(b"@@ -1 +1,2 @@\n a\n+b\n", b"@@ -1,0 +2 @@\n+b\n")
    assert apply({A: b"a\n"}, patch(insert)).changes[0].after == b"a\nb\n"
    conflict({A: b"a\nc\n"}, patch(insert, allow_offset=5))


def test_hunks_that_would_swap_are_refused() -> None:
    halves = b"".join(LINES[18:]), b"".join(LINES[:18])
    error = conflict({A: b"".join(halves)}, patch(file_diff(A, BASE, EDITED), allow_offset=50))
    assert "above those of the hunk before it" in str(error)


def test_a_patch_that_ends_the_file_does_not_fit_where_it_goes_on() -> None:
    ends = file_diff(A, b"a\nb\n", b"a\nc\n") + b"\\ No newline at end of file\n"
    error = conflict({A: b"a\nb\nd\n"}, patch(ends, allow_offset=5))
    assert "the file goes on where the patch ends it" in str(error)


def test_patches_that_cancel_out_are_refused() -> None:
    there = patch(file_diff(A, BASE, EDITED), name="0001-there.patch")
    back = patch(file_diff(A, EDITED, BASE), name="0002-back.patch")
    with pytest.raises(PatchError, match="cancel each other out") as caught:
        apply({A: BASE}, there, back)
    assert caught.value.found == "s/0001-there.patch, s/0002-back.patch"
    add, delete = patch(file_diff("vllm/n.py", None, b"n\n")), patch(file_diff("vllm/n.py", b"n\n", None))
    with pytest.raises(PatchError, match="cancel each other out"):
        apply({}, add, delete)


def test_dropped_files_are_told_and_must_not_be_in_the_base() -> None:
    one = patch(file_diff(A, BASE, EDITED), dropped=("tests/b.py", "docs/a.md"))
    assert apply({A: BASE}, one).dropped == ("docs/a.md", "tests/b.py")
    with pytest.raises(PatchError, match=r"dropped, but the base has it: tests/b\.py"):
        apply({A: BASE, "tests/b.py": b""}, one)


def test_all_failures_of_a_patch_are_told_and_nothing_is_applied() -> None:
    one = patch(
        file_diff(A, BASE, EDITED),
        file_diff("vllm/b.py", BASE, EDITED),
        file_diff("vllm/c.py", b"x\n", b"y\n"),
    )
    error = conflict({A: b"other\n", "vllm/c.py": b"x\n"}, one)
    assert error.data is not None
    findings = error.data["findings"]
    assert isinstance(findings, list)
    assert [(finding["file"], finding["hunk"]) for finding in findings] == [
        (A, 1),
        (A, 2),
        ("vllm/b.py", None),
    ]
    assert error.what == "s/0001-x.patch does not apply: 3 failures in 2 files"


def test_a_flood_of_failures_is_counted() -> None:
    many = [file_diff(f"vllm/m{number}.py", b"x\n", b"y\n") for number in range(FINDINGS_TOLD + 5)]
    error = conflict({}, patch(*many))
    assert "… and 5 more failures" in str(error)
