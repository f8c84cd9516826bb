"""Avro object container files: header, compressed blocks, sync marks. The caller decodes the blocks.

Source:
    Avro 1.11 specification, "Object Container Files"; Paimon ``format:avro/AvroFileFormat.java``; docs/spec/format.md
    section 4.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.avro.codecs import CODEC_ERRORS, AvroCodec, compressor, uncompress
from penstock.format.avro.values import BLOCK_KEY, DEFAULT_LIMITS, FILE_KEY, AvroLimits, encode_bytes, encode_long

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def encode_container(
    schema: str, blocks: Iterable[Block], *, codec: AvroCodec = AvroCodec.ZSTANDARD, level: int = 1
) -> bytes:
    """Encode an Avro file.

    Args:
        schema: JSON text, written unchanged.
        blocks: empty ones are omitted; without blocks, the result is a valid file without records.
        codec: for every block.
        level: for zstandard and deflate; ignored for other codecs.
    """
    compress = compressor(codec, level)
    bodies = [(block.record_count, compress(block.payload)) for block in blocks if block.record_count]
    # The sync mark must be unlikely to occur in the data. A digest is, and equal input gives equal bytes.
    digest = blake2b(schema.encode(), digest_size=_SYNC_BYTES)
    for _, body in bodies:
        digest.update(body)
    sync = digest.digest()
    header = {"avro.codec": codec.value.encode(), "avro.schema": schema.encode()}
    parts = [_MAGIC, encode_long(len(header))]
    parts += [encode_bytes(text) for key, value in header.items() for text in (key.encode(), value)]
    parts += [encode_long(0), sync]
    for record_count, body in bodies:
        parts += [encode_long(record_count), encode_bytes(body), sync]
    return b"".join(parts)


def decode_container(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> Container:
    """Parse an Avro file.

    Args:
        data: the whole file.
        path: for messages only.

    Raises:
        FormatError: empty, truncated or damaged data, or not an Avro file.
        UnsupportedFeatureError: an unknown codec.
    """
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
    return Container(schema=schema, codec=codec, blocks=_uncompressed(data, position, codec, path, limits))


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
    number = shift = 0
    while True:
        if position >= len(data) or shift > 63:
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
        for number, (record_count, body) in enumerate(_read_blocks(data, position)):
            payload = uncompress(codec, body, min(limits.block_bytes, left))
            if payload is None:
                if left < limits.block_bytes:
                    raise too_large(path, "its blocks hold more bytes than", FILE_KEY, limits.file_bytes)
                raise too_large(path, f"block {number} holds more bytes than", BLOCK_KEY, limits.block_bytes)
            left -= len(payload)
            yield Block(record_count, payload)
    except CODEC_ERRORS as error:
        raise damaged(path, str(error) or repr(error)) from error


def _read_blocks(data: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    sync = data[position : position + _SYNC_BYTES]
    position += _SYNC_BYTES
    if position > len(data):
        raise ValueError(_CUT_OFF)
    number = 0
    while position < len(data):
        record_count, position = _read_long(data, position)
        body, position = _read_bytes(data, position)
        if data[position : position + _SYNC_BYTES] != sync:
            raise ValueError(f"block {number} is not followed by the sync marker of the file")
        position += _SYNC_BYTES
        number += 1
        yield record_count, body


def _known_codec(name: str, path: str) -> AvroCodec:
    try:
        return AvroCodec(name)
    except ValueError:
        raise UnsupportedFeatureError(
            f"{path} is compressed with {name!r}, which Penstock cannot read: set 'manifest.compression' = 'zstd' "
            "and let the engine that wrote it rewrite the table's manifests"
        ) from None
