"""The command that merges small files, of one table or many, once or until interrupted.

Its arguments for one table, for many and for a loop, and its report as a table or as records.
"""

import datetime as dt
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, Final

import pyarrow as pa
import typer

from penstock import CompactionResult, CompactionState, MergedFiles
from penstock.api.operations.compaction import Compact, TableCompaction, compact_tables
from penstock.api.operations.declaration import run_on
from penstock.catalog.selection import select_tables
from penstock.cli.exit_codes import exit_code_of
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.plain import Plain
from penstock.cli.output.progress import Unit, progress_bar
from penstock.cli.output.render import note, print_records, print_text
from penstock.cli.output.row_stream import RowStream
from penstock.cli.output.spark_failure import open_spark
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.options import parse_duration_ms
from penstock.printable import bytes_text


def compact(
    session: Session,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="database.table, or the table's path.")] = None,
    *,
    operation: Compact,
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
    if (table is None) == ((database, including, excluding) == (None, None, None)):
        raise InvalidOptionError("give either a TABLE or a --database")
    if spark is not None and threads is not None:
        raise InvalidOptionError("give either --threads, for merges in this process, or --spark")
    if follow:
        if table is None or operation != Compact(options=operation.options, threads=threads):
            raise InvalidOptionError(
                "--follow compacts one whole TABLE: leave out the options that select, sort or try"
            )
        _follow(session, table, operation, master=spark, idle_ms=parse_duration_ms(interval))
    elif table is not None:
        done = TableCompaction(table=table, result=_compact(session, table, operation, master=spark), error=None)
        print_compactions(session, (done,), dry_run=operation.dry_run)
    else:
        names = select_tables(
            session.open_warehouse(), databases=database or ".*", including=including or ".*", excluding=excluding
        )
        many = tuple(compact_tables(names, lambda name: _compact(session, name, operation, master=spark)))
        print_compactions(session, many, dry_run=operation.dry_run)


COMMANDS: Final[dict[str, Callable[..., None]]] = {"compact": compact}
_CHECK_SECONDS: Final = 0.2


def _compact(session: Session, table: str, operation: Compact, *, master: str | None) -> CompactionResult:
    """Compact a table once.

    Args:
        master: of Spark; None for this process.
    """
    loaded = session.table(table)
    if master is not None and not operation.dry_run:
        operation = replace(operation, spark=open_spark(session, master, {}))
    with ExitStack() as stack:
        bar = _Bar(session, loaded.name, stack)
        result = run_on(loaded, replace(operation, on_start=bar.begin, on_done=bar.advance))
    several = {row.partition for row in result.partitions if row.files_out > 1}
    if several and not operation.dry_run:
        debt = loaded.inspect.compaction_debt().to_pylist()
        waiting = sum(row["waiting_file_count"] for row in debt if row["partition"] in several)
        if waiting:
            note(session, f"{waiting:,} files are small still: penstock compact {loaded.name} merges them")
    return result


def _follow(session: Session, table: str, operation: Compact, *, master: str | None, idle_ms: int) -> None:
    """Compact a growing table until interrupted; files of uncommitted merges are deleted.

    Args:
        master: of Spark; None for this process.
        idle_ms: wait after a check that found nothing.
    """
    loaded = session.table(table)
    compactor = loaded.maintenance.compact_in_background(
        None if master is None else open_spark(session, master, {}),
        options=operation.options,
        threads=operation.threads,
        idle_seconds=idle_ms / 1000,
    )
    printer = EventPrinter(session)
    with until_interrupted() as interrupted:
        compactor.start()
        note(session, f"compacting {table} as it grows; end with Ctrl-C")
        try:
            while not interrupted.wait(_CHECK_SECONDS):
                printer.show(compactor.state)
        finally:
            compactor.stop()
        printer.show(compactor.state)


class _Bar:
    """A progress bar of the merged bytes."""

    def __init__(self, session: Session, name: str, stack: ExitStack) -> None:
        self._session = session
        self._name = name
        self._stack = stack
        self._report: Callable[[int, int], None] | None = None
        self._rows = 0
        self._bytes = 0

    def begin(self, total: int) -> None:
        self._report = self._stack.enter_context(
            progress_bar(self._session, f"compacting {self._name}", Unit.ROWS, total_bytes=total)
        )

    def advance(self, merged: MergedFiles) -> None:
        self._rows += sum(file.row_count for file in merged.task.files)
        self._bytes += merged.task.size_bytes
        if self._report is not None:
            self._report(self._rows, self._bytes)


_COLUMNS: Final = (
    "table", "partition", "files_before", "bytes_before", "files_in", "bytes_in", "files_out", "bytes_out", "seconds",
    "skipped",
)  # fmt: skip
# Those that fit a terminal of 100 columns, with their heads.
_HEADS: Final = {
    "table": "table",
    "partition": "partition",
    "files_before": "files",
    "files_in": "merged",
    "bytes_in": "merged size",
    "files_out": "into",
    "bytes_out": "new size",
    "seconds": "time",
    "skipped": "skipped",
}
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
    """Print a line for each partition, and on the error stream the outcome of each table."""
    records = [record for each in compactions for record in _records(each, dry_run=dry_run)]
    is_one = len(compactions) == 1
    print_records(session, records, _COLUMNS, {key: _HEADS[key] for key in _HEADS if key != "table" or not is_one})
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
            waiting = {"waiting_files": state.waiting_files, "waiting_bytes": state.waiting_bytes}
            now = dt.datetime.now(dt.UTC)
            if self._session.format is OutputFormat.TABLE:
                print_text(_round_text(now, counts | waiting))
                sys.stdout.flush()
            else:
                row = {"time": now, "merges": committed, **counts, **waiting}
                self._stream.write(pa.RecordBatch.from_pylist([row], _EVENT))
        self._idle_checks = 0 if state.is_active else self._idle_checks + 1
        problem = f"waiting after an error: {state.last_error}" if state.last_error else ""
        if self._idle_checks > _IDLE_CHECKS and not problem:
            problem = "waiting: another process compacts the table"
        if problem and problem != self._said:
            note(self._session, problem)
        self._said = problem


def _round_text(now: dt.datetime, counts: Mapping[str, int]) -> str:
    size_in, size_out, size_left = (bytes_text(counts[name]) for name in ("bytes_in", "bytes_out", "waiting_bytes"))
    return (
        f"{now:%Y-%m-%d %H:%M:%SZ}  merged {counts['files_in']:,} files ({size_in}) into {counts['files_out']:,} "
        f"({size_out}); {counts['waiting_files']:,} more wait ({size_left})"
    )


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
        return f"would merge {files:,} files ({size}) of {name}"
    made, made_size = _totals(result, "out")
    ids = ", ".join(str(snapshot.id) for snapshot in result.snapshots)
    done = f"merged {files:,} files ({size}) of {name} into {made:,} ({made_size}): snapshot {ids}"
    return f"{done}; {news}" if dropped else done


def _totals(result: CompactionResult, side: str) -> tuple[int, str]:
    files = sum(getattr(row, f"files_{side}") for row in result.partitions)
    return files, bytes_text(sum(getattr(row, f"bytes_{side}") for row in result.partitions))
