"""Read Avro data files of any writer.

Source:
    Paimon ``format:avro/AvroBulkFormat.java``; docs/spec/format.md section 8.3.
"""

from __future__ import annotations

import json
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import fastavro

from penstock.datafile.avro.columns import from_records
from penstock.datafile.avro.schema import AvroSchema, without_logical_types
from penstock.datafile.conform import select_rows
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.types import to_arrow_schema
from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.avro.container import AvroCodec, uncompress
from penstock.format.avro.reader import check_schema
from penstock.format.avro.values import encode_bytes, encode_long, read_bytes, read_long

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO

_MAGIC: Final = b"Obj\x01"
_MOST_HEADER_BYTES: Final = 1 << 24
_FIRST_READ_BYTES: Final = 64 * 1024


def read_avro(
    file_io: FileIO,
    path: str,
    fields: Sequence[DataField],
    *,
    batch_rows: int,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read columns by name as canonical Arrow; see ``ReadFile``."""
    with reading(path), closing(file_io.open_input(path)) as opened:
        yield from select_rows(_read_batches(as_native_file(opened), fields, batch_rows), 0, ranges)


def _read_batches(source: pa.NativeFile, fields: Sequence[DataField], batch_rows: int) -> Iterator[pa.RecordBatch]:
    header = _read_header(source)
    written = json.loads(header["avro.schema"])
    check_schema(written)
    types = {field["name"]: field["type"] for field in written["fields"]}
    plain = without_logical_types(written)
    plain_header = {"avro.schema": json.dumps(plain).encode(), "avro.codec": b"null"}
    stream: Any = UncompressedBlocks(_encode_header(plain_header), source, _codec(header))
    records: Iterator[Any] = iter(fastavro.reader(stream, reader_schema=_projected(plain, fields)))
    schema = to_arrow_schema(fields)
    while chunk := _next_records(records, batch_rows):
        yield from_records(chunk, fields, schema, types)


def _next_records(records: Iterator[Any], count: int) -> list[Any]:
    try:
        return list(islice(records, count))
    except (ValueError, EOFError, IndexError, KeyError, TypeError) as error:  # fastavro's errors on damaged bytes
        raise FormatError(f"its records cannot be decoded: {error}") from error


def _codec(header: dict[str, bytes]) -> AvroCodec:
    name = header.get("avro.codec", b"null").decode()
    try:
        return AvroCodec(name)
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"an Avro file is compressed with {name!r}, which Penstock cannot read: rewrite it with zstandard"
        ) from error


def _projected(plain: AvroSchema, fields: Sequence[DataField]) -> AvroSchema:
    """Return the schema of only the requested columns, so that fastavro skips the others."""
    names = {field.name for field in fields}
    kept = [field for field in plain["fields"] if field["name"] in names]
    return None if len(kept) == len(plain["fields"]) else {**plain, "fields": kept}


def _read_header(source: pa.NativeFile) -> dict[str, bytes]:
    """Read magic and metadata; afterwards the source is positioned at the sync mark."""
    size = _FIRST_READ_BYTES
    while size <= _MOST_HEADER_BYTES:
        source.seek(0)
        data = source.read(size)
        if not data.startswith(_MAGIC):
            raise FormatError(f"it does not start like an Avro file but with {data[:8].hex()}")
        try:
            header, at = _decode_header(data)
        except IndexError as error:
            if len(data) < size:
                raise FormatError("its header is cut short") from error
            size *= 4
            continue
        if "avro.schema" not in header:
            raise FormatError("its header has no schema")
        source.seek(at)
        return header
    raise FormatError(f"its header has more than {_MOST_HEADER_BYTES} bytes")


def _decode_header(data: bytes) -> tuple[dict[str, bytes], int]:
    header: dict[str, bytes] = {}
    count, at = read_long(data, len(_MAGIC))
    while count:
        if count < 0:  # a block that states its size in bytes
            count = -count
            _, at = read_long(data, at)
        for _ in range(count):
            key, at = read_bytes(data, at)
            value, at = read_bytes(data, at)
            header[bytes(key).decode()] = bytes(value)
        count, at = read_long(data, at)
    if at + SYNC_BYTES > len(data):
        raise IndexError(at)
    return header, at


def _encode_header(header: dict[str, bytes]) -> bytes:
    parts = [_MAGIC, encode_long(len(header))]
    parts += [encode_bytes(text) for key, value in header.items() for text in (key.encode(), value)]
    return b"".join([*parts, encode_long(0)])


SYNC_BYTES: Final = 16
_MOST_NUMBER_BYTES: Final = 10
_MOST_BLOCK_BYTES: Final = 256 << 20  # writers end a block at 64 KB


class UncompressedBlocks:
    """A byte stream for fastavro: a given header, then the blocks of a file, uncompressed.

    Args:
        header: header of an uncompressed file, without the sync mark.
        source: the file, positioned at its sync mark.
        codec: of the file's blocks.
    """

    def __init__(self, header: bytes, source: pa.NativeFile, codec: AvroCodec) -> None:
        self._source = source
        self._codec = codec
        self._sync = source.read(SYNC_BYTES)
        self._ready = memoryview(header + self._sync)

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end."""
        if size < 0:
            raise FormatError("a length is negative")
        while len(self._ready) < size:
            block = self._next_block()
            if not block:
                break
            self._ready = memoryview(bytes(self._ready) + block)
        taken, self._ready = self._ready[:size], self._ready[size:]
        return bytes(taken)

    def _next_block(self) -> bytes:
        start = self._source.tell()
        if start >= self._source.size():
            return b""
        numbers = self._source.read(2 * _MOST_NUMBER_BYTES)
        count, at = read_long(numbers, 0)
        size, at = read_long(numbers, at)
        self._source.seek(start + at)
        if not 0 <= size <= self._source.size() - start - at - SYNC_BYTES:
            raise FormatError(f"a block claims to have {size} bytes, which is more than the file")
        payload = uncompress(self._codec, self._source.read(size), _MOST_BLOCK_BYTES)
        if payload is None:
            raise FormatError(f"a block holds more than {_MOST_BLOCK_BYTES} bytes")
        if not 0 <= count <= len(payload):
            raise FormatError(f"a block of {len(payload)} bytes claims to have {count} records")
        if self._source.read(SYNC_BYTES) != self._sync:
            raise FormatError("a block is not followed by the sync marker of the file")
        return encode_long(count) + encode_bytes(payload) + self._sync
