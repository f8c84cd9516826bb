"""Rows of a batch get the number of their partition and bucket."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.datafile.types import to_arrow_schema
from penstock.errors import UnsupportedFeatureError
from penstock.format.row.bucket import BucketFunction, bucket_of
from penstock.format.row.row import decode_row, encode_row
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import DataField
from penstock.format.types.text import parse_sql_type
from penstock.table.write import assign
from penstock.table.write.assign import Assigner, BucketRule

UNAWARE = BucketRule(key=(), num_buckets=-1, function=BucketFunction.DEFAULT)


def schema_of(columns: dict[str, str], partition_keys: tuple[str, ...] = ()) -> TableSchema:
    fields = tuple(
        DataField(id=i, name=name, type=parse_sql_type(text)) for i, (name, text) in enumerate(columns.items())
    )
    return TableSchema(id=0, fields=fields, highest_field_id=len(fields), partition_keys=partition_keys)


def batch_of(schema: TableSchema, columns: dict[str, list[Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns, schema=to_arrow_schema(schema.fields))


def by_key(*names: str, buckets: int = 4) -> BucketRule:
    return BucketRule(key=names, num_buckets=buckets, function=BucketFunction.DEFAULT)


def test_unpartitioned_unaware_table_is_one_group_without_an_array() -> None:
    schema = schema_of({"a": "INT"})
    assigner = Assigner(schema, UNAWARE)
    assert assigner.assign(batch_of(schema, {"a": [1, None, 3]})) == 0
    assert assigner.groups == [(encode_row([], []), 0)]


def test_one_partition_of_an_unaware_table_is_one_group_without_an_array() -> None:
    schema = schema_of({"a": "INT", "dt": "STRING"}, ("dt",))
    assigner = Assigner(schema, UNAWARE)
    assert assigner.assign(batch_of(schema, {"a": [1, 2], "dt": ["x", "x"]})) == 0
    assert assigner.assign(batch_of(schema, {"a": [1, 2], "dt": ["y", "y"]})) == 1
    assert assigner.assign(batch_of(schema, {"a": [3], "dt": ["x"]})) == 0


def test_a_single_bucket_needs_no_array_and_no_key() -> None:
    schema = schema_of({"a": "INT"})
    rule = BucketRule(key=(), num_buckets=1, function=BucketFunction.DEFAULT)
    assert Assigner(schema, rule).assign(batch_of(schema, {"a": [1, 2]})) == 0


def test_groups_are_numbered_in_the_order_they_are_met() -> None:
    schema = schema_of({"a": "INT", "dt": "STRING"}, ("dt",))
    assigner = Assigner(schema, UNAWARE)
    ids = assigner.assign(batch_of(schema, {"a": [1] * 5, "dt": ["z", "a", "z", None, "m"]}))
    assert not isinstance(ids, int)
    assert ids.tolist() == [0, 1, 0, 2, 3]
    assert ids.dtype == np.int32
    string = [schema.fields[1].type]
    assert [decode_row(group.partition, string) for group in assigner.groups] == [("z",), ("a",), (None,), ("m",)]
    again = assigner.assign(batch_of(schema, {"a": [1] * 3, "dt": ["m", "new", "a"]}))
    assert not isinstance(again, int)
    assert again.tolist() == [3, 4, 1]


@pytest.mark.parametrize("limit", [assign._MAX_TABLE, 3], ids=["table", "dictionary"])
def test_partition_and_bucket_together_make_the_group(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assign, "_MAX_TABLE", limit)
    schema = schema_of({"k": "BIGINT", "p": "INT", "q": "STRING"}, ("q", "p"))
    assigner = Assigner(schema, by_key("k"))
    rng = np.random.default_rng(1)
    types = [schema.fields[2].type, schema.fields[1].type]
    seen: list[tuple[bytes, int]] = []
    for _ in range(3):
        keys = rng.integers(-50, 50, 400).tolist()
        parts = rng.integers(0, 7, 400).tolist()
        texts = [["x", "yy", None][i] for i in rng.integers(0, 3, 400)]
        ids = assigner.assign(batch_of(schema, {"k": keys, "p": parts, "q": texts}))
        assert not isinstance(ids, int)
        expected = [
            (encode_row([text, part], types), bucket_of([key], [schema.fields[0].type], 4))
            for key, part, text in zip(keys, parts, texts, strict=True)
        ]
        for group in expected:
            if group not in seen:
                seen.append(group)
        assert [assigner.groups[i] for i in ids.tolist()] == expected
    assert assigner.groups == seen


def test_many_distinct_partitions_in_one_batch_stay_apart() -> None:
    schema = schema_of({"a": "BIGINT", "b": "BIGINT", "c": "BIGINT", "d": "BIGINT"}, ("a", "b", "c", "d"))
    numbers = list(range(3000))
    ids = Assigner(schema, UNAWARE).assign(
        batch_of(schema, {"a": numbers, "b": numbers[::-1], "c": numbers, "d": [7, 8] * 1500})
    )
    assert not isinstance(ids, int)
    assert ids.tolist() == numbers


def test_key_columns_are_taken_in_the_order_of_the_option() -> None:
    schema = schema_of({"a": "INT", "b": "STRING"})
    batch = batch_of(schema, {"a": list(range(50)), "b": [f"text {i}" for i in range(50)]})
    types = [field.type for field in schema.fields]
    assigner = Assigner(schema, by_key("b", "a", buckets=64))
    ids = assigner.assign(batch)
    assert not isinstance(ids, int)
    expected = [bucket_of([row["b"], row["a"]], types[::-1], 64) for row in batch.to_pylist()]
    assert [assigner.groups[i].bucket for i in ids.tolist()] == expected


INTERNAL: list[tuple[str, list[Any], list[object]]] = [
    ("BOOLEAN", [True, None, False], [True, None, False]),
    ("DECIMAL(10, 2)", [Decimal("1.20"), None, Decimal("-3.00")], [Decimal("1.20"), None, Decimal("-3.00")]),
    ("DATE", [19723, None, -1], [19723, None, -1]),
    ("TIME(3)", [3_600_123, None, 0], [3_600_123, None, 0]),
    ("TIMESTAMP(3)", [1, None, -1], [1_000_000, None, -1_000_000]),
    ("TIMESTAMP(6)", [1, None, 253402300799999999], [1_000, None, 253402300799999999000]),
    ("TIMESTAMP(9)", [1, None, -1], [1, None, -1]),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [1, None, -1], [1_000, None, -1_000]),
    ("BYTES", [b"a", None, b""], [b"a", None, b""]),
]


@pytest.mark.parametrize(("text", "given", "internal"), INTERNAL, ids=[text for text, _, _ in INTERNAL])
def test_partition_values_become_internal_ones(text: str, given: list[Any], internal: list[object]) -> None:
    schema = schema_of({"p": text}, ("p",))
    arrow_type = to_arrow_schema(schema.fields).field(0).type
    width = {"DATE": pa.int32(), "TIME(3)": pa.int32()}.get(text, pa.int64())
    column = (
        pa.array(given, width).view(arrow_type) if "TIME" in text or text == "DATE" else pa.array(given, arrow_type)
    )
    assigner = Assigner(schema, UNAWARE)
    assigner.assign(pa.record_batch([column], schema=to_arrow_schema(schema.fields)))
    kind = schema.fields[0].type
    assert [group.partition for group in assigner.groups] == [encode_row([value], [kind]) for value in internal]


@pytest.mark.parametrize("text", ["FLOAT", "DOUBLE"])
def test_zeros_of_both_signs_are_two_partitions_and_nan_is_one(text: str) -> None:
    schema = schema_of({"p": text}, ("p",))
    assigner = Assigner(schema, UNAWARE)
    nan = float("nan")
    ids = assigner.assign(batch_of(schema, {"p": [0.0, -0.0, nan, None, nan, 1.5, 0.0]}))
    assert not isinstance(ids, int)
    assert ids.tolist() == [0, 1, 2, 3, 2, 4, 0]
    more = assigner.assign(batch_of(schema, {"p": [nan, -0.0]}))
    assert not isinstance(more, int)
    assert more.tolist() == [2, 1]


def test_nested_bucket_key_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'tags'"):
        Assigner(schema_of({"tags": "ARRAY<INT>"}), by_key("tags"))
