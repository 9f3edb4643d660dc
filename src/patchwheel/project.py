"""Where recipes, locks and patches lie: in a checkout, or in the installed package.

A folder is a project if it has ``manifests/recipes``. The nearest one at or above the working folder counts; without
one, the data that came with the installed package is used, so that ``pip install patchwheel`` alone can build.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patchwheel.errors import UsageError

__all__ = ["Project", "find_project"]

_PACKAGED = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Project:
    """The folders that hold what people review."""

    root: Path

    @property
    def is_packaged(self) -> bool:
        """Whether this is the data of the installed package, which is not the user's to change."""
        return self.root == _PACKAGED

    @property
    def recipes(self) -> Path:
        """Folder of ``<recipe>.toml`` files."""
        return self.root / "manifests" / "recipes"

    @property
    def gates(self) -> Path:
        """Folder of ``<gate>.toml`` files."""
        return self.root / "manifests" / "gates"

    @property
    def probes(self) -> Path:
        """Folder of the series' probes, ``<series>.toml``."""
        return self.root / "manifests" / "probes"

    @property
    def bases_lock(self) -> Path:
        """The lock file of all bases."""
        return self.root / "manifests" / "bases.lock.toml"

    @property
    def patches(self) -> Path:
        """Folder of the series."""
        return self.root / "patches"


def find_project(root: Path | None = None) -> Project:
    """The project at ``root``, or else the nearest one above the working folder, or else the installed data.

    Raises:
        UsageError: ``root`` is given but holds no ``manifests/recipes``, or no project is found at all.
    """
    if root is not None:
        candidates = [root.resolve()]
    else:
        here = Path.cwd()
        candidates = [here, *here.parents, _PACKAGED]
    for candidate in candidates:
        project = Project(root=candidate)
        if project.recipes.is_dir():
            return project
    raise UsageError(
        "found no patchwheel project",
        where=str(root or Path.cwd()),
        expected="a folder that has manifests/recipes",
        next_step="change into the checkout, or name it with --project",
    )
