"""Commands about consumers: positions of readers, stored in the table."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from penstock.cli.arguments import GLOBAL_OPTIONS, DryRun, TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.output.render import print_record, print_rows
from penstock.cli.session import session_of
from penstock.errors import InvalidOptionError

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

# Digits of a 64-bit id.
_MAX_DIGITS: Final = 18

app = typer.Typer(
    no_args_is_help=True,
    help="Manage consumers: positions of readers, which retain unread snapshots.",
    rich_markup_mode=None,
)

ConsumerId = Annotated[str, typer.Argument(metavar="ID", help="Value of the reader's option consumer-id.")]


@app.command("list", epilog=GLOBAL_OPTIONS)
def list_consumers(context: typer.Context, table: TableName) -> None:
    """List consumers and the snapshots that they read next."""
    session = session_of(context)
    print_rows(session, session.table(table).inspect.consumers())


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
    """Move a consumer; latest is after all existing snapshots. No query may use this consumer meanwhile."""
    session = session_of(context)
    loaded = session.table(table)
    planned = loaded.maintenance.reset_consumer(consumer_id, _snapshot_to_read(to), dry_run=True)
    target, now = planned.next_snapshot_id, planned.previous_next_snapshot_id
    record: dict[str, Plain] = {"table": table, **asdict(planned)}
    if dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    if now is not None:
        confirm(session, f"move consumer {consumer_id} of {table} from {now} to {target}?", yes=yes)
    loaded.maintenance.reset_consumer(consumer_id, target)
    print_record(session, record, f"consumer {consumer_id} of {table} goes on at snapshot {target}")


@app.command("delete", epilog=GLOBAL_OPTIONS)
def delete(
    context: typer.Context, table: TableName, consumer_id: ConsumerId, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Delete a consumer; snapshots that it has not read may then expire."""
    session = session_of(context)
    loaded = session.table(table)
    loaded.maintenance.delete_consumer(consumer_id, dry_run=True)
    record: dict[str, Plain] = {"table": table, "consumer_id": consumer_id}
    if dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    confirm(session, f"delete consumer {consumer_id} of {table}?", yes=yes)
    loaded.maintenance.delete_consumer(consumer_id)
    print_record(session, record, f"deleted consumer {consumer_id} of {table}")


def _snapshot_to_read(text: str) -> int | Literal["earliest", "latest"]:
    match text:
        case "earliest" | "latest":
            return text
        case _ if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
            return int(text)
        case _:
            raise InvalidOptionError(f"--to '{text}': expected the id of a snapshot, earliest or latest")


COMMANDS: Final = {"consumer": app}
