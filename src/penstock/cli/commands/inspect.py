"""Commands that read a table's metadata: system tables, explain, fsck."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import pyarrow as pa
import typer

from penstock.cli.arguments import Options, SnapshotId, TableName, Tag, Timestamp, Watermark, Where, Wide, parse_pairs
from penstock.cli.draw.labels import name_text
from penstock.cli.exit_codes import ExitCode
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import note, print_record, print_records, print_rows, print_text
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from penstock.api.reads import ReadAt

# Columns that fit on a screen, with their heads; JSON and CSV have all under their names.
_BRIEF: Final = {
    "snapshots": {
        "snapshot_id": "snapshot",
        "schema_id": "schema",
        "commit_kind": "kind",
        "commit_time": "commit, UTC",
        "total_record_count": "rows",
        "delta_record_count": "change",
        "watermark": "watermark",
        "commit_user": "user",
    },
    "files": {
        "partition": "partition",
        "bucket": "bucket",
        "record_count": "rows",
        "file_size_in_bytes": "bytes",
        "min_sequence_number": "first",
        "max_sequence_number": "last",
        "schema_id": "schema",
        "file_path": "file",
    },
}
_USER_WIDTH: Final = 16
_SHOWN: Final = 50
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=0, help=f"Maximum number of rows; 0 for all.  [default: {_SHOWN} in tables, else all]"),
]
_FINDING_COLUMNS: Final = ("kind", "what", "path", "snapshot_id", "message")


def snapshots(session: Session, table: TableName, wide: Wide = False, limit: Limit = None) -> None:
    """List snapshots, in table format the newest first."""
    _print_system_table(session, table, "snapshots", wide=wide, limit=limit)


def files(
    session: Session, table: TableName, snapshot_id: SnapshotId = None, wide: Wide = False, limit: Limit = None
) -> None:
    """List data files; with --wide also their statistics."""
    _print_system_table(session, table, "files", snapshot_id, wide=wide, limit=limit)


def of_table(name: str, description: str) -> Callable[..., None]:
    """Return a command that prints a system table."""

    def show(session: Session, table: TableName, limit: Limit = None) -> None:
        _print_system_table(session, table, name, limit=limit)

    show.__doc__ = description
    return show


def _of_snapshot(name: str, description: str) -> Callable[..., None]:
    def show(session: Session, table: TableName, snapshot_id: SnapshotId = None, limit: Limit = None) -> None:
        _print_system_table(session, table, name, snapshot_id, limit=limit)

    show.__doc__ = description
    return show


def explain(
    session: Session,
    table: TableName,
    *,
    where: Where = None,
    snapshot_id: SnapshotId = None,
    tag: Tag = None,
    timestamp: Timestamp = None,
    watermark: Watermark = None,
    option: Options = None,
) -> None:
    """Print which files a read would open and how the others are pruned, from metadata only."""
    loaded = session.table(table)
    position: ReadAt = {
        "snapshot_id": snapshot_id,
        "timestamp_millis": parse_millis(timestamp, "--timestamp"),
        "tag": tag,
        "watermark": parse_millis(watermark, "--watermark"),
    }
    given = parse_pairs(option, "--option")
    if session.format is OutputFormat.TABLE:
        print_text(loaded.explain(where, options=given, **position))
    else:
        print_record(session, loaded.explain_values(where, options=given, **position))


def fsck(
    session: Session,
    table: TableName,
    all_snapshots: Annotated[
        bool,
        typer.Option("--all-snapshots", help="Also manifests and data files that only older snapshots and tags need."),
    ] = False,
) -> None:
    """Check that the files that the table needs exist; exit with code 8 if one is missing or damaged."""
    loaded = session.table(table, skip_damaged_schemas=True)
    with progress_bar(session, f"checking {loaded.name}", None) as progress:
        report = loaded.inspect.fsck(all_snapshots=all_snapshots, progress=progress)
    findings = [{**asdict(finding), "kind": finding.kind.value} for finding in report.findings]
    if session.format is not OutputFormat.TABLE or findings:
        print_records(session, findings, _FINDING_COLUMNS)
    checked = (
        f"{report.snapshots} snapshots, {report.manifests} manifests, {report.files} data files "
        f"({bytes_text(report.bytes)})"
    )
    note(session, f"{checked}: {f'{len(findings)} problems' if findings else 'all there'}")
    if report.unchecked:
        note(
            session,
            f"manifests and data files that only {report.unchecked} older snapshots and tags need were not checked: "
            "--all-snapshots checks them",
        )
    if findings:
        raise typer.Exit(ExitCode.DAMAGED)


def _print_system_table(
    session: Session,
    table: str,
    name: str,
    snapshot_id: int | None = None,
    *,
    wide: bool = True,
    limit: int | None = None,
) -> None:
    is_table = session.format is OutputFormat.TABLE
    most = (_SHOWN if is_table else 0) if limit is None else limit
    inspect = session.table(table).inspect
    # One more shows whether there are more.
    rows = inspect.system_table(name, snapshot_id=snapshot_id, limit=most + 1 if most else None)
    is_cut = 0 < most < rows.num_rows
    if name == "snapshots":
        rows = rows.slice(1) if is_cut else rows
        rows = rows.take(list(range(rows.num_rows - 1, -1, -1))) if is_table else rows
    elif is_cut:
        rows = rows.slice(0, most)
    print_rows(session, _brief(rows, name) if is_table and not wide else rows)
    if is_cut:
        which = "newest" if name == "snapshots" else "first"
        note(session, f"these are the {which} {most} of the {name}: --limit 0 prints all")


def _brief(rows: pa.Table, name: str) -> pa.Table:
    heads = _BRIEF[name]
    rows = rows.select(list(heads)).rename_columns(list(heads.values()))
    if name != "snapshots":
        return rows
    users = pa.array([name_text(str(user), _USER_WIDTH) for user in rows["user"].to_pylist()], pa.string())
    return rows.set_column(rows.num_columns - 1, "user", users)


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "snapshots": snapshots,
    "schemas": of_table("schemas", "List schemas, oldest first."),
    "files": files,
    "partitions": _of_snapshot("partitions", "List partitions with rows, files and bytes."),
    "buckets": _of_snapshot("buckets", "List buckets with rows, files and bytes."),
    "manifests": _of_snapshot("manifests", "List manifests."),
    "debt": _of_snapshot(
        "compaction", "List the small files of each partition, and which of them a full compaction would merge."
    ),
    "tags": of_table("tags", "List tags; the same as tag list."),
    "consumers": of_table("consumers", "List consumers and the snapshot that each reads next."),
    "explain": explain,
    "fsck": fsck,
}
