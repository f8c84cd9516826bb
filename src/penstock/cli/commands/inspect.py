"""Commands that read a table's metadata: system tables, explain, fsck."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.arguments import Options, SnapshotId, TableName, Tag, Timestamp, Watermark, Where, Wide, parse_pairs
from penstock.cli.exit_codes import ExitCode
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import note, print_record, print_records, print_rows, print_text
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from penstock.api.reads import ReadAt

# Columns that fit on a screen; JSON and CSV have all.
_BRIEF: Final = {
    "snapshots": (
        "snapshot_id",
        "schema_id",
        "commit_kind",
        "commit_time",
        "total_record_count",
        "delta_record_count",
        "watermark",
        "commit_user",
    ),
    "files": (
        "partition",
        "bucket",
        "record_count",
        "file_size_in_bytes",
        "min_sequence_number",
        "max_sequence_number",
        "schema_id",
        "file_path",
    ),
}
_FINDING_COLUMNS: Final = ("kind", "what", "path", "snapshot_id", "message")


def snapshots(session: Session, table: TableName, wide: Wide = False) -> None:
    """List snapshots, oldest first."""
    _print_system_table(session, table, "snapshots", wide=wide)


def files(session: Session, table: TableName, snapshot_id: SnapshotId = None, wide: Wide = False) -> None:
    """List data files; with --wide also their statistics."""
    _print_system_table(session, table, "files", snapshot_id, wide=wide)


def of_table(name: str, description: str) -> Callable[..., None]:
    """Return a command that prints a system table."""

    def show(session: Session, table: TableName) -> None:
        _print_system_table(session, table, name)

    show.__doc__ = description
    return show


def _of_snapshot(name: str, description: str) -> Callable[..., None]:
    def show(session: Session, table: TableName, snapshot_id: SnapshotId = None) -> None:
        _print_system_table(session, table, name, snapshot_id)

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
    session: Session, table: str, name: str, snapshot_id: int | None = None, *, wide: bool = True
) -> None:
    rows = session.table(table).inspect.system_table(name, snapshot_id=snapshot_id)
    print_rows(session, rows if wide or session.format is not OutputFormat.TABLE else rows.select(_BRIEF[name]))


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
