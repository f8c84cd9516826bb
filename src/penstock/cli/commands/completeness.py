"""Commands about complete data: wait, mark-done."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.api.operations.declaration import run_on
from penstock.api.operations.partitions import MarkPartitionsDone
from penstock.cli.arguments import TableName
from penstock.cli.output.progress import status_line
from penstock.cli.output.render import note, print_record, print_records
from penstock.cli.session import Session
from penstock.cli.times import instant_text, parse_millis
from penstock.clocks import utc_text
from penstock.options import parse_duration_ms

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

_DONE_COLUMNS: Final = ("partition", "rows", "creation_time", "modification_time")


def wait(
    session: Session,
    table: TableName,
    *,
    watermark: Annotated[
        str,
        typer.Option(help="Event time to wait for: ISO 8601, local without a zone; or ms since 1970."),
    ],
    timeout: Annotated[
        str | None, typer.Option(help='Exit with 13 after this time, such as "10 min".  [default: wait forever]')
    ] = None,
    interval: Annotated[str, typer.Option(help="Wait after a check.")] = "1 s",
) -> None:
    """Wait until the table's watermark reaches an event time; print the first snapshot seen with it."""
    loaded = session.table(table)
    wanted = parse_millis(watermark, "--watermark") or 0
    title = f"waiting for {utc_text(wanted)} of {table}"
    with status_line(session, title) as say:
        snapshot = loaded.wait_until(
            wanted,
            timeout=None if timeout is None else parse_duration_ms(timeout) / 1000,
            interval=parse_duration_ms(interval) / 1000,
            on_poll=lambda text: say(f"{title}: {text}"),
        )
    reached = snapshot.watermark or 0
    print_record(
        session,
        {"table": table, "snapshot_id": snapshot.id, "watermark": reached},
        f"{table} has reached {utc_text(reached)}: snapshot {snapshot.id}",
    )


def mark_done(session: Session, table: TableName, operation: MarkPartitionsDone) -> None:
    """Mark partitions done: write the file _SUCCESS into their directories.

    Without --partition, marks those due by the table's partition.idle-time-to-done and partition.time-interval.
    """
    done = run_on(session.table(table), operation)
    records: list[dict[str, Plain]] = [
        {
            "partition": each.directory,
            "rows": each.rows,
            "creation_time": instant_text(each.creation_millis),
            "modification_time": instant_text(each.modification_millis),
        }
        for each in done
    ]
    print_records(session, records, _DONE_COLUMNS)
    note(session, f"{len(done):,} partitions of {table} {'would be' if operation.dry_run else 'are'} marked done")


COMMANDS: Final[dict[str, Callable[..., None]]] = {"wait": wait, "mark-done": mark_done}
