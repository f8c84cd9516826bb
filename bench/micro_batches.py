"""The progress of a finished streaming query by micro-batch."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.cpu import CpuClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql.streaming import StreamingQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """One micro-batch as Spark timed it.

    Attributes:
        seconds: from the trigger to the entry in the commit log.
        sink_seconds: of these, the time in the sink, which includes reading the rows.
    """

    rows: int
    seconds: float
    sink_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A query that has ended.

    Attributes:
        batches: those with rows, in order.
        wall_seconds: from before its start to its end.
        cpu_seconds: of all processes, in the same period.
    """

    batches: tuple[MicroBatch, ...]
    wall_seconds: float
    cpu_seconds: float

    @property
    def rows(self) -> int:
        """Rows of all micro-batches."""
        return sum(batch.rows for batch in self.batches)


def finish(start: Callable[[], StreamingQuery]) -> Finished:
    """Start a query that ends without being stopped, and wait for it; raises its error if it fails."""
    cpu, started = CpuClock(), time.perf_counter()
    query = start()
    query.awaitTermination()
    wall = time.perf_counter() - started
    spent = cpu.seconds()
    return Finished(batches=batches_of(query.recentProgress), wall_seconds=wall, cpu_seconds=spent)


def batches_of(progress: Sequence[Mapping[str, Any]]) -> tuple[MicroBatch, ...]:
    """Return the micro-batches with rows from a query's progress."""
    return tuple(
        MicroBatch(
            rows=each["numInputRows"],
            seconds=each["durationMs"]["triggerExecution"] / 1000,
            sink_seconds=each["durationMs"]["addBatch"] / 1000,
        )
        for each in progress
        if each["numInputRows"] and "addBatch" in each["durationMs"]
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def windows(values: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the second tenth and the last tenth: of 1,000 values 101 to 200 and 901 to 1,000."""
    tenth = max(len(values) // 10, 1)
    return tuple(values[tenth : 2 * tenth]), tuple(values[-tenth:])


def growth(values: Sequence[float]) -> float:
    """Return the median of the last tenth relative to that of the second tenth."""
    early, late = windows(values)
    return statistics.median(late) / statistics.median(early)
