"""In-place migration of a Hive-style directory to a table: ``Catalog.migrate``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.api.arguments import to_location
from penstock.api.table import Table
from penstock.catalog.new_schema import TableDefinition
from penstock.errors import InvalidOptionError, NotFoundError, TableStoreError
from penstock.format.layout import FileFormat
from penstock.format.types.ddl import ColumnSpec
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.io.resolve import resolve
from penstock.options.values import parse_int
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.write.imports import adopt_files, check_partitions, plan_adoption

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from penstock.api.arguments import Progress
    from penstock.catalog.backend import Backend
    from penstock.table.write.imports import AdoptionPlan

_TEXT: Final = "STRING"
# Prefixes of files and directories without rows, by the convention of Hive and Spark.
_HIDDEN: Final = (".", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The result of migrating a directory, or of a dry run.

    Attributes:
        table: None for a dry run.
        columns: of the table, each such as ``id BIGINT``; partition columns last.
        rows: 0 for a dry run, which reads only the schemas of the files.
    """

    table: Table | None
    columns: tuple[str, ...]
    partition_by: tuple[str, ...]
    files: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMigration:
    """The outcome of migrating one of several directories.

    Attributes:
        table: ``database.table``.
        result: None if there is an ``error``.
    """

    table: str
    result: Migration | None
    error: TableStoreError | None


def list_directories(directory: str | os.PathLike[str]) -> tuple[tuple[str, str], ...]:
    """Return the name and location of each table directory in the directory of a database.

    Raises:
        NotFoundError: there is none.
        InvalidOptionError: it is the directory of one table.
    """
    file_io, root = resolve(to_location(directory))
    found = []
    for each in file_io.list(root):
        if each.name.startswith(_HIDDEN):
            continue
        if not each.is_dir or "=" in each.name:
            raise InvalidOptionError(
                f"{root} holds '{each.name}', so it is the directory of a table, not of a database: migrate "
                "it as a table"
            )
        found.append((each.name, f"{root}/{each.name}"))
    if not found:
        raise NotFoundError(f"{root}: there is no directory of a table in it; check the path")
    return tuple(sorted(found))


def migrate_each(
    directory: str | os.PathLike[str], database: str, migrate_one: Callable[[str, str], Migration]
) -> Iterator[TableMigration]:
    """Migrate the tables in the directory of a database; if one of them fails, continue with the next.

    Args:
        migrate_one: called with the location of a directory and the name of its table.

    Raises:
        TableStoreError: as ``list_directories``.
    """
    for name, location in list_directories(directory):
        table = f"{database}.{name}"
        try:
            yield TableMigration(table=table, result=migrate_one(location, table), error=None)
        except TableStoreError as error:
            yield TableMigration(table=table, result=None, error=error)


def migrate(  # noqa: PLR0913 - as Catalog.migrate
    warehouse: Backend,
    directory: str | os.PathLike[str],
    name: str,
    *,
    partition_types: Mapping[str, str],
    options: Mapping[str, str],
    copy: bool,
    dry_run: bool,
    progress: Progress,
) -> Migration:
    """Migrate a directory; see ``Catalog.migrate``."""
    file_io, root = resolve(to_location(directory))
    plan = plan_adoption(file_io, root)
    definition = _definition(plan, partition_types, options, name)
    columns = tuple(f"{each.name} {format_sql_type(each.type)}" for each in definition.columns)
    size = sum(file.size for file in plan.files)
    found = Migration(
        table=None,
        columns=columns,
        partition_by=plan.partition_keys,
        files=len(plan.files),
        bytes=size,
        rows=0,
    )
    if dry_run:
        return found
    ref = warehouse.create_table(name, definition, if_not_exists=False)
    rows = 0

    def count(done_rows: int, done_bytes: int) -> None:
        nonlocal rows
        rows = done_rows
        progress(done_rows, done_bytes)

    committer = open_committer(ref)
    try:
        check_partitions(ref.schema, plan)
        commit_append(committer, adopt_files(ref, plan, file_io, copy=copy, report=count))
    except BaseException:
        if not committer.may_be_committed:
            with suppress(TableStoreError):
                warehouse.drop_table(name, if_exists=True)
        raise
    return Migration(
        table=Table(ref),
        columns=columns,
        partition_by=plan.partition_keys,
        files=len(plan.files),
        bytes=size,
        rows=rows,
    )


def _definition(
    plan: AdoptionPlan, partition_types: Mapping[str, str], options: Mapping[str, str], name: str
) -> TableDefinition:
    strangers = sorted(set(partition_types) - set(plan.partition_keys))
    if strangers:
        raise InvalidOptionError(
            f"'{strangers[0]}' is not a column of the directories, which are {', '.join(plan.partition_keys) or 'none'}"
        )
    if parse_int(options.get("bucket", "-1")) != -1:
        raise InvalidOptionError(f"table {name}: files that are adopted are in no buckets: leave out 'bucket'")
    keys = [ColumnSpec(name=key, type=parse_sql_type(partition_types.get(key, _TEXT))) for key in plan.partition_keys]
    formats = set(plan.formats)
    file_format = next(iter(formats)) if len(formats) == 1 else FileFormat.PARQUET
    return TableDefinition(
        columns=(*plan.columns, *keys),
        partition_by=plan.partition_keys,
        options=tuple({"bucket": "-1", "file.format": str(file_format), **options}.items()),
        comment=None,
        watermark=None,
    )
