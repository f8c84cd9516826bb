"""Changing the number of buckets of a queue: each partition is rewritten, reading its rows bucket by bucket in order.

Rows with the same bucket key are in one bucket before and after, so they keep their order.

Source:
    Paimon ``flink:action/RescaleAction.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import CommitConflictError
from penstock.format.snapshot import CommitKind
from penstock.options import BucketOptions
from penstock.table.actions.rewriting import as_replacement, for_existing_rows
from penstock.table.assumptions import at_latest_schema
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.partition_scope import WrittenPartitions
from penstock.table.read.batches import DeletedRows, open_batches
from penstock.table.read.scan import plan_scan
from penstock.table.ref import FileLocator
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.read.scan import ScanPlan

_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaledPartition:
    """A partition whose files had another number of buckets.

    Attributes:
        directory: such as ``dt=2026-01-01``; empty for a table without partitions.
        snapshot: the snapshot that replaced its files; None in a dry run.
    """

    directory: str
    buckets_before: int
    rows: int
    snapshot: Snapshot | None


def rescale_partitions(
    committer: TableCommitter, *, buckets: int, wanted: Callable[[bytes], bool], dry_run: bool = False
) -> Iterator[RescaledPartition]:
    """Rewrite the partitions whose files have another number of buckets, each in a separate commit.

    Args:
        committer: of the table with its current schema, whose option ``bucket`` is ``buckets``.
        wanted: whether to rewrite a partition, given its serialized values.

    Raises:
        CommitConflictError: others committed to the table at every attempt to rewrite a partition.
        TableStoreError: as ``TableCommitter.commit``; no new files are left. Partitions that were yielded remain
            rewritten, and calling this again continues.
    """
    ref, locator = committer.ref, FileLocator.of(committer.ref)
    plan = _plan(committer, committer.store.load_latest_snapshot())
    deleted = DeletedRows(ref)
    for each in plan.partitions:
        if all(entry.total_buckets == buckets for entry in each.entries):
            continue
        if not wanted(each.data):
            continue
        directory = locator.partition_label(each.data)
        before = each.entries[0].total_buckets
        snapshot = None if dry_run else _rewrite(committer, each.data, buckets)
        vectors = [plan.vectors[entry.key] for entry in each.entries if entry.key in plan.vectors]
        rows = sum(entry.file.row_count for entry in each.entries) - sum(map(deleted.count_of, vectors))
        yield RescaledPartition(
            directory=directory if ref.schema.partition_keys else "",
            buckets_before=before,
            rows=rows,
            snapshot=snapshot,
        )


def _plan(committer: TableCommitter, snapshot: Snapshot | None) -> ScanPlan:
    return plan_scan(committer.store, committer.ref, snapshot, with_vectors=True)


def _rewrite(committer: TableCommitter, partition: bytes, buckets: int) -> Snapshot | None:
    """Rewrite a partition; repeat it if others committed meanwhile."""
    for number in range(_TRIES):
        snapshot = committer.store.load_latest_snapshot()
        # Loaded after the snapshot, so the schema is not older than that of any of its files.
        ref = at_latest_schema(committer.ref, committer.store)
        if ref.parsed(BucketOptions).bucket != buckets:
            raise CommitConflictError(
                f"table {ref.name}: others have set 'bucket' = '{ref.parsed(BucketOptions).bucket}' while it was "
                f"rescaled to {buckets}; partitions that were rewritten remain so: repeat it with the number that you "
                "want"
            )
        plan = _plan(committer, snapshot)
        found = tuple(each for each in plan.partitions if each.data == partition)
        if not found or all(entry.total_buckets == buckets for entry in found[0].entries):
            return None  # another process has dropped or rewritten it
        files = tuple(entry.file for entry in found[0].entries)
        rows = open_batches(for_existing_rows(ref), committer.store, replace(plan, partitions=found))
        messages = write_arrow(for_existing_rows(ref, keep_lengths=False), rows)
        try:
            return committer.commit(
                CommitRequest(
                    commit_user=new_commit_user(committer.options.user_prefix),
                    kind=CommitKind.OVERWRITE,
                    messages=tuple(
                        replace(message, new_files=as_replacement(ref, files, message.new_files))
                        for message in messages
                    )
                    or tuple(map(_removal, found[0].entries)),
                    # If deletion vectors have left no row, nothing is written.
                    scope=WrittenPartitions() if messages else None,
                    has_read=True,
                    read=snapshot,
                )
            )
        except CommitConflictError:
            delete_new_files(committer.ref, messages)
            if number == _TRIES - 1:
                raise
        except BaseException:
            if not committer.may_be_committed:
                delete_new_files(committer.ref, messages)
            raise
    return None


def _removal(entry: ManifestEntry) -> CommitMessage:
    return CommitMessage(
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        compact_before=(entry.file,),
    )
