"""Finds code by its shape: a Python snippet with placeholders, matched against syntax trees.

Layout and comments don't count. A name such as ``_x_`` in a pattern stands for any expression, the same one wherever it
is repeated; ``...`` as last argument of a call stands for any further arguments. A pattern is one expression or one
statement.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LARGEST", "find_pattern", "find_scope", "has_parameter", "parse_pattern", "parse_source"]

LARGEST = 4 << 20
"""Bytes of source that are parsed; vLLM's largest module has a tenth of it."""

_PLACEHOLDER = re.compile(r"_[a-z]+_")
_IGNORED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_Bindings = dict[str, str]


def parse_source(source: bytes) -> ast.Module | None:
    """The tree of a module; nothing if it is too large, too deep, or no Python. Nothing of it is run."""
    if len(source) > LARGEST:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_pattern(text: str) -> ast.AST:
    """The tree of a pattern.

    Raises:
        ValueError: It is not one expression or statement.
    """
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise ValueError(f"not Python: {text!r}") from error
    if len(body) != 1:
        raise ValueError(f"not one expression or statement: {text!r}")
    return body[0].value if isinstance(body[0], ast.Expr) else body[0]


def find_scope(tree: ast.AST, path: str) -> ast.AST | None:
    """The class or function of a dotted name, also below conditions; the module itself for the empty name."""
    here = tree
    for name in path.split(".") if path else ():
        found = next((node for node in _definitions(here) if node.name == name), None)
        if found is None:
            return None
        here = found
    return here


def _definitions(tree: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Classes and functions directly inside, not inside one another; the last of several of a name counts first."""
    for node in reversed(list(ast.iter_child_nodes(tree))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _definitions(node)


def has_parameter(scope: ast.AST, name: str) -> bool:
    """Whether a function has a parameter of this name; of a class, its ``__init__`` counts."""
    if isinstance(scope, ast.ClassDef):
        inner = find_scope(scope, "__init__")
        return inner is not None and has_parameter(inner, name)
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    arguments = scope.args
    return any(one.arg == name for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def find_pattern(scope: ast.AST, pattern: ast.AST) -> int | None:
    """The line, from 1, of the first node inside a scope that a pattern fits."""
    for node in ast.walk(scope):
        if isinstance(node, ast.expr | ast.stmt) and _fits(pattern, node, {}):
            return node.lineno
    return None


def _fits(pattern: object, node: object, bound: _Bindings) -> bool:
    if isinstance(pattern, ast.Name) and _PLACEHOLDER.fullmatch(pattern.id):
        if not isinstance(node, ast.expr):
            return False
        shape = ast.dump(_without_context(node))
        return bound.setdefault(pattern.id, shape) == shape
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(_fits(*pair, bound) for pair in _fields(pattern, node))
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_fits(one, other, bound) for one, other in zip(pattern, node, strict=True))
        )
    return type(pattern) is type(node) and pattern == node


def _fields(pattern: ast.AST, node: object) -> Iterator[tuple[object, object]]:
    open_call = isinstance(pattern, ast.Call) and bool(pattern.args) and _is_ellipsis(pattern.args[-1])
    for name in pattern._fields:
        if name in _IGNORED:
            continue
        wanted, found = getattr(pattern, name, None), getattr(node, name, None)
        if open_call and name == "args" and isinstance(found, list) and isinstance(wanted, list):
            count = len(wanted) - 1
            yield wanted[:count], found[:count]
        elif open_call and name == "keywords" and isinstance(found, list) and isinstance(wanted, list):
            by_name = {keyword.arg: keyword for keyword in found}
            for keyword in wanted:
                yield keyword, by_name.get(keyword.arg)
        else:
            yield wanted, found


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _without_context(node: ast.expr) -> ast.expr:
    """An expression as it would be read: that one is stored to and the other loaded makes no difference."""
    return ast.parse(ast.unparse(node), mode="eval").body
