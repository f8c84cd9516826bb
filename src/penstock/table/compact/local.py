"""Runs a dedicated compaction, from the user's arguments to the committed snapshots.

Source:
    docs/spec/compaction.md section 7.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError
from penstock.options import ClusteringOptions, CompactOptions, parse_duration_ms
from penstock.table.actions.changes import open_committer
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.job import merge_in_threads, merge_one, plan_only, run_compaction
from penstock.table.compact.plan import CompactStrategy, plan_compaction, scope_of_filter
from penstock.table.partition_scope import scope_of_specs
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.predicate.tree import Predicate
    from penstock.table.compact.job import CompactionResult, Execute
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import MergedFiles
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef


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
    where: Predicate | None = None,
    strategy: str | None = None,
    idle_time: str | None = None,
) -> CompactionRequest:
    """Parse a request from user arguments; None means that an argument is not given."""
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
        strategy=_strategy(ref, strategy),
        scope=scope,
        idle_ms=None if idle_time is None else parse_duration_ms(idle_time),
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


def _strategy(ref: TableRef, text: str | None) -> CompactStrategy:
    if text is None:
        return CompactStrategy.MINOR if ref.parsed(ClusteringOptions).is_incremental else CompactStrategy.FULL
    try:
        return CompactStrategy(text.lower())
    except ValueError as error:
        raise InvalidOptionError(
            f"table {ref.name}: compaction strategy '{text}': expected 'minor' or 'full'"
        ) from error
