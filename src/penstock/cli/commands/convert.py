"""Commands that move whole tables: migrate, convert and export."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from penstock.api.catalog import Catalog
from penstock.api.exchange.convert import Conversion, convert
from penstock.api.exchange.export import export_parquet
from penstock.api.exchange.source import SourceFormat
from penstock.api.migrate import Migrate
from penstock.cli.arguments import (
    DryRun,
    Options,
    SnapshotId,
    TableName,
    Tag,
    Timestamp,
    Where,
    parse_pairs,
    split_list,
)
from penstock.cli.output.progress import Unit, progress_bar
from penstock.cli.output.render import print_record
from penstock.cli.output.spark_failure import open_spark
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain


def convert_source(
    session: Session,
    source: Annotated[str, typer.Argument(help="A directory of files, or a table of Delta Lake or Iceberg.")],
    table: TableName,
    *,
    partition_by: Annotated[
        str | None, typer.Option(help="Partition columns, separated by commas.  [default: those of the directories]")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="COLUMN=TYPE", help="Type of a column, such as dt=DATE.")
    ] = None,
    source_format: Annotated[
        SourceFormat | None, typer.Option("--source-format", help="When the names of the files do not show it.")
    ] = None,
    spark: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Read the source with Spark, such as local[2].")
    ] = None,
    packages: Annotated[
        str | None, typer.Option(metavar="MAVEN", help="Packages for Spark: group:name:version,…")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark's session; may be repeated.")
    ] = None,
    option: Options = None,
    dry_run: DryRun = False,
) -> None:
    """Copy files, or a Delta Lake or Iceberg table, into a new table.

    Columns are inferred from the files, and partition columns from directories such as dt=2026-01-01. The copy is one
    commit, and its rows are counted again: a failed conversion leaves no table. The source is not changed.
    """
    settings = parse_pairs(conf, "--conf") | ({"spark.jars.packages": packages} if packages else {})
    chosen: dict[str, Any] = {
        "format": None if source_format is None else str(source_format),
        "partition_by": split_list(partition_by),
        "types": parse_pairs(types, "--type"),
        "options": parse_pairs(option, "--option"),
        "spark": None if spark is None else open_spark(session, spark, settings),
    }
    plan = _run(session.catalog(table), table, source, chosen, dry_run=True).plan
    if dry_run:
        print_record(session, {**asdict(plan), "partition_by": list(plan.partition_by), "dry_run": True})
        return
    with progress_bar(session, f"converting {source}", Unit.ROWS, total_bytes=plan.bytes) as report:
        done = _run(session.catalog(table), table, source, chosen, progress=report)
    record: dict[str, Plain] = {
        "table": table,
        "rows": done.rows,
        "snapshot_id": None if done.snapshot is None else done.snapshot.id,
    }
    files = "" if plan.files is None else f" of {plan.files:,} files ({bytes_text(plan.bytes or 0)})"
    print_record(
        session, record, f"converted {done.rows:,} rows{files} into {table}; counted again: {done.rows:,} rows"
    )


def export(
    session: Session,
    table: TableName,
    directory: Annotated[str, typer.Argument(help="A local directory that does not exist yet, or is empty.")],
    *,
    columns: Annotated[str | None, typer.Option(help="Names separated by commas, in the order wanted.")] = None,
    where: Where = None,
    snapshot_id: SnapshotId = None,
    tag: Tag = None,
    timestamp: Timestamp = None,
    option: Options = None,
) -> None:
    """Write rows as Parquet files, in directories such as dt=2026-01-01 for the partitions; all or nothing."""
    loaded = session.table(table)
    latest = loaded.latest_snapshot() if (where, snapshot_id, tag, timestamp, option) == (None,) * 5 else None
    total = None if latest is None else latest.total_record_count
    with progress_bar(session, f"exporting {loaded.name}", Unit.ROWS, total=total) as report:
        done = export_parquet(
            loaded,
            directory,
            split_list(columns),
            where,
            options=parse_pairs(option, "--option"),
            progress=report,
            snapshot_id=snapshot_id,
            tag=tag,
            timestamp_millis=parse_millis(timestamp, "--timestamp"),
        )
    files = f"{done.files:,} files ({bytes_text(done.bytes)})"
    text = f"exported {done.rows:,} rows of {table} into {files} in {done.directory}"
    print_record(session, {"table": table, **asdict(done)}, text)


def _run(catalog: Catalog, table: str, source: str, chosen: dict[str, Any], **more: Any) -> Conversion:  # noqa: ANN401
    return convert(catalog, table, source, **chosen, **more)


def migrate(session: Session, name: TableName, operation: Migrate) -> None:
    """Create a table from a Hive-style directory of Parquet or ORC files, by hard links.

    The directory is not changed, but its files must no longer be modified. To undo the migration, drop the table.
    """
    warehouse = session.open_warehouse()
    found = replace(operation, dry_run=True).run(warehouse)
    rows = None
    if not operation.dry_run:
        with progress_bar(session, f"adopting {name}", Unit.ROWS, total_bytes=found.bytes) as progress:
            rows = replace(operation, progress=progress).run(warehouse).rows
    record: dict[str, Plain] = {
        "table": name,
        "columns": list(found.columns),
        "partition_by": list(found.partition_by),
        "files": found.files,
        "bytes": found.bytes,
        "rows": rows,
    }
    done = "would make" if operation.dry_run else "made"
    print_record(session, record, f"{done} table {name} of {found.files:,} files in {operation.directory}")


COMMANDS: Final[dict[str, Callable[..., None]]] = {"convert": convert_source, "export": export, "migrate": migrate}
