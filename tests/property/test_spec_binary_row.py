"""Rows of every type come back, hash alike one by one and together, and damaged ones raise our own errors only."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support import strategies, strategies_manifest

from penstock.errors import FormatError, TableStoreError
from penstock.format.row.murmur import hash_bytes, hash_words
from penstock.format.row.row import decode_field, decode_row, encode_row, row_decoder
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

NUMBERS = (TypeRoot.BOOLEAN, TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.DOUBLE)


def has_binary_form(data_type: DataType) -> bool:
    """Vectors hold numbers only, and long ones take too long to draw."""
    match data_type:
        case AtomicType():
            return True
        case VectorType(element=element, length=length):
            return isinstance(element, AtomicType) and element.root in NUMBERS and length <= 20
        case ArrayType(element=element) | MultisetType(element=element):
            return has_binary_form(element)
        case MapType(key=key, value=value):
            return has_binary_form(key) and has_binary_form(value)
        case RowType(fields=fields):
            return all(has_binary_form(field.type) for field in fields)


TYPES = strategies.data_types(max_leaves=4).filter(has_binary_form)


@st.composite
def typed_rows(draw: st.DrawFn) -> tuple[tuple[DataType, ...], tuple[object, ...]]:
    types = tuple(draw(st.lists(TYPES, max_size=5)))
    return types, draw(strategies_manifest.rows(types))


@given(typed_rows())
def test_rows_come_back(typed: tuple[tuple[DataType, ...], tuple[object, ...]]) -> None:
    types, values = typed
    data = encode_row(values, types)
    assert len(data) % 8 == 4
    assert decode_row(data, types) == values
    assert [decode_field(data, len(types), place, types[place]) for place in range(len(types))] == list(values)
    backwards = range(len(types) - 1, -1, -1)
    assert row_decoder(types, backwards)(data) == values[::-1]


@given(typed_rows())
def test_rows_of_many_fields_come_back(
    typed: tuple[tuple[DataType, ...], tuple[object, ...]],
) -> None:
    types, values = typed
    # More than 56 fields take a second word of null bits.
    many, wide = (types * 60)[:130], (values * 60)[:130]
    assert decode_row(encode_row(wide, many), many) == wide


@given(typed_rows(), st.data())
def test_cut_or_changed_rows_never_raise_foreign_errors(
    typed: tuple[tuple[DataType, ...], tuple[object, ...]], data: st.DataObject
) -> None:
    types, values = typed
    row = bytearray(encode_row(values, types))
    for _ in range(data.draw(st.integers(0, 3))):
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(row[: data.draw(st.integers(0, len(row)))])
    try:
        decode_row(cut, types)
    except TableStoreError as error:
        assert isinstance(error, FormatError)  # noqa: PT017 - no error is fine too


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=12), max_size=12))
def test_hashes_of_many_rows_are_those_of_each(rows: list[list[int]]) -> None:
    for width in {len(row) for row in rows}:
        same: list[Any] = [row for row in rows if len(row) == width]
        matrix = np.array(same, dtype=np.uint32).reshape(len(same), width)
        assert hash_words(matrix).tolist() == [hash_bytes(np.array(row, dtype="<u4").tobytes()) for row in same]
