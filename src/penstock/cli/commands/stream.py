"""Commands about streams: follow, lag."""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Annotated, Final

import pyarrow as pa
import pyarrow.compute as pc
import typer

from penstock.api.streams import names_a_start
from penstock.cli.arguments import Options, TableName, Where, Wide, parse_pairs, split_list
from penstock.cli.draw.labels import count_text
from penstock.cli.exit_codes import ExitCode
from penstock.cli.output.render import note, print_listing
from penstock.cli.output.row_stream import RowStream
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.errors import InvalidOptionError, NotFoundError
from penstock.options import parse_duration_ms

# Columns that fit a terminal of 100 columns, with their heads.
_LAG_HEADS: Final = {
    "reader": "reader",
    "next_snapshot_id": "next",
    "snapshots_behind": "snapshots",
    "rows_behind": "rows",
    "bytes_behind": "size",
    "event_time_lag_ms": "event time lag",
    "oldest_unread_ms": "oldest unread",
}
_MODES: Final = frozenset({"earliest", "latest", "latest-full"})


def follow(
    session: Session,
    table: TableName,
    *,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POSITION",
            help="earliest, latest, latest-full (all rows, then new ones), a snapshot's id, or a time in ISO "
            "8601, local without a zone.  [default: the table's scan options, else latest]",
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Names separated by commas, in the order to print.")] = None,
    where: Where = None,
    limit: Annotated[int | None, typer.Option(min=0, help="End after this many rows.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End when all rows are read.")] = False,
    interval: Annotated[str, typer.Option(help="Wait after a check that found nothing.")] = "1 s",
    consumer: Annotated[
        str | None, typer.Option("--consumer", metavar="ID", help="Continue at this consumer's position, and move it.")
    ] = None,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Print on the error stream where each snapshot begins.")
    ] = False,
    option: Options = None,
) -> None:
    """Print rows as they are added, in the order of the stream, until interrupted."""
    loaded = session.table(table)
    given = parse_pairs(option, "--option")
    if consumer is not None:
        given["consumer-id"] = consumer
    given |= _start_options({**loaded.options, **given}, loaded.name, start)
    wanted = split_list(columns)
    batches = loaded.follow(
        wanted,
        where,
        limit=limit,
        options=given,
        once=once,
        interval_ms=parse_duration_ms(interval),
        on_snapshot=_announcer(session) if snapshots else None,
    )
    schema = loaded.arrow_schema
    printer = RowStream(
        session, schema if wanted is None else pa.schema([schema.field(name) for name in wanted]), exact=True
    )
    with closing(batches):
        for batch in batches:
            printer.write(batch)
    printer.finish()


def lag(
    session: Session,
    table: TableName,
    *,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option("--checkpoint", metavar="PATH", help="Checkpoint of a Spark query; may be repeated."),
    ] = None,
    max_snapshots: Annotated[
        int | None, typer.Option(min=0, help="Exit with 12 when a reader lags by more snapshots.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(min=0, help="Exit with 12 when a reader lags by more rows.")] = None,
    wide: Wide = False,
) -> None:
    """Print the lag of consumers and of queries with a checkpoint; rows are counted before any filter."""
    found = session.table(table).inspect.lag(*(checkpoint or ()))
    print_listing(session, found, _LAG_HEADS, cut="reader", wide=wide)
    lost = found.filter(pc.field("expired_snapshots") > 0)
    for row in lost.to_pylist():
        count = count_text(row["expired_snapshots"], "snapshot")
        note(session, f"{row['reader']}: {count} expired before it read them")
    limits = {"snapshots_behind": max_snapshots, "rows_behind": max_rows}
    given = {column: most for column, most in limits.items() if most is not None}
    if not found.num_rows:
        nothing = f"no reader of {table} is measured: it has no readable consumer, and no --checkpoint was given"
        if given:
            raise NotFoundError(f"{nothing}, so no lag was compared with the limit")
        note(session, nothing)
    lagging = [found.filter(pc.field(column) > most) for column, most in given.items()]
    late = {str(name) for rows in (*lagging, lost) for name in rows.column("reader").to_pylist() if given}
    if late:
        note(session, f"lag above the limit: {', '.join(sorted(late))}")
        raise typer.Exit(ExitCode.BEHIND)


def _start_options(options: Mapping[str, str], table: str, start: str | None) -> dict[str, str]:
    if start is None:
        return {} if names_a_start(options, table) else {"scan.mode": "latest"}
    if start in _MODES:
        return {"scan.mode": start}
    if start.isascii() and start.isdigit():
        return {"scan.mode": "from-snapshot", "scan.snapshot-id": start}
    try:
        millis = parse_millis(start, "--from")
    except InvalidOptionError as error:
        raise InvalidOptionError(
            f"--from '{start}': expected earliest, latest, latest-full, the id of a snapshot, or a time such as "
            "2026-01-01T10:00:00Z"
        ) from error
    return {"scan.mode": "from-timestamp", "scan.timestamp-millis": str(millis)}


def _announcer(session: Session) -> Callable[[int, bool], None]:
    def announce(snapshot_id: int, is_whole: bool) -> None:
        whole = ", all rows" if is_whole else ""
        note(session, f"snapshot {snapshot_id}{whole}")

    return announce


COMMANDS: Final[dict[str, Callable[..., None]]] = {"follow": follow, "lag": lag}
