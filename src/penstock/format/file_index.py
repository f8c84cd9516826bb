"""The index of a data file: for some columns, the values that the file may contain.

Bloom filters, bitmaps and range bitmaps are read; other kinds are ignored. ``file_index_writer`` encodes them.

Source:
    Paimon ``common:fileindex/FileIndexFormat.java``, ``bloomfilter/BloomFilterFileIndex.java``,
    ``bloomfilter/FastHash.java``, ``bitmap/BitmapFileIndexMeta.java``, ``bitmap/BitmapFileIndexMetaV2.java``,
    ``rangebitmap/RangeBitmap.java``, ``rangebitmap/dictionary/chunked/ChunkedDictionary.java``;
    https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md (XXH64 with seed 0).
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from struct import Struct, error, iter_unpack, unpack_from
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.format.deletion_vector import count_bitmap_rows
from penstock.format.types.data_types import AtomicType, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from penstock.format.types.data_types import DataType


_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_STRIPE: Final = 32


def xxh64(data: bytes) -> int:
    """Return the hash, not negative."""
    whole = len(data) - len(data) % _STRIPE
    value = (_stripes(data[:whole]) if whole else _P5) + len(data) & _MASK
    place = whole
    while place + 8 <= len(data):
        value = _rotated(value ^ _round(0, unpack_from("<Q", data, place)[0]), 27) * _P1 + _P4 & _MASK
        place += 8
    if place + 4 <= len(data):
        value = _rotated(value ^ unpack_from("<I", data, place)[0] * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        place += 4
    for byte in data[place:]:
        value = _rotated(value ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _stripes(data: bytes) -> int:
    lanes = [_P1 + _P2 & _MASK, _P2, 0, -_P1 & _MASK]
    for words in iter_unpack("<4Q", data):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    value = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        value = (value ^ _round(0, lane)) * _P1 + _P4 & _MASK
    return value


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


BLOOM_FILTER: Final = "bloom-filter"
BITMAP: Final = "bitmap"
RANGE_BITMAP: Final = "range-bitmap"
WRITTEN: Final = frozenset({BLOOM_FILTER, BITMAP, RANGE_BITMAP})
"""The kinds of indexes that Penstock writes."""
MAGIC: Final = 1493475289347502
_HEAD: Final = Struct(">qii")
_BYTE, _SHORT, _INT, _LONG, _LENGTH = (Struct(f">{code}") for code in "bhiqH")
# Each after its own length.
_SLICES_HEAD: Final = Struct(">ibbi")
_DICTIONARY_HEAD: Final = Struct(">ibiii")
# Position of the first value, where the others begin, and their number; of texts, the bytes of their offsets.
_CHUNK_HEAD: Final = Struct(">4i")
_NANOS_PER_MILLI: Final = 1_000_000
_NANOS_PER_MICRO: Final = 1_000
# 30 suffice for one false positive in a billion; a damaged filter could state two billion.
_MAX_HASHES: Final = 1_000
_TEXTS: Final = frozenset({TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY})
_TIMES: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# FLOAT and DOUBLE have two zeros, and CHAR has padding: equal values with different bytes.
_NUMBERS: Final = {
    TypeRoot.BOOLEAN: _BYTE,
    TypeRoot.TINYINT: _BYTE,
    TypeRoot.SMALLINT: _SHORT,
    TypeRoot.INT: _INT,
    TypeRoot.DATE: _INT,
    TypeRoot.TIME: _INT,
    TypeRoot.BIGINT: _LONG,
    TypeRoot.TIMESTAMP: _LONG,
    TypeRoot.TIMESTAMP_LTZ: _LONG,
}


class IndexPlace(NamedTuple):
    """Location of the index of one column and kind.

    Attributes:
        start: offset in bytes from the start of all indexes of the data file.
        length: bytes, positive.
    """

    start: int
    length: int


def decode_index_places(data: bytes) -> Mapping[str, Mapping[str, IndexPlace]]:
    """Return the locations of the indexes of each column, by kind.

    Args:
        data: at least the header, which precedes all indexes.

    Returns:
        Empty if the header cannot be read.
    """
    found: dict[str, dict[str, IndexPlace]] = {}
    try:
        source = io.BytesIO(data)
        magic, version, head_bytes = _HEAD.unpack(source.read(_HEAD.size))
        if (magic, version) != (MAGIC, 1):
            return {}
        for _ in range(_number(source, _INT)):
            kinds = found.setdefault(_text(source), {})
            for _ in range(_number(source, _INT)):
                kind, start, length = _text(source), _number(source, _INT), _number(source, _INT)
                if 0 <= head_bytes <= start and length > 0:
                    kinds[kind] = IndexPlace(start, length)
    except (error, ValueError):
        return {}
    return found


def part_of(data: bytes, start: int, length: int) -> bytes | None:
    """Return an index from the first bytes of a file; None if it is not completely among them."""
    end = start + length
    return data[start:end] if end <= len(data) else None


def is_indexed_type(data_type: DataType) -> bool:
    """Whether an index of a column of this type can be used."""
    return isinstance(data_type, AtomicType) and (data_type.root in _TEXTS or data_type.root in _NUMBERS)


def may_hold(index: Mapping[str, bytes], data_type: DataType, values: Collection[object]) -> bool:
    """Whether a file may have a row with one of the values in the column.

    Args:
        index: of the column, by kind.
        data_type: of the column when the file was written.
        values: internal values, None for null.
    """
    if not isinstance(data_type, AtomicType) or not is_indexed_type(data_type):
        return True
    try:
        keys = [None if value is None else _key(data_type, value) for value in values]
        if BITMAP in index and not _bitmap_holds(index[BITMAP], data_type, keys):
            return False
        if RANGE_BITMAP in index and not _range_bitmap_holds(index[RANGE_BITMAP], data_type, keys):
            return False
        return BLOOM_FILTER not in index or any(_bloom_holds(index[BLOOM_FILTER], data_type, key) for key in keys)
    except (error, IndexError, KeyError, ValueError, TypeError, ZeroDivisionError):
        return True  # damaged, or of another kind


def _key(data_type: AtomicType, value: object) -> bytes | int:
    """Return a value in the form used in indexes."""
    if data_type.root in _TEXTS:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, bytes):
            return value
    if not isinstance(value, int):
        raise TypeError(f"a column of type {data_type.root} has no such value")
    if data_type.root in _TIMES:
        return value // (_NANOS_PER_MILLI if _precision(data_type) <= 3 else _NANOS_PER_MICRO)
    return int(value)


def _precision(data_type: AtomicType) -> int:
    return 6 if data_type.precision is None else data_type.precision


def _bloom_holds(data: bytes, data_type: AtomicType, key: bytes | int | None) -> bool:
    if key is None or data_type.root is TypeRoot.BOOLEAN:
        return True
    found = xxh64(key) if isinstance(key, bytes) else _long_hash(key)
    low, high = found & 0xFFFFFFFF, found >> 32
    bits = (len(data) - _INT.size) * 8
    hashes = _INT.unpack_from(data)[0]
    if not 0 < hashes <= _MAX_HASHES:
        return True
    for number in range(1, hashes + 1):
        mixed = low + number * high & 0xFFFFFFFF
        place = (~mixed & 0x7FFFFFFF if mixed & 0x80000000 else mixed) % bits
        if not data[_INT.size + (place >> 3)] >> (place & 7) & 1:
            return False
    return True


def _long_hash(key: int) -> int:
    """Thomas Wang's hash of a 64-bit integer, with shifts that keep the sign."""
    key = _signed(~key + (key << 21))
    key = _signed(key ^ key >> 24)
    key = _signed(key + (key << 3) + (key << 8))
    key = _signed(key ^ key >> 14)
    key = _signed(key + (key << 2) + (key << 4))
    key = _signed(key ^ key >> 28)
    return key + (key << 31) & _MASK


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _bitmap_holds(data: bytes, data_type: AtomicType, keys: Collection[bytes | int | None]) -> bool:
    version = data[0]
    if version not in {1, 2}:
        return True
    source = io.BytesIO(data[1:])
    _number(source, _INT)  # of rows
    count = _number(source, _INT)
    has_null = bool(_number(source, _BYTE))
    if has_null:
        if None in keys:
            return True
        source.read(_INT.size * version)  # location of the bitmap of nulls
    if version == 1:
        held = _values(source, data_type, count, 1)
    else:
        blocks = _number(source, _INT)
        _values(source, data_type, blocks, 1)  # the first of each
        _number(source, _INT)  # bytes of the blocks
        held = {value for _ in range(blocks) for value in _values(source, data_type, _number(source, _INT), 2)}
    return not held.isdisjoint(keys)


def _range_bitmap_holds(data: bytes, data_type: AtomicType, keys: Collection[bytes | int | None]) -> bool:
    source = io.BytesIO(data)
    head_bytes = _number(source, _INT)
    if _number(source, _BYTE) != 1:
        return True
    rows, different = _number(source, _INT), _number(source, _INT)
    if not different:
        return None in keys and rows > 0
    first, last = (_value(source, data_type) for _ in range(2))
    dictionary_bytes = _number(source, _INT)
    start = _INT.size + head_bytes
    if None in keys and _count_values(data, start + dictionary_bytes) < rows:
        return True
    wanted = [key for key in keys if key is not None and first <= key <= last]  # type: ignore[operator]
    if not wanted:
        return False
    dictionary = _Dictionary(data[start : start + dictionary_bytes], data_type)
    return any(map(dictionary.holds, wanted))


def _count_values(data: bytes, start: int) -> int:
    """Return the number of rows that have a value."""
    head_bytes, version, _, size = _SLICES_HEAD.unpack_from(data, start)
    if version != 1:
        raise ValueError(f"version {version} of a range bitmap is not known")
    start += _INT.size + head_bytes
    return count_bitmap_rows(data[start : start + size])


class _Dictionary:
    """The sorted values of a range bitmap, in chunks, of which the first values are in a directory."""

    def __init__(self, data: bytes, data_type: AtomicType) -> None:
        self._data = data
        self._type = data_type
        head_bytes, version, self._count, places_bytes, heads_bytes = _DICTIONARY_HEAD.unpack_from(data)
        if version != 1:
            raise ValueError(f"version {version} of a dictionary is not known")
        self._places = _INT.size + head_bytes
        self._heads = self._places + places_bytes
        self._keys = self._heads + heads_bytes

    def holds(self, key: bytes | int) -> bool:
        """Whether a value, not less than the first one, is in the dictionary."""
        found = bisect_right(range(self._count), key, key=lambda chunk: self._head(chunk)[0]) - 1
        if found < 0:
            raise ValueError("the dictionary of a range bitmap does not begin with its least value")
        first, head = self._head(found)
        if first == key:
            return True
        _, offset, size, places_bytes = _CHUNK_HEAD.unpack_from(head.read(_CHUNK_HEAD.size))
        start = self._keys + offset
        starts: Sequence[int]
        if self._type.root is TypeRoot.VARCHAR:
            places = iter_unpack(_INT.format, self._data[start : start + places_bytes])
            starts = [start + places_bytes + place for (place,) in places]
        else:
            # No list, as a damaged index could state two billion.
            width = _NUMBERS[self._type.root].size
            starts = range(start, start + size * width, width)
        if len(starts) != size:
            raise ValueError("a chunk does not have as many values as it states")
        place = bisect_left(starts, key, key=self._value)
        return place < len(starts) and self._value(starts[place]) == key

    def _head(self, chunk: int) -> tuple[bytes | int, io.BytesIO]:
        """Return the first value of a chunk, and what follows it."""
        source = io.BytesIO(self._data)
        source.seek(self._heads + _INT.unpack_from(self._data, self._places + chunk * _INT.size)[0])
        if _number(source, _BYTE) != 1:
            raise ValueError("the version of a chunk is not known")
        return _value(source, self._type), source

    def _value(self, start: int) -> bytes | int:
        source = io.BytesIO(self._data)
        source.seek(start)
        return _value(source, self._type)


def _values(source: io.BytesIO, data_type: AtomicType, count: int, numbers: int) -> set[bytes | int]:
    """Read values, each followed by a number of integers."""
    found = set[bytes | int]()
    for _ in range(count):
        found.add(_value(source, data_type))
        _exactly(source, numbers * _INT.size)
    return found


def _value(source: io.BytesIO, data_type: AtomicType) -> bytes | int:
    if data_type.root is TypeRoot.VARCHAR:
        return _exactly(source, _number(source, _INT))
    return _number(source, _NUMBERS[data_type.root])


def _number(source: io.BytesIO, layout: Struct) -> int:
    return int(layout.unpack(source.read(layout.size))[0])


def _text(source: io.BytesIO) -> str:
    """Read a text of Java's ``DataInput.readUTF``, whose characters are those of UTF-16; 0 has two bytes."""
    data = _exactly(source, _number(source, _LENGTH)).replace(b"\xc0\x80", b"\0")
    return data.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")


def _exactly(source: io.BytesIO, size: int) -> bytes:
    data = source.read(size) if size >= 0 else b""
    if len(data) != size:
        raise ValueError(f"{size} bytes are expected, and {len(data)} are there")
    return data
