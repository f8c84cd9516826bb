"""Buckets of whole Arrow columns at once, bit-equal to ``format.row.bucket.bucket_of``.

Every part of a BinaryRow is a multiple of 8 bytes. So the rows of a block form a matrix of 64-bit words, in which word
j of all rows is contiguous, and the hash takes a few numpy operations per word. Rows differ in length only by strings
of more than seven bytes; rows of the same length are hashed together.

Source:
    Paimon ``core:bucket/*.java``, ``common:data/BinaryRowWriter.java``; docs/spec/commit.md section 2.1, format.md 6.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import numpy as np

from penstock.errors import UnsupportedFeatureError
from penstock.format.row.bucket import BucketFunction, check_mod_key
from penstock.format.row.murmur import hash_words
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot
from penstock.table.write.bucket_keys import (
    INLINE_BYTES,
    ByteStrings,
    FixedTail,
    Slots,
    check_bucket_key_type,
    encode_key,
    fixed_values,
    nulls_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.table.write.bucket_keys import Flags, Ints, KeyField, Words

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
