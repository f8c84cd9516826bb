"""Convert rows from users to Arrow: Arrow data, pandas and polars DataFrames, lists of dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import pyarrow as pa

from penstock.datafile.python_values import is_missing, python_array
from penstock.datafile.types import widen_decimals
from penstock.errors import InvalidSchemaError, SchemaMismatchError
from penstock.table.write.check_rows import conform_batch, plan_conform
from penstock.table.write.imports import constant_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from penstock.datafile.types import ArrowAny
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField
    from penstock.table.ref import TableRef


class ArrowStream(Protocol):
    """An object that exports its rows through Arrow's C interface, such as those of polars, DuckDB and pandas."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows."""
        ...


ArrowRows: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader"
_ARROW_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)
Rows: TypeAlias = "DataFrame | ArrowRows | ArrowStream | Sequence[Mapping[str, object]]"


def arrow_rows(rows: object, ref: TableRef) -> ArrowRows:
    """Return the rows as Arrow.

    Args:
        rows: Arrow data; a pandas DataFrame, without its index; an object with ``__arrow_c_stream__``; or a list of
            dicts with the same keys, whose values are converted to the column types.

    Raises:
        SchemaMismatchError: the rows have another form, or a value does not match the type of its column.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return rows
    kind = type(rows)
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame":
        # The C interface would turn the index into a column.
        return _from_pandas(rows, ref)
    if hasattr(rows, "__arrow_c_stream__"):
        if kind.__module__.startswith("polars.") and "Object" in map(str, getattr(rows, "dtypes", ())):
            raise SchemaMismatchError(
                f"table {ref.name}: a column of Python objects in polars exports only their addresses"
            )
        try:
            return pa.RecordBatchReader.from_stream(rows)
        except _ARROW_ERRORS as error:
            what = _without_arrow_type(rows)
            raise SchemaMismatchError(f"table {ref.name}: {what} does not become Arrow: {error}") from error
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        return _from_dicts(rows, ref)
    hint = ": call its collect() first" if kind.__name__ == "LazyFrame" else ""
    if isinstance(rows, list | tuple):
        other = next(type(row).__name__ for row in rows if not isinstance(row, Mapping))
        hint = f" that holds a {other}"
    raise SchemaMismatchError(
        f"table {ref.name}: cannot take rows from a {kind.__name__}{hint}: give a Spark, pandas or polars DataFrame, a "
        "pyarrow Table, RecordBatch or RecordBatchReader, or a list of dicts"
    )


def rows_with_schema(rows: Rows) -> Rows:
    """Return rows whose columns have types by themselves: dicts become Arrow data, and streams are opened once.

    Raises:
        InvalidSchemaError: dicts whose columns have no type, or no dicts.
    """
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        names = _names_of(rows, "the rows")
        try:
            table = pa.table({name: [row[name] for row in rows] for name in names})
        except _ARROW_ERRORS as error:
            raise InvalidSchemaError(f"the values of a column have no common type: {error}") from error
        untyped = [field.name for field in table.schema if pa.types.is_null(field.type)]
        if untyped or not names:
            what = f"column '{untyped[0]}' has no values" if untyped else "there are no rows"
            raise InvalidSchemaError(f"{what}, from which a type would follow: create the table with its columns first")
        return table.cast(pa.schema([field.with_type(widen_decimals(field.type)) for field in table.schema]))
    if hasattr(rows, "__arrow_c_stream__") and not hasattr(rows, "iloc") and not isinstance(rows, pa.Table):
        try:
            return pa.RecordBatchReader.from_stream(rows)
        except _ARROW_ERRORS as error:
            raise InvalidSchemaError(f"{_without_arrow_type(rows)} does not become Arrow: {error}") from error
    return rows


def _without_arrow_type(rows: object) -> str:
    """Return the column of rows that cannot be exported, with its type; the kind of the rows if that is not known."""
    kind, frame = type(rows), cast("Any", rows)
    if kind.__module__.startswith("polars.") and kind.__name__ == "DataFrame":
        for name in frame.columns:
            try:
                pa.RecordBatchReader.from_stream(frame.select(name))
            except _ARROW_ERRORS:
                return f"column '{name}' ({frame.schema[name]})"
    return f"a {kind.__name__}"


def as_table(rows: ArrowRows) -> pa.Table:
    """Return Arrow rows as a table in memory."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows


def _from_pandas(frame: Any, ref: TableRef) -> pa.Table:  # noqa: ANN401 - pandas is imported by its users
    names = [str(name) for name in frame.columns]
    fields = {field.name: field for field in ref.schema.fields}
    columns = []
    for place, name in enumerate(names):
        series = frame.iloc[:, place]
        if series.dtype == object and name in fields:
            # Columns of Python values: Arrow would guess their type, and convert values to it.
            columns.append(python_array(series.where(series.notna(), None).tolist(), fields[name], ref.name))
            continue
        if len(series) and not series.count() and name in fields:
            # Nothing but NULL, for which pandas has a type of its own choice, such as float64.
            columns.append(pa.nulls(len(series)))
            continue
        try:
            columns.append(pa.Table.from_pandas(series.to_frame(name), preserve_index=False).column(0))
        except _ARROW_ERRORS as error:
            raise SchemaMismatchError(
                f"table {ref.name}: column '{name}' of the DataFrame ({series.dtype}) does not become Arrow: {error}"
            ) from error
    return pa.table(columns, names=names)


def _from_dicts(rows: Sequence[Mapping[str, Any]], ref: TableRef) -> pa.Table:
    names = _names_of(rows, f"table {ref.name}") or ref.schema.field_names
    fields = {field.name: field for field in ref.schema.fields}
    return pa.table({name: _column([row[name] for row in rows], name, fields.get(name), ref.name) for name in names})


def _names_of(rows: Sequence[Mapping[str, Any]], what: str) -> tuple[str, ...]:
    """Return the keys of dicts, in their order. Raises ``SchemaMismatchError`` if one lacks a key of others."""
    names = dict.fromkeys(name for row in rows for name in row)
    for place, row in enumerate(rows):
        if len(row) < len(names):
            missing = next(name for name in names if name not in row)
            # NULL would hide a misspelled key of a row, and would be no DEFAULT.
            raise SchemaMismatchError(
                f"{what}: row {place} (counted from 0) lacks the key '{missing}', which other rows have; "
                "give None for NULL"
            )
    return tuple(names)


def _column(values: Sequence[object], name: str, field: DataField | None, table: str) -> ArrowAny:
    if field is not None:
        return python_array(values, field, table)
    # A column that the table does not have: MERGE may name it in expressions; for others a later check refuses it.
    kinds = sorted({type(value).__name__ for value in values if not is_missing(value)})
    problem = f"it has values of {', '.join(kinds)}"
    if len(kinds) <= 1:
        try:
            return pa.array([None if is_missing(value) else value for value in values])
        except _ARROW_ERRORS as error:
            problem = str(error)
    raise SchemaMismatchError(
        f"table {table}: column '{name}', which the table does not have, does not become one Arrow type: {problem}"
    )


def fit_rows(
    schema: TableSchema,
    table: str,
    batches: Iterable[pa.RecordBatch],
    constants: Iterable[tuple[str, str | None]] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a source with the table's types; all must have the columns of the first.

    Args:
        constants: columns that the batches lack, each with the text of its constant value; None for NULL.

    Raises:
        SchemaMismatchError: the rows do not match; the message names the row.
    """
    plan = None
    first_row = 0
    fields = {field.name: field for field in schema.fields}
    for read in batches:
        batch = read
        for name, text in constants:
            batch = _with_constant(batch, name, constant_array(fields[name], text, batch.num_rows))
        plan = plan or plan_conform(schema, batch.schema, table)
        yield conform_batch(batch, plan, first_row)
        first_row += batch.num_rows


def _with_constant(batch: pa.RecordBatch, name: str, array: ArrowAny) -> pa.RecordBatch:
    if name in batch.schema.names:
        return batch.set_column(batch.schema.names.index(name), name, array)
    return batch.append_column(name, array)
