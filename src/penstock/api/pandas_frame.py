"""Rows as DataFrames of pandas, without changing a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.api.exports import library
from penstock.datafile.conform import leaf_arrays

if TYPE_CHECKING:
    import pandas as pd

    from penstock.datafile.types import ArrowAny


def pandas_frame(rows: pa.Table, table: str) -> pd.DataFrame:
    """Return rows as a DataFrame; columns are converted as pyarrow does it, except where that would change values.

    Integers with NULLs get the nullable types of pandas, such as ``Int64``: pyarrow makes them floating-point numbers.
    Nested values with NULLs become lists and dicts instead of arrays of numpy.

    Args:
        table: name for messages.
    """
    module: Any = library("pandas", table)
    frame: pd.DataFrame = rows.to_pandas()
    for place, column in enumerate(rows.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            nullable = getattr(module, f"Int{column.type.bit_width}Dtype")()
            frame.isetitem(place, nullable.__from_arrow__(column))
        elif pa.types.is_nested(column.type) and not all(map(_is_exact_in_numpy, leaf_arrays(column.chunks))):
            values = module.Series(column.to_pylist(), index=frame.index, dtype=object)
            frame.isetitem(place, values)
    return frame


def _is_exact_in_numpy(chunks: list[ArrowAny]) -> bool:
    """Whether arrays of numpy hold the values: they have no NULL among numbers, and no time zones."""
    kind = chunks[0].type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return False
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return not is_number or not any(chunk.null_count for chunk in chunks)
