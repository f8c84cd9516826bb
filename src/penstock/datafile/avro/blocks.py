"""Check and uncompress the blocks of an Avro data file before fastavro reads them.

fastavro trusts the sizes and counts in a block: a few bytes can request any amount of memory or time.

Source:
    Avro 1.11 specification, "Object Container Files".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError
from penstock.format.avro.codecs import AvroCodec, uncompress
from penstock.format.avro.values import encode_bytes, encode_long, read_long

if TYPE_CHECKING:
    import pyarrow as pa

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
        """Return ``size`` bytes, fewer at the end.

        Raises:
            FormatError: a block is damaged, or states more records or bytes than it can have.
        """
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
