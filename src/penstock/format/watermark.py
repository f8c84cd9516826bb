"""Watermarks and computed columns, which Flink's catalog stores in table options.

Source:
    Paimon ``flink:utils/FlinkCatalogPropertiesUtil.java``, ``flink:FlinkCatalog.java``; options
    ``schema.watermark.0.*`` and ``schema.<i>.*`` where i counts over physical and computed columns together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidSchemaError
from penstock.format.text.names import quoted
from penstock.format.types.data_types import AtomicType, DataField, TypeRoot
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.types.data_types import DataType

ROWTIME_KEY: Final = "schema.watermark.0.rowtime"
EXPRESSION_KEY: Final = "schema.watermark.0.strategy.expr"
TYPE_KEY: Final = "schema.watermark.0.strategy.data-type"

# Flink refuses an event time column with a higher precision.
MAX_ROWTIME_PRECISION: Final = 3

_UNIT_MILLIS: Final = {"SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_INTERVAL: Final = re.compile(
    r"\s*INTERVAL\s+'(?P<count>\d{1,18}(?:\.\d+)?)'\s+(?P<unit>SECOND|MINUTE|HOUR|DAY)S?\s*"
    r"(?P<precision>\(\s*\d+\s*(?:,\s*\d+\s*)?\))?\s*",
    re.IGNORECASE,
)
_EXPRESSION: Final = re.compile(r"\s*`(?P<column>(?:[^`]|``)+)`\s*(?:-\s*(?P<interval>INTERVAL\b.*))?", re.IGNORECASE)
_COMPUTED_NAME: Final = re.compile(r"schema\.(\d{1,9})\.name")
_COMPUTED_KEY: Final = re.compile(r"schema\.(\d{1,9})\.(.+)")
# A quoted identifier or a string literal, so that text inside a literal is not changed.
_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`|'(?:[^']|'')*'")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredWatermark:
    """The event time column of a table, and the maximum delay of its rows.

    Attributes:
        column: may be a computed column of Flink, which is not in the table's fields.
        delay_millis: None if the declared expression is not just the column or ``column - interval``, so that it cannot
            be evaluated here.
    """

    column: str
    delay_millis: int | None


def watermark_options(
    fields: Sequence[DataField], column: str, interval: str | None, table: str
) -> tuple[tuple[str, str], ...]:
    """Build the options that declare a watermark, in Flink's form.

    Args:
        interval: such as ``INTERVAL '5' SECOND``; None or blank for no interval.
    """
    data_type = rowtime_type(fields, column, table)
    name = quoted(column)
    expression = f"{name} - {_normalised_interval(interval, table)}" if interval and interval.strip() else name
    return ((ROWTIME_KEY, column), (EXPRESSION_KEY, expression), (TYPE_KEY, format_sql_type(data_type)))


def declared_watermark(options: Mapping[str, str]) -> DeclaredWatermark | None:
    """Return the watermark that the options declare; None if there is none."""
    column = options.get(ROWTIME_KEY)
    if column is None:
        return None
    match = _EXPRESSION.fullmatch(options.get(EXPRESSION_KEY, ""))
    if match is None or match["column"].replace("``", "`") != column:
        return DeclaredWatermark(column=column, delay_millis=None)
    delay = 0 if match["interval"] is None else _interval_millis(match["interval"])
    return DeclaredWatermark(column=column, delay_millis=delay)


def computed_columns(fields: Sequence[DataField], options: Mapping[str, str]) -> dict[int, str]:
    """Return the names of computed and metadata columns by their position in Flink's column list, ascending."""
    names = {field.name for field in fields}
    found = {
        int(match[1]): value
        for key, value in options.items()
        if (match := _COMPUTED_NAME.fullmatch(key)) and value not in names
    }
    return dict(sorted(found.items()))


def expressions_using(options: Mapping[str, str], column: str) -> tuple[str, ...]:
    """Return the keys of the watermark and computed-column options whose expressions use this physical column."""
    return tuple(
        key
        for key, value in options.items()
        if (key == ROWTIME_KEY and is_within(value, column)) or (_is_expression(key) and column in _identifiers(value))
    )


def rename_in_expressions(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return the options with a physical column renamed in the expressions of watermark and computed columns."""
    return {key: _renamed(key, value, old, new) for key, value in options.items()}


def renumber_after_drop(fields: Sequence[DataField], options: Mapping[str, str], dropped_index: int) -> dict[str, str]:
    """Move the computed columns after a dropped physical column one position forward.

    Flink cannot load a table with a computed column at a position beyond the number of its columns.

    Args:
        fields: before the drop.
        dropped_index: of the dropped column among ``fields``.
    """
    computed = computed_columns(fields, options)
    place = dropped_index
    for index in computed:  # ascending: each one at or before ``place`` shifts it by one
        if index > place:
            break
        place += 1
    moved = {index for index in computed if index > place}
    return {_shifted(key, moved): value for key, value in options.items()}


def rowtime_type(fields: Sequence[DataField], column: str, table: str) -> DataType:
    """Return the type of an event time column. Raises ``InvalidSchemaError`` if it cannot be one."""
    found = next((field.type for field in fields if field.name == column), None)
    if found is None:
        names = ", ".join(field.name for field in fields)
        raise InvalidSchemaError(f"table {table}: the watermark's column '{column}' is not one of its columns: {names}")
    if not _is_event_time(found):
        raise InvalidSchemaError(
            f"table {table}: the watermark's column '{column}' has type {format_sql_type(found)}; an event time must be"
            f" TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p from 0 to {MAX_ROWTIME_PRECISION}"
        )
    return found


def _is_event_time(data_type: DataType) -> bool:
    if not isinstance(data_type, AtomicType) or data_type.root not in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        return False
    return data_type.precision is None or data_type.precision <= MAX_ROWTIME_PRECISION


def _normalised_interval(text: str, table: str) -> str:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise InvalidSchemaError(
            f"table {table}: watermark delay {text!r} is not understood; write it like INTERVAL '5' SECOND"
            f" (units {', '.join(_UNIT_MILLIS)})"
        )
    precision = (match["precision"] or "").replace(" ", "").replace(",", ", ")
    return f"INTERVAL '{match['count']}' {match['unit'].upper()}{precision}"


def _interval_millis(text: str) -> int | None:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None
    whole, _, fraction = match["count"].partition(".")
    unit = _UNIT_MILLIS[match["unit"].upper()]
    # Only seconds have a fraction; a watermark is in milliseconds, so further digits are ignored.
    return int(whole) * unit + int((fraction + "000")[:3]) * unit // 1_000


def is_within(rowtime: str, column: str) -> bool:
    """Whether the event time is that column or a field of it (Flink separates the field with a dot)."""
    return rowtime == column or rowtime.startswith(column + ".")


def _is_expression(key: str) -> bool:
    match = _COMPUTED_KEY.fullmatch(key)
    return key == EXPRESSION_KEY or (match is not None and match[2] == "expr")


def _identifiers(expression: str) -> set[str]:
    return {match[1].replace("``", "`") for match in _QUOTED.finditer(expression) if match[1] is not None}


def _renamed(key: str, value: str, old: str, new: str) -> str:
    if key == ROWTIME_KEY:
        return new + value[len(old) :] if is_within(value, old) else value
    if not _is_expression(key):
        return value

    def replace_identifier(match: re.Match[str]) -> str:
        is_old = match[1] is not None and match[1].replace("``", "`") == old
        return "`" + new.replace("`", "``") + "`" if is_old else match[0]

    return _QUOTED.sub(replace_identifier, value)


def _shifted(key: str, moved: set[int]) -> str:
    match = _COMPUTED_KEY.fullmatch(key)
    if match is None or int(match[1]) not in moved:
        return key
    return f"schema.{int(match[1]) - 1}.{match[2]}"
