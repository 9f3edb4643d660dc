"""Names that can't be together in one wheel: a file and a folder of one name, or two that differ in case only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Clash", "Names"]


class Clash(NamedTuple):
    """What is in the way of a name: a file, a folder, or a name that differs from it in case only."""

    reason: Literal["exists", "folder", "case"]
    path: str


class Names:
    """Names of files, and of the folders that they are in."""

    def __init__(self, names: Iterable[str]) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add a file."""
        self._files.setdefault(name.casefold(), name)
        for folder in _folders(name):
            if folder.casefold() in self._folders:
                break  # and so are those that it is in
            self._folders[folder.casefold()] = folder

    def clash(self, name: str) -> Clash | None:
        """What is in the way of a file of this name."""
        for path in (name, *_folders(name)):
            if found := self._files.get(path.casefold()):
                return Clash("exists" if found == path else "case", found)
        if found := self._folders.get(name.casefold()):
            return Clash("folder" if found == name else "case", found)
        return None


def _folders(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
