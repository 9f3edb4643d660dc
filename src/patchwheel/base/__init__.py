"""The base of a build: which published files it consists of, and how to get exactly these.

`lock_base` writes what a release consists of into ``manifests/bases.lock.toml``, `pin_base` chooses the wheel
that a recipe builds on, and `open_base` opens it: from the recipe's path, the cache, or any index that the
user has set up, verified by sha256 every time. `peek_base` reads parts of it, also from a server, for a plan
that touches nothing.
"""

from patchwheel.base.access import Access
from patchwheel.base.fetch import fetch_base, find_cached_base, open_base, peek_base
from patchwheel.base.lock import BasesLock, LockedBase, LockedFile, LockedWheel, load_lock, write_lock
from patchwheel.base.locking import lock_base
from patchwheel.base.patience import Patience
from patchwheel.base.pin import BasePin, pin_base, pin_sdist
from patchwheel.base.settings import IndexSettings, read_settings, redact
from patchwheel.base.store import Store, default_store
from patchwheel.base.variant import read_variant

__all__ = [
    "Access",
    "BasePin",
    "BasesLock",
    "IndexSettings",
    "LockedBase",
    "LockedFile",
    "LockedWheel",
    "Patience",
    "Store",
    "default_store",
    "fetch_base",
    "find_cached_base",
    "load_lock",
    "lock_base",
    "open_base",
    "peek_base",
    "pin_base",
    "pin_sdist",
    "read_settings",
    "read_variant",
    "redact",
    "write_lock",
]
