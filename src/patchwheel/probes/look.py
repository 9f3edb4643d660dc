"""Looks for code in the files of a wheel, which come through a function, and tells where it is."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchwheel.probes.pattern import find_pattern, find_scope, has_parameter, parse_pattern, parse_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from patchwheel.probes.model import Code

__all__ = ["Reader", "Seen"]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of some code.

    Attributes:
        holds: Whether it is as it was said to be.
        evidence: Where it is, as ``file:line``, or what is missing.
    """

    holds: bool
    evidence: str


class Reader:
    """The modules of one wheel, each read and parsed once.

    Args:
        read: Gives the content of a file by its path, None if there is none.
    """

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read = read
        self._trees: dict[str, ast.Module | Literal[False] | None] = {}

    def all_hold(self, code: Sequence[Code]) -> Seen:
        """Whether all of the code is as said; the evidence is of the first that isn't, or of all."""
        seen = [self.look(one) for one in code]
        for one in seen:
            if not one.holds:
                return one
        return Seen(holds=True, evidence=", ".join(dict.fromkeys(one.evidence for one in seen)))

    def look(self, code: Code) -> Seen:
        """Whether one piece of code is as said."""
        if code.file not in self._trees:
            source = self._read(code.file)
            self._trees[code.file] = None if source is None else parse_source(source) or False
        tree = self._trees[code.file]
        if tree is None:
            return Seen(holds=code.absent, evidence=f"{code.file} is not there")
        try:
            found, evidence = _find(tree, code) if isinstance(tree, ast.Module) else (None, "")
        except RecursionError:  # Python's own walks through trees have a limit
            found, evidence = None, ""
        if found is None:  # what can't be looked at holds nothing
            return Seen(holds=False, evidence=f"{code.file} can't be parsed")
        return Seen(holds=found is not code.absent, evidence=evidence)


def _find(tree: ast.Module, code: Code) -> tuple[bool, str]:
    scope = find_scope(tree, code.scope)
    if scope is None:
        return False, f"{code.file} has no {code.scope}"
    return _find_within(scope, code)


def _find_within(scope: ast.AST, code: Code) -> tuple[bool, str]:
    place = f"{code.file}:{code.scope}" if code.scope else code.file
    line = getattr(scope, "lineno", 1)
    if code.parameter is not None:
        if has_parameter(scope, code.parameter):
            return True, f"{code.file}:{line} takes {code.parameter}"
        return False, f"{place} does not take {code.parameter}"
    if code.pattern is not None:
        line = find_pattern(scope, parse_pattern(code.pattern))
        if line is None:
            return False, f"{place} has no {code.pattern}"
    return True, f"{code.file}:{line}"
