"""Avro object container files: header, compressed blocks, sync marks. The caller decodes the blocks.

Blocks are uncompressed with a limit on the size of the output.

Source:
    Avro 1.11 specification, "Object Container Files"; Paimon ``format:avro/AvroFileFormat.java``;
    docs/spec/format.md section 4; "Required Codecs", "Optional Codecs".
"""

from __future__ import annotations

import bz2
import json
import lzma
import sys
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import cramjam

from penstock.errors import FormatError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.avro.values import BLOCK_KEY, DEFAULT_LIMITS, FILE_KEY, AvroLimits, encode_bytes, encode_long

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

    Uncompress = Callable[[bytes, int], bytes]
    """(data, limit) to at most ``limit + 1`` bytes, so that the caller can see that the limit is exceeded."""

_CRC_BYTES: Final = 4
# Writers make one stream per block; tens of thousands of empty streams would take hours.
_MOST_STREAMS: Final = 16
_XZ_MEMORY_BYTES: Final = 256 << 20  # for the dictionary; the highest preset takes 65 MiB


class AvroCodec(StrEnum):
    """Compression of blocks; the value is ``avro.codec`` on disk."""

    NULL = "null"
    DEFLATE = "deflate"
    SNAPPY = "snappy"
    ZSTANDARD = "zstandard"
    BZIP2 = "bzip2"
    XZ = "xz"


CODEC_ERRORS: Final = (
    ValueError,
    EOFError,
    OSError,
    MemoryError,
    zlib.error,
    lzma.LZMAError,
    zstd.ZstdError,
    cramjam.DecompressionError,
)
"""Errors that ``uncompress`` raises on damaged bytes."""


def parse_codec(text: str) -> AvroCodec:
    """Return the codec for an option value, such as of ``manifest.compression``."""
    name = text.strip().lower()
    try:
        return AvroCodec({"zstd": "zstandard", "none": "null"}.get(name, name))
    except ValueError:
        raise InvalidOptionError(
            f"compression {text!r} is not one of Avro's: expected zstd, none, deflate, snappy, bzip2 or xz"
        ) from None


def compressor(codec: AvroCodec, level: int) -> Callable[[bytes], bytes]:
    """Return a function that compresses a block; ``level`` applies to zstandard and deflate only."""
    match codec:
        case AvroCodec.ZSTANDARD:
            return lambda data: zstd.compress(data, level)
        case AvroCodec.DEFLATE:
            return lambda data: zlib.compress(data, level, wbits=-zlib.MAX_WBITS)
        case AvroCodec.NULL | AvroCodec.SNAPPY | AvroCodec.BZIP2 | AvroCodec.XZ:
            return _COMPRESS[codec]


def uncompress(codec: AvroCodec, data: bytes, limit: int) -> bytes | None:
    """Uncompress a block.

    Args:
        limit: maximum number of uncompressed bytes; at most about twice as much memory is used.

    Returns:
        The uncompressed bytes; None if they exceed the limit.
    """
    payload = _UNCOMPRESS[codec](data, limit)
    return payload if len(payload) <= limit else None


def uncompress_into(codec: AvroCodec, data: bytes, target: memoryview) -> int | None:
    """Uncompress a block into memory, in half the time of ``uncompress``.

    Returns:
        The number of bytes; None if the block is damaged, does not fit, or is not one stream of zstd.
    """
    if codec is not AvroCodec.ZSTANDARD:
        return None
    try:
        is_one = zstd.get_frame_size(data) == len(data)
        return int(cramjam.zstd.decompress_into(data, target)) if is_one else None
    except (zstd.ZstdError, cramjam.DecompressionError):
        return None


def stated_size(codec: AvroCodec, data: memoryview) -> int | None:
    """Return the uncompressed size of a block that is one stream of zstd and states it; zstd refuses it if it lies."""
    if codec is not AvroCodec.ZSTANDARD:
        return None
    try:
        return zstd.get_frame_info(data).decompressed_size if zstd.get_frame_size(data) == len(data) else None
    except zstd.ZstdError:
        return None


def uncompress_all(blocks: Iterable[memoryview], target: memoryview) -> bool:
    """Uncompress blocks with a ``stated_size`` into memory of as many bytes; return whether all are good.

    One call takes two thirds of the time of a call for each.
    """
    try:
        return int(cramjam.zstd.decompress_into(b"".join(blocks), target)) == len(target)
    except cramjam.DecompressionError:
        return False


def _snappy_compress(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(_CRC_BYTES, "big")


def _snappy_uncompress(data: bytes, limit: int) -> bytes:
    body = data[:-_CRC_BYTES]
    # The block begins with its uncompressed size, and the decoder allocates that much at once.
    size = int(cramjam.snappy.decompress_raw_len(body))
    if size > limit:
        return bytes(limit + 1)
    payload = bytes(cramjam.snappy.decompress_raw(body))
    if zlib.crc32(payload) != int.from_bytes(data[-_CRC_BYTES:], "big"):
        raise ValueError("a block's checksum is wrong")
    return payload


def _inflate(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    payload = stream.decompress(data, limit + 1)
    if len(payload) <= limit and not stream.eof:
        raise EOFError("a compressed block ends too early")
    return payload


def _streams(new: Callable[[], Any]) -> Uncompress:
    """Return an uncompress function for codecs whose data may consist of several streams."""

    def uncompress_streams(data: bytes, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        for _ in range(_MOST_STREAMS):
            stream = new()
            parts.append(stream.decompress(data, limit + 1 - size))
            size += len(parts[-1])
            if size > limit:
                break
            if not stream.eof:
                raise EOFError("a compressed block ends too early")
            data = stream.unused_data
            if not data:
                break
        else:
            raise ValueError(f"a block has more than {_MOST_STREAMS} compressed streams")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    return uncompress_streams


_COMPRESS: Final[dict[AvroCodec, Callable[[bytes], bytes]]] = {
    AvroCodec.NULL: bytes,
    AvroCodec.SNAPPY: _snappy_compress,
    AvroCodec.BZIP2: bz2.compress,
    AvroCodec.XZ: lzma.compress,
}

_UNCOMPRESS: Final[dict[AvroCodec, Uncompress]] = {
    AvroCodec.NULL: lambda data, _limit: data,
    AvroCodec.DEFLATE: _inflate,
    AvroCodec.SNAPPY: _snappy_uncompress,
    AvroCodec.ZSTANDARD: _streams(zstd.ZstdDecompressor),
    AvroCodec.BZIP2: _streams(bz2.BZ2Decompressor),
    AvroCodec.XZ: _streams(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)),
}


_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MOST_SCHEMA_CHARACTERS: Final = 1 << 20  # the schema of a manifest has 3,000
_CUT_OFF: Final = "it ends too early"


class Block(NamedTuple):
    """Uncompressed records, one after another."""

    record_count: int
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A parsed Avro file.

    Attributes:
        schema: the writer's schema, as JSON text.
        codec: how the blocks were compressed.
        blocks: in file order; each is uncompressed on demand, and only once. Iterating raises ``FormatError`` if a
            block is damaged or exceeds the limits.
    """

    schema: str
    codec: AvroCodec
    blocks: Iterator[Block]


_NO_NOTES: Final[Mapping[str, bytes]] = MappingProxyType({})
_DIGEST_BYTES: Final = 8


def encode_container(
    schema: str,
    blocks: Iterable[Block],
    *,
    codec: AvroCodec = AvroCodec.ZSTANDARD,
    level: int = 1,
    notes: Mapping[str, bytes] = _NO_NOTES,
) -> bytes:
    """Encode an Avro file.

    Args:
        schema: JSON text, written unchanged.
        blocks: empty ones are omitted; without blocks, the result is a valid file without records.
        codec: for every block.
        level: for zstandard and deflate; ignored for other codecs.
        notes: statements about the records under further keys of the header, which other readers skip; for
            ``read_note``.
    """
    compress = compressor(codec, level)
    bodies = [(block.record_count, compress(block.payload)) for block in blocks if block.record_count]
    # The sync mark must be unlikely to occur in the data. A digest is, and equal input gives equal bytes.
    digest = blake2b(schema.encode(), digest_size=_SYNC_BYTES)
    for _, body in bodies:
        digest.update(body)
    sync = digest.digest()
    header = {"avro.codec": codec.value.encode(), "avro.schema": schema.encode()}
    for key, note in notes.items():
        # fastavro, which pypaimon reads with, decodes every value of the header as UTF-8.
        header[key] = b64encode(_note_digest(sync, sum(count for count, _ in bodies), note) + note)
    parts = [_MAGIC, encode_long(len(header))]
    parts += [encode_bytes(text) for key, value in header.items() for text in (key.encode(), value)]
    parts += [encode_long(0), sync]
    for record_count, body in bodies:
        parts += [encode_long(record_count), encode_bytes(body), sync]
    return b"".join(parts)


def read_note(data: bytes, key: str) -> bytes | None:
    """Return a note of an Avro file that ``encode_container`` has written; does not uncompress the blocks.

    A note has a digest of itself, of the file's sync mark and of the number of records. So it is not used if the file
    was damaged or cut off, nor in a file of other records into which a program has copied the header.

    Args:
        data: the whole file.

    Returns:
        None if there is no such note, or if the file is damaged.
    """
    try:
        header, position = _read_header(data) if data.startswith(_MAGIC) else ({}, 0)
        if key not in header:
            return None
        value = b64decode(header[key], validate=True)
        record_count = sum(place.record_count for place in _find_blocks(data, position))
    except ValueError:
        return None
    digest, note = value[:_DIGEST_BYTES], value[_DIGEST_BYTES:]
    return note if digest == _note_digest(data[position : position + _SYNC_BYTES], record_count, note) else None


def _note_digest(sync: bytes, record_count: int, note: bytes) -> bytes:
    return blake2b(b"%b%d:%b" % (sync, record_count, note), digest_size=_DIGEST_BYTES).digest()


def decode_container(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> Container:
    """Parse an Avro file.

    Args:
        data: the whole file.
        path: for messages only.
    """
    schema, codec, position = _parse_header(data, path)
    return Container(schema=schema, codec=codec, blocks=_uncompressed(data, position, codec, path, limits))


class BlockPlace(NamedTuple):
    """Number of records of a compressed block, and its position in the file."""

    record_count: int
    start: int
    end: int


def find_blocks(data: bytes, path: str) -> tuple[str, AvroCodec, list[BlockPlace]]:
    """Return the schema and the codec of an Avro file, and the places of its blocks; arguments as above."""
    schema, codec, position = _parse_header(data, path)
    try:
        return schema, codec, list(_find_blocks(data, position))
    except ValueError as error:
        raise damaged(path, str(error)) from error


def _parse_header(data: bytes, path: str) -> tuple[str, AvroCodec, int]:
    """Return the schema, the codec, and the position of the sync mark after the header."""
    if not data:
        raise damaged(path, "it has no bytes")
    if not data.startswith(_MAGIC):
        raise damaged(path, f"it does not start like an Avro file but with {data[:8].hex()}")
    try:
        header, position = _read_header(data)
        codec = _known_codec(header.get("avro.codec", b"null").decode(), path)
        schema = header["avro.schema"].decode()
        if len(schema) > _MOST_SCHEMA_CHARACTERS:
            raise damaged(path, f"its Avro schema has {len(schema)} characters, more than any manifest's")
        json.loads(schema)
    except KeyError as error:
        raise damaged(path, f"its header lacks {error}") from error
    except RecursionError as error:
        raise damaged(path, "its Avro schema is nested too deeply") from error
    except ValueError as error:
        raise damaged(path, str(error)) from error
    return schema, codec, position


def damaged(path: str, reason: str) -> FormatError:
    """Return the error for a damaged metadata file, with the remedy."""
    return FormatError(
        f"{path} is damaged: {reason}; copy it back from a backup, or roll the table back to a snapshot that does not "
        "need it"
    )


def too_large(path: str, what: str, key: str, limit: int) -> FormatError:
    """Return the error for a metadata file that exceeds a limit, with the option that raises the limit."""
    return FormatError(
        f"{path} is damaged or crafted to exhaust memory: {what} the limit of {limit}; if the file is good, read it "
        f"with a larger '{key}', given for this use only"
    )


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    size = len(data)
    if position < size and data[position] < 0x80:
        byte = data[position]
        return byte >> 1 ^ -(byte & 1), position + 1
    number = shift = 0
    while True:
        if position >= size or shift > 63:
            raise ValueError(_CUT_OFF)
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), position


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _read_long(data, position)
    if not 0 <= size <= len(data) - position:
        raise ValueError(_CUT_OFF)
    return data[position : position + size], position + size


def _read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return the header's map and the position of the sync mark after it."""
    header: dict[str, bytes] = {}
    count, position = _read_long(data, len(_MAGIC))
    while count:
        if count < 0:
            # A negative count is followed by the chunk's size in bytes, for readers that skip the chunk.
            _, position = _read_long(data, position)
        for _ in range(abs(count)):
            key, position = _read_bytes(data, position)
            header[key.decode()], position = _read_bytes(data, position)
        count, position = _read_long(data, position)
    return header, position


def _uncompressed(data: bytes, position: int, codec: AvroCodec, path: str, limits: AvroLimits) -> Iterator[Block]:
    left = limits.file_bytes
    try:
        for number, (record_count, start, end) in enumerate(_find_blocks(data, position)):
            payload = uncompress(codec, data[start:end], min(limits.block_bytes, left))
            if payload is None:
                if left < limits.block_bytes:
                    raise too_large(path, "its blocks hold more bytes than", FILE_KEY, limits.file_bytes)
                raise too_large(path, f"block {number} holds more bytes than", BLOCK_KEY, limits.block_bytes)
            left -= len(payload)
            yield Block(record_count, payload)
    except CODEC_ERRORS as error:
        raise damaged(path, str(error) or repr(error)) from error


def _find_blocks(data: bytes, position: int) -> Iterator[BlockPlace]:
    sync = data[position : position + _SYNC_BYTES]
    position += _SYNC_BYTES
    if position > len(data):
        raise ValueError(_CUT_OFF)
    number = 0
    while position < len(data):
        record_count, position = _read_long(data, position)
        size, position = _read_long(data, position)
        if not 0 <= size <= len(data) - position:
            raise ValueError(_CUT_OFF)
        start, position = position, position + size
        if data[position : position + _SYNC_BYTES] != sync:
            raise ValueError(f"block {number} is not followed by the sync marker of the file")
        position += _SYNC_BYTES
        number += 1
        yield BlockPlace(record_count, start, start + size)


def _known_codec(name: str, path: str) -> AvroCodec:
    try:
        return AvroCodec(name)
    except ValueError:
        raise UnsupportedFeatureError(
            f"{path} is compressed with {name!r}, which Penstock cannot read: set 'manifest.compression' = 'zstd' "
            "and let the engine that wrote it rewrite the table's manifests"
        ) from None
