"""Whole small projects: a recipe, a series, and a base wheel."""

from __future__ import annotations

import difflib
import hashlib
from typing import TYPE_CHECKING

from support.wheels import RUNNER, write_wheel

from patchwheel.files import git_blob_id
from patchwheel.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEADER = """\
Description: shift the layer ids
Origin: vendor
Forwarded: not-needed
Last-Update: 2026-12-01
X-Drop-When: >=0.22.0; releases from there shift them
---
"""

SHIFTED = RUNNER.replace(b"tuple(ids)", b"tuple(i + 1 for i in ids)")


def diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """A git diff of one file, with full blob ids."""
    ids = [git_blob_id(data) if data is not None else "0" * 40 for data in (before, after)]
    lines = [f"diff --git a/{path} b/{path}\n"]
    if before is None:
        lines.append("new file mode 100644\n")
    elif after is None:
        lines.append("deleted file mode 100644\n")
    lines.append(f"index {ids[0]}..{ids[1]}{' 100644' if None not in (before, after) else ''}\n")
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    old, new = [(data or b"").decode().splitlines(keepends=True) for data in (before, after)]
    lines += difflib.unified_diff(old, new, *names)
    return "".join(lines)


def write_project(
    root: Path,
    *,
    changes: Mapping[str, tuple[bytes | None, bytes | None]] | None = None,
    base: Path | None = None,
    dropped: tuple[str, ...] = (),
) -> Project:
    """A project with the recipe ``r`` and the series ``s``, on a small base wheel beside it.

    Args:
        root: Its folder.
        changes: For each file the content before and after; by default the layer-id shift.
        base: The base wheel, by default a new one under ``root``.
        dropped: Globs of the series.
    """
    changes = {"vllm/v1/runner.py": (RUNNER, SHIFTED)} if changes is None else changes
    recipes = root / "manifests" / "recipes"
    recipes.mkdir(parents=True, exist_ok=True)
    base = base or write_wheel(root)
    sha256 = hashlib.sha256(base.read_bytes()).hexdigest()
    (recipes / "r.toml").write_text(
        'name = "r"\nsummary = "for tests"\nlabel = "dflash.swa"\nseries = ["s"]\n'
        '[base]\nproject = "vllm"\nversion = "0.20.2"\n'
        f'[[base.wheels]]\nvariant = "x86_64-cu13"\nsha256 = "{sha256}"\npath = "{base}"\n'
    )
    patches = root / "patches" / "s" / "0.20.2"
    patches.mkdir(parents=True, exist_ok=True)
    text = HEADER + "".join(diff(path, *contents) for path, contents in changes.items())
    (patches / "0001-shift.patch").write_text(text)
    declared = [path for path in changes if not path.startswith(("tests/", "docs/"))]
    (root / "patches" / "s" / "series.toml").write_text(
        'name = "s"\npurpose = "for tests"\n[base."0.20.2"]\n'
        f"dropped = {list(dropped)}\n"
        f'[[base."0.20.2".patches]]\nfile = "0001-shift.patch"\nchanges = {declared}\n'
    )
    probes = root / "manifests" / "probes"
    probes.mkdir(exist_ok=True)
    (probes / "s.toml").write_text(
        'series = "s"\n[[static]]\nname = "the patched file is there"\npatch = "0001-shift.patch"\n'
        'code = [{ file = "vllm/nothing.py", absent = true }]\n'
    )
    return Project(root=root)
