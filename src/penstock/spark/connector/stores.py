"""Metadata stores that queries share, so that the next query of a table need not decode its manifests again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Hashable

    from penstock.table.ref import TableRef

# A store holds up to 100 MB of manifest entries.
_MOST_TABLES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStore:
    """A store of a table.

    Attributes:
        lock: held while manifests are loaded, because stores are not thread-safe.
    """

    store: MetadataStore
    lock: threading.RLock = field(default_factory=threading.RLock)


_STORES: Final[OrderedDict[Hashable, SharedStore]] = OrderedDict()
_LOCK: Final = threading.Lock()


def shared_store(ref: TableRef, identity: str) -> SharedStore:
    """Return the store of a table for all queries of this process.

    Manifests have unique names and never change, so cached ones stay valid.

    Args:
        identity: from ``load_identity``; a table that was recreated at the same location has another identity, and
            another store.
    """
    key = (ref.file_io, ref.location, identity, ref.limits)
    with _LOCK:
        found = _STORES.pop(key, None) or SharedStore(store=MetadataStore(ref))
        _STORES[key] = found
        while len(_STORES) > _MOST_TABLES:
            _STORES.popitem(last=False)
    return found
