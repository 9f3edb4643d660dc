"""What a person reads when a patch does not apply."""

from __future__ import annotations

import json
import textwrap
import time

import pytest
from support.patches import HEADER, file_diff

from patchwheel.errors import ConflictError
from patchwheel.series import Series, apply_series
from patchwheel.series.diff import read_patch
from patchwheel.series.header import read_header
from patchwheel.series.lines import find_places, show_line
from patchwheel.series.model import Patch
from patchwheel.series.problems import Problems

A = "vllm/a.py"
BASE = b"""\
import os


def first():
    return 1


def second(x):
    y = x + 1
    z = y * 2
    return z


def third():
    return 3
"""
EDITED = BASE.replace(b"    z = y * 2\n", b"    z = y * 3\n").replace(b"import os\n", b"import os\nimport sys\n")


DIFF = file_diff(A, BASE, EDITED)


def make_series(*diffs: bytes, allow_offset: int = 0) -> Series:
    header = read_header(HEADER, Problems("p"))
    assert header is not None
    patches = [
        Patch(
            name=f"000{number}-z.patch",
            sha256="",
            header=header,
            files=read_patch(data, Problems("p")).files,
            allow_offset=allow_offset,
        )
        for number, data in enumerate(diffs, 1)
    ]
    return Series(name="s", purpose="for the tests", package="vllm", patches=tuple(patches))


def conflict(found: bytes | None, *diffs: bytes, allow_offset: int = 0) -> ConflictError:
    with pytest.raises(ConflictError) as caught:
        apply_series([make_series(*diffs, allow_offset=allow_offset)], lambda path: found if path == A else None)
    json.dumps(caught.value.as_document())  # all of it must be fit for --json
    return caught.value


def report(error: ConflictError) -> str:
    assert error.details is not None
    return "\n" + error.details + f"\nNEXT {error.next_step}\n"


def test_a_changed_line() -> None:
    found = BASE.replace(b"y * 2", b"y * 2.0")
    assert str(conflict(found, DIFF)) == textwrap.dedent("""\
        s/0001-z.patch does not apply: 1 hunk in 1 file fails
        vllm/a.py, hunk 2 of 2, line 7: its lines stand nowhere in the file
          expected (-) and found (+):
                 7
                 8   def second(x):
                 9       y = x + 1
          >     10 -     z = y * 2
                10 +     z = y * 2.0
                11       return z
                12
                13
          most alike: line 7 (+0), 86% the same, white space aside
          where:    vllm/a.py, hunk 2 of 2, line 7
          next:     make the patch again on this base, after a look at what has changed there""")


def test_the_same_for_machines() -> None:
    error = conflict(BASE.replace(b"y * 2", b"y * 2.0"), DIFF)
    assert error.data is not None
    assert {key: error.data[key] for key in ("series", "patch", "failures")} == {
        "series": "s",
        "patch": "0001-z.patch",
        "failures": 1,
    }
    findings = error.data["findings"]
    assert isinstance(findings, list)
    (finding,) = findings
    assert (finding["file"], finding["reason"], finding["hunk"], finding["hunks"]) == (A, "hunk", 2, 2)
    assert (finding["line"], finding["first_difference"], finding["already_applied"]) == (7, 10, False)
    assert finding["near"] == {"line": 7, "offset": 0, "similarity": 0.86}
    assert finding["places"] == ()
    assert [row["text"] for row in finding["rows"] if row["mark"] == "+"] == ["    z = y * 2.0"]


def test_lines_that_have_moved() -> None:
    error = conflict(b"# top\n# top\n" + BASE, DIFF)
    assert report(error) == textwrap.dedent("""
        vllm/a.py, hunk 1 of 2, line 1: its lines stand 2 lines below (0 allowed)
          its lines stand at line 3 (+2)
          next: look at line 3, then make the patch again on this base; HINT
        vllm/a.py, hunk 2 of 2, line 7: its lines stand 2 lines below (0 allowed)
          its lines stand at line 9 (+2)
          next: look at line 9, then make the patch again on this base; HINT
        NEXT see the next step of each hunk above
        """).replace("HINT", "a patch file may also be given allow-offset = 2 where series.toml lists it")
    assert "line 7: its lines stand 1 line above (0 allowed)" in report(
        conflict(BASE.replace(b"\n\n\n", b"\n\n", 1), DIFF)
    )


def test_several_places() -> None:
    error = conflict(BASE + BASE + BASE, DIFF, allow_offset=3)
    assert "  its lines stand at line 1 (+0)\n  its lines stand at line 16 (+15)" in report(error)


def test_a_block_that_was_indented_is_found_as_most_alike() -> None:
    block = b"".join(b"    " + line for line in BASE.splitlines(keepends=True)[7:11])
    error = conflict(b"import os\n\n\ndef first():\n" + b"pass\n" * 40 + block + b"\n\n", DIFF)
    assert report(error) == textwrap.dedent("""
        vllm/a.py, hunk 2 of 2, line 7: its lines stand nowhere in the file
          expected (-) and found (+):
          >      7 -
                 8 - def second(x):
                 9 -     y = x + 1
                10 -     z = y * 2
                11 -     return z
                44 + pass
                45 +     def second(x):
                46 +         y = x + 1
                47 +         z = y * 2
                48 +         return z
                49
                50
          most alike: line 44 (+37), 86% the same, white space aside
        NEXT make the patch again on this base, after a look at what has changed there
        """)


def test_a_hunk_that_is_there_already() -> None:
    found = BASE.replace(b"    z = y * 2\n", b"    z = y * 3\n")
    assert report(conflict(found, DIFF)) == textwrap.dedent("""
        vllm/a.py, hunk 2 of 2, line 7: the file already has what this hunk would make of it
          expected (-) and found (+):
                 7
                 8   def second(x):
                 9       y = x + 1
          >     10 -     z = y * 2
                10 +     z = y * 3
                11       return z
                12
                13
          most alike: line 7 (+0), 86% the same, white space aside
        NEXT see whether this release has the change; if so, drop this hunk or the patch
        """)


def test_a_patch_that_is_there_already() -> None:
    assert report(conflict(EDITED, DIFF)) == textwrap.dedent("""
        vllm/a.py: the file already is what the patch would make of it
        NEXT drop the patch: the file already has its outcome
        """)


def test_a_removed_line_that_is_gone_already() -> None:
    shorter = BASE.replace(b"    y = x + 1\n", b"")
    removal = file_diff(A, BASE, shorter)
    assert "already has" in report(conflict(shorter + b"# more\n", removal))
    assert "already has" not in report(conflict(b"# top\n" + shorter, removal))


def test_a_missing_file() -> None:
    assert report(conflict(None, DIFF)) == textwrap.dedent("""
        vllm/a.py: there is no vllm/a.py in the base
        NEXT look where this release has that code; it may have moved, or be gone, and the patch with it
        """)


def test_line_ends_are_shown() -> None:
    text = report(conflict(BASE.replace(b"\n", b"\r\n"), DIFF))
    assert "hunk 1 of 2, line 1: its lines are there, but with other white space" in text
    assert "  >      1 - import os\n         2 -" in text
    assert "         1 + import os\\r\n         2 + \\r" in text


def test_a_file_that_an_earlier_patch_has_changed() -> None:
    other = BASE.replace(b"z = y * 2", b"z = y + 2")
    error = conflict(BASE, file_diff(A, BASE, other), DIFF)
    assert "  changed before by s/0001-z.patch" in report(error)


def test_nothing_alike() -> None:
    error = conflict(b"quite\nanother\nfile\n", DIFF)
    assert "most alike" not in report(error)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain\n", "plain"),
        (b"end\r\n", "end\\r"),
        (b"blank  \n", "blank\\x20\\x20"),
        (b"\ttab\n", "\\ttab"),
        (b"caf\xe9\n", "caf\\xe9"),
        ("für\n".encode(), "für"),
        (b"\x1b[31mred\n", "\\x1b[31mred"),
        (b"open", "open (no newline at the end)"),
        (b"x" * 200 + b"\n", "x" * 139 + "…"),
    ],
)
def test_lines_are_shown_so_that_they_can_be_told_apart(line: bytes, shown: str) -> None:
    assert show_line(line) == shown


@pytest.mark.parametrize(
    ("data", "wanted", "places"),
    [
        (b"a\nb\na\n", [b"a\n"], [0, 2]),
        (b"ba\na\n", [b"a\n"], [1]),
        (b"a\nb", [b"b"], [1]),
        (b"ab\n", [b"a"], []),
        (b"a\na\na\n", [b"a\n", b"a\n"], [0, 1]),
        (b"a\n", [], []),
        (b"", [b"a\n"], []),
        (b"x\n" * 9, [b"x\n"], [0, 1, 2, 3]),
    ],
)
def test_places(data: bytes, wanted: list[bytes], places: list[int]) -> None:
    assert find_places(data, wanted, 4) == places


def test_a_report_on_hostile_input_takes_no_long_time() -> None:
    lines = [b"x\n"] * 20_000
    before = b"".join(lines)
    hunks = b"".join(b"@@ -%d,31 +%d,31 @@\n" % (at, at) + b" x\n" * 30 + b"-y\n+z\n" for at in range(1, 20_000, 40))
    started = time.process_time()
    conflict(before, DIFF[: DIFF.index(b"@@")] + hunks)
    assert time.process_time() - started < 3
