"""The watermark of a snapshot that a stream writes: the least of what its sources have come to.

Source:
    Flink's rule, the least over upstream channels that are not idle (spec/streaming.md section 6.1). Spark's own
    watermark follows the fastest channel, so it is asked only where it holds rows back, or where no table of ours is
    read.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.table.stream.checkpoint import BatchEnds
    from penstock.table.stream.offset import BucketWatermarks

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class SinkWatermark:
    """Tells the watermark of each batch of one query; a worker that lives as long as the query.

    Attributes:
        table: named in messages.
        waits_for_spark: the query keeps rows until Spark's own watermark has passed them, and so must the snapshots'.
        idle_timeout_ms: silence after which a bucket of a source no longer holds the others back; None for none. It
            counts from the start of the query at the earliest.
        clock: seconds that only grow.
    """

    table: str
    waits_for_spark: bool
    idle_timeout_ms: int | None = None
    clock: Callable[[], float] = time.monotonic
    _moved: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)
    _has_warned: bool = False

    def of(self, batch: BatchEnds) -> int | None:
        """Return the watermark behind a batch, ms of event time; None where nobody can tell.

        Rows of later batches are not older than it, but for rows that come late.
        """
        own = [None if source is None else source.watermarks for source in batch.sources]
        ours = self._least(own)
        if () in own:
            return None
        if own and None not in own and not self.waits_for_spark:
            return ours
        spark = self._spark(batch)
        if spark is None or (ours is None and None not in own):
            return None
        return spark if ours is None else min(ours, spark)

    def _least(self, own: Sequence[BucketWatermarks | None]) -> int | None:
        """Return the least over the buckets of our sources that are not idle; None where there is none."""
        now = self.clock()
        moved = {}
        for place, source in enumerate(own):
            for bucket, millis in source or ():
                known = self._moved.get((place, bucket))
                moved[place, bucket] = known if known is not None and known[0] == millis else (millis, now)
        self._moved = moved
        longest = self.idle_timeout_ms
        awake = [millis for millis, since in moved.values() if longest is None or (now - since) * 1000 < longest]
        return min(awake, default=None)

    def _spark(self, batch: BatchEnds) -> int | None:
        if batch.spark_watermark is not None and batch.takes_least:
            return batch.spark_watermark
        if batch.spark_watermark is not None and not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "table %s: its snapshots get no watermark, since Spark takes the greatest of the query's; set "
                "'spark.sql.streaming.multipleWatermarkPolicy' to 'min' before the query's first start",
                self.table,
            )
        return None
