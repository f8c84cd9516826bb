"""The command that shows a table's health and history live in the terminal.

For programs, the history is a stream of records.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from penstock.api.history import DEFAULT_LIMIT, HistoryReader, TableHistory, history_table, open_history
from penstock.cli.arguments import TableName  # noqa: TC001 - typer evaluates annotations
from penstock.cli.draw.health import checks_of
from penstock.cli.draw.terminal import draw_screen
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.plain import to_plain
from penstock.cli.output.render import print_drawn, print_line, print_rows
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session  # noqa: TC001 - evaluated with the annotations of the command
from penstock.cli.times import instant_text
from penstock.errors import InvalidOptionError
from penstock.options import parse_duration_ms

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    import pyarrow as pa

    from penstock.api.history import Reader, StalledWatermark, TableHistory
    from penstock.cli.output.plain import Plain

# A file or a pipe has no size.
_WIDTH: Final = 120
_HEIGHT: Final = 40


def watch(
    session: Session,
    table: TableName,
    *,
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
    interval: Annotated[str, typer.Option(help="Between looks.")] = "2 s",
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint", metavar="PATH", help="Checkpoint of a Spark query that reads the table; may be repeated."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest snapshots to read.")] = DEFAULT_LIMIT,
) -> None:
    """Show a table's health and history until interrupted: new rows, watermark, files, readers, order."""
    if session.format is OutputFormat.CSV and not once:
        raise InvalidOptionError("--format csv prints the commits once: give --once too")
    reader = open_history(session.table(table), checkpoints=checkpoint or (), limit=limit)
    interval_ms = parse_duration_ms(interval)
    if once:
        history = reader.load()
        _print(session, history)
        history.warn_damaged()
        return
    with until_interrupted() as interrupted:
        if session.format is OutputFormat.TABLE and sys.stdout.isatty():
            _show(reader, interrupted, interval_ms / 1000)
            return
        while not interrupted.is_set():
            _print(session, reader.load())
            interrupted.wait(interval_ms / 1000)


def _show(reader: HistoryReader, interrupted: Event, seconds: float) -> None:
    console = Console(file=sys.stdout, highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not interrupted.is_set():
            width, height = console.size
            live.update(draw_screen(reader.load(), width=width, height=height), refresh=True)
            interrupted.wait(seconds)


def _print(session: Session, history: TableHistory) -> None:
    match session.format:
        case OutputFormat.JSON:
            print_line(history_record(history))
        case OutputFormat.CSV:
            print_rows(session, history_table(history.commits))
        case OutputFormat.TABLE:
            width = shutil.get_terminal_size((_WIDTH, _HEIGHT)).columns
            console = Console(width=width, highlight=False)
            with console.capture() as captured:
                console.print(draw_screen(history, width=width, height=_HEIGHT))
            print_drawn("\n".join(line.rstrip() for line in captured.get().splitlines()))
    sys.stdout.flush()


COMMANDS: Final[dict[str, Callable[..., None]]] = {"watch": watch}


def history_record(history: TableHistory) -> dict[str, Plain]:
    """Return the whole history; times are text in UTC, watermarks ms of event time as in system tables."""
    return {
        "table": history.name,
        "location": history.location,
        "time": instant_text(history.seen_millis),
        "schema_id": history.schema_id,
        "bucket": history.total_buckets,
        "partition_keys": list(history.partition_keys),
        "event_time_column": history.event_time_column,
        "signs": [
            {"topic": check.topic, "verdict": check.status.value, "text": check.text} for check in checks_of(history)
        ],
        "history": _rows(history_table(history.commits)),
        "left_out_snapshots": history.left_out,
        "damaged_snapshots": [
            {"snapshot_id": snapshot_id, "message": message} for snapshot_id, message in history.unreadable
        ],
        "damaged_files": [{"kind": kind, "name": name, "message": str(error)} for kind, name, error in history.damaged],
        "standstills": [_stalled_watermark(each) for each in history.standstills],
        "compaction": None if history.debt is None else dict(asdict(history.debt)),
        "readers": [_reader(reader) for reader in history.readers],
        "tags": [
            {"tag_name": tag.name, "snapshot_id": tag.snapshot_id, "commit_time": instant_text(tag.time_millis)}
            for tag in history.tags
        ],
        "buckets": [dict(asdict(each)) for each in history.buckets],
        "order": None
        if history.order is None
        else {"buckets": history.order.buckets, "files": history.order.files, "overlaps": history.order.overlaps},
    }


def _rows(rows: pa.Table) -> list[Plain]:
    columns = [to_plain(column.combine_chunks()) for column in rows.columns]
    return [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _stalled_watermark(each: StalledWatermark) -> dict[str, Plain]:
    return {
        "watermark": each.watermark,
        "from": instant_text(each.from_millis),
        "to": None if each.is_open else instant_text(each.to_millis),
        "duration_ms": each.duration_ms,
        "commits": each.commits,
    }


def _reader(reader: Reader) -> dict[str, Plain]:
    return {
        "reader": reader.name,
        "kind": reader.kind,
        "next_snapshot_id": reader.next_snapshot_id,
        "snapshots_behind": reader.snapshots,
        "files_behind": reader.files,
        "bytes_behind": reader.bytes,
        "rows_behind": reader.rows,
        "event_time_lag_ms": reader.event_time_lag_ms,
        "unread_since": None if reader.unread_since_millis is None else instant_text(reader.unread_since_millis),
        "expired_snapshots": reader.expired_snapshots,
    }
