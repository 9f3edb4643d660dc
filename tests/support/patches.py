"""Patches, series and git repositories, made on the spot."""

from __future__ import annotations

import ast
import difflib
import os
import subprocess
from typing import TYPE_CHECKING, Any

from patchwheel.files import git_blob_id
from patchwheel.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEADER = b"""\
Description: a patch for the tests
Origin: vendor, patchwheel
Forwarded: not-needed
Last-Update: 2026-12-01
X-Drop-When: never; it is for the tests
---
"""


def file_diff(path: str, before: bytes | None, after: bytes | None) -> bytes:
    """A git diff of one file whose lines all end in LF."""
    ids = [git_blob_id(data) if data is not None else "0" * 40 for data in (before, after)]
    head = [f"diff --git a/{path} b/{path}"]
    head += ["new file mode 100644"] if before is None else []
    head += ["deleted file mode 100644"] if after is None else []
    head.append(f"index {ids[0]}..{ids[1]}" + ("" if None in (before, after) else " 100644"))
    old_name, new_name = (
        b"/dev/null" if data is None else side + path.encode() for data, side in ((before, b"a/"), (after, b"b/"))
    )
    old, new = [(data or b"").splitlines(keepends=True) for data in (before, after)]
    body = difflib.diff_bytes(difflib.unified_diff, old, new, old_name, new_name)
    return "".join(f"{line}\n" for line in head).encode() + b"".join(body)


def make_patch(files: Mapping[str, tuple[bytes | None, bytes | None]]) -> bytes:
    """A patch with header, from the content of each file before and after."""
    return HEADER + b"".join(file_diff(path, *pair) for path, pair in files.items())


class SeriesFolder:
    """A project with one series ``s`` for base 1.0."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root=root)
        self.folder = root / "patches" / "s" / "1.0"
        self.folder.mkdir(parents=True)
        self.head = 'name = "s"\npurpose = "for the tests"\n'
        self.dropped: list[str] = []
        self.entries = ""

    def add(self, file: str, data: bytes | None, changes: list[str], allow_offset: int = 0) -> None:
        """List a patch, and write it if there is data."""
        if data is not None:
            (self.folder / file).write_bytes(data)
        self.entries += f'[[base."1.0".patches]]\nfile = "{file}"\nchanges = {changes}\n'
        self.entries += f"allow-offset = {allow_offset}\n"

    def write(self) -> Project:
        """Write series.toml."""
        text = f'{self.head}[base."1.0"]\ndropped = {self.dropped}\n{self.entries}'
        (self.folder.parent / "series.toml").write_text(text)
        return self.project


class GitRepo:
    """A git repository with fixed author and dates, untouched by the configuration of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        stamp = "2026-11-30T23:30:00+0000"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{
                f"GIT_{who}_{key}": value
                for who in ("AUTHOR", "COMMITTER")
                for key, value in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", stamp))
            },
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message: str, files: Mapping[str, bytes | None]) -> str:
        """Write or, for None, remove files, and commit them; the commit's id."""
        for name, data in files.items():
            path = self.folder / name
            if data is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def layer_taps(source: str, hf_config: object) -> tuple[int, ...] | None:
    """What vLLM's ``_get_eagle3_aux_layers_from_config`` makes of a drafter's config.

    Args:
        source: Text of ``vllm/v1/worker/gpu_model_runner.py``; only this function of it is run.
        hf_config: Stands for the drafter's config.
    """
    name = "_get_eagle3_aux_layers_from_config"
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    function = next(node for node in functions if node.name == name)
    module = ast.Module(body=[function], type_ignores=[])
    scope: dict[str, Any] = {}
    exec(compile(ast.unparse(module), "runner", "exec"), scope)

    class Stub:
        def __init__(self, **values: object) -> None:
            self.__dict__.update(values)

    draft = Stub(hf_config=hf_config)
    taps: tuple[int, ...] | None = scope[name](Stub(speculative_config=Stub(draft_model_config=draft)))
    return taps
