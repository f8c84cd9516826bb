from __future__ import annotations

import random
from pathlib import Path

import pytest
from backports import zstd

import penstock
from penstock.format.file_index import decode_index_places, may_hold, xxh64
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


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap"])
def test_a_damaged_part_of_an_index_skips_nothing(kind: str) -> None:
    for data in (b"", b"\1", b"\2\0\0\0", b"\0\0\0\1", b"\0\0\0"):
        for sql in ("STRING", "BIGINT", "TIMESTAMP(3)", "DOUBLE", "ARRAY<INT>"):
            assert may_hold({kind: data}, parse_sql_type(sql), {"x" if sql == "STRING" else 1})


@pytest.mark.parametrize("hashes", [-1, 0, 2**31 - 1])
def test_a_filter_with_an_absurd_number_of_hashes_skips_nothing(hashes: int) -> None:
    data = hashes.to_bytes(4, "big", signed=True)
    assert may_hold({"bloom-filter": data + b"\xff" * 64}, parse_sql_type("INT"), {1})


def test_other_kinds_of_index_skip_nothing() -> None:
    assert may_hold({"range-bitmap": b"\0"}, parse_sql_type("INT"), {1})
