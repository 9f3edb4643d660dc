"""Paths inside a wheel: how patches spell them, which a patch may name, and globs over them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["glob_pattern", "path_problem", "shapes_the_wheel", "stale_globs", "unquote"]

_GIT_FOLDERS = {".git", "git~1"}
_PATH_LIMIT = 1024
_NATIVE_FOLDERS = ("csrc", "cmake", "rust")
_NATIVE_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc", ".pyx", ".rs", ".cmake")
_BUILD_FILES = ("CMakeLists.txt", "setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "Cargo.toml")
_BUILD_FOLDERS = ("requirements",)
_GLOB_PART = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|.")
_GLOB_REGEX = {"**/": "(?:[^/]+/)*", "/**": "/.+", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)")
_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


def path_problem(path: str) -> str | None:
    """Why a patch may not name this path, or None.

    Patches come from strangers; CVE-2023-23946 and CVE-2019-13636 show where trust in their paths leads.
    """
    parts = path.split("/")
    rules = (
        # Not only NUL and line ends: invisible and text-turning characters make one path look like another.
        (not path.isprintable(), "path has control or invisible characters"),
        (path.startswith("/"), "absolute path"),
        (
            "\\" in path or ":" in path,
            "path has a backslash or a colon",
        ),
        (".." in parts, "path leads out of the tree"),
        ("" in parts or "." in parts, "path is not in its plain form"),
        (any(part.rstrip(". ").lower() in _GIT_FOLDERS for part in parts), "path lies in a git folder"),
        (len(path) > _PATH_LIMIT, f"path is longer than {_PATH_LIMIT} characters"),
    )
    return next((f"{text}: {path[:_PATH_LIMIT]!a}" for broken, text in rules if broken), None)


def shapes_the_wheel(path: str) -> str | None:
    """How a file of the source tree shapes the wheel without being in it, or None if it doesn't.

    Such a file can't be patched in a wheel, and leaving its change out would make another wheel than was meant.
    """
    *folders, name = path.split("/")
    top = folders[0] if folders else ""
    if top in _NATIVE_FOLDERS or (name.endswith(_NATIVE_SUFFIXES) and name not in _BUILD_FILES):
        return "it is native source, which must be compiled"
    if name in _BUILD_FILES or top in _BUILD_FOLDERS:
        return "it is a build file or a requirement, which changes what is built"
    return None


def unquote(token: bytes) -> bytes | None:
    """A path from git's spelling: as it is, or in quotes with C escapes. None if the quotes are wrong."""
    if not token.startswith(b'"'):
        return token
    quoted = _QUOTED.fullmatch(token)
    if not quoted:
        return None
    broken = False

    def decode(escape: re.Match[bytes]) -> bytes:
        nonlocal broken
        if len(escape[1]) > 1:
            return bytes([int(escape[1], 8)])
        broken = broken or escape[1][0] not in _ESCAPED
        return bytes([_ESCAPED.get(escape[1][0], 0)])

    plain = _ESCAPE.sub(decode, quoted[1])
    return None if broken else plain


def glob_pattern(glob: str) -> re.Pattern[str]:
    """A glob as a pattern for ``fullmatch``.

    ``*`` and ``?`` stay within a folder; ``**/`` is any number of folders, a final ``/**`` all below.
    """
    parts = _GLOB_PART.findall(glob)
    return re.compile("".join(_GLOB_REGEX.get(part) or re.escape(part) for part in parts))


def stale_globs(globs: Sequence[str], paths: Iterable[str]) -> list[str]:
    """The globs that match none of the paths."""
    known = list(paths)
    return [glob for glob in globs if not any(map(glob_pattern(glob).fullmatch, known))]
