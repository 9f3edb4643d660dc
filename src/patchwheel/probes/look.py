"""Looks for code in the files of a wheel, which come through a function, and tells where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchwheel.probes.pattern import find_pattern, find_scope, has_parameter, parse_pattern, parse_source

if TYPE_CHECKING:
    import ast
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
        self._trees: dict[str, ast.Module | str] = {}

    def all_hold(self, code: Sequence[Code]) -> Seen:
        """Whether all of the code is as said; the evidence is of the first that isn't, or of all."""
        seen = [self.look(one) for one in code]
        for one in seen:
            if not one.holds:
                return one
        return Seen(holds=True, evidence=", ".join(dict.fromkeys(one.evidence for one in seen)))

    def look(self, code: Code) -> Seen:
        """Whether one piece of code is as said."""
        found, evidence = self._find(code)
        return Seen(holds=found is not code.absent, evidence=evidence)

    def _find(self, code: Code) -> tuple[bool, str]:
        tree = self._tree(code.file)
        if isinstance(tree, str):
            return False, f"{code.file} {tree}"
        scope = find_scope(tree, code.scope)
        if scope is None:
            return False, f"{code.file} has no {code.scope}"
        return _find_within(scope, code)

    def _tree(self, path: str) -> ast.Module | str:
        if path not in self._trees:
            source = self._read(path)
            self._trees[path] = "is not there" if source is None else parse_source(source) or "can't be parsed"
        return self._trees[path]


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
