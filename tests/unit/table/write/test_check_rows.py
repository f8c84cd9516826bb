"""Incoming Arrow rows become canonical ones, or are refused with the reason."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidSchemaError, SchemaMismatchError
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import DataField
from penstock.format.types.text import parse_sql_type
from penstock.table.write.check_rows import conform_batch, conform_batches, plan_conform
from penstock.table.write.coercion import find_incompatibility


def schema_of(default_values: dict[str, str] | None = None, /, **columns: str) -> TableSchema:
    fields = tuple(
        DataField(id=i, name=name, type=parse_sql_type(text), default_value=(default_values or {}).get(name))
        for i, (name, text) in enumerate(columns.items())
    )
    return TableSchema(id=0, fields=fields, highest_field_id=len(fields) - 1)


def conform(schema: TableSchema, batch: pa.RecordBatch) -> pa.RecordBatch:
    result = conform_batch(batch, plan_conform(schema, batch.schema, "shop.orders"))
    result.validate(full=True)
    assert str(result.schema) == str(to_arrow_schema(schema.fields))
    return result


def one_column(text: str, array: pa.Array) -> pa.Array:
    return conform(schema_of(c=text), pa.record_batch({"c": array})).column(0)


def test_canonical_batches_pass_without_a_copy() -> None:
    schema = schema_of(id="BIGINT NOT NULL", name="STRING")
    batch = pa.record_batch({"id": [1, 2], "name": ["a", None]}, schema=to_arrow_schema(schema.fields))
    result = conform(schema, batch)
    assert result.equals(batch)
    for before, after in zip(batch.columns, result.columns, strict=True):
        assert [b and b.address for b in before.buffers()] == [b and b.address for b in after.buffers()]


def test_columns_are_matched_by_name_in_any_order() -> None:
    result = conform(schema_of(a="INT", b="STRING"), pa.record_batch({"b": ["x"], "a": pa.array([1], pa.int32())}))
    assert result.to_pylist() == [{"a": 1, "b": "x"}]


EPOCH = dt.datetime.fromtimestamp(0, dt.UTC).replace(tzinfo=None)

WIDENED = [
    ("BIGINT", pa.array([1, None], pa.int8()), [1, None]),
    ("BIGINT", pa.array([1], pa.uint32()), [1]),
    ("SMALLINT", pa.array([255], pa.uint8()), [255]),
    ("DOUBLE", pa.array([0.5], pa.float32()), [0.5]),
    ("FLOAT", pa.array([0.5], pa.float16()), [0.5]),
    ("INT", pa.array([1], pa.int64()), [1]),
    ("BIGINT", pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
    ("BIGINT", pa.array([2.0**53 - 1, None]), [2**53 - 1, None]),
    ("FLOAT", pa.array([0.5, 2.0**100, math.inf, None]), [0.5, 2.0**100, math.inf, None]),
    ("FLOAT", pa.array([0.1]), [0.10000000149011612]),
    ("FLOAT", pa.array([2**24], pa.int64()), [2.0**24]),
    ("DOUBLE", pa.array([2**60]), [2.0**60]),
    ("DOUBLE", pa.array([Decimal("1.5"), Decimal("0.1"), None]), [1.5, 0.1, None]),
    ("DECIMAL(10, 2)", pa.array([Decimal("1.550")], pa.decimal128(4, 3)), [Decimal("1.55")]),
    ("DECIMAL(4, 2)", pa.array([Decimal("1.5")], pa.decimal128(10, 2)), [Decimal("1.50")]),
    ("DECIMAL(4, 2)", pa.array([1], pa.int64()), [Decimal("1.00")]),
    ("DECIMAL(20, 0)", pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
    ("DECIMAL(4, 2)", pa.array([9.99, None]), [Decimal("9.99"), None]),
    ("INT", pa.array([Decimal("7.00")]), [7]),
    ("ARRAY<INT>", pa.array([[1], None, [2]], pa.list_(pa.int64())), [[1], None, [2]]),
    ("VECTOR<INT, 2>", pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)).slice(1), [None, [3, 4]]),
    ("STRING", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("STRING", pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
    ("VARCHAR(9)", pa.array(["a", "b", "a", None]).dictionary_encode(), ["a", "b", "a", None]),
    ("BIGINT", pa.array([7, 7], pa.int32()).dictionary_encode(), [7, 7]),
    (
        "STRING",
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view())),
        ["b", None, "a"],
    ),
    (
        "BYTES",
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), pa.array([b"a", b"b"], pa.binary_view())),
        [b"b", None, b"a"],
    ),
    ("BYTES", pa.array([b"a"], pa.large_binary()), [b"a"]),
    ("BYTES", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ("BYTES", pa.array([b"ab"], pa.binary_view()), [b"ab"]),
    ("DECIMAL(10, 2)", pa.array([Decimal("1.5")], pa.decimal128(3, 1)), [Decimal("1.50")]),
    ("DECIMAL(10, 2)", pa.array([Decimal("1.5")], pa.decimal256(3, 1)), [Decimal("1.50")]),
    ("DATE", pa.array([86_400_000], pa.date64()), [dt.date(1970, 1, 2)]),
    ("TIME(3)", pa.array([1_000_000], pa.time64("us")), [dt.time(0, 0, 1)]),
    ("TIMESTAMP(3)", pa.array([1_000], pa.timestamp("us")), [EPOCH + dt.timedelta(milliseconds=1)]),
    ("TIMESTAMP(6)", pa.array([1], pa.timestamp("s")), [EPOCH + dt.timedelta(seconds=1)]),
    ("ARRAY<BIGINT>", pa.array([[1], None], pa.large_list(pa.int32())), [[1], None]),
    ("ARRAY<STRING>", pa.array([["a"]], pa.list_(pa.large_string())), [["a"]]),
    ("MAP<STRING, BIGINT>", pa.array([[("a", 1)]], pa.map_(pa.large_string(), pa.int8())), [[("a", 1)]]),
    ("STRING", pa.array([None]), [None]),
    ("ROW<a INT>", pa.array([None]), [None]),
]


@pytest.mark.parametrize(
    ("text", "array", "expected"), WIDENED, ids=lambda value: str(getattr(value, "type", value))[:40]
)
def test_types_that_lose_nothing_are_cast(text: str, array: pa.Array, expected: list[object]) -> None:
    assert one_column(text, array).to_pylist() == expected


def test_struct_fields_are_matched_by_name_and_cast() -> None:
    given = pa.array([{"b": "x", "a": 1}, None], pa.struct([("b", pa.large_string()), ("a", pa.int8())]))
    assert one_column("ROW<a BIGINT, b STRING>", given).to_pylist() == [{"a": 1, "b": "x"}, None]


def test_instants_of_any_zone_become_utc() -> None:
    given = pa.array([0], pa.timestamp("us", "Asia/Tokyo"))
    result = one_column("TIMESTAMP(6) WITH LOCAL TIME ZONE", given)
    assert result.cast(pa.int64()).to_pylist() == [0]


REFUSED = [
    ("STRING", pa.array([1])),
    ("STRING", pa.array([b"a"])),
    ("BYTES", pa.array(["a"])),
    ("BOOLEAN", pa.array([1])),
    ("INT", pa.array([True])),
    ("TIMESTAMP(3)", pa.array([1], pa.timestamp("ms", "UTC"))),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", pa.array([1], pa.timestamp("ms"))),
    ("DATE", pa.array([1], pa.timestamp("ms"))),
    ("TIMESTAMP(3)", pa.array([1], pa.date32())),
    ("ARRAY<INT>", pa.array([["1"]])),
    ("ARRAY<INT>", pa.array([1], pa.int32())),
    ("ROW<a INT>", pa.array([{"b": 1}], pa.struct([("b", pa.int32())]))),
    ("ROW<a INT>", pa.array([{"a": "1"}], pa.struct([("a", pa.string())]))),
    ("MAP<STRING, INT>", pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
]


@pytest.mark.parametrize(("text", "array"), REFUSED, ids=lambda value: str(getattr(value, "type", value))[:40])
def test_other_types_are_refused_by_name_before_any_row_is_looked_at(text: str, array: pa.Array) -> None:
    with pytest.raises(SchemaMismatchError, match=r"table shop\.orders.*'c.*cast before writing"):
        plan_conform(schema_of(c=text), pa.schema([("c", array.type)]), "shop.orders")


def test_refusal_names_both_types_and_the_nested_place() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'c\.a\.element' is given as string, but the table expects int32"):
        one_column("ROW<a ARRAY<INT>>", pa.array([{"a": ["1"]}]))


def test_refusal_of_a_time_for_a_date_says_how_to_take_its_date() -> None:
    with pytest.raises(SchemaMismatchError, match=r"expects DATE \(\.dt\.date in pandas"):
        one_column("DATE", pa.array([1], pa.timestamp("ms")))


def test_refusal_of_a_wall_clock_speaks_of_the_time_zone() -> None:
    with pytest.raises(SchemaMismatchError, match="without a time zone"):
        one_column("TIMESTAMP(3) WITH LOCAL TIME ZONE", pa.array([1], pa.timestamp("ms")))


LOSSY = [
    ("TIMESTAMP(3)", pa.array([1001], pa.timestamp("us"))),
    ("TIMESTAMP(9)", pa.array([10**14], pa.timestamp("s"))),
    ("DATE", pa.array([1], pa.date64())),
    ("TIME(3)", pa.array([1], pa.time64("us"))),
    ("TINYINT", pa.array([128])),
    ("BIGINT", pa.array([2**63], pa.uint64())),
    ("INT", pa.array([0.5])),
    ("INT", pa.array([math.nan])),
    ("BIGINT", pa.array([2.0**53])),
    ("FLOAT", pa.array([2**24 + 1])),
    ("DOUBLE", pa.array([2**53 + 1])),
    ("FLOAT", pa.array([1e300])),
    ("FLOAT", pa.array([0.1234567891])),
    ("DOUBLE", pa.array([Decimal("0.12345678901234567890")])),
    ("DECIMAL(4, 2)", pa.array([Decimal("1.555")])),
    ("DECIMAL(4, 2)", pa.array([Decimal("100.5")])),
    ("DECIMAL(4, 2)", pa.array([100])),
    ("DECIMAL(4, 2)", pa.array([0.125])),
]


@pytest.mark.parametrize(("text", "array"), LOSSY, ids=[text for text, _ in LOSSY])
def test_values_that_a_cast_would_change_are_refused(text: str, array: pa.Array) -> None:
    given = pa.concat_arrays([pa.nulls(2, array.type), array, pa.nulls(3, array.type)])
    with pytest.raises(SchemaMismatchError, match=r"table shop\.orders: column 'c' in row 2 .*without loss"):
        one_column(text, given)


def test_missing_and_extra_columns_are_all_named_with_the_nearest_name() -> None:
    schema = schema_of(price="DOUBLE", quantity="INT")
    batch = pa.record_batch({"prise": [1.0], "colour": ["red"]})
    with pytest.raises(SchemaMismatchError) as caught:
        conform(schema, batch)
    message = str(caught.value)
    assert "table shop.orders" in message
    assert "column 'price' is missing (given: 'prise')" in message
    assert "column 'quantity' is missing" in message
    assert "column 'prise' is not in the table (the table has: 'price')" in message
    assert "column 'colour' is not in the table" in message


def test_names_must_match_in_case_too() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'Price' is not in the table \(the table has: 'price'\)"):
        conform(schema_of(price="DOUBLE"), pa.record_batch({"Price": [1.0]}))


def test_column_given_twice_is_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaMismatchError, match="'a' is given more than once"):
        conform(schema_of(a="BIGINT"), batch)


def test_null_in_a_not_null_column_is_refused_with_its_row_counted_over_batches() -> None:
    schema = schema_of(id="BIGINT NOT NULL")
    table = pa.table({"id": [1, 2, 3, None, None]})
    plan = plan_conform(schema, table.schema, "shop.orders")
    batches = conform_batches(table.to_batches(max_chunksize=2), plan)
    assert next(batches).num_rows == 2
    with pytest.raises(SchemaMismatchError, match=r"shop\.orders: column 'id' is NOT NULL, but row 3 "):
        next(batches)


NESTED = [
    ("ARRAY<INT NOT NULL>", pa.array([[1], None, [], [2, None]], pa.list_(pa.int32())), "c.element"),
    ("ROW<a INT NOT NULL>", pa.array([{"a": 1}, None, {"a": 1}, {"a": None}], pa.struct([("a", pa.int32())])), "c.a"),
    (
        "MAP<STRING, INT NOT NULL>",
        pa.array([[("k", 1)], None, [], [("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int32())),
        "c.value",
    ),
    (
        "ARRAY<ROW<a INT NOT NULL>>",
        pa.array([[{"a": 1}], None, [None], [{"a": 1}, {"a": None}]], pa.list_(pa.struct([("a", pa.int32())]))),
        "c.element.a",
    ),
]


@pytest.mark.parametrize(("text", "array", "path"), NESTED, ids=[text for text, _, _ in NESTED])
def test_null_inside_of_a_value_is_found_where_the_type_forbids_it(text: str, array: pa.Array, path: str) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"'{path}' is NOT NULL, but row 3 "):
        one_column(text, array)
    assert one_column(text, array.slice(0, 3)).to_pylist() == array.slice(0, 3).to_pylist()
    with pytest.raises(SchemaMismatchError, match="row 2 "):
        one_column(text, array.slice(1))


def test_defaults_replace_nulls_also_explicit_ones() -> None:
    schema = schema_of(
        {"n": "7", "s": "none", "d": "2024-02-29", "t": "2024-01-01 00:00:00", "z": "2024-01-01T01:00:00+01:00"},
        n="INT",
        s="STRING",
        d="DATE",
        t="TIMESTAMP(3)",
        z="TIMESTAMP(6) WITH LOCAL TIME ZONE",
    )
    empty = pa.record_batch({name: pa.nulls(1) for name in "nsdtz"})
    (row,) = conform(schema, empty).to_pylist()
    midnight = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert row["n"] == 7
    assert row["s"] == "none"
    assert row["d"] == dt.date(2024, 2, 29)
    assert row["t"] == midnight.replace(tzinfo=None)
    assert row["z"] == midnight


def test_default_of_an_instant_without_offset_is_taken_as_utc() -> None:
    schema = schema_of({"z": "2024-01-01 00:00:00"}, z="TIMESTAMP(3) WITH LOCAL TIME ZONE")
    (row,) = conform(schema, pa.record_batch({"z": pa.nulls(1)})).to_pylist()
    assert row["z"] == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def test_not_null_is_checked_before_the_default_is_put_in() -> None:
    schema = schema_of({"n": "7"}, n="INT NOT NULL")
    with pytest.raises(SchemaMismatchError, match="'n' is NOT NULL"):
        conform(schema, pa.record_batch({"n": pa.nulls(1, pa.int32())}))


def test_default_that_is_no_value_of_its_type_is_refused_by_name() -> None:
    with pytest.raises(InvalidSchemaError, match=r"shop\.orders: default value 'soon' of column 'd'"):
        conform(schema_of({"d": "soon"}, d="DATE"), pa.record_batch({"d": pa.nulls(1)}))


@pytest.mark.parametrize(
    ("text", "array", "path"),
    [
        ("VARCHAR(3)", pa.array(["äöü", None, "abcd"]), "c"),
        ("CHAR(3)", pa.array(["", "a", "abcd"]), "c"),
        ("VARBINARY(2)", pa.array([b"ab", None, b"abc"]), "c"),
        ("BINARY(2)", pa.array([b"ab", b"a", "ä€".encode()]), "c"),
        ("ARRAY<VARCHAR(1)>", pa.array([["a", "b"], None, ["c", "de"]]), "c.element"),
        ("MAP<VARCHAR(1), INT>", pa.array([[], None, [("ab", 1)]], pa.map_(pa.string(), pa.int32())), "c.key"),
        ("ROW<x BIGINT, y ROW<z CHAR(1)>>", pa.array([None, {"y": {"z": "a"}}, {"x": 1, "y": {"z": "ab"}}]), "c.y.z"),
    ],
)
def test_value_longer_than_its_type_is_refused_with_its_row(text: str, array: pa.Array, path: str) -> None:
    one_column(text, array.slice(0, 2))
    with pytest.raises(SchemaMismatchError, match=rf"'{path}' is .*\(\d\).* row 2 .* cut it before writing"):
        one_column(text, array)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("FLOAT", "1e300"), ("FLOAT", "16777217"), ("DOUBLE", "9007199254740993"), ("TIME(3)", "10:00:00.0001")],
)
def test_default_that_the_column_does_not_have_is_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"default value .* of column 'f' .*no value"):
        conform(schema_of({"f": text}, f=kind), pa.record_batch({"f": pa.nulls(1)}))


def test_default_longer_than_its_type_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"VARCHAR\(2\), but row 0 .* length 3"):
        conform(schema_of({"c": "abc"}, c="VARCHAR(2)"), pa.record_batch({"c": pa.array([None], pa.string())}))


def test_a_zone_too_many_is_answered_in_the_names_of_spark() -> None:
    given, wanted = pa.timestamp("us", tz="UTC"), pa.timestamp("ms")
    text = find_incompatibility(given, wanted, "at")
    assert text is not None
    assert "Spark's TIMESTAMP), but" in text
    assert ".cast('timestamp_ntz')" in text
    assert text.endswith("declare the column TIMESTAMP_LTZ(3)")
    assert (find_incompatibility(wanted, given, "at") or "").endswith(
        ".cast('timestamp') takes it for the wall clock of the session's zone; or declare the column TIMESTAMP(6)"
    )
