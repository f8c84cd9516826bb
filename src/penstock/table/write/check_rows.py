"""Conversion of incoming Arrow batches to a table's schema: columns by name, lossless casts, null checks, defaults.

A plan is created once per incoming schema. Applying it to batches that are already canonical copies nothing.

Source:
    Nulls are checked before defaults as in Paimon ``core:table/sink/TableWriteImpl.java``;
    docs/spec/commit.md section 2.2.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.datafile.types import ArrowAny, to_arrow_schema
from penstock.errors import SchemaMismatchError
from penstock.table.write.coercion import cast_array, find_incompatibility, is_same_type
from penstock.table.write.default_values import decode_default
from penstock.table.write.nested_nulls import find_nested_null, has_nested_not_null
from penstock.table.write.value_lengths import find_long_value, has_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """How one column of the table is computed from an incoming column.

    Attributes:
        field: the canonical field.
        source: index of the incoming column.
        is_cast: the incoming type differs.
        limited: the column's type if it limits the length of strings or binary values, else None.
        has_nested_not_null: whether a nested value of the type must not be null.
        default: replaces nulls; None if the column has no default.
    """

    field: ArrowAny
    source: int
    is_cast: bool
    limited: DataType | None
    has_nested_not_null: bool
    default: ArrowAny | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformPlan:
    """How batches of one incoming schema become canonical batches of a table."""

    table: str
    schema: pa.Schema
    columns: tuple[ColumnPlan, ...]


def plan_conform(schema: TableSchema, incoming: pa.Schema, table: str) -> ConformPlan:
    """Match incoming columns to those of the table by exact name, in any order.

    Args:
        schema: of the table.
        incoming: schema of the incoming batches.
        table: name for messages.

    Raises:
        SchemaMismatchError: a column is missing, not in the table, given twice, or of a type that cannot be cast
            without loss; the message lists all such columns.
    """
    _check_names(schema.field_names, incoming.names, table)
    canonical = to_arrow_schema(schema.fields)
    columns: list[ColumnPlan] = []
    problems: list[str] = []
    for column, wanted in zip(schema.fields, canonical, strict=True):
        source = incoming.get_field_index(column.name)
        given = incoming.field(source).type
        misfit = find_incompatibility(given, wanted.type, column.name)
        if misfit is not None:
            problems.append(misfit)
            continue
        columns.append(
            ColumnPlan(
                field=wanted,
                source=source,
                is_cast=not is_same_type(given, wanted.type),
                limited=column.type if has_limit(column.type) else None,
                has_nested_not_null=has_nested_not_null(wanted.type),
                default=None if column.default_value is None else decode_default(column, wanted.type, table),
            )
        )
    if problems:
        raise SchemaMismatchError(f"table '{table}': {'; '.join(problems)}; cast before writing")
    return ConformPlan(table=table, schema=canonical, columns=tuple(columns))


def conform_batches(batches: Iterable[pa.RecordBatch], plan: ConformPlan) -> Iterator[pa.RecordBatch]:
    """Yield each batch in canonical form, in order; messages number the rows over all batches.

    Raises:
        SchemaMismatchError: see ``conform_batch``.
    """
    first_row = 0
    for batch in batches:
        yield conform_batch(batch, plan, first_row)
        first_row += batch.num_rows


def conform_batch(batch: pa.RecordBatch, plan: ConformPlan, first_row: int = 0) -> pa.RecordBatch:
    """Convert a batch to exactly the table's canonical schema.

    Args:
        batch: of the schema for which the plan was created.
        plan: from ``plan_conform``.
        first_row: number of the batch's first row, for messages.

    Raises:
        SchemaMismatchError: a null in a NOT NULL column (checked before defaults are filled in, as in the reference),
            a value that a cast would change, or a string or binary value longer than the type allows.
    """
    arrays = [_conform_column(batch.column(column.source), column, plan.table, first_row) for column in plan.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=plan.schema)


def _conform_column(array: ArrowAny, column: ColumnPlan, table: str, first_row: int) -> ArrowAny:
    name = column.field.name
    if column.is_cast:
        array = _cast_column(array, column, table, first_row)
    if array.null_count and not column.field.nullable:
        row = first_row + array.is_null().index(True).as_py()
        raise SchemaMismatchError(
            f"table '{table}': column '{name}' is NOT NULL, but row {row} (counted from 0) has null; "
            "fill it or drop the row before writing"
        )
    if column.has_nested_not_null:
        found = find_nested_null(array, name)
        if found is not None:
            raise SchemaMismatchError(
                f"table '{table}': '{found.path}' is NOT NULL, but row {first_row + found.row} (counted from 0) has "
                "null there; fill it or drop the row before writing"
            )
    if array.null_count and column.default is not None:
        array = array.fill_null(column.default)
    if column.limited is not None:
        _check_lengths(array, column.limited, name, table, first_row)
    return array


def _cast_column(array: ArrowAny, column: ColumnPlan, table: str, first_row: int) -> ArrowAny:
    name, wanted = column.field.name, column.field.type
    try:
        return cast_array(array, wanted, name)
    except ValueError as error:
        row, cause = _first_misfit(array, wanted, name, error)
        cure = "; round or cast it before writing" if isinstance(cause, pa.ArrowException) else ""
        raise SchemaMismatchError(
            f"table '{table}': column '{name}' in row {first_row + row} (counted from 0) cannot become {wanted} "
            f"without loss: {cause}{cure}"
        ) from error


def _first_misfit(array: ArrowAny, wanted: ArrowAny, name: str, error: ValueError) -> tuple[int, ValueError]:
    """Return the first row of an array that cannot be cast, and why."""
    start, count = 0, len(array)
    while count:
        half = count // 2 or 1
        try:
            cast_array(array.slice(start, half), wanted, name)
        except ValueError as found:
            error, count = found, half if half > 1 else 0
        else:
            start, count = start + half, count - half
    return start, error


def _check_lengths(array: ArrowAny, data_type: DataType, name: str, table: str, first_row: int) -> None:
    found = find_long_value(array, data_type, name)
    if found is not None:
        raise SchemaMismatchError(
            f"table '{table}': '{found.path}' is {found.type_text}, but row {first_row + found.row} (counted from 0) "
            f"has a value of length {found.length} there; cut it before writing, or alter the column's type"
        )


def _check_names(wanted: Sequence[str], given: Sequence[str], table: str) -> None:
    counts, known = Counter(given), frozenset(wanted)
    twice = sorted(name for name, count in counts.items() if count > 1)
    missing = [name for name in wanted if name not in counts]
    extra = [name for name in given if name not in known]
    problems = [f"column '{name}' is given more than once" for name in twice]
    problems += [f"column '{name}' is missing{_nearest(name, extra, 'given')}" for name in missing]
    problems += [f"column '{name}' is not in the table{_nearest(name, wanted, 'the table has')}" for name in extra]
    if problems:
        raise SchemaMismatchError(
            f"table '{table}': {'; '.join(problems)}; give exactly the columns {', '.join(wanted)} (in any order)"
        )


def _nearest(name: str, candidates: Sequence[str], words: str) -> str:
    folded = {candidate.casefold(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return f" ({words}: '{folded[near[0]]}')" if near else ""
