"""Lengths of texts are checked before pyarrow, which would end the process, reads them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import orc

from penstock.datafile.orc.reader import check_lengths, types_with_lengths
from penstock.datafile.orc.rle import check_unsigned, decode_unsigned
from penstock.datafile.orc.tail import read_tail
from penstock.errors import FormatError

MOST = 2**31 - 1


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def delta(first: int, step: int, count: int) -> bytes:
    """A run of version 2 whose steps are all the same."""
    return (
        bytes([0xC0 | (count - 1) >> 8, (count - 1) & 0xFF])
        + varint(first)
        + varint(step << 1 if step >= 0 else (-step << 1) - 1)
    )


@pytest.mark.parametrize(
    "data",
    [
        bytes([0x0A, 0x27, 0x10]),  # a short repeat, from the specification
        bytes([0x5E, 0x03, 0x5C, 0xA1, 0xAB, 0x1E, 0xDE, 0xAD, 0xBE, 0xEF]),  # direct
        bytes([0xC6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46]),  # delta
        delta(10, -1, 11),
        delta(0, 5, 400),
        b"",
    ],
)
def test_lengths_that_are_right_pass(data: bytes) -> None:
    check_unsigned(data, most=MOST, is_version_2=True)
    assert all(0 <= number <= MOST for number in decode_unsigned(data).tolist())


@pytest.mark.parametrize(
    "data",
    [
        bytes([0x38]) + b"\xff" * 8 + b"",  # a short repeat of eight bytes
        bytes([0x7E, 0x00]) + b"\xff" * 8,  # direct, 64 bits
        delta(10, -1, 12),
        delta(0, MOST, 3),
        delta(2**63, 1, 3),
    ],
)
def test_lengths_out_of_bounds_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"a length of .* is out of bounds"):
        check_unsigned(data, most=MOST, is_version_2=True)


@pytest.mark.parametrize("data", [b"\x5e", b"\x5e\x03\x5c", b"\xc6\x09\x02", b"\x0a\x27"])
def test_a_stream_that_is_cut_short_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="cut short"):
        check_unsigned(data, most=MOST, is_version_2=True)


def test_runs_of_version_1_are_checked() -> None:
    check_unsigned(bytes([0x61, 0x00, 0x07, 0xFB, 2, 3, 4, 7, 11]), most=MOST, is_version_2=False)
    check_unsigned(bytes([0x61, 0xFF, 0x64]), most=MOST, is_version_2=False)  # 100 to 1
    with pytest.raises(FormatError, match="a length of -1 is out of bounds"):
        check_unsigned(bytes([0x61, 0xFF, 0x62]), most=MOST, is_version_2=False)
    with pytest.raises(FormatError, match="out of bounds"):
        check_unsigned(bytes([0xFF]) + varint(2**63), most=MOST, is_version_2=False)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_all_texts_lists_and_maps_of_a_file_are_found_and_pass(compression: str) -> None:
    texts = ["x" * (number * 7919 % 97) for number in range(20_000)]
    table = pa.table(
        {
            "i": pa.array(range(20_000), pa.int64()),
            "s": texts,
            "few": ["ab"[number % 2] for number in range(20_000)],
            "b": pa.array([text.encode() or None for text in texts], pa.binary()),
            "l": pa.array([[text] * (number % 3) for number, text in enumerate(texts)], pa.list_(pa.string())),
            "m": pa.array([[("k", 1)]] * 20_000, pa.map_(pa.string(), pa.int32())),
        }
    )
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, compression=compression, dictionary_key_size_threshold=0.5)
    source = pa.BufferReader(sink.getvalue())
    tail = read_tail(source)
    assert len(types_with_lengths(tail, table.column_names)) == 7
    assert not types_with_lengths(tail, ["i"])
    check_lengths(source, tail, 0, types_with_lengths(tail, table.column_names))
