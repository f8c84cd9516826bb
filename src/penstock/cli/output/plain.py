"""Arrow values as plain JSON values, the same in every output format.

Decimals, dates and times become text, since JSON has no such values and numbers lose digits in other readers; bytes
become ``0x`` and hexadecimal digits; a MAP becomes a list of objects with ``key`` and ``value``, in its own order.
``json_values`` reads exactly this.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.datafile.types import ArrowAny

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

_NOT_FINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def to_plain(array: ArrowAny) -> list[Plain]:
    """Return the values of an array; None is null."""
    data_type = array.type
    for applies, convert in _KINDS:
        if applies(data_type):
            return convert(array)
    values: list[Plain] = array.to_pylist()
    return values


def check_texts(batch: pa.RecordBatch) -> None:
    """Check that strings are UTF-8 before they are converted to Python strings.

    Readers do not check this: it would add 8 to 34 % to reading a table of one string and two numbers.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if arrow.is_string(field.type) or arrow.is_large_string(field.type) or arrow.is_nested(field.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise FormatError(
                    f"column '{field.name}' cannot be printed, since its data file is damaged or holds bytes that are "
                    f"not text ({error}); print the other columns, or take the bytes from Table.to_arrow()"
                ) from error


def is_binary(data_type: ArrowAny) -> bool:
    """Whether values of the type are bytes."""
    return arrow.is_binary(data_type) or arrow.is_large_binary(data_type) or arrow.is_fixed_size_binary(data_type)


def _is_text_like(data_type: ArrowAny) -> bool:
    return arrow.is_temporal(data_type) or arrow.is_decimal(data_type)


def _is_list(data_type: ArrowAny) -> bool:
    return arrow.is_list(data_type) or arrow.is_large_list(data_type) or arrow.is_fixed_size_list(data_type)


def _texts(array: ArrowAny) -> list[Plain]:
    texts: list[Plain] = array.cast(pa.string()).to_pylist()
    return texts


def _timestamps(array: ArrowAny) -> list[Plain]:
    return [text.replace(" ", "T", 1) if isinstance(text, str) else None for text in _texts(array)]


def _floats(array: ArrowAny) -> list[Plain]:
    # Through text, so that a FLOAT 0.1 is 0.1 and not the nearest double of it.
    return [_float(float(text)) if isinstance(text, str) else None for text in _texts(array)]


def _hex(array: ArrowAny) -> list[Plain]:
    return [None if value is None else f"0x{value.hex()}" for value in array.to_pylist()]


def _maps(array: ArrowAny) -> list[Plain]:
    entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
    return _lists(array.cast(pa.list_(entry)))


def _structs(array: ArrowAny) -> list[Plain]:
    names = [field.name for field in array.type]
    children = [to_plain(child) for child in array.flatten()]
    valid = array.is_valid().to_pylist()
    rows = zip(*children, strict=True) if children else ((),) * len(array)
    return [dict(zip(names, row, strict=True)) if there else None for there, row in zip(valid, rows, strict=True)]


def _lists(array: ArrowAny) -> list[Plain]:
    values = to_plain(pc.list_flatten(array))
    lists: list[Plain] = []
    start = 0
    for length in pc.list_value_length(array).to_pylist() if len(array) else []:
        lists.append(None if length is None else values[start : start + length])
        start += length or 0
    return lists


def _float(value: float) -> Plain:
    return value if math.isfinite(value) else _NOT_FINITE.get(value, "NaN")


_KINDS: Final[tuple[tuple[Callable[[ArrowAny], bool], Callable[[ArrowAny], list[Plain]]], ...]] = (
    (arrow.is_struct, _structs),
    (arrow.is_map, _maps),
    (_is_list, _lists),
    (arrow.is_floating, _floats),
    (is_binary, _hex),
    (arrow.is_timestamp, _timestamps),
    (_is_text_like, _texts),
)
