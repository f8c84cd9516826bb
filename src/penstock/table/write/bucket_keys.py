"""Buckets of whole Arrow columns at once, bit-equal to ``format.row.bucket.bucket_of``.

The key columns are encoded as in a BinaryRow, whose every part is a multiple of 8 bytes. So the rows of a block form a
matrix of 64-bit words, in which word j of all rows is contiguous, and the hash takes a few numpy operations per word.
Rows differ in length only by strings of more than seven bytes; rows of the same length are hashed together.

Source:
    Paimon ``core:bucket/*.java``, ``common:data/BinaryRowWriter.java``, ``RowHelper.java``; docs/spec/commit.md
    section 2.1, format.md section 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

import numpy as np

from penstock.errors import UnsupportedFeatureError
from penstock.format.row.bucket import BucketFunction, check_mod_key
from penstock.format.row.murmur import hash_words
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny

Words: TypeAlias = "npt.NDArray[np.uint64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"

INLINE_BYTES: Final = 7
COMPACT_DECIMAL_DIGITS: Final = 18
COMPACT_TIMESTAMP_DIGITS: Final = 3
NANOS_PER_MILLI: Final = 1_000_000
# _LOW_BYTES[k] keeps the first k bytes of a little endian word.
_LOW_BYTES: Final = np.array([(1 << (8 * k)) - 1 for k in range(9)], dtype=np.uint64)

_FIXED_WIDTH: Final = {
    TypeRoot.TINYINT: "<u1",
    TypeRoot.SMALLINT: "<u2",
    TypeRoot.INT: "<u4",
    TypeRoot.DATE: "<u4",
    TypeRoot.TIME: "<u4",
    TypeRoot.FLOAT: "<u4",
    TypeRoot.BIGINT: "<u8",
    TypeRoot.DOUBLE: "<u8",
}
_BYTE_STRINGS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY})
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
_KEY_ROOTS: Final = frozenset(_FIXED_WIDTH) | _BYTE_STRINGS | _TIMESTAMPS | {TypeRoot.BOOLEAN, TypeRoot.DECIMAL}
_UNITS_PER_MILLI: Final = {"ms": 1, "us": 1_000, "ns": NANOS_PER_MILLI}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """A column whose values fit their slots.

    Attributes:
        words: the slot of every row, 0 where null.
    """

    words: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTail:
    """A column that has the same number of words after the slots in every row, also for nulls, as in the reference.

    Attributes:
        low: low half of the slot; the high half is the offset of ``words``.
        words: the words after the slots.
    """

    low: Words
    words: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteStrings:
    """A column of strings: up to seven bytes are stored in the slot, longer strings after the slots.

    Attributes:
        data: overlapping words, one starting at every byte: ``data[p]`` is the 8 bytes from p.
        starts: index in ``data`` of the first byte of each string.
        lengths: in bytes; 0 where null.
        nulls: which rows are null; None when none is.
    """

    data: Words
    starts: Ints
    lengths: Ints
    nulls: Flags | None

    @property
    def tail_words(self) -> Ints:
        """Number of words after the slots, for each string."""
        return np.where(self.lengths > INLINE_BYTES, (self.lengths + 7) >> 3, 0)

    def inline_slots(self, rows: Ints) -> Words:
        """Return the slots of the strings of ``rows``; only valid for strings that fit into the slot."""
        lengths = np.minimum(self.lengths[rows], INLINE_BYTES)
        slots = self.data[self.starts[rows]] & _LOW_BYTES[lengths]
        slots |= (lengths.astype(np.uint64) | np.uint64(0x80)) << np.uint64(56)
        if self.nulls is not None:
            slots[self.nulls[rows]] = 0
        return slots

    def word(self, rows: Ints, j: int) -> Words:
        """Return word ``j`` of the strings of ``rows``, padded with zeros."""
        left = np.minimum(self.lengths[rows] - 8 * j, 8)
        return self.data[self.starts[rows] + 8 * j] & _LOW_BYTES[left]


KeyField: TypeAlias = Slots | FixedTail | ByteStrings


def check_bucket_key_type(name: str, data_type: DataType) -> AtomicType:
    """Return the type if a bucket key may have it."""
    if isinstance(data_type, AtomicType) and data_type.root in _KEY_ROOTS:
        return data_type
    kind = data_type.root if isinstance(data_type, AtomicType) else type(data_type).__name__
    raise UnsupportedFeatureError(f"column '{name}' ({kind}) cannot be a bucket key; choose a column of a plain type")


def nulls_of(column: ArrowAny) -> Flags | None:
    """Return which rows are null; None when none is."""
    if column.null_count == 0:
        return None
    flags: Flags = column.is_null().to_numpy(zero_copy_only=False)
    return flags


def encode_key(column: ArrowAny, data_type: AtomicType, nulls: Flags | None) -> KeyField:
    """Encode a column as its part of the BinaryRows.

    Args:
        column: of the canonical Arrow type, at least one row.
        data_type: one that ``check_bucket_key_type`` accepts.
        nulls: the result of ``nulls_of`` for the column.
    """
    root = data_type.root
    if root in _BYTE_STRINGS:
        return _encode_strings(column, nulls)
    if root is TypeRoot.DECIMAL:
        return _encode_decimals(column, 10 if data_type.precision is None else data_type.precision, nulls)
    if root in _TIMESTAMPS:
        return _encode_timestamps(column, 6 if data_type.precision is None else data_type.precision, nulls)
    if root is TypeRoot.BOOLEAN:
        words = column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)  # noqa: FBT003 - pyarrow's only form
    else:
        words = fixed_values(column, _FIXED_WIDTH[root]).astype(np.uint64)
    return Slots(words=_zero_nulls(words, nulls))


def fixed_values(column: ArrowAny, dtype: str) -> npt.NDArray[Any]:
    """Return the values as they are in memory; the values of nulls are arbitrary."""
    item: np.dtype[Any] = np.dtype(dtype)
    return np.frombuffer(_buffer(column, 1), dtype=item, count=len(column), offset=column.offset * item.itemsize)


def _buffer(column: ArrowAny, place: int) -> memoryview[int]:
    buffer = column.buffers()[place]
    return memoryview(b"" if buffer is None else buffer)


def _zero_nulls(words: Words, nulls: Flags | None) -> Words:
    if nulls is not None:
        words[nulls] = 0
    return words


def _encode_timestamps(column: ArrowAny, precision: int, nulls: Flags | None) -> KeyField:
    values = _zero_nulls(fixed_values(column, "<i8").copy(), nulls)
    per_milli = _UNITS_PER_MILLI[column.type.unit]
    millis = values // per_milli
    if precision <= COMPACT_TIMESTAMP_DIGITS:
        return Slots(words=millis.view(np.uint64))
    nanos = (values - millis * per_milli) * (NANOS_PER_MILLI // per_milli)
    return FixedTail(low=nanos.view(np.uint64), words=(millis.view(np.uint64),))


def _encode_decimals(column: ArrowAny, precision: int, nulls: Flags | None) -> KeyField:
    halves = np.frombuffer(_buffer(column, 1), dtype="<u8", count=2 * len(column), offset=16 * column.offset)
    low = _zero_nulls(halves[0::2].copy(), nulls)
    if precision <= COMPACT_DECIMAL_DIGITS:
        return Slots(words=low)
    high = _zero_nulls(halves[1::2].copy(), nulls)
    digits = np.stack([high, low], axis=1).byteswap().view(np.uint8)
    lengths = _signed_byte_lengths(digits)
    if nulls is not None:
        lengths[nulls] = 0
    front = np.zeros_like(digits)
    for length in np.flatnonzero(np.bincount(lengths)):
        chosen = np.flatnonzero(lengths == length)
        front[chosen, :length] = digits[chosen, 16 - length :]
    words = front.view(np.uint64)
    return FixedTail(low=lengths.astype(np.uint64), words=(words[:, 0], words[:, 1]))


def _signed_byte_lengths(digits: npt.NDArray[np.uint8]) -> Ints:
    """Return the minimal byte length of each big endian two's complement number, sign bit included."""
    negative = digits[:, :1] >= 0x80
    meaningful = digits != np.where(negative, 0xFF, 0).astype(np.uint8)
    first = np.where(meaningful.any(axis=1), meaningful.argmax(axis=1), 15)
    sign_is_kept = (np.take_along_axis(digits, first[:, None], axis=1) >= 0x80) == negative
    return 16 - first + np.where(sign_is_kept[:, 0], 0, 1)


def _encode_strings(column: ArrowAny, nulls: Flags | None) -> ByteStrings:
    data_buffer = _buffer(column, 2)
    offsets = np.frombuffer(_buffer(column, 1), dtype="<i4", count=len(column) + 1, offset=4 * column.offset)
    first, end = int(offsets[0]), int(offsets[-1])
    # A word is read at every byte, so 8 bytes must follow the last one. If the buffer is too short, use a padded copy.
    if len(data_buffer) >= end + 8:
        raw = np.frombuffer(data_buffer, dtype=np.uint8, count=end - first + 8, offset=first)
    else:
        raw = np.zeros(end - first + 8, dtype=np.uint8)
        if end > first:
            raw[:-8] = np.frombuffer(data_buffer, dtype=np.uint8, count=end - first, offset=first)
    lengths = np.diff(offsets).astype(np.int64)
    if nulls is not None:
        lengths[nulls] = 0
    return ByteStrings(
        data=np.ndarray(shape=(len(raw) - 7,), dtype="<u8", buffer=raw, strides=(1,)),
        starts=offsets[:-1].astype(np.int64) - first,
        lengths=lengths,
        nulls=nulls,
    )


Buckets: TypeAlias = "npt.NDArray[np.int32]"

# 32 Ki rows: the words of a BIGINT key fit into the L2 cache, and the cost of a numpy call (about 0.5 us) is spread
# over enough rows.
BLOCK_ROWS: Final = 32_768


def assign_buckets(
    columns: Sequence[ArrowAny], types: Sequence[DataType], num_buckets: int, function: BucketFunction
) -> Buckets:
    """Return the bucket of every row; ``columns`` are those of the bucket key in the option's order.

    Raises:
        UnsupportedFeatureError: function ``hive``, or a type that no bucket key may have.
        InvalidOptionError: function ``mod`` on anything but one INT or BIGINT.
    """
    match function:
        case BucketFunction.HIVE:
            raise UnsupportedFeatureError(
                "option 'bucket-function.type' = 'hive' is not supported; use 'default' or 'mod', or write with Paimon"
            )
        case BucketFunction.MOD:
            return _mod_buckets(columns, types, num_buckets)
        case BucketFunction.DEFAULT:
            # |-2^31| fits only uint32. numpy vectorises division by a constant, but not the remainder.
            magnitude = np.abs(bucket_hashes(columns, types)).view(np.uint32)
            divisor = np.uint32(num_buckets)
            return (magnitude - magnitude // divisor * divisor).view(np.int32)
        case other:
            assert_never(other)


def bucket_hashes(columns: Sequence[ArrowAny], types: Sequence[DataType]) -> Buckets:
    """Return the hash of every row of the given columns, in that order of columns.

    Args:
        columns: of canonical Arrow types and equal lengths.
        types: of the columns.

    Returns:
        One signed hash per row: ``format.row.murmur.hash_bytes`` of its BinaryRow without the arity prefix.

    Raises:
        UnsupportedFeatureError: a column of a type that no bucket key may have.
    """
    atomic = [check_bucket_key_type(f"#{i}", data_type) for i, data_type in enumerate(types)]
    rows = len(columns[0])
    hashes = np.empty(rows, dtype=np.int32)
    for start in range(0, rows, BLOCK_ROWS):
        block = [column.slice(start, BLOCK_ROWS) for column in columns]
        hashes[start : start + BLOCK_ROWS] = _hash_block(block, atomic)
    return hashes


def _mod_buckets(columns: Sequence[ArrowAny], types: Sequence[DataType], num_buckets: int) -> Buckets:
    check_mod_key(types)
    is_int = isinstance(types[0], AtomicType) and types[0].root is TypeRoot.INT
    values = fixed_values(columns[0], "<i4" if is_int else "<i8").astype(np.int64)
    nulls = nulls_of(columns[0])
    if nulls is not None:
        values[nulls] = 0
    return np.mod(values, np.int64(num_buckets)).astype(np.int32)


def _hash_block(columns: Sequence[ArrowAny], types: Sequence[AtomicType]) -> Buckets:
    rows = len(columns[0])
    nulls = [nulls_of(column) for column in columns]
    fields = [
        encode_key(column, data_type, null) for column, data_type, null in zip(columns, types, nulls, strict=True)
    ]
    header = _header_words(nulls, rows)
    tails = np.zeros(rows, dtype=np.int64)
    for item in fields:
        if isinstance(item, ByteStrings):
            tails += item.tail_words
    lengths = np.flatnonzero(np.bincount(tails))
    if len(lengths) == 1:
        return _hash_rows(header, fields, np.arange(rows), int(lengths[0]))
    hashes = np.empty(rows, dtype=np.int32)
    for length in lengths:
        chosen = np.flatnonzero(tails == length)
        hashes[chosen] = _hash_rows(header, fields, chosen, int(length))
    return hashes


def _hash_rows(header: Sequence[Words], fields: Sequence[KeyField], rows: Ints, string_words: int) -> Buckets:
    """Hash the chosen rows; in each row, the strings take ``string_words`` words in all, after the slots."""
    slots_end = len(header) + len(fields)
    fixed_words = sum(len(item.words) for item in fields if isinstance(item, FixedTail))
    matrix = np.empty((slots_end + fixed_words + string_words, len(rows)), dtype=np.uint64)
    every_row = len(rows) == len(header[0])
    for j, word in enumerate(header):
        matrix[j] = word if every_row else word[rows]
    # Index of the next word after the slots: one number for all rows, until a column has strings of different lengths.
    place: int | Ints = slots_end
    for slot, item in enumerate(fields, len(header)):
        match item:
            case Slots(words=words):
                matrix[slot] = words if every_row else words[rows]
            case FixedTail():
                matrix[slot] = item.low[rows] | _high_half(place)
                for word in item.words:
                    _put(matrix, place, np.arange(len(rows)), word[rows])
                    place = place + 1
            case ByteStrings():
                place = _put_strings(matrix, slot, place, item, rows)
            case other:
                assert_never(other)
    return hash_words(_as_halves(matrix))


def _put_strings(matrix: Words, slot: int, place: int | Ints, strings: ByteStrings, rows: Ints) -> int | Ints:
    """Write one column of strings; return the index of the next free word."""
    lengths = strings.lengths[rows]
    counts = np.where(lengths > INLINE_BYTES, (lengths + 7) >> 3, 0)
    most = int(counts.max(initial=0))
    matrix[slot] = strings.inline_slots(rows)
    if most:
        matrix[slot] = np.where(counts == 0, matrix[slot], lengths.astype(np.uint64) | _high_half(place))
    for j in range(most):
        longer = np.flatnonzero(counts > j)
        _put(matrix, place + j, longer, strings.word(rows[longer], j))
    if int(counts.min(initial=most)) == most:
        return place + most
    return place + counts


def _put(matrix: Words, place: int | Ints, columns: Ints, values: Words) -> None:
    if isinstance(place, int) and len(columns) == matrix.shape[1]:
        matrix[place] = values
    else:
        matrix[place if isinstance(place, int) else place[columns], columns] = values


def _high_half(place: int | Ints) -> Words:
    """Return bytes 4 to 7 of a slot: the offset of word ``place`` from the row's first byte."""
    return np.asarray(place, dtype=np.uint64) << np.uint64(35)


def _as_halves(matrix: Words) -> npt.NDArray[np.uint32]:
    """Return the words as rows of 32-bit words, in column-major memory order."""
    halves = np.empty((2 * matrix.shape[0], matrix.shape[1]), dtype=np.uint32)
    pairs = matrix.view(np.uint32)
    halves[0::2] = pairs[:, 0::2]
    halves[1::2] = pairs[:, 1::2]
    return halves.T


def _header_words(nulls: Sequence[Flags | None], rows: int) -> list[Words]:
    words = [np.zeros(rows, dtype=np.uint64) for _ in range((len(nulls) + 8 + 63) // 64)]
    for i, null in enumerate(nulls, 8):
        if null is not None:
            words[i // 64] |= null.astype(np.uint64) << np.uint64(i % 64)
    return words
