"""Consumers: read positions stored in the table, which prevent unread snapshots from expiring.

Source:
    Paimon ``core:consumer/ConsumerManager.java``; docs/spec/format.md section 3.2, docs/spec/streaming.md section 7.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.clocks import utc_millis
from penstock.errors import FormatError, InvalidOptionError, LeaseHeldError, NotFoundError
from penstock.format.consumer import encode_consumer
from penstock.format.layout import consumer_id_of
from penstock.format.text.names import check_length
from penstock.table.lease import acquire, discard_lease, find_holder

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from penstock.table.lease import Lease
    from penstock.table.store import MetadataStore


def lease_of(consumer_id: str) -> str:
    """Return the name of the lease that a reader with this consumer id holds."""
    return f"consumer-{consumer_id}"


def check_consumer_id(consumer_id: str, table: str) -> None:
    """Check that a consumer id is valid."""
    if not consumer_id.strip() or "/" in consumer_id or consumer_id in {".", ".."}:
        raise InvalidOptionError(
            f"table {table}: '{consumer_id}' is not a valid name for a consumer: it is blank or a path"
        )
    check_length(consumer_id, f"table {table}: a consumer")


def record_progress(store: MetadataStore, consumer_id: str, next_snapshot: int, *, moves_back: bool = False) -> int:
    """Store how far a consumer has read; the caller holds its lease.

    The file is also written when the position does not change: its modification time shows that the consumer is alive.

    Args:
        next_snapshot: the first snapshot that is not completely delivered.
        moves_back: a reader begins there, although the stored position is later (``consumer.ignore-progress``).

    Returns:
        The stored position, which otherwise never moves back.
    """
    _check(store, consumer_id, next_snapshot)
    position = next_snapshot if moves_back else max(next_snapshot, store.load_consumer(consumer_id) or 0)
    _write(store, consumer_id, position)
    return position


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerReset:
    """What a reset does to a consumer.

    Attributes:
        previous_next_snapshot_id: None where there was no such consumer.
    """

    consumer_id: str
    next_snapshot_id: int
    previous_next_snapshot_id: int | None


def reset_consumer(
    store: MetadataStore,
    consumer_id: str,
    next_snapshot: int | Literal["earliest", "latest"],
    *,
    dry_run: bool = False,
) -> ConsumerReset:
    """Set the position of a consumer, forwards or backwards; creates the consumer if there is none.

    Args:
        next_snapshot: from the earliest snapshot to the one after the latest; ``latest`` means the one after the
            latest.
        dry_run: only check the arguments.
    """
    if next_snapshot == "earliest":
        next_snapshot = store.earliest_snapshot_id() or 1
    elif next_snapshot == "latest":
        next_snapshot = (store.latest_snapshot_id() or 0) + 1
    check_reset(store, consumer_id, next_snapshot)
    before = None
    with suppress(FormatError):  # a damaged file is replaced
        before = store.load_consumer(consumer_id)
    if not dry_run:
        with _acquire(store, consumer_id):
            _write(store, consumer_id, next_snapshot)
    return ConsumerReset(consumer_id=consumer_id, next_snapshot_id=next_snapshot, previous_next_snapshot_id=before)


def check_reset(store: MetadataStore, consumer_id: str, next_snapshot: int) -> None:
    """Check the arguments of ``reset_consumer`` without a change."""
    _check(store, consumer_id, next_snapshot)
    first, end = store.earliest_snapshot_id() or 1, (store.latest_snapshot_id() or 0) + 1
    if not first <= next_snapshot <= end:
        raise NotFoundError(
            f"table {store.name}: consumer '{consumer_id}' cannot continue at snapshot {next_snapshot}: choose one "
            "from "
            f"{first} to {end}, which is the next one"
        )


def move_consumers(store: MetadataStore, positions: range, *, to: int) -> tuple[str, ...]:
    """Set the consumers whose positions are in a range to another position, also those that queries read as.

    Such a query ends when it finds that the snapshot that it has read before is another one, or is gone.

    Returns:
        Their ids, sorted; consumers whose files are damaged are left out.
    """
    moved: list[str] = []
    for consumer_id, position in store.find_consumers(lambda _id, _error: None):
        if position in positions:
            _write(store, consumer_id, to)
            moved.append(consumer_id)
    return tuple(moved)


def delete_consumer(store: MetadataStore, consumer_id: str, *, dry_run: bool = False) -> None:
    """Delete a consumer, which then no longer prevents snapshots from expiring.

    Args:
        dry_run: only check that there is one.
    """
    check_consumer(store, consumer_id)
    if dry_run:
        return
    with _acquire(store, consumer_id):
        store.file_io.delete(store.layout.consumer_path(consumer_id))
        discard_lease(store.file_io, store.location, lease_of(consumer_id))


def clear_consumers(
    store: MetadataStore,
    including: re.Pattern[str],
    excluding: re.Pattern[str] | None = None,
    *,
    dry_run: bool = False,
) -> tuple[str, ...]:
    """Delete the consumers whose whole id matches; return their ids, sorted.

    Args:
        excluding: of those, keep the consumers whose whole id matches this.
        dry_run: only return them.
    """
    cleared: list[str] = []
    held: list[str] = []
    for consumer_id in store.list_consumers():
        is_kept = excluding is not None and excluding.fullmatch(consumer_id)
        if is_kept or not including.fullmatch(consumer_id):
            continue
        # Without waiting for the end of a lease, as ``delete_consumer`` does.
        if find_holder(store.file_io, store.location, lease_of(consumer_id)) is not None:
            held.append(consumer_id)
            continue
        with suppress(NotFoundError):  # another process has deleted it
            delete_consumer(store, consumer_id, dry_run=dry_run)
            cleared.append(consumer_id)
    if held and not dry_run:
        raise LeaseHeldError(
            f"table {store.name}: queries read as the consumers {', '.join(map(repr, held))}, which are kept: stop the "
            f"queries first; deleted were {', '.join(map(repr, cleared)) or 'none'}"
        )
    return tuple(cleared)


def check_consumer(store: MetadataStore, consumer_id: str) -> None:
    """Check that a consumer exists."""
    known = store.list_consumers()
    if consumer_id not in known:
        names = "its consumers are " + ", ".join(f"'{each}'" for each in known) if known else "it has no consumers"
        raise NotFoundError(f"table {store.name}: no consumer '{consumer_id}'; {names}")


def expire_consumers(
    store: MetadataStore, expiration_time_ms: int, *, clock: Callable[[], int] = utc_millis
) -> tuple[str, ...]:
    """Delete the consumers whose files were not written for a long time; consumers whose lease is held are kept.

    Args:
        expiration_time_ms: option ``consumer.expiration-time``; age of the file's last modification.
        clock: ms since 1970-01-01 UTC, which the storage's clock should agree with.

    Returns:
        Ids of the deleted consumers, sorted. Files without a modification time are never deleted.
    """
    limit = clock() - expiration_time_ms
    expired: list[str] = []
    for status in store.file_io.list(store.layout.consumer_directory):
        consumer_id = None if status.is_dir else consumer_id_of(status.name)
        if consumer_id is None or not 0 < status.modified_millis < limit:
            continue
        if find_holder(store.file_io, store.location, lease_of(consumer_id), clock=clock) is None:
            store.file_io.delete(status.path)
            discard_lease(store.file_io, store.location, lease_of(consumer_id))
            expired.append(consumer_id)
    return tuple(expired)


def _acquire(store: MetadataStore, consumer_id: str) -> Lease:
    return acquire(store.file_io, store.location, lease_of(consumer_id))


def _write(store: MetadataStore, consumer_id: str, next_snapshot: int) -> None:
    store.file_io.write(store.layout.consumer_path(consumer_id), encode_consumer(next_snapshot))


def _check(store: MetadataStore, consumer_id: str, next_snapshot: int) -> None:
    check_consumer_id(consumer_id, store.name)
    if next_snapshot < 1:
        raise InvalidOptionError(
            f"table {store.name}: consumer '{consumer_id}' cannot continue at snapshot {next_snapshot}: ids begin at 1"
        )
