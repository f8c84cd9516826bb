from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backports import zstd

import penstock
from penstock.format.deletion_vector import encode_bitmap
from penstock.format.file_index import decode_index_places, may_hold, xxh64
from penstock.format.file_index_writer import Texts, describe_numbers, describe_texts, encode_range_bitmap
from penstock.format.types.text import parse_sql_type

GOLDEN = Path(__file__).parents[2] / "golden" / "data" / "warehouse"


def test_the_hash_is_that_of_zstandard_frames() -> None:
    """A frame ends in the lower half of the hash of its content."""
    source = random.Random(1)  # noqa: S311 - not for secrets
    for size in [*range(70), 1000]:
        data = source.randbytes(size)
        frame = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
        assert xxh64(data) & 0xFFFFFFFF == int.from_bytes(frame[-4:], "little")
    assert xxh64(b"abc") == 0x44BC2CF5AD770999  # of the specification's implementation


def test_a_bloom_filter_of_java_paimon_skips_files_and_loses_no_row() -> None:
    table = penstock.Catalog(GOLDEN).load_table("java142.file_index_bloom")
    values = table.to_arrow().column("v").to_pylist()
    plain = table.with_options({"file-index.read.enabled": "false"})
    opened = {True: 0, False: 0}
    for value in values:
        found = table.to_arrow(filter=penstock.col("v") == value)
        assert found.column("v").to_pylist() == [value]
    for number in range(40):
        where = penstock.col("v") == f"v{number % 2}-{number}x"
        assert table.to_arrow(filter=where).num_rows == 0
        for handle in (table, plain):
            opened[handle is table] += handle.explain_values(where)["files"]
    assert opened[True] < opened[False] / 3


@pytest.mark.parametrize("damage", [b"", b"\0" * 16, b"not an index at all", b"\x00\x05NN\xd0\x1a5\xae\0\0\0\1"])
def test_a_damaged_index_skips_nothing(damage: bytes) -> None:
    assert decode_index_places(damage) == {}


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap", "range-bitmap"])
def test_a_damaged_part_of_an_index_skips_nothing(kind: str) -> None:
    for data in (b"", b"\1", b"\2\0\0\0", b"\0\0\0\1", b"\0\0\0"):
        for sql in ("STRING", "BIGINT", "TIMESTAMP(3)", "DOUBLE", "ARRAY<INT>"):
            assert may_hold({kind: data}, parse_sql_type(sql), {"x" if sql == "STRING" else 1})


@pytest.mark.parametrize("hashes", [-1, 0, 2**31 - 1])
def test_a_filter_with_an_absurd_number_of_hashes_skips_nothing(hashes: int) -> None:
    data = hashes.to_bytes(4, "big", signed=True)
    assert may_hold({"bloom-filter": data + b"\xff" * 64}, parse_sql_type("INT"), {1})


def test_other_kinds_of_index_skip_nothing() -> None:
    assert may_hold({"bsi": b"\0"}, parse_sql_type("INT"), {1})


@pytest.mark.parametrize("chunk_bytes", [0, 20, 16_384])
@pytest.mark.parametrize("are_texts", [False, True], ids=["numbers", "texts"])
def test_a_range_bitmap_holds_its_values_and_no_others(chunk_bytes: int, are_texts: bool) -> None:  # noqa: FBT001
    source = random.Random(chunk_bytes)  # noqa: S311 - not for secrets
    numbers = source.sample(range(-(10**6), 10**6), 500)
    data_type = parse_sql_type("STRING" if are_texts else "INT")
    if are_texts:
        texts = [f"{number % 1000}é{number}".encode() for number in numbers]
        offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
        values = describe_texts(Texts(offsets, np.frombuffer(b"".join(texts), np.uint8)))
        known: list[object] = [text.decode() for text in texts]
    else:
        values, known = describe_numbers(np.array(numbers), data_type.root), [*numbers]
    codes = np.arange(500, dtype=np.int32)
    data = encode_range_bitmap(codes, values, chunk_bytes=chunk_bytes, are_texts=are_texts)
    index = {"range-bitmap": data}
    assert all(may_hold(index, data_type, {value}) for value in known)
    others = [f"{value}x" if are_texts else value + 1 for value in known]  # type: ignore[operator]
    found = [value for value in others if may_hold(index, data_type, {value})]
    assert found == [value for value in others if value in known]
    assert not may_hold(index, data_type, {None})
    with_null = encode_range_bitmap(
        np.append(codes, np.int32(-1)), values, chunk_bytes=chunk_bytes, are_texts=are_texts
    )
    assert may_hold({"range-bitmap": with_null}, data_type, {None})
    for end in (*range(60), *range(60, len(data), 97)):
        cut = {"range-bitmap": data[:end]}
        assert all(may_hold(cut, data_type, {value}) for value in known[:20]), end


def test_a_range_bitmap_of_nulls_holds_nothing_else() -> None:
    values = describe_numbers(np.empty(0, np.int64), parse_sql_type("INT").root)
    data = encode_range_bitmap(np.array([-1, -1], np.int32), values, chunk_bytes=0, are_texts=False)
    assert may_hold({"range-bitmap": data}, parse_sql_type("INT"), {None, 1})
    assert not may_hold({"range-bitmap": data}, parse_sql_type("INT"), {1})


@pytest.mark.parametrize(
    ("stated", "instead"),
    [
        ((">5i", 0, 0, 1, 4, 4), (">5i", 0, 0, 2**31 - 1, 4, 4)),
        ((">5i", 0, 0, 1, 4, 4), (">5i", 0, 0, -1, 4, 4)),
        ((">bi", 1, 1), (">bi", 1, -1)),
        ((">bi", 1, 1), (">bi", 1, 0)),
    ],
)
def test_a_range_bitmap_with_absurd_sizes_takes_no_memory_and_skips_nothing(
    stated: tuple[Any, ...], instead: tuple[Any, ...]
) -> None:
    data_type = parse_sql_type("INT")
    values = describe_numbers(np.array([5, 7]), data_type.root)
    data = encode_range_bitmap(np.array([0, 1], np.int32), values, chunk_bytes=100, are_texts=False)
    assert data.count(struct.pack(*stated)) == 1
    damaged = data.replace(struct.pack(*stated), struct.pack(*instead))
    assert may_hold({"range-bitmap": damaged}, data_type, {7})


def test_nulls_of_a_range_bitmap_are_counted_without_its_rows() -> None:
    """A bitmap of 700 KB can name four billion rows."""
    values = describe_numbers(np.array([5]), parse_sql_type("INT").root)
    data = encode_range_bitmap(np.zeros(1, np.int32), values, chunk_bytes=0, are_texts=False)
    heads = np.column_stack([np.arange(1 << 16), np.full(1 << 16, 0xFFFF)]).astype("<u2").tobytes()
    runs = struct.pack("<HHH", 1, 0, 0xFFFF) * (1 << 16)
    many = struct.pack("<I", 12347 | 0xFFFF << 16) + b"\xff" * (1 << 13) + heads + bytes(4 << 16) + runs
    one = encode_bitmap(np.array([0]))
    start = data.rindex(one, 0, data.rindex(encode_bitmap(np.empty(0, np.int64))))
    head = data[:start].replace(struct.pack(">bbi", 1, 1, len(one)), struct.pack(">bbi", 1, 1, len(many)))
    index = {"range-bitmap": head + many + data[start + len(one) :]}
    tracemalloc.start()
    assert not may_hold(index, parse_sql_type("INT"), {None})
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
