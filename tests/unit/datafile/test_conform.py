"""Arrays of files as the types that were written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.datafile.arrays import column

from penstock.datafile.conform import conform_array, null_array
from penstock.datafile.int96 import INT96_CARRIER
from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.types.data_types import RowType, timestamp_type, with_nullability

INNER = with_nullability(
    RowType(fields=(column("t", with_nullability(timestamp_type(9), nullable=False), 1),)), nullable=False
)
OUTER = RowType(fields=(column("r", INNER, 2),))
ANYTHING = b"\xff" * 12


def nested(mask: pa.BooleanArray | None) -> pa.StructArray:
    """One row of a row of a timestamp that no type can hold."""
    inner = pa.StructArray.from_arrays([pa.array([ANYTHING], INT96_CARRIER)], ["t"])
    return pa.StructArray.from_arrays([inner], ["r"], mask=mask)


def test_values_below_a_null_are_not_checked() -> None:
    # Arrow's reader leaves there what memory held before.
    assert conform_array(nested(pa.array([True])), OUTER).to_pylist() == [None]
    with pytest.raises(FormatError, match="1678 to 2261"):
        conform_array(nested(None), OUTER)


def test_nulls_that_would_fill_the_memory_are_refused() -> None:
    vectors = pa.list_(pa.float32(), 2**31 - 1)
    with pytest.raises(UnsupportedFeatureError, match="more than the limit of 2147483648"):
        null_array(1, vectors)
    with pytest.raises(UnsupportedFeatureError, match="more than the limit"):
        null_array(10, pa.struct([("a", pa.list_(pa.list_(pa.int8(), 2**15), 2**15))]))
    assert len(null_array(0, vectors)) == 0
    assert null_array(8_192, pa.list_(pa.float32(), 1_536)).null_count == 8_192
