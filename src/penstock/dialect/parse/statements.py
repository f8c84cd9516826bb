"""Values that represent parsed statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyarrow.compute import Expression

    from penstock.catalog.changes import SchemaChange
    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import Pairs, PartitionSpec, Path, StatementText
    from penstock.format.types.data_types import DataField, DataType
    from penstock.format.types.ddl import ColumnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """A column that Flink computes when it reads rows; only its definition is stored.

    Attributes:
        place: position among all columns of the statement, computed ones included, from 0.
        expression: the expression as Flink stores it, with columns in backquotes.
    """

    place: int
    name: str
    expression: str
    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkClause:
    """``WATERMARK FOR column AS column - interval``; the interval is None if the clause has none."""

    column: str
    interval: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataColumn:
    """``column type METADATA FROM 'key' VIRTUAL``: the type is among the columns.

    Attributes:
        key: the metadata that the column shows.
        is_virtual: whether written rows lack the column.
    """

    name: str
    key: str
    is_virtual: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """``CREATE [TEMPORARY] TABLE``.

    Attributes:
        columns: all but computed ones.
        metadata: those of ``columns`` that show metadata of records.
    """

    name: Path
    columns: tuple[ColumnSpec, ...]
    metadata: tuple[MetadataColumn, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    watermark: WatermarkClause | None = None
    partition_by: tuple[str, ...] = ()
    options: Pairs = field(default=(), repr=False)
    comment: str | None = None
    if_not_exists: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """``CREATE DATABASE``.

    Attributes:
        dropped: clauses that have no effect.
    """

    name: Path
    if_not_exists: bool = False
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog:
    """``CREATE CATALOG``: register a warehouse under a name in this session."""

    name: str
    options: Pairs = field(repr=False)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCatalog:
    """``USE CATALOG``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDatabase:
    """``USE``."""

    name: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    """``DROP [TEMPORARY] TABLE``."""

    name: Path
    if_exists: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """``DROP DATABASE``."""

    name: Path
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog:
    """``DROP CATALOG``: remove the name from this session."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """``ALTER TABLE`` with changes of the schema."""

    name: Path
    changes: tuple[SchemaChange, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddComputed:
    """``ALTER TABLE … ADD`` with computed columns.

    Attributes:
        source: the columns, which can be read only with the types of the table's columns.
    """

    name: Path
    source: StatementText
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterWatermark:
    """``ALTER TABLE … ADD | MODIFY WATERMARK``; for ``DROP WATERMARK`` the clause is None."""

    name: Path
    clause: WatermarkClause | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    """``ALTER TABLE … RENAME TO``."""

    name: Path
    new_name: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """``ALTER TABLE … ADD PARTITION``."""

    name: Path
    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions:
    """``ALTER TABLE … DROP PARTITION``.

    Attributes:
        if_exists: whether the table may be missing.
        if_partitions_exist: whether partitions may be missing.
    """

    name: Path
    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False
    if_partitions_exist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """``TRUNCATE TABLE``."""

    name: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowNames:
    """``SHOW CATALOGS | DATABASES | TABLES | VIEWS | PROCEDURES | CURRENT …``.

    Attributes:
        what: ``catalogs``, ``databases``, ``tables``, ``views``, ``procedures``, ``current catalog`` or
            ``current database``.
        within: the catalog or database whose names are listed; empty for the current one.
        like: a pattern with ``%`` and ``_``.
        is_negated: ``NOT LIKE``.
    """

    what: str
    within: Path = ()
    like: str | None = None
    is_negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateTable:
    """``SHOW CREATE TABLE``."""

    name: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPartitions:
    """``SHOW PARTITIONS``; with a spec, only the partitions that match it."""

    name: Path
    spec: PartitionSpec = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """``DESCRIBE``, or ``SHOW COLUMNS FROM … [NOT] LIKE``."""

    name: Path
    like: str | None = None
    is_negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSetting:
    """``SET 'key' = 'value'``; without a key: show all settings."""

    key: str | None = None
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSetting:
    """``RESET 'key'``; without a key: reset all settings."""

    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a procedure; the name of a positional argument is None."""

    name: str | None
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``CALL [catalog.]sys.procedure(…)``."""

    procedure: str
    catalog: str | None = None
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``INSERT INTO | OVERWRITE``.

    Attributes:
        options: options of the hint after the table's name.
        columns: target columns, in the order of the query's columns; empty for all columns of the table.
        rows: rows of a ``VALUES`` that has only literals; None if there is a query.
        place_in_set: its place in its statement set, from 0; None outside of one.
    """

    name: Path
    options: Pairs = field(default=(), repr=False)
    partition: PartitionSpec = ()
    columns: tuple[str, ...] = ()
    is_overwrite: bool = False
    query: Query | None = None
    rows: tuple[tuple[object, ...], ...] | None = None
    place_in_set: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRows:
    """``DELETE FROM``.

    Attributes:
        where: the condition, in filter syntax.
        options: options of the hint.
    """

    name: Path
    where: str
    options: Pairs = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRows:
    """``UPDATE``.

    Attributes:
        values: column to constant or Arrow expression.
        text: the statement, which is parsed again once the types of the columns are known.
        options: options of the hint.
    """

    name: Path
    values: tuple[tuple[str, object], ...]
    where: str
    text: StatementText
    options: Pairs = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """``WHEN … THEN``.

    Attributes:
        values: as for ``UpdateRows``; empty for all columns of the source.
        where: the condition after AND.
    """

    values: tuple[tuple[str, object], ...] = ()
    where: Expression | None = None
    is_delete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """``MERGE INTO``.

    Attributes:
        on: pairs of a column of the table and one of the source; may be empty until the columns are known.
        text: the statement, which is parsed again once the columns of both are known; until then, columns without the
            name of a table count as those of the table.
        options: options of the hint.
    """

    name: Path
    source: Query
    on: Pairs
    text: StatementText
    options: Pairs = field(default=(), repr=False)
    matched: tuple[MergeClause, ...] = ()
    not_matched: tuple[MergeClause, ...] = ()
    not_matched_by_source: tuple[MergeClause, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query."""

    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """``CREATE [OR REPLACE] [TEMPORARY] VIEW``.

    Attributes:
        columns: names and comments for the query's columns, in its order; empty to keep the query's names.
        fields: the same columns with their types, for a view of a catalog.
        query_columns: names of the query's columns for ``fields``, if they are not matched by position.
    """

    name: Path
    query: Query
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    if_not_exists: bool = False
    is_temporary: bool = False
    replaces: bool = False
    fields: tuple[DataField, ...] = ()
    query_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    """``DROP [TEMPORARY] VIEW``."""

    name: Path
    if_exists: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateView:
    """``SHOW CREATE VIEW``."""

    name: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableAs:
    """``CREATE TABLE … AS SELECT``.

    Attributes:
        table: its columns come before the query's. A column that the query has too sets the type of the query's column.
        order: the query's columns in the order of the table; empty for the query's own order.
    """

    table: CreateTable
    query: Query
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableLike:
    """``CREATE TABLE … LIKE``.

    Attributes:
        table: the definitions in the statement itself; they are placed after those of the source table.
        rules: ``INCLUDING``, ``EXCLUDING`` or ``OVERWRITING`` for each feature, such as ``OPTIONS``.
    """

    table: CreateTable
    source: Path
    rules: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """``EXPLAIN``."""

    action: Select | Insert


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a script, with its position in the text."""

    source: StatementText
    action: Action


Action: TypeAlias = (
    CreateTable
    | CreateTableAs
    | CreateTableLike
    | CreateView
    | CreateDatabase
    | CreateCatalog
    | UseCatalog
    | UseDatabase
    | DropTable
    | DropView
    | DropDatabase
    | DropCatalog
    | AlterTable
    | AddComputed
    | AlterWatermark
    | RenameTable
    | AddPartitions
    | DropPartitions
    | Truncate
    | ShowNames
    | ShowCreateTable
    | ShowCreateView
    | ShowPartitions
    | Describe
    | SetSetting
    | ResetSetting
    | Call
    | Explain
    | Insert
    | DeleteRows
    | UpdateRows
    | MergeRows
    | Select
)
