"""Paths inside a wheel: how patches spell them, which a patch may name, and globs over them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "glob_pattern",
    "path_problem",
    "shapes_the_wheel",
    "source_of_the_build",
    "stale_globs",
    "unquote",
    "why_not_dropped",
]

_GIT_FOLDERS = {".git", "git~1"}
_PATH_LIMIT = 1024
_NATIVE_FOLDERS = ("csrc", "cmake", "rust")
_NATIVE_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc", ".pyx", ".rs", ".cmake")
_BUILD_FILES = (
    *("CMakeLists.txt", "setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in"),
    *("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"),
)
_BUILD_FOLDERS = ("requirements",)
_NATIVE = "it is native source, which must be compiled"
_BUILD_FILE = "it is a build file or a requirement, which changes what is built"
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

    Such a file can't be patched in a wheel. Where it isn't known that wheels are built from a folder, the name
    of the file decides.
    """
    name = path.rpartition("/")[2]
    if reason := source_of_the_build(path):
        return reason
    if name in _BUILD_FILES:
        return _BUILD_FILE
    return _NATIVE if name.endswith(_NATIVE_SUFFIXES) else None


def source_of_the_build(path: str) -> str | None:
    """How a file shapes the wheel, by its place alone, or None if no build reads files there.

    A header or a ``setup.py`` in a folder of tests or examples shapes no wheel, whatever its name.
    """
    top, below, _ = path.partition("/")
    if below and top in _NATIVE_FOLDERS:
        return _NATIVE
    if top in (_BUILD_FOLDERS if below else _BUILD_FILES):
        return _BUILD_FILE
    return None


def why_not_dropped(path: str, package: str) -> str | None:
    """Why the change of a file may not be left out, or None if it may.

    Without it, the wheel would be another one than was meant.

    Args:
        path: Path in the source tree.
        package: Import package of the series. Native source in it is compiled too.
    """
    in_package = path.startswith(package.replace(".", "/") + "/")
    reason = shapes_the_wheel(path) if in_package else source_of_the_build(path)
    if not reason:
        return None
    return (
        f"can't be dropped: {reason}, and the wheel would be another one than was meant; "
        "strategies that compile are not in this version"
    )


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
