"""Buckets of whole columns are those of the scalar definition, for every type that a bucket key may have."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datafile.types import to_arrow_type
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.row.bucket import BucketFunction, bucket_of
from penstock.format.row.murmur import hash_bytes
from penstock.format.row.row import ARITY_BYTES, encode_row
from penstock.format.types.data_types import BIGINT, INT, STRING, AtomicType, TypeRoot
from penstock.format.types.text import parse_sql_type
from penstock.table.write import bucket_keys
from penstock.table.write.bucket_keys import assign_buckets, bucket_hashes

# Short and long, around the length up to which a string fits its slot, and around whole words.
TEXTS = st.one_of(st.text(max_size=9), st.text("aé日", min_size=5, max_size=20), st.text(max_size=60))
BLOBS = st.one_of(st.binary(max_size=9), st.binary(max_size=40))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    small = st.integers(max(-limit, -(2**17)), min(limit, 2**17))
    return st.one_of(small, st.integers(-limit, limit)).map(lambda number: Decimal(f"{number}E-{scale}"))


def timestamps(step_nanos: int) -> st.SearchStrategy[int]:
    reach = 2**63 // max(step_nanos, 1) - 1 if step_nanos == 1 else 2**45
    return st.integers(-reach, reach).map(lambda number: number * step_nanos)


COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.integers(-(2**31), 2**31 - 1),
    "TIME(3)": st.integers(0, 86_399_999),
    "CHAR(20)": TEXTS,
    "VARCHAR(60)": TEXTS,
    "STRING": TEXTS,
    "BINARY(9)": BLOBS,
    "BYTES": BLOBS,
    "DECIMAL(9, 2)": decimals(9, 2),
    "DECIMAL(18, 0)": decimals(18, 0),
    "DECIMAL(19, 4)": decimals(19, 4),
    "DECIMAL(38, 38)": decimals(38, 38),
    "TIMESTAMP(0)": timestamps(1_000_000_000),
    "TIMESTAMP(3)": timestamps(1_000_000),
    "TIMESTAMP(6)": timestamps(1_000),
    "TIMESTAMP(9)": timestamps(1),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": timestamps(1_000_000),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": timestamps(1_000),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": timestamps(1),
}
UNIT_NANOS = {"ms": 1_000_000, "us": 1_000, "ns": 1}


def to_arrow(values: list[Any], data_type: AtomicType) -> pa.Array:
    """A canonical column; what lies under its nulls is not zero."""
    arrow_type = to_arrow_type(data_type)
    mask = np.array([value is None for value in values], dtype=bool)
    if data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        numbers = [12345 if value is None else value // UNIT_NANOS[arrow_type.unit] for value in values]
        return pa.array(np.array(numbers, dtype=np.int64), mask=mask).view(arrow_type)
    if data_type.root in (TypeRoot.DATE, TypeRoot.TIME):
        numbers = [12345 if value is None else value for value in values]
        return pa.array(np.array(numbers, dtype=np.int32), mask=mask).view(arrow_type)
    return pa.array(values, arrow_type)


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    row = st.tuples(*(st.none() | COLUMNS[name] for name in names))
    return names, draw(st.lists(row, min_size=1, max_size=40))


def parse(names: list[str]) -> list[AtomicType]:
    types = [parse_sql_type(name) for name in names]
    return [kind for kind in types if isinstance(kind, AtomicType)]


@pytest.mark.parametrize("name", sorted(COLUMNS))
@given(data=st.data())
def test_every_type_hashes_as_its_binary_row(name: str, data: st.DataObject) -> None:
    (kind,) = parse([name])
    values = data.draw(st.lists(st.none() | COLUMNS[name], min_size=1, max_size=30))
    expected = [hash_bytes(encode_row([value], [kind])[ARITY_BYTES:]) for value in values]
    assert bucket_hashes([to_arrow(values, kind)], [kind]).tolist() == expected


@given(key=keys(), num_buckets=st.integers(1, 2**31 - 1))
def test_composite_keys_are_assigned_as_one_row_at_a_time(
    key: tuple[list[str], list[tuple[Any, ...]]], num_buckets: int
) -> None:
    names, rows = key
    types = parse(names)
    columns = [to_arrow(list(values), kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    expected = [bucket_of(row, types, num_buckets) for row in rows]
    assert assign_buckets(columns, types, num_buckets, BucketFunction.DEFAULT).tolist() == expected


@given(key=keys(), cut=st.integers(0, 40))
def test_slices_are_assigned_as_the_whole(key: tuple[list[str], list[tuple[Any, ...]]], cut: int) -> None:
    names, rows = key
    types = parse(names)
    columns = [to_arrow(list(values), kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    whole = bucket_hashes(columns, types)
    cut = min(cut, len(rows) - 1)
    assert bucket_hashes([column.slice(cut) for column in columns], types).tolist() == whole[cut:].tolist()


@given(
    values=st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=40),
    num_buckets=st.integers(1, 2**31 - 1),
    kind=st.sampled_from([INT, BIGINT]),
)
def test_mod_is_the_floor_modulus_and_null_is_bucket_zero(
    values: list[int | None], num_buckets: int, kind: AtomicType
) -> None:
    found = assign_buckets([to_arrow(values, kind)], [kind], num_buckets, BucketFunction.MOD)
    assert found.tolist() == [bucket_of([value], [kind], num_buckets, BucketFunction.MOD) for value in values]
    assert found.tolist() == [0 if value is None else value % num_buckets for value in values]


def test_blocks_of_rows_are_put_together_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [f"{'x' * (i % 23)}{i}" for i in range(1000)]
    column = pa.array(values)
    whole = bucket_hashes([column], [STRING]).tolist()
    monkeypatch.setattr(bucket_keys, "BLOCK_ROWS", 64)
    assert bucket_hashes([column], [STRING]).tolist() == whole
    assert whole == [hash_bytes(encode_row([value], [STRING])[ARITY_BYTES:]) for value in values]


def test_more_key_columns_than_one_word_of_null_bits_holds() -> None:
    values = [None if i in (55, 56) else i for i in range(57)]
    columns = [pa.array([value], pa.int32()) for value in values]
    types = [INT] * 57
    assert bucket_hashes(columns, types).tolist() == [hash_bytes(encode_row(values, types)[ARITY_BYTES:])]


def test_hive_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"'bucket-function.type' = 'hive'"):
        assign_buckets([pa.array([1])], [BIGINT], 4, BucketFunction.HIVE)


def test_mod_of_anything_but_one_integer_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="mod"):
        assign_buckets([pa.array(["a"])], [STRING], 4, BucketFunction.MOD)


def test_nested_types_are_no_bucket_keys() -> None:
    with pytest.raises(UnsupportedFeatureError, match="cannot be a bucket key"):
        bucket_hashes([pa.array([[1]])], [parse_sql_type("ARRAY<INT>")])
