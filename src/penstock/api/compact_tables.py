"""Compact several tables, one after another."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Final

from penstock.api.arguments import Options
from penstock.api.handle import TableHandle
from penstock.api.operations.compaction import COMPACTION_COLUMNS, Compact, compaction_rows
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Extra, Procedure, ResultRows
from penstock.catalog.backend import Backend
from penstock.catalog.selection import select_tables
from penstock.errors import TableStoreError
from penstock.table.compact.job import CompactionResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCompaction:
    """The outcome of compacting one of several tables.

    Attributes:
        table: ``database.table``.
        result: None if there is an ``error``.
    """

    table: str
    result: CompactionResult | None
    error: TableStoreError | None


def compact_tables(names: "Iterable[str]", compact: "Callable[[str], CompactionResult]") -> "Iterator[TableCompaction]":
    """Compact tables; if one of them fails, continue with the next."""
    for name in names:
        try:
            yield TableCompaction(table=name, result=compact(name), error=None)
        except TableStoreError as error:
            yield TableCompaction(table=name, result=None, error=error)


@dataclass(frozen=True, slots=True)
class CompactDatabase(Operation[Backend, tuple[TableCompaction, ...]]):
    """Compact the tables of one or more databases, one after another, as ``Table.compact`` does.

    Args:
        databases: a name, or a regular expression that matches the whole name.
        including: regular expression for the tables, as ``table`` or ``database.table``.
        excluding: regular expression for tables to exclude.

    Returns:
        One result per table. If a table cannot be compacted, its result has the error, and the others are still
        compacted.

    Raises:
        NotFoundError: no database matches.
        InvalidOptionError: an invalid regular expression.
    """

    databases: Annotated[str, Named("including_databases")] = ".*"
    spark: "SparkSession | None" = None
    _: KW_ONLY
    including: Annotated[str, Named("including_tables")] = ".*"
    excluding: Annotated[str | None, Named("excluding_tables")] = None
    strategy: Annotated[str | None, Named("compact_strategy")] = None
    idle_time: Annotated[str | None, Named("partition_idle_time")] = None
    options: Annotated[Options | None, Named("table_options", aliases=("options",))] = None
    dry_run: bool = False

    def run(self, warehouse: Backend, /) -> tuple[TableCompaction, ...]:
        names = select_tables(warehouse, databases=self.databases, including=self.including, excluding=self.excluding)
        compact = Compact(
            self.spark, strategy=self.strategy, idle_time=self.idle_time, options=self.options, dry_run=self.dry_run
        )
        return tuple(compact_tables(names, lambda name: compact.run(TableHandle(warehouse.load_table(name)))))


def _rows(warehouse: Backend, operation: CompactDatabase) -> ResultRows:
    for each in operation.run(warehouse):
        if each.result is None:
            yield (each.table, None, None, None, None, None, str(each.error))
        else:
            yield from compaction_rows(each.table, each.result)


_MODE: Final = Extra(
    "mode",
    only=("divided", "combined"),
    refusal="expects 'divided' or 'combined' for mode; tables are compacted one after the other",
)
PROCEDURES: Final = (
    Procedure(
        "compact_database", CompactDatabase,
        "including_databases, mode, including_tables, excluding_tables, table_options, partition_idle_time, "
        "compact_strategy",
        COMPACTION_COLUMNS, _rows, extras=(_MODE,), note="whatever `mode` is"
    ),
)  # fmt: skip
