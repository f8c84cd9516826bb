"""Damage the bytes of a file by one random change, from a seeded generator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_EXTREME_BYTES: Final = (0, 1, 127, 128, 254, 255)
_EXTREMES: Final = (
    b"\xff" * 9 + b"\x01",
    b"\xff" * 40,
    b"\x80" * 9 + b"\x01",
    bytes(8),
    b"\xff" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\0" * 7 + b"\x80",
    b"-1",
    b"9223372036854775808",
    b"1e999",
    b"NaN",
)


def mutate(data: bytes, random: Random) -> bytes:
    """Return the bytes after one random change, which may leave them equal."""
    if not data:
        return random.choice(_EXTREMES)
    changed = bytearray(data)
    random.choice(_CHANGES)(changed, random)
    return bytes(changed)


def _flip_bits(data: bytearray, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set_byte(data: bytearray, random: Random) -> None:
    data[random.randrange(len(data))] = random.choice(_EXTREME_BYTES)


def _cut_end(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)) :]


def _cut_middle(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data))
    del data[start : start + random.choice((1, 2, 4, 8, 64, 512))]


def _insert_bytes(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data) + 1)
    data[start:start] = random.randbytes(random.randrange(1, 17))


def _insert_extreme(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data) + 1)
    data[start:start] = random.choice(_EXTREMES)


def _overwrite_with_extreme(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data))
    extreme = random.choice(_EXTREMES)
    data[start : start + len(extreme)] = extreme


def _copy_block(data: bytearray, random: Random) -> None:
    source, target = random.randrange(len(data)), random.randrange(len(data))
    size = random.choice((1, 4, 16, 64, 256))
    data[target : target + size] = data[source : source + size]


def _change_tail(data: bytearray, random: Random) -> None:
    # Parquet and ORC have their footers there, with the sizes and offsets of all other parts.
    data[random.randrange(max(0, len(data) - 64), len(data))] = random.randrange(256)


_CHANGES: Final[tuple[Callable[[bytearray, Random], None], ...]] = (
    _flip_bits,
    _set_byte,
    _cut_end,
    _cut_middle,
    _insert_bytes,
    _insert_extreme,
    _overwrite_with_extreme,
    _copy_block,
    _change_tail,
)
