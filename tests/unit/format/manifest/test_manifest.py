"""Manifests as files: layout, versions, codecs, and what damaged ones say."""

import json
import pickle
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pytest

from penstock.errors import FormatError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.avro.container import AvroCodec, Block, decode_container, encode_container, parse_codec
from penstock.format.avro.records import decode_records
from penstock.format.avro.schemas import MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from penstock.format.avro.values import encode_long
from penstock.format.manifest.entry import (
    EMPTY_ROW,
    EMPTY_STATS,
    DataFileMeta,
    EntryNumbers,
    FileKind,
    FileNumbers,
    FileSource,
    ManifestEntry,
    ManifestFileMeta,
    SimpleStats,
)
from penstock.format.manifest.files import (
    decode_file_numbers,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)

PATH = "memory://w/shop.db/orders/manifest/manifest-1-0"
FLIPS = (0x01, 0x80, 0xFF)


def entry(number: int) -> ManifestEntry:
    file = DataFileMeta(
        file_name=f"data-{number}.parquet",
        file_size=1_000_000_000_000 + number,
        row_count=number,
        min_sequence_number=0,
        max_sequence_number=number,
        schema_id=0,
        value_stats=SimpleStats(min_values=bytes(20), max_values=bytes(range(20)), null_counts=(0, None, 7)),
        value_stats_cols=("a", "b", "c"),
        creation_millis=1_700_000_000_000 + number,
    )
    partition = b"\0\0\0\1" + bytes(8) + (number // 10).to_bytes(8, "little")
    return ManifestEntry(kind=FileKind.ADD, partition=partition, bucket=number % 3, total_buckets=3, file=file)


ENTRIES = [entry(number) for number in range(1_000)]
META = ManifestFileMeta(
    file_name="manifest-1-0",
    file_size=1234,
    num_added_files=3,
    num_deleted_files=0,
    partition_stats=EMPTY_STATS,
    schema_id=0,
    min_bucket=0,
    max_bucket=7,
    min_level=0,
    max_level=0,
)


def numbers_of(entries: list[ManifestEntry]) -> list[EntryNumbers]:
    return [
        EntryNumbers(
            kind=entry.kind,
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            file=FileNumbers(
                file_name=entry.file.file_name,
                file_size=entry.file.file_size,
                row_count=entry.file.row_count,
                min_sequence_number=entry.file.min_sequence_number,
                max_sequence_number=entry.file.max_sequence_number,
            ),
        )
        for entry in entries
    ]


def test_the_schema_is_the_text_of_the_reference() -> None:
    assert decode_container(encode_manifest([]), PATH).schema == MANIFEST_SCHEMA
    listing = decode_container(encode_manifest_list([]), PATH)
    assert listing.schema == MANIFEST_LIST_SCHEMA
    assert listing.schema == (
        '{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":['
        '{"name":"_VERSION","type":"int"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},'
        '{"name":"_NUM_ADDED_FILES","type":"long"},{"name":"_NUM_DELETED_FILES","type":"long"},'
        '{"name":"_PARTITION_STATS","type":{"type":"record","name":"record__PARTITION_STATS","fields":['
        '{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},'
        '{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}},'
        '{"name":"_SCHEMA_ID","type":"long"},'
        '{"name":"_MIN_BUCKET","type":["null","int"],"default":null},'
        '{"name":"_MAX_BUCKET","type":["null","int"],"default":null},'
        '{"name":"_MIN_LEVEL","type":["null","int"],"default":null},'
        '{"name":"_MAX_LEVEL","type":["null","int"],"default":null},'
        '{"name":"_MIN_ROW_ID","type":["null","long"],"default":null},'
        '{"name":"_MAX_ROW_ID","type":["null","long"],"default":null}]}'
    )


def test_an_empty_list_is_a_file_with_a_header() -> None:
    data = encode_manifest_list([])
    assert data.startswith(b"Obj\x01")
    assert decode_manifest_list(data, PATH) == []
    assert tuple(decode_container(data, PATH).blocks) == ()
    assert list(fastavro.reader(BytesIO(data))) == []


def test_many_entries_make_several_blocks_and_come_back_in_order() -> None:
    data = encode_manifest(ENTRIES)
    assert len(tuple(decode_container(data, PATH).blocks)) > 1
    assert decode_manifest(data, PATH) == ENTRIES
    assert [record["_FILE"]["_ROW_COUNT"] for record in fastavro.reader(BytesIO(data))] == list(range(1_000))


def test_entries_read_from_a_manifest_share_what_is_equal_and_behave_like_any() -> None:
    first, second, *_ = read = decode_manifest(encode_manifest(ENTRIES), PATH)
    assert first.partition is second.partition
    assert first.file.key_stats is second.file.key_stats
    assert first.file.value_stats_cols is second.file.value_stats_cols
    assert first.file.value_stats.null_counts is second.file.value_stats.null_counts
    assert hash(first) == hash(ENTRIES[0])
    assert repr(first) == repr(ENTRIES[0])
    assert pickle.loads(pickle.dumps(read)) == ENTRIES
    assert replace(first, bucket=9).bucket == 9
    with pytest.raises(AttributeError):
        first.bucket = 9  # type: ignore[misc]  # frozen


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("zstd", AvroCodec.ZSTANDARD),
        ("ZSTANDARD", AvroCodec.ZSTANDARD),
        ("none", AvroCodec.NULL),
        ("null", AvroCodec.NULL),
        ("snappy", AvroCodec.SNAPPY),
        (" deflate", AvroCodec.DEFLATE),
        ("bzip2", AvroCodec.BZIP2),
        ("xz", AvroCodec.XZ),
    ],
)
def test_the_option_names_the_codec(text: str, codec: AvroCodec) -> None:
    assert parse_codec(text) is codec
    data = encode_manifest(ENTRIES[:3], codec=text)
    assert decode_container(data, PATH).codec is codec
    assert decode_manifest(data, PATH) == ENTRIES[:3]


def test_an_unknown_codec_option_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"'lzo'.*expected zstd"):
        encode_manifest([], codec="lzo")


def test_an_unknown_codec_in_a_file_is_named_with_a_cure() -> None:
    data = encode_manifest([entry(1)], codec="bzip2").replace(b"\x0abzip2", b"\x0abrotl")
    with pytest.raises(UnsupportedFeatureError, match=r"manifest-1-0 .*'brotl'.*manifest\.compression"):
        decode_manifest(data, PATH)


def test_a_file_without_a_codec_is_not_compressed() -> None:
    schema = b'{"type":"record","name":"r","fields":[{"name":"a","type":"long"}]}'
    header = b"Obj\x01\x02" + encode_long(11) + b"avro.schema" + encode_long(len(schema)) + schema + b"\0" + b"s" * 16
    assert decode_records(header + b"\x04\x04\x0a\x0c" + b"s" * 16, PATH) == [{"a": 5}, {"a": 6}]


def test_a_header_in_sized_chunks_reads_too() -> None:
    schema = b'{"type":"record","name":"r","fields":[{"name":"a","type":"long"}]}'
    pair = encode_long(11) + b"avro.schema" + encode_long(len(schema)) + schema
    header = b"Obj\x01\x01" + encode_long(len(pair)) + pair + b"\0" + b"s" * 16
    assert decode_records(header + b"\x04\x04\x0a\x0c" + b"s" * 16, PATH) == [{"a": 5}, {"a": 6}]


def test_types_may_be_named_instead_of_repeated() -> None:
    schema: Any = json.loads(MANIFEST_SCHEMA)
    file = schema["fields"][5]["type"]["fields"]
    key_stats, value_stats = file[5], file[6]
    key_stats["type"]["namespace"] = "here"
    value_stats["type"] = "here.record__FILE__KEY_STATS"
    blocks = tuple(decode_container(encode_manifest(ENTRIES[:2]), PATH).blocks)
    assert decode_manifest(encode_container(json.dumps(schema), blocks), PATH) == ENTRIES[:2]


def test_fields_that_older_writers_lack_are_none_and_never_defaults() -> None:
    schema: Any = json.loads(MANIFEST_SCHEMA.replace(',"logicalType":"timestamp-millis"', ""))
    file = schema["fields"][5]["type"]
    file["fields"] = [field for field in file["fields"] if "default" not in field]
    plain = encode_container(json.dumps(schema), [])
    record: dict[str, Any] = {
        "_VERSION": 2,
        "_KIND": 1,
        "_PARTITION": EMPTY_ROW,
        "_BUCKET": 0,
        "_TOTAL_BUCKETS": -1,
        "_FILE": {
            "_FILE_NAME": "a",
            "_FILE_SIZE": 1,
            "_ROW_COUNT": 1,
            "_MIN_KEY": EMPTY_ROW,
            "_MAX_KEY": EMPTY_ROW,
            "_KEY_STATS": {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": None},
            "_VALUE_STATS": {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": []},
            "_MIN_SEQUENCE_NUMBER": 0,
            "_MAX_SEQUENCE_NUMBER": 0,
            "_SCHEMA_ID": 0,
            "_LEVEL": 0,
            "_EXTRA_FILES": [],
        },
    }
    assert decode_manifest(plain, PATH) == []
    stream = BytesIO()
    fastavro.writer(stream, schema, [record])
    (read,) = decode_manifest(stream.getvalue(), PATH)
    file_read = read.file
    assert read.kind is FileKind.DELETE
    assert file_read.key_stats == file_read.value_stats == EMPTY_STATS
    assert (file_read.value_stats_cols, file_read.file_source, file_read.delete_row_count) == (None, None, None)
    assert (file_read.creation_millis, file_read.write_cols, file_read.external_path) == (None, None, None)


def test_metas_come_back_with_and_without_row_ids() -> None:
    metas = [META, replace(META, min_row_id=0, max_row_id=99), replace(META, min_bucket=None, max_bucket=None)]
    assert decode_manifest_list(encode_manifest_list(metas), PATH) == metas


def test_sources_and_kinds_are_enums() -> None:
    (read,) = decode_manifest(encode_manifest([entry(3)]), PATH)
    assert read.kind is FileKind.ADD
    assert read.file.file_source is FileSource.APPEND


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it has no bytes"),
        (b"PAR1" + bytes(20), "does not start like an Avro file but with 5041523100000000"),
        (b'{"version": 3}', "does not start like an Avro file"),
        (b"Obj\x01", "it ends too early"),
        (b"Obj\x01\0" + bytes(16), "its header lacks 'avro.schema'"),
        (encode_container("{", []), "Expecting"),
        (encode_container('"long"', []), "not that of a record"),
        (encode_container('{"type":"record","name":"r"}', []), "not that of a record"),
        (encode_container('{"type":"record","name":"r","fields":[]}', []), "have no field _VERSION"),
        (encode_manifest_list([META]), "have no field _KIND"),
        (encode_container(MANIFEST_SCHEMA, [Block(1, b"\x02")]), "version 1, expected 2"),
        (encode_container(MANIFEST_SCHEMA, [Block(1, b"\x04\x0e")]), "it has 7 where"),
        (encode_container(MANIFEST_SCHEMA, [Block(1, b"\x04")]), "ends inside a record"),
        (encode_container(MANIFEST_SCHEMA, [Block(1, b"\x04\0\x01")]), "a length is negative"),
    ],
)
def test_what_is_no_manifest_says_what_is_wrong_and_what_to_do(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=r"manifest-1-0 is damaged: .* backup, or roll the table back") as raised:
        decode_manifest(data, PATH)
    assert said in str(raised.value)


def test_a_manifest_is_no_manifest_list() -> None:
    with pytest.raises(FormatError, match="have no field _FILE_NAME"):
        decode_manifest_list(encode_manifest([entry(1)]), PATH)


def test_more_bytes_than_records_are_refused() -> None:
    (block,) = decode_container(encode_manifest([entry(1)]), PATH).blocks
    with pytest.raises(FormatError, match="do not agree"):
        decode_manifest(encode_container(MANIFEST_SCHEMA, [Block(1, block.payload + b"\0")]), PATH)


@pytest.mark.parametrize("codec", AvroCodec)
def test_every_truncation_is_seen(codec: AvroCodec) -> None:
    data = encode_manifest([entry(1), entry(2)], codec=codec)
    header = len(encode_manifest([], codec=codec))
    for size in range(len(data)):
        if size != header:
            with pytest.raises(FormatError, match="manifest-1-0"):
                decode_manifest(data[:size], PATH)


@pytest.mark.parametrize("codec", AvroCodec)
def test_every_flipped_byte_is_an_error_of_ours_or_no_error(codec: AvroCodec) -> None:
    data = encode_manifest([entry(1), entry(2)], codec=codec)
    for place in range(len(data)):
        # One flip after the other where a codec notices most of them.
        for flip in FLIPS if codec is AvroCodec.NULL else (FLIPS[place % len(FLIPS)],):
            broken = bytearray(data)
            broken[place] ^= flip
            try:
                decode_manifest(bytes(broken), PATH)
            except (FormatError, UnsupportedFeatureError) as error:
                assert PATH in str(error)  # noqa: PT017 - a changed name still is a name


def test_numbers_of_entries_are_those_of_the_whole_entries() -> None:
    first = ENTRIES[7]
    odd = replace(
        first,
        kind=FileKind.DELETE,
        file=replace(
            first.file,
            extra_files=("x.index", "y.index"),
            creation_millis=None,
            delete_row_count=3,
            embedded_file_index=bytes(300),
            value_stats_cols=None,
            external_path="s3://elsewhere/x",
        ),
    )
    entries = [*ENTRIES[:50], odd, *ENTRIES[50:], odd, odd]
    data = encode_manifest(entries, codec="none")
    assert decode_file_numbers(data, PATH) == numbers_of(decode_manifest(data, PATH))
    for end in range(len(data) - 300, len(data), 5):
        with pytest.raises(FormatError):
            decode_file_numbers(data[:end], PATH)


def test_unused_fields_are_skipped_whatever_their_type() -> None:
    odd = {"type": "fixed", "name": "pair", "size": 2}
    extras = [
        {"name": "_A", "type": ["null", "long", {"type": "map", "values": "string"}]},
        {"name": "_B", "type": {"type": "array", "items": ["null", odd]}},
        {
            "name": "_C",
            "type": ["null", {"type": "record", "name": "inner", "fields": [{"name": "d", "type": "double"}]}],
        },
        {"name": "_D", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "_E", "type": "pair"},
        {"name": "_F", "type": "boolean"},
    ]
    schema = json.loads(MANIFEST_SCHEMA)
    schema["fields"] = [*extras[:3], *schema["fields"], *extras[3:]]
    records = [
        {
            **record,
            "_A": (None, number, {"k": "v" * number})[number % 3],
            "_B": [None, b"xy"] * number,
            "_C": {"d": 0.5} if number % 2 else None,
            "_D": 10**number,
            "_E": b"zz",
            "_F": True,
        }
        for number, record in enumerate(fastavro.reader(BytesIO(encode_manifest(ENTRIES[:12]))))
    ]
    output = BytesIO()
    fastavro.writer(output, schema, records)
    assert decode_file_numbers(output.getvalue(), PATH) == numbers_of(ENTRIES[:12])
    assert decode_manifest(output.getvalue(), PATH) == ENTRIES[:12]
