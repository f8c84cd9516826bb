"""Commands about data that is complete: wait."""

from collections.abc import Callable
from typing import Annotated, Final

import typer

from penstock.cli.arguments import TableName
from penstock.cli.progress import status_line
from penstock.cli.render import print_record
from penstock.cli.session import session_of
from penstock.cli.times import parse_millis
from penstock.options import parse_duration_ms
from penstock.spec.snapshot import Snapshot
from penstock.table.store import MetadataStore
from penstock.table.travel import utc_text
from penstock.table.wait import Patience, shortfall, wait_for_watermark


def wait(
    context: typer.Context,
    table: TableName,
    *,
    watermark: Annotated[
        str,
        typer.Option(help="Event time to wait for: ISO 8601, local without a zone; or ms since 1970."),
    ],
    timeout: Annotated[
        str | None, typer.Option(help='Exit with 13 after that, such as "10 min".  [default: wait for ever]')
    ] = None,
    interval: Annotated[str, typer.Option(help="Between looks.")] = "1 s",
) -> None:
    """Wait until the table has all rows up to an event time, by its watermark; print the snapshot that has them."""
    session = session_of(context)
    ref = session.ref(table)
    wanted = parse_millis(watermark, "--watermark") or 0
    patience = Patience(
        timeout=None if timeout is None else parse_duration_ms(timeout) / 1000,
        interval=parse_duration_ms(interval) / 1000,
    )
    title = f"waiting for {utc_text(wanted)} of {table}"
    with status_line(session, title) as say:

        def tell(latest: Snapshot | None) -> None:
            say(f"{title}: {shortfall(wanted, latest)}")

        snapshot = wait_for_watermark(MetadataStore(ref), wanted, patience, on_look=tell)
    reached = snapshot.watermark or 0
    print_record(
        session,
        {"table": table, "snapshot_id": snapshot.id, "watermark": reached},
        f"{table} has reached {utc_text(reached)}: snapshot {snapshot.id}",
    )


COMMANDS: Final[dict[str, Callable[..., None]]] = {"wait": wait}
