"""Each way in which a patch is refused has a patch here that is refused that way."""

from __future__ import annotations

import time

import pytest

from patchwheel.errors import PatchError
from patchwheel.series import diff as diff_module
from patchwheel.series.diff import ParsedPatch, read_patch
from patchwheel.series.problems import Problems

NONE, OLD, NEW = b"0" * 40, b"1" * 40, b"2" * 40
PATCH = b"""\
diff --git a/vllm/a.py b/vllm/a.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/vllm/a.py
+++ b/vllm/a.py
@@ -1,3 +1,3 @@ def f():
 one
-two
+2
 three
"""
ADD = b"""\
diff --git a/vllm/n.py b/vllm/n.py
new file mode 100644
index 0000000000000000000000000000000000000000..2222222222222222222222222222222222222222
--- /dev/null
+++ b/vllm/n.py
@@ -0,0 +1,2 @@
+one
+two
"""
DELETE = b"""\
diff --git a/vllm/d.py b/vllm/d.py
deleted file mode 100644
index 1111111111111111111111111111111111111111..0000000000000000000000000000000000000000
--- a/vllm/d.py
+++ /dev/null
@@ -1 +0,0 @@
-one
"""
RENAME = b"""\
diff --git a/vllm/o.py b/vllm/r.py
similarity index 66%
rename from vllm/o.py
rename to vllm/r.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/vllm/o.py
+++ b/vllm/r.py
@@ -1,2 +1,2 @@
 one
-two
+2
"""


def parse(data: bytes, name: str = "p") -> ParsedPatch:
    problems = Problems(name)
    patch = read_patch(data, problems)
    problems.raise_any()
    return patch


def renamed(path: bytes) -> bytes:
    return PATCH.replace(b"vllm/a.py", path)


def quoted(path: bytes) -> bytes:
    patch = PATCH.replace(b"a/vllm/a.py", b'"a/' + path + b'"')
    return patch.replace(b"b/vllm/a.py", b'"b/' + path + b'"')


def hunks(text: bytes) -> bytes:
    return PATCH[: PATCH.index(b"@@")] + text


TWO_HUNKS = b"@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9,2 +9,2 @@\n nine\n-ten\n+10\n"

REFUSED = {
    "absolute path": (renamed(b"/etc/passwd"), "absolute path"),
    "dots": (renamed(b"vllm/../../x"), "leads out of the tree"),
    "dots at the end": (renamed(b"vllm/.."), "leads out of the tree"),
    "plain dot": (renamed(b"vllm/./x"), "not in its plain form"),
    "empty part": (renamed(b"vllm//x"), "not in its plain form"),
    "backslash": (renamed(b"vllm\\x"), "backslash"),
    "drive": (renamed(b"c:/x"), "colon"),
    "git folder": (renamed(b"vllm/.git/config"), "git folder"),
    "git folder, other case": (renamed(b".GIT/hooks/x"), "git folder"),
    "git folder, windows name": (renamed(b"GIT~1/x"), "git folder"),
    "git folder, trailing dot": (renamed(b".git./x"), "git folder"),
    "long path": (renamed(b"v/" * 600 + b"x"), "longer than"),
    "control character": (renamed(b"vllm/a\x07b"), "control"),
    "NUL": (renamed(b"vllm/a\0b"), "control"),
    "text-turning character": (renamed("vllm/a\u202eb".encode()), "control or invisible"),
    "not UTF-8": (renamed(b"vllm/\xff"), "not UTF-8"),
    "quoted newline": (quoted(b"vllm/a\\nb"), "control"),
    "quoted dots": (quoted(b"vllm/\\056\\056/x"), "leads out of the tree"),
    "quoted git folder": (quoted(b"\\056git/x"), "git folder"),
    "quoted nonsense": (quoted(b"vllm/\\q"), "begins with a/"),
    "open quote": (PATCH.replace(b"a/vllm/a.py b/", b'"a/vllm/a.py b/'), "begins with a/"),
    "no prefix": (PATCH.replace(b"a/vllm", b"vllm").replace(b"b/vllm", b"vllm"), "begins with a/"),
    "symbolic link added": (ADD.replace(b"100644", b"120000"), "a symbolic link"),
    "symbolic link changed": (PATCH.replace(b"100644", b"120000"), "a symbolic link"),
    "symbolic link deleted": (DELETE.replace(b"100644", b"120000"), "a symbolic link"),
    "submodule": (ADD.replace(b"100644", b"160000"), "a submodule"),
    "odd mode": (PATCH.replace(b"100644", b"104755"), "unknown file mode"),
    "mode change": (
        PATCH.replace(b"index", b"old mode 100644\nnew mode 100755\nindex"),
        "changes a file's mode",
    ),
    "new program": (ADD.replace(b"100644", b"100755"), "adds an executable"),
    "git binary": (
        PATCH[: PATCH.index(b"---")] + b"GIT binary patch\nliteral 0\nHcmV?d00001\n",
        "binary change",
    ),
    "binary": (
        PATCH[: PATCH.index(b"---")] + b"Binary files a/vllm/a.py and b/vllm/a.py differ\n",
        "binary change",
    ),
    "copy": (RENAME.replace(b"rename ", b"copy "), "copies a file"),
    "pure rename": (RENAME[: RENAME.index(b"index 1")], "no 'index' line"),
    "rename with other names": (RENAME.replace(b"rename to vllm/r", b"rename to vllm/s"), "different files"),
    "rename onto a patched file": (PATCH + RENAME.replace(b"vllm/r.py", b"vllm/a.py"), "changed twice"),
    "rename to itself": (RENAME.replace(b"vllm/r.py", b"vllm/o.py"), "different files"),
    "half a rename": (RENAME.replace(b"rename from vllm/o.py\n", b""), "different files"),
    "two files in one header": (
        PATCH.replace(b" b/vllm/a.py\nindex", b" b/vllm/b.py\nindex"),
        "different files",
    ),
    "other old name": (PATCH.replace(b"--- a/vllm/a.py", b"--- a/vllm/b.py"), "--- line names"),
    "other new name": (PATCH.replace(b"+++ b/vllm/a.py", b"+++ b/vllm/b.py"), "+++ line names"),
    "no old name": (PATCH.replace(b"--- a/vllm/a.py\n", b""), "no '---' line"),
    "names without hunks": (hunks(b""), "without hunks"),
    "same file twice": (PATCH + PATCH, "changed twice"),
    "ed script": (b"1,2d\n.\nw\n", "another form"),
    "ed script above": (b"2a\nx\n.\n" + PATCH, "another form"),
    "context diff": (b"*** a\n--- b\n", "another form"),
    "plain diff": (PATCH[PATCH.index(b"---") :], "another form"),
    "plain diff above": (PATCH[PATCH.index(b"---") :] + ADD, "another form"),
    "empty": (b"", "no 'diff --git' line"),
    "only text": (b"Description: nothing\n", "no 'diff --git' line"),
    "combined": (PATCH.replace(b"diff --git a/vllm/a.py b/", b"diff --cc "), "combined diff"),
    "combined hunk": (hunks(b"@@@ -1 -1 +1 @@@\n--a\n++b\n"), "combined diff"),
    "bad hunk header": (hunks(b"@@ -1,a +1 @@\n-a\n+b\n"), "unreadable hunk header"),
    "endless number": (hunks(b"@@ -1," + b"9" * 30 + b" +1 @@\n-a\n+b\n"), "unreadable hunk header"),
    "too few lines": (PATCH.replace(b" three\n", b""), "there are 2 and 2"),
    "too many lines": (PATCH + b" four\n", "there are more"),
    "counts swapped": (PATCH.replace(b"-1,3 +1,3", b"-1,2 +1,3"), "there are more"),
    "stripped blank": (hunks(b"@@ -1,3 +1,3 @@\n one\n\n-two\n+2\n"), "was it stripped?"),
    "garbage between hunks": (hunks(b"@@ -1 +1 @@\n-a\n+b\nhello\n@@ -5 +5 @@\n-c\n+d\n"), "belongs to none"),
    "garbage at the end": (PATCH + b"hello\n", "belongs to none"),
    "no change": (hunks(b"@@ -1 +1 @@\n one\n"), "hunk without changes"),
    "empty hunk": (hunks(b"@@ -0,0 +0,0 @@\n"), "hunk without changes"),
    "out of order": (hunks(TWO_HUNKS.replace(b"-1,2 +1,2", b"-20,2 +20,2")), "out of order"),
    "overlap": (hunks(TWO_HUNKS.replace(b"-9,2 +9,2", b"-2,2 +2,2")), "overlaps"),
    "new line number": (hunks(TWO_HUNKS.replace(b"+9,2", b"+8,2")), "does not follow"),
    "newline missing inside": (
        hunks(b"@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n"),
        "not the last one",
    ),
    "newline missing before the last hunk": (
        hunks(TWO_HUNKS.replace(b"+2\n", b"+2\n\\ No newline at end of file\n")),
        "ends the file, but",
    ),
    "newline missing from nothing": (
        hunks(b"@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n"),
        "there are 0 and 0",
    ),
    "no index": (PATCH.replace(b"index %b..%b 100644\n" % (OLD, NEW), b""), "no 'index' line"),
    "bad index": (PATCH.replace(OLD, b"x" * 40), "unreadable 'index' line"),
    "short old id": (PATCH.replace(OLD, OLD[:39]), "abbreviated blob ids"),
    "short new id": (PATCH.replace(NEW, NEW[:7]), "abbreviated blob ids"),
    "long ids": (PATCH.replace(NEW, NEW + NEW[:24]), "git diff --full-index"),
    "add with an old id": (ADD.replace(NONE, OLD), "old blob id"),
    "delete with a new id": (DELETE.replace(NONE, OLD), "new blob id"),
    "modify from nothing": (PATCH.replace(OLD, NONE), "old blob id"),
    "modify to nothing": (PATCH.replace(NEW, NONE), "new blob id"),
    "from /dev/null without a mode": (PATCH.replace(b"--- a/vllm/a.py", b"--- /dev/null"), "--- line names"),
    "to /dev/null without a mode": (PATCH.replace(b"+++ b/vllm/a.py", b"+++ /dev/null"), "+++ line names"),
    "add from a file": (ADD.replace(b"--- /dev/null", b"--- a/vllm/n.py"), "--- line names"),
    "delete to a file": (DELETE.replace(b"+++ /dev/null", b"+++ b/vllm/d.py"), "+++ line names"),
    "add with old lines": (
        ADD.replace(b"-0,0 +1,2", b"-1 +1").replace(b"+one\n", b"-one\n"),
        "with old lines",
    ),
    "delete with new lines": (DELETE.replace(b"-1 +0,0", b"-1 +1") + b"+1\n", "with new lines"),
    "add and delete": (ADD.replace(b"index", b"deleted file mode 100644\nindex"), "add and delete"),
    "nothing": (PATCH[: PATCH.index(b"---")], "changes nothing"),
    "unknown header": (PATCH.replace(b"index", b"dissimilarity index 90%\nindex"), "unexpected line"),
    "second index": (PATCH.replace(b"---", b"index 3333333..4444444\n---", 1), "second 'index'"),
    "cut off": (PATCH[:-1], "cut off"),
    "CRLF patch": (PATCH.replace(b"\n", b"\r\n"), "CRLF"),
    "two mails": (
        PATCH + b"-- \n2.39.5\n\n" + PATCH.replace(b"/a.py", b"/b.py").replace(b"diff --git", b"From x\n", 1),
        "there are more",
    ),
}


@pytest.mark.parametrize(("data", "text"), REFUSED.values(), ids=REFUSED)
def test_refuses(data: bytes, text: str) -> None:
    with pytest.raises(PatchError) as caught:
        parse(data, "0001-x.patch")
    assert caught.value.details is not None
    assert text in caught.value.details
    assert "0001-x.patch" in caught.value.what


@pytest.mark.parametrize("data", [PATCH, ADD, DELETE, RENAME])
def test_the_patches_that_the_refused_ones_were_made_of_are_fine(data: bytes) -> None:
    assert len(parse(data).files) == 1


def test_collects_all_problems_of_all_files() -> None:
    bad = renamed(b"/abs") + ADD.replace(b"100644", b"120000") + hunks(b"@@ x\n@@ y\n").replace(b"/a.py", b"/c.py")
    with pytest.raises(PatchError) as caught:
        parse(bad)
    assert caught.value.data is not None
    problems = caught.value.data["problems"]
    assert isinstance(problems, list)
    assert [problem["at"] for problem in problems] == ["line 1", "line 10", "line 22", "line 23"]
    assert caught.value.what == "4 problems in p"


def test_keeps_bytes_as_they_are() -> None:
    body = b"@@ -1,2 +1,2 @@\n caf\xe9\r\n-old\r\n\\ No newline at end of file\n+new\x0b\x0c\n"
    (file,) = parse(hunks(body)).files
    assert file.hunks[0].before == (b"caf\xe9\r\n", b"old\r")
    assert file.hunks[0].after == (b"caf\xe9\r\n", b"new\x0b\x0c\n")
    assert file.hunks[0].ends_file


def test_reads_all_parts() -> None:
    files = parse(b"text\n\n" + PATCH + ADD + DELETE + RENAME + b"-- \n2.39.5\n\n").files
    assert [file.kind for file in files] == ["modify", "add", "delete", "rename"]
    assert [file.paths for file in files] == [
        ("vllm/a.py",),
        ("vllm/n.py",),
        ("vllm/d.py",),
        ("vllm/o.py", "vllm/r.py"),
    ]
    assert (files[0].old_id, files[0].new_id) == (OLD.decode(), NEW.decode())
    assert files[0].hunks[0].section == "def f():"
    assert (files[1].old, files[2].new, files[2].path) == (None, None, "vllm/d.py")


def test_a_removed_dash_is_not_taken_for_a_signature() -> None:
    (file,) = parse(hunks(b"@@ -1,2 +1 @@\n-- \n-two\n+2\n")).files
    assert file.hunks[0].before == (b"- \n", b"two\n")


def test_empty_files_are_added_and_deleted_without_hunks() -> None:
    add, delete = ADD[: ADD.index(b"---")], DELETE[: DELETE.index(b"---")]
    assert [file.hunks for file in parse(add + delete + b"-- \n2.39.5\n").files] == [(), ()]


@pytest.mark.parametrize("path", [b"vllm/with blank.py", "vllm/ünï.py".encode(), b"vllm/b/ b/x.py"])
def test_reads_unusual_paths(path: bytes) -> None:
    patch = renamed(path).replace(b"--- a/" + path, b"--- a/" + path + b"\t")
    assert parse(patch).files[0].path == path.decode()


def test_reads_quoted_paths() -> None:
    assert parse(quoted(b"vllm/\\303\\274.py")).files[0].path == "vllm/ü.py"
    patch = RENAME.replace(b"a/vllm/o.py", b'"a/vllm/\\303\\274.py"').replace(
        b"from vllm/o.py", b'from "vllm/\\303\\274.py"'
    )
    assert parse(patch).files[0].old == "vllm/ü.py"


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_module, "MAX_BYTES", len(PATCH) - 1)
    with pytest.raises(PatchError, match="1 problem"):
        parse(PATCH)
    monkeypatch.setattr(diff_module, "MAX_BYTES", len(PATCH))
    monkeypatch.setattr(diff_module, "MAX_LINES", 3)
    with pytest.raises(PatchError, match="1 problem"):
        parse(PATCH)


@pytest.mark.parametrize(
    "data",
    [
        b"diff --git a/x b/x\n" * 20_000,
        PATCH + b"@@ -1 +1 @@\n" * 40_000,
        PATCH[: PATCH.index(b"@@")] + b"@@ -1,99999999 +1 @@\n" + b"-x\n" * 100_000,
        b"diff --git a/" + b" b/" * 200_000 + b"\n",
        renamed(b'"' + b"\\" * 200_000 + b'"'),
        PATCH + b"-- \n" * 100_000,
    ],
    ids=["files", "hunks", "lines", "names", "quotes", "signatures"],
)
def test_hostile_patches_take_no_long_time(data: bytes) -> None:
    started = time.process_time()
    with pytest.raises(PatchError):
        parse(data)
    assert time.process_time() - started < 2
