"""Commands that limit a table's storage: they remove expired data and unused files."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock import Expiration, OrphanReport, Retainer, RetainerKind
from penstock.cli.arguments import DryRun, TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import note, print_record, print_records
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import session_of
from penstock.cli.times import parse_millis
from penstock.clocks import utc_millis
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

OlderThan = Annotated[
    str | None, typer.Option("--older-than", help="A time: ISO 8601, local without a zone; or ms since 1970.")
]

_ORPHAN_COLUMNS: Final = ("file", "bytes", "age_seconds", "kind")
_PARTITION_COLUMNS: Final = ("partition", "time", "rows", "bytes", "files")


def expire(  # noqa: PLR0917 - one option for each rule
    context: typer.Context,
    table: TableName,
    retain_max: Annotated[int | None, typer.Option(help="Most snapshots to keep.")] = None,
    retain_min: Annotated[int | None, typer.Option(help="Fewest snapshots to keep, whatever their age.")] = None,
    older_than: OlderThan = None,
    max_deletes: Annotated[int | None, typer.Option(help="Most snapshots to expire.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Expire old snapshots and delete the files that only they use; tags and consumers retain what they need.

    Defaults are the table's options snapshot.num-retained.min and .max, and snapshot.time-retained.
    """
    session = session_of(context)
    loaded = session.table(table)
    with progress_bar(session, f"expiring snapshots of {loaded.name}", None) as progress:
        found = loaded.expire_snapshots(
            retain_max=retain_max,
            retain_min=retain_min,
            older_than=parse_millis(older_than, "--older-than"),
            max_deletes=max_deletes,
            dry_run=dry_run,
            progress=progress,
        )
    print_record(session, _expiration_record(table, found), _expiration_text(table, found))
    if session.format is OutputFormat.TABLE:
        for hold in found.holds:
            note(session, _retainer_text(hold))


def expire_partitions(
    context: typer.Context,
    table: TableName,
    expiration_time: Annotated[
        str | None, typer.Option(help='Age, such as "7 d".  [default: partition.expiration-time of the table]')
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Drop the partitions that are older than partition.expiration-time, the oldest first."""
    session = session_of(context)
    loaded = session.table(table)
    found = loaded.maintenance.expire_partitions(expiration_time=expiration_time, dry_run=True)
    records: list[dict[str, Plain]] = [
        {
            "partition": each.directory,
            "time": each.time.isoformat(sep=" "),
            "rows": each.rows,
            "bytes": each.bytes,
            "files": len(each.entries),
        }
        for each in found
    ]
    print_records(session, records, _PARTITION_COLUMNS)
    summary = f"{len(found)} partitions, {sum(each.rows for each in found)} rows"
    if dry_run or not found:
        note(session, f"{summary} of {table} have expired{'; nothing was changed' if found else ''}")
        return
    confirm(session, f"drop these {summary} of {table}?", yes=yes)
    dropped = loaded.maintenance.expire_partitions(expiration_time=expiration_time)
    note(session, f"dropped {len(dropped)} partitions of {table}; their files are deleted when its snapshots expire")


def remove_orphans(
    context: typer.Context,
    table: TableName,
    older_than: OlderThan = None,
    allow_recent: Annotated[
        bool,
        typer.Option("--allow-recent", help="Also files younger than an hour; nothing may write then."),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete files that no snapshot uses, such as those of failed jobs; by default only files older than a day.

    The files are listed first. A file that a running job has written and not yet committed looks like an orphan:
    --older-than has to be further back than the longest job takes.
    """
    session = session_of(context)
    loaded = session.table(table)
    until = parse_millis(older_than, "--older-than")

    def run(title: str, until: int | None, *, dry_run: bool) -> OrphanReport:
        with progress_bar(session, f"{title} {loaded.name}", None) as progress:
            return loaded.remove_orphan_files(
                older_than=until, dry_run=dry_run, allow_recent=allow_recent, progress=progress
            )

    found = run("searching orphans of", until, dry_run=True)
    print_records(session, _orphan_records(found, utc_millis()), _ORPHAN_COLUMNS)
    note(session, _orphan_text(found))
    if dry_run or not found.orphans:
        return
    confirm(session, f"delete these {len(found.orphans)} orphans of {table}?", yes=yes)
    # Searched again, with the same time: files that were committed meanwhile are no longer orphans.
    gone = run("removing orphans of", found.older_than_millis, dry_run=False)
    note(session, f"deleted {len(gone.orphans)} orphans of {table} ({bytes_text(gone.bytes)})")


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "expire": expire,
    "expire-partitions": expire_partitions,
    "remove-orphan-files": remove_orphans,
}


def _expiration_record(table: str, found: Expiration) -> "dict[str, Plain]":
    return {
        "table": table,
        "snapshots": list(found.snapshot_ids),
        "data_files": found.data_files,
        "data_bytes": found.data_bytes,
        "metadata_files": found.metadata_files,
        "earliest_snapshot": found.earliest_id,
        "kept_by": [
            {"kind": hold.kind.value, "name": hold.name, "snapshot_id": hold.snapshot_id, "files": hold.files}
            for hold in found.holds
        ],
        "dry_run": found.is_dry_run,
    }


def _expiration_text(table: str, found: Expiration) -> str:
    if not found.snapshot_ids:
        return f"no snapshot of {table} {'would expire' if found.is_dry_run else 'has expired'}"
    ids = found.snapshot_ids
    return (
        f"{'would expire' if found.is_dry_run else 'expired'} {len(ids)} snapshots of {table} ({ids[0]} to {ids[-1]}) "
        f"with {found.data_files} data files ({bytes_text(found.data_bytes)}) and {found.metadata_files} files of "
        "metadata"
    )


def _retainer_text(hold: Retainer) -> str:
    who = f"{hold.kind.value} {hold.name}"
    if hold.kind in {RetainerKind.TAG, RetainerKind.BRANCH}:
        return f"{who} keeps {hold.files} data files of expired snapshots"
    return f"{who} keeps snapshots from {hold.snapshot_id} on"


def _orphan_records(found: OrphanReport, now_millis: int) -> "list[dict[str, Plain]]":
    return [
        {
            "file": orphan.path,
            "bytes": orphan.size,
            "age_seconds": (now_millis - orphan.modified_millis) // 1000,
            "kind": orphan.kind.value,
        }
        for orphan in found.orphans
    ]


def _orphan_text(found: OrphanReport) -> str:
    young = f"; {found.young} more that nothing uses are too young" if found.young else ""
    return f"{len(found.orphans)} orphans ({bytes_text(found.bytes)}), {found.used} files in use{young}"
