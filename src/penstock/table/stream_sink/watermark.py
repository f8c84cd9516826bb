"""Computes the watermark of the snapshots that a stream writes: the minimum over the partitions of its sources.

A source has partitions, each with its own order: the buckets of a Penstock table, whose event times are in the offsets,
or the partitions of a topic, whose event times are observed when the rows are read. After a restart the event times are
restored from the offsets, and from the query's snapshots and checkpoint.

Source:
    Flink's rule, the minimum over upstream channels that are not idle (docs/spec/streaming.md section 6.1). Spark's own
    watermark follows the fastest channel, so it is used only if it holds rows back, or if nothing else is known.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.printable import open_log
from penstock.table.stream.offset import END_OF_INPUT_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.table.stream.checkpoint import BatchEnds

UPSTREAM_TIMES: Final = "penstock.upstream-times"
"""Snapshot property: the result of ``SinkWatermark.encode`` after the snapshot."""

_LOG: Final = open_log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The event times observed in the rows of a batch.

    Attributes:
        sources: how many of the query's sources ``times`` covers.
        times: for each partition of these sources, by name: the latest event time of the batch's rows minus the delay,
            ms; None for a partition without any.
        is_complete: False if there were also rows of other partitions.
        least_of_tasks: the minimum, over the files that the batch wrote, of their latest event time minus the delay,
            ms; None if it was not observed, or there were no times.
    """

    sources: int = 0
    times: Mapping[str, int | None] = field(default_factory=dict)
    is_complete: bool = True
    least_of_tasks: int | None = None


NOTHING_OBSERVED: Final = Observed()


@dataclass(slots=True, kw_only=True)
class SinkWatermark:
    """Computes the watermark of each batch of one query. It lives as long as the query.

    Attributes:
        table: name for messages.
        waits_for_spark: the query holds rows until Spark's own watermark has passed them, so the snapshots' watermark
            must not be ahead of Spark's.
        is_wanted: the table declares a watermark, so a warning is logged where there is none.
        spark_knows_all: Spark computes its own watermark from every source, so it may be used for sources without event
            times.
        looks_at_tasks: for a source without event times, the tasks report them once a batch has some.
        idle_timeout_ms: time without progress after which a partition of a source is idle and does not hold back the
            others; None for never. It counts from the start of the query at the earliest.
        clock: seconds that only grow.
    """

    table: str
    waits_for_spark: bool
    is_wanted: bool = False
    spark_knows_all: bool = True
    looks_at_tasks: bool = False
    idle_timeout_ms: int | None = None
    clock: Callable[[], float] = time.monotonic
    _times: dict[str, int] = field(default_factory=dict)
    # Event time of each partition, None if it has none yet, and when that last changed.
    _moved: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    _least_of_tasks: int | None = None
    _is_complete: bool = True
    _last: tuple[BatchEnds, Observed] | None = None
    _warned: set[str] = field(default_factory=set)

    def of(self, batch: BatchEnds, observed: Observed = NOTHING_OBSERVED) -> int | None:
        """Return the watermark after a batch, ms of event time; None where it is unknown.

        Except for late rows, the rows of later batches are not older than it.
        """
        self._last = batch, observed
        self._note(observed)
        self._see_moves(batch, observed)
        return self._now(batch, observed)

    def on_idle(self) -> int | None:
        """Return the current watermark after the last batch: it advances when a partition becomes idle."""
        return None if self._last is None else self._now(*self._last)

    def _now(self, batch: BatchEnds, observed: Observed) -> int | None:
        ours = [source.watermarks for source in batch.sources if source is not None]
        least = self._least()
        if () in ours or not self._is_complete or (self._moved and least is None):
            return None
        strangers = len(batch.sources) - len(ours) - observed.sources
        if strangers <= 0 and None not in ours and self._moved and not self.waits_for_spark:
            return least
        if tells_no_times(batch) and self._least_of_tasks is not None and not self.waits_for_spark:
            return self._least_of_tasks
        if (strangers > 0 or None in ours) and not self.spark_knows_all:
            self._miss(batch)
            return None
        spark = self._spark(batch)
        if spark == END_OF_INPUT_MS:
            # No event time: Spark has emitted its state, because the input has ended.
            return least
        return spark if spark is None or least is None else min(least, spark)

    def encode(self) -> str | None:
        """Encode the event times of the observed partitions for the next start; None where none is observed."""
        return _encode(self._times)

    def restore(self, text: str | None) -> None:
        """Restore the result of ``encode`` from before this start; a damaged text counts as none."""
        _merge(self._times, _decode(text))

    def _note(self, observed: Observed) -> None:
        _merge(self._times, ((name, millis) for name, millis in observed.times.items() if millis is not None))
        if observed.least_of_tasks is not None:
            known = self._least_of_tasks
            self._least_of_tasks = observed.least_of_tasks if known is None else max(observed.least_of_tasks, known)
        if not observed.is_complete:
            self._is_complete = False
            self._warn(
                "partitions have appeared since the query began, whose event times are unknown; start it "
                "again, and they count"
            )

    def _see_moves(self, batch: BatchEnds, observed: Observed) -> None:
        now = self.clock()
        moved = {}
        for name, millis in self._partitions(batch, observed):
            known = self._moved.get(name)
            moved[name] = known if known is not None and known[0] == millis else (millis, now)
        self._moved = moved

    def _least(self) -> int | None:
        """Return the minimum over the partitions that are not idle; None if one has no time yet, or all are idle."""
        now, longest = self.clock(), self.idle_timeout_ms
        awake = [millis for millis, since in self._moved.values() if longest is None or (now - since) * 1000 < longest]
        return None if None in awake else min((millis for millis in awake if millis is not None), default=None)

    def _partitions(self, batch: BatchEnds, observed: Observed) -> Iterable[tuple[str, int | None]]:
        for place, source in enumerate(batch.sources):
            for bucket, millis in (None if source is None else source.watermarks) or ():
                yield f"{place}/{bucket}", millis
        for name in observed.times:
            yield name, self._times.get(name)

    def _spark(self, batch: BatchEnds) -> int | None:
        if batch.spark_watermark is not None and batch.takes_least:
            return batch.spark_watermark
        if batch.spark_watermark is not None:
            self._warn(
                "Spark takes the greatest of the query's; set 'spark.sql.streaming.multipleWatermarkPolicy' to 'min' "
                "before the query's first start"
            )
        elif not self.waits_for_spark:
            self._miss(batch)
        return None

    def _miss(self, batch: BatchEnds) -> None:
        if self.is_wanted and not (self.looks_at_tasks and tells_no_times(batch)):
            self._warn(
                "its rows are shuffled before they are written, or come from several sources, some of which report "
                "no event times; add withWatermark to those"
            )

    def _warn(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            _LOG.warning("table %s: its snapshots get no watermark: %s", self.table, reason)


def tells_no_times(batch: BatchEnds) -> bool:
    """Whether a batch has exactly one source, and its offset holds no event times."""
    return len(batch.sources) == 1 and (batch.sources[0] is None or batch.sources[0].watermarks is None)


def merge_times(*texts: str | None) -> str | None:
    """Merge results of ``SinkWatermark.encode``: keep the latest time of each partition."""
    times: dict[str, int] = {}
    for text in texts:
        _merge(times, _decode(text))
    return _encode(times)


def _merge(times: dict[str, int], found: Iterable[tuple[str, int]]) -> None:
    for name, millis in found:
        times[name] = max(millis, times.get(name, millis))


def _encode(times: Mapping[str, int]) -> str | None:
    return json.dumps(times, sort_keys=True, separators=(",", ":")) if times else None


def _decode(text: str | None) -> Iterable[tuple[str, int]]:
    try:
        values = {} if text is None else json.loads(text)
        return [(str(name), int(millis)) for name, millis in values.items()]
    except (AttributeError, TypeError, ValueError):
        return []
