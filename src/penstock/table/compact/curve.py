"""Sort keys along a curve through several columns, so that rows with similar values in all columns are close in a file.

The keys use the rank of a value in its column, not the value. The reference interleaves the bits of the values, so with
a timestamp and a small number, the timestamp alone decides the order. Keys are never stored, so any consistent order is
correct.

Source:
    docs/spec/compaction.md section 8.3; the Hilbert transform is J. Skilling, "Programming the Hilbert curve" (2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.datafile.types import ArrowAny

    Codes = NDArray[np.uint64]
    Keys = NDArray[np.bytes_]

RANK_BITS: Final = 16


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks the values of a column by a sample of them. Picklable.

    Attributes:
        bounds: distinct values of the sample, ascending, without null.
    """

    bounds: ArrowAny

    @staticmethod
    def of(sample: ArrowAny) -> Ranks:
        """Build the bounds from a sample; thin it out evenly if it has more distinct values than there are ranks."""
        values = pc.unique(sample.drop_null())
        ordered = values.take(pc.array_sort_indices(values))
        max_rank = (1 << RANK_BITS) - 2
        if len(ordered) > max_rank:
            ordered = ordered.take(pa.array(np.linspace(0, len(ordered) - 1, max_rank).astype(np.int64)))
        return Ranks(ordered)

    def rank(self, values: ArrowAny) -> Codes:
        """Return 0 for null, 1 for a value less than the whole sample, and so on."""
        return rank_values(values, self.bounds)

    def spread(self, values: ArrowAny) -> Codes:
        """Return ranks scaled to all ``RANK_BITS`` bits.

        So a column with few distinct values has the same weight as others. Null gets 0, as does a value
        less than the whole sample.
        """
        if len(self.bounds) == 0:
            return np.zeros(len(values), dtype=np.uint64)
        least_one = np.maximum(self.rank(values), np.uint64(1))
        # With four values, each gets the end of its quarter of the range: their first two bits all differ.
        return (least_one - np.uint64(1)) * np.uint64((1 << RANK_BITS) - 1) // np.uint64(len(self.bounds))


def rank_values(values: ArrowAny, bounds: ArrowAny) -> Codes:
    """Return how many ``bounds`` are less than or equal to each value, plus 1; 0 for null."""
    both = pa.concat_arrays([bounds, values])
    # One sort gives all ranks, for every type that Arrow can order. It is stable: a bound sorts before an equal value.
    order = np.asarray(pc.array_sort_indices(both, null_placement="at_start"))
    is_bound = order < len(bounds)
    ranks = np.empty(len(both), dtype=np.uint64)
    ranks[order] = np.cumsum(is_bound) + 1
    result: Codes = ranks[len(bounds) :]
    result[np.asarray(values.is_null())] = 0
    return result


def zorder_keys(codes: Sequence[Codes], *, bits: int = RANK_BITS) -> Keys:
    """Interleave the bits of each row's codes, most significant first.

    Args:
        codes: one array for each column, of numbers below ``2 ** bits``.

    Returns:
        Keys of equal length, to compare as unsigned bytes.
    """
    return _interleave(np.stack(codes, axis=1), bits)


def hilbert_keys(codes: Sequence[Codes], *, bits: int = RANK_BITS) -> Keys:
    """Return each row's position on the Hilbert curve of its codes; arguments and result as ``zorder_keys``."""
    points = np.stack(codes, axis=1).astype(np.uint64)
    one = np.uint64(1)
    dimensions = points.shape[1]
    for shift in range(bits - 1, 0, -1):
        low = np.uint64((1 << shift) - 1)
        for axis in range(dimensions):
            is_set = (points[:, axis] >> np.uint64(shift)) & one == one
            swap = np.where(is_set, np.uint64(0), (points[:, 0] ^ points[:, axis]) & low)
            points[:, 0] ^= np.where(is_set, low, swap)
            points[:, axis] ^= swap
    for axis in range(1, dimensions):
        points[:, axis] ^= points[:, axis - 1]
    flips = np.zeros(len(points), dtype=np.uint64)
    for shift in range(bits - 1, 0, -1):
        is_set = (points[:, -1] >> np.uint64(shift)) & one == one
        flips ^= np.where(is_set, np.uint64((1 << shift) - 1), np.uint64(0))
    points ^= flips[:, None]
    return _interleave(points, bits)


def _interleave(points: NDArray[Any], bits: int) -> Keys:
    rows, dimensions = points.shape
    big_endian = np.ascontiguousarray(points.astype(">u8")).view(np.uint8).reshape(rows, dimensions, 8)
    by_bit = np.unpackbits(big_endian, axis=2)[:, :, 64 - bits :].transpose(0, 2, 1).reshape(rows, bits * dimensions)
    padding = -by_bit.shape[1] % 8
    packed = np.packbits(np.pad(by_bit, ((0, 0), (padding, 0))), axis=1)
    result: Keys = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").reshape(rows)
    return result
