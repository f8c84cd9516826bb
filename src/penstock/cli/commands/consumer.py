"""Commands about consumers: positions of readers, stored in the table."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from penstock.api.operations.consumers import DeleteConsumer, ResetConsumer
from penstock.api.operations.declaration import run_on
from penstock.cli.arguments import TableName, Yes
from penstock.cli.command import CommandGroup
from penstock.cli.commands.inspect import of_table
from penstock.cli.confirm import confirm
from penstock.cli.output.render import print_record
from penstock.cli.session import Session

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

app = CommandGroup("Manage consumers: positions of readers, which retain unread snapshots.")


app.add("list")(of_table("consumers", "List consumers and the snapshots that they read next."))


@app.add("reset")
def reset(session: Session, table: TableName, operation: ResetConsumer, yes: Yes = False) -> None:
    """Move a consumer; latest is after all existing snapshots. No query may use this consumer meanwhile."""
    loaded, consumer_id = session.table(table), operation.consumer_id
    planned = run_on(loaded, replace(operation, dry_run=True))
    target, now = planned.next_snapshot_id, planned.previous_next_snapshot_id
    record: dict[str, Plain] = {"table": table, **asdict(planned)}
    if operation.dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    if now is not None:
        confirm(session, f"move consumer {consumer_id} of {table} from {now} to {target}?", yes=yes)
    run_on(loaded, replace(operation, next_snapshot=target))
    print_record(session, record, f"consumer {consumer_id} of {table} goes on at snapshot {target}")


@app.add("delete")
def delete(session: Session, table: TableName, operation: DeleteConsumer, yes: Yes = False) -> None:
    """Delete a consumer; snapshots that it has not read may then expire."""
    loaded, consumer_id = session.table(table), operation.consumer_id
    run_on(loaded, replace(operation, dry_run=True))
    record: dict[str, Plain] = {"table": table, "consumer_id": consumer_id}
    if operation.dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    confirm(session, f"delete consumer {consumer_id} of {table}?", yes=yes)
    run_on(loaded, operation)
    print_record(session, record, f"deleted consumer {consumer_id} of {table}")


COMMANDS: Final = {"consumer": app}
