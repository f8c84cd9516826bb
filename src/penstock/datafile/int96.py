"""Nanosecond timestamps as INT96, in files with other timestamps as INT64.

pyarrow writes either all timestamps of a file as INT96 or none, and reads them with one unit for the whole file, in
which they may wrap around. But INT96 columns have the same bytes as columns of 12-byte binaries; only the footer
differs. So such columns are written and read as carriers, which are 12-byte binaries, and the footer is changed when
it is written or read.

Source:
    docs/spec/format.md section 8.1; the Parquet format's ``parquet.thrift`` for the field numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.datafile.thrift import Kind, ThriftStruct, zigzag
from penstock.errors import FormatError, SchemaMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = Any
"""A pyarrow or numpy array."""

INT96_CARRIER: Final = pa.binary(12)
"""The Arrow type that represents INT96."""

_NANOS_PER_DAY: Final = 86_400_000_000_000
_UNITS_PER_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000, "ns": _NANOS_PER_DAY}
_JULIAN_DAY_OF_1970: Final = 2_440_588
_LAYOUT: Final = np.dtype([("nanos_of_day", "<i8"), ("julian_day", "<u4")])

_FIXED_LEN_BYTE_ARRAY: Final = zigzag(7)
_INT96: Final = zigzag(3)


def encode_int96(array: Array) -> Array:
    """Return the carriers of ``timestamp[ns]`` values."""
    nanos = np.asarray(array.view(pa.int64()).fill_null(0))
    days, nanos_of_day = np.divmod(nanos, _NANOS_PER_DAY)  # floors, so nanos_of_day is not negative before 1970
    cells: Array = np.empty(len(nanos), dtype=_LAYOUT)
    cells["nanos_of_day"] = nanos_of_day
    cells["julian_day"] = days + _JULIAN_DAY_OF_1970
    validity = array.is_valid().buffers()[1] if array.null_count else None
    buffer = pa.py_buffer(cells.view(np.uint8))
    return pa.Array.from_buffers(INT96_CARRIER, len(nanos), [validity, buffer], array.null_count)


def decode_int96(array: Array, unit: str, *, exactly: bool = False) -> Array:
    """Convert carriers to numbers of ``unit`` since 1970; finer digits are truncated towards the past.

    With ``exactly``, values with finer digits raise SchemaMismatchError.

    Java counts the nanoseconds of a day before 1970 backwards from the end of the day, so they may be negative.
    """
    buffer = array.buffers()[1]
    cells = np.frombuffer(buffer, dtype=_LAYOUT, count=len(array), offset=array.offset * _LAYOUT.itemsize)
    valid = np.asarray(array.is_valid())
    days = np.where(valid, cells["julian_day"].astype(np.int64) - _JULIAN_DAY_OF_1970, 0)
    nanos = np.where(valid, cells["nanos_of_day"], 0)
    days, nanos = days + nanos // _NANOS_PER_DAY, nanos % _NANOS_PER_DAY
    per_day = _UNITS_PER_DAY[unit]
    if exactly and (nanos % (_NANOS_PER_DAY // per_day)).any():
        raise SchemaMismatchError(f"an INT96 value has more digits than {unit} hold: give the column more digits")
    _check_range(days, nanos, per_day)
    counts = days * per_day + nanos // (_NANOS_PER_DAY // per_day)
    return pa.array(counts, type=pa.int64(), mask=None if valid.all() else ~valid)


def _check_range(days: Array, nanos: Array, per_day: int) -> None:
    limits = np.iinfo(np.int64)
    last_day = limits.max // per_day
    for place in np.flatnonzero((days >= last_day) | (days <= -last_day)):
        if (
            not limits.min
            <= int(days[place]) * per_day + int(nanos[place]) // (_NANOS_PER_DAY // per_day)
            <= limits.max
        ):
            raise FormatError(
                "the file holds timestamps outside of the years 1678 to 2261, which Arrow's nanoseconds cannot "
                "express; alter the column to TIMESTAMP(6) to read it"
            )


def int96_as_carriers(footer: ThriftStruct) -> None:
    """Declare the INT96 columns of a Parquet ``FileMetaData`` as carriers."""
    for element in _retype(footer, _is_int96, _FIXED_LEN_BYTE_ARRAY):
        element.fields[2] = (Kind.I32, zigzag(INT96_CARRIER.byte_width))


def carriers_as_int96(footer: ThriftStruct) -> None:
    """Declare the carrier columns of a Parquet ``FileMetaData`` as INT96."""
    for element in _retype(footer, _is_carrier, _INT96):
        del element.fields[2]


def _retype(footer: ThriftStruct, applies: Callable[[ThriftStruct], bool], to: int) -> list[ThriftStruct]:
    """Change the physical type of columns, in the schema and in every row group; return their schema elements."""
    leaves = [element for element in footer.get(2).items if element.get(5) is None]
    places = [place for place, element in enumerate(leaves) if applies(element)]
    for place in places:
        leaves[place].fields[1] = (Kind.I32, to)
    for row_group in footer.get(4).items:
        for place in places:
            metadata = row_group.get(1).items[place].get(3)
            metadata.fields[1] = (Kind.I32, to)
            metadata.fields.pop(12, None)  # a range for values of another type
    return [leaves[place] for place in places]


def _is_int96(element: ThriftStruct) -> bool:
    return bool(element.get(1) == _INT96)


def _is_carrier(element: ThriftStruct) -> bool:
    """Whether a column is a carrier; a DECIMAL of 12 bytes is not, as it has a converted and a logical type."""
    return (
        element.get(1) == _FIXED_LEN_BYTE_ARRAY
        and element.get(2) == zigzag(INT96_CARRIER.byte_width)
        and element.get(6) is None
        and element.get(10) is None
    )
