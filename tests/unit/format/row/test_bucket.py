"""Buckets of keys as Java 1.4.2 gives them, and Hive's and modulo's rules."""

from decimal import Decimal

import pytest

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.row.bucket import BucketFunction, bucket_of
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    DataType,
    decimal_type,
    timestamp_type,
)


def test_bigint_keys_go_where_the_reference_puts_them() -> None:
    buckets = [bucket_of((key,), (BIGINT,), 8) for key in range(12)]
    assert buckets == [3, 6, 0, 1, 2, 4, 0, 3, 0, 7, 0, 5]


@pytest.mark.parametrize(("num_buckets", "bucket"), [(4, 0), (5, 1), (7, 3)])
def test_keys_of_two_columns_go_where_the_reference_puts_them(num_buckets: int, bucket: int) -> None:
    assert bucket_of((1, 2), (INT, INT), num_buckets) == bucket


def test_the_type_of_a_negative_key_matters() -> None:
    assert bucket_of((1,), (INT,), 64) == bucket_of((1,), (BIGINT,), 64)
    assert bucket_of((-1,), (INT,), 64) != bucket_of((-1,), (BIGINT,), 64)


def test_null_keys_have_a_bucket() -> None:
    assert bucket_of((None,), (BIGINT,), 8) == 1748325344 % 8
    assert bucket_of((None,), (decimal_type(38, 3),), 8) == 1380280760 % 8


@pytest.mark.parametrize(("key", "bucket"), [(17, 2), (-3, 2), (5, 0), (None, 0), (-(2**31), 2)])
def test_mod_never_goes_below_zero(key: int | None, bucket: int) -> None:
    assert bucket_of((key,), (INT,), 5, BucketFunction.MOD) == bucket
    assert bucket_of((key,), (BIGINT,), 5, BucketFunction.MOD) == bucket


@pytest.mark.parametrize("types", [(STRING,), (INT, INT), (DATE,), ()])
def test_mod_refuses_other_keys(types: tuple[DataType, ...]) -> None:
    with pytest.raises(InvalidOptionError, match=r"mod.*expected a bucket key"):
        bucket_of((1,) * len(types), types, 5, BucketFunction.MOD)


@pytest.mark.parametrize(
    ("value", "data_type", "java_hash"),
    [
        (None, INT, 0),
        (True, BOOLEAN, 1),
        (-5, INT, -5),
        (19723, DATE, 19723),
        (2**40 + 7, BIGINT, 2**8 + 7),
        (-1, BIGINT, 0),
        (1.5, FLOAT, 0x3FC00000),
        (-0.0, FLOAT, 0),
        (2.5, DOUBLE, 0x40040000),
        (-0.0, DOUBLE, 0),
        (float("nan"), FLOAT, 0x7FC00000),
        (float("nan"), DOUBLE, 0x7FF80000),
        ("hello", STRING, 99162322),
        ("", STRING, 0),
        (b"\xff\x01", BYTES, -31 + 1),
        (Decimal("1.20"), decimal_type(10, 2), 31 * 12 + 1),
        (Decimal("0.00"), decimal_type(10, 2), 0),
        (Decimal("-1.5"), decimal_type(10, 2), 31 * -15 + 1),
        (Decimal("1200.00"), decimal_type(10, 2), 31 * 1200),
        (Decimal(2**64 + 3), decimal_type(38, 0), 31 * (31 * 31 + 3)),
    ],
)
def test_hive_hashes_as_java_does(value: object, data_type: DataType, java_hash: int) -> None:
    for num_buckets in (7, 64, 1009):
        expected = (java_hash & 0x7FFFFFFF) % num_buckets
        assert bucket_of((value,), (data_type,), num_buckets, BucketFunction.HIVE) == expected


def test_hive_takes_columns_in_order() -> None:
    assert bucket_of((2, 3), (INT, INT), 1009, BucketFunction.HIVE) == 65
    assert bucket_of((3, 2), (INT, INT), 1009, BucketFunction.HIVE) == 95


def test_hive_refuses_types_without_a_hash() -> None:
    with pytest.raises(UnsupportedFeatureError, match="bucket-key"):
        bucket_of((1,), (timestamp_type(3),), 4, BucketFunction.HIVE)
