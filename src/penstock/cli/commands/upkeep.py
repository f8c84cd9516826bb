"""Commands that limit a table's storage: they remove expired data and unused files."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock import Expiration, OrphanReport, Retainer, RetainerKind
from penstock.api.operations.declaration import run_on
from penstock.api.operations.partitions import ExpirePartitions
from penstock.api.operations.snapshots import ExpireSnapshots, RemoveOrphanFiles
from penstock.cli.arguments import TableName, Yes
from penstock.cli.confirm import confirm
from penstock.cli.output.progress import Unit, progress_bar
from penstock.cli.output.render import note, print_record, print_records
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.cli.times import instant_text
from penstock.clocks import to_millis, utc_millis
from penstock.format.snapshot import ids_text
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

# Columns with their heads in tables.
_ORPHAN_HEADS: Final = {"file": "file", "bytes": "size", "age_seconds": "age", "kind": "kind"}
_PARTITION_HEADS: Final = {"partition": "partition", "time": "time", "rows": "rows", "bytes": "size", "files": "files"}


def expire(session: Session, table: TableName, operation: ExpireSnapshots, yes: Yes = False) -> None:
    """Expire old snapshots and delete the files that only they use; tags and consumers retain what they need."""
    loaded, total, wanted = session.table(table), None, operation
    if not (operation.dry_run or yes):
        planned = run_on(loaded, replace(operation, dry_run=True))
        total = planned.data_files + planned.metadata_files + len(planned.snapshot_ids)
        if planned.snapshot_ids:
            confirm(session, f"{_expiration_text(table, planned).removeprefix('would ')}?", yes=yes)
            # Not those that become old enough while the question is read.
            operation = replace(operation, max_deletes=len(planned.snapshot_ids))
    with progress_bar(session, f"expiring snapshots of {loaded.name}", Unit.FILES, total=total) as progress:
        found = run_on(loaded, replace(operation, progress=progress))
    print_record(session, _expiration_record(table, found), _expiration_text(table, found))
    if session.format is OutputFormat.TABLE:
        for hold in found.holds:
            text = _retainer_text(hold, wanted)
            if text is not None:
                note(session, text)


def expire_partitions(session: Session, table: TableName, operation: ExpirePartitions, yes: Yes = False) -> None:
    """Drop the partitions that are older than partition.expiration-time, the oldest first."""
    loaded = session.table(table)
    found = run_on(loaded, replace(operation, dry_run=True))
    records: list[dict[str, Plain]] = [
        {
            "partition": each.directory,
            "time": instant_text(to_millis(each.time)),
            "rows": each.rows,
            "bytes": each.bytes,
            "files": len(each.entries),
        }
        for each in found
    ]
    print_records(session, records, _PARTITION_HEADS, _PARTITION_HEADS)
    summary = f"{len(found):,} partitions, {sum(each.rows for each in found):,} rows"
    if operation.dry_run or not found:
        note(session, f"{summary} of {table} have expired{'; nothing was changed' if found else ''}")
        return
    confirm(session, f"drop these {summary} of {table}?", yes=yes)
    dropped = run_on(loaded, operation)
    note(session, f"dropped {len(dropped):,} partitions of {table}; their files are deleted when its snapshots expire")


def remove_orphans(session: Session, table: TableName, operation: RemoveOrphanFiles, yes: Yes = False) -> None:
    """Delete files that no snapshot uses, such as those of failed jobs; by default only files older than a day.

    The files are listed first. A file that a running job has written and not yet committed looks like an orphan:
    --older-than has to be further back than the longest job takes.
    """
    loaded, seen = session.table(table), 0

    def run(title: str, operation: RemoveOrphanFiles, total: int | None = None) -> OrphanReport:
        nonlocal seen
        with progress_bar(session, f"{title} {loaded.name}", Unit.FILES, total=total) as report:
            searched = seen = 0

            def progress(files: int, size: int | None) -> None:
                nonlocal searched, seen
                if files < seen - searched:  # the count begins again with the files that are deleted
                    searched = seen
                seen = searched + files
                report(seen, size)

            return run_on(loaded, replace(operation, progress=progress))

    found = run("searching orphans of", replace(operation, dry_run=True))
    print_records(session, _orphan_records(found, utc_millis()), _ORPHAN_HEADS, _ORPHAN_HEADS)
    note(session, _orphan_text(found))
    if operation.dry_run or not found.orphans:
        return
    confirm(session, f"delete these {len(found.orphans):,} orphans of {table}?", yes=yes)
    # Searched again, with the same time: files that were committed meanwhile are no longer orphans.
    again = replace(operation, older_than=found.older_than_millis)
    gone = run("removing orphans of", again, seen + len(found.orphans))
    note(session, f"deleted {len(gone.orphans):,} orphans of {table} ({bytes_text(gone.bytes)})")


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
    span = ids_text([range(ids[0], ids[-1] + 1)])
    return (
        f"{'would expire' if found.is_dry_run else 'expired'} {len(ids):,} snapshots of {table} ({span}) "
        f"with {found.data_files:,} data files ({bytes_text(found.data_bytes)}) and {found.metadata_files:,} files of "
        "metadata"
    )


def _retainer_text(hold: Retainer, operation: ExpireSnapshots) -> str | None:
    """Return what a retainer keeps; None for the limit that the question before has set."""
    arguments = {
        "snapshot.num-retained.min": ("--retain-min", operation.retain_min),
        "snapshot.time-retained": ("--older-than", operation.older_than),
        "snapshot.expire.limit": ("--max-deletes", operation.max_deletes),
    }
    who = f"{hold.kind.value} {hold.name}"
    if hold.kind is RetainerKind.OPTION:
        argument, value = arguments[hold.name]
        if value is None and hold.name == "snapshot.expire.limit":
            return None
        who = who if value is None else argument
    if hold.kind in {RetainerKind.TAG, RetainerKind.BRANCH}:
        return f"{who} keeps {hold.files:,} data files of expired snapshots"
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
    young = f"; {found.young:,} more that nothing uses are too young" if found.young else ""
    return f"{len(found.orphans):,} orphans ({bytes_text(found.bytes)}), {found.used:,} files in use{young}"
