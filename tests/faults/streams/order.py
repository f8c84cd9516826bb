"""Order as the tasks of a stream see it, row by row while they pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tests.faults.streams.rows import PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """For ``mapInArrow``: passes rows on, and fails on rows that are not those of buckets in their order.

    Attributes:
        ascending: columns whose values, taken together, never step back within a task either.
        partitions: their order, in which column ``p`` counts as ascending.
    """

    ascending: tuple[str, ...] = ()
    partitions: tuple[int, ...] = PARTITIONS

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass on the rows of a task."""
        last: dict[tuple[int, int, int], int] = {}
        top: tuple[int, ...] = ()
        for batch in batches:
            columns = {name: batch.column(name).to_numpy() for name in ("p", "b", "producer", "n")}
            check_numbers(columns, last)
            columns["p"] = np.array([self.partitions.index(p) for p in columns["p"].tolist()])
            top = check_ascending([columns[name] for name in self.ascending], top)
            yield batch


def check_numbers(columns: dict[str, np.ndarray], last: dict[tuple[int, int, int], int]) -> None:
    """Fail on a gap or a step back in the numbers of a partition, bucket and producer.

    Args:
        last: the last numbers of the batches before; it goes on to the next one.
    """
    lanes = (columns["p"].astype(np.int64) * 64 + columns["b"]) * 64 + columns["producer"]
    for lane in np.unique(lanes).tolist():
        numbers = columns["n"][lanes == lane]
        key = (lane // 64**2, lane // 64 % 64, lane % 64)
        expected = np.arange(len(numbers)) + last.get(key, int(numbers[0]) - 1) + 1
        wrong = np.flatnonzero(numbers != expected)
        assert not len(wrong), (
            f"partition, bucket and producer {key}: row {expected[wrong[0]]} was due, {numbers[wrong[0]]} came"
        )
        last[key] = int(numbers[-1])


def check_ascending(columns: list[np.ndarray], top: tuple[int, ...]) -> tuple[int, ...]:
    """Fail when a tuple of values is less than the one before it; returns the last one."""
    if not columns:
        return ()
    changes = np.flatnonzero(np.any([np.diff(column) != 0 for column in columns], axis=0)) + 1
    for place in (0, *changes.tolist()):
        values = tuple(int(column[place]) for column in columns)
        assert values >= top, f"rows of {values} came after rows of {top}"
        top = values
    return top
