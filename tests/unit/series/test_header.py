from __future__ import annotations

import datetime as dt

import pytest

from patchwheel.series.header import DropWhen, read_header
from patchwheel.series.problems import Problems

HEADER = """\
Description: one line
 and more
 .
 a second paragraph
Origin: vendor, patchwheel
Forwarded: not-needed (theirs is another)
Last-Update: 2026-12-01
X-Drop-When: >=0.22.0, !=0.23.1; theirs is in
Bug: https://example.org/1
---
 a.py | 2 +-
Origin: this is below the header
"""


def test_reads_all_fields() -> None:
    problems = Problems("p")
    header = read_header(HEADER.encode(), problems)
    assert not problems.found
    assert header is not None
    assert header.description == "one line\nand more\n\na second paragraph"
    assert header.origin == "vendor, patchwheel"
    assert header.forwarded == "not-needed (theirs is another)"
    assert header.last_update == dt.date(2026, 12, 1)
    assert str(header.drop_when) == ">=0.22.0, !=0.23.1; theirs is in"
    assert header.others == (("bug", "https://example.org/1"),)


def test_reads_a_mail_with_the_fields_in_its_body() -> None:
    body = HEADER.replace("Description: one line\n and more\n .\n a second paragraph\n", "")
    mail = f"From 1234 Mon Sep 17 00:00:00 2001\nFrom: a\nSubject: [PATCH 1/2] one line\n\nFree text.\n\n{body}"
    header = read_header(mail.encode(), Problems("p"))
    assert header is not None
    assert header.description == "one line"


@pytest.mark.parametrize(
    ("line", "replacement", "field", "text"),
    [
        ("Origin: vendor, patchwheel\n", "", "field Origin", "missing"),
        ("Origin: vendor, patchwheel\n", "Origin:\n", "field Origin", "missing"),
        ("Forwarded: not-needed (theirs is another)\n", "", "field Forwarded", "missing"),
        ("not-needed (theirs is another)", "maybe", "field Forwarded", "found 'maybe'"),
        ("2026-12-01", "1.12.2026", "field Last-Update", "found '1.12.2026'"),
        ("2026-12-01", "20261201", "field Last-Update", "found '20261201'"),
        ("2026-12-01", "2026-13-01", "field Last-Update", "found '2026-13-01'"),
        ("Last-Update: 2026-12-01\n", "", "field Last-Update", "missing"),
        (">=0.22.0, !=0.23.1; theirs is in", "", "field X-Drop-When", "missing"),
        ("; theirs is in", "", "field X-Drop-When", "expected"),
        (">=0.22.0, !=0.23.1;", "soon;", "field X-Drop-When", "found 'soon; theirs is in'"),
        (">=0.22.0, !=0.23.1;", ";", "field X-Drop-When", "expected"),
        ("Bug:", "Origin:", "field Origin", "given twice"),
    ],
)
def test_refuses(line: str, replacement: str, field: str, text: str) -> None:
    problems = Problems("p")
    assert read_header(HEADER.replace(line, replacement, 1).encode(), problems) is None
    (problem,) = problems.found
    assert (problem.patch, problem.at) == ("p", field)
    assert text in problem.text


def test_tells_all_missing_fields_at_once() -> None:
    problems = Problems("p")
    assert read_header(b"From: someone\n", problems) is None
    fields = ["Description", "Origin", "Forwarded", "Last-Update", "X-Drop-When"]
    assert [problem.at for problem in problems.found] == [f"field {field}" for field in fields]


@pytest.mark.parametrize(
    ("field", "misspelled", "shown"),
    [
        ("Forwarded", "Forwraded", "Forwraded"),
        ("Origin", "ORGIN", "Orgin"),
        ("Last-Update", "Last-Updated", "Last-Updated"),
        ("X-Drop-When", "Drop-When", "Drop-When"),
        ("X-Drop-When", "X-Drop-If", "X-Drop-If"),
        ("Description", "Descripton", "Descripton"),
    ],
)
def test_tells_a_misspelled_field(field: str, misspelled: str, shown: str) -> None:
    problems = Problems("p")
    assert read_header(HEADER.replace(f"{field}:", f"{misspelled}:", 1).encode(), problems) is None
    (problem,) = problems.found
    assert problem.at == f"field {field}"
    assert problem.text.startswith(f"missing (is {shown} meant?); ")


def test_takes_no_other_field_for_a_misspelled_one() -> None:
    problems = Problems("p")
    others = b"From: a\nAuthor: a\nBug: 1\nBug-Debian: 1\nReviewed-By: a\nApplied-Upstream: no\nX-Drop-When: never; x\n"
    assert read_header(others, problems) is None
    assert len(problems.found) == 4
    assert not [problem for problem in problems.found if "meant" in problem.text]


def test_refuses_another_encoding() -> None:
    problems = Problems("p")
    assert read_header(b"Description: \xff\n", problems) is None
    assert problems.found[0].text == "not UTF-8"


@pytest.mark.parametrize(
    ("specifier", "version", "dropped"),
    [
        (">=0.22.0", "0.20.2", False),
        (">=0.22.0", "0.22.0", True),
        (">=0.22.0", "0.22.1.post1", True),
        (">=0.22.0", "0.23.0rc1", True),
        ("==0.21.*", "0.21.3", True),
        (None, "99", False),
    ],
)
def test_drop_when(specifier: str | None, version: str, *, dropped: bool) -> None:
    assert DropWhen(specifier=specifier, reason="r").matches(version) is dropped


def test_never_is_a_way_to_say_when() -> None:
    header = read_header(HEADER.replace(">=0.22.0, !=0.23.1;", "never;").encode(), Problems("p"))
    assert header is not None
    assert str(header.drop_when) == "never; theirs is in"
