"""Rows and hashes that Java 1.4.2 made, and what must be refused."""

from decimal import Decimal

import numpy as np
import pytest

from penstock.errors import FormatError, SchemaMismatchError, TableStoreError, UnsupportedFeatureError
from penstock.format.row.murmur import hash_bytes
from penstock.format.row.row import arity_of, decode_row, encode_row, row_decoder
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    decimal_type,
    time_type,
    timestamp_type,
)

MIDNIGHT = 1_704_067_200_000_000_000  # 2024-01-01 00:00:00 UTC in ns
WIDE = decimal_type(38, 3)
PAIR = RowType(fields=(DataField(id=1, name="a", type=INT), DataField(id=2, name="b", type=STRING)))
VARIANT = AtomicType(root=TypeRoot.VARIANT)

Case = tuple[tuple[object, ...], tuple[DataType, ...], str, int]

GOLDEN: list[Case] = [
    ((), (), "00000000 0000000000000000", -1670924195),
    ((1,), (BIGINT,), "00000001 0000000000000000 0100000000000000", 1465514398),
    ((1,), (INT,), "00000001 0000000000000000 0100000000000000", 1465514398),
    ((True,), (BOOLEAN,), "00000001 0000000000000000 0100000000000000", 1465514398),
    ((0,), (BIGINT,), "00000001 0000000000000000 0000000000000000", -300363099),
    ((-1,), (BIGINT,), "00000001 0000000000000000 ffffffffffffffff", -821098432),
    ((-1,), (INT,), "00000001 0000000000000000 ffffffff00000000", 1133687267),
    ((-2,), (SMALLINT,), "00000001 0000000000000000 feff000000000000", 557672611),
    ((-2,), (TINYINT,), "00000001 0000000000000000 fe00000000000000", 1831745471),
    ((1.5,), (FLOAT,), "00000001 0000000000000000 0000c03f00000000", -173842779),
    ((2.5,), (DOUBLE,), "00000001 0000000000000000 0000000000000440", 727599657),
    ((19723,), (DATE,), "00000001 0000000000000000 0b4d000000000000", -1439008885),
    ((None,), (BIGINT,), "00000001 0001000000000000 0000000000000000", -1748325344),
    ((None,), (STRING,), "00000001 0001000000000000 0000000000000000", -1748325344),
    ((None,), (timestamp_type(3),), "00000001 0001000000000000 0000000000000000", -1748325344),
    (("",), (STRING,), "00000001 0000000000000000 0000000000000080", 302122119),
    (("a",), (STRING,), "00000001 0000000000000000 6100000000000081", 943281246),
    (("abcdefg",), (STRING,), "00000001 0000000000000000 6162636465666787", -1431907323),
    (("abcdefgh",), (STRING,), "00000001 0000000000000000 0800000010000000 6162636465666768", -843760178),
    (
        ("abcdefghi",),
        (STRING,),
        "00000001 0000000000000000 0900000010000000 6162636465666768 6900000000000000",
        890550442,
    ),
    (("日本",), (STRING,), "00000001 0000000000000000 e697a5e69cac0086", -687604583),
    ((Decimal("1.23"),), (decimal_type(10, 2),), "00000001 0000000000000000 7b00000000000000", 681710603),
    (
        (Decimal("-1.500"),),
        (WIDE,),
        "00000001 0000000000000000 0200000010000000 fa24000000000000 0000000000000000",
        1235645557,
    ),
    (
        (None,),
        (WIDE,),
        "00000001 0001000000000000 0000000010000000 0000000000000000 0000000000000000",
        -1380280760,
    ),
    (
        (MIDNIGHT + 123_000_000,),
        (timestamp_type(3),),
        "00000001 0000000000000000 7bf451c28c010000",
        985649424,
    ),
    (
        (MIDNIGHT + 123_456_000,),
        (timestamp_type(6),),
        "00000001 0000000000000000 40f5060010000000 7bf451c28c010000",
        941252157,
    ),
    ((None,), (timestamp_type(6),), "00000001 0001000000000000 0000000010000000 0000000000000000", -340882661),
    (
        (MIDNIGHT + 123_456_789,),
        (timestamp_type(9, local_zone=True),),
        "00000001 0000000000000000 55f8060010000000 7bf451c28c010000",
        -1093231341,
    ),
    (
        (7, "hello world", None, "hi"),
        (INT, STRING, BIGINT, STRING),
        (
            "00000004 0004000000000000 0700000000000000 0b00000028000000 0000000000000000 6869000000000082"
            "68656c6c6f20776f 726c640000000000"
        ),
        313779053,
    ),
    (
        (None, "abcdefghi", None, "jklmnopqrs"),
        (WIDE, STRING, timestamp_type(6), STRING),
        "00000004 0005000000000000 0000000028000000 0900000038000000 0000000048000000 0a00000050000000"
        + "00" * 16
        + "6162636465666768 6900000000000000"
        + "00" * 8
        + "6a6b6c6d6e6f7071 7273000000000000",
        244908321,
    ),
    (
        ([1, None, 3],),
        (ArrayType(element=INT),),
        "00000001 0000000000000000 1800000010000000 03000000 02000000 01000000 00000000 03000000 00000000",
        1830759751,
    ),
    (
        ([("k", 5)],),
        (MapType(key=STRING, value=BIGINT),),
        (
            "00000001 0000000000000000 2400000010000000 10000000 01000000 00000000 6b00000000000081"
            "01000000 00000000 0500000000000000 00000000"
        ),
        -162193992,
    ),
    (
        ((1, "ab"),),
        (PAIR,),
        "00000001 0000000000000000 1800000010000000 0000000000000000 0100000000000000 6162000000000082",
        623325059,
    ),
]


@pytest.mark.parametrize(("values", "types", "text", "row_hash"), GOLDEN)
def test_rows_equal_the_reference_byte_by_byte(
    values: tuple[object, ...], types: tuple[DataType, ...], text: str, row_hash: int
) -> None:
    data = bytes.fromhex(text)
    assert encode_row(values, types).hex() == data.hex()
    assert decode_row(data, types) == values
    assert hash_bytes(data[4:]) == row_hash


def test_57_fields_need_a_second_word_of_null_bits() -> None:
    values: list[object] = [1] * 55 + [None, None]
    data = encode_row(values, (INT,) * 57)
    assert data[4:20].hex() == "0000000000000080" + "0100000000000000"
    assert len(data) == 4 + 16 + 57 * 8
    assert len(encode_row([1] * 56, (INT,) * 56)) == 4 + 8 + 56 * 8
    assert decode_row(data, (INT,) * 57) == tuple(values)


def test_worked_example_of_value_statistics() -> None:
    types = (BIGINT, STRING, decimal_type(10, 2), STRING)
    data = encode_row((4, "name-4-a-long-su", Decimal("4.00"), "2024-01-01"), types)
    assert data == bytes.fromhex(
        "00000004 0000000000000000 0400000000000000 1000000028000000 9001000000000000 0a00000038000000"
        "6e616d652d342d61 2d6c6f6e672d7375 323032342d30312d 3031000000000000"
    )


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (b"\x00\xff", BYTES),
        (bytes(range(200)), BYTES),
        (86_399_999, time_type(3)),
        (-1, timestamp_type(9)),
        (-62_135_596_800_000_000_000 + 999, timestamp_type(9)),
        (Decimal("-9999999999999999.99"), decimal_type(18, 2)),
        (Decimal(99999999999999999999999999999999999999), decimal_type(38, 0)),
        (Decimal("-99999999999999999999999999999999999.999"), WIDE),
        (Decimal("0.000"), WIDE),
        (Decimal("-0.128"), WIDE),
        (-(2**63), BIGINT),
        (float("-inf"), DOUBLE),
        ([None, "a long string here", ""], ArrayType(element=STRING)),
        ([True, None, False] * 15, ArrayType(element=BOOLEAN)),
        ([Decimal("1.000"), None], ArrayType(element=WIDE)),
        ([[1], None, []], ArrayType(element=ArrayType(element=SMALLINT))),
        ([(1, [("x", None)])], MapType(key=INT, value=MapType(key=STRING, value=DOUBLE))),
        ([("a", 2), ("bcdefghijkl", 1)], MultisetType(element=STRING)),
        ((None, None), PAIR),
        ([(1, "x"), None], ArrayType(element=PAIR)),
        ([1.5, 2.5, 3.5], VectorType(element=FLOAT, length=3)),
        ((b"\x0c\x01", b"\x01\x00\x00"), VARIANT),
    ],
)
def test_every_type_comes_back_beside_a_long_neighbour(value: object, data_type: DataType) -> None:
    types = (STRING, data_type, data_type, INT)
    values = ("a neighbour that is not inline", value, None, 7)
    data = encode_row(values, types)
    assert len(data) % 8 == 4
    assert decode_row(data, types) == values


def test_null_of_a_wide_decimal_keeps_its_space_in_rows_but_not_in_arrays() -> None:
    assert len(encode_row((None,), (WIDE,))) == 4 + 16 + 16
    assert len(encode_row((None,), (timestamp_type(4),))) == 4 + 16 + 8
    assert len(encode_row(([None],), (ArrayType(element=WIDE),))) == 4 + 16 + 16
    assert len(encode_row(((None,),), (RowType(fields=(DataField(id=0, name="d", type=WIDE),)),))) == 4 + 16 + 32


def test_a_decoder_reads_only_the_places_it_was_made_for() -> None:
    types = (INT, STRING, BIGINT)
    data = encode_row((1, "two", 3), types)
    assert row_decoder(types, (2, 0))(data) == (3, 1)
    assert arity_of(data) == 3


@pytest.mark.parametrize(
    ("values", "types", "named"),
    [
        ((2**31,), (INT,), "2147483648"),
        ((1, "x"), (INT, INT), "'x'"),
        (("x",), (BYTES,), "BYTES"),
        ((5,), (BYTES,), "BYTES"),
        ((Decimal("1.234"),), (decimal_type(10, 2),), "1.234"),
        ((Decimal("123456789.00"),), (decimal_type(10, 2),), "more than 10 digits"),
        ((Decimal("NaN"),), (decimal_type(10, 2),), "NaN"),
        (([1, "x"],), (ArrayType(element=INT),), "ARRAY<INT>"),
        (([1.0],), (VectorType(element=FLOAT, length=2),), "1 elements instead of 2"),
        (([1.0, None],), (VectorType(element=FLOAT, length=2),), "VECTOR"),
        ((1, 2), (INT,), "1 columns cannot be built from 2 values"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    values: tuple[object, ...], types: tuple[DataType, ...], named: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=named):
        encode_row(values, types)


def test_types_that_rows_cannot_have_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="BLOB"):
        encode_row((b"",), (AtomicType(root=TypeRoot.BLOB),))
    with pytest.raises(UnsupportedFeatureError, match="VECTOR<STRING>"):
        encode_row((["a"],), (VectorType(element=STRING, length=1),))


@pytest.mark.parametrize("types", [(INT,), (STRING,), (BIGINT, STRING, STRING)])
def test_a_row_of_another_arity_is_refused(types: tuple[DataType, ...]) -> None:
    with pytest.raises(FormatError, match="2 fields"):
        decode_row(encode_row((1, 2), (INT, INT)), types)


def test_every_truncation_is_refused() -> None:
    nested = ArrayType(element=STRING)
    types = (STRING, WIDE, timestamp_type(9), nested, MapType(key=STRING, value=WIDE), PAIR)
    values = ("long enough", Decimal(7), 8, ["long enough", "x"], [("k", Decimal(1))], (1, "long enough"))
    data = encode_row(values, types)
    for size in range(len(data) - 8):
        with pytest.raises(FormatError):
            decode_row(data[:size], types)


def test_bytes_that_are_not_a_row_raise_errors_of_the_tree_only() -> None:
    types = (STRING, WIDE, timestamp_type(9), ArrayType(element=STRING), MapType(key=STRING, value=WIDE), PAIR)
    values = ("long enough", Decimal(7), 8, ["long enough", "x"], [("k", Decimal(1))], (1, "long enough"))
    data = encode_row(values, types)
    random = np.random.default_rng(7)
    for place in random.integers(4, len(data), 2000):
        broken = bytearray(data)
        broken[place] = random.integers(256)
        try:
            decode_row(bytes(broken), types)
        except TableStoreError:
            continue
