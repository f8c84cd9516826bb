"""Maintenance of a table: it changes no rows, only how and how long they are kept."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from penstock.api.deferred import spark_entry
from penstock.api.given import Names, Options, Progress, check_classic, names_of, no_progress, texts_of
from penstock.catalog.changes import SetOption
from penstock.catalog.checks.features import check_writable
from penstock.catalog.filesystem import alter_place
from penstock.catalog.warehouse import TablePlace
from penstock.clocks import to_millis
from penstock.errors import InvalidOptionError
from penstock.options import BucketOptions, CommitOptions, CompactOptions, PartitionExpireOptions, check_keys
from penstock.table.actions.changes import open_committer
from penstock.table.actions.manifests import ManifestCompaction, compact_manifests
from penstock.table.actions.missing_files import MissingFile, drop_missing_files, find_missing_files
from penstock.table.actions.missing_manifests import MissingManifest, drop_missing_manifests, find_missing_manifests
from penstock.table.actions.rescale import RescaledPartition, rescale_partitions
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one
from penstock.table.compact.local import compact_table, for_compaction, request_compaction, run_here
from penstock.table.compact.plan import check_compactable
from penstock.table.compact.sort import parse_order, sort_table
from penstock.table.expire.orphans import OrphanReport, remove_orphan_files
from penstock.table.expire.partitions import ExpiredPartition, drop_expired_partitions, find_expired_partitions
from penstock.table.expire.snapshots import Expiration, SnapshotExpirer
from penstock.table.locate import FileLocator
from penstock.table.mark_done.partitions import mark_due_partitions, mark_named_partitions
from penstock.table.partition_scope import partition_of_spec
from penstock.table.stale_schema import at_latest_schema
from penstock.table.stream.consumers import ConsumerReset, clear_consumers, delete_consumer, reset_consumer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from penstock.api.handle import TableHandle
    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.mark_done.marker import DonePartition
    from penstock.table.ref import TableRef


def _ignore(_: object) -> None:
    pass


def _nothing() -> None:
    pass


class TableMaintenance:
    """Consumers, compaction, expiration, marks, orphans: ``table.maintenance``."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    # Consumers

    def reset_consumer(
        self, consumer_id: str, next_snapshot: int | Literal["earliest", "latest"], *, dry_run: bool = False
    ) -> ConsumerReset:
        """Make a consumer go on at a snapshot, forwards or backwards; makes it if there is none.

        Args:
            next_snapshot: the first one that it reads; from the earliest to the one after the latest, which
                ``latest`` stands for.
            dry_run: only check the arguments.

        Returns:
            The new position and the one before.

        Raises:
            NotFoundError: that snapshot has expired, or is further ahead.
            LeaseHeldError: a query reads as this consumer.
        """
        return reset_consumer(self._table.checked_store, consumer_id, next_snapshot, dry_run=dry_run)

    def delete_consumer(self, consumer_id: str, *, dry_run: bool = False) -> None:
        """Delete a consumer, so that what it has not read may expire.

        Args:
            dry_run: only check that there is one.

        Raises:
            NotFoundError: there is no such consumer.
            LeaseHeldError: a query reads as it.
        """
        delete_consumer(self._table.checked_store, consumer_id, dry_run=dry_run)

    def clear_consumers(self, including: str = ".*", excluding: str | None = None) -> tuple[str, ...]:
        """Delete the consumers whose whole id matches a regular expression.

        Args:
            excluding: keep those that match this one.

        Returns:
            Ids of the deleted ones.

        Raises:
            LeaseHeldError: queries read as some of them; the others are deleted.
            InvalidOptionError: no regular expression.
        """
        try:
            wanted, kept = re.compile(including), None if excluding is None else re.compile(excluding)
        except re.error as error:
            raise InvalidOptionError(
                f"table {self._table.name}: '{error.pattern!s}' is no regular expression for consumers: {error}"
            ) from None
        return clear_consumers(self._table.checked_store, wanted, kept)

    # Compaction

    def compact(  # noqa: PLR0913 - the arguments of Paimon's procedure
        self,
        spark: SparkSession | None = None,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        where: str | None = None,
        strategy: str | None = None,
        idle_time: str | None = None,
        order_strategy: str | None = None,
        order_by: Names | None = None,
        options: Options | None = None,
        dry_run: bool = False,
        threads: int | None = None,
        on_start: Callable[[int], None] = _ignore,
        on_done: Callable[[MergedFiles], None] = _ignore,
    ) -> CompactionResult:
        """Merge small files; rows and, in a queue, their order stay as they are. Or sort a scalable table's rows.

        What others append meanwhile is not touched; a merge whose files another commit has replaced is dropped. Tables
        with the option ``write-only`` are compacted too.

        Args:
            spark: merge on its executors; None to merge in this process.
            partitions: only these, such as ``[{"dt": "2026-01-01"}]``; a spec may leave columns out.
            where: only the partitions that pass this condition on partition columns; not with ``partitions``.
            strategy: ``full``, the default, merges all small files; ``minor`` what a stream with compaction would have
                merged by now.
            idle_time: only partitions that got no rows for this long, such as ``1 h``.
            order_strategy: rewrite all rows of each partition, sorted by the first column and then the next
                (``order``), or along a curve so that files are narrow in all of them (``zorder``, ``hilbert``). Needs
                ``spark``.
            order_by: the columns to sort by; alone it means ``order``.
            options: of this job, such as ``{"target-file-size": "128 mb"}``.
            dry_run: only say what would be merged.
            threads: merges at the same time in this process; None for the option ``penstock.compaction.max-tasks``,
                else one for each core.
            on_start: called with the bytes that all merges together will read.
            on_done: called with every finished merge, or sorted partition.

        Returns:
            What was done to each partition, or why nothing was.

        Raises:
            InvalidOptionError, InvalidFilterError: arguments that cannot be.
            UnsupportedFeatureError: a table that Penstock only reads, with live deletion vectors, or with
                ``clustering.incremental``.
            TableStoreError: a file cannot be read or written, or the commit failed; merges that were committed before
                stay, of the others no file is left.
        """
        given = texts_of(options)
        check_keys(given, table=self._table.name, stacklevel=3)
        ref = for_compaction(at_latest_schema(self._table.ref, self._table.checked_store), given)
        check_writable(ref)
        check_classic(spark, ref.name, "compact() without spark, which merges in this process")
        request = request_compaction(ref, partitions=partitions, where=where, strategy=strategy, idle_time=idle_time)
        order = parse_order(ref, order_strategy, names_of(order_by))

        def on_plan(plan: CompactionPlan) -> None:
            on_start(sum(task.size_bytes for task in plan.tasks))

        if order is not None:
            sort = None if spark is None else partial(spark_entry().sort_compact, spark, on_done=on_done)
            return sort_table(ref, order, request, sort, dry_run=dry_run, on_plan=on_plan)
        execute = run_here(ref, threads) if spark is None else spark_entry().merge_on(spark, ref)
        return compact_table(ref, request, execute, dry_run=dry_run, on_plan=on_plan, on_done=on_done)

    def compact_in_background(
        self,
        spark: SparkSession | None = None,
        *,
        options: Options | None = None,
        threads: int | None = None,
        idle_seconds: float = 10.0,
    ) -> BackgroundCompactor:
        """Return a compactor that merges small files while others write to the table, from ``start`` to ``stop``.

        Args:
            spark: merge on its executors; None to merge in this process.
            options: of this job, as for ``compact``.
            threads: merges at the same time; None for the option ``penstock.compaction.max-tasks``, else one less than
                there are cores.
            idle_seconds: wait after a check that found nothing.

        Raises:
            UnsupportedFeatureError: as ``compact``.
        """
        given = texts_of(options)
        check_keys(given, table=self._table.name, stacklevel=3)
        store = self._table.checked_store
        ref = for_compaction(at_latest_schema(self._table.ref, store), given)
        check_writable(ref)
        check_compactable(ref, store, store.load_latest_snapshot())
        most = threads or ref.parsed(CompactOptions).max_tasks
        merge: Callable[[CompactTask, TableRef], MergedFiles] = merge_one
        cancel, cores = _nothing, os.cpu_count() or 1
        if spark is not None:
            merge, cancel = spark_entry().merge_in_background(spark, ref)
            cores = spark.sparkContext.defaultParallelism
        return BackgroundCompactor(
            ref,
            merge,
            commit_user=new_commit_user(ref.parsed(CommitOptions).user_prefix),
            max_tasks=most or max(1, cores - 1),
            idle_seconds=idle_seconds,
            cancel=cancel,
        )

    # Housekeeping

    def expire_snapshots(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: datetime | int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Expiration:
        """Let old snapshots go, with the files that nothing else reads.

        What a consumer has not read stays, and so do the files of tags. Commits do this by themselves, unless the
        option ``write-only`` is set.

        Args:
            retain_max: newest snapshots beyond which all go whatever their age; None for what the option
                ``snapshot.num-retained.max`` says.
            retain_min: newest snapshots that stay whatever their age; None for ``snapshot.num-retained.min``.
            older_than: states of the table since then stay readable, in ms since 1970-01-01 UTC or as a datetime
                (local without a zone); None for now less ``snapshot.time-retained``.
            max_deletes: snapshots at most; None for all.
            dry_run: only find what would go.
            progress: called with the number of files deleted so far.

        Returns:
            What went, and what keeps the rest.

        Raises:
            InvalidOptionError: arguments that contradict each other.
            FormatError: what a tag or consumer needs cannot be read; nothing that it may need was deleted.
            StorageError: not everything could be deleted; doing it again goes on.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        check_writable(self._table.ref)
        expirer = SnapshotExpirer(self._table.ref, self._table.checked_store)
        rules = expirer.rules(
            retain_max=retain_max, retain_min=retain_min, older_than=_to_millis(older_than), max_deletes=max_deletes
        )
        return expirer.run(rules, dry_run=dry_run, progress=progress)

    def expire_partitions(
        self, *, expiration_time: str | None = None, dry_run: bool = False
    ) -> tuple[ExpiredPartition, ...]:
        """Drop the partitions that have outlived ``partition.expiration-time``, the oldest first.

        How old a partition is, the options ``partition.expiration-strategy``, ``partition.timestamp-pattern`` and
        ``partition.timestamp-formatter`` say; a partition whose values are no time stays. At most
        ``partition.expiration-max-num`` go. Rows that come to them meanwhile stay.

        Args:
            expiration_time: such as ``7 d``; None for what the option says.
            dry_run: only find them.

        Raises:
            InvalidOptionError: no expiration time, no partition columns, or a pattern that does not fit them.
            CommitConflictError: others replaced some of the files meanwhile; do it again.
        """
        check_writable(self._table.ref)
        given = {} if expiration_time is None else {"partition.expiration-time": expiration_time}
        options = PartitionExpireOptions.parse(self._table.ref.options, given, table=self._table.name)
        found = find_expired_partitions(self._table.ref, self._table.checked_store, options=options)
        if not dry_run:
            committer = open_committer(self._table.ref, self._table.store, adds_rows=False)
            drop_expired_partitions(committer, found, batch_size=options.batch_size)
        return found

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | int | None = None,
        dry_run: bool = True,
        allow_recent: bool = False,
        progress: Progress = no_progress,
    ) -> OrphanReport:
        """Find files that stopped jobs left and nothing uses; delete them unless ``dry_run``.

        Args:
            older_than: files last changed up to then go, in ms since 1970-01-01 UTC or as a datetime (local without a
                zone); None for a day ago. It has to lie further back than any job takes from its first file to its
                commit, since files that are not committed yet look like orphans.
            dry_run: only find them.
            allow_recent: take ``older_than`` also where it is less than an hour ago; nothing may write then.
            progress: called with the number of files found, then of manifests read, then of files deleted.

        Raises:
            InvalidOptionError: ``older_than`` is too recent, or in the future.
            FormatError: metadata are damaged or missing, so it is unknown what is used; nothing was deleted.
            StorageError: something cannot be listed or read, or be deleted.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        check_writable(self._table.ref)
        return remove_orphan_files(
            self._table.ref,
            older_than_millis=_to_millis(older_than),
            dry_run=dry_run,
            allow_recent=allow_recent,
            progress=progress,
        )

    def compact_manifests(self, *, dry_run: bool = False) -> ManifestCompaction:
        """Merge the manifests that are small, or that hold entries of deleted files; commits merge fewer at a time.

        Args:
            dry_run: only count them.
        """
        check_writable(self._table.ref)
        return compact_manifests(
            open_committer(self._table.ref, self._table.checked_store, adds_rows=False), dry_run=dry_run
        )

    def remove_missing_files(self, *, dry_run: bool = True) -> tuple[MissingFile, ...]:
        """Find data files of the latest snapshot that are missing on storage; remove them unless ``dry_run``.

        Their rows are lost then, and the others can be read again. Before that, look for the files: a snapshot or a
        copy that has them can be restored.

        Args:
            dry_run: only find them.

        Raises:
            StorageError: a directory cannot be listed.
            CommitConflictError: another commit has replaced one of them meanwhile; do it again.
        """
        check_writable(self._table.ref)
        missing = find_missing_files(self._table.ref, self._table.checked_store)
        if not dry_run:
            drop_missing_files(open_committer(self._table.ref, self._table.store, adds_rows=False), missing)
        return missing

    def remove_missing_manifests(self, *, dry_run: bool = True) -> tuple[MissingManifest, ...]:
        """Find manifests of the latest snapshot that are missing on storage; leave them out unless ``dry_run``.

        The latest state can be read again then, by a new snapshot: without the rows of files that only these manifests
        had added, and again with those of files that they had deleted (by a compaction, say). Older snapshots stay as
        they are. Before that, look for the manifests: a copy that has them can be restored.

        Args:
            dry_run: only find them.

        Raises:
            NotFoundError: a manifest list is missing, which only a rollback to an older snapshot mends.
            CommitConflictError: others committed each time that this was tried; do it again.
        """
        check_writable(self._table.ref)
        if dry_run:
            return find_missing_manifests(self._table.checked_store)
        return drop_missing_manifests(open_committer(self._table.ref, self._table.checked_store, adds_rows=False))

    def rescale(
        self, buckets: int | None = None, *, partition: Mapping[str, object] | None = None, dry_run: bool = False
    ) -> tuple[RescaledPartition, ...]:
        """Change the number of buckets of a queue: sets the option ``bucket``, then rewrites the partitions.

        Each partition is one commit; rows with the same bucket key keep their order, and streams that read the table
        do not deliver them again. Writers to a partition that is not written yet are refused, and so are those that
        still write with the old number. After an interruption, call it again.

        Args:
            buckets: None for what the option says, which leaves the partitions that were written before it changed.
            partition: only this one, such as ``{"dt": "2026-01-01"}``; the option has to have the number already.
            dry_run: only find them.

        Returns:
            The partitions that had another number.

        Raises:
            InvalidOptionError: the table is no queue, or a number below 1.
            CommitConflictError: others committed each time that a partition was written.
        """
        check_writable(self._table.ref)
        ref = at_latest_schema(self._table.ref, self._table.checked_store)
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
        committer = open_committer(ref, self._table.store, adds_rows=False)
        spec = "" if partition is None else FileLocator.of(ref).partition_label(partition_of_spec(ref, partition))
        found = rescale_partitions(
            committer, buckets=buckets, wanted=lambda directory: not spec or directory == spec, dry_run=dry_run
        )
        return tuple(found)

    def mark_partitions_done(
        self, partitions: Sequence[Mapping[str, object]] | None = None, *, dry_run: bool = False
    ) -> tuple[DonePartition, ...]:
        """Mark partitions done: write the file ``_SUCCESS`` into their directories, for whoever waits for it.

        A partition that is marked again keeps the time of its first mark. Commits do this by themselves where the
        options ``partition.idle-time-to-done`` or ``partition.end-input-to-done`` ask for it.

        Args:
            partitions: each such as ``{"dt": "2026-01-01"}``; one that leaves columns out stands for all that agree
                with it, one that names all also for a partition without rows. None for those that are due by the
                options and have no mark since their last rows.
            dry_run: only say which.

        Returns:
            Them, with the times of their marks.

        Raises:
            InvalidOptionError: no partition, names of other columns, values that do not fit; or with None, options that
                do not say when a partition is done.
            NotFoundError: no partition agrees.
            UnsupportedFeatureError: ``partition.mark-done-action`` asks for more than ``success-file``, or a table that
                Penstock only reads.
        """
        check_writable(self._table.ref)
        if partitions is None:
            return mark_due_partitions(self._table.ref, self._table.checked_store, dry_run=dry_run)
        return mark_named_partitions(self._table.ref, self._table.checked_store, partitions, dry_run=dry_run)


def _to_millis(moment: datetime | int | None) -> int | None:
    return None if moment is None else to_millis(moment)
