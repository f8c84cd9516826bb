"""Partition expiration: drops partitions by their age.

Source:
    Paimon ``core:operation/NormalPartitionExpire.java``, ``core:partition/PartitionValuesTimeExpireStrategy.java``,
    ``PartitionUpdateTimeExpireStrategy.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.clocks import local_now
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.layout import partition_dir
from penstock.format.snapshot import CommitKind
from penstock.options import LayoutOptions, PartitionExpireOptions, PartitionExpireStrategy
from penstock.table.commit.cleanup import commit_or_discard
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.read.scan import check_index_files, plan_scan
from penstock.table.ref import FileLocator
from penstock.table.times import partition_time_parser, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.read.scan import ScanPartition
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredPartition:
    """A partition to drop.

    Attributes:
        directory: such as ``dt=2026-01-01/hour=5``.
        time: the time that its age is counted from; a wall clock time without a zone.
        rows: number of rows in its live files.
        bytes: size of its live files.
        entries: its live files.
    """

    directory: str
    time: datetime
    rows: int
    bytes: int
    entries: tuple[ManifestEntry, ...]


def find_expired_partitions(
    ref: TableRef,
    store: MetadataStore,
    *,
    options: PartitionExpireOptions | None = None,
    now: Callable[[], datetime] = local_now,
) -> tuple[ExpiredPartition, ...]:
    """Find the partitions that are older than ``partition.expiration-time``, the oldest first.

    Args:
        options: None for those of the table.
        now: wall clock of this machine's zone; partition values are taken as times in that zone.

    Returns:
        At most ``partition.expiration-max-num`` partitions.
    """
    options = options or ref.parsed(PartitionExpireOptions)
    if options.expiration_time_ms is None or not ref.schema.partition_keys:
        raise InvalidOptionError(
            f"table {ref.name}: partitions expire where a partitioned table has the option "
            "'partition.expiration-time', such as '7 d'"
        )
    layout = ref.parsed(LayoutOptions)
    try:
        cutoff = now().replace(tzinfo=None) - timedelta(milliseconds=options.expiration_time_ms)
    except OverflowError:
        return ()  # it lies before all times that partitions can have
    time_of = _time_of(ref, options, cutoff)
    found = []
    snapshot = store.load_latest_snapshot()
    check_index_files(store, snapshot)
    for partition in plan_scan(store, ref, snapshot, with_vectors=True).partitions:
        time = time_of(partition)
        if time is not None and time < cutoff:
            found.append(
                ExpiredPartition(
                    directory=partition_dir(
                        ref.schema.partition_fields,
                        partition.values,
                        default_name=layout.default_partition_name,
                        legacy_name=layout.legacy_partition_name,
                    ),
                    time=time,
                    rows=sum(entry.file.row_count for entry in partition.entries),
                    bytes=sum(entry.file.file_size for entry in partition.entries),
                    entries=tuple(partition.entries),
                )
            )
    return tuple(sorted(found, key=lambda each: each.time)[: options.max_num])


def drop_expired_partitions(
    committer: TableCommitter, partitions: Sequence[ExpiredPartition], *, batch_size: int | None = None
) -> int:
    """Drop the files that the partitions had when they were found; rows written since are kept.

    Args:
        batch_size: number of partitions that one snapshot drops; None for all in one snapshot.

    Returns:
        The number of snapshots made.

    Raises:
        CommitConflictError: another commit has replaced some of the files; call ``find_expired_partitions`` again.
    """
    count = 0
    for first in range(0, len(partitions), batch_size or max(1, len(partitions))):
        batch = partitions[first : first + (batch_size or len(partitions))]
        request = CommitRequest(
            commit_user=new_commit_user(committer.options.user_prefix),
            kind=CommitKind.OVERWRITE,
            messages=tuple(_deletions(entry for partition in batch for entry in partition.entries)),
        )
        count += commit_or_discard(committer, request) is not None
    return count


def _time_of(
    ref: TableRef, options: PartitionExpireOptions, cutoff: datetime
) -> Callable[[ScanPartition], datetime | None]:
    if options.strategy is PartitionExpireStrategy.UPDATE_TIME:
        locator = FileLocator.of(ref)
        return lambda partition: _update_time(partition.entries, locator, ref.file_io, cutoff)
    if options.strategy is PartitionExpireStrategy.CUSTOM:
        raise UnsupportedFeatureError(
            f"table {ref.name}: option 'partition.expiration-strategy' = 'custom' names a Java class; take values-time "
            "or update-time, or expire its partitions with Java"
        )
    parse = partition_time_parser(
        ref.schema.partition_fields,
        pattern=options.timestamp_pattern,
        formatter=options.timestamp_formatter,
        table=ref.name,
    )
    return lambda partition: parse(partition.values)


def _update_time(
    entries: Sequence[ManifestEntry], locator: FileLocator, file_io: FileIO, cutoff: datetime
) -> datetime | None:
    """Return when a partition last changed; None if that is not known.

    A merged or sorted file has the creation time of its oldest input. So if a partition looks old by the creation
    times, the storage's modification times decide, which are never before the rows were written. (The reference gives
    such files the current time.)
    """
    created = [entry.file.creation_millis for entry in entries]
    known = [millis for millis in created if millis is not None]
    if not known or len(known) < len(created):
        return None
    # Creation times are wall clock times of the writer, as ``now`` is a wall clock time of this process.
    newest = wall_clock(max(known), UTC)
    if newest is None or newest >= cutoff:
        return newest
    stored = _stored_millis(entries, locator, file_io)
    stored_time = None if stored is None else wall_clock(stored, None)
    return None if stored_time is None else max(newest, stored_time)


def _stored_millis(entries: Sequence[ManifestEntry], locator: FileLocator, file_io: FileIO) -> int | None:
    """Return the latest modification time of the files, ms since 1970-01-01 UTC; None if one of them has none."""
    paths = {locator.path(entry.partition, entry.bucket, entry.file) for entry in entries}
    names = {path.rpartition("/")[2] for path in paths}
    found = [
        status.modified_millis
        for directory in {path.rpartition("/")[0] for path in paths}
        for status in file_io.list(directory)
        if status.name in names
    ]
    return None if len(found) < len(names) or 0 in found else max(found)


def _deletions(entries: Iterable[ManifestEntry]) -> Iterable[CommitMessage]:
    for entry in entries:
        yield CommitMessage(
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            compact_before=(entry.file,),
        )
