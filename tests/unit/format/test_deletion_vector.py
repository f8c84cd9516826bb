"""Deletion vectors, against bitmaps that another library (pyroaring 1.0) has written."""

from __future__ import annotations

import hashlib
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from penstock.errors import FormatError
from penstock.format.deletion_vector import MAGIC, MAGIC_64, decode_deletion_vector, encode_deletion_vector

ARRAYS = "3a300000020000000000010001000000180000001c000000010005007011"
RUNS = "3b300200010000ee01010001000600000001000500ee0170117a110700"
RUNS_WITH_OFFSETS = (
    "3b3003000b0000ee01010004000300000004003100250000002b000000310000003300000001000500ee01010070110400400d0100e0933100"
)
BITMAP_DIGEST = "54d44aced89a23a820cf5f64c632b9c7f02e78a5514b234a122575d8b64216ec"


def framed(bitmap: bytes) -> bytes:
    body = struct.pack(">I", MAGIC) + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@pytest.mark.parametrize(
    ("bitmap", "rows"),
    [
        (ARRAYS, [1, 5, 70_000]),
        (RUNS, [*range(5, 500), 70_000, 70_010, 131_072 * 3 + 7]),
        (RUNS_WITH_OFFSETS, [*range(5, 500), *range(70_000, 70_005), 200_000, *range(300_000, 300_050)]),
        ("3a30000000000000", []),
    ],
    ids=["arrays", "runs", "runs with offsets", "empty"],
)
def test_rows_of_bitmaps(bitmap: str, rows: list[int]) -> None:
    vector = framed(bytes.fromhex(bitmap))
    assert decode_deletion_vector(vector, "index-1").tolist() == rows
    assert not rows or encode_deletion_vector(np.array(rows), is_64=False) == vector


def test_rows_of_a_container_of_bits() -> None:
    bits = np.zeros(65_536, dtype=np.uint8)
    bits[0:20_000:3] = 1
    bitmap = bytes.fromhex("3a3000000100000000000a1a10000000") + np.packbits(bits, bitorder="little").tobytes()
    assert hashlib.sha256(bitmap).hexdigest() == BITMAP_DIGEST
    assert decode_deletion_vector(framed(bitmap), "index-1").tolist() == list(range(0, 20_000, 3))
    assert encode_deletion_vector(np.arange(0, 20_000, 3), is_64=False) == framed(bitmap)


@pytest.mark.parametrize("is_64", [False, True])
@pytest.mark.parametrize(("count", "of"), [(1, 10), (5_000, 70_000), (60_000, 65_536), (300_000, 1 << 20)])
def test_random_rows_are_read_as_written(count: int, of: int, *, is_64: bool) -> None:
    rows = np.sort(np.random.default_rng(count).choice(of, count, replace=False))
    assert np.array_equal(decode_deletion_vector(encode_deletion_vector(rows, is_64=is_64), "index-1"), rows)


@pytest.mark.parametrize("is_64", [False, True])
def test_a_large_vector_takes_little_memory_beside_its_rows(*, is_64: bool) -> None:
    rows = np.arange(0, 8_000_000, 2)
    tracemalloc.start()
    try:
        data = encode_deletion_vector(rows, is_64=is_64)
        assert tracemalloc.get_traced_memory()[1] < rows.nbytes / 4
    finally:
        tracemalloc.stop()
    assert np.array_equal(decode_deletion_vector(data, "p"), rows)


def test_rows_beyond_32_bits_are_read_as_written() -> None:
    rows = np.array([1, (1 << 33) + 5])
    assert decode_deletion_vector(encode_deletion_vector(rows, is_64=True), "index-1").tolist() == rows.tolist()


def test_damage_is_reported() -> None:
    whole = framed(bytes.fromhex(RUNS))
    for end in range(len(whole)):
        with pytest.raises(FormatError):
            decode_deletion_vector(whole[:end], "index-1")
    for at in range(len(whole)):
        with pytest.raises(FormatError):
            decode_deletion_vector(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "index-1")
    for cut in range(len(bytes.fromhex(ARRAYS))):
        with pytest.raises(FormatError):
            decode_deletion_vector(framed(bytes.fromhex(ARRAYS)[:cut]), "index-1")


def test_runs_that_name_more_rows_than_there_are_are_refused() -> None:
    bitmap = struct.pack("<IBHHH", 12347, 1, 0, 9, 2) + struct.pack("<4H", 0, 65_535, 1, 65_535)
    with pytest.raises(FormatError, match="not its rows"):
        decode_deletion_vector(framed(bitmap), "index-1")


def framed_64(bitmaps: bytes) -> bytes:
    body = struct.pack("<I", MAGIC_64) + bitmaps
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def test_rows_of_vectors_of_64_bits() -> None:
    parts = [struct.pack("<I", upper) + bytes.fromhex(bitmap) for upper, bitmap in ((0, RUNS), (1, ARRAYS), (9, RUNS))]
    runs = [*range(5, 500), 70_000, 70_010, 131_072 * 3 + 7]
    rows = [*runs, *(row + (1 << 32) for row in (1, 5, 70_000)), *(row + (9 << 32) for row in runs)]
    whole = struct.pack("<Q", 3) + b"".join(parts)
    assert decode_deletion_vector(framed_64(whole), "index-1").tolist() == rows
    assert decode_deletion_vector(framed_64(struct.pack("<Q", 0)), "index-1").tolist() == []
    for cut in range(len(whole)):
        with pytest.raises(FormatError):
            decode_deletion_vector(framed_64(whole[:cut]), "index-1")
    with pytest.raises(FormatError, match="out of order"):
        decode_deletion_vector(framed_64(struct.pack("<Q", 2) + parts[1] + parts[0]), "index-1")
