"""Namespaces of operations that change no rows: how rows are stored and retained, and which versions there are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.api.arguments import INTEGER, NONE, NUMBER, Options, accepts, encode_options
from penstock.api.handle import TableMethods
from penstock.api.lazy import lazy_spark
from penstock.api.operations.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from penstock.api.operations.compaction import CompactManifests, Rescale, RewriteFileIndex
from penstock.api.operations.consumers import ClearConsumers, DeleteConsumer, ResetConsumer
from penstock.api.operations.declaration import method
from penstock.api.operations.partitions import ExpirePartitions, MarkPartitionsDone
from penstock.api.operations.rollback import RollbackToAsLatest
from penstock.api.operations.snapshots import RemoveMissingFiles, RemoveMissingManifests
from penstock.api.operations.tags import CreateDueTags, DeleteTag, ExpireTags, RenameTag, ReplaceTag
from penstock.catalog.checks.features import check_writable
from penstock.options import CommitOptions, CompactOptions, check_keys
from penstock.table.assumptions import at_latest_schema
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one
from penstock.table.compact.local import for_compaction
from penstock.table.compact.plan import check_compactable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.ref import TableRef


def _nothing() -> None:
    pass


class TableMaintenance(TableMethods):
    """Consumers, partitions, buckets, and repair of metadata: ``table.maintenance``."""

    reset_consumer = method(ResetConsumer)
    delete_consumer = method(DeleteConsumer)
    clear_consumers = method(ClearConsumers)
    expire_partitions = method(ExpirePartitions)
    mark_partitions_done = method(MarkPartitionsDone)
    rescale = method(Rescale)
    compact_manifests = method(CompactManifests)
    rewrite_file_index = method(RewriteFileIndex)
    remove_missing_files = method(RemoveMissingFiles)
    remove_missing_manifests = method(RemoveMissingManifests)

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
        check_compactable(ref)
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


class TableVersions(TableMethods):
    """Tags, branches, and a rollback that retains later snapshots: ``table.versions``."""

    replace_tag = method(ReplaceTag)
    rename_tag = method(RenameTag)
    delete_tag = method(DeleteTag)
    expire_tags = method(ExpireTags)
    create_due_tags = method(CreateDueTags)
    rollback_to_as_latest = method(RollbackToAsLatest)
    create_branch = method(CreateBranch)
    rename_branch = method(RenameBranch)
    delete_branch = method(DeleteBranch)
    fast_forward = method(FastForward)
