"""Decode ORC's run-length encoding of integers, version 2.

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


def decode_unsigned(data: bytes) -> npt.NDArray[np.int64]:
    """Decode a stream of unsigned integers; those above 63 bits become negative.

    Raises:
        FormatError: the stream ends inside a run.
    """
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
