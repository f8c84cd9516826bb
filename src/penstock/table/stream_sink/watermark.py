"""The watermark of a snapshot that a stream writes: the least of what its sources have come to.

A source is made of partitions, each with an order of its own: the buckets of a table of ours, whose times come with the
offsets, or the partitions of a topic, whose times are observed where its rows are read. What each has come to is known
again after a restart: from the offsets, and from what the query's snapshots and its checkpoint keep.

Source:
    Flink's rule, the least over upstream channels that are not idle (docs/spec/streaming.md section 6.1). Spark's own
    watermark follows the fastest channel, so it is asked only where it holds rows back, or where nothing else is known.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.printable import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.table.stream.checkpoint import BatchEnds

UPSTREAM_TIMES: Final = "penstock.upstream-times"
"""Property of a snapshot: what ``SinkWatermark.encode`` made behind it."""

_LOG: Final = open_log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was seen of the rows of a batch on their way.

    Attributes:
        sources: how many of the query's sources ``times`` speaks of.
        times: of all partitions that these have, by name: the latest event time less the delay among the batch's
            rows, ms; None for those without any.
        is_complete: False where there were rows of others, too.
        least_of_tasks: the least, over the files that the batch wrote, of their latest event time less the delay, ms;
            None where nobody looked, or there were no times.
    """

    sources: int = 0
    times: Mapping[str, int | None] = field(default_factory=dict)
    is_complete: bool = True
    least_of_tasks: int | None = None


NOTHING_OBSERVED: Final = Observed()


@dataclass(slots=True, kw_only=True)
class SinkWatermark:
    """Tells the watermark of each batch of one query; a worker that lives as long as the query.

    Attributes:
        table: named in messages.
        waits_for_spark: the query keeps rows until Spark's own watermark has passed them, and so must the snapshots'.
        is_wanted: the table declares one, so that whoever reads it misses it where there is none.
        spark_knows_all: Spark tells its own watermark from every source, so it may stand for those that tell no times.
        looks_at_tasks: where a source tells no times, tasks tell them, as soon as a batch has some.
        idle_timeout_ms: silence after which a partition of a source no longer holds the others back; None for none. It
            counts from the start of the query at the earliest.
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
    # With when they were seen to move; a time of None is that of a partition without any yet.
    _moved: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    _least_of_tasks: int | None = None
    _is_complete: bool = True
    _last: tuple[BatchEnds, Observed] | None = None
    _warned: set[str] = field(default_factory=set)

    def of(self, batch: BatchEnds, observed: Observed = NOTHING_OBSERVED) -> int | None:
        """Return the watermark behind a batch, ms of event time; None where nobody can tell.

        Rows of later batches are not older than it, but for rows that come late.
        """
        self._last = batch, observed
        self._note(observed)
        self._see_moves(batch, observed)
        return self._now(batch, observed)

    def on_idle(self) -> int | None:
        """Return the watermark behind the last batch as it is now: it moves where a partition has become idle."""
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
        return spark if spark is None or least is None else min(least, spark)

    def encode(self) -> str | None:
        """Encode what observed partitions have come to, for the next start; None where none is observed."""
        return _encode(self._times)

    def restore(self, text: str | None) -> None:
        """Take over what ``encode`` made before this start; a damaged text is as good as none."""
        _merge(self._times, _decode(text))

    def _note(self, observed: Observed) -> None:
        _merge(self._times, ((name, millis) for name, millis in observed.times.items() if millis is not None))
        if observed.least_of_tasks is not None:
            known = self._least_of_tasks
            self._least_of_tasks = observed.least_of_tasks if known is None else max(observed.least_of_tasks, known)
        if not observed.is_complete:
            self._is_complete = False
            self._warn(
                "partitions have appeared since the query began, of which nobody knows how far they are; start it "
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
        """Return the least over the partitions that are not idle; None where one has no time yet, or there is none."""
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
                "its rows are shuffled before they are written, or come from several sources, of which some tell no "
                "times; put withWatermark on those"
            )

    def _warn(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            _LOG.warning("table %s: its snapshots get no watermark: %s", self.table, reason)


def tells_no_times(batch: BatchEnds) -> bool:
    """Whether a batch has one source, which does not say how far event time has come in it."""
    return len(batch.sources) == 1 and (batch.sources[0] is None or batch.sources[0].watermarks is None)


def merge_times(*texts: str | None) -> str | None:
    """Merge what ``SinkWatermark.encode`` made at different times: the latest of each partition."""
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
