"""Data files that are damaged, or state more than they hold, are refused with their name and at once."""

import errno
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.datafile.avro.reader import read_avro
from penstock.datafile.orc.protobuf import read_varint
from penstock.datafile.orc.tail import uncompress
from penstock.datafile.parquet.reader import read_parquet
from penstock.datafile.streams import reading
from penstock.datafile.thrift import decode_struct
from penstock.errors import FormatError, InvalidOptionError, StorageError
from penstock.format.avro.container import AvroCodec, compressor
from penstock.format.avro.values import encode_bytes, encode_long
from penstock.format.types.data_types import BIGINT, DataField
from penstock.io.memory import MemoryFileIO

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS = (DataField(id=0, name="id", type=BIGINT),)
LONGS = {"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "long"]}]}
NULLS = {"type": "array", "items": "null"}
SYNC = b"S" * 16


def avro(*blocks: bytes, schema: Any = LONGS, codec: AvroCodec = AvroCodec.NULL) -> bytes:
    header = {b"avro.codec": codec.value.encode(), b"avro.schema": json.dumps(schema).encode()}
    pairs = b"".join(encode_bytes(key) + encode_bytes(value) for key, value in header.items())
    return b"".join([b"Obj\x01", encode_long(2), pairs, encode_long(0), SYNC, *blocks])


def block(count: int, body: bytes, size: int | None = None) -> bytes:
    return encode_long(count) + encode_long(len(body) if size is None else size) + body + SYNC


def read(data: bytes) -> list[Any]:
    file_io = MemoryFileIO("damaged")
    file_io.write("memory://damaged/a.avro", data)
    batches: Iterable[pa.RecordBatch] = read_avro(file_io, "memory://damaged/a.avro", FIELDS, batch_rows=10)
    return [row for batch in batches for row in batch.to_pylist()]


def test_blocks_that_are_right_are_read() -> None:
    one = compressor(AvroCodec.ZSTANDARD, 1)(b"\x02\x02\x00")
    assert read(avro(block(2, one), codec=AvroCodec.ZSTANDARD)) == [{"id": 1}, {"id": None}]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (avro(block(2**40, b"")), "to have 1099511627776 records"),
        (avro(block(-1, b"\0")), "to have -1 records"),
        (avro(block(1, b"\0", size=2**40)), "more than the file"),
        (avro(block(1, b"\0", size=-5)), "more than the file"),
        (avro(b"\xff" * 4_000_000), "64 bits"),
        (avro(block(1, b"\0")[:-1] + b"T"), "mark"),
        (avro(block(1, b"abc"), codec=AvroCodec.ZSTANDARD), "cannot be decoded"),
        (avro(block(1, compressor(AvroCodec.ZSTANDARD, 1)(bytes(300 << 20))), codec=AvroCodec.ZSTANDARD), "holds more"),
        (avro(block(1, b"\0"), schema={**LONGS, "fields": [{"name": "id", "type": NULLS}]}), "take no bytes"),
        (avro(block(1, b"\x02" + b"\xff" * 40)), "cannot be decoded"),
        (b"Obj\x01" + encode_long(2**60), "header"),
    ],
)
def test_what_an_avro_file_states_is_checked(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=rf"memory://damaged/a.avro.*{said}"):
        read(data)


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowInvalid("x"),
        pa.ArrowTypeError("x"),
        pa.ArrowMemoryError("x"),
        MemoryError(),
        OverflowError("x"),
        RecursionError("x"),
        UnicodeDecodeError("utf-8", b"", 0, 1, "x"),
        KeyError("x"),
        OSError("no errno"),
        OSError(errno.EINVAL, "seek"),
    ],
)
def test_whatever_a_decoder_raises_is_an_error_of_ours_with_the_path_and_the_cause(error: Exception) -> None:
    with pytest.raises(FormatError, match=r"a/b\.orc") as caught, reading("a/b.orc"):
        raise error
    assert caught.value.__cause__ is error


def test_what_is_no_damage_passes() -> None:
    with pytest.raises(InvalidOptionError), reading("a"):
        raise InvalidOptionError("x")
    with pytest.raises(StorageError), reading("a"):
        raise OSError(errno.EIO, "disk")


def test_numbers_end_at_64_bits() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        read_varint(b"\xff" * 1_000_000, 0)
    with pytest.raises(FormatError, match="64 bits"):
        decode_struct(b"\x15" + b"\xff" * 1_000_000)


@pytest.mark.parametrize(("codec", "name"), [(1, AvroCodec.DEFLATE), (5, AvroCodec.ZSTANDARD)])
def test_a_chunk_of_orc_ends_at_its_limit(codec: int, name: AvroCodec) -> None:
    chunk = compressor(name, 1)(bytes(9 << 20))
    with pytest.raises(FormatError, match="more than 8388608 bytes"):
        uncompress((len(chunk) << 1).to_bytes(3, "little") + chunk, codec)


def test_a_parquet_file_with_two_columns_of_one_name_is_refused() -> None:
    file_io = MemoryFileIO("damaged")
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), out)
    file_io.write("memory://damaged/a.parquet", out.getvalue().to_pybytes())
    with pytest.raises(FormatError, match="two columns have the same name"):
        list(read_parquet(file_io, "memory://damaged/a.parquet", FIELDS, batch_rows=10))
