"""Compactions of the command line: in this process or on Spark, with a progress bar, once or until interrupted."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.api.deferred import spark_entry
from penstock.catalog.checks.features import check_writable
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.compaction_report import EventPrinter
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import note
from penstock.cli.output.spark_failure import open_spark
from penstock.options import CommitOptions, CompactOptions, check_keys
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one
from penstock.table.compact.local import compact_table, for_compaction, request_compaction, run_here
from penstock.table.compact.plan import check_compactable
from penstock.table.compact.sort import parse_order, sort_table
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from penstock.cli.output.progress import Report
    from penstock.cli.session import Session
    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import MergedFiles
    from penstock.table.ref import TableRef

_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to compact: the arguments of ``Table.compact``."""

    partitions: Sequence[Mapping[str, str]] | None = None
    where: str | None = None
    strategy: str | None = None
    idle_time: str | None = None
    order_strategy: str | None = None
    order_by: Sequence[str] | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    """Where the compactions of one call run, and with which options.

    Attributes:
        options: of the job, on top of those of each table.
        threads: merges at the same time; None for the table's option, else the number of cores.
        master: of Spark; None for this process.
    """

    session: Session
    options: Mapping[str, str]
    threads: int | None
    master: str | None

    def run(self, table: str, wanted: Wanted) -> CompactionResult:
        """Compact a table once. Raises as ``Table.compact``."""
        ref = self._ref(table)
        request = request_compaction(
            ref,
            partitions=wanted.partitions,
            where=wanted.where,
            strategy=wanted.strategy,
            idle_time=wanted.idle_time,
        )
        order = parse_order(ref, wanted.order_strategy, wanted.order_by)
        spark = None if self.master is None or wanted.dry_run else self._spark()
        with ExitStack() as stack:
            bar = _Bar(self.session, ref.name, stack)
            if order is not None:
                sort = None if spark is None else partial(spark_entry().sort_compact, spark, on_done=bar.advance)
                return sort_table(ref, order, request, sort, dry_run=wanted.dry_run, on_plan=bar.begin)
            execute = run_here(ref, self.threads) if spark is None else spark_entry().merge_on(spark, ref)
            return compact_table(ref, request, execute, dry_run=wanted.dry_run, on_plan=bar.begin, on_done=bar.advance)

    def follow(self, table: str, *, idle_ms: int) -> None:
        """Compact a table while it grows, until interrupted; files of merges not committed by then are deleted.

        Args:
            idle_ms: wait after a check that found nothing.

        Raises:
            KeyboardInterrupt: the command was interrupted.
            UnsupportedFeatureError: a table that cannot be written, or cannot be compacted here.
        """
        ref = self._ref(table)
        store = MetadataStore(ref)
        check_compactable(ref, store, store.load_latest_snapshot())
        merge, cancel, most = self._merger(ref)
        user = new_commit_user(ref.parsed(CommitOptions).user_prefix)
        compactor = BackgroundCompactor(
            ref, merge, commit_user=user, max_tasks=most, idle_seconds=idle_ms / 1000, cancel=cancel
        )
        printer = EventPrinter(self.session)
        with until_interrupted() as interrupted:
            compactor.start()
            note(self.session, f"compacting {table} as it grows; end with Ctrl-C")
            try:
                while not interrupted.wait(_LOOK_SECONDS):
                    printer.show(compactor.state)
            finally:
                compactor.stop()
            printer.show(compactor.state)

    def _ref(self, table: str) -> TableRef:
        ref = self.session.ref(table)
        check_keys(self.options, table=ref.name)
        ref = for_compaction(ref, self.options)
        check_writable(ref)
        return ref

    def _merger(self, ref: TableRef) -> tuple[Callable[..., MergedFiles], Callable[[], None], int]:
        """Return the runner of merges, the function that cancels them, and the number of merges at the same time."""
        most = self.threads or ref.parsed(CompactOptions).max_tasks
        if self.master is None:
            return merge_one, _nothing, most or max(1, (os.cpu_count() or 1) - 1)
        spark = self._spark()
        merge, cancel = spark_entry().merge_in_background(spark, ref)
        return merge, cancel, most or max(1, spark.sparkContext.defaultParallelism - 1)

    def _spark(self) -> SparkSession:
        return open_spark(self.session, self.master or "local[*]", {})


class _Bar:
    """A progress bar of the merged bytes."""

    def __init__(self, session: Session, name: str, stack: ExitStack) -> None:
        self._session = session
        self._name = name
        self._stack = stack
        self._report: Report | None = None
        self._rows = 0
        self._bytes = 0

    def begin(self, plan: CompactionPlan) -> None:
        total = sum(task.size_bytes for task in plan.tasks)
        self._report = self._stack.enter_context(progress_bar(self._session, f"compacting {self._name}", total))

    def advance(self, merged: MergedFiles) -> None:
        self._rows += sum(file.row_count for file in merged.task.files)
        self._bytes += merged.task.size_bytes
        if self._report is not None:
            self._report(self._rows, self._bytes)


def _nothing() -> None:
    pass
