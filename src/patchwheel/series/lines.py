"""Lines of files as diffs see them: bytes that end in LF and nothing else, the last one perhaps without."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_places", "matches", "show_line", "split_lines"]


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their ends. Only LF ends a line: CR is content, as it is for git."""
    return list(io.BytesIO(data))


def matches(lines: Sequence[bytes], index: int, before: Sequence[bytes], after: Sequence[bytes]) -> bool:
    """Whether a hunk fits at a place: every byte equal, and a hunk that ends the file really at its end.

    Args:
        lines: The file.
        index: The place: how many lines of the file come before the hunk.
        before: The hunk's context and removed lines.
        after: The hunk's context and added lines.
    """
    end = index + len(before)
    ends_file = bool(after) and not after[-1].endswith(b"\n")
    return lines[index:end] == list(before) and (end == len(lines) or not ends_file)


def find_places(data: bytes, wanted: Sequence[bytes], limit: int) -> list[int]:
    """Where some lines stand in a file, as counts of the lines before them; at most ``limit`` places.

    Searches the bytes as a whole, which stays fast for files and patches made to be slow to compare by line.
    """
    needle = b"".join(wanted)
    if not needle:
        return []
    found: list[int] = []
    line, counted, start = 0, 0, 0
    while len(found) < limit and (at := data.find(needle, start)) >= 0:
        whole = needle.endswith(b"\n") or at + len(needle) == len(data)
        if whole and (at == 0 or data[at - 1] == ord("\n")):
            line += data.count(b"\n", counted, at)
            counted = at
            found.append(line)
        newline = data.find(b"\n", at)
        if newline < 0:
            break
        start = newline + 1
    return found


def show_line(line: bytes, width: int = 140) -> str:
    """A line as text on a terminal: what can't be seen is escaped, and a long line is cut after ``width``."""
    body = line.removesuffix(b"\n").decode("utf-8", "backslashreplace")
    kept = body.rstrip(" ")
    text = kept + "\\x20" * (len(body) - len(kept))
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text if line.endswith(b"\n") else text + " (no newline at the end)"
