from __future__ import annotations

import ast

import pytest

from patchwheel.probes.pattern import LARGEST, find_pattern, find_scope, has_parameter, parse_pattern, parse_source

SOURCE = b'''
import os

class Runner(Base):
    """A runner."""

    if os.name == "posix":
        def layers(self, config, *, strict=True):
            ids = config.get("ids")
            if ids:
                ids = [number + 1 for number in ids]  # shifted
            return tuple(ids)

    def __init__(self, size: int, *rest):
        self.size = size
        self.manager = Manager(size, rest, drop=self.drop,
                               keep=True)

    def equal(self, a, b):
        return a == a or a == b

async def alone(first, /, second): ...

try:
    def late(): return 1
except ImportError:
    def late(): return 2
'''

TREE = parse_source(SOURCE)
assert TREE


def line(scope: str, pattern: str) -> int | None:
    assert TREE
    found = find_scope(TREE, scope)
    assert found
    return find_pattern(found, parse_pattern(pattern))


@pytest.mark.parametrize(
    ("scope", "pattern", "where"),
    [
        ("Runner.layers", "[_n_ + 1 for _n_ in ids]", 11),
        ("Runner.layers", "[_n_ + 1 for _n_ in _ids_]", 11),
        ("Runner.layers", "[_n_ + 2 for _n_ in ids]", None),
        ("Runner.layers", "[_n_ + 1 for _m_ in ids]", 11),
        ("Runner.layers", "ids = config.get('ids')", 9),
        ("Runner.layers", "config.get('id')", None),
        ("Runner.layers", "self.size = size", None),
        ("", "self.size = size", 15),
        ("Runner.__init__", "Manager(...)", 16),
        ("Runner.__init__", "Manager(size, ...)", 16),
        ("Runner.__init__", "Manager(..., drop=self.drop)", 16),
        ("Runner.__init__", "Manager(..., keep=True, drop=self.drop)", 16),
        ("Runner.__init__", "Manager(..., drop=self.keep)", None),
        ("Runner.__init__", "Manager(..., other=1)", None),
        ("Runner.__init__", "Manager(rest, ...)", None),
        ("Runner.__init__", "Manager(size, rest)", None),
        ("Runner.__init__", "Manager(size, rest, drop=_x_, keep=_y_)", 16),
        ("Runner.equal", "_a_ == _a_", 20),
        ("Runner.equal", "_a_ == _b_ or _a_ == _c_", 20),
        ("Runner.equal", "_a_ == _b_ or _b_ == _b_", None),
    ],
)
def test_patterns(scope: str, pattern: str, where: int | None) -> None:
    assert line(scope, pattern) == where


def test_layout_and_comments_do_not_count() -> None:
    squeezed = parse_source(b"x = [ n+1 for n\n   in ids ] # other")
    assert squeezed
    assert find_pattern(squeezed, parse_pattern("[_n_ + 1 for _n_ in ids]")) == 1


def test_types_of_constants_count() -> None:
    tree = parse_source(b"f(1)\ng(True)")
    assert tree
    assert find_pattern(tree, parse_pattern("f(True)")) is None
    assert find_pattern(tree, parse_pattern("g(1)")) is None


@pytest.mark.parametrize("path", ["Runner", "Runner.layers", "alone", "late", ""])
def test_scopes(path: str) -> None:
    assert TREE
    assert find_scope(TREE, path) is not None


@pytest.mark.parametrize("path", ["layers", "Runner.late", "Runner.layers.ids", "Base", "nothing"])
def test_what_is_no_scope(path: str) -> None:
    assert TREE
    assert find_scope(TREE, path) is None


@pytest.mark.parametrize(
    ("scope", "name", "there"),
    [
        ("Runner.layers", "config", True),
        ("Runner.layers", "strict", True),
        ("Runner.layers", "size", False),
        ("Runner", "size", True),
        ("Runner", "config", False),
        ("alone", "first", True),
        ("alone", "third", False),
        ("", "first", False),
    ],
)
def test_parameters(scope: str, name: str, *, there: bool) -> None:
    assert TREE
    found = find_scope(TREE, scope)
    assert found
    assert has_parameter(found, name) is there


def test_a_class_without_init_takes_nothing() -> None:
    assert not has_parameter(ast.parse("class A: pass").body[0], "size")


@pytest.mark.parametrize(
    "source",
    [b"def f(:", b"\x00", b"\xff\xfe", b"(" * 5000, b"-" * 100_000 + b"1", b"#" * (LARGEST + 1)],
    ids=["syntax", "nul", "bytes", "open", "deep", "large"],
)
def test_what_is_no_python_is_no_tree(source: bytes) -> None:
    assert parse_source(source) is None


@pytest.mark.parametrize("text", ["", "a b", "x = 1\ny = 2", "def f(:"])
def test_patterns_are_one_expression_or_statement(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse_pattern(text)
