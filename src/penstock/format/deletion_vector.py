"""Deletion vectors: the rows of a data file that were deleted without rewriting the file.

Source:
    Paimon ``core:deletionvectors/BitmapDeletionVector.java``, ``Bitmap64DeletionVector.java``; docs/spec/format.md
    section 9; the portable forms of RoaringFormatSpec for 32 and 64 bits.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.errors import FormatError

if TYPE_CHECKING:
    import numpy.typing as npt

MAGIC: Final = 1581511376
MAGIC_64: Final = 1681511377
_COOKIE: Final = 12347  # with run containers
_COOKIE_WITHOUT_RUNS: Final = 12346
_MOST_CONTAINERS: Final = 1 << 16
_ARRAY_ROWS: Final = 4096  # a container with more rows is a bitmap
_BITMAP_BYTES: Final = 8192
_LAST_ROW: Final = (1 << 16) - 1
_MOST_UPPER_BITS: Final = (1 << 31) - 1
# Containers of a bitmap with runs have offsets only from this number on.
_LEAST_WITH_OFFSETS: Final = 4
VERSION: Final = b"\x01"
"""The first byte of an index file of deletion vectors."""
FRAME_BYTES: Final = 8
"""The length before a vector and the checksum after it."""


def encode_deletion_vector(rows: npt.NDArray[np.int64], *, is_64: bool) -> bytes:
    """Return a deletion vector with its frame, as Java Paimon writes it.

    Args:
        rows: the deleted rows' positions in their file, ascending; at least one.
        is_64: whether its bitmaps are those of 64 bits.
    """
    if is_64:
        keys = range(int(rows[-1] >> 32) + 1)
        ends = np.searchsorted(rows, [(key + 1) << 32 for key in keys])
        bitmaps = zip(keys, np.split(rows, ends[:-1]), strict=True)
        parts = [struct.pack("<I", key) + encode_bitmap(part, key << 32) for key, part in bitmaps]
        body = struct.pack("<IQ", MAGIC_64, len(parts)) + b"".join(parts)
    else:
        body = struct.pack(">I", MAGIC) + encode_bitmap(rows)
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def stored_length(framed: bytes) -> int:
    """Return the length of a vector as an index manifest has it: for a vector of 64 bits with its frame."""
    return len(framed) - (0 if _is_64(framed) else FRAME_BYTES)


def encode_bitmap(rows: npt.NDArray[np.int64], start: int = 0) -> bytes:
    """Return the bitmap of ascending rows between ``start`` and 2^32 rows later; no copy of all of them is made."""
    last = int(rows[-1]) if len(rows) else start
    count = last - start >> 16
    # Few rows may be far apart.
    cuts = np.unique(rows - start >> 16)[1:] if len(rows) < count else np.arange(1, count + 1)
    ends = np.searchsorted(rows, (cuts << 16) + start)
    parts = [(int(part[0] - start >> 16), part) for part in np.split(rows, ends) if len(part)]
    keys = [key for key, _ in parts]
    containers = [_encode_container(part & _LAST_ROW) for _, part in parts]
    flags = np.array([is_run for is_run, _, _ in containers], dtype=bool)
    has_runs = bool(flags.any())
    if has_runs:
        head = struct.pack("<I", _COOKIE | len(keys) - 1 << 16) + np.packbits(flags, bitorder="little").tobytes()
    else:
        head = struct.pack("<II", _COOKIE_WITHOUT_RUNS, len(keys))
    head += b"".join(struct.pack("<HH", key, count - 1) for key, (_, count, _) in zip(keys, containers, strict=True))
    if not has_runs or len(keys) >= _LEAST_WITH_OFFSETS:
        ends = np.cumsum([len(head) + 4 * len(keys), *(len(data) for _, _, data in containers)])
        head += ends[:-1].astype("<u4").tobytes()
    return head + b"".join(data for _, _, data in containers)


def _encode_container(rows: npt.NDArray[np.int64]) -> tuple[bool, int, bytes]:
    """Return whether a container lists runs, its number of rows, and its bytes: the shortest form, runs last."""
    count = len(rows)
    firsts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    if 2 + 4 * len(firsts) < min(2 * count, _BITMAP_BYTES):
        lengths = np.diff(firsts, append=count) - 1
        pairs = np.column_stack([rows[firsts], lengths]).astype("<u2")
        return True, count, struct.pack("<H", len(firsts)) + pairs.tobytes()
    if count <= _ARRAY_ROWS:
        return False, count, rows.astype("<u2").tobytes()
    bits = np.zeros(8 * _BITMAP_BYTES, dtype=np.uint8)
    bits[rows] = 1
    return False, count, np.packbits(bits, bitorder="little").tobytes()


def decode_deletion_vector(data: bytes, path: str) -> npt.NDArray[np.int64]:
    """Return the deleted rows' positions in their file, ascending.

    Args:
        data: length, magic, bitmap and checksum, as in an index file.
        path: only for messages.
    """
    framed = framed_vector(data, path)
    try:
        bitmaps = framed[8:-4]
        return _decode_bitmaps(bitmaps) if _is_64(framed) else _decode_bitmap(bitmaps, 0)[0]
    except (struct.error, ValueError) as error:
        raise FormatError(f"{path}: a deletion vector cannot be read: {error}") from error


def framed_vector(data: bytes, path: str) -> bytes:
    """Return a deletion vector from its length to its checksum, which is right.

    Args:
        data: may be longer.
        path: only for messages.
    """
    if len(data) < 12:
        raise FormatError(f"{path}: a deletion vector was cut off")
    length, magic = struct.unpack_from(">iI", data)
    if (magic != MAGIC and not _is_64(data)) or not 8 <= length <= len(data) - 8:
        raise FormatError(f"{path}: there is no deletion vector at this offset")
    if zlib.crc32(data[4 : 4 + length]) != struct.unpack_from(">I", data, 4 + length)[0]:
        raise FormatError(f"{path}: the checksum of a deletion vector is wrong, the file is damaged")
    return data[: 8 + length]


def _is_64(data: bytes) -> bool:
    return bool(struct.unpack_from("<I", data, 4)[0] == MAGIC_64)


def _decode_bitmaps(data: bytes) -> npt.NDArray[np.int64]:
    """Decode bitmaps of the lower 32 bits, each after the upper 32 bits of its rows."""
    count, place = struct.unpack_from("<Q", data)[0], 8
    parts = [np.empty(0, np.int64)]
    last = -1
    for _ in range(count):
        key = struct.unpack_from("<I", data, place)[0]
        if not last < key <= _MOST_UPPER_BITS:
            raise ValueError("its bitmaps are out of order")
        rows, place = _decode_bitmap(data, place + 4)
        parts.append(rows + (key << 32))
        last = key
    return np.concatenate(parts)


def count_bitmap_rows(data: bytes) -> int:
    """Return the number of rows of a bitmap, which its head states.

    Raises:
        ValueError, struct.error: it is damaged.
    """
    heads, _, _ = _bitmap_head(data, 0)
    return int((heads[:, 1].astype(np.int64) + 1).sum())


def _decode_bitmap(data: bytes, start: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the rows of a bitmap, ascending, and where it ends."""
    heads, runs, place = _bitmap_head(data, start)
    parts = [np.empty(0, np.int64)]
    for number, (key, rows_less_one) in enumerate(heads.tolist()):
        is_run = bool(runs) and bool(runs[number // 8] >> number % 8 & 1)
        rows, place = _decode_container(data, place, rows_less_one + 1, is_run=is_run)
        parts.append(rows + (key << 16))
    return np.concatenate(parts), place


def _bitmap_head(data: bytes, start: int) -> tuple[npt.NDArray[np.uint16], bytes, int]:
    """Return key and number of rows less one of each container, which of them have runs, and where the first begins."""
    cookie = struct.unpack_from("<I", data, start)[0]
    runs = b""
    if cookie & 0xFFFF == _COOKIE:
        count, place = (cookie >> 16) + 1, start + 4
        runs = data[place : place + (count + 7) // 8]
        place += len(runs)
    elif cookie == _COOKIE_WITHOUT_RUNS:
        count, place = struct.unpack_from("<I", data, start + 4)[0], start + 8
    else:
        raise ValueError("it is not a bitmap")
    if count > _MOST_CONTAINERS:
        raise ValueError("it has too many parts")
    heads = np.frombuffer(data, "<u2", 2 * count, place).reshape(count, 2)
    place += 4 * count
    if not runs or count >= _LEAST_WITH_OFFSETS:
        place += 4 * count
    return heads, runs, place


def _decode_container(data: bytes, place: int, rows: int, *, is_run: bool) -> tuple[npt.NDArray[np.int64], int]:
    """Return the rows of a container, and where the next one begins."""
    if is_run:
        count = struct.unpack_from("<H", data, place)[0]
        pairs = np.frombuffer(data, "<u2", 2 * count, place + 2).reshape(count, 2).astype(np.int64)
        # Damaged runs could name far more rows than a container has.
        if (count and int((pairs[:, 1] + 1).sum()) != rows) or np.any(pairs.sum(axis=1) > _LAST_ROW):
            raise ValueError("the runs of a part are not its rows")
        found = [np.arange(start, start + more + 1) for start, more in pairs.tolist()]
        return np.concatenate([np.empty(0, np.int64), *found]), place + 2 + 4 * count
    if rows > _ARRAY_ROWS:
        bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, place), bitorder="little")
        return np.flatnonzero(bits), place + _BITMAP_BYTES
    return np.frombuffer(data, "<u2", rows, place).astype(np.int64), place + 2 * rows
