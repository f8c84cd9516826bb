"""The command that merges small files, of one table or many, once or until interrupted.

Its arguments for one table, for many and for a loop, and its report as a table or as records.
"""

from __future__ import annotations

import datetime as dt
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import pyarrow as pa
import typer

from penstock.api.compact_tables import TableCompaction, compact_tables
from penstock.catalog.selection import select_tables
from penstock.cli.arguments import DryRun, Options, parse_pairs
from penstock.cli.exit_codes import exit_code_of
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import note, print_records
from penstock.cli.output.row_stream import RowStream
from penstock.cli.output.spark_failure import open_spark
from penstock.cli.session import session_of
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.text.partitions import parse_partition
from penstock.options import parse_duration_ms
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from penstock import CompactionResult, CompactionState, MergedFiles
    from penstock.cli.output.plain import Plain
    from penstock.cli.output.progress import Report
    from penstock.cli.session import Session


def compact(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="database.table, or the table's path.")] = None,
    *,
    partition: Annotated[
        list[str] | None,
        typer.Option("--partition", metavar="K=V[,K=V]", help="Only this partition; may be repeated."),
    ] = None,
    where: Annotated[str | None, typer.Option("--where", help="Only partitions such as \"dt < '2026-01-01'\".")] = None,
    strategy: Annotated[str | None, typer.Option("--strategy", help="full or minor.  [default: full]")] = None,
    idle_time: Annotated[
        str | None, typer.Option("--idle-time", help='Only partitions without new rows for this long, such as "1 h".')
    ] = None,
    order_strategy: Annotated[
        str | None, typer.Option("--order-strategy", help="Sort the rows: order, zorder or hilbert; needs --spark.")
    ] = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", metavar="COLUMN[,COLUMN]", help="The columns to sort by.")
    ] = None,
    option: Options = None,
    dry_run: DryRun = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Merges at the same time in this process.  [default: cores]")
    ] = None,
    spark: Annotated[
        str | None, typer.Option("--spark", metavar="MASTER", help="Merge with Spark, such as local[4].")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Run next to the jobs that write to the table, until interrupted.")
    ] = False,
    interval: Annotated[str, typer.Option(help="With --follow: wait after a check that found nothing.")] = "10 s",
    database: Annotated[
        str | None, typer.Option("--database", metavar="REGEX", help="The tables of databases whose name matches.")
    ] = None,
    including: Annotated[str | None, typer.Option(metavar="REGEX", help="Of those, tables whose name matches.")] = None,
    excluding: Annotated[str | None, typer.Option(metavar="REGEX", help="Not tables whose name matches.")] = None,
) -> None:
    """Merge small files into larger ones, without changing rows or, in a queue, their order."""
    session = session_of(context)
    if (table is None) == ((database, including, excluding) == (None, None, None)):
        raise InvalidOptionError("give either a TABLE or a --database")
    if spark is not None and threads is not None:
        raise InvalidOptionError("give either --threads, for merges in this process, or --spark")
    wanted = Wanted(
        partitions=None if partition is None else tuple(parse_partition(text) for text in partition),
        where=where,
        strategy=strategy,
        idle_time=idle_time,
        order_strategy=order_strategy,
        order_by=None if order_by is None else tuple(order_by.split(",")),
        dry_run=dry_run,
    )
    job = CompactionJob(session=session, options=parse_pairs(option, "--option"), threads=threads, master=spark)
    if follow:
        if table is None or wanted != Wanted():
            raise InvalidOptionError(
                "--follow compacts one whole TABLE: leave out the options that select, sort or try"
            )
        job.follow(table, idle_ms=parse_duration_ms(interval))
    elif table is not None:
        done = TableCompaction(table=table, result=job.run(table, wanted), error=None)
        print_compactions(session, (done,), dry_run=dry_run)
    else:
        warehouse = session.open_warehouse()
        databases = database or ".*"
        names = select_tables(warehouse, databases=databases, including=including or ".*", excluding=excluding)
        many = tuple(compact_tables(names, lambda name: job.run(name, wanted)))
        print_compactions(session, many, dry_run=dry_run)


COMMANDS: Final[dict[str, Callable[..., None]]] = {"compact": compact}


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


_COLUMNS: Final = (
    "table", "partition", "files_before", "bytes_before", "files_in", "bytes_in", "files_out", "bytes_out", "seconds",
    "skipped",
)  # fmt: skip
_EVENT: Final = pa.schema(
    {
        "time": pa.timestamp("ms", tz="UTC"),
        "merges": pa.int64(),
        "files_in": pa.int64(),
        "bytes_in": pa.int64(),
        "files_out": pa.int64(),
        "bytes_out": pa.int64(),
        "waiting_files": pa.int64(),
        "waiting_bytes": pa.int64(),
    }
)
# Getting the lease may take a few checks.
_IDLE_CHECKS: Final = 10
_COUNTS: Final = ("files_in", "bytes_in", "files_out", "bytes_out")


def print_compactions(session: Session, compactions: Sequence[TableCompaction], *, dry_run: bool) -> None:
    """Print a line for each partition, and on the error stream the outcome of each table.

    Raises:
        typer.Exit: a table failed that could have been compacted, with the code of the first one.
    """
    print_records(session, [record for each in compactions for record in _records(each, dry_run=dry_run)], _COLUMNS)
    for each in compactions:
        note(session, _summary(each, dry_run=dry_run))
    failed = [each.error for each in compactions if each.error and not isinstance(each.error, UnsupportedFeatureError)]
    if failed:
        raise typer.Exit(exit_code_of(failed[0]))


class EventPrinter:
    """Prints a line for each round of committed merges, and on the error stream why it waits."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stream = RowStream(session, _EVENT)
        self._seen: CompactionState | None = None
        self._said = ""
        self._idle_checks = 0

    def show(self, state: CompactionState) -> None:
        """Print what has changed since the last call."""
        seen, self._seen = self._seen, state
        committed = state.committed_merges - (seen.committed_merges if seen else 0)
        if committed:
            counts = {name: getattr(state, name) - (getattr(seen, name) if seen else 0) for name in _COUNTS}
            row = {
                "time": dt.datetime.now(dt.UTC),
                "merges": committed,
                **counts,
                "waiting_files": state.waiting_files,
                "waiting_bytes": state.waiting_bytes,
            }
            self._stream.write(pa.RecordBatch.from_pylist([row], _EVENT))
        self._idle_checks = 0 if state.is_active else self._idle_checks + 1
        problem = f"waiting after an error: {state.last_error}" if state.last_error else ""
        if self._idle_checks > _IDLE_CHECKS and not problem:
            problem = "waiting: another process compacts the table"
        if problem and problem != self._said:
            note(self._session, problem)
        self._said = problem


def _records(compaction: TableCompaction, *, dry_run: bool) -> Iterator[dict[str, Plain]]:
    if compaction.result is None:
        empty: dict[str, Plain] = dict.fromkeys(_COLUMNS)
        yield {**empty, "table": compaction.table, "skipped": str(compaction.error)}
        return
    for row in compaction.result.partitions:
        yield {
            "table": compaction.table,
            "partition": row.partition or None,
            "files_before": row.files_before,
            "bytes_before": row.bytes_before,
            "files_in": row.files_in,
            "bytes_in": row.bytes_in,
            "files_out": None if dry_run else row.files_out,
            "bytes_out": None if dry_run else row.bytes_out,
            "seconds": round(row.seconds, 3),
            "skipped": row.skipped,
        }


def _summary(compaction: TableCompaction, *, dry_run: bool) -> str:
    name, result = compaction.table, compaction.result
    if result is None:
        return f"{name}: {compaction.error}"
    files, size = _totals(result, "in")
    dropped = sum(row.dropped for row in result.partitions)
    news = f"dropped {dropped} merges of {name}: another commit replaced the files meanwhile" if dropped else ""
    if not files:
        return news or f"nothing to merge in {name}"
    if dry_run:
        return f"would merge {files} files ({size}) of {name}"
    made, made_size = _totals(result, "out")
    ids = ", ".join(str(snapshot.id) for snapshot in result.snapshots)
    done = f"merged {files} files ({size}) of {name} into {made} ({made_size}): snapshot {ids}"
    return f"{done}; {news}" if dropped else done


def _totals(result: CompactionResult, side: str) -> tuple[int, str]:
    files = sum(getattr(row, f"files_{side}") for row in result.partitions)
    return files, bytes_text(sum(getattr(row, f"bytes_{side}") for row in result.partitions))
