"""Avro metadata files that state more than they hold: each is refused, at once."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.errors import FormatError
from penstock.spec.avro_container import AvroCodec, Block, encode_container
from penstock.spec.avro_records import decode_records
from penstock.spec.avro_values import encode_bytes, encode_long
from penstock.spec.index_manifest import decode_index_types
from penstock.spec.manifest_avro import decode_manifest
from penstock.spec.manifest_schemas import MANIFEST_SCHEMA

PATH = "memory://w/shop.db/orders/manifest/manifest-1-0"
ENDLESS_NUMBER = b"\xff" * 4_000_000 + b"\x01"


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 5


def container(schema: object, payload: bytes, count: int = 1) -> bytes:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return encode_container(text, [Block(count, payload)], codec=AvroCodec.NULL)


def record(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{place}", "type": part} for place, part in enumerate(types)]
    return {"type": "record", "name": "r", "fields": fields}


def with_a_field_in_front(avro_type: Any) -> str:
    schema = json.loads(MANIFEST_SCHEMA)
    schema["fields"].insert(0, {"name": "junk", "type": avro_type})
    return json.dumps(schema)


@pytest.mark.parametrize("number", [ENDLESS_NUMBER, b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"])
@pytest.mark.parametrize("avro_type", ["int", "long", "bytes", "string", {"type": "array", "items": "int"}])
def test_a_number_of_more_than_64_bits_is_refused(avro_type: Any, number: bytes) -> None:
    with pytest.raises(FormatError, match="bits"):
        decode_records(container(record(avro_type), number), PATH)


@pytest.mark.parametrize("avro_type", ["long", "bytes", ["null", "long"]])
def test_so_is_one_that_is_read_past(avro_type: Any) -> None:
    number = ENDLESS_NUMBER if isinstance(avro_type, str) else b"\x02" + ENDLESS_NUMBER
    with pytest.raises(FormatError, match="64 bits"):
        decode_manifest(container(with_a_field_in_front(avro_type), number), PATH)


def test_a_long_where_an_int_belongs_is_refused() -> None:
    assert decode_records(container(record("int"), encode_long(-(2**31))), PATH) == [{"f0": -(2**31)}]
    with pytest.raises(FormatError, match="32 bits"):
        decode_records(container(record("int"), encode_long(2**31)), PATH)


@pytest.mark.parametrize("items", ["null", {"type": "fixed", "name": "x", "size": 0}, record("null", "null"), "int"])
@pytest.mark.parametrize("count", [encode_long(2**62), encode_long(-(2**62)) + encode_long(0)])
def test_a_block_has_no_more_items_than_there_can_be(items: Any, count: bytes) -> None:
    avro_type = {"type": "array", "items": items}
    payload = count + bytes(50)
    with pytest.raises(FormatError, match="items"):
        decode_records(container(record(avro_type), payload), PATH)
    with pytest.raises(FormatError, match="items"):
        decode_manifest(container(with_a_field_in_front(avro_type), payload), PATH)


def test_a_few_items_without_bytes_are_read() -> None:
    data = container(record({"type": "array", "items": "null"}), encode_long(3) + encode_long(0))
    assert decode_records(data, PATH) == [{"f0": (None, None, None)}]


def test_many_small_blocks_of_items_without_bytes_end_too() -> None:
    arrays = {"type": "array", "items": {"type": "array", "items": "null"}}
    payload = encode_long(1_000) + (encode_long(1_000) + encode_long(0)) * 1_000 + encode_long(0)
    with pytest.raises(FormatError, match="65536 items"):
        decode_records(container(record(arrays), payload), PATH)


def test_a_block_of_items_has_no_negative_size() -> None:
    payload = encode_long(-1) + encode_long(-2) + bytes(100)
    avro_type = {"type": "array", "items": "int"}
    with pytest.raises(FormatError, match="negative"):
        decode_records(container(record(avro_type), payload), PATH)
    with pytest.raises(FormatError, match="negative"):
        decode_manifest(container(with_a_field_in_front(avro_type), payload), PATH)


@pytest.mark.parametrize("count", [2**40, 1])
def test_records_without_bytes_are_refused(count: int) -> None:
    with pytest.raises(FormatError, match=f"it has {count} records"):
        decode_records(container(record("null"), b"", count), PATH)
    fields = [{"name": name, "type": "null"} for name in ("_INDEX_TYPE", "_KIND", "_FILE_NAME")]
    with pytest.raises(FormatError, match=f"it has {count} records"):
        decode_index_types(container({**record(), "fields": fields}, b"", count), PATH)


def test_a_negative_number_of_records_is_refused() -> None:
    with pytest.raises(FormatError, match="it has -1 records"):
        decode_records(container(record("int"), b"\0", -1), PATH)


def test_types_that_name_each_other_do_not_multiply_without_end() -> None:
    types: Any = record("null")
    for level in range(30):
        fields = [{"name": "a", "type": types}, {"name": "b", "type": types if level == 0 else f"t{level - 1}"}]
        types = {"type": "record", "name": f"t{level}", "fields": fields}
    with pytest.raises(FormatError, match="more than 10000 types"):
        decode_records(container(types, b"\0"), PATH)


def test_a_type_that_holds_itself_is_refused() -> None:
    with pytest.raises(FormatError, match=r"nested too deeply|10000 types"):
        decode_records(container(record("r"), b"\0"), PATH)


def test_a_schema_of_endless_depth_or_size_is_refused() -> None:
    deep = '{"type":"array","items":' * 20_000 + '"int"' + "}" * 20_000
    with pytest.raises(FormatError, match="nested too deeply"):
        decode_manifest(container(f'{{"type":"record","name":"r","fields":[{{"name":"x","type":{deep}}}]}}', b""), PATH)
    with pytest.raises(FormatError, match="characters"):
        decode_manifest(container(MANIFEST_SCHEMA + " " * (1 << 20), b""), PATH)


@pytest.mark.parametrize(
    ("schema", "payload", "said"),
    [
        (record({"type": "fixed", "name": "x", "size": -1}), b"\0", "negative size"),
        (record(["int", "long", "string"]), encode_long(-1) + b"\0", "negative"),
        (record(["null", "long"]), b"\x04\0", "neither null nor there"),
        ({**record(), "fields": [{"name": "a", "type": "int"}] * 2}, b"\0\0", "two fields of one name"),
        (record("bytes"), encode_bytes(b"abc")[:-1], "do not agree"),
    ],
)
def test_schemas_and_values_that_mean_nothing_are_refused(schema: Any, payload: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        decode_records(container(schema, payload), PATH)
