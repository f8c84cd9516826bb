"""Manifests decoded by columns equal those decoded entry by entry, or are not decoded at all."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_spec_binary_manifest import PLAIN_SCHEMA, other_schemas, seen_by_fastavro
from tests.support import strategies_manifest

from penstock.errors import FormatError
from penstock.format.avro import columns as avro_columns
from penstock.format.avro.columns import Even, Records
from penstock.format.avro.container import AvroCodec, Block, decode_container, encode_container
from penstock.format.avro.values import encode_bytes, encode_long
from penstock.format.manifest import column_steps, columns
from penstock.format.manifest.columns import ManifestColumns, columns_of_entries, decode_manifest_columns
from penstock.format.manifest.entry import EMPTY_ROW, FileKind, ManifestEntry
from penstock.format.manifest.files import _encode_entry, decode_manifest, encode_manifest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from penstock.format.avro.columns import Cursor

ARRAYS = (
    "is_delete",
    "bucket",
    "total_buckets",
    "file_size",
    "row_count",
    "schema_id",
    "created_millis",
    "name_hash",
    "may_have_index",
    "is_external",
    "level",
)
MANIFESTS = sorted((Path(__file__).parents[1] / "golden" / "data" / "warehouse").glob("*.db/*/manifest/manifest-*"))


@pytest.fixture(autouse=True, scope="module", params=[2, 128], ids=["shapes", "few-shapes"])
def _small_manifests_have_columns(request: Any) -> Any:
    patch = pytest.MonkeyPatch()
    patch.setattr(columns, "MIN_RECORDS", 1)
    patch.setattr(column_steps, "_MIN_ALIKE", request.param)
    patch.setattr(columns, "_GROUP_RECORDS", 20 * request.param)
    yield
    patch.undo()


def assert_equal(decoded: ManifestColumns, entries: list[ManifestEntry]) -> None:
    """The columns are those of the entries, and the entries come back, all of them or some."""
    expected = columns_of_entries(entries)
    for name in ARRAYS:
        assert getattr(decoded, name).tolist() == getattr(expected, name).tolist(), name
    assert [decoded.partitions[code] for code in decoded.partition] == [entry.partition for entry in entries]
    assert [decoded.layouts[code] for code in decoded.layout] == [expected.layouts[code] for code in expected.layout]
    assert decoded.partitions == expected.partitions
    assert decoded.entries() == entries
    names = [entry.file.file_name.encode() for entry in entries]
    assert decoded.names(np.arange(0, len(entries), 3)).tolist() == names[::3]
    assert decoded.entries(np.arange(1, len(entries), 2)) == entries[1::2]


def check(data: bytes, *, is_known: bool | None = None) -> None:
    """Both decoders agree on a manifest."""
    decoded = decode_manifest_columns(data, "manifest-x")
    if is_known is not None:
        assert (decoded is not None) == is_known
    if decoded is not None:
        assert_equal(decoded, decode_manifest(data, "manifest-x"))


def as_usual(entry: ManifestEntry) -> ManifestEntry:
    """An entry with the numbers, names and partitions of real ones, which columns represent."""

    def short(number: int | None) -> int | None:
        return None if number is None else number % 2**50

    def name(text: str) -> str:
        return f"data-{text.encode().hex()[:200]}"

    file = entry.file
    numbers = ("file_size", "row_count", "min_sequence_number", "max_sequence_number", "schema_id")
    nullable = ("creation_millis", "delete_row_count", "first_row_id")
    file = replace(
        file,
        **{each: short(getattr(file, each)) for each in (*numbers, *nullable)},
        file_name=name(file.file_name),
        extra_files=tuple(map(name, file.extra_files)),
        external_path=file.external_path and name(file.external_path),
    )
    return replace(entry, file=file, partition=EMPTY_ROW[:4] + entry.partition[4:])


ANY = strategies_manifest.manifest_entries()
USUAL = ANY.map(as_usual)


@given(st.lists(ANY, min_size=1, max_size=8), st.sampled_from(AvroCodec))
def test_any_entries_come_back(entries: list[ManifestEntry], codec: AvroCodec) -> None:
    check(encode_manifest(entries, codec=codec))
    check(encode_manifest(list(map(as_usual, entries)), codec=codec), is_known=True)


@given(st.lists(USUAL, min_size=1, max_size=4), st.sampled_from((50, 200)), st.integers(1, 500))
def test_many_entries_in_blocks_of_any_size_come_back(entries: list[ManifestEntry], times: int, size: int) -> None:
    many = [replace(entry, bucket=number) for number, entry in enumerate(entries * times)]
    records = list(map(_encode_entry, many))
    blocks = (
        Block(len(part), b"".join(part))
        for part in (records[start : start + size] for start in range(0, len(records), size))
    )
    schema = decode_container(encode_manifest(many), "x").schema
    check(encode_container(schema, blocks), is_known=True)


@given(st.lists(ANY, min_size=1, max_size=5), other_schemas())
def test_manifests_of_other_releases_come_back(entries: list[ManifestEntry], other: tuple[Any, dict[str, Any]]) -> None:
    schema, extras = other
    first = {"_VERSION": 0, "_KIND": 1, "_PARTITION": 2}
    schema["fields"].sort(key=lambda field: first.get(field["name"], 3))
    records = seen_by_fastavro(entries)
    for record in records:
        record["_FILE"] |= extras
    stream = BytesIO()
    fastavro.writer(stream, schema, records)
    check(stream.getvalue())


def test_manifests_without_the_newest_fields_and_with_unknown_ones_have_columns() -> None:
    schema: Any = json.loads(PLAIN_SCHEMA)
    file = next(field for field in schema["fields"] if field["name"] == "_FILE")["type"]
    file["fields"] = [field for field in file["fields"] if "default" not in field]
    file["fields"].append({"name": "_NEW", "type": ["null", {"type": "array", "items": ["null", "long"]}]})
    stream = BytesIO()
    records = seen_by_fastavro([usual(number) for number in range(300)])
    for number, record in enumerate(records):
        record["_FILE"]["_NEW"] = [number, None] if number % 3 else None
    fastavro.writer(stream, schema, records)
    decoded = decode_manifest_columns(stream.getvalue(), "x")
    assert decoded is not None
    assert_equal(decoded, decode_manifest(stream.getvalue(), "x"))
    assert decoded.entries()[0].file.is_of_newer_release


def usual(number: int, **values: Any) -> ManifestEntry:
    from tests.unit.format.manifest.test_manifest import entry

    made = entry(number)
    return replace(made, file=replace(made.file, **values))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: f"{path.parts[-3]}-{path.name[-10:]}")
def test_manifests_of_real_engines_have_columns(path: Path) -> None:
    if not path.name.startswith("manifest-list"):
        check(path.read_bytes(), is_known=True)


def assert_decoded_alike(data: bytes) -> None:
    """Check that damaged entries are refused by both decoders, or read alike."""
    decoded = decode_manifest_columns(data, "x")
    try:
        expected = decode_manifest(data, "x")
    except FormatError:
        assert decoded is None
    else:
        if decoded is not None:
            assert_equal(decoded, expected)


@given(
    st.lists(USUAL, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(-1, 2),
)
def test_damaged_blocks_have_no_columns_or_equal_entries(
    entries: list[ManifestEntry], changes: list[tuple[int, int]], more: int
) -> None:
    container = decode_container(encode_manifest(entries, codec=AvroCodec.NULL), "x")
    (block,) = container.blocks
    payload = bytearray(block.payload)
    for place, value in changes:
        payload[place % len(payload)] = value
    data = encode_container(
        container.schema, [Block(max(block.record_count + more, 1), bytes(payload))], codec=AvroCodec.NULL
    )
    assert_decoded_alike(data)


def test_a_damaged_schema_has_no_columns_or_equal_entries() -> None:
    data = encode_manifest([usual(number) for number in range(3)])
    begin, end = data.index(b'{"type"'), data.rindex(b"}]}") + 3
    for key in re.finditer(rb'"(name|type|fields|items|default|logicalType)"', data[:end]):
        place = max(begin, key.start() + 1)
        assert_decoded_alike(data[:place] + b"~" + data[place + 1 :])


def test_bytes_that_look_like_the_start_of_an_entry_are_not_taken_for_one() -> None:
    head = b"\x04\x00\x38" + usual(0).partition[:4]
    entries = [
        replace(usual(number, embedded_file_index=head * (number % 3)), kind=FileKind(number % 2))
        for number in range(500)
    ]
    check(encode_manifest(entries), is_known=True)


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_last_entry_that_is_cut_off_is_left_to_the_reference(cut: int) -> None:
    start = usual(0).partition
    start = start[:12] + b"\x04\x00\x38" + start[:4] + start[19:]
    many = [usual(1, file_name=f"data-{n:06d}.parquet", row_count=2_000 + n) for n in range(400)]
    many = [replace(entry, partition=start) for entry in many]
    payload = b"".join(map(_encode_entry, many))
    schema = decode_container(encode_manifest(many[:1]), "m").schema
    data = encode_container(schema, [Block(400, payload[:-cut])], codec=AvroCodec.ZSTANDARD)
    with pytest.raises(FormatError):
        decode_manifest(data, "m")
    assert decode_manifest_columns(data, "m") is None


def test_an_entry_that_ends_in_a_block_of_no_entries_is_left_to_the_reference() -> None:
    payload = b"".join(_encode_entry(usual(number)) for number in range(300))
    schema = decode_container(encode_manifest([usual(0)]), "x").schema
    data = encode_container(schema, [Block(300, payload[:-40])], codec=AvroCodec.NULL)
    data += encode_long(0) + encode_bytes(payload[-40:]) + data[-16:]
    with pytest.raises(FormatError, match="ends inside a record"):
        decode_manifest(data, "x")
    check(data, is_known=False)


def test_entries_of_several_shapes_come_back_in_their_order() -> None:
    entries = [
        replace(
            usual(
                number,
                file_name=f"data-{'0' * (number % 3)}{number:06d}.{'orc' if number % 5 else 'parquet'}",
                row_count=2 ** (number % 50),
                creation_millis=None if number % 7 == 0 else 1_700_000_000_000 + number,
                extra_files=("x.index",) * (number % 11 == 0),
                embedded_file_index=b"\x02" * (number % 2) or None,
            ),
            kind=FileKind(number % 13 == 0),
            bucket=number % 100,
        )
        for number in range(3_000)
    ]
    check(encode_manifest(entries), is_known=True)


def test_what_a_visit_returns_is_in_the_order_of_the_entries() -> None:
    entries = [replace(usual(number), bucket=number % 5) for number in range(5_000)]
    groups: list[int] = []

    def visit(files: ManifestColumns, cursor: Cursor) -> Any:
        groups.append(len(files))
        assert len(cursor.positions) == len(files)
        return files.bucket * 2

    decoded = decode_manifest_columns(encode_manifest(entries), "x", visit=visit)
    assert decoded is not None
    assert np.concatenate(decoded.visited).tolist() == [2 * entry.bucket for entry in entries]
    assert len(groups) > 1


def in_blocks(records: list[bytes], size: int, codec: AvroCodec = AvroCodec.ZSTANDARD) -> bytes:
    schema = decode_container(encode_manifest([usual(0)]), "x").schema
    parts = [records[start : start + size] for start in range(0, len(records), size)]
    return encode_container(schema, [Block(len(part), b"".join(part)) for part in parts], codec=codec)


def of_one_shape(count: int) -> list[ManifestEntry]:
    return [
        replace(usual(1, file_name=f"data-{number:06d}.parquet", row_count=2_000 + number % 5_000), bucket=number % 50)
        for number in range(count)
    ]


def step_of(cursor: Cursor) -> int:
    return cursor.positions.step if isinstance(cursor.positions, Even) else 0


def test_groups_of_entries_of_one_shape_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = of_one_shape(6_000)
    records = list(map(_encode_entry, entries))
    assert len({len(record) for record in records}) == 1
    monkeypatch.setattr(columns, "_GROUP_RECORDS", 500)
    # A shape of as many bytes that is known does not matter.
    other = [replace(entry, file=replace(entry.file, schema_id=3)) for entry in entries[:300]]
    assert decode_manifest_columns(encode_manifest(other), "x") is not None
    steps: list[int] = []

    def visit(files: ManifestColumns, cursor: Cursor) -> Any:
        steps.append(step_of(cursor))
        before = cursor.positions[:]
        low, sizes = cursor.spans()
        assert (low[:] - sizes - before == low[0] - sizes[0] - before[0]).all()
        return files.bucket

    data = in_blocks(records, 100)
    decoded = decode_manifest_columns(data, "x", visit=visit)
    assert decoded is not None
    assert np.concatenate(decoded.visited).tolist() == [entry.bucket for entry in entries]
    assert_equal(decoded, decode_manifest(data, "x"))
    # The first group is searched for shapes, if no other manifest had this one.
    assert steps[1:] == [len(records[0])] * 11
    assert [step_of(group.cursor()) for group in decoded.statistics(np.arange(6_000))] == steps
    assert [step_of(group.cursor()) for group in decoded.statistics(np.arange(1, 5_999, 1_000))] == steps[::2]


@given(st.integers(0, 149), st.integers(0, 10_000), st.integers(0, 255), st.sampled_from([1, 7, 100]))
def test_one_other_byte_in_a_group_of_one_shape_is_seen(number: int, place: int, value: int, size: int) -> None:
    check(in_blocks(SAME, size, AvroCodec.NULL), is_known=True)
    records = list(SAME)
    record = bytearray(records[number])
    record[place % len(record)] = value
    records[number] = bytes(record)
    data = in_blocks(records, size, AvroCodec.NULL)
    assert_decoded_alike(data)


SAME = list(map(_encode_entry, of_one_shape(150)))


@given(st.integers(1, 40), st.integers(1, 300), st.integers(0, 9))
def test_bits_that_records_have_in_common_are_found_in_any_number_of_them(width: int, count: int, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8) | (seed << 2) & ~(seed << 5) & 0xFF
    data[:, width // 2] = seed
    records = Records.joined([data.tobytes()])
    low, high = records.common_bits(width)
    assert (low == np.bitwise_and.reduce(data)).all()
    assert (high == np.bitwise_or.reduce(data)).all()
    places = Even(width // 2, width, count)
    assert len(records.distinct(places, 1)) == 1
    # More bytes than the record has, and uneven places, are not compared.
    assert records.distinct(places, width) is places or width == 1
    assert len(records.distinct(places[:], 1)) == count


@pytest.mark.parametrize("codec", AvroCodec)
def test_blocks_of_any_size_and_codec_come_back(codec: AvroCodec, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [*of_one_shape(300), usual(1, embedded_file_index=bytes(100_000)), *of_one_shape(200)]
    monkeypatch.setattr(columns, "_GROUP_BYTES", 70_000)
    check(in_blocks(list(map(_encode_entry, entries)), 60, codec), is_known=True)


def recompressed(data: bytes, change: Any) -> bytes:
    """A manifest of one block in zstd, whose compressed bytes are changed."""
    container = decode_container(data, "x")
    (block,) = container.blocks
    empty = encode_container(container.schema, [])
    return empty + encode_long(block.record_count) + encode_bytes(change(block.payload)) + empty[-16:]


def streamed(payload: bytes) -> bytes:
    """As Java writes it: without the uncompressed size."""
    compressor = zstd.ZstdCompressor(1)
    return compressor.compress(payload) + compressor.flush()


@pytest.mark.parametrize(
    ("change", "is_known"),
    [
        (streamed, True),
        (lambda payload: zstd.compress(payload[:99]) + streamed(payload[99:]), True),
        (lambda payload: zstd.compress(b"") * 9 + zstd.compress(payload), True),
        (lambda payload: zstd.compress(b"") * 20 + zstd.compress(payload), False),
        (lambda payload: zstd.compress(payload)[:-1], False),
        (lambda payload: zstd.compress(payload) + b"x", False),
        (lambda payload: zstd.compress(payload[:-1]), False),
        (lambda payload: zstd.compress(payload + payload), False),
    ],
    ids=["streamed", "two streams", "9 empty", "20 empty", "cut off", "a byte more", "too short", "too long"],
)
def test_streams_of_zstd_are_judged_as_by_the_reference(change: Any, *, is_known: bool) -> None:
    data = recompressed(in_blocks(list(map(_encode_entry, of_one_shape(100))), 100), change)
    if is_known:
        check(data, is_known=True)
    else:
        assert decode_manifest_columns(data, "x") is None
        with pytest.raises(FormatError):
            decode_manifest(data, "x")


def test_blocks_that_state_their_size_are_uncompressed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(name: str) -> Any:
        original = getattr(avro_columns, name)

        def call(*arguments: Any) -> Any:
            result = original(*arguments)
            calls.append(len(arguments[-1]) if result is True else result or -1)
            return result

        return call

    for name in ("uncompress_into", "uncompress_all"):
        monkeypatch.setattr(avro_columns, name, counted(name))
    monkeypatch.setattr(columns, "_GROUP_RECORDS", 500)
    records = list(map(_encode_entry, of_one_shape(1_000)))
    width = len(records[0])
    assert decode_manifest_columns(in_blocks(records, 100), "x") is not None
    assert calls == [500 * width] * 2
    calls.clear()
    assert decode_manifest_columns(streams([records[:100], records[100:]], streamed), "x") is not None
    assert calls == [100 * width, 900 * width]
    calls.clear()
    # Blocks of both kinds in one group.
    parts = [records[start : start + 50] for start in range(0, 300, 50)]
    mixed = streams(parts, *[zstd.compress, zstd.compress, streamed] * 2)
    check(mixed, is_known=True)
    assert calls[:4] == [100 * width, 50 * width] * 2


def streams(parts: list[list[bytes]], *compress: Any) -> bytes:
    """A manifest with a block for each part; the functions compress one each, the last one all that are left."""
    schema = decode_container(encode_manifest([usual(0)]), "x").schema
    data = empty = encode_container(schema, [])
    for number, part in enumerate(parts):
        payload = compress[min(number, len(compress) - 1)](b"".join(part))
        data += encode_long(len(part)) + encode_bytes(payload) + empty[-16:]
    return data


def lying(more: int) -> Any:
    """Compress to a stream that states more bytes than it has."""

    def compress(payload: bytes) -> bytes:
        stream = bytearray(zstd.compress(payload))
        assert 256 <= len(payload) < 65_000
        assert stream[4] >> 6 == 1  # the size less 256 is in the two bytes after this one
        stream[5:7] = (len(payload) - 256 + more).to_bytes(2, "little")
        assert zstd.get_frame_info(stream).decompressed_size == len(payload) + more
        return bytes(stream)

    return compress


@pytest.mark.parametrize(("first", "second"), [(1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1)])
def test_blocks_that_state_a_wrong_size_are_refused(first: int, second: int) -> None:
    records = list(map(_encode_entry, of_one_shape(100)))
    # Moving an entry from one block to the other leaves the sum of their sizes as it is.
    for by in (1, len(records[0])):
        data = streams([records[:50], records[50:]], lying(first * by), lying(second * by))
        assert decode_manifest_columns(data, "x") is None
        with pytest.raises(FormatError):
            decode_manifest(data, "x")


def test_memory_of_a_block_ends_at_the_limit() -> None:
    payload = b"".join(map(_encode_entry, of_one_shape(100)))
    for change in (zstd.compress, streamed):
        data = recompressed(in_blocks([payload], 1), lambda _, change=change: change(bytes(50_000_000)))
        assert decode_manifest_columns(data, "x") is None
