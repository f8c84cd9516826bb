"""Decode ORC's run-length encoding of integers, version 2; check the numbers of versions 1 and 2.

Source:
    The ORC specification, version 1, section "Run Length Encoding".
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.datafile.orc.protobuf import read_varint
from penstock.errors import FormatError

_WIDTHS: Final = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_SHORT_REPEAT_LEAST: Final = 3
_DIRECT: Final = 1
_DELTA: Final = 3
_RUN_1: Final = 128  # control bytes below begin a run in version 1, others literals
_INT8_MAX: Final = 127


def decode_unsigned(data: bytes) -> npt.NDArray[np.int64]:
    """Decode a stream of unsigned integers; those above 63 bits become negative."""
    runs: list[list[int]] = []
    at = 0
    try:
        while at < len(data):
            run, at = _DECODERS[data[at] >> 6](data, at)
            runs.append(run)
    except IndexError as error:
        raise FormatError(f"a run-length encoded stream of {len(data)} bytes is cut short") from error
    numbers = np.fromiter((number & 0xFFFF_FFFF_FFFF_FFFF for run in runs for number in run), dtype=np.uint64)
    return numbers.view(np.int64)


def _short_repeat(data: bytes, at: int) -> tuple[list[int], int]:
    width = (data[at] >> 3 & 7) + 1
    count = (data[at] & 7) + _SHORT_REPEAT_LEAST
    end = at + 1 + width
    return [int.from_bytes(_take(data, at + 1, end), "big")] * count, end


def _direct(data: bytes, at: int) -> tuple[list[int], int]:
    width, count = _header(data, at)
    return _unpack(data, at + 2, width, count)


def _patched_base(data: bytes, at: int) -> tuple[list[int], int]:
    width, count = _header(data, at)
    base_bytes = (data[at + 2] >> 5) + 1
    patch_width = _WIDTHS[data[at + 2] & 0x1F]
    gap_width = (data[at + 3] >> 5) + 1
    patches = data[at + 3] & 0x1F
    start = at + 4
    base = int.from_bytes(_take(data, start, start + base_bytes), "big")
    sign = 1 << (8 * base_bytes - 1)
    if base & sign:
        base = -(base & ~sign)
    numbers, start = _unpack(data, start + base_bytes, width, count)
    entry_width = next(fixed for fixed in _WIDTHS if fixed >= patch_width + gap_width)
    entries, start = _unpack(data, start, entry_width, patches)
    place = 0
    for entry in entries:
        place += entry >> patch_width
        numbers[place] |= (entry & ((1 << patch_width) - 1)) << width
    return [base + number for number in numbers], start


def _delta(data: bytes, at: int) -> tuple[list[int], int]:
    width, count = _header(data, at)
    if data[at] >> 1 & 0x1F == 0:
        width = 0  # all deltas equal the first one
    number, start = read_varint(data, at + 2)
    zigzag, start = read_varint(data, start)
    step = (zigzag >> 1) ^ -(zigzag & 1)
    if width:
        steps, start = _unpack(data, start, width, count - 2)
        steps = [step, *(size if step >= 0 else -size for size in steps)]
    else:
        steps = [step] * (count - 1)
    numbers = [number]
    for size in steps:
        numbers.append(numbers[-1] + size)
    return numbers, start


_DECODERS: Final = (_short_repeat, _direct, _patched_base, _delta)


def _header(data: bytes, at: int) -> tuple[int, int]:
    """Return bit width and number of values from the two bytes with which three of the four kinds of runs begin."""
    return _WIDTHS[data[at] >> 1 & 0x1F], ((data[at] & 1) << 8 | data[at + 1]) + 1


def _unpack(data: bytes, at: int, width: int, count: int) -> tuple[list[int], int]:
    """Return values of ``width`` bits each, most significant bit first, and the position of the next whole byte."""
    end = at + (width * count + 7) // 8
    packed = int.from_bytes(_take(data, at, end), "big")
    top = 8 * (end - at) - width
    mask = (1 << width) - 1
    return [packed >> shift & mask for shift in range(top, top - width * count, -width)], end


def _take(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise IndexError(end)
    return data[start:end]


def check_unsigned(data: bytes, *, most: int, is_version_2: bool) -> None:
    """Raise unless all numbers of a stream are from 0 to ``most``; most runs are judged without decoding them."""
    at, end = 0, len(data)
    try:
        while at < end:
            at = _skip_small_runs(data, at, end) if is_version_2 else at
            if at < end:
                at = (_check_run_2 if is_version_2 else _check_run_1)(data, at, most)
    except IndexError as error:
        raise FormatError(f"a run-length encoded stream of {len(data)} bytes is cut short") from error
    if at > end:
        raise FormatError(f"a run-length encoded stream of {len(data)} bytes is cut short")


def _skip_small_runs(data: bytes, at: int, end: int) -> int:
    """Return the position of the next run that may hold a number of more than 24 bits, or of which a part is missing.

    This takes most of the time of a check, since a run may be as short as three numbers.
    """
    while at < end:
        first = data[at]
        size = _SHORT_REPEAT_BYTES[first]
        if not size:
            bits = _DIRECT_BITS[first]
            if at + 3 >= end:
                return at
            if bits:
                size = 2 + (bits * (((first & 1) << 8 | data[at + 1]) + 1) + 7) // 8
            elif first in _REPEATS and data[at + 2] < 0x80 and data[at + 3] == 0:
                size = 4  # the same number, of one byte, up to 512 times
            else:
                return at
        at += size
    return at


# By the first byte of a run; 0 for other kinds of runs and for numbers of more than 24 bits.
_SHORT_REPEAT_BYTES: Final = tuple((first >> 3) + 2 if first < 0x18 else 0 for first in range(256))
_REPEATS: Final = frozenset({0xC0, 0xC1})
_DIRECT_BITS: Final = tuple(
    (first >> 1 & 0x1F) + 1 if first >> 6 == _DIRECT and first >> 1 & 0x1F < 24 else 0 for first in range(256)
)


def _check_run_2(data: bytes, at: int, most: int) -> int:
    kind = data[at] >> 6
    if kind == _DELTA:
        width, count = _header(data, at)
        width = width if data[at] >> 1 & 0x1F else 0
        first, start = read_varint(data, at + 2)
        zigzag, start = read_varint(data, start)
        step = zigzag >> 1
        if not zigzag & 1 and first + (step if width == 0 else step + (1 << width)) * count <= most:
            return start + (width * max(count - 2, 0) + 7) // 8
    numbers, end = _DECODERS[kind](data, at)
    _check_bounds(min(numbers), max(numbers), most)
    return end


def _check_run_1(data: bytes, at: int, most: int) -> int:
    control = data[at]
    if control < _RUN_1:
        step = data[at + 1] - 256 if data[at + 1] > _INT8_MAX else data[at + 1]
        first, end = read_varint(data, at + 2)
        last = first + step * (control + 2)
        _check_bounds(min(first, last), max(first, last), most)
        return end
    at += 1
    for _ in range(256 - control):
        number, at = read_varint(data, at)
        _check_bounds(number, number, most)
    return at


def _check_bounds(low: int, high: int, most: int) -> None:
    if low < 0 or high > most:
        raise FormatError(f"a length of {low if low < 0 else high} is out of bounds")
