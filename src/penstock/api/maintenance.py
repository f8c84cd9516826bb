"""Maintenance of a table: it changes no rows, only how they are stored and how long they are retained."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from penstock.api.arguments import (
    FLAG,
    INTEGER,
    MAPPING,
    MAPPINGS,
    NONE,
    NUMBER,
    TEXT,
    Options,
    accepts,
    encode_options,
    one_of,
)
from penstock.api.handle import TableMethods
from penstock.api.lazy import lazy_spark
from penstock.catalog.changes import SetOption
from penstock.catalog.checks.features import check_writable
from penstock.catalog.place import TablePlace, alter_place
from penstock.errors import InvalidOptionError
from penstock.options import BucketOptions, CommitOptions, CompactOptions, PartitionExpireOptions, check_keys
from penstock.table.actions.changes import open_committer
from penstock.table.actions.manifests import ManifestCompaction, compact_manifests
from penstock.table.actions.missing_files import (
    MissingFile,
    MissingManifest,
    drop_missing_files,
    drop_missing_manifests,
    find_missing_files,
    find_missing_manifests,
)
from penstock.table.actions.rescale import RescaledPartition, rescale_partitions
from penstock.table.assumptions import at_latest_schema
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one
from penstock.table.compact.local import for_compaction
from penstock.table.compact.plan import check_compactable
from penstock.table.expire.partitions import ExpiredPartition, drop_expired_partitions, find_expired_partitions
from penstock.table.mark_done.trigger import mark_due_partitions, mark_named_partitions
from penstock.table.partition_scope import partition_of_spec
from penstock.table.stream.consumers import ConsumerReset, clear_consumers, delete_consumer, reset_consumer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.mark_done.marks import DonePartition
    from penstock.table.ref import TableRef


def _nothing() -> None:
    pass


class TableMaintenance(TableMethods):
    """Consumers, partitions, buckets, and repair of metadata: ``table.maintenance``."""

    # Consumers

    @accepts(consumer_id=TEXT, next_snapshot=INTEGER | one_of("earliest", "latest"), dry_run=FLAG)
    def reset_consumer(
        self, consumer_id: str, next_snapshot: int | Literal["earliest", "latest"], *, dry_run: bool = False
    ) -> ConsumerReset:
        """Move a consumer to a snapshot, forwards or backwards; creates the consumer if it does not exist.

        Args:
            next_snapshot: the first snapshot that it reads, from the earliest to the one after the latest; ``latest``
                means the one after the latest.
            dry_run: only check the arguments.

        Returns:
            The new and the previous position.

        Raises:
            NotFoundError: that snapshot has expired, or is later than the one after the latest.
            LeaseHeldError: a query uses this consumer.
        """
        return reset_consumer(self._handle.checked_store, consumer_id, next_snapshot, dry_run=dry_run)

    @accepts(consumer_id=TEXT, dry_run=FLAG)
    def delete_consumer(self, consumer_id: str, *, dry_run: bool = False) -> None:
        """Delete a consumer, so that snapshots that it has not read can expire.

        Args:
            dry_run: only check that it exists.

        Raises:
            NotFoundError: there is no such consumer.
            LeaseHeldError: a query uses it.
        """
        delete_consumer(self._handle.checked_store, consumer_id, dry_run=dry_run)

    @accepts(including=TEXT, excluding=TEXT | NONE)
    def clear_consumers(self, including: str = ".*", excluding: str | None = None) -> tuple[str, ...]:
        """Delete the consumers whose whole id matches a regular expression.

        Args:
            excluding: keep consumers that match this expression.

        Returns:
            Ids of the deleted consumers.

        Raises:
            LeaseHeldError: queries use some of them; the others are deleted.
            InvalidOptionError: an invalid regular expression.
        """
        try:
            include, exclude = re.compile(including), None if excluding is None else re.compile(excluding)
        except re.error as error:
            raise InvalidOptionError(
                f"table {self._handle.name}: '{error.pattern!s}' is not a regular expression for consumers: {error}"
            ) from None
        return clear_consumers(self._handle.checked_store, include, exclude)

    # Compaction

    @accepts(threads=INTEGER | NONE, idle_seconds=NUMBER)
    def compact_in_background(
        self,
        spark: SparkSession | None = None,
        *,
        options: Options | None = None,
        threads: int | None = None,
        idle_seconds: float = 10.0,
    ) -> BackgroundCompactor:
        """Return a compactor that merges small files while others write to the table, between ``start`` and ``stop``.

        Args:
            spark: merge on its executors; None to merge in this process.
            options: of this job, as for ``compact``.
            threads: concurrent merges; None for the option ``penstock.compaction.max-tasks``, or one fewer than there
                are cores if it is not set.
            idle_seconds: wait after a check that found nothing to do.

        Raises:
            UnsupportedFeatureError: as ``compact``.
        """
        encoded = encode_options(options)
        check_keys(encoded, table=self._handle.name)
        store = self._handle.checked_store
        ref = for_compaction(at_latest_schema(self._handle.ref, store), encoded)
        check_writable(ref)
        check_compactable(ref, store, store.load_latest_snapshot())
        limit = threads or ref.parsed(CompactOptions).max_tasks
        merge: Callable[[CompactTask, TableRef], MergedFiles] = merge_one
        cancel, cores = _nothing, os.cpu_count() or 1
        if spark is not None:
            lazy_spark.ensure_python_worker(spark)
            merger = lazy_spark.SparkMerger(spark=spark, ref=ref)
            merge, cancel = merger.merge_at, merger.cancel
            cores = spark.sparkContext.defaultParallelism
        return BackgroundCompactor(
            ref,
            merge,
            commit_user=new_commit_user(ref.parsed(CommitOptions).user_prefix),
            max_tasks=limit or max(1, cores - 1),
            idle_seconds=idle_seconds,
            cancel=cancel,
        )

    # Partitions, buckets and metadata

    @accepts(expiration_time=TEXT | NONE, dry_run=FLAG)
    def expire_partitions(
        self, *, expiration_time: str | None = None, dry_run: bool = False
    ) -> tuple[ExpiredPartition, ...]:
        """Drop the partitions that are older than ``partition.expiration-time``, the oldest first.

        The options ``partition.expiration-strategy``, ``partition.timestamp-pattern`` and
        ``partition.timestamp-formatter`` determine the age of a partition; a partition whose values are not a time is
        kept. At most ``partition.expiration-max-num`` are dropped. Rows that are added to them meanwhile are kept.

        Args:
            expiration_time: such as ``7 d``; None for the option.
            dry_run: only return them.

        Raises:
            InvalidOptionError: no expiration time, no partition columns, or a pattern that does not fit them.
            CommitConflictError: others replaced some of the files meanwhile; repeat the call.
        """
        check_writable(self._handle.ref)
        overrides = {} if expiration_time is None else {"partition.expiration-time": expiration_time}
        options = PartitionExpireOptions.parse(self._handle.ref.options, overrides, table=self._handle.name)
        expired = find_expired_partitions(self._handle.ref, self._handle.checked_store, options=options)
        if not dry_run:
            committer = open_committer(self._handle.ref, self._handle.store, adds_rows=False)
            drop_expired_partitions(committer, expired, batch_size=options.batch_size)
        return expired

    @accepts(dry_run=FLAG)
    def compact_manifests(self, *, dry_run: bool = False) -> ManifestCompaction:
        """Merge manifests that are small or contain entries of deleted files; commits merge fewer at a time.

        Args:
            dry_run: only count them.
        """
        check_writable(self._handle.ref)
        return compact_manifests(
            open_committer(self._handle.ref, self._handle.checked_store, adds_rows=False), dry_run=dry_run
        )

    @accepts(dry_run=FLAG)
    def remove_missing_files(self, *, dry_run: bool = True) -> tuple[MissingFile, ...]:
        """Find data files of the latest snapshot that are missing on storage, and remove them unless ``dry_run``.

        Their rows are lost then, and the other rows can be read again. Before that, try to restore the files from a
        snapshot or a backup.

        Args:
            dry_run: only return them.

        Raises:
            StorageError: a directory cannot be listed.
            CommitConflictError: another commit has replaced one of them meanwhile; repeat the call.
        """
        check_writable(self._handle.ref)
        missing = find_missing_files(self._handle.ref, self._handle.checked_store)
        if not dry_run:
            drop_missing_files(open_committer(self._handle.ref, self._handle.store, adds_rows=False), missing)
        return missing

    @accepts(dry_run=FLAG)
    def remove_missing_manifests(self, *, dry_run: bool = True) -> tuple[MissingManifest, ...]:
        """Find manifests of the latest snapshot that are missing on storage, and remove them unless ``dry_run``.

        A new snapshot makes the latest state readable again: without the rows of files that only these manifests had
        added, but again with those of files that they had deleted, for example by a compaction. Older snapshots are not
        changed. Before that, try to restore the manifests from a backup.

        Args:
            dry_run: only return them.

        Raises:
            NotFoundError: a manifest list is missing, which only a rollback to an older snapshot can repair.
            CommitConflictError: others committed at every attempt; repeat the call.
        """
        check_writable(self._handle.ref)
        if dry_run:
            return find_missing_manifests(self._handle.checked_store)
        return drop_missing_manifests(open_committer(self._handle.ref, self._handle.checked_store, adds_rows=False))

    @accepts(buckets=INTEGER | NONE, partition=MAPPING | NONE, dry_run=FLAG)
    def rescale(
        self, buckets: int | None = None, *, partition: Mapping[str, object] | None = None, dry_run: bool = False
    ) -> tuple[RescaledPartition, ...]:
        """Change the number of buckets of a queue: sets the option ``bucket``, then rewrites the partitions.

        Each partition is one commit; rows with the same bucket key keep their order, and streams that read the table
        do not deliver them again. Commits to a partition that is not rewritten yet are refused, and so are commits with
        the old number. After an interruption, repeat the call.

        Args:
            buckets: None for the current value of the option, to rewrite partitions that were written before it
                changed.
            partition: only this one, such as ``{"dt": "2026-01-01"}``; the option must already have the new number.
            dry_run: only return them.

        Returns:
            The partitions that had a different number.

        Raises:
            InvalidOptionError: the table is not a queue, or the number is below 1.
            CommitConflictError: others committed at every attempt to rewrite a partition.
        """
        check_writable(self._handle.ref)
        ref = at_latest_schema(self._handle.ref, self._handle.checked_store)
        now = ref.parsed(BucketOptions).bucket
        buckets = now if buckets is None else buckets
        if now < 1 or buckets < 1:
            raise InvalidOptionError(
                f"table {ref.name}: rescale is for queues: 'bucket' is {now}, and {buckets} buckets were asked for"
            )
        if partition is not None and buckets != now:
            raise InvalidOptionError(
                f"table {ref.name}: set 'bucket' = '{buckets}' before single partitions get that number; it is {now}"
            )
        if buckets != now and not dry_run:
            place = TablePlace(name=ref.name, location=ref.location, file_io=ref.file_io, database=None, trash="")
            altered = alter_place(place, [SetOption(key="bucket", value=str(buckets))])
            ref = replace(ref, schema=altered.schema)
        committer = open_committer(ref, self._handle.store, adds_rows=False)
        one = None if partition is None else partition_of_spec(ref, partition)
        found = rescale_partitions(
            committer, buckets=buckets, wanted=lambda data: one is None or data == one, dry_run=dry_run
        )
        return tuple(found)

    @accepts(partitions=MAPPINGS | NONE, dry_run=FLAG)
    def mark_partitions_done(
        self, partitions: Sequence[Mapping[str, object]] | None = None, *, dry_run: bool = False
    ) -> tuple[DonePartition, ...]:
        """Mark partitions done by writing the file ``_SUCCESS`` into their directories, for jobs that wait for it.

        A partition that is marked again keeps the time of its first mark. Commits do this automatically if the options
        ``partition.idle-time-to-done`` or ``partition.end-input-to-done`` are set.

        Args:
            partitions: each such as ``{"dt": "2026-01-01"}``; a spec that omits columns selects all matching
                partitions, a complete one may also select a partition without rows. None for those that are due by the
                options and have not been marked since their last rows.
            dry_run: only return them.

        Returns:
            The partitions with the times of their marks.

        Raises:
            InvalidOptionError: no partition, other columns, or values that do not fit; or with None, options that do
                not define when a partition is done.
            NotFoundError: no partition matches.
            UnsupportedFeatureError: ``partition.mark-done-action`` is not ``success-file``, or the table is read-only
                for Penstock.
        """
        check_writable(self._handle.ref)
        if partitions is None:
            return mark_due_partitions(self._handle.ref, self._handle.checked_store, dry_run=dry_run)
        return mark_named_partitions(self._handle.ref, self._handle.checked_store, partitions, dry_run=dry_run)
