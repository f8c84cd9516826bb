"""Commands about branches."""

from typing import TYPE_CHECKING, Any, Final

import typer

from penstock.api.operations.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from penstock.api.operations.declaration import run_on
from penstock.cli.arguments import GLOBAL_OPTIONS, DryRun, TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.operation import command
from penstock.cli.output.render import print_record, print_rows
from penstock.cli.session import Session, session_of
from penstock.errors import NotFoundError

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

branch = typer.Typer(no_args_is_help=True, help="Manage branches, each with its own snapshots.", rich_markup_mode=None)


@branch.command("create", epilog=GLOBAL_OPTIONS)
@command
def create_branch(session: Session, table: TableName, operation: CreateBranch) -> None:
    """Create a branch from a tag or a snapshot; without either, it has no rows."""
    run_on(session.table(table), operation)
    name = operation.name
    print_record(session, {"table": table, "branch": name}, f"created branch {name} of {table}")


@branch.command("rename", epilog=GLOBAL_OPTIONS)
@command
def rename_branch(session: Session, table: TableName, operation: RenameBranch) -> None:
    """Rename a branch; nothing may write to it meanwhile."""
    run_on(session.table(table), operation)
    done = f"renamed branch {operation.name} of {table} to {operation.new_name}"
    print_record(session, {"table": table, "branch": operation.new_name}, done)


@branch.command("fast-forward", epilog=GLOBAL_OPTIONS)
@command
def fast_forward(session: Session, table: TableName, operation: FastForward) -> None:
    """Add to the main branch the snapshots that a branch has received since its creation."""
    count = run_on(session.table(table), operation)
    record: dict[str, Plain] = {"table": table, "branch": operation.name, "snapshots": count}
    print_record(session, record, f"{table} has {count} more snapshots, those of branch {operation.name}")


@branch.command("delete", epilog=GLOBAL_OPTIONS)
@command
def delete_branch(
    session: Session, table: TableName, operation: DeleteBranch, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Delete a branch; files that only it uses become orphans."""
    loaded, name = session.table(table), operation.name
    if dry_run:
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


@branch.command("list", epilog=GLOBAL_OPTIONS)
def list_branches(context: typer.Context, table: TableName) -> None:
    """List branches."""
    session = session_of(context)
    print_rows(session, session.table(table).inspect.branches())


COMMANDS: Final[dict[str, Any]] = {"branch": branch}
