"""Encoding of bucket key columns as in a BinaryRow: words of 8 bytes, for all rows at once.

Source:
    Paimon ``common:data/BinaryRowWriter.java``, ``RowHelper.java``; docs/spec/format.md section 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot

if TYPE_CHECKING:
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
    """Return the type if a bucket key may have it.

    Raises:
        UnsupportedFeatureError: a nested type, VARIANT or the like; the message names the column.
    """
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
