"""What getting a file needs: where files may come from, where they are kept, how long to wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchwheel.base.patience import Patience
from patchwheel.base.settings import IndexSettings, read_settings
from patchwheel.base.store import Entry, Store, default_store

if TYPE_CHECKING:
    from patchwheel.base.pin import BasePin

__all__ = ["USUAL", "Access"]


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where files come from and go; what is left out is the user's own, looked up when it is needed.

    Attributes:
        settings: Where packages may come from, by default the user's settings for pip, uv and patchwheel.
        store: The cache, by default the user's.
        patience: When to give up on servers.
    """

    settings: IndexSettings | None = None
    store: Store | None = None
    patience: Patience = field(default_factory=Patience)

    def read_settings(self) -> IndexSettings:
        """The settings; read anew each time if they are the user's.

        Raises:
            ConfigError: The user's can't be read.
            UsageError: A variable of the user's says something that it may not say.
        """
        return self.settings or read_settings()

    def find_store(self) -> Store:
        """The cache."""
        return self.store or default_store()

    def entry(self, pin: BasePin) -> Entry:
        """The place of a pinned file in the cache."""
        return self.find_store().entry(pin.file, pin.sha256)


USUAL = Access()
"""The user's own settings and cache, with the usual patience."""
