from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchwheel.errors import ArchiveError
from patchwheel.wheel.record import Row, format_record, is_exempt, parse_record, row_for

NAMES = st.characters(exclude_characters="\0", exclude_categories=("Cs", "Cc"))  # refused in file names

GOOD = "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"


def test_paths_with_commas_and_quotes_survive() -> None:
    rows = (row_for("a/E=1,N=2.json", b"x"), row_for('b/"q".py', b""), row_for("ü.py", b"y"))
    data = format_record(rows)
    assert parse_record(data) == rows
    assert data.startswith(b'"a/E=1,N=2.json",sha256=')


@given(st.lists(st.tuples(st.text(NAMES, min_size=1), st.binary())))
def test_round_trip(files: list[tuple[str, bytes]]) -> None:
    rows = tuple(row_for(path, data) for path, data in files)
    assert parse_record(format_record(rows)) == rows


def test_the_row_of_record_itself_has_no_digest() -> None:
    row = Row(path="p.dist-info/RECORD", algorithm=None, digest=None, size=None)
    assert format_record([row]) == b"p.dist-info/RECORD,,\n"
    assert parse_record(b"p.dist-info/RECORD,,\n") == (row,)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a.py", "1 columns"),
        ("a.py,x,1,2", "4 columns"),
        ("a.py,md5=rL0Y20zC-Fzt72VPzMSk2A,1", "no digest by"),
        ("a.py,nonsense,1", "no digest by"),
        ("a.py,sha256=!!!,1", "not base64"),
        ("a.py,sha256=AAAA,1", "wrong length"),
        (f"a.py,{GOOD},", "no size"),
        (f"a.py,{GOOD},-1", "no size"),
        (f"a.py,{GOOD},1e3", "no size"),
        ('"a.py,x', "can't be read"),
        (b"\xff,,".decode("latin-1"), None),
    ],
)
def test_malformed_rows(line: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ArchiveError, match="can't be read"):
            parse_record(line.encode("latin-1"))
        return
    with pytest.raises(ArchiveError) as caught:
        parse_record(line.encode())
    assert expected in str(caught.value)


def test_all_malformed_rows_are_told() -> None:
    with pytest.raises(ArchiveError) as caught:
        parse_record(b"a.py\n" + f"b.py,{GOOD},1\n".encode() + b"c.py,md5=x,1\n")
    assert "2 malformed rows" in str(caught.value)
    assert "line 1" in str(caught.value)
    assert "line 3" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "exempt"),
    [
        ("p.dist-info/RECORD", True),
        ("p.dist-info/RECORD.jws", True),
        ("p.dist-info/RECORD.p7s", True),
        ("p.dist-info/METADATA", False),
        ("other/RECORD", False),
        ("RECORD", False),
    ],
)
def test_exempt(path: str, *, exempt: bool) -> None:
    assert is_exempt(path, "p.dist-info") is exempt


def test_is_plain_csv() -> None:
    rows = list(csv.reader(io.StringIO(format_record([row_for("a,b", b"")]).decode())))
    assert rows[0][0] == "a,b"
