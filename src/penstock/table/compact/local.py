"""Runs a dedicated compaction, from the user's arguments to the committed snapshots; and merges after an append.

Whether merges are due after an append to a queue is determined from what the commit reads anyway: the entries of the
partitions to which it adds files, from which it takes the next sequence numbers. So an append without due merges makes
no additional request. Scalable tables are compacted only by streams and jobs, as in Paimon.

Source:
    docs/spec/compaction.md sections 3 and 7; Paimon ``core:append/BucketedAppendCompactManager.java``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import InvalidOptionError, TableStoreError, UnsupportedFeatureError
from penstock.options import BucketOptions, CompactOptions, WriteOptions, parse_duration_ms
from penstock.printable import open_log
from penstock.table.actions.changes import open_committer
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.background import LEASE_NAME
from penstock.table.compact.job import merge_in_threads, merge_one, plan_only, run_compaction
from penstock.table.compact.plan import CompactStrategy, plan_compaction, scope_of_filter
from penstock.table.compact.queue_files import OpenTails
from penstock.table.compact.task import CompactSizes
from penstock.table.lease import find_holder
from penstock.table.partition_scope import scope_of_specs
from penstock.table.stale_schema import at_latest_schema
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.table.commit.committer import TableCommitter
    from penstock.table.compact.job import CompactionResult, Execute
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import MergedFiles
    from penstock.table.message import CommitMessage
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef

MergeOn: TypeAlias = "Callable[[TableRef], Execute]"
"""Returns the function that runs merges of a table."""

_LOG: Final = open_log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """The request of a dedicated compaction.

    Attributes:
        scope: the partitions; None for all.
        idle_ms: only partitions that received no rows for this long; None for all.
    """

    strategy: CompactStrategy = CompactStrategy.FULL
    scope: OverwriteScope | None = None
    idle_ms: int | None = None


def request_compaction(
    ref: TableRef,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    where: str | None = None,
    strategy: str | None = None,
    idle_time: str | None = None,
) -> CompactionRequest:
    """Parse a request from user arguments; None means that an argument is not given.

    Raises:
        InvalidOptionError: ``partitions`` and ``where`` together, a column that is not a partition column, an unknown
            strategy, or a text that is not a duration.
        InvalidFilterError: ``where`` cannot be parsed, or names other columns than partition columns.
    """
    if partitions is not None and where is not None:
        raise InvalidOptionError(f"table {ref.name}: give the partitions to compact by name or by WHERE, not by both")
    if partitions is not None and not partitions:
        raise InvalidOptionError(f"table {ref.name}: no partition is named; to compact all, leave them out")
    scope: OverwriteScope | None = None
    if partitions is not None:
        scope = scope_of_specs(ref, partitions)
    elif where is not None:
        scope = scope_of_filter(ref, where)
    return CompactionRequest(
        strategy=_strategy(strategy), scope=scope, idle_ms=None if idle_time is None else parse_duration_ms(idle_time)
    )


def for_compaction(ref: TableRef, options: Mapping[str, str] | None = None) -> TableRef:
    """Return a table with the job's options, and with ``write-only`` set to false: the job compacts in any case.

    Args:
        options: of the job.
    """
    return ref.with_options({**(options or {}), "write-only": "false"})


def run_here(ref: TableRef, threads: int | None = None) -> Execute:
    """Return an executor that merges in this process.

    Args:
        threads: parallel merges; None for ``penstock.compaction.max-tasks`` or, if it is not set, one per core.
    """
    max_parallel = threads or ref.parsed(CompactOptions).max_tasks or os.cpu_count() or 1
    return partial(merge_in_threads, merge=partial(merge_one, ref=ref), threads=max_parallel, ref=ref)


def compact_table(
    ref: TableRef,
    request: CompactionRequest,
    execute: Execute,
    *,
    dry_run: bool = False,
    on_plan: Callable[[CompactionPlan], None] = lambda _: None,
    on_done: Callable[[MergedFiles], None] = lambda _: None,
) -> CompactionResult:
    """Compact a table once.

    Args:
        ref: from ``for_compaction``.
        request: the partitions, and how much to merge.
        execute: runs the merges.
        dry_run: only plan; the result has no outputs.
        on_plan: called with the plan before the merges.
        on_done: called for every finished merge.
    """
    store = MetadataStore(ref)
    plan = plan_compaction(ref, store, strategy=request.strategy, scope=request.scope, idle_ms=request.idle_ms)
    on_plan(plan)
    if dry_run:
        return plan_only(plan)
    committer = open_committer(ref, store, adds_rows=False)
    user = new_commit_user(committer.options.user_prefix)
    return run_compaction(plan, committer, execute, commit_user=user, on_done=on_done)


def open_appender(ref: TableRef, store: MetadataStore | None = None) -> TableCommitter:
    """Return a committer for ``compact_appended``; arguments and errors are those of ``open_committer``."""
    committer = open_committer(ref, store)
    if ref.parsed(BucketOptions).bucket > 0 and not ref.parsed(WriteOptions).write_only:
        committer.index.watch = OpenTails(CompactSizes.of(ref))
    return committer


def compact_appended(
    committer: TableCommitter, messages: Iterable[CommitMessage], merge_on: MergeOn = run_here
) -> CompactionResult | None:
    """Merge small files of the buckets to which an append has added files, if there are enough of them.

    The rows are already committed, so an error is logged and not raised.

    Args:
        committer: of the append, from ``open_appender``.
        messages: of the append.

    Returns:
        None if nothing was due, another job is compacting the table, or the merges failed.
    """
    tails = committer.index.watch
    if not isinstance(tails, OpenTails):
        return None
    due = frozenset(
        partition for partition, _ in tails.buckets_to_merge((e.partition, e.bucket) for e in messages if e.new_files)
    )
    if not due or _has_compactor(committer.ref):
        return None
    user = new_commit_user(committer.options.user_prefix)
    return _merge(committer.ref, committer.store, due, user, merge_on, before=committer)


def compact_written(ref: TableRef, messages: Sequence[CommitMessage], *, commit_user: str) -> CompactionResult | None:
    """Merge small files of the partitions to which a commit has added files, by the rule of ``minor``, in this process.

    The rows are already committed, so an error is logged and not raised.

    Args:
        messages: of the commit.

    Returns:
        None if the table is ``write-only``, the commit had no files, or the merges failed.
    """
    if ref.parsed(WriteOptions).write_only:
        return None
    written = frozenset(message.partition for message in messages if message.new_files)
    return _merge(ref, MetadataStore(ref), written, commit_user, run_here)


def _merge(
    ref: TableRef,
    store: MetadataStore,
    partitions: frozenset[bytes],
    commit_user: str,
    merge_on: MergeOn,
    before: TableCommitter | None = None,
) -> CompactionResult | None:
    if not partitions:
        return None
    try:
        latest = at_latest_schema(ref, store)
        plan = plan_compaction(latest, store, strategy=CompactStrategy.MINOR, scope=partitions)
        committer = open_committer(latest, store, adds_rows=False, before=before)
        return run_compaction(plan, committer, merge_on(latest), commit_user=commit_user)
    except UnsupportedFeatureError as error:  # of every merge of this table
        _LOG.info("table %s: its small files are not merged: %s", ref.name, error)
    except Exception as error:  # noqa: BLE001 - the rows are committed: the caller must not take that for failed
        _LOG.warning("table %s: its small files were not merged; the rows are committed: %s", ref.name, error)
    return None


def _has_compactor(ref: TableRef) -> bool:
    try:
        return find_holder(ref.file_io, ref.location, LEASE_NAME) is not None
    except TableStoreError:
        return False


def _strategy(text: str | None) -> CompactStrategy:
    if text is None:
        return CompactStrategy.FULL
    try:
        return CompactStrategy(text.lower())
    except ValueError as error:
        raise InvalidOptionError(f"compaction strategy '{text}': expected 'minor' or 'full'") from error
