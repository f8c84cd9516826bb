"""Manifests and lists come back under every codec and from every writer's schema; damage raises our own errors only."""

import json
from collections.abc import Callable
from io import BytesIO
from itertools import pairwise
from typing import Any

import fastavro
from hypothesis import given
from hypothesis import strategies as st
from tests.support import strategies_manifest

from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.avro.container import AvroCodec, decode_container, encode_container
from penstock.format.avro.records import decode_records
from penstock.format.avro.schemas import MANIFEST_SCHEMA
from penstock.format.manifest.entry import (
    DataFileMeta,
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    SimpleStats,
    merge_entries,
)
from penstock.format.manifest.files import (
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)

ENTRIES = st.lists(strategies_manifest.manifest_entries(), max_size=5)
CODECS = st.sampled_from(AvroCodec)

# Fields that no version has, of every type that Avro knows, with a value each.
EXTRAS: list[tuple[Any, Any]] = [
    ("int", 7),
    ("boolean", True),
    ("float", 1.5),
    ("double", 2.5),
    ("null", None),
    (["null", "string"], "text"),
    (["string", "long", "null"], -5),
    ({"type": "array", "items": {"type": "array", "items": "bytes"}}, [[b"x", b""], []]),
    ({"type": "map", "values": ["null", "long"]}, {"k": 1, "l": None}),
    ({"type": "fixed", "name": "four", "size": 4}, b"four"),
    ({"type": "enum", "name": "side", "symbols": ["LEFT", "RIGHT"]}, "RIGHT"),
    ({"type": "record", "name": "one", "fields": [{"name": "a", "type": "long"}]}, {"a": 1}),
]


@given(ENTRIES, CODECS, st.integers(1, 9))
def test_manifests_come_back(entries: list[ManifestEntry], codec: AvroCodec, level: int) -> None:
    data = encode_manifest(entries, codec=codec, level=level)
    assert decode_manifest(data, "manifest-x") == entries
    assert encode_manifest(entries, codec=codec, level=level) == data


@given(st.lists(strategies_manifest.manifest_metas(), max_size=5), CODECS)
def test_manifest_lists_come_back(metas: list[ManifestFileMeta], codec: AvroCodec) -> None:
    assert decode_manifest_list(encode_manifest_list(metas, codec=codec), "manifest-list-x") == metas


# The same bytes, but timestamps of any size are read as numbers.
PLAIN_SCHEMA = MANIFEST_SCHEMA.replace(',"logicalType":"timestamp-millis"', "")


def seen_by_fastavro(entries: list[ManifestEntry]) -> list[Any]:
    blocks = tuple(decode_container(encode_manifest(entries), "x").blocks)
    return list(fastavro.reader(BytesIO(encode_container(PLAIN_SCHEMA, blocks))))


@given(ENTRIES)
def test_another_reader_sees_the_same_records(entries: list[ManifestEntry]) -> None:
    for entry, record in zip(entries, seen_by_fastavro(entries), strict=True):
        assert (record["_KIND"], record["_PARTITION"], record["_BUCKET"]) == (entry.kind, entry.partition, entry.bucket)
        for attribute in STORED:
            ours, theirs = getattr(entry.file, attribute), record["_FILE"][avro_name(attribute)]
            if isinstance(ours, SimpleStats):
                assert list(ours.null_counts) == theirs["_NULL_COUNTS"]
                assert (ours.min_values, ours.max_values) == (theirs["_MIN_VALUES"], theirs["_MAX_VALUES"])
            else:
                assert (list(ours) if isinstance(ours, tuple) else ours) == theirs, attribute


# The flag is derived from the schema of the manifest.
STORED = [attribute for attribute in DataFileMeta.__slots__ if attribute != "is_of_newer_release"]


def avro_name(attribute: str) -> str:
    return {"creation_millis": "_CREATION_TIME"}.get(attribute, f"_{attribute.upper()}")


@st.composite
def other_schemas(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    """Java's schema without logical types, its fields shuffled, some nullable ones gone, unknown ones added."""
    schema: Any = json.loads(PLAIN_SCHEMA)
    extras = {
        f"extra{i}": extra for i, extra in enumerate(draw(st.lists(st.sampled_from(EXTRAS), max_size=4, unique_by=str)))
    }
    file = next(field for field in schema["fields"] if field["name"] == "_FILE")["type"]
    kept = [field for field in file["fields"] if "default" not in field or draw(st.booleans())]
    new = [{"name": name, "type": extra[0]} for name, extra in extras.items()]
    file["fields"] = draw(st.permutations(kept + new))
    schema["fields"] = draw(st.permutations(schema["fields"]))
    return schema, {name: extra[1] for name, extra in extras.items()}


@given(ENTRIES, other_schemas())
def test_any_order_and_unknown_fields_read_by_name(
    entries: list[ManifestEntry], other: tuple[Any, dict[str, Any]]
) -> None:
    schema, extras = other
    file_type = next(field for field in schema["fields"] if field["name"] == "_FILE")["type"]
    names = {field["name"] for field in file_type["fields"]}
    records = seen_by_fastavro(entries)
    for record in records:
        record["_FILE"] |= extras
    stream = BytesIO()
    fastavro.writer(stream, schema, records)
    for ours_again, entry in zip(decode_manifest(stream.getvalue(), "x"), entries, strict=True):
        for attribute in STORED:
            expected = getattr(entry.file, attribute) if avro_name(attribute) in names else None
            assert getattr(ours_again.file, attribute) == expected, attribute
        assert ours_again.file.is_of_newer_release == bool(names - {avro_name(each) for each in STORED})
        assert (ours_again.kind, ours_again.partition) == (entry.kind, entry.partition)
        assert (ours_again.bucket, ours_again.total_buckets) == (entry.bucket, entry.total_buckets)
    assert [record["_FILE"] is not None for record in decode_records(stream.getvalue(), "x")] == [True] * len(entries)


def damages(data: bytes, draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


@given(ENTRIES, CODECS, st.data())
def test_damaged_manifests_raise_errors_that_name_the_path(
    entries: list[ManifestEntry], codec: AvroCodec, data: st.DataObject
) -> None:
    damaged = damages(encode_manifest(entries, codec=codec), data.draw)
    for decode in (decode_manifest, decode_manifest_list, decode_records):
        try:
            decode(damaged, "manifest/m-1")
        except (FormatError, UnsupportedFeatureError) as error:
            assert "manifest/m-1" in str(error)  # noqa: PT017 - changed bytes may still be a manifest


@given(st.lists(strategies_manifest.manifest_entries(), min_size=1, max_size=5), CODECS, st.data())
def test_every_cut_is_seen(entries: list[ManifestEntry], codec: AvroCodec, data: st.DataObject) -> None:
    whole = encode_manifest(entries, codec=codec)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        # Behind the header a file may end: it then is one without records.
        assert decode_manifest(cut, "m") == []
    except FormatError as error:
        assert "m is damaged" in str(error)  # noqa: PT017 - the one case above


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40), st.lists(st.integers(0, 40), max_size=3))
def test_merging_in_parts_is_merging_at_once(steps: list[tuple[int, int]], cuts: list[int]) -> None:
    live: set[str] = set()
    gone: set[str] = set()
    entries = []
    for number, bucket in steps:
        # Names are never used twice, as in real tables.
        name = f"{number}-{bucket}"
        if name in live:
            live.remove(name)
            gone.add(name)
            kind = FileKind.DELETE
        elif name not in gone:
            live.add(name)
            kind = FileKind.ADD
        else:
            continue
        file = DataFileMeta(
            file_name=name, file_size=1, row_count=1, min_sequence_number=0, max_sequence_number=0, schema_id=0
        )
        entries.append(ManifestEntry(kind=kind, partition=bytes(12), bucket=bucket, total_buckets=4, file=file))
    at_once = merge_entries(entries)
    assert {entry.file.file_name for entry in at_once.values()} == live
    bounds = [0, *sorted(cut for cut in cuts if cut <= len(entries)), len(entries)]
    parts = [merge_entries(entries[start:end]) for start, end in pairwise(bounds)]
    assert merge_entries(entry for part in parts for entry in part.values()) == at_once
