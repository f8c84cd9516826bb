"""The two wire formats that footers are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from penstock.datafile.orc.protobuf import decode_message, encode_message, messages_of, numbers_of
from penstock.datafile.thrift import decode_struct, encode_struct
from penstock.errors import FormatError

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "data" / "warehouse"
PARQUET: Final = sorted(GOLDEN.glob("*/*types_parquet/bucket-0/*.parquet"))
ORC: Final = sorted(GOLDEN.glob("*/*types_orc/bucket-0/*.orc"))


def parquet_footer(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize("path", PARQUET, ids=lambda path: f"{path.parents[1].name}-{path.name[5:9]}")
def test_a_parquet_footer_of_any_writer_is_encoded_as_it_was(path: Path) -> None:
    footer = parquet_footer(path)

    assert encode_struct(decode_struct(footer)) == footer


@pytest.mark.parametrize("cut", [0, 1, 10, 100])
def test_a_struct_that_is_cut_short_is_no_struct(cut: int) -> None:
    with pytest.raises(FormatError, match="cannot be decoded"):
        decode_struct(parquet_footer(PARQUET[0])[:cut])


def test_an_unknown_wire_type_of_thrift_is_refused() -> None:
    with pytest.raises(FormatError, match="cannot be decoded"):
        decode_struct(bytes([0x1B, 0x00]))  # a map, which Parquet has none of


@pytest.mark.parametrize("path", ORC, ids=lambda path: f"{path.parents[1].name}-{path.name[5:9]}")
def test_an_orc_postscript_is_encoded_as_it_was(path: Path) -> None:
    data = path.read_bytes()
    postscript = data[-1 - data[-1] : -1]

    assert encode_message(decode_message(postscript)) == postscript


def test_repeated_numbers_are_read_packed_or_not() -> None:
    assert numbers_of(decode_message(bytes.fromhex("08010896010a020507")), 1) == [1, 150, 5, 7]


def test_fields_of_fixed_width_are_passed_over() -> None:
    message = decode_message(bytes.fromhex("0d00000000") + bytes.fromhex("110000000000000000") + bytes.fromhex("1801"))

    assert numbers_of(message, 3) == [1]


@pytest.mark.parametrize("data", ["0a05ff", "08", "0b", "0aff"])
def test_a_message_that_is_cut_short_is_no_message(data: str) -> None:
    with pytest.raises(FormatError):
        decode_message(bytes.fromhex(data))


def test_messages_in_messages_are_decoded_in_order() -> None:
    assert messages_of(decode_message(bytes.fromhex("12020801120208021a00")), 2) == [{1: [1]}, {1: [2]}]
