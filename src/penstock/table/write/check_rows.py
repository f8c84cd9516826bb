"""Conversion of incoming Arrow batches to a table's schema: columns by name, lossless casts, null checks, defaults.

A plan is created once per incoming schema. Applying it to batches that are already canonical copies nothing. Nulls in
nested values whose type is NOT NULL, and values that are longer than their CHAR(n), VARCHAR(n), BINARY(n) or
VARBINARY(n), are searched for here, since Arrow and Java Paimon do not check them.

Source:
    Nulls are checked before defaults as in Paimon ``core:table/sink/TableWriteImpl.java``;
    docs/spec/commit.md section 2.2.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from penstock.datafile.python_values import parse_floats, stored_value
from penstock.datafile.types import ArrowAny, has_leaf, map_parts, to_arrow_schema
from penstock.errors import InvalidSchemaError, SchemaMismatchError
from penstock.format.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    time_type,
)
from penstock.format.types.text import format_sql_type
from penstock.table.write.coercion import as_lists, cast_array, find_incompatibility, inner_fields, is_same_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField, DataType


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
        raise SchemaMismatchError(f"table {table}: {'; '.join(problems)}; cast before writing")
    return ConformPlan(table=table, schema=canonical, columns=tuple(columns))


def conform_batches(batches: Iterable[pa.RecordBatch], plan: ConformPlan) -> Iterator[pa.RecordBatch]:
    """Yield each batch in canonical form, in order; messages number the rows over all batches."""
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
            f"table {table}: column '{name}' is NOT NULL, but row {row} (counted from 0) has null; "
            "fill it or drop the row before writing"
        )
    if column.has_nested_not_null:
        found = find_nested_null(array, name)
        if found is not None:
            raise SchemaMismatchError(
                f"table {table}: '{found.path}' is NOT NULL, but row {first_row + found.row} (counted from 0) has "
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
            f"table {table}: column '{name}' in row {first_row + row} (counted from 0) cannot become {wanted} "
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
            f"table {table}: '{found.path}' is {found.type_text}, but row {first_row + found.row} (counted from 0) "
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
            f"table {table}: {'; '.join(problems)}; give exactly the columns {', '.join(wanted)} (in any order)"
        )


def _nearest(name: str, candidates: Sequence[str], words: str) -> str:
    folded = {candidate.casefold(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return f" ({words}: '{folded[near[0]]}')" if near else ""


_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BYTES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})


class LongValue(NamedTuple):
    """Position of a value that is too long: path of field names, type as SQL, length, and row of the batch."""

    path: str
    type_text: str
    length: int
    row: int


def has_limit(data_type: DataType) -> bool:
    """Whether the type, or something inside of it, limits the length of values."""
    return has_leaf(data_type, _is_limited)


def find_long_value(array: ArrowAny, data_type: DataType, path: str) -> LongValue | None:
    """Return the first value found that is longer than its type allows; None when there is none.

    Args:
        array: canonical values of the type.
        path: column name, followed by the names of nested fields, separated by dots.
    """
    if not has_limit(data_type):
        return None
    if isinstance(data_type, AtomicType):
        return _find_here(array, data_type, path)
    for name, values, value_type, parents in _inner_values(array, data_type):
        found = find_long_value(values, value_type, f"{path}.{name}")
        if found is not None:
            return found if parents is None else found._replace(row=parents[found.row].as_py())
    return None


def _is_limited(data_type: AtomicType) -> bool:
    return data_type.root in _TEXTS | _BYTES and data_type.length != MAX_LENGTH


def _find_here(array: ArrowAny, data_type: AtomicType, path: str) -> LongValue | None:
    limit = data_type.length or 1
    lengths: ArrowAny = pc.binary_length(array)
    # Most strings are short enough in bytes, so that their characters need not be counted.
    if (pc.max(lengths).as_py() or 0) <= limit:
        return None
    if data_type.root in _TEXTS:
        lengths = pc.utf8_length(array)
    is_longer: ArrowAny = pc.greater(lengths, pa.scalar(limit, pa.int32()))
    row = is_longer.index(True).as_py()
    if row < 0:
        return None
    return LongValue(path, format_sql_type(data_type), lengths[row].as_py(), row)


def _inner_values(array: ArrowAny, data_type: DataType) -> Iterator[tuple[str, ArrowAny, DataType, ArrowAny | None]]:
    """Yield the nested arrays with, for each of their values, the index of the outer one (None: the same index)."""
    match data_type:
        case RowType(fields=fields):
            # flatten() makes the children of null structs null.
            for field, values in zip(fields, array.flatten(), strict=True):
                yield field.name, values, field.type, None
        case MapType() | MultisetType():
            lists = as_lists(array)
            entries: ArrowAny = pc.list_flatten(lists)
            parents = pc.list_parent_indices(lists)
            for place, (name, part) in enumerate(zip(("key", "value"), map_parts(data_type), strict=True)):
                yield name, entries.field(place), part, parents
        case ArrayType(element=element) | VectorType(element=element):
            yield "element", pc.list_flatten(array), element, pc.list_parent_indices(array)
        case _:
            return


class NestedNull(NamedTuple):
    """Position of a null: the path of field names, and the row of the batch."""

    path: str
    row: int


def has_nested_not_null(data_type: ArrowAny) -> bool:
    """Whether a nested value of the type must not be null."""
    fields = inner_fields(data_type)
    if arrow.is_map(data_type):
        # Arrow itself checks that keys are not null.
        fields = fields[1:]
    return any(not field.nullable or has_nested_not_null(field.type) for field in fields)


def find_nested_null(array: ArrowAny, path: str) -> NestedNull | None:
    """Return the first null found below ``array`` that its type forbids; None when there is none."""
    for field, values, parents in _nested_fields(array):
        inner_path = f"{path}.{field.name}"
        if not field.nullable:
            forbidden = values.is_null() if parents is not None else pc.and_(values.is_null(), array.is_valid())
            place = forbidden.index(True).as_py()
            if place >= 0:
                return NestedNull(inner_path, _parent_row(parents, place))
        if has_nested_not_null(field.type):
            found = find_nested_null(values, inner_path)
            if found is not None:
                return NestedNull(found.path, _parent_row(parents, found.row))
    return None


def _parent_row(parents: ArrowAny | None, place: int) -> int:
    return place if parents is None else int(parents[place].as_py())


def _nested_fields(array: ArrowAny) -> Iterator[tuple[ArrowAny, ArrowAny, ArrowAny | None]]:
    """Yield the nested arrays with, for each of their values, the index of the outer one (None: the same index)."""
    data_type = array.type
    if arrow.is_struct(data_type):
        # flatten() marks the children of a null struct as null, too; the caller must not count these.
        for field, values in zip(data_type, array.flatten(), strict=True):
            yield field, values, None
    elif arrow.is_map(data_type):
        lists = as_lists(array)
        entries: ArrowAny = pc.list_flatten(lists)
        yield data_type.item_field, entries.field(1), pc.list_parent_indices(lists)
    elif arrow.is_list(data_type) or arrow.is_fixed_size_list(data_type):
        yield data_type.value_field, pc.list_flatten(array), pc.list_parent_indices(array)


def decode_default(column: DataField, arrow_type: ArrowAny, table: str) -> ArrowAny:
    """Return the column's default as a value of its canonical Arrow type.

    A TIMESTAMP WITH LOCAL TIME ZONE without an offset in its text is taken as UTC, so that it does not depend on the
    writer's zone (the reference takes the zone of its JVM).

    Source:
        Paimon ``common:casting/DefaultValueRow.java``: the text is cast to the column's type.
    """
    text = column.default_value or ""
    try:
        if isinstance(column.type, AtomicType) and arrow.is_floating(arrow_type):
            return parse_floats(pa.array([text]), column.type, column.name)[0]
        return _cast_text(text, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InvalidSchemaError(
            f"table {table}: default value '{text}' of column '{column.name}' is not a valid {arrow_type}: {error}; "
            "alter the column's default, or write no null into it"
        ) from error


def _cast_text(text: str, arrow_type: ArrowAny) -> ArrowAny:
    if arrow.is_string(arrow_type) or arrow.is_binary(arrow_type):
        return pa.scalar(text).cast(arrow_type)
    text = text.strip()
    if arrow.is_time(arrow_type):
        return pa.scalar(stored_value(dt.time.fromisoformat(text), time_type(3), "value"), arrow_type)
    if arrow.is_timestamp(arrow_type) and arrow_type.tz is not None:
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            text = f"{text}Z"
    return pa.scalar(text).cast(arrow_type)
