"""Commands about earlier snapshots: tags and rollback."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow.compute as pc
import typer

from penstock.cli.arguments import GLOBAL_OPTIONS, DryRun, SnapshotId, TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.output.render import print_record, print_rows
from penstock.cli.session import session_of
from penstock.cli.times import parse_millis
from penstock.errors import InvalidOptionError, NotFoundError

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

tag = typer.Typer(
    no_args_is_help=True, help="Manage tags, which retain the snapshots they name.", rich_markup_mode=None
)

TagName = Annotated[str, typer.Argument(metavar="TAG", help="Name of the tag.")]


@tag.command("create", epilog=GLOBAL_OPTIONS)
def create_tag(
    context: typer.Context,
    table: TableName,
    name: TagName,
    snapshot_id: SnapshotId = None,
    time_retained: Annotated[str | None, typer.Option(help='Such as "7 d"; without it, until deleted.')] = None,
) -> None:
    """Create a tag for a snapshot."""
    session = session_of(context)
    loaded = session.table(table)
    loaded.create_tag(name, snapshot_id=snapshot_id, time_retained=time_retained)
    print_record(session, {"table": table, "tag": name}, f"created tag {name} of {table}")


@tag.command("delete", epilog=GLOBAL_OPTIONS)
def delete_tag(
    context: typer.Context, table: TableName, name: TagName, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Delete a tag; its snapshot may then expire."""
    session = session_of(context)
    loaded = session.table(table)
    if dry_run:
        tags = loaded.inspect.tags()
        found = tags.filter(pc.field("tag_name") == name)
        if not found.num_rows:
            there = ", ".join(map(repr, tags.column("tag_name").to_pylist()))
            raise NotFoundError(
                f"table {loaded.name}: no tag '{name}'; {f'its tags are {there}' if there else 'it has no tags'}"
            )
        print_rows(session, found)
        return
    confirm(session, f"delete tag {name} of {table}?", yes=yes)
    loaded.versions.delete_tag(name)
    print_record(session, {"table": table, "tag": name}, f"deleted tag {name} of {table}")


@tag.command("list", epilog=GLOBAL_OPTIONS)
def list_tags(context: typer.Context, table: TableName) -> None:
    """List tags."""
    session = session_of(context)
    print_rows(session, session.table(table).inspect.tags())


def rollback(  # noqa: PLR0917 - one option for each target
    context: typer.Context,
    table: TableName,
    snapshot_id: Annotated[int | None, typer.Option("--snapshot-id", help="The snapshot to go back to.")] = None,
    to_tag: Annotated[str | None, typer.Option("--tag", help="Go back to the snapshot with this tag.")] = None,
    watermark: Annotated[
        str | None,
        typer.Option(
            "--watermark",
            help="Go back to the newest snapshot whose watermark is not beyond that event time: ISO 8601, local "
            "without a zone; or ms since 1970.",
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            help="Go back to the newest snapshot committed at or before that time: ISO 8601, local without a zone; or "
            "ms since 1970.",
        ),
    ] = None,
    as_latest: Annotated[
        bool,
        typer.Option("--as-latest", help="Commit the older state as a new snapshot and remove nothing: can be undone."),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make an older snapshot the latest and remove all later ones, or with --as-latest repeat it after them.

    Without --as-latest, nothing may write meanwhile, and what is removed cannot be brought back.
    """
    session = session_of(context)
    if [snapshot_id, to_tag, watermark, timestamp].count(None) != 3:
        raise InvalidOptionError("give either --snapshot-id, or --tag, or --timestamp, or --watermark")
    loaded = session.table(table)
    plan = loaded.rollback_to(
        snapshot_id=snapshot_id,
        tag=to_tag,
        timestamp=parse_millis(timestamp, "--timestamp"),
        watermark=parse_millis(watermark, "--watermark"),
        dry_run=True,
    )
    record: dict[str, Plain] = {
        "table": table,
        "snapshot_id": plan.target.id,
        "removed_snapshots": [] if as_latest else list(plan.snapshot_ids),
        "removed_tags": [] if as_latest else list(plan.tags),
    }
    if dry_run:
        print_record(session, {**record, "dry_run": True})
        return
    if as_latest:
        made = loaded.versions.rollback_to_as_latest(snapshot_id=plan.target.id if to_tag is None else None, tag=to_tag)
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
    lost = f"{len(plan.snapshot_ids)} snapshots" + (f" and the tags {', '.join(plan.tags)}" if plan.tags else "")
    confirm(session, f"roll {table} back to snapshot {plan.target.id}, which removes {lost}?", yes=yes)
    # The snapshot in the question, even if the watermark selects another one by now.
    loaded.rollback_to(snapshot_id=plan.target.id if to_tag is None else None, tag=to_tag)
    print_record(session, record, f"rolled {table} back to snapshot {plan.target.id}")


COMMANDS: Final[dict[str, Any]] = {"tag": tag, "rollback": rollback}
