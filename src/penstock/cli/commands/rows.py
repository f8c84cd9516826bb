"""Commands that move rows: append, overwrite, import, read, truncate, drop-partition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import typer

from penstock.api.exchange.options import InputFile, InputFormat, InputOptions
from penstock.api.table import Table
from penstock.cli.arguments import (
    DryRun,
    Options,
    Partitions,
    SnapshotId,
    TableName,
    Tag,
    Timestamp,
    Watermark,
    Where,
    Yes,
    parse_pairs,
    split_list,
)
from penstock.cli.confirm import confirm
from penstock.cli.input.files import open_rows, plan_inputs, total_bytes
from penstock.cli.output.describe import describe_snapshot
from penstock.cli.output.progress import Unit, progress_bar
from penstock.cli.output.render import note, print_record, print_records, print_rows
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.errors import InvalidOptionError
from penstock.format.snapshot import Snapshot
from penstock.format.text.partitions import parse_partition

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

# For human readers; JSON and CSV have all rows.
_ROWS_FOR_PEOPLE: Final = 100

Files = Annotated[list[str], typer.Argument(metavar="FILE", help="CSV, Parquet or JSON lines; - is standard input.")]
Format = Annotated[InputFormat | None, typer.Option("--input-format", help="When the names do not show it.")]
BatchRows = Annotated[int, typer.Option(min=1, help="Most rows in a batch.")]
Delimiter = Annotated[str, typer.Option(help="Separator of the values in a CSV line.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="CSV without a header: columns in the table's order.")]
NullValues = Annotated[
    list[str] | None, typer.Option("--null-value", help="Unquoted CSV text that means NULL; nothing by default.")
]


def append(
    session: Session,
    table: TableName,
    files: Files,
    *,
    input_format: Format = None,
    batch_rows: BatchRows = 65_536,
    delimiter: Delimiter = ",",
    no_header: NoHeader = False,
    null_value: NullValues = None,
    option: Options = None,
) -> None:
    """Append the rows of files in order, as one commit."""
    options = _input_options(input_format, batch_rows, delimiter, no_header, null_value)
    loaded = _load_target(session, table, option)
    snapshot = _write(session, loaded, plan_inputs(files, options), options, Table.append)
    _print_commit(session, table, snapshot, "appended to")


def overwrite(
    session: Session,
    table: TableName,
    files: Files,
    *,
    partition: Partitions = None,
    whole_table: Annotated[
        bool, typer.Option(help="Replace all rows of the table, not only the partitions of the new rows.")
    ] = False,
    input_format: Format = None,
    batch_rows: BatchRows = 65_536,
    delimiter: Delimiter = ",",
    no_header: NoHeader = False,
    null_value: NullValues = None,
    option: Options = None,
    dry_run: DryRun = False,
) -> None:
    """Replace rows by the rows of files, as one commit.

    Replaces the partitions given by --partition; without it those that the new rows belong to, or all rows of a table
    without partitions. A partial partition, such as one of two keys, selects all partitions that match it.
    """
    if partition and whole_table:
        raise InvalidOptionError("give --partition or --whole-table, not both")
    spec = {} if whole_table else parse_partition("/".join(partition or ())) if partition else None
    options = _input_options(input_format, batch_rows, delimiter, no_header, null_value)
    loaded = _load_target(session, table, option)
    inputs = plan_inputs(files, options)
    if dry_run:
        with progress_bar(session, "reading", Unit.ROWS, total_bytes=total_bytes(inputs)) as report:
            counted = _Counted(open_rows(loaded, inputs, options, report))
            rows = pa.RecordBatchReader.from_batches(loaded.arrow_schema, counted)
            removal = loaded.preview.overwrite(rows, partition=spec)
            counted.finish()
        _print_preview(session, table, asdict(removal), new_rows=counted.rows)
        return
    snapshot = _write(session, loaded, inputs, options, lambda target, rows: target.overwrite(rows, partition=spec))
    _print_commit(session, table, snapshot, "overwrote in")


def import_directory(
    session: Session,
    table: TableName,
    directory: Annotated[
        str, typer.Argument(help="The directory that holds the partition directories, such as dt=2026-01-01.")
    ],
    batch_rows: BatchRows = 65_536,
    option: Options = None,
    dry_run: DryRun = False,
) -> None:
    """Copy a Hive-style directory of Parquet files into a table with the same partition columns, as one commit.

    Values of partition columns are taken from directory names.
    """
    loaded = _load_target(session, table, option)
    found = loaded.preview.hive_import(directory)
    if dry_run:
        records: list[dict[str, Plain]] = [
            {
                "path": file.path,
                "bytes": file.size,
                "partition": ", ".join(f"{name}={'NULL' if text is None else text}" for name, text in file.partition),
            }
            for file in found
        ]
        print_records(session, records, ("path", "bytes", "partition"))
        return
    inputs = tuple(InputFile(path=file.path, format=InputFormat.PARQUET, constants=file.partition) for file in found)
    snapshot = _write(session, loaded, inputs, InputOptions(batch_rows=batch_rows), Table.append)
    _print_commit(session, table, snapshot, f"imported {len(found):,} files into")


def read(
    session: Session,
    table: TableName,
    *,
    columns: Annotated[str | None, typer.Option(help="Names separated by commas, in the order to print.")] = None,
    where: Where = None,
    limit: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Most rows.  [default: 100 with --format table]")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All rows, also with --format table.")] = False,
    snapshot_id: SnapshotId = None,
    tag: Tag = None,
    timestamp: Timestamp = None,
    watermark: Watermark = None,
    option: Options = None,
) -> None:
    """Print rows of the latest snapshot or an older one."""
    is_cut = limit is None and not all_ and session.format is OutputFormat.TABLE
    rows = session.table(table).to_batches(
        split_list(columns),
        where,
        limit=_ROWS_FOR_PEOPLE + 1 if is_cut else limit,
        options=parse_pairs(option, "--option"),
        snapshot_id=snapshot_id,
        timestamp_millis=parse_millis(timestamp, "--timestamp"),
        tag=tag,
        watermark=parse_millis(watermark, "--watermark"),
    )
    if not is_cut:
        print_rows(session, rows, exact=True)
        return
    first = rows.read_all()
    print_rows(session, first.slice(0, _ROWS_FOR_PEOPLE), exact=True)
    if first.num_rows > _ROWS_FOR_PEOPLE:
        note(session, f"only the first {_ROWS_FOR_PEOPLE} rows; --limit N or --all shows more")


def truncate(session: Session, table: TableName, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Remove all rows in a new snapshot; older snapshots keep them until they expire."""
    loaded = session.table(table)
    if dry_run:
        _print_preview(session, table, asdict(loaded.preview.truncate()))
        return
    confirm(session, f"remove all rows of {table}?", yes=yes)
    _print_commit(session, table, loaded.truncate(), "truncated")


def delete(
    session: Session,
    table: TableName,
    where: Annotated[str, typer.Option(help="Condition, such as \"dt = '2026-01-01' AND price > 10\".")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete the rows for which a condition is true: files with such rows are replaced, or get deletion vectors."""
    loaded = session.table(table)
    found = loaded.delete(where, dry_run=True)
    summary = f"{found.rows_deleted:,} rows of {table} in {len(found.files):,} files"
    if dry_run:
        record: dict[str, Plain] = {
            "table": table,
            "rows": found.rows_deleted,
            "files": [each.file_name for each in found.files],
        }
        print_record(session, record, f"would delete {summary}")
        return
    if found.rows_deleted:
        confirm(session, f"delete {summary}?", yes=yes)
    _print_commit(session, table, loaded.delete(where).snapshot, "deleted rows of")


def drop_partition(
    session: Session,
    table: TableName,
    partitions: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE[,KEY=VALUE]", help="One argument per partition.")
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove the rows of partitions in a new snapshot."""
    specs = [parse_partition(text) for text in partitions]
    loaded = session.table(table)
    removal = loaded.preview.drop_partitions(*specs)
    if dry_run:
        _print_preview(session, table, asdict(removal))
        return
    loaded.preview.existing_partitions(*specs)
    confirm(session, f"remove {removal.rows:,} rows in {removal.partitions:,} partitions of {table}?", yes=yes)
    _print_commit(session, table, loaded.drop_partitions(*specs), "dropped partitions of")


def _load_target(session: Session, name: str, options: list[str] | None) -> Table:
    """Load a table to write to, with the options of this command."""
    return session.table(name).with_options(parse_pairs(options, "--option"))


def _write(
    session: Session,
    table: Table,
    inputs: Sequence[InputFile],
    options: InputOptions,
    write: Callable[[Table, pa.RecordBatchReader], Snapshot | None],
) -> Snapshot | None:
    with progress_bar(session, f"writing {table.name}", Unit.ROWS, total_bytes=total_bytes(inputs)) as report:
        return write(table, open_rows(table, inputs, options, report))


class _Counted:
    """Counts the rows that pass through."""

    def __init__(self, batches: pa.RecordBatchReader) -> None:
        self.rows = 0
        self._batches = iter(batches)

    def __iter__(self) -> "_Counted":
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        return batch

    def finish(self) -> None:
        """Read rows that are not used, so that bad rows are found."""
        for _ in self:
            pass


def _input_options(
    input_format: InputFormat | None, batch_rows: int, delimiter: str, no_header: bool, null_value: list[str] | None
) -> InputOptions:
    delimiter = delimiter.replace("\\t", "\t")
    if len(delimiter) != 1 or not delimiter.isascii():
        raise InvalidOptionError(f"--delimiter '{delimiter}': expected one ASCII character, or \\t")
    return InputOptions(
        format=input_format,
        batch_rows=batch_rows,
        delimiter=delimiter,
        header=not no_header,
        null_values=tuple(null_value) if null_value else ("",),
    )


def _print_commit(session: Session, table: str, snapshot: Snapshot | None, verb: str) -> None:
    if snapshot is None:
        print_record(session, {"table": table, "snapshot_id": None}, f"{verb} {table}: nothing to commit")
        return
    added = snapshot.delta_record_count or 0
    record = {
        "table": table,
        **describe_snapshot(snapshot),
        "delta_record_count": added,
        "total_record_count": snapshot.total_record_count,
    }
    total = "" if snapshot.total_record_count is None else f", {snapshot.total_record_count:,} in all"
    print_record(session, record, f"{verb} {table}: snapshot {snapshot.id}, {added:+,} rows{total}")


def _print_preview(session: Session, table: str, removal: Mapping[str, Any], **more: int) -> None:
    removed = {f"removed_{name}": value for name, value in removal.items() if name != "snapshot_id"}
    print_record(session, {"table": table, "snapshot_id": removal["snapshot_id"], **removed, **more, "dry_run": True})


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "append": append,
    "overwrite": overwrite,
    "import": import_directory,
    "read": read,
    "delete": delete,
    "truncate": truncate,
    "drop-partition": drop_partition,
}
