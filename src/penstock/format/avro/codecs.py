"""Compress the blocks of Avro files, and uncompress them with a limit on the output size.

Source:
    Avro 1.11 specification, "Required Codecs", "Optional Codecs".
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import cramjam

from penstock.errors import InvalidOptionError

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
    """Return the codec for an option value, such as of ``manifest.compression``.

    Raises:
        InvalidOptionError: not a codec of Avro.
    """
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

    Raises:
        CODEC_ERRORS: the block is damaged.
    """
    payload = _UNCOMPRESS[codec](data, limit)
    return payload if len(payload) <= limit else None


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
