"""Convert rows to the columns of the target of an ``INSERT``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from penstock.datafile.python_values import python_array
from penstock.datafile.types import to_arrow_schema
from penstock.errors import SchemaMismatchError
from penstock.format.types.text import format_sql_type
from penstock.table.write.imports import constant_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.api.table import Table
    from penstock.datafile.types import ArrowAny
    from penstock.dialect.parse.statements import Insert
    from penstock.format.types.data_types import DataField


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertTarget:
    """The target of an ``INSERT``: a table of a catalog or of the session."""

    name: str
    fields: Sequence[DataField]
    partition_keys: Sequence[str]

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return a table of a catalog as a target."""
        return cls(name=table.name, fields=table.schema.fields, partition_keys=table.schema.partition_keys)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return to_arrow_schema(self.fields)


def target_columns(target: InsertTarget, statement: Insert) -> tuple[str, ...]:
    """Return the target columns in the order of the inserted values. Raises ``SchemaMismatchError``."""
    names = target.names
    constants = {name for name, _ in statement.partition}
    strangers = sorted(constants - set(target.partition_keys))
    if strangers:
        keys = ", ".join(target.partition_keys) or "none"
        raise SchemaMismatchError(f"table {target.name}: '{strangers[0]}' is not a partition column; they are: {keys}")
    for field in target.fields:
        # Spark reads times without a zone in its session's.
        if field.name in constants and "LOCAL TIME ZONE" not in format_sql_type(field.type):
            _constant(target, field, dict(statement.partition)[field.name])
    if not statement.columns:
        return tuple(name for name in names if name not in constants)
    for place, name in enumerate(statement.columns):
        if name not in names or name in constants or name in statement.columns[:place]:
            raise SchemaMismatchError(
                f"table {target.name}: '{name}' cannot be among the columns to insert; there are {', '.join(names)}"
            )
    return statement.columns


def literal_rows(target: InsertTarget, statement: Insert, columns: tuple[str, ...]) -> pa.Table:
    """Return the rows of ``VALUES``. Raises ``SchemaMismatchError``."""
    for number, row in enumerate(statement.rows or (), start=1):
        if len(row) != len(columns):
            raise SchemaMismatchError(
                f"table {target.name}: row {number} has {len(row)} values, and {len(columns)} are to be written:"
                f" {', '.join(columns)}"
            )
    fields = {field.name: field for field in target.fields}
    given = {
        name: python_array([row[place] for row in statement.rows or ()], fields[name], target.name)
        for place, name in enumerate(columns)
    }
    return _completed(target, statement, given, len(statement.rows or ()))


def arrow_rows(target: InsertTarget, statement: Insert, columns: tuple[str, ...], rows: pa.Table) -> pa.Table:
    """Return the rows of a query, matched by position. Raises ``SchemaMismatchError``."""
    if rows.num_columns != len(columns):
        raise SchemaMismatchError(
            f"table {target.name}: the query has {rows.num_columns} columns, and {len(columns)} are to be written:"
            f" {', '.join(columns)}"
        )
    return _completed(target, statement, dict(zip(columns, rows.columns, strict=True)), rows.num_rows)


def _completed(target: InsertTarget, statement: Insert, given: dict[str, ArrowAny], count: int) -> pa.Table:
    """Add the partition values of the statement, and NULL for columns that are not inserted."""
    constants = dict(statement.partition)
    arrays: list[ArrowAny] = []
    for field in target.fields:
        if field.name in given:
            arrays.append(given[field.name])
        else:
            arrays.append(_constant(target, field, constants.get(field.name), count))
    return pa.table(dict(zip(target.names, arrays, strict=True)))


def _constant(target: InsertTarget, field: DataField, text: str | None, count: int = 0) -> ArrowAny:
    """Return a partition value of the statement as a column. Raises ``SchemaMismatchError``."""
    try:
        return constant_array(field, text, count)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(
            f"table {target.name}: PARTITION ({field.name} = '{text}'): '{text}' is not a value of its type "
            f"{format_sql_type(field.type)}"
        ) from error
