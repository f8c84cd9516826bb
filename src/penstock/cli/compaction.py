"""Compactions run by commands: in this process or on Spark, with a progress bar, once or until interrupted."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.compaction_report import EventPrinter
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import note
from penstock.cli.output.spark_failure import open_spark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from penstock import CompactionResult, MergedFiles
    from penstock.cli.output.progress import Report
    from penstock.cli.session import Session
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
    """The execution settings of the compactions of one call.

    Attributes:
        options: of the job; they override those of each table.
        threads: concurrent merges; None for the table's option, by default the number of cores.
        master: of Spark; None for this process.
    """

    session: Session
    options: Mapping[str, str]
    threads: int | None
    master: str | None

    def run(self, table: str, wanted: Wanted) -> CompactionResult:
        """Compact a table once. Raises as ``Table.compact``."""
        loaded = self.session.table(table)
        spark = None if self.master is None or wanted.dry_run else self._spark()
        with ExitStack() as stack:
            bar = _Bar(self.session, loaded.name, stack)
            return loaded.compact(
                spark,
                partitions=wanted.partitions,
                where=wanted.where,
                strategy=wanted.strategy,
                idle_time=wanted.idle_time,
                order_strategy=wanted.order_strategy,
                order_by=wanted.order_by,
                options=self.options,
                dry_run=wanted.dry_run,
                threads=self.threads,
                on_start=bar.begin,
                on_done=bar.advance,
            )

    def follow(self, table: str, *, idle_ms: int) -> None:
        """Compact a growing table until interrupted; files of uncommitted merges are deleted.

        Args:
            idle_ms: wait after a check that found nothing.

        Raises:
            KeyboardInterrupt: the command was interrupted.
            UnsupportedFeatureError: the table cannot be written or compacted.
        """
        loaded = self.session.table(table)
        compactor = loaded.maintenance.compact_in_background(
            None if self.master is None else self._spark(),
            options=self.options,
            threads=self.threads,
            idle_seconds=idle_ms / 1000,
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

    def begin(self, total: int) -> None:
        self._report = self._stack.enter_context(progress_bar(self._session, f"compacting {self._name}", total))

    def advance(self, merged: MergedFiles) -> None:
        self._rows += sum(file.row_count for file in merged.task.files)
        self._bytes += merged.task.size_bytes
        if self._report is not None:
            self._report(self._rows, self._bytes)
