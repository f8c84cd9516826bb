"""Commands about consumers: positions of readers, stored in the table."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.arguments import GLOBAL_OPTIONS, DryRun, TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.output.render import print_record, print_rows
from penstock.cli.session import session_of
from penstock.errors import InvalidOptionError
from penstock.table.store import MetadataStore
from penstock.table.stream.consumers import check_consumer, check_reset

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

# Of an id of 64 bits.
_MAX_DIGITS: Final = 18

app = typer.Typer(
    no_args_is_help=True,
    help="Positions of readers; snapshots that are not read yet do not expire.",
    rich_markup_mode=None,
)

ConsumerId = Annotated[str, typer.Argument(metavar="ID", help="Value of the reader's option consumer-id.")]


@app.command("list", epilog=GLOBAL_OPTIONS)
def list_consumers(context: typer.Context, table: TableName) -> None:
    """List consumers and the snapshots that they read next."""
    session = session_of(context)
    print_rows(session, session.table(table).consumers())


@app.command("reset", epilog=GLOBAL_OPTIONS)
def reset(
    context: typer.Context,
    table: TableName,
    consumer_id: ConsumerId,
    to: Annotated[
        str, typer.Option("--to", metavar="SNAPSHOT", help="Id of the next snapshot to read; or earliest, or latest.")
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Move a consumer; latest is after all existing snapshots. No query may read as this consumer meanwhile."""
    session = session_of(context)
    loaded = session.table(table)
    store = MetadataStore(session.ref(table))
    target = _snapshot_to_read(store, to)
    check_reset(store, consumer_id, target)
    now = store.load_consumer(consumer_id)
    record: dict[str, Plain] = {
        "table": table,
        "consumer_id": consumer_id,
        "next_snapshot_id": target,
        "previous_next_snapshot_id": now,
    }
    if dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    if now is not None:
        confirm(session, f"move consumer {consumer_id} of {table} from {now} to {target}?", yes=yes)
    loaded.reset_consumer(consumer_id, target)
    print_record(session, record, f"consumer {consumer_id} of {table} goes on at snapshot {target}")


@app.command("delete", epilog=GLOBAL_OPTIONS)
def delete(
    context: typer.Context, table: TableName, consumer_id: ConsumerId, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Delete a consumer; what it has not read may then expire."""
    session = session_of(context)
    loaded = session.table(table)
    check_consumer(MetadataStore(session.ref(table)), consumer_id)
    record: dict[str, Plain] = {"table": table, "consumer_id": consumer_id}
    if dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    confirm(session, f"delete consumer {consumer_id} of {table}?", yes=yes)
    loaded.delete_consumer(consumer_id)
    print_record(session, record, f"deleted consumer {consumer_id} of {table}")


def _snapshot_to_read(store: MetadataStore, text: str) -> int:
    match text:
        case "earliest":
            return store.earliest_snapshot_id() or 1
        case "latest":
            return (store.latest_snapshot_id() or 0) + 1
        case _ if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
            return int(text)
        case _:
            raise InvalidOptionError(f"--to '{text}': expected the id of a snapshot, earliest or latest")


COMMANDS: Final = {"consumer": app}
