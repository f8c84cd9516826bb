"""Commands about versions of a table: tags, branches and rollback."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow.compute as pc
import typer

from penstock.api.operations.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from penstock.api.operations.declaration import run_on
from penstock.api.operations.rollback import RollbackTo, RollbackToAsLatest
from penstock.api.operations.tags import CreateTag, DeleteTag
from penstock.cli.arguments import TableName, Yes
from penstock.cli.command import CommandGroup
from penstock.cli.commands.inspect import HEADS, of_table
from penstock.cli.confirm import confirm
from penstock.cli.output.render import print_listing, print_record
from penstock.cli.session import Session
from penstock.errors import InvalidOptionError, NotFoundError

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

tag = CommandGroup("Manage tags, which retain the snapshots they name.")


@tag.add("create")
def create_tag(session: Session, table: TableName, operation: CreateTag) -> None:
    """Create a tag for a snapshot."""
    run_on(session.table(table), operation)
    name = operation.name
    print_record(session, {"table": table, "tag": name}, f"created tag {name} of {table}")


@tag.add("delete")
def delete_tag(session: Session, table: TableName, operation: DeleteTag, yes: Yes = False) -> None:
    """Delete a tag; its snapshot may then expire."""
    loaded, name = session.table(table), operation.name
    if operation.dry_run:
        run_on(loaded, operation)
        print_listing(session, loaded.inspect.tags().filter(pc.field("tag_name") == name), HEADS["tags"])
        return
    confirm(session, f"delete tag {name} of {table}?", yes=yes)
    run_on(loaded, operation)
    print_record(session, {"table": table, "tag": name}, f"deleted tag {name} of {table}")


tag.add("list")(of_table("tags", "List tags."))


branch = CommandGroup("Manage branches, each with its own snapshots.")


@branch.add("create")
def create_branch(session: Session, table: TableName, operation: CreateBranch) -> None:
    """Create a branch from a tag or a snapshot; without either, it has no rows."""
    run_on(session.table(table), operation)
    name = operation.name
    print_record(session, {"table": table, "branch": name}, f"created branch {name} of {table}")


@branch.add("rename")
def rename_branch(session: Session, table: TableName, operation: RenameBranch) -> None:
    """Rename a branch; nothing may write to it meanwhile."""
    run_on(session.table(table), operation)
    done = f"renamed branch {operation.name} of {table} to {operation.new_name}"
    print_record(session, {"table": table, "branch": operation.new_name}, done)


@branch.add("fast-forward")
def fast_forward(session: Session, table: TableName, operation: FastForward) -> None:
    """Add to the main branch the snapshots that a branch has received since its creation."""
    count = run_on(session.table(table), operation)
    record: dict[str, Plain] = {"table": table, "branch": operation.name, "snapshots": count}
    print_record(session, record, f"{table} has {count:,} more snapshots, those of branch {operation.name}")


@branch.add("delete")
def delete_branch(session: Session, table: TableName, operation: DeleteBranch, yes: Yes = False) -> None:
    """Delete a branch; files that only it uses become orphans."""
    loaded, name = session.table(table), operation.name
    if operation.dry_run:
        names = [str(each) for each in loaded.inspect.branches().column("branch_name").to_pylist()]
        if name not in names:
            there = ", ".join(names) or "none but main"
            raise NotFoundError(f"table {loaded.name} has no branch '{name}'; there are {there}")
        latest = loaded.with_options({"branch": name}).latest_snapshot()
        rows = None if latest is None else latest.total_record_count
        print_record(session, {"table": table, "branch": name, "rows": rows, "dry_run": True})
        return
    confirm(session, f"delete branch {name} of {table}?", yes=yes)
    run_on(loaded, operation)
    print_record(session, {"table": table, "branch": name}, f"deleted branch {name} of {table}")


branch.add("list")(of_table("branches", "List branches."))


def rollback(
    session: Session,
    table: TableName,
    operation: RollbackTo,
    as_latest: Annotated[
        bool,
        typer.Option("--as-latest", help="Commit the older state as a new snapshot and remove nothing: can be undone."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Make an older snapshot the latest and remove all later ones, or with --as-latest repeat it after them.

    Without --as-latest, nothing may write meanwhile, and what is removed cannot be brought back.
    """
    if [operation.snapshot_id, operation.tag, operation.watermark, operation.timestamp].count(None) != 3:
        raise InvalidOptionError("give either --snapshot-id, or --tag, or --timestamp, or --watermark")
    loaded = session.table(table, skip_damaged_schemas=True)
    plan = run_on(loaded, replace(operation, dry_run=True))
    # The snapshot in the question, even if the watermark selects another one by now.
    snapshot_id = plan.target.id if operation.tag is None else None
    record: dict[str, Plain] = {
        "table": table,
        "snapshot_id": plan.target.id,
        "rows_left": plan.target.total_record_count,
        "removed_snapshots": [] if as_latest else list(plan.snapshot_ids),
        "removed_tags": [] if as_latest else list(plan.tags),
        "removed_schemas": [] if as_latest else list(plan.damaged_schema_ids),
    }
    if operation.dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    if as_latest:
        made = run_on(loaded, RollbackToAsLatest(snapshot_id=snapshot_id, tag=operation.tag))
        done = (
            f"snapshot {made.id} of {table} has"
            if made
            else f"nothing was committed: the latest snapshot of {table} has"
        )
        print_record(
            session,
            {**record, "made_snapshot": made.id if made else None},
            f"{done} the rows of snapshot {plan.target.id}",
        )
        return
    lost = f"{len(plan.snapshot_ids):,} snapshots" + (f" and the tags {', '.join(plan.tags)}" if plan.tags else "")
    left = "" if plan.target.total_record_count is None else f" and leaves {plan.target.total_record_count:,} rows"
    confirm(session, f"roll {table} back to snapshot {plan.target.id}, which removes {lost}{left}?", yes=yes)
    run_on(loaded, RollbackTo(snapshot_id=snapshot_id, tag=operation.tag))
    print_record(session, record, f"rolled {table} back to snapshot {plan.target.id}")


COMMANDS: Final[dict[str, Any]] = {"branch": branch, "tag": tag, "rollback": rollback}
