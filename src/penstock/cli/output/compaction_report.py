"""Prints the results of compactions."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import typer

from penstock.cli.exit_codes import exit_code_of
from penstock.cli.output.render import note, print_records
from penstock.cli.output.row_stream import RowStream
from penstock.errors import UnsupportedFeatureError
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock import CompactionResult, CompactionState
    from penstock.api.compact_tables import TableCompaction
    from penstock.cli.output.plain import Plain
    from penstock.cli.session import Session

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
