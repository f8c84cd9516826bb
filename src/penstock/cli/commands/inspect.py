"""Commands that read a table's metadata: system tables, explain, fsck."""

import json
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import typer

from penstock import Finding, FindingKind
from penstock.api.table import Table
from penstock.cli.arguments import Options, SnapshotId, TableName, Tag, Timestamp, Watermark, Where, Wide, parse_pairs
from penstock.cli.draw.labels import count_text
from penstock.cli.exit_codes import ExitCode
from penstock.cli.output.progress import Unit, progress_bar
from penstock.cli.output.render import note, print_listing, print_record, print_records, print_text
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.clocks import to_millis
from penstock.errors import DamagedFileWarning
from penstock.printable import bytes_text, visible

if TYPE_CHECKING:
    from penstock.api.reads import ReadAt

# Columns of each listing that fit a terminal of 100 columns, with their heads.
HEADS: Final = {
    "snapshots": {
        "snapshot_id": "snapshot",
        "schema_id": "schema",
        "commit_kind": "kind",
        "commit_time": "committed",
        "total_record_count": "rows",
        "delta_record_count": "change",
        "watermark": "watermark",
        "commit_user": "user",
    },
    "schemas": {
        "schema_id": "schema",
        "update_time": "since",
        "fields": "columns",
        "partition_keys": "partitioned by",
        "comment": "comment",
    },
    "files": {
        "partition": "partition",
        "bucket": "bucket",
        "record_count": "rows",
        "file_size_in_bytes": "size",
        "min_sequence_number": "first",
        "max_sequence_number": "last",
        "schema_id": "schema",
        "file_path": "file",
    },
    "partitions": {
        "partition": "partition",
        "record_count": "rows",
        "file_size_in_bytes": "size",
        "file_count": "files",
        "last_update_time": "last update",
    },
    "buckets": {
        "partition": "partition",
        "bucket": "bucket",
        "record_count": "rows",
        "file_size_in_bytes": "size",
        "file_count": "files",
        "last_update_time": "last update",
    },
    "manifests": {
        "file_name": "manifest",
        "file_size": "size",
        "num_added_files": "added",
        "num_deleted_files": "deleted",
        "schema_id": "schema",
        "min_partition_stats": "first partition",
        "max_partition_stats": "last partition",
    },
    "compaction": {
        "partition": "partition",
        "file_count": "files",
        "small_file_count": "small",
        "waiting_file_count": "waiting",
        "waiting_bytes": "waiting size",
        "max_bucket_file_count": "fullest bucket",
        "last_compaction_snapshot_id": "compacted in",
    },
    "tags": {
        "tag_name": "tag",
        "snapshot_id": "snapshot",
        "schema_id": "schema",
        "commit_time": "committed",
        "record_count": "rows",
        "create_time": "created",
        "time_retained": "retained",
    },
    "branches": {"branch_name": "branch", "create_time": "created"},
    "consumers": {"consumer_id": "consumer", "next_snapshot_id": "next snapshot"},
}
# Their columns of long names.
_CUT: Final = {"snapshots": "commit_user", "files": "file_path", "manifests": "file_name", "tags": "tag_name"}
_SHOWN: Final = 50
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=0, help=f"Maximum number of rows; 0 for all.  [default: {_SHOWN} in tables, else all]"),
]
# What the rows of a snapshot cannot be read without, but for what procedures remove from the table.
_NEEDED_TO_READ: Final = frozenset({"snapshot", "schema", "manifest list"})
_REMOVALS: Final = {"data file": "remove_unexisting_files", "manifest": "remove_unexisting_manifests"}
_REMOVABLE: Final = frozenset({FindingKind.MISSING, FindingKind.SIZE, FindingKind.DAMAGED})
_FINDING_COLUMNS: Final = ("kind", "what", "path", "snapshot_id", "message")


def of_table(name: str, description: str) -> Callable[..., None]:
    """Return a command that prints a system table."""

    def show(session: Session, table: TableName, wide: Wide = False, limit: Limit = None) -> None:
        _print_system_table(session, table, name, wide=wide, limit=limit)

    show.__doc__ = description
    return show


def _of_snapshot(name: str, description: str) -> Callable[..., None]:
    def show(
        session: Session, table: TableName, snapshot_id: SnapshotId = None, wide: Wide = False, limit: Limit = None
    ) -> None:
        _print_system_table(session, table, name, snapshot_id, wide=wide, limit=limit)

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
    with progress_bar(session, f"checking {loaded.name}", Unit.FILES) as progress:
        report = loaded.inspect.fsck(all_snapshots=all_snapshots, progress=progress)
    findings = [{**asdict(finding), "kind": finding.kind.value} for finding in report.findings]
    if session.format is not OutputFormat.TABLE:
        print_records(session, findings, _FINDING_COLUMNS)
    for each in report.findings if session.format is OutputFormat.TABLE else ():
        print_text(visible(_finding_text(each)))
    checked = (
        f"{count_text(report.snapshots, 'snapshot')}, {count_text(report.manifests, 'manifest')}, "
        f"{count_text(report.files, 'data file')} "
        f"({bytes_text(report.bytes)})"
    )
    note(session, f"{checked}: {count_text(len(findings), 'problem') if findings else 'all there'}")
    if report.unchecked:
        note(
            session,
            f"manifests and data files that only {report.unchecked:,} older snapshots and tags need were not checked: "
            "--all-snapshots checks them",
        )
    if "$branch_" not in loaded.name:
        for branch in loaded.inspect.branches().column("branch_name").to_pylist():
            note(session, f"branch {branch} was not checked: penstock fsck '{loaded.name}$branch_{branch}' checks it")
    if findings:
        for command in _next_commands(loaded, report.findings):
            note(session, f"next, if no copy can be restored: {command}")
        raise typer.Exit(ExitCode.DAMAGED)


def _finding_text(finding: Finding) -> str:
    is_needed = finding.snapshot_id is not None and finding.what != "snapshot"
    of_snapshot = f" of snapshot {finding.snapshot_id}" if is_needed else ""
    path = "" if finding.path in finding.message else f" {finding.path}:"
    return f"{finding.kind.value}: {finding.what}{of_snapshot}:{path} {finding.message}"


def _next_commands(table: Table, findings: Sequence[Finding]) -> list[str]:
    """Return the commands that make a table usable again without the files that are missing or damaged."""
    damaged = {each.snapshot_id for each in findings if each.what in _NEEDED_TO_READ}
    with warnings.catch_warnings(action="ignore", category=DamagedFileWarning):
        schemas: dict[int, int] = {row["snapshot_id"]: row["schema_id"] for row in table.snapshots().to_pylist()}
    ids = [*schemas, *(each for each in damaged if each is not None)]
    # Files have the schema of their snapshot or an older one.
    lost_schemas = [int(each.path.rpartition("-")[2]) for each in findings if each.what == "schema"]
    first_lost = min(lost_schemas, default=None)
    good = [
        snapshot_id
        for snapshot_id, schema_id in schemas.items()
        if snapshot_id not in damaged and (first_lost is None or schema_id < first_lost)
    ]
    commands = []
    if good and max(ids) in damaged:
        commands.append(f"penstock rollback {table.name} --snapshot-id {max(good)}")
    for what, procedure in _REMOVALS.items():
        found = [
            each
            for each in findings
            if each.what == what and each.kind in _REMOVABLE and "manifest-list" not in each.path
        ]
        away = [shlex.quote(each.path) for each in found if each.kind is not FindingKind.MISSING]
        if found:
            call = f"CALL sys.{procedure}('{table.name}', dry_run => TRUE)"
            move = f"move {', '.join(away)} out of the table, then " if away else ""
            commands.append(f'{move}penstock sql -e "{call}", then without dry_run')
    for each in findings:
        name = each.path.rpartition("/")[2]
        if each.what == "tag":
            commands.append(f"penstock tag delete {table.name} {name.removeprefix('tag-')}")
        elif each.what == "consumer":
            commands.append(f"penstock consumer reset {table.name} {name.removeprefix('consumer-')} --to latest")
    return commands


def _print_system_table(
    session: Session, table: str, name: str, snapshot_id: int | None = None, *, wide: bool, limit: int | None
) -> None:
    is_table = session.format is OutputFormat.TABLE
    most = (_SHOWN if is_table else 0) if limit is None else limit
    inspect = session.table(table).inspect
    # One more shows whether there are more.
    rows = inspect.system_table(name, snapshot_id=snapshot_id, limit=most + 1 if most else None, partition_labels=True)
    is_cut = 0 < most < rows.num_rows
    if name == "snapshots":
        rows = rows.slice(1) if is_cut else rows
        rows = rows.take(list(range(rows.num_rows - 1, -1, -1))) if is_table else rows
    elif is_cut:
        rows = rows.slice(0, most)
    rows = _with_zones(rows)
    if is_table and not wide:
        rows = _for_people(rows, name)
    print_listing(session, rows, HEADS[name], cut=_CUT.get(name), wide=wide)
    if is_cut:
        which = "newest" if name == "snapshots" else "first"
        note(session, f"these are the {which} {most} of the {name}: --limit 0 prints all")


def _with_zones(rows: pa.Table) -> pa.Table:
    """Return rows with instants for local times, which the format stores without a zone."""
    for place, field in enumerate(rows.schema):
        if field.type == pa.timestamp("ms"):
            millis = [None if each is None else to_millis(each) for each in rows.column(place).to_pylist()]
            instants = pa.array(millis, pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
            rows = rows.set_column(place, field.name, instants)
    return rows


def _for_people(rows: pa.Table, name: str) -> pa.Table:
    """Return rows with names for paths, which other columns imply, and with columns in words."""
    match name:
        case "files":
            return _with_texts(rows, "file_path", lambda path: path.rpartition("/")[2])
        case "schemas":
            rows = _with_texts(rows, "partition_keys", lambda keys: ", ".join(json.loads(keys)))
            return _with_texts(
                rows,
                "fields",
                lambda text: ", ".join(f"{each['name']} {_type_text(each)}" for each in json.loads(text)),
            )
        case _:
            return rows


def _with_texts(rows: pa.Table, name: str, convert: Callable[[Any], str]) -> pa.Table:
    texts = pa.array([convert(each) for each in rows.column(name).to_pylist()], pa.string())
    return rows.set_column(rows.schema.get_field_index(name), name, texts)


def _type_text(field: dict[str, Any]) -> str:
    """Return the type of a field of a schema file; of a nested one, its kind."""
    kind = field["type"]
    return str(kind if isinstance(kind, str) else kind["type"])


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "snapshots": of_table("snapshots", "List snapshots, in table format the newest first."),
    "schemas": of_table("schemas", "List schemas, oldest first."),
    "files": _of_snapshot("files", "List data files; with --wide also their statistics."),
    "partitions": _of_snapshot("partitions", "List partitions with rows, files and bytes."),
    "buckets": _of_snapshot("buckets", "List buckets with rows, files and bytes."),
    "manifests": _of_snapshot("manifests", "List manifests."),
    "debt": _of_snapshot("compaction", "List the small files of each partition, and which of them compact would take."),
    "tags": of_table("tags", "List tags; the same as tag list."),
    "consumers": of_table("consumers", "List consumers and the snapshot that each reads next."),
    "explain": explain,
    "fsck": fsck,
}
