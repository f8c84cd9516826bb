import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.consumer import decode_consumer, encode_consumer
from penstock.format.schema import TableSchema, decode_schema, encode_schema
from penstock.format.snapshot import CommitKind, Snapshot, decode_hint, decode_snapshot, encode_hint, encode_snapshot
from penstock.format.tag import Tag, decode_tag, encode_tag
from penstock.format.types.data_types import STRING, DataField

SCHEMA = {
    "version": 3,
    "id": 7,
    "fields": [{"id": 0, "name": "größe", "type": "STRING", "description": 'a "quoted"\nword'}],
    "highestFieldId": 4,
    "partitionKeys": [],
    "primaryKeys": [],
    "options": {"bucket": "-1"},
    "comment": "",
    "timeMillis": 12,
}
SNAPSHOT = {
    "version": 3,
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "manifest-list-a-0",
    "deltaManifestList": "manifest-list-a-1",
    "commitUser": "u",
    "commitIdentifier": 9223372036854775807,
    "commitKind": "APPEND",
    "timeMillis": 1795231757168,
    "totalRecordCount": 10,
    "deltaRecordCount": 10,
}
DECODERS = {
    "schema": (decode_schema, SCHEMA),
    "snapshot": (decode_snapshot, SNAPSHOT),
    "tag": (decode_tag, SNAPSHOT),
    "consumer": (decode_consumer, {"nextSnapshot": 3}),
}
every_decoder = pytest.mark.parametrize(("decode", "values"), DECODERS.values(), ids=DECODERS.keys())


def as_bytes(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode()


# All files


@pytest.mark.parametrize("decode", [decode for decode, _ in DECODERS.values()], ids=DECODERS.keys())
@pytest.mark.parametrize(
    "data", [b"", b" \n", b"\0\0\0\0", b"null", b"[]", b"7", b"\xff{}", b'{"id": NaN}', b"[" * 100_000]
)
def test_bytes_that_are_no_json_object_are_refused_naming_the_path(
    decode: Callable[[bytes, str], object], data: bytes
) -> None:
    with pytest.raises(FormatError, match=r"'/t/x-1' .*restore"):
        decode(data, "/t/x-1")


@every_decoder
def test_every_truncation_is_refused_naming_the_path(
    decode: Callable[[bytes, str], object], values: dict[str, Any]
) -> None:
    whole = as_bytes(values)
    for size in range(len(whole)):
        with pytest.raises(FormatError, match="'/t/x-1'"):
            decode(whole[:size], "/t/x-1")


@every_decoder
def test_every_required_key_is_missed_by_name(decode: Callable[[bytes, str], object], values: dict[str, Any]) -> None:
    optional = {"version", "comment", "timeMillis"} if decode is decode_schema else {"version"}
    if decode in {decode_snapshot, decode_tag}:
        optional |= {"totalRecordCount", "deltaRecordCount"}  # null in the oldest files
    for key in values:
        rest = as_bytes({other: value for other, value in values.items() if other != key})
        if key in optional:
            decode(rest, "p")
        else:
            with pytest.raises(FormatError, match=key):
                decode(rest, "p")


@every_decoder
def test_every_key_of_the_wrong_type_is_refused_by_name(
    decode: Callable[[bytes, str], object], values: dict[str, Any]
) -> None:
    for key in values:
        with pytest.raises(FormatError, match=key):
            decode(as_bytes(values | {key: {"a": []} if key == "options" else 1.5}), "p")


@every_decoder
def test_integers_beyond_64_bits_are_refused(decode: Callable[[bytes, str], object], values: dict[str, Any]) -> None:
    key = "nextSnapshot" if decode is decode_consumer else "id"
    with pytest.raises(FormatError, match=key):
        decode(as_bytes(values | {key: 2**63}), "p")


# Schemas


def test_schema_is_read_whole_and_written_back_equal() -> None:
    schema = decode_schema(as_bytes(SCHEMA), "p")
    assert schema == TableSchema(
        id=7,
        fields=(DataField(id=0, name="größe", type=STRING, description='a "quoted"\nword'),),
        highest_field_id=4,
        options=(("bucket", "-1"),),
        comment="",
        time_millis=12,
        version=3,
    )
    assert json.loads(encode_schema(schema)) == SCHEMA
    assert "größe".encode() in encode_schema(schema)


@pytest.mark.parametrize(
    ("version", "stored", "seen"),
    [
        (None, {}, {"bucket": "1", "file.format": "orc"}),
        (1, {}, {"bucket": "1", "file.format": "orc"}),
        (1, {"bucket": "-1"}, {"bucket": "-1", "file.format": "orc"}),
        (1, {"file.format": "avro"}, {"file.format": "avro", "bucket": "1"}),
        (2, {}, {"file.format": "orc"}),
        (2, {"file.format": "parquet"}, {"file.format": "parquet"}),
        (3, {}, {}),
    ],
)
def test_old_schema_versions_imply_their_defaults(
    version: int | None, stored: dict[str, str], seen: dict[str, str]
) -> None:
    values = SCHEMA | {"options": stored, "version": version}
    if version is None:
        del values["version"]
    schema = decode_schema(as_bytes(values), "p")
    assert dict(schema.options) == seen
    assert schema.version == (version or 1)


def test_a_schema_that_was_decoded_before_is_not_decoded_again() -> None:
    """Each use of a table reads its schema: those of wide tables take long."""
    first = decode_schema(as_bytes(SCHEMA), "schema-7")
    assert decode_schema(as_bytes(SCHEMA), "schema-7") is first
    assert decode_schema(as_bytes({**SCHEMA, "timeMillis": 13}), "schema-7").time_millis == 13


def test_schema_without_optional_keys_gets_their_defaults() -> None:
    values = {key: value for key, value in SCHEMA.items() if key not in {"comment", "timeMillis"}}
    schema = decode_schema(as_bytes(values), "p")
    assert (schema.comment, schema.time_millis) == (None, 0)
    assert "comment" not in json.loads(encode_schema(schema))


def test_unknown_schema_keys_are_listed_and_null_options_are_ignored() -> None:
    fields = [{"id": 0, "name": "a", "type": "INT", "codec": "x"}]
    values = SCHEMA | {"later": [1], "fields": fields, "options": {"a": None, "b": 5, "c": True}}
    schema = decode_schema(as_bytes(values), "p")
    assert schema.options == (("b", "5"), ("c", "true"))
    assert schema.unknown_keys == ("later", "a.codec")
    assert decode_schema(as_bytes(SCHEMA), "p").unknown_keys == ()


@pytest.mark.parametrize(("decode", "values"), [(decode_schema, SCHEMA), (decode_snapshot, SNAPSHOT)])
def test_a_newer_version_of_the_format_is_refused(decode: Callable[..., object], values: dict[str, object]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"file '/t/f' has version 4 .* up to 3: update Penstock"):
        decode(as_bytes(values | {"version": 4}), "/t/f")


@pytest.mark.parametrize("data_type", ["BIGNT", {"type": "ARRAY"}, None, {"type": "ROW", "fields": [1]}])
def test_unreadable_column_type_is_refused_naming_the_path(data_type: object) -> None:
    values = SCHEMA | {"fields": [{"id": 0, "name": "a", "type": data_type}]}
    with pytest.raises(FormatError, match=r"'/t/schema/schema-7' has a column that cannot be read"):
        decode_schema(as_bytes(values), "/t/schema/schema-7")


def test_bottomless_type_is_refused_rather_than_crashing() -> None:
    text = '{"type":"ARRAY","element":' * 3_000 + '"INT"' + "}" * 3_000
    data = as_bytes(SCHEMA | {"fields": [{"id": 0, "name": "a", "type": "@"}]}).replace(b'"@"', text.encode())
    with pytest.raises(FormatError, match="p"):
        decode_schema(data, "p")


# Snapshots


def test_snapshot_is_read_whole_and_written_back_equal() -> None:
    snapshot = decode_snapshot(as_bytes(SNAPSHOT), "p")
    assert snapshot == Snapshot(
        id=1,
        schema_id=0,
        base_manifest_list="manifest-list-a-0",
        delta_manifest_list="manifest-list-a-1",
        commit_user="u",
        commit_identifier=2**63 - 1,
        commit_kind=CommitKind.APPEND,
        time_millis=1795231757168,
        total_record_count=10,
        delta_record_count=10,
    )
    assert json.loads(encode_snapshot(snapshot)) == SNAPSHOT
    assert list(json.loads(encode_snapshot(snapshot))) == list(SNAPSHOT)


def test_every_optional_key_and_every_unknown_one_is_kept() -> None:
    values = SNAPSHOT | {
        "uuid": "x",
        "baseManifestListSize": 1,
        "deltaManifestListSize": 2,
        "changelogManifestList": "c",
        "changelogManifestListSize": 3,
        "indexManifest": "i",
        "writerVersion": "w",
        "changelogRecordCount": 0,
        "watermark": -(2**63),
        "statistics": "s",
        "properties": {"b": "1", "a": "2"},
        "nextRowId": 0,
        "operation": "WRITE",
        "logOffsets": {},
        "later": {"deep": [1, None, {"x": 1.25}]},
        "nothing": None,
    }
    snapshot = decode_snapshot(as_bytes(values), "p")
    assert snapshot.watermark == -(2**63)
    assert snapshot.properties == (("b", "1"), ("a", "2"))
    assert [key for key, _ in snapshot.extra] == ["logOffsets", "later", "nothing"]
    assert json.loads(encode_snapshot(snapshot)) == values


def test_null_means_absent() -> None:
    values = SNAPSHOT | {"changelogManifestList": None, "watermark": None, "properties": None, "uuid": None}
    snapshot = decode_snapshot(as_bytes(values), "p")
    assert snapshot == decode_snapshot(as_bytes(SNAPSHOT), "p")
    assert json.loads(encode_snapshot(snapshot)) == SNAPSHOT


def test_unknown_commit_kind_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match=r"unknown commitKind 'MERGE'"):
        decode_snapshot(as_bytes(SNAPSHOT | {"commitKind": "MERGE"}), "p")


# Tags


def test_tag_without_retention_is_the_snapshot_file() -> None:
    data = as_bytes(SNAPSHOT)
    tag = decode_tag(data, "p")
    assert tag == Tag(snapshot=decode_snapshot(data, "p"))
    assert encode_tag(tag) == encode_snapshot(tag.snapshot)


def test_tag_with_retention_keeps_time_to_the_nanosecond() -> None:
    created, retained = [2026, 11, 21, 4, 2, 14, 791952902], "129600.000000001"
    data = as_bytes(SNAPSHOT | {"tagCreateTime": created, "tagTimeRetained": 0}).replace(
        b'"tagTimeRetained": 0', f'"tagTimeRetained": {retained}'.encode()
    )
    tag = decode_tag(data, "p")
    assert tag.create_time == 1_795_233_734 * 10**9 + 791952902
    assert tag.retained_seconds == Decimal(retained)
    assert tag.snapshot.extra == ()
    written = encode_tag(tag)
    assert f'"tagTimeRetained" : {retained}'.encode() in written
    assert decode_tag(written, "p") == tag


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ([1969, 12, 31, 23, 59], [1969, 12, 31, 23, 59]),
        ([2026, 1, 2, 3, 4, 5], [2026, 1, 2, 3, 4, 5]),
        ([2026, 1, 2, 3, 4, 0, 6], [2026, 1, 2, 3, 4, 0, 6]),
        ([2026, 1, 2, 3, 4, 5, 0], [2026, 1, 2, 3, 4, 5]),
        ([2026, 1, 2, 3, 4, 0, 0], [2026, 1, 2, 3, 4]),
    ],
)
def test_tag_times_leave_zeros_at_the_end_off(read: list[int], written: list[int]) -> None:
    tag = decode_tag(as_bytes(SNAPSHOT | {"tagCreateTime": read, "tagTimeRetained": 60}), "p")
    assert json.loads(encode_tag(tag))["tagCreateTime"] == written


@pytest.mark.parametrize(
    "time", [[], [2026, 1, 1], [2026, 13, 1, 0, 0], [2026, 1, 1, 0, 0, 0, 0, 0], ["2026"] * 5, "x"]
)
def test_impossible_tag_time_is_refused_by_name(time: object) -> None:
    with pytest.raises(FormatError, match="tagCreateTime"):
        decode_tag(as_bytes(SNAPSHOT | {"tagCreateTime": time}), "p")


@pytest.mark.parametrize("retained", ["1d", -1, 10**18, True, []])
def test_impossible_tag_retention_is_refused_by_name(retained: object) -> None:
    with pytest.raises(FormatError, match="tagTimeRetained"):
        decode_tag(as_bytes(SNAPSHOT | {"tagTimeRetained": retained}), "p")


# Consumers and hints


def test_consumer_holds_the_next_snapshot() -> None:
    assert decode_consumer(b'{"nextSnapshot":5}', "p") == 5
    assert encode_consumer(5) == b'{\n  "nextSnapshot" : 5\n}'


def test_hint_is_digits_without_a_line_break() -> None:
    assert encode_hint(12) == b"12"
    assert decode_hint(b"12") == 12
    assert decode_hint(b" 12\n") == 12


@pytest.mark.parametrize("data", [b"", b"x", b"-1", b"1.5", b"\xff", b"\xc2\xb2", b"1" * 20, b"1 2"])
def test_unusable_hint_counts_as_missing(data: bytes) -> None:
    assert decode_hint(data) is None
