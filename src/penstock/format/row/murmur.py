"""Murmur3 over whole 4-byte words: the hash for bucket assignment; and the one of texts.

The length of rows is a multiple of 8 bytes; the tail step for texts is not that of general Murmur3.

Source:
    Paimon ``common:utils/MurmurHashUtils.java``; docs/spec/commit.md section 2.1.
"""

from __future__ import annotations

from struct import iter_unpack
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.uint32]
    Hashes: TypeAlias = NDArray[np.int32]

DEFAULT_SEED: Final = 42

_MASK: Final = 0xFFFFFFFF
_C1: Final = 0xCC9E2D51
_C2: Final = 0x1B873593


def hash_bytes(data: bytes, seed: int = DEFAULT_SEED) -> int:
    """Hash one row without its arity prefix.

    Returns:
        The hash as a signed 32-bit number.
    """
    if len(data) % 4:
        raise ValueError(f"cannot hash {len(data)} bytes by words: expected a multiple of 4")
    state = seed & _MASK
    for (word,) in iter_unpack("<I", data):
        mixed = word * _C1 & _MASK
        mixed = (mixed << 15 | mixed >> 17) & _MASK
        state ^= mixed * _C2 & _MASK
        state = (state << 13 | state >> 19) & _MASK
        state = (state * 5 + 0xE6546B64) & _MASK
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def hash_words(words: Words, seed: int = DEFAULT_SEED) -> Hashes:
    """Hash n rows of k little-endian words each, given as an array of shape (n, k)."""
    row_count, width = words.shape
    state = np.full(row_count, seed, dtype=np.uint32)
    for column in range(width):
        _mix(state, words[:, column])
    return _finish(state, np.uint32(4 * width))


def hash_text_rows(matrix: NDArray[np.uint8]) -> Hashes:
    """Hash n texts of the same length, given as an array of shape (n, length); this is the hash code of a BinaryString.

    The last bytes, fewer than a word, are mixed one by one, with their signs.
    """
    rows, length = matrix.shape
    state = np.full(rows, DEFAULT_SEED, dtype=np.uint32)
    for words in np.ascontiguousarray(matrix[:, : length - length % 4]).view("<u4").T:
        _mix(state, words)
    for signed in matrix[:, length - length % 4 :].view(np.int8).T:
        _mix(state, signed.astype(np.int32).view(np.uint32))
    return _finish(state, np.uint32(length))


def _mix(state: Words, words: Words) -> None:
    """Mix one word of each row into its state, in place."""
    mixed = words * np.uint32(_C1)
    mixed = mixed << np.uint32(15) | mixed >> np.uint32(17)
    state ^= mixed * np.uint32(_C2)
    state[:] = state << np.uint32(13) | state >> np.uint32(19)
    state *= np.uint32(5)
    state += np.uint32(0xE6546B64)


def _finish(state: Words, byte_count: np.uint32 | Words) -> Hashes:
    state = state ^ byte_count
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state.view(np.int32)
