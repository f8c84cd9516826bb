"""Commands about branches."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from penstock.cli.arguments import GLOBAL_OPTIONS, DryRun, SnapshotId, TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.output.render import print_record, print_rows
from penstock.cli.session import session_of
from penstock.errors import NotFoundError

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

branch = typer.Typer(no_args_is_help=True, help="Manage branches, each with its own snapshots.", rich_markup_mode=None)

BranchName = Annotated[str, typer.Argument(metavar="BRANCH", help="Name of the branch.")]


@branch.command("create", epilog=GLOBAL_OPTIONS)
def create_branch(
    context: typer.Context,
    table: TableName,
    name: BranchName,
    tag: Annotated[str | None, typer.Option("--tag", help="Begin with this tag.")] = None,
    snapshot_id: SnapshotId = None,
) -> None:
    """Create a branch from a tag or a snapshot; without either, it has no rows."""
    session = session_of(context)
    session.table(table).versions.create_branch(name, tag=tag, snapshot_id=snapshot_id)
    print_record(session, {"table": table, "branch": name}, f"created branch {name} of {table}")


@branch.command("rename", epilog=GLOBAL_OPTIONS)
def rename_branch(
    context: typer.Context,
    table: TableName,
    name: BranchName,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its new name.")],
) -> None:
    """Rename a branch; nothing may write to it meanwhile."""
    session = session_of(context)
    session.table(table).versions.rename_branch(name, new_name)
    print_record(session, {"table": table, "branch": new_name}, f"renamed branch {name} of {table} to {new_name}")


@branch.command("fast-forward", epilog=GLOBAL_OPTIONS)
def fast_forward(context: typer.Context, table: TableName, name: BranchName) -> None:
    """Add to the main branch the snapshots that a branch has received since its creation."""
    session = session_of(context)
    count = session.table(table).versions.fast_forward(name)
    record: dict[str, Plain] = {"table": table, "branch": name, "snapshots": count}
    print_record(session, record, f"{table} has {count} more snapshots, those of branch {name}")


@branch.command("delete", epilog=GLOBAL_OPTIONS)
def delete_branch(
    context: typer.Context, table: TableName, name: BranchName, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Delete a branch; files that only it uses become orphans."""
    session = session_of(context)
    loaded = session.table(table)
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
    loaded.versions.delete_branch(name)
    print_record(session, {"table": table, "branch": name}, f"deleted branch {name} of {table}")


@branch.command("list", epilog=GLOBAL_OPTIONS)
def list_branches(context: typer.Context, table: TableName) -> None:
    """List branches."""
    session = session_of(context)
    print_rows(session, session.table(table).inspect.branches())


COMMANDS: Final[dict[str, Any]] = {"branch": branch}
