"""Encoding of the index of a data file, byte for byte as Java Paimon does: Bloom filters, bitmaps and range bitmaps.

Java iterates over hash maps, so the order of columns, and of the bitmaps of values, is that of ``java.util.HashMap``.

Source:
    Paimon ``common:fileindex/FileIndexFormat.java``, ``bloomfilter/BloomFilterFileIndex.java``,
    ``bloomfilter/FastHash.java``, ``common:utils/BloomFilter64.java``, ``bitmap/BitmapFileIndex.java``,
    ``bitmap/BitmapFileIndexMeta.java``, ``bitmap/BitmapFileIndexMetaV2.java``, ``rangebitmap/RangeBitmap.java``,
    ``rangebitmap/BitSliceIndexBitmap.java``, ``rangebitmap/dictionary/chunked/ChunkedDictionary.java``,
    ``core:io/DataFileIndexWriter.java``.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.format.deletion_vector import encode_bitmap
from penstock.format.file_index import MAGIC, xxh64
from penstock.format.row.murmur import hash_text_rows
from penstock.format.types.data_types import TypeRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Hashes = npt.NDArray[np.uint64]

NO_INDEXES: Final = struct.pack(">qiiii", MAGIC, 1, 24, 0, 0)
"""The index of a data file without any column in it."""
_U32: Final = 0xFFFFFFFF
_INT: Final = struct.Struct(">i")
_STRIPE: Final = 32
# A matrix of so many bytes takes eight times as much for a moment.
_MATRIX_BYTES: Final = 1 << 20
_ROWS_AT_ONCE: Final = _MATRIX_BYTES // _STRIPE
# There are few texts that are longer, and for few texts single steps of Python are faster than those of numpy.
_LONG: Final = 1 << 16
_MIN_TABLE: Final = 16
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(each)
    for each in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


class Texts(NamedTuple):
    """Byte strings without nulls.

    Attributes:
        offsets: where each begins in ``data``, and where the last one ends.
        data: the bytes of all.
    """

    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_list(self) -> list[bytes]:
        """Return the texts."""
        data, offsets = self.data.tobytes(), self.offsets.tolist()
        return [data[offsets[row] : offsets[row + 1]] for row in range(len(self))]

    def by_length(self) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.uint8]]]:
        """Yield rows of the same length, a limited number at a time, and their bytes as a matrix."""
        lengths = np.diff(self.offsets)
        order = np.argsort(lengths, kind="stable")
        starts = np.flatnonzero(np.diff(lengths[order], prepend=-1))
        for rows in np.split(order, starts[1:]) if len(order) else ():
            length = int(lengths[rows[0]])
            for part in np.array_split(rows, 1 + len(rows) * length // _MATRIX_BYTES):
                yield part, _gathered(self.data, self.offsets[part], length)


class BloomFilter:
    """Collects the hashes of a column's values; a value may be added many times.

    Args:
        items: expected number of different values.
        false_positives: probability that a value which is not in the file is found.
    """

    def __init__(self, items: int, false_positives: float) -> None:
        bits = bloom_bits(items, false_positives)
        self._bits = np.uint32(bits)
        self._bytes = np.zeros(bits // 8, np.uint8)
        self._hash_count = max(1, math.floor(bits / items * math.log(2) + 0.5))

    def add(self, hashes: Hashes) -> None:
        """Add values by their hashes."""
        low, high = (hashes & np.uint64(_U32)).astype(np.uint32), (hashes >> np.uint64(32)).astype(np.uint32)
        for _ in range(self._hash_count):
            low += high
            signed = low.view(np.int32)
            places = (signed ^ signed >> 31).view(np.uint32) % self._bits
            np.bitwise_or.at(self._bytes, places >> 3, np.left_shift(1, places & 7, dtype=np.uint8, casting="unsafe"))

    def encode(self) -> bytes:
        """Return the index."""
        return struct.pack(">i", self._hash_count) + self._bytes.tobytes()


def bloom_bits(items: int, false_positives: float) -> int:
    """Return the number of bits of a Bloom filter, a multiple of 8."""
    bits = int(-items * math.log(false_positives) / (math.log(2) * math.log(2)))
    return bits + 8 - bits % 8


def hash_integers(values: Ints) -> Hashes:
    """Hash each value by Thomas Wang's hash of 64-bit integers, with shifts that keep the sign."""
    key = ~values + (values << 21)
    key ^= key >> 24
    key += (key << 3) + (key << 8)
    key ^= key >> 14
    key += (key << 2) + (key << 4)
    key ^= key >> 28
    key += key << 31
    return key.view(np.uint64)


def hash_texts(texts: Texts) -> Hashes:
    """Hash each text by XXH64 with seed 0."""
    lengths = np.diff(texts.offsets)
    found = np.empty(len(texts), np.uint64)
    order = np.argsort(lengths, kind="stable")[::-1]
    long_count = int((lengths > _LONG).sum())
    for row in order[:long_count].tolist():
        found[row] = xxh64(texts.data[texts.offsets[row] : texts.offsets[row + 1]].tobytes())
    for start in range(long_count, len(order), _ROWS_AT_ONCE):
        rows = order[start : start + _ROWS_AT_ONCE]
        found[rows] = _xxh64_of_rows(texts.data, texts.offsets[rows], lengths[rows])
    return found


def _xxh64_of_rows(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]
) -> Hashes:
    """Hash texts that are sorted by length, the longest first."""
    stripes = lengths // _STRIPE
    lanes = np.empty((4, len(lengths)), np.uint64)
    lanes[:] = np.array([_wrapped(_P1, _P2), _P2, 0, ~_P1 + np.uint64(1)], np.uint64)[:, None]
    for number in range(int(stripes[0])):
        count = len(stripes) - int(np.searchsorted(stripes[::-1], number, side="right"))
        words = _words(_gathered(data, starts[:count] + _STRIPE * number, _STRIPE))
        lanes[:, :count] = _round(lanes[:, :count], words)
    value = np.zeros(len(lengths), np.uint64)
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        value += _rotated(lane, bits)
    for lane in lanes:
        value = (value ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    value = np.where(stripes > 0, value, _P5) + lengths.astype(np.uint64)
    rest = lengths % _STRIPE
    for length in np.unique(rest).tolist():
        rows = np.flatnonzero(rest == length)
        value[rows] = _with_rest(value[rows], _gathered(data, starts[rows] + stripes[rows] * _STRIPE, length))
    value = (value ^ value >> np.uint64(33)) * _P2
    value = (value ^ value >> np.uint64(29)) * _P3
    return value ^ value >> np.uint64(32)


def _with_rest(value: Hashes, rest: npt.NDArray[np.uint8]) -> Hashes:
    """Mix the last bytes of texts, fewer than a stripe and the same number for each, into their hashes."""
    length = rest.shape[1]
    place = length - length % 8
    for word in _words(rest[:, :place]):
        value = _rotated(value ^ _round(np.zeros_like(word), word), 27) * _P1 + _P4
    if length % 8 >= 4:
        half = np.ascontiguousarray(rest[:, place : place + 4]).view("<u4")[:, 0].astype(np.uint64)
        value = _rotated(value ^ half * _P1, 23) * _P2 + _P3
        place += 4
    for byte in rest[:, place:].T:
        value = _rotated(value ^ byte.astype(np.uint64) * _P5, 11) * _P1
    return value


def _gathered(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int32], length: int) -> npt.NDArray[np.uint8]:
    """Return so many bytes from each place, as the rows of a matrix."""
    found: npt.NDArray[np.uint8] = data[starts[:, None] + np.arange(length)]
    return found


def _words(matrix: npt.NDArray[np.uint8]) -> Hashes:
    """Return the first words of all rows, then the second ones, and so on."""
    return np.ascontiguousarray(matrix).view("<u8").T


def _wrapped(one: np.uint64, two: np.uint64) -> np.uint64:
    return np.uint64(int(one) + int(two) & (1 << 64) - 1)


def _round(lane: Hashes, word: Hashes) -> Hashes:
    return _rotated(lane + word * _P2, 31) * _P1


def _rotated(value: Hashes, bits: int) -> Hashes:
    return value << np.uint64(bits) | value >> np.uint64(64 - bits)


class Values(NamedTuple):
    """The different values of a column, in the order of their first rows.

    Attributes:
        keys: as they are stored: in big endian, after their length if they are texts.
        hashes: their hash codes in Java.
        ranks: positions of the keys in the order in which Java sorts the values.
    """

    keys: list[bytes]
    hashes: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.intp]


_WIDTHS: Final = {
    TypeRoot.BOOLEAN: 1,
    TypeRoot.TINYINT: 1,
    TypeRoot.SMALLINT: 2,
    TypeRoot.INT: 4,
    TypeRoot.DATE: 4,
    TypeRoot.TIME: 4,
    TypeRoot.FLOAT: 4,
    TypeRoot.BIGINT: 8,
    TypeRoot.DECIMAL: 8,
    TypeRoot.DOUBLE: 8,
    TypeRoot.TIMESTAMP: 8,
    TypeRoot.TIMESTAMP_LTZ: 8,
}
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_JAVA_TRUE, _JAVA_FALSE = 1231, 1237


def describe_numbers(values: Ints, root: TypeRoot) -> Values:
    """Describe different numbers; those of floating-point types are given as their bits."""
    width = _WIDTHS[root]
    data = values.astype(f">i{width}").tobytes()
    keys = [data[start : start + width] for start in range(0, len(data), width)]
    hashes = values ^ (values >> 32 & _U32) if width == 8 else values
    if root is TypeRoot.BOOLEAN:
        hashes = np.where(values, _JAVA_TRUE, _JAVA_FALSE)
    sorted_by = np.where(values < 0, ~values ^ np.int64(-(2**63)), values) if root in _FLOATS else values
    return Values(keys, hashes.astype(np.int32), np.argsort(sorted_by, kind="stable"))


def describe_texts(texts: Texts) -> Values:
    """Describe different texts."""
    hashes = np.empty(len(texts), np.int32)
    for rows, matrix in texts.by_length():
        hashes[rows] = hash_text_rows(matrix)
    plain = texts.to_list()
    ranks = sorted(range(len(plain)), key=plain.__getitem__)
    return Values([struct.pack(">i", len(each)) + each for each in plain], hashes, np.array(ranks, np.intp))


def encode_bitmap_index(codes: npt.NDArray[np.int32], values: Values, *, version: int, block_bytes: int) -> bytes:
    """Return a bitmap index.

    Args:
        codes: for each row of the file the position of its value; -1 for null.
        version: 1 or 2.
        block_bytes: of version 2, bytes of values after which a new block begins.
    """
    ends = np.cumsum(np.bincount(codes + 1, minlength=len(values.keys) + 1))
    nulls, *rows_of = np.split(np.argsort(codes, kind="stable").astype(np.int64), ends[:-1])
    body: list[bytes] = []
    end = 0

    def place(rows: Ints) -> tuple[int, int]:
        """Return offset and length of a bitmap; of one row, which is stored in place of the offset, no length."""
        nonlocal end
        if len(rows) == 1:
            return -1 - int(rows[0]), -1
        start = end
        body.append(encode_bitmap(rows))
        end += len(body[-1])
        return start, end - start

    head = struct.pack(">bii?", version, len(codes), len(values.keys), len(nulls) > 0)
    if len(nulls):
        offset, length = place(nulls)
        head += struct.pack(">i", offset)
        if version == 2:
            head += struct.pack(">i", length if length >= 0 else len(encode_bitmap(nulls)))
    present = codes[codes >= 0]
    has_grown = len(present) > 0 and bool((present[:-1] == present[-1]).any())
    order = hash_map_order(values.hashes, is_computed=True, has_grown=has_grown)
    places = {code: place(rows_of[code]) for code in order}
    if version == 1:
        return b"".join([head, *(values.keys[code] + struct.pack(">i", places[code][0]) for code in order), *body])
    entries = [values.keys[code] + struct.pack(">ii", *places[code]) for code in values.ranks.tolist()]
    return b"".join([head, *_blocks(entries, block_bytes), *body])


def _blocks(entries: Sequence[bytes], block_bytes: int) -> Iterator[bytes]:
    """Yield the directory of the blocks of entries, and the blocks."""
    blocks: list[list[bytes]] = []
    sizes: list[int] = []
    for entry in entries:
        # Java fails if a value does not fit into a block; its reader takes blocks of any size.
        if not blocks or sizes[-1] + len(entry) > block_bytes:
            blocks.append([])
            sizes.append(4)
        blocks[-1].append(entry)
        sizes[-1] += len(entry)
    yield struct.pack(">i", len(blocks))
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        yield block[0][:-8] + struct.pack(">i", start)
        start += size
    yield struct.pack(">i", start)
    for block in blocks:
        yield struct.pack(">i", len(block))
        yield from block


def encode_range_bitmap(codes: npt.NDArray[np.int32], values: Values, *, chunk_bytes: int, are_texts: bool) -> bytes:
    """Return a range bitmap: the sorted values, and the rows with each bit of the position of their value.

    Args:
        codes: as of ``encode_bitmap_index``.
        chunk_bytes: of values after the first one of a chunk.
    """
    keys = [values.keys[code] for code in values.ranks.tolist()]
    dictionary = _encode_dictionary(keys, chunk_bytes, are_texts=are_texts)
    head = struct.pack(">bii", 1, len(codes), len(keys)) + b"".join(keys[:1] + keys[-1:])
    head += struct.pack(">i", len(dictionary))
    positions = np.empty(len(keys), np.int64)
    positions[values.ranks] = np.arange(len(keys))
    rows = np.flatnonzero(codes >= 0)
    found = positions[codes[rows]]
    # Java counts the leading zeros of -1 if there are no values.
    slice_count = max((len(keys) - 1).bit_length(), 1) if keys else 64
    present = encode_bitmap(rows)
    slices = [encode_bitmap(rows[found >> bit & 1 == 1]) for bit in range(slice_count)]
    places = _places(slices)
    slices_head = struct.pack(">bbii", 1, slice_count, len(present), len(places)) + places
    return b"".join(
        [_INT.pack(len(head)), head, dictionary, _INT.pack(len(slices_head)), slices_head, present, *slices]
    )


def _places(parts: Sequence[bytes]) -> bytes:
    """Return offset and length of each part."""
    lengths = np.array([len(part) for part in parts])
    return np.column_stack([np.cumsum(lengths) - lengths, lengths]).astype(">i4").tobytes()


def _encode_dictionary(keys: Sequence[bytes], chunk_bytes: int, *, are_texts: bool) -> bytes:
    """Return sorted values in chunks, each with a head that has its first value."""
    heads: list[bytes] = []
    bodies: list[bytes] = []
    start = offset = 0
    while start < len(keys):
        size = 0
        places: list[int] = []
        for key in keys[start + 1 : start + 2 + chunk_bytes]:
            if size + len(key) > chunk_bytes or (are_texts and _INT.size * (len(places) + 1) > chunk_bytes):
                break
            places.append(size)
            size += len(key)
        body = np.array(places if are_texts else [], ">i4").tobytes()
        lengths = (len(body), size) if are_texts else (size, len(keys[start]))
        heads.append(b"\1" + keys[start] + struct.pack(">5i", start, offset, len(places), *lengths))
        bodies.append(body + b"".join(keys[start + 1 : start + 1 + len(places)]))
        offset += len(bodies[-1])
        start += 1 + len(places)
    places_of_heads = np.cumsum([0, *map(len, heads)])[:-1].astype(">i4").tobytes()
    head = struct.pack(">biii", 1, len(heads), len(places_of_heads), sum(map(len, heads)))
    return b"".join([_INT.pack(len(head)), head, places_of_heads, *heads, *bodies])


def hash_map_order(hashes: npt.NDArray[np.int32], *, is_computed: bool, has_grown: bool = True) -> list[int]:
    """Return the positions of keys in the order in which a ``java.util.HashMap`` iterates over them.

    Args:
        hashes: of the keys, in the order in which they were added.
        is_computed: added by ``computeIfAbsent``, which puts a key before those that it collides with, not by ``put``.
        has_grown: False if the last key was added by the last call of ``computeIfAbsent``, which grows the map first.

    Source:
        OpenJDK ``java/util/HashMap.java`` (``hash``, ``resize``, ``computeIfAbsent``), without trees.
    """
    size = _MIN_TABLE
    while len(hashes) - (not has_grown) > size * 3 // 4:
        size *= 2
    bits = hashes.view(np.uint32)
    bins = (bits ^ bits >> 16) & np.uint32(size - 1)
    if is_computed:
        return [len(bins) - 1 - int(place) for place in np.argsort(bins[::-1], kind="stable")]
    return [int(place) for place in np.argsort(bins, kind="stable")]


def encode_file_index(indexes: Mapping[tuple[str, str], bytes]) -> bytes:
    """Return the index of a data file.

    Args:
        indexes: by kind and column.
    """
    # The maps of the options, of the indexes that are written, and of those that are stored.
    named = [column for _, column in indexes]
    columns = _in_map_order(
        [*dict.fromkeys(named)],
        lambda name: ((31 + _java_hash(name)) * 31 * 31) + _JAVA_FALSE,
        is_computed=True,
        has_grown=named[-1] in named[:-1],
    )
    kinds = _in_map_order(sorted({kind for kind, _ in indexes}), _java_hash, is_computed=True)
    added = [
        column
        for kind in kinds
        for column in _in_map_order([each for each in columns if (kind, each) in indexes], _java_hash)
    ]
    stored = _in_map_order([*dict.fromkeys(added)], _java_hash, is_computed=True, has_grown=added[-1] in added[:-1])
    parts = {column: {kind: indexes[kind, column] for kind in kinds if (kind, column) in indexes} for column in stored}
    names = [_utf(each) for column, of_column in parts.items() for each in (column, *of_column)]
    start = sum(map(len, names)) + 24 + 4 * len(parts) + 8 * len(indexes)
    head = [struct.pack(">qiii", MAGIC, 1, start, len(parts))]
    for column, of_column in parts.items():
        head += [_utf(column), struct.pack(">i", len(of_column))]
        for kind, data in of_column.items():
            head += [_utf(kind), struct.pack(">ii", start, len(data))]
            start += len(data)
    return b"".join([*head, bytes(4), *(data for of_column in parts.values() for data in of_column.values())])


def _in_map_order(
    keys: Sequence[str], hash_of: Callable[[str], int], *, is_computed: bool = False, has_grown: bool = True
) -> list[str]:
    hashes = np.array([hash_of(each) & _U32 for each in keys], np.uint32).view(np.int32)
    return [keys[place] for place in hash_map_order(hashes, is_computed=is_computed, has_grown=has_grown)]


def _java_hash(text: str) -> int:
    value = 0
    for unit in _utf16(text):
        value = value * 31 + unit & _U32
    return value


def _utf16(text: str) -> tuple[int, ...]:
    data = text.encode("utf-16-be")
    return struct.unpack(f">{len(data) // 2}H", data)


def _utf(text: str) -> bytes:
    """Encode a text as Java's ``DataOutput.writeUTF`` does: characters are those of UTF-16, and 0 has two bytes."""
    data = "".join(map(chr, _utf16(text))).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return struct.pack(">H", len(data)) + data
