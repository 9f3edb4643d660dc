from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from support.patches import SeriesFolder, make_patch

from patchwheel.errors import ConfigError, PatchError
from patchwheel.files import sha256_bytes
from patchwheel.series import SeriesFile, apply_series, load_series
from patchwheel.series.paths import glob_pattern, shapes_the_wheel, why_not_dropped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A = "vllm/a.py"
PAIR = (b"one\n", b"two\n")
PATCH = make_patch({A: PAIR})


@pytest.fixture
def folder(tmp_path: Path) -> SeriesFolder:
    return SeriesFolder(tmp_path)


def test_loads_what_is_declared(folder: SeriesFolder) -> None:
    data = make_patch({A: PAIR, "tests/deep/test_a.py": PAIR, "vllm/new.py": (None, b"new\n")})
    folder.add("0001-a.patch", data, [A, "vllm/new.py"], allow_offset=7)
    folder.add("0004-b.patch", make_patch({A: (b"two\n", b"3\n")}), [A])
    folder.dropped = ["tests/**"]
    series = load_series("s", "1.0", folder.write())
    assert (series.name, series.purpose, series.package) == ("s", "for the tests", "vllm")
    assert series.dropped == ("tests/**",)
    first, second = series.patches
    assert (first.name, first.sha256, first.allow_offset) == ("0001-a.patch", sha256_bytes(data), 7)
    assert first.paths == (A, "vllm/new.py")
    assert first.dropped == ("tests/deep/test_a.py",)
    assert (second.name, second.allow_offset) == ("0004-b.patch", 0)
    applied = apply_series([series], {A: b"one\n"}.get)
    assert [(change.path, change.after) for change in applied.changes] == [
        (A, b"3\n"),
        ("vllm/new.py", b"new\n"),
    ]
    assert applied.dropped == ("tests/deep/test_a.py",)


def missing(folder: SeriesFolder) -> None:
    folder.add("0002-gone.patch", None, [A])


def extra(folder: SeriesFolder) -> None:
    (folder.folder / "0001-a.patch.orig").write_bytes(b"")


def out_of_order(folder: SeriesFolder) -> None:
    folder.add("0000-b.patch", PATCH, [A])


def same_number(folder: SeriesFolder) -> None:
    folder.add("0001-b.patch", PATCH, [A])


def stale_glob(folder: SeriesFolder) -> None:
    folder.dropped = ["docs/**"]


def other_name(folder: SeriesFolder) -> None:
    folder.head = folder.head.replace('"s"', '"t"')


def unknown_key(folder: SeriesFolder) -> None:
    folder.head += 'why = "x"\n'


def bad_file_name(folder: SeriesFolder) -> None:
    folder.add("../../0002-x.patch", None, [A])


def no_changes_declared(folder: SeriesFolder) -> None:
    folder.entries = folder.entries.replace(f"['{A}']", "[]")


def empty_series(folder: SeriesFolder) -> None:
    folder.entries = "patches = []\n"


def odd_version(folder: SeriesFolder) -> None:
    folder.entries += '[[base."v2".patches]]\nfile = "0001-a.patch"\nchanges = ["x"]\n'


def no_version(folder: SeriesFolder) -> None:
    folder.entries += '[[base."main".patches]]\nfile = "0001-a.patch"\nchanges = ["x"]\n'


def not_needed(folder: SeriesFolder) -> None:
    drop = b"X-Drop-When: >=0.9; they have it"
    (folder.folder / "0001-a.patch").write_bytes(PATCH.replace(b"X-Drop-When: never; it is for the tests", drop))


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (missing, "listed, but not there: 0002-gone.patch"),
        (extra, "there, but not listed: 0001-a.patch.orig"),
        (out_of_order, "not in the order of their numbers"),
        (same_number, "not in the order of their numbers"),
        (stale_glob, r"nothing matches 'docs/\*\*'"),
        (other_name, "named as its folder"),
        (unknown_key, "unknown key 'why'"),
        (bad_file_name, "matching regex"),
        (no_changes_declared, "length >= 1"),
        (empty_series, "length >= 1"),
        (odd_version, "write base version 'v2' as '2'"),
        (no_version, "'main' is no version"),
        (not_needed, "0001-a.patch is not needed on 1.0: they have it"),
    ],
)
def test_refuses_as_config(folder: SeriesFolder, spoil: Callable[[SeriesFolder], None], text: str) -> None:
    folder.add("0001-a.patch", PATCH, [A])
    load_series("s", "1.0", folder.write())
    spoil(folder)
    with pytest.raises(ConfigError, match=text):
        load_series("s", "1.0", folder.write())


def test_unknown_base_lists_the_known(folder: SeriesFolder) -> None:
    folder.add("0001-a.patch", PATCH, [A])
    with pytest.raises(ConfigError, match=r"no patches for 1\.1") as caught:
        load_series("s", "1.1", folder.write())
    assert caught.value.expected == "one of 1.0"


@pytest.mark.parametrize("name", ["t", "../s", "", "."])
def test_unknown_series_lists_the_known(folder: SeriesFolder, name: str) -> None:
    folder.add("0001-a.patch", PATCH, [A])
    with pytest.raises(ConfigError, match="unknown series") as caught:
        load_series(name, "1.0", folder.write())
    assert caught.value.expected == "one of s"


RENAME = PATCH.replace(b"--- a", b"rename from vllm/a.py\nrename to tests/a.py\n--- a").replace(b"b/vllm", b"b/tests")


@pytest.mark.parametrize(
    ("data", "changes", "dropped", "text"),
    [
        (PATCH, ["vllm/b.py"], [], "vllm/a.py: changed by the patch, but not declared"),
        (PATCH, [A, "vllm/b.py"], [], "vllm/b.py: declared under 'changes' in series.toml, but not changed"),
        (PATCH, [A], ["vllm/*.py"], "vllm/a.py: declared under 'changes' in series.toml, but not changed"),
        (make_patch({"README.md": PAIR}), ["README.md"], [], "README.md: outside of vllm/"),
        (make_patch({"vllm2/a.py": PAIR}), ["vllm2/a.py"], [], "vllm2/a.py: outside of vllm/"),
        (RENAME, [A, "tests/a.py"], ["tests/**"], "tests/a.py: renamed between files"),
    ],
)
def test_refuses_patches(folder: SeriesFolder, data: bytes, changes: list[str], dropped: list[str], text: str) -> None:
    folder.add("0001-a.patch", data, changes)
    folder.dropped = dropped
    with pytest.raises(PatchError) as caught:
        load_series("s", "1.0", folder.write())
    assert caught.value.details is not None
    assert f"0001-a.patch, {text}" in caught.value.details


def test_tells_the_problems_of_all_patches_at_once(folder: SeriesFolder) -> None:
    folder.add("0001-a.patch", PATCH.replace(b"Origin", b"Source"), [A])
    folder.add("0002-b.patch", PATCH.replace(b"vllm/a.py", b"/a.py"), [A])
    with pytest.raises(PatchError) as caught:
        load_series("s", "1.0", folder.write())
    assert caught.value.what == "2 problems in 0001-a.patch, 0002-b.patch"


def test_a_patch_for_another_package(folder: SeriesFolder) -> None:
    folder.head += 'package = "a.b"\n'
    folder.add("0001-a.patch", make_patch({"a/b/x.py": PAIR}), ["a/b/x.py"])
    assert load_series("s", "1.0", folder.write()).package == "a.b"


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("tests/**", "tests/a.py", True),
        ("tests/**", "tests/a/b.py", True),
        ("tests/**", "tests", False),
        ("tests/**", "vllm/tests/a.py", False),
        ("**/tests/**", "vllm/x/tests/a.py", True),
        ("**/tests/**", "tests/a.py", True),
        ("*.md", "README.md", True),
        ("*.md", "docs/README.md", False),
        ("docs/?.txt", "docs/a.txt", True),
        ("docs/?.txt", "docs/ab.txt", False),
        ("a+b.txt", "aab.txt", False),
        ("**", "any/thing", True),
    ],
)
def test_globs(glob: str, path: str, *, expected: bool) -> None:
    assert bool(glob_pattern(glob).fullmatch(path)) is expected


def test_the_schema_can_be_written() -> None:
    schema = msgspec.json.schema(SeriesFile)
    assert set(schema["$defs"]) == {"SeriesFile", "BasePatches", "PatchEntry"}


SHAPING = [
    "csrc/x.cu",
    "csrc/deep/notes.txt",
    "cmake/utils.cmake",
    "rust/src/lib.rs",
    "setup.py",
    "pyproject.toml",
    "CMakeLists.txt",
    "Cargo.lock",
    "requirements/cuda.txt",
]
ASIDE = [
    "tests/csrc/x.h",
    "tests/deep/kernels.cu",
    "docs/requirements/x.txt",
    "benchmarks/x.cu",
    "benchmarks/setup.py",
    "examples/rust/Cargo.toml",
    "requirements",
    "csrc",
    "csrc.md",
    "README.md",
]


@pytest.mark.parametrize("path", [*SHAPING, "vllm/x.cu", "vllm/CMakeLists.txt"])
def test_what_shapes_the_wheel_is_not_dropped(folder: SeriesFolder, path: str) -> None:
    assert shapes_the_wheel(path)
    folder.add("0001-a.patch", make_patch({A: PAIR, path: PAIR}), [A])
    folder.dropped = ["**/" + path.rpartition("/")[2]]
    with pytest.raises(PatchError) as caught:
        load_series("s", "1.0", folder.write())
    assert f"{path}: can't be dropped: {shapes_the_wheel(path)}" in str(caught.value)
    assert "strategies that compile are not in this version" in str(caught.value)


@pytest.mark.parametrize("path", ASIDE)
def test_what_no_wheel_is_made_from_is_dropped(folder: SeriesFolder, path: str) -> None:
    folder.add("0001-a.patch", make_patch({A: PAIR, path: (None, b"x\n")}), [A])
    with pytest.raises(PatchError) as caught:
        load_series("s", "1.0", folder.write())
    assert f"{path}: outside of vllm/; a file that wheels don't carry is left out by 'dropped'" in str(caught.value)
    folder.dropped = [path]
    assert load_series("s", "1.0", folder.write()).patches[0].dropped == (path,)


def test_both_names_of_a_dropped_rename_count(folder: SeriesFolder) -> None:
    rename = PATCH.replace(b"--- a", b"rename from tests/a.h\nrename to csrc/a.h\n--- a")
    rename = rename.replace(b"a/vllm/a.py", b"a/tests/a.h").replace(b"b/vllm/a.py", b"b/csrc/a.h")
    folder.add("0001-a.patch", rename, [A])
    folder.dropped = ["**/a.h"]
    with pytest.raises(PatchError, match="problem") as caught:
        load_series("s", "1.0", folder.write())
    assert "csrc/a.h: can't be dropped" in str(caught.value)
    assert "tests/a.h: can't" not in str(caught.value)


@pytest.mark.parametrize(("package", "refused"), [("vllm", False), ("a.b", True), ("a", True)])
def test_native_source_in_the_package_is_not_dropped(package: str, *, refused: bool) -> None:
    assert (why_not_dropped("a/b/x.pyx", package) is not None) is refused
    assert why_not_dropped("a/b/x.md", package) is None


def test_native_and_build_files_are_left_for_the_plan_to_judge(folder: SeriesFolder) -> None:
    paths = SHAPING
    folder.add("0001-a.patch", make_patch(dict.fromkeys(paths, PAIR)), paths)
    assert load_series("s", "1.0", folder.write()).patches[0].paths == tuple(paths)
