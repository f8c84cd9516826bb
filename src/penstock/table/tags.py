"""Tags: names for snapshots, which expiration then spares.

Source:
    Paimon ``core:utils/TagManager.java``; spec/format.md section 3.2, spec/commit.md section 7.2.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError, TableStoreError
from penstock.options import parse_duration_ms
from penstock.spec.layout import tag_path
from penstock.spec.tag import Tag, encode_tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.store import MetadataStore

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local_now() -> datetime:
    """Wall clock of this machine's zone, taken as if it were UTC: how the format stores creation times."""
    return datetime.now().astimezone().replace(tzinfo=UTC)


def create_tag(
    store: MetadataStore,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained: str | None = None,
    now: Callable[[], datetime] = local_now,
) -> Tag:
    """Give a snapshot a name.

    Args:
        snapshot_id: None for the latest.
        time_retained: such as ``7 d``; None for ever.
        now: local wall clock as if it were UTC.

    Raises:
        AlreadyExistsError: the table has a tag of that name.
        InvalidOptionError: a name that is blank, all digits, or would leave the directory of tags.
        NotFoundError: there is no such snapshot.
    """
    _check_name(name, store.name)
    snapshot = store.load_latest_snapshot() if snapshot_id is None else store.load_snapshot(snapshot_id)
    if snapshot is None:
        raise NotFoundError(f"table {store.name} has no snapshot to tag; append to it first")
    tag = Tag(snapshot=snapshot)
    if time_retained is not None:
        seconds = Decimal(parse_duration_ms(time_retained)) / 1000
        since_epoch = now() - _EPOCH
        micros = (since_epoch.days * 86_400 + since_epoch.seconds) * 1_000_000 + since_epoch.microseconds
        tag = Tag(snapshot=snapshot, create_time=micros * 1000, retained_seconds=seconds)
    if not _put(store, name, encode_tag(tag)):
        raise AlreadyExistsError(
            f"table {store.name} has a tag '{name}' already; delete it first, or choose another name"
        )
    return tag


def _put(store: MetadataStore, name: str, data: bytes) -> bool:
    path = tag_path(store.location, name)
    try:
        return store.file_io.put_if_absent(path, data)
    except StorageError:
        # Only the answer may have been lost. Somebody else's tag of the same name and bytes serves as well.
        with suppress(TableStoreError):
            if store.file_io.read(path) == data:
                return True
        raise


def _check_name(name: str, table: str) -> None:
    if not name.strip() or "/" in name or name in {".", ".."}:
        raise InvalidOptionError(f"table {table}: '{name}' is no name for a tag: it is blank or a path")
    if name.isdecimal():
        # Paimon refuses these too: a time travel to such a name could mean the snapshot id.
        raise InvalidOptionError(f"table {table}: tag '{name}' would read like a snapshot id; put a letter into it")
