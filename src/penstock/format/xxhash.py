"""The hash function XXH64 with seed 0.

Source:
    https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

from struct import iter_unpack, unpack_from
from typing import Final

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
