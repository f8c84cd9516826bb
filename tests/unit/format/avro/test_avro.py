"""Avro metadata files that state more than they hold: each is refused, at once."""

import json
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import FormatError
from penstock.format.avro.container import (
    CODEC_ERRORS,
    AvroCodec,
    Block,
    compressor,
    decode_container,
    encode_container,
    uncompress,
)
from penstock.format.avro.records import decode_records
from penstock.format.avro.schemas import MANIFEST_SCHEMA
from penstock.format.avro.values import AvroLimits, encode_bytes, encode_long
from penstock.format.manifest.entry import DataFileMeta, FileKind, ManifestEntry, ManifestFileMeta, SimpleStats
from penstock.format.manifest.files import (
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from penstock.format.manifest.index_manifest import decode_index_types
from penstock.format.row.row import encode_row
from penstock.format.snapshot import decode_snapshot
from penstock.format.types.data_types import INT

PATH = "memory://w/shop.db/orders/manifest/manifest-1-0"
ENDLESS_NUMBER = b"\xff" * 4_000_000 + b"\x01"


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    # Of this thread alone: the clock on the wall goes on while others have the cores.
    started = time.thread_time()
    yield
    assert time.thread_time() - started < 5


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
    with pytest.raises(FormatError, match=f"to have {count} records"):
        decode_records(container(record("null"), b"", count), PATH)
    fields = [{"name": name, "type": "null"} for name in ("_INDEX_TYPE", "_KIND", "_FILE_NAME")]
    with pytest.raises(FormatError, match=f"to have {count} records"):
        decode_index_types(container({**record(), "fields": fields}, b"", count), PATH)


def test_a_negative_number_of_records_is_refused() -> None:
    with pytest.raises(FormatError, match="to have -1 records"):
        decode_records(container(record("int"), b"\0", -1), PATH)


def test_types_that_name_each_other_do_not_multiply_without_end() -> None:
    types: Any = record("null")
    for level in range(30):
        fields = [{"name": "a", "type": types}, {"name": "b", "type": types if level == 0 else f"t{level - 1}"}]
        types = {"type": "record", "name": f"t{level}", "fields": fields}
    with pytest.raises(FormatError, match="more than 100000 types"):
        decode_records(container(types, b"\0"), PATH)


def test_a_type_that_holds_itself_is_refused() -> None:
    with pytest.raises(FormatError, match=r"nested too deeply|100000 types"):
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
        (record(["null", "long"]), b"\x04\0", "neither null nor present"),
        ({**record(), "fields": [{"name": "a", "type": "int"}] * 2}, b"\0\0", "two fields of one name"),
        (record("bytes"), encode_bytes(b"abc")[:-1], "do not agree"),
    ],
)
def test_schemas_and_values_that_mean_nothing_are_refused(schema: Any, payload: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        decode_records(container(schema, payload), PATH)


META = ManifestFileMeta(
    file_name="manifest-1-0",
    file_size=1,
    num_added_files=1,
    num_deleted_files=0,
    partition_stats=SimpleStats(min_values=b"", max_values=b"", null_counts=()),
    schema_id=0,
)
SMALL = AvroLimits(block_bytes=1_000, file_bytes=2_500, records=100)
ROOMY = replace(SMALL, block_bytes=1 << 20, file_bytes=1 << 20)


@pytest.mark.parametrize("codec", AvroCodec)
def test_a_block_ends_at_its_limit_whatever_the_codec(codec: AvroCodec) -> None:
    schema = json.dumps(record("bytes"))
    right = encode_container(schema, [Block(1, encode_bytes(bytes(998)))], codec=codec)
    assert decode_container(right, PATH, SMALL).codec is codec
    assert [len(block.payload) for block in decode_container(right, PATH, SMALL).blocks] == [1_000]
    large = encode_container(schema, [Block(1, encode_bytes(bytes(999)))], codec=codec)
    with pytest.raises(FormatError, match=r"block 0 holds more bytes than the limit of 1000; .*max-block-size"):
        tuple(decode_container(large, PATH, SMALL).blocks)


@pytest.mark.parametrize("codec", [codec for codec in AvroCodec if codec is not AvroCodec.NULL])
def test_a_bomb_takes_no_more_memory_than_its_limit(codec: AvroCodec) -> None:
    data = encode_container(json.dumps(record("bytes")), [Block(1, bytes(24 << 20))], codec=codec)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FormatError, match="max-block-size"):
        tuple(decode_container(data, PATH, AvroLimits(block_bytes=1 << 20)).blocks)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 12 << 10


def test_a_size_that_snappy_states_is_not_believed() -> None:
    body = b"\xf0\xff\xff\xff\x0f" + bytes(20)
    assert uncompress(AvroCodec.SNAPPY, body, 1_000) is None


@pytest.mark.parametrize("codec", [AvroCodec.ZSTANDARD, AvroCodec.BZIP2, AvroCodec.XZ])
def test_streams_that_follow_each_other_are_read_up_to_a_number(codec: AvroCodec) -> None:
    one = compressor(codec, 1)(b"ab")
    assert uncompress(codec, one * 16, 32) == b"ab" * 16
    assert uncompress(codec, one * 16, 31) is None
    with pytest.raises(ValueError, match="16 compressed streams"):
        uncompress(codec, one * 17, 100)


@pytest.mark.parametrize("codec", AvroCodec)
def test_a_block_that_is_cut_short_is_damaged(codec: AvroCodec) -> None:
    body = compressor(codec, 1)(bytes(range(256)))
    if codec is not AvroCodec.NULL:
        with pytest.raises(CODEC_ERRORS):
            uncompress(codec, body[: len(body) // 2], 10_000)


def test_a_file_ends_at_its_limits() -> None:
    schema = json.dumps(record("int"))
    with pytest.raises(FormatError, match=r"its blocks hold more bytes than the limit of 2500; .*max-file-size"):
        tuple(decode_container(encode_container(schema, [Block(900, bytes(900))] * 3), PATH, SMALL).blocks)
    with pytest.raises(FormatError, match=r"more records than the limit of 100; .*max-records"):
        decode_manifest_list(encode_manifest_list([META] * 101), PATH, ROOMY)
    assert len(decode_manifest_list(encode_manifest_list([META] * 100), PATH, ROOMY)) == 100


def test_arrays_together_have_so_many_items_and_no_more() -> None:
    wide = replace(META, partition_stats=SimpleStats(min_values=b"", max_values=b"", null_counts=(0,) * 401))
    other = replace(wide, partition_stats=replace(wide.partition_stats, null_counts=(1,) * 400))
    with pytest.raises(FormatError, match=r"more than 800 items .*max-records"):
        decode_manifest_list(encode_manifest_list([wide, other]), PATH, ROOMY)


def test_a_text_longer_than_any_path_is_refused() -> None:
    with pytest.raises(FormatError, match="a text has 1048577 bytes"):
        decode_records(container(record("string"), encode_bytes(b"x" * (1 + (1 << 20)))), PATH)


def test_json_longer_than_any_metadata_file_is_refused() -> None:
    with pytest.raises(FormatError, match="has 33554433 bytes"):
        decode_snapshot(b" " * (32 << 20) + b"x", PATH)


def file_entry(number: int) -> ManifestEntry:
    """An entry with statistics and lists, so that arrays are counted."""
    return ManifestEntry(
        kind=FileKind.ADD,
        partition=encode_row([number % 3], [INT]),
        bucket=0,
        total_buckets=-1,
        file=DataFileMeta(
            file_name=f"data-{number}-0.parquet",
            file_size=100 + number,
            row_count=number,
            min_sequence_number=0,
            max_sequence_number=number,
            schema_id=0,
            value_stats_cols=("a", f"b{number % 2}"),
        ),
    )


def test_limits_count_each_file_from_zero_although_its_reader_is_used_again() -> None:
    entries = [file_entry(number) for number in range(3)]
    data = encode_manifest(entries, codec=AvroCodec.ZSTANDARD, level=1)
    limits = AvroLimits(records=3)
    for _ in range(20):
        assert decode_manifest(data, PATH, limits) == entries
    with pytest.raises(FormatError):
        decode_manifest(data[:-20], PATH, limits)
    assert decode_manifest(data, PATH, limits) == entries


def test_threads_that_read_files_of_one_schema_do_not_share_a_reader() -> None:
    files = [[file_entry(10 * file + number) for number in range(50)] for file in range(16)]
    encoded = [encode_manifest(entries, codec=AvroCodec.ZSTANDARD, level=1) for entries in files]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            assert list(pool.map(lambda data: decode_manifest(data, PATH), encoded)) == files
