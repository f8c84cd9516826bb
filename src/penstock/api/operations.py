"""Operations that most tables need: compaction, expiration, orphan files, tags and rollback."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.api.arguments import (
    FLAG,
    FUNCTION,
    INTEGER,
    MAPPINGS,
    NAMES,
    NONE,
    TEXT,
    TIME,
    Names,
    Options,
    Progress,
    accepts,
    check_classic,
    encode_options,
    no_progress,
    to_names,
)
from penstock.api.handle import TableMethods
from penstock.api.lazy import lazy_spark
from penstock.catalog.checks.features import check_taggable, check_writable
from penstock.clocks import to_millis
from penstock.errors import InvalidOptionError
from penstock.options import TagOptions, check_keys
from penstock.table.assumptions import at_latest_schema, check_other_engines
from penstock.table.compact.local import compact_table, for_compaction, request_compaction, run_here
from penstock.table.compact.sort import parse_order, sort_table
from penstock.table.expire.orphans import OrphanReport, remove_orphan_files
from penstock.table.expire.rollback import RollbackPlan, apply_rollback, plan_rollback
from penstock.table.expire.snapshots import Expiration, SnapshotExpirer
from penstock.table.tags import create_tag, first_since, first_with_watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from penstock.format.snapshot import Snapshot
    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import MergedFiles


def _ignore(_: object) -> None:
    pass


class TableOperations(TableMethods):
    """Compaction, expiration, removal of orphan files, tags and rollback."""

    @accepts(
        partitions=MAPPINGS | NONE,
        where=TEXT | NONE,
        strategy=TEXT | NONE,
        idle_time=TEXT | NONE,
        order_strategy=TEXT | NONE,
        order_by=NAMES | NONE,
        dry_run=FLAG,
        threads=INTEGER | NONE,
        on_start=FUNCTION,
        on_done=FUNCTION,
    )
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
        """Merge small files without changing rows or, in a queue, their order; or sort the rows of a scalable table.

        Concurrent appends are not affected; a merge whose files another commit has replaced is discarded. Tables with
        the option ``write-only`` are compacted too.

        Args:
            spark: merge on its executors; None to merge in this process.
            partitions: only these, such as ``[{"dt": "2026-01-01"}]``; a spec may omit columns.
            where: only partitions that satisfy this condition on partition columns; not with ``partitions``.
            strategy: ``full``, the default, merges all small files; ``minor`` what a stream with compaction would have
                merged by now.
            idle_time: only partitions that received no rows for this long, such as ``1 h``.
            order_strategy: rewrite all rows of each partition, sorted by the first column, then the next (``order``),
                or along a curve so that files have narrow ranges in all columns (``zorder``, ``hilbert``). Needs
                ``spark``.
            order_by: the columns to sort by; without ``order_strategy`` it implies ``order``.
            options: of this job, such as ``{"target-file-size": "128 mb"}``.
            dry_run: only return what would be merged.
            threads: concurrent merges in this process; None for the option ``penstock.compaction.max-tasks``, or one
                per core if it is not set.
            on_start: called with the total number of bytes that the merges will read.
            on_done: called after every merge or sorted partition.

        Returns:
            The result for each partition, or the reason why nothing was done.

        Raises:
            InvalidOptionError, InvalidFilterError: invalid arguments.
            UnsupportedFeatureError: the table is read-only for Penstock, has live deletion vectors, or has
                ``clustering.incremental``.
            TableStoreError: a file cannot be read or written, or the commit failed; merges that were already committed
                remain, the others leave no files.
        """
        encoded = encode_options(options)
        check_keys(encoded, table=self._handle.name)
        ref = for_compaction(at_latest_schema(self._handle.ref, self._handle.checked_store), encoded)
        check_writable(ref)
        check_classic(spark, ref.name, "compact() without spark, which merges in this process")
        request = request_compaction(ref, partitions=partitions, where=where, strategy=strategy, idle_time=idle_time)
        order = parse_order(ref, order_strategy, to_names(order_by))

        def on_plan(plan: CompactionPlan) -> None:
            on_start(sum(task.size_bytes for task in plan.tasks))

        if order is not None:
            sort = None if spark is None else partial(lazy_spark.sort_compact, spark, on_done=on_done)
            return sort_table(ref, order, request, sort, dry_run=dry_run, on_plan=on_plan)
        execute = run_here(ref, threads) if spark is None else lazy_spark.SparkMerger(spark=spark, ref=ref).execute
        return compact_table(ref, request, execute, dry_run=dry_run, on_plan=on_plan, on_done=on_done)

    @accepts(
        retain_max=INTEGER | NONE,
        retain_min=INTEGER | NONE,
        older_than=TIME | NONE,
        max_deletes=INTEGER | NONE,
        dry_run=FLAG,
        progress=FUNCTION,
    )
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
        """Expire old snapshots, and delete the files that only they use.

        Snapshots that a consumer has not read, and files of tags, are retained. Commits expire snapshots automatically,
        unless the option ``write-only`` is set.

        Args:
            retain_max: maximum number of snapshots to retain, whatever their age; None for the option
                ``snapshot.num-retained.max``.
            retain_min: number of newest snapshots to retain, whatever their age; None for
                ``snapshot.num-retained.min``.
            older_than: states of the table since then stay readable, in ms since 1970-01-01 UTC or as a datetime
                (local without a zone); None for now less ``snapshot.time-retained``.
            max_deletes: maximum number of snapshots to expire; None for no limit.
            dry_run: only return what would be deleted.
            progress: called with the number of files deleted so far.

        Returns:
            What was deleted, and what retains the rest.

        Raises:
            InvalidOptionError: arguments that contradict each other.
            FormatError: metadata that a tag or consumer needs cannot be read; nothing that it may need was deleted.
            StorageError: not everything could be deleted; repeat the call to continue.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        check_writable(self._handle.ref)
        expirer = SnapshotExpirer(self._handle.ref, self._handle.checked_store)
        rules = expirer.rules(
            retain_max=retain_max, retain_min=retain_min, older_than=_to_millis(older_than), max_deletes=max_deletes
        )
        return expirer.run(rules, dry_run=dry_run, progress=progress)

    @accepts(older_than=TIME | NONE, dry_run=FLAG, allow_recent=FLAG, progress=FUNCTION)
    def remove_orphan_files(
        self,
        *,
        older_than: datetime | int | None = None,
        dry_run: bool = True,
        allow_recent: bool = False,
        progress: Progress = no_progress,
    ) -> OrphanReport:
        """Find files of failed jobs that nothing uses, and delete them unless ``dry_run``.

        Args:
            older_than: delete files last modified before this time, in ms since 1970-01-01 UTC or as a datetime (local
                without a zone); None for a day ago. It must be further back than any job takes from its first file to
                its commit, since files that are not committed yet look like orphans.
            dry_run: only return them.
            allow_recent: accept an ``older_than`` of less than an hour ago; nothing may write to the table then.
            progress: called with the number of files found, then of manifests read, then of files deleted.

        Raises:
            InvalidOptionError: ``older_than`` is too recent, or in the future.
            FormatError: metadata is damaged or missing, so it is unknown which files are used; nothing was deleted.
            StorageError: something cannot be listed, read or deleted.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        check_writable(self._handle.ref)
        return remove_orphan_files(
            self._handle.ref,
            older_than_millis=_to_millis(older_than),
            dry_run=dry_run,
            allow_recent=allow_recent,
            progress=progress,
        )

    @accepts(
        name=TEXT, snapshot_id=INTEGER | NONE, timestamp=TIME | NONE, watermark=TIME | NONE, time_retained=TEXT | NONE
    )
    def create_tag(
        self,
        name: str,
        *,
        snapshot_id: int | None = None,
        timestamp: datetime | int | None = None,
        watermark: datetime | int | None = None,
        time_retained: str | None = None,
    ) -> Snapshot:
        """Tag a snapshot, by default the latest, so that its rows stay readable.

        Args:
            snapshot_id: may be an expired snapshot that another tag retains.
            timestamp: tag the first snapshot committed at or after this time, in ms since 1970-01-01 UTC or as a
                datetime (local without a zone).
            watermark: tag the first snapshot whose watermark has reached this event time; ms, or a datetime.
            time_retained: such as ``7 d``; None for the option ``tag.default-time-retained``, or forever if it is not
                set.

        Returns:
            The tagged snapshot.

        Raises:
            AlreadyExistsError: the table has a tag of that name.
            NotFoundError: there is no such snapshot.
            InvalidOptionError: more than one position, or an invalid name.
            UnsupportedFeatureError: the table has readers that would not learn of the tag.
        """
        check_taggable(self._handle.ref)
        if [snapshot_id, timestamp, watermark].count(None) < 2:
            raise InvalidOptionError(
                f"table {self._handle.name}: a tag needs exactly one of a snapshot id, a timestamp and a watermark"
            )
        store = self._handle.checked_store
        if timestamp is not None:
            snapshot_id = first_since(store, to_millis(timestamp)).id
        elif watermark is not None:
            snapshot_id = first_with_watermark(store, to_millis(watermark)).id
        options = self._handle.ref.parsed(TagOptions)
        tag = create_tag(store, name, snapshot_id=snapshot_id, time_retained=time_retained, options=options)
        return tag.snapshot

    @accepts(snapshot_id=INTEGER | NONE, tag=TEXT | NONE, timestamp=TIME | NONE, watermark=TIME | NONE, dry_run=FLAG)
    def rollback_to(
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: datetime | int | None = None,
        watermark: int | datetime | None = None,
        dry_run: bool = False,
    ) -> RollbackPlan:
        """Make an older snapshot the latest one, and remove all later snapshots.

        Concurrent commits wait for the rollback to end, at most 5 s, and build on the older snapshot. Consumers that
        have read a removed snapshot continue after the older one.

        Args:
            timestamp: roll back to the newest snapshot committed at or before this time, in ms since 1970-01-01 UTC or
                as a datetime (local without a zone).
            watermark: roll back to the newest snapshot whose watermark is not later than this event time; ms, or a
                datetime, local without a zone.
            dry_run: only return what would be removed.

        Raises:
            NotFoundError: there is no such snapshot or tag.
            InvalidOptionError: not exactly one target.
            CommitConflictError: another rollback was made meanwhile, or other commits won every race.
            UnsupportedFeatureError: on an object store, another engine created the latest snapshot; or the table has
                readers that would not learn of the rollback.
        """
        store = self._handle.checked_store
        plan = plan_rollback(
            store,
            snapshot_id=snapshot_id,
            tag=tag,
            timestamp_millis=None if timestamp is None else to_millis(timestamp),
            watermark=None if watermark is None else to_millis(watermark),
        )
        if not dry_run:
            check_taggable(self._handle.ref)
            apply_rollback(store, plan, check=lambda latest: check_other_engines(self._handle.ref, latest))
        return plan


def _to_millis(moment: datetime | int | None) -> int | None:
    return None if moment is None else to_millis(moment)
