"""Tags: names for snapshots, whose files expiration then retains.

Source:
    Paimon ``core:utils/TagManager.java``; docs/spec/format.md section 3.2, docs/spec/commit.md section 7.2.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.clocks import EPOCH, local_now, utc_millis
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError, TableStoreError
from penstock.format.layout import tag_path, tag_success_path
from penstock.format.tag import Tag, encode_tag
from penstock.io.settings import flush
from penstock.options import TagOptions, parse_duration_ms
from penstock.table.commit.announced import is_expiring
from penstock.table.success import write_success

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def create_tag(
    store: MetadataStore,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained: str | None = None,
    options: TagOptions | None = None,
    now: Callable[[], datetime] = local_now,
) -> Tag:
    """Create a tag for a snapshot.

    Args:
        snapshot_id: None for the latest.
        time_retained: such as ``7 d``; None for what the options say, or for ever.
        options: of the table; None for the defaults.
        now: local wall clock as if it were UTC.

    Raises:
        AlreadyExistsError: the table has a tag of that name.
        InvalidOptionError: a name that is blank, all digits, or would leave the directory of tags.
        NotFoundError: there is no such snapshot, or it is about to expire.
    """
    _check_name(name, store.name)
    snapshot = store.load_latest_snapshot() if snapshot_id is None else store.load_snapshot(snapshot_id)
    if snapshot is None:
        raise NotFoundError(f"table {store.name} has no snapshot to tag; append to it first")
    options = options or TagOptions()
    retained_ms = options.default_time_retained_ms if time_retained is None else parse_duration_ms(time_retained)
    tag = new_tag(snapshot, retained_ms, now=now)
    if not put_tag(store, name, tag, options):
        raise AlreadyExistsError(
            f"table {store.name} has a tag '{name}' already; delete it first, or choose another name"
        )
    return tag


def new_tag(snapshot: Snapshot, retained_ms: int | None, *, now: Callable[[], datetime] = local_now) -> Tag:
    """Return a tag of a snapshot.

    Args:
        retained_ms: None for ever.
        now: local wall clock as if it were UTC.
    """
    if retained_ms is None:
        return Tag(snapshot=snapshot)
    micros = (now() - EPOCH) // timedelta(microseconds=1)
    return Tag(snapshot=snapshot, create_time=micros * 1000, retained_seconds=Decimal(retained_ms) / 1000)


def put_tag(store: MetadataStore, name: str, tag: Tag, options: TagOptions) -> bool:
    """Create a tag, and its success file if the options ask for one; False when the name is taken.

    Raises:
        NotFoundError: the snapshot's files are being deleted; there is no such tag then.
    """
    if not _put(store, name, encode_tag(tag)):
        return False
    if is_expiring(store, tag.snapshot.id):
        store.file_io.delete(tag_path(store.location, name))
        raise NotFoundError(
            f"table {store.name}: snapshot {tag.snapshot.id} is about to expire, its files are being deleted: tag a "
            "later one, and keep snapshots longer ('snapshot.time-retained') where they are to be tagged"
        )
    note_tag(store, name, options)
    return True


def note_tag(store: MetadataStore, name: str, options: TagOptions) -> None:
    """Write the success file of a tag, if the options ask for one."""
    if options.create_success_file:
        write_success(store.file_io, tag_success_path(store.location, name), utc_millis())


def _put(store: MetadataStore, name: str, data: bytes) -> bool:
    path = tag_path(store.location, name)
    try:
        return store.file_io.put_if_absent(path, data)
    except StorageError:
        # Only the answer may have been lost. Another writer's tag of the same name and bytes is as good.
        with suppress(TableStoreError):
            if store.file_io.read(path) == data:
                flush(store.file_io, [path], root=store.location)  # or this is what failed
                return True
        raise


def _check_name(name: str, table: str) -> None:
    if not name.strip() or "/" in name or name in {".", ".."}:
        raise InvalidOptionError(f"table {table}: '{name}' is no name for a tag: it is blank or a path")
    if name.isdecimal():
        # Paimon refuses these too: a time travel to such a name could mean the snapshot id.
        raise InvalidOptionError(f"table {table}: tag '{name}' would read like a snapshot id; put a letter into it")
