"""Decode the tail of an ORC file and the footers of its stripes.

Source:
    The ORC specification, version 1, sections "File Tail" and "Stripes".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import cramjam

from penstock.datafile.orc.protobuf import (
    Message,
    decode_message,
    encode_message,
    messages_of,
    number_of,
    numbers_of,
)
from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.avro.container import CODEC_ERRORS, AvroCodec
from penstock.format.avro.container import uncompress as uncompress_block

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER_BYTES: Final = 3  # before each compressed chunk
_MOST_CHUNK_BYTES: Final = 8 << 20  # the maximum size that a header can express


class OrcKind(IntEnum):
    """Kinds of types; the value is that on disk."""

    LONG = 4
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


TIMESTAMPS: Final = frozenset({OrcKind.TIMESTAMP, OrcKind.TIMESTAMP_INSTANT})
_SECONDARY_STREAM: Final = 5
_DIRECT_V2: Final = 2
LENGTH_STREAM: Final = 2
_PROLEPTIC_GREGORIAN: Final = 2


class _Codec(IntEnum):
    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZ4 = 4
    ZSTD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcType:
    """One type of the type tree.

    Attributes:
        kind: number of the kind; ``OrcKind`` has the relevant ones.
        children: ids of the child types.
        names: names of the children of a STRUCT.
    """

    kind: int
    children: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcTail:
    """A decoded tail.

    Attributes:
        footer: the ``Footer`` message.
        types: by type id, the root first.
        footer_start: position of the footer in the file.
        is_julian: whether dates before the Gregorian reform of 1582 use the Julian calendar, as in Java's
            ``java.sql.Timestamp``.
    """

    codec: int
    footer: Message
    postscript: Message
    types: tuple[OrcType, ...]
    footer_start: int
    is_julian: bool


def read_tail(source: pa.NativeFile) -> OrcTail:
    """Read the tail of a file."""
    end = source.size() - 1
    postscript_bytes = _read(source, end, 1)[0]
    postscript_start = end - postscript_bytes
    postscript = decode_message(_read(source, postscript_start, postscript_bytes))
    codec = number_of(postscript, 2)
    footer_bytes = number_of(postscript, 1)
    footer_start = postscript_start - footer_bytes
    footer = decode_message(uncompress(_read(source, footer_start, footer_bytes), codec))
    types = tuple(
        OrcType(
            kind=number_of(message, 1),
            children=tuple(numbers_of(message, 2)),
            names=tuple(name.decode() for name in message.get(3, []) if isinstance(name, bytes)),
        )
        for message in messages_of(footer, 4)
    )
    # Java's library writes 0 or nothing; the C++ library has always used the Gregorian calendar.
    is_julian = number_of(footer, 9) == 0 and number_of(footer, 11) != _PROLEPTIC_GREGORIAN
    return OrcTail(
        codec=codec,
        footer=footer,
        postscript=postscript,
        types=types,
        footer_start=footer_start,
        is_julian=is_julian,
    )


def _read(source: pa.NativeFile, start: int, size: int) -> bytes:
    if start < 0:
        raise FormatError("the file is shorter than its tail")
    source.seek(start)
    return source.read(size)


def has_known_codec(tail: OrcTail) -> bool:
    """Whether ``uncompress`` supports the file's codec; pyarrow also reads LZO."""
    return tail.codec in set(_Codec)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcStream:
    """One stream of a stripe.

    Attributes:
        kind: number of the kind, such as ``LENGTH_STREAM``.
        type_id: the column that it belongs to.
        start: position in the file.
        is_version_2: whether integers have the run-length encoding of version 2.
    """

    kind: int
    type_id: int
    start: int
    size: int
    is_version_2: bool


def read_streams(source: pa.NativeFile, tail: OrcTail, stripe: int) -> list[OrcStream]:
    """Read the footer of a stripe, and return the stripe's streams."""
    info = messages_of(tail.footer, 3)[stripe]
    start = number_of(info, 1)
    footer_start = start + number_of(info, 2) + number_of(info, 3)
    footer = decode_message(uncompress(read_part(source, footer_start, number_of(info, 4)), tail.codec))
    encodings = [number_of(message, 1) for message in messages_of(footer, 2)]
    streams = []
    for message in messages_of(footer, 1):
        type_id, size = number_of(message, 2), number_of(message, 3)
        is_version_2 = type_id < len(encodings) and encodings[type_id] >= _DIRECT_V2
        streams.append(
            OrcStream(kind=number_of(message, 1), type_id=type_id, start=start, size=size, is_version_2=is_version_2)
        )
        start += size
    return streams


def read_part(source: pa.NativeFile, start: int, size: int) -> bytes:
    """Read a part of the file. Raises ``FormatError`` if it is not inside of the file."""
    if start + size > source.size():
        raise FormatError(f"a part of {size} bytes at {start} is not inside of the file")
    return _read(source, start, size)


def with_seconds_as_long(data: bytes, tail: OrcTail) -> bytes:
    """Return the file with its timestamps declared as BIGINT: their seconds, which have the same encoding."""
    types = messages_of(tail.footer, 4)
    for message in types:
        if number_of(message, 1) in TIMESTAMPS:
            message[1] = [int(OrcKind.LONG)]
    # Statistics have a field for each kind of type, so the timestamp statistics must be removed; statistics are
    # optional.
    footer: Message = {**tail.footer, 4: [encode_message(message) for message in types]}
    footer.pop(7, None)
    encoded = encode_message(footer)
    if tail.codec != _Codec.NONE:
        encoded = (len(encoded) << 1 | 1).to_bytes(_HEADER_BYTES, "little") + encoded  # a chunk that is stored as it is
    postscript = encode_message({**tail.postscript, 1: [len(encoded)]})
    return data[: tail.footer_start] + encoded + postscript + bytes([len(postscript)])


def stripe_nanos(data: bytes, tail: OrcTail, stripe: int, type_id: int) -> bytes:
    """Return the uncompressed stream with the fractions of seconds of a timestamp column."""
    info = messages_of(tail.footer, 3)[stripe]
    offset = number_of(info, 1)
    footer_start = offset + number_of(info, 2) + number_of(info, 3)
    footer = decode_message(uncompress(data[footer_start : footer_start + number_of(info, 4)], tail.codec))
    zone = b"".join(value for value in footer.get(3, []) if isinstance(value, bytes)).decode()
    encoding = number_of(messages_of(footer, 2)[type_id], 1)
    if zone not in ("", "UTC", "GMT", "Etc/UTC") or encoding != _DIRECT_V2:
        raise UnsupportedFeatureError(
            f"timestamps outside of the years 1678 to 2261 in an ORC file of zone '{zone}' and encoding {encoding}: "
            "rewrite it as Parquet, or with a writer that runs in UTC"
        )
    for stream in messages_of(footer, 1):
        length = number_of(stream, 3)
        if number_of(stream, 1) == _SECONDARY_STREAM and number_of(stream, 2) == type_id:
            return uncompress(data[offset : offset + length], tail.codec)
        offset += length
    return b""


def uncompress(data: bytes, codec: int) -> bytes:
    """Uncompress a stream, which consists of chunks."""
    if codec == _Codec.NONE:
        return data
    out = bytearray()
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + _HEADER_BYTES], "little")
        at += _HEADER_BYTES
        chunk = data[at : at + (header >> 1)]
        at += header >> 1
        try:
            out += chunk if header & 1 else _uncompress_chunk(chunk, codec)
        except (IndexError, *CODEC_ERRORS) as error:
            raise FormatError(f"a compressed chunk of {len(chunk)} bytes is damaged: {error}") from error
    return bytes(out)


def _uncompress_chunk(chunk: bytes, codec: int) -> bytes:
    match codec:
        case _Codec.ZLIB:
            return _limited(uncompress_block(AvroCodec.DEFLATE, chunk, _MOST_CHUNK_BYTES))
        case _Codec.SNAPPY:
            _check_chunk(cramjam.snappy.decompress_raw_len(chunk))
            return bytes(cramjam.snappy.decompress_raw(chunk))
        case _Codec.ZSTD:
            return _limited(uncompress_block(AvroCodec.ZSTANDARD, chunk, _MOST_CHUNK_BYTES))
        case _Codec.LZ4:
            return bytes(cramjam.lz4.decompress_block(chunk, output_len=_check_chunk(_lz4_size(chunk))))
        case _:
            raise UnsupportedFeatureError(f"ORC compression {codec} cannot be read: rewrite the file with zstd")


def _limited(payload: bytes | None) -> bytes:
    return payload if payload is not None else bytes(_check_chunk(_MOST_CHUNK_BYTES + 1))


def _check_chunk(size: int) -> int:
    if size > _MOST_CHUNK_BYTES:
        raise FormatError(f"a compressed chunk holds more than {_MOST_CHUNK_BYTES} bytes")
    return size


def _lz4_size(chunk: bytes) -> int:
    """Return the uncompressed size of an LZ4 block, which the block does not state."""
    size = at = 0
    while at < len(chunk):
        token = chunk[at]
        literals, at = _lz4_length(chunk, at + 1, token >> 4)
        at += literals
        size += literals
        if at < len(chunk):  # the last sequence has no match
            match, at = _lz4_length(chunk, at + 2, token & 0x0F)
            size += match + 4
    return size


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 0x0F:
        while True:
            byte = chunk[at]
            at += 1
            length += byte
            if byte != 0xFF:
                break
    return length, at
