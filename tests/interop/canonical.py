"""Rows as canonical JSON values, the common tongue of the engines.

BOOLEAN true or false; TINYINT to BIGINT numbers; FLOAT (widened to double) and DOUBLE numbers, or the strings NaN,
Infinity, -Infinity; DECIMAL a string with every digit of its scale; CHAR, VARCHAR strings; BINARY, VARBINARY "0x" and
lower-case hex; DATE "YYYY-MM-DD"; TIME "HH:MM:SS.mmm"; TIMESTAMP "YYYY-MM-DDTHH:MM:SS.nnnnnnnnn", TIMESTAMP_LTZ the
same in UTC with "Z"; ARRAY a list; MAP and MULTISET a list of [key, value], sorted; ROW an object; VARIANT an object of
its two binaries.

Stands alone, since pypaimon's interpreter imports it too, with another pyarrow.
"""

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock, as the type has no zone


def dumps(value: Any) -> str:
    """Return the text that rows are compared and sorted by."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sort_maps(value: Any) -> Any:
    """Sort every list of pairs, which is how a map looks (an ARRAY<ARRAY> of two elements does too: avoid it)."""
    if isinstance(value, dict):
        return {name: sort_maps(inner) for name, inner in value.items()}
    if isinstance(value, list):
        inner = [sort_maps(element) for element in value]
        is_map = bool(inner) and all(isinstance(element, list) and len(element) == 2 for element in inner)
        return sorted(inner, key=dumps) if is_map else inner
    return value


def sort_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows in an order of their own, maps sorted, so that equal tables are equal lists."""
    return sorted((sort_maps(row) for row in rows), key=dumps)


# ------------------------------------------------------------------ Arrow to canonical


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the table's rows in its order."""
    names = table.column_names
    columns = [[from_scalar(scalar) for scalar in column] for column in table.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def format_timestamp(nanos: int, *, is_utc: bool) -> str:
    """Render nanoseconds since 1970, whatever the year from 1 to 9999."""
    seconds, fraction = divmod(nanos, 10**9)
    time = EPOCH + dt.timedelta(seconds=seconds)
    return f"{time.isoformat(timespec='seconds')}.{fraction:09d}" + ("Z" if is_utc else "")


def format_time(millis: int) -> str:
    """Render milliseconds of a day."""
    return f"{millis // 3_600_000:02d}:{millis // 60_000 % 60:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}"


def format_double(value: float) -> float | str:
    """Render what JSON has no number for as a word."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def from_nested(scalar: Any) -> Any:
    """Render a list, map or struct."""
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {kind.field(i).name: from_scalar(scalar[i]) for i in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [[from_scalar(pair[0]), from_scalar(pair[1])] for pair in scalar.values]
    return [from_scalar(element) for element in scalar.values]


LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_timestamp, lambda s: format_timestamp(s.value * NANOS[s.type.unit], is_utc=s.type.tz is not None)),
    (pa.types.is_time, lambda s: format_time(s.value * NANOS[s.type.unit] // NANOS["ms"])),
    (pa.types.is_date, lambda s: s.as_py().isoformat()),
    (pa.types.is_decimal, lambda s: format(s.as_py(), "f")),
    (pa.types.is_floating, lambda s: format_double(s.as_py())),
    (pa.types.is_binary, lambda s: "0x" + s.as_py().hex()),
    (pa.types.is_large_binary, lambda s: "0x" + s.as_py().hex()),
    (pa.types.is_fixed_size_binary, lambda s: "0x" + s.as_py().hex()),
    (pa.types.is_nested, from_nested),
)


def from_scalar(scalar: Any) -> Any:
    """Render one Arrow scalar."""
    if not scalar.is_valid:
        return None
    for applies, render in LEAVES:
        if applies(scalar.type):
            return render(scalar)
    return scalar.as_py()


# ------------------------------------------------------------------ canonical to Arrow


def table_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Build a table of exactly ``schema``; a row without a column has null there."""
    return pa.table(
        [pa.array([to_python(row.get(field.name), field.type) for row in rows], field.type) for field in schema],
        schema=schema,
    )


def parse_timestamp(text: str, unit: str) -> int:
    """Return the number in ``unit`` since 1970."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = (dt.datetime.fromisoformat(whole) - EPOCH) // dt.timedelta(seconds=1)
    return (seconds * 10**9 + int(fraction.ljust(9, "0") or 0)) // NANOS[unit]


def to_nested(value: Any, kind: pa.DataType) -> Any:
    """Build what pyarrow takes for a list, map or struct."""
    if pa.types.is_struct(kind):
        return {field.name: to_python(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(to_python(key, kind.key_type), to_python(inner, kind.item_type)) for key, inner in value]
    return [to_python(element, kind.value_type) for element in value]


PARSERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any], Any]], ...] = (
    (pa.types.is_timestamp, lambda v, t: parse_timestamp(v, t.unit)),
    (pa.types.is_time, lambda v, _: dt.time.fromisoformat(v)),
    (pa.types.is_date, lambda v, _: dt.date.fromisoformat(v)),
    (pa.types.is_decimal, lambda v, _: Decimal(v)),
    (pa.types.is_floating, lambda v, _: float(v)),
    (pa.types.is_binary, lambda v, _: bytes.fromhex(v[2:])),
    (pa.types.is_large_binary, lambda v, _: bytes.fromhex(v[2:])),
    (pa.types.is_fixed_size_binary, lambda v, _: bytes.fromhex(v[2:])),
    (pa.types.is_nested, to_nested),
)


def to_python(value: Any, kind: pa.DataType) -> Any:
    """Build what ``pa.array`` takes for one value."""
    if value is None:
        return None
    for applies, parse in PARSERS:
        if applies(kind):
            return parse(value, kind)
    return value
