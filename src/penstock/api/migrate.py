"""In-place migration of a Hive-style directory to a table."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Final

from penstock.api.arguments import FLAG, Options, Progress, encode_options, no_progress, to_location
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Extra, Procedure, ResultRows
from penstock.api.table import Table
from penstock.catalog.backend import Backend
from penstock.catalog.new_schema import TableDefinition
from penstock.errors import InvalidOptionError, NotFoundError, TableStoreError
from penstock.format.layout import FileFormat
from penstock.format.types.ddl import ColumnSpec
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.io.resolve import resolve
from penstock.options.group import parse_int
from penstock.printable import Result
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.write.imports import AdoptionPlan, adopt_files, check_partitions, plan_adoption

_TEXT: Final = "STRING"
# Prefixes of files and directories without rows, by the convention of Hive and Spark.
_HIDDEN: Final = (".", "_")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Migration(Result):
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


@dataclass(frozen=True, slots=True)
class Migrate(Operation[Backend, Migration]):
    """Create a table from a Hive-style directory of Parquet or ORC files, without copying them.

    The table gets hard links to the files. The directory is unchanged, but its files must no longer be modified. To
    undo the migration, drop the table.

    Args:
        directory: the parent directory of partitions such as ``dt=2026-01-01``.
        name: ``database.table`` of the new table. Its columns are those of the files, followed by those of the
            directory names.
        partition_types: SQL types of partition columns, such as ``dt=DATE``; the default is ``STRING``.
        options: of the table.
        copy: copy the files instead, where hard links are not possible.
        dry_run: only check files and columns.
        progress: called with the number of rows and bytes processed so far.

    Raises:
        NotFoundError: there are no files, or the database does not exist.
        AlreadyExistsError: the table exists.
        SchemaMismatchError: files or directories are inconsistent.
        UnsupportedFeatureError: an object store, a file system without hard links, or columns that need a conversion.
    """

    directory: Annotated[str | os.PathLike[str], Named("source_table", aliases=("table",))]
    name: Annotated[str, Named("target_table")]
    _: KW_ONLY
    partition_types: Mapping[str, str] | None = None
    options: Options | None = None
    copy: bool = False
    dry_run: bool = False
    progress: Progress = no_progress

    def run(self, warehouse: Backend, /) -> Migration:
        file_io, root = resolve(to_location(self.directory))
        plan = plan_adoption(file_io, root)
        definition = _definition(plan, self.partition_types or {}, encode_options(self.options), self.name)
        found = Migration(
            table=None,
            columns=tuple(f"{each.name} {format_sql_type(each.type)}" for each in definition.columns),
            partition_by=plan.partition_keys,
            files=len(plan.files),
            bytes=sum(file.size for file in plan.files),
            rows=0,
        )
        if self.dry_run:
            return found
        ref = warehouse.create_table(self.name, definition, if_not_exists=False)
        rows = 0

        def count(done_rows: int, done_bytes: int) -> None:
            nonlocal rows
            rows = done_rows
            self.progress(done_rows, done_bytes)

        committer = open_committer(ref)
        try:
            check_partitions(ref.schema, plan)
            commit_append(committer, adopt_files(ref, plan, file_io, copy=self.copy, report=count))
        except BaseException:
            if not committer.may_be_committed:
                with suppress(TableStoreError):
                    warehouse.drop_table(self.name, if_exists=True)
            raise
        return replace(found, table=Table(ref), rows=rows)


@dataclass(frozen=True, slots=True)
class MigrateDatabase(Operation[Backend, tuple[TableMigration, ...]]):
    """Create a table from each Hive-style directory in the directory of a database, as ``migrate`` does.

    Args:
        directory: its subdirectories are the tables, such as ``orders`` with ``orders/dt=2026-01-01``.
        database: of the new tables, created if it does not exist; None for the directory's name without ``.db``.
        options: of every table.
        copy: copy the files instead, where hard links are not possible.
        dry_run: only check files and columns.

    Returns:
        One result per directory, sorted by name. If a directory cannot be migrated, its result has the error, and the
        others are still migrated.

    Raises:
        NotFoundError: it has no subdirectory.
        InvalidOptionError: it is the directory of a single table.
    """

    directory: Annotated[str | os.PathLike[str], Named("source_database", aliases=("database",))]
    database: Annotated[str | None, Named("target_database")] = None
    _: KW_ONLY
    options: Options | None = None
    copy: bool = False
    dry_run: bool = False

    def run(self, warehouse: Backend, /) -> tuple[TableMigration, ...]:
        database = self.database or to_location(self.directory).rstrip("/").rpartition("/")[2].removesuffix(".db")
        directories = list_directories(self.directory)
        if not self.dry_run:
            warehouse.create_database(database, if_not_exists=True)
        found = []
        for name, location in directories:
            table = f"{database}.{name}"
            one = Migrate(location, table, options=self.options, copy=self.copy, dry_run=self.dry_run)
            try:
                found.append(TableMigration(table=table, result=one.run(warehouse), error=None))
            except TableStoreError as error:
                found.append(TableMigration(table=table, result=None, error=error))
        return tuple(found)


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


_CONNECTOR: Final = Extra(
    "connector",
    only=("hive",),
    refusal="expects 'hive' for connector: a directory as Hive lays it out",
    aliases=("source_type",),
)
_DELETE_ORIGIN: Final = Extra(
    "delete_origin",
    FLAG,
    only=("false",),
    refusal="leaves the directory as it is: delete it when you are sure, and leave out delete_origin",
)
_PARALLELISM: Final = Extra("parallelism")  # files are linked one after another
_MIGRATED: Final = "table STRING, files BIGINT, bytes BIGINT, rows BIGINT"


def _migrated(warehouse: Backend, operation: Migrate) -> ResultRows:
    done = operation.run(warehouse)
    return [(operation.name, done.files, done.bytes, done.rows)]


def _migrated_tables(warehouse: Backend, operation: MigrateDatabase) -> ResultRows:
    for each in operation.run(warehouse):
        done = each.result
        counts = (0, 0, 0) if done is None else (done.files, done.bytes, done.rows)
        yield (each.table, *counts, None if each.error is None else str(each.error))


PROCEDURES: Final = (
    Procedure(
        "migrate_table", Migrate, "connector, source_table, target_table, options, parallelism, delete_origin",
        _MIGRATED, _migrated, extras=(_CONNECTOR, _PARALLELISM, _DELETE_ORIGIN),
        note="`source_table` is the path of a directory, `connector` is `'hive'`; `delete_origin => TRUE` is refused"
    ),
    Procedure(
        "migrate_database", MigrateDatabase,
        "connector, source_database, options, parallelism, target_database, dry_run", f"{_MIGRATED}, error STRING",
        _migrated_tables, extras=(_CONNECTOR, _PARALLELISM),
        note="`source_database` is the path of a directory with a directory for each table; the last two arguments are "
        "Penstock's"
    ),
)  # fmt: skip
