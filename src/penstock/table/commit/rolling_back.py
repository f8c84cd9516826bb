"""The mark of a running rollback: no snapshot expires while it exists.

A rollback creates a file ``.penstock/rolling-back-...`` and then reads the announcements of expirations. An expiration
writes its announcement and then lists such files. So either the expiration sees the mark and deletes nothing, or the
rollback sees that its target is about to expire. An expiration that lists the files after a rollback has ended finds
that the first snapshot that it keeps, or its announcement, is gone. See design/0027.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import NotFoundError, StorageError
from penstock.format.hint import encode_hint
from penstock.table.commit.announced import is_announced, lower_announcement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore

# Older marks are ignored: their rollbacks were killed. A rollback that is paused for longer than this, while an
# expiration runs, can harm the table.
_LONGEST_MS: Final = 86_400_000


@contextmanager
def rolling_back(store: MetadataStore, target: Snapshot, *, is_recreated: bool) -> Iterator[None]:
    """Keep snapshots from expiring while the block runs a rollback.

    Args:
        is_recreated: whether the target has expired and a tag has kept its files.

    Raises:
        NotFoundError: the target is about to expire; nothing was changed.
        StorageError: the storage failed.
    """
    path = store.layout.rolling_back_path(uuid.uuid4().hex)
    store.file_io.write(path, encode_hint(target.id))
    try:
        if not is_recreated:
            _check_stays(store, target)
        yield
        # An expiration that has announced a higher id has seen the mark and deletes nothing.
        lower_announcement(store, target.id)
    except BaseException:
        with suppress(StorageError):
            store.file_io.delete(path)
        raise
    store.file_io.delete(path)  # an error must reach the caller: if the mark remains, nothing expires for a day


def _check_stays(store: MetadataStore, target: Snapshot) -> None:
    if is_announced(store, target.id):
        raise NotFoundError(
            f"table {store.name}: snapshot {target.id} is about to expire, its files are being deleted; nothing was "
            "changed: roll back to a later one; or to a tag, when the expiration is over"
        )


def is_rolling_back(store: MetadataStore) -> bool:
    """Whether a rollback runs. Raises ``StorageError``."""
    prefix = store.layout.rolling_back_path("")
    limit = utc_millis() - _LONGEST_MS
    return any(
        status.path.startswith(prefix) and not 0 < status.modified_millis < limit
        for status in store.file_io.list(store.layout.own_directory)
    )
