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
from penstock.format.file_name import check_length
from penstock.format.tag import Tag, encode_tag
from penstock.options import TagOptions, parse_duration_ms
from penstock.table.commit.announced import is_expiring
from penstock.table.success import write_success
from penstock.table.tags.reader import TagReader

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
        snapshot_id: None for the latest; the snapshot of another tag may have expired.
        time_retained: such as ``7 d``; None for the table's option, or forever if it is not set.
        options: of the table; None for the defaults.
        now: local wall clock as if it were UTC.

    Raises:
        AlreadyExistsError: the table has a tag of that name.
        InvalidOptionError: a name that is blank, all digits, or would leave the directory of tags.
        NotFoundError: there is no such snapshot, or it is about to expire.
    """
    check_tag_name(name, store.name)
    options = options or TagOptions()
    tag = tag_of(store, snapshot_id, time_retained, options, now=now)
    if not put_tag(store, name, tag, options):
        raise AlreadyExistsError(
            f"table {store.name} has a tag '{name}' already; delete it first, or choose another name"
        )
    return tag


def tag_of(
    store: MetadataStore,
    snapshot_id: int | None,
    time_retained: str | None,
    options: TagOptions,
    *,
    now: Callable[[], datetime] = local_now,
) -> Tag:
    """Return a tag of a snapshot, which is not written yet; for the arguments see ``create_tag``.

    Raises:
        NotFoundError: there is no such snapshot, and no tag of it.
        InvalidOptionError: ``time_retained`` is not a duration.
    """
    snapshot = store.load_latest_snapshot() if snapshot_id is None else _find_snapshot(store, snapshot_id)
    if snapshot is None:
        raise NotFoundError(f"table {store.name} has no snapshot to tag; append to it first")
    retained_ms = options.default_time_retained_ms if time_retained is None else parse_duration_ms(time_retained)
    return new_tag(snapshot, retained_ms, now=now)


def _find_snapshot(store: MetadataStore, snapshot_id: int) -> Snapshot:
    """Load a snapshot; one that has expired is taken from a tag of it."""
    found = store.find_snapshot(snapshot_id)
    if found is None:
        found = next((each for each in tagged_snapshots(store) if each.id == snapshot_id), None)
    return store.load_snapshot(snapshot_id) if found is None else found


def tagged_snapshots(store: MetadataStore) -> list[Snapshot]:
    """Return the snapshots that have tags, by their ids."""
    found = {tag.snapshot.id: tag.snapshot for tag in TagReader(store.file_io, store.location).load().values()}
    return [found[each] for each in sorted(found)]


def new_tag(snapshot: Snapshot, retained_ms: int | None, *, now: Callable[[], datetime] = local_now) -> Tag:
    """Return a tag of a snapshot.

    Args:
        retained_ms: None for no limit.
        now: local wall clock as if it were UTC.
    """
    if retained_ms is None:
        return Tag(snapshot=snapshot)
    micros = (now() - EPOCH) // timedelta(microseconds=1)
    return Tag(snapshot=snapshot, create_time=micros * 1000, retained_seconds=Decimal(retained_ms) / 1000)


def put_tag(store: MetadataStore, name: str, tag: Tag, options: TagOptions) -> bool:
    """Create a tag, and its success file if the options require one; False if the name is taken.

    Raises:
        NotFoundError: the snapshot's files are being deleted, and no other tag retains them; the tag is not created.
    """
    if not _put(store, name, encode_tag(tag)):
        return False
    if not is_kept(store, name, tag.snapshot.id):
        store.file_io.delete(store.layout.tag_path(name))
        raise NotFoundError(
            f"table {store.name}: snapshot {tag.snapshot.id} is about to expire, its files are being deleted: tag a "
            "later one, and keep snapshots longer ('snapshot.time-retained') where they are to be tagged"
        )
    note_tag(store, name, options)
    return True


def is_kept(store: MetadataStore, name: str, snapshot_id: int) -> bool:
    """Whether no expiration may delete the files of a snapshot that has just got a tag of this name.

    An expired snapshot keeps its files as long as it has another tag, which must still exist after the new tag was
    created.
    """
    if not is_expiring(store, snapshot_id):
        return True
    tags = TagReader(store.file_io, store.location).load()
    return any(other != name and tag.snapshot.id == snapshot_id for other, tag in tags.items())


def rename_tag(store: MetadataStore, name: str, new_name: str, options: TagOptions) -> None:
    """Rename a tag; its snapshot, its age and its retention are unchanged.

    The new name is created before the old one is deleted, so the snapshot always has one of them.

    Raises:
        NotFoundError: there is no such tag.
        AlreadyExistsError: the table has a tag of the new name.
        InvalidOptionError: the new name is blank, all digits, or would leave the directory of tags.
    """
    check_tag_name(new_name, store.name)
    tag = store.load_tag(name)
    if not _put(store, new_name, encode_tag(tag)):
        raise AlreadyExistsError(
            f"table {store.name} has a tag '{new_name}' already; delete it first, or choose another name"
        )
    note_tag(store, new_name, options)
    store.file_io.delete(store.layout.tag_path(name))
    if options.create_success_file:
        store.file_io.delete(store.layout.tag_success_path(name))


def note_tag(store: MetadataStore, name: str, options: TagOptions) -> None:
    """Write the success file of a tag, if the options require one."""
    if options.create_success_file:
        write_success(store.file_io, store.layout.tag_success_path(name), utc_millis())


def _put(store: MetadataStore, name: str, data: bytes) -> bool:
    path = store.layout.tag_path(name)
    try:
        return store.file_io.put_if_absent(path, data)
    except StorageError:
        # Only the response may have been lost. Another writer's tag with the same name and content is equivalent.
        with suppress(TableStoreError):
            if store.file_io.read(path) == data:
                store.file_io.flush([path], root=store.location)  # or this read failed
                return True
        raise


def check_tag_name(name: str, table: str) -> None:
    """Check that a tag may have this name. Raises ``InvalidOptionError``."""
    if not name.strip() or "/" in name or name in {".", ".."}:
        raise InvalidOptionError(f"table {table}: '{name}' is not a valid name for a tag: it is blank or a path")
    if name.isdecimal():
        # Paimon refuses these too: a time travel to such a name could mean the snapshot id.
        raise InvalidOptionError(f"table {table}: tag '{name}' looks like a snapshot id; put a letter into it")
    check_length(name, f"table {table}: a tag")
