"""Stable sort of rows by group: rows of one group keep their incoming order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny

Ids: TypeAlias = "npt.NDArray[np.int32]"
Places: TypeAlias = "npt.NDArray[np.intp]"


class Stretch(NamedTuple):
    """Rows ``start`` to ``stop`` (exclusive) of sorted rows belong to ``group``."""

    group: int
    start: int
    stop: int


def stable_order(ids: Ids) -> Places:
    """Return the row indexes sorted by id; equal ids keep their order. Ids must not be negative."""
    highest = int(ids.max(initial=0))
    # numpy sorts 8-bit and 16-bit numbers by radix sort, ten times faster than wider ones by comparison.
    if highest < 1 << 8:
        return np.argsort(ids.astype(np.uint8), kind="stable")
    order = np.argsort(ids.astype(np.uint16), kind="stable")
    if highest < 1 << 16:
        return order
    high_halves = (ids >> 16).astype(np.uint16)
    return order[np.argsort(high_halves[order], kind="stable")]


def to_indices(places: Places) -> ArrowAny:
    """Return row indexes in Arrow's form, without a copy.

    Unlike ``pa.array``, this does not import pandas, which takes a process about a second.
    """
    data: Any = places  # it has the buffer protocol, which its type does not show
    return pa.Array.from_buffers(pa.from_numpy_dtype(places.dtype), len(places), [None, pa.py_buffer(data)])


def split_sorted(ids: Ids) -> Iterator[Stretch]:
    """Yield the stretches of equal ids in sorted ids."""
    starts = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist()]
    stops = [*starts[1:], len(ids)]
    if len(ids):
        for group, start, stop in zip(ids[starts].tolist(), starts, stops, strict=True):
            yield Stretch(group, start, stop)
