"""Commands about streams: follow, lag."""

from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Final

import pyarrow.compute as pc
import typer

from penstock.cli.arguments import Options, TableName, Where, parse_pairs, split_list
from penstock.cli.exit_codes import ExitCode
from penstock.cli.output.render import note, print_rows
from penstock.cli.output.row_stream import RowStream
from penstock.cli.session import Session, session_of
from penstock.cli.times import parse_millis
from penstock.errors import InvalidOptionError
from penstock.options import ReadOptions, Side, check_keys, check_side, parse_duration_ms
from penstock.options.choices import ScanMode
from penstock.predicate.parse import parse_filter
from penstock.table.read.travel import resolve_default
from penstock.table.ref import TableRef
from penstock.table.store import MetadataStore
from penstock.table.stream.offset import Phase
from penstock.table.stream.tail import LocalStreamReader, PollOptions

_MODES: Final = frozenset({"earliest", "latest", "latest-full"})


def follow(
    context: typer.Context,
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
    session = session_of(context)
    given = parse_pairs(option, "--option")
    ref = session.ref(table)
    check_keys(given, table=ref.name)
    check_side(given, ref.name, Side.SOURCE)
    if consumer is not None:
        given["consumer-id"] = consumer
    ref = ref.with_options({**given, **_start_options(ref.with_options(given), start)})
    tail = LocalStreamReader(
        ref,
        MetadataStore(ref),
        columns=split_list(columns),
        predicate=None if where is None else parse_filter(where),
        on_snapshot=_announcer(session) if snapshots else None,
    )
    waiting = PollOptions(interval_ms=parse_duration_ms(interval), once=once)
    printer = RowStream(session, tail.schema, exact=True)
    with closing(tail.read(waiting, limit=limit)) as batches:
        for batch in batches:
            printer.write(batch)
    printer.finish()


def lag(
    context: typer.Context,
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
) -> None:
    """Print how far consumers and queries with a checkpoint lag; rows are counted before any filter."""
    session = session_of(context)
    found = session.table(table).lag(*(checkpoint or ()))
    print_rows(session, found)
    lost = found.filter(pc.field("expired_snapshots") > 0)
    for row in lost.to_pylist():
        note(session, f"{row['reader']}: {row['expired_snapshots']} snapshots expired before they were read")
    limits = {"snapshots_behind": max_snapshots, "rows_behind": max_rows}
    given = {column: most for column, most in limits.items() if most is not None}
    lagging = [found.filter(pc.field(column) > most) for column, most in given.items()]
    late = {str(name) for rows in (*lagging, lost) for name in rows.column("reader").to_pylist() if given}
    if late:
        note(session, f"lag above the limit: {', '.join(sorted(late))}")
        raise typer.Exit(ExitCode.BEHIND)


def _start_options(ref: TableRef, start: str | None) -> dict[str, str]:
    if start is None:
        is_silent = "scan.mode" not in ref.options
        mode = resolve_default(ref.parsed(ReadOptions))
        return {"scan.mode": "latest"} if is_silent and mode is ScanMode.LATEST_FULL else {}
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


def _announcer(session: Session) -> Callable[[int, Phase], None]:
    def announce(snapshot_id: int, phase: Phase) -> None:
        whole = ", all rows" if phase is Phase.FULL else ""
        note(session, f"snapshot {snapshot_id}{whole}")

    return announce


COMMANDS: Final[dict[str, Callable[..., None]]] = {"follow": follow, "lag": lag}
