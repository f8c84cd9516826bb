"""The end of a bounded input, at which Spark emits the rows that it holds in state, as Flink does.

A watermark is the latest event time minus a delay, so the last windows of a stream stay open. When all sources of a
query have reached the bounds declared by their options, no row follows, and the watermark can advance to the end of
time.

Spark reads the watermark of a micro-batch after it has requested the offsets of the sources, and stores both before the
micro-batch runs. So if a source sets the watermark when its offset is requested, a replay uses the same watermark. The
source records this in its offset: because the offset is new, Spark runs a micro-batch, also as the first one after a
restart.

Source:
    ``MicroBatchExecution.constructNextBatch`` of Spark 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.spark.watermark.query_shape import plan_keeps_rows
from penstock.table.stream.checkpoint import decode_end
from penstock.table.stream.offset import END_OF_INPUT_MS, decode_offset

if TYPE_CHECKING:
    from penstock.spark.connector.gateway import Bridge, JavaObject

_APPEND: Final = "Append"


class InputEnd:
    """Advances Spark's watermark to the end of time, for one source of a query."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._keeps_rows: bool | None = None

    def is_to_close(self, start: dict[str, Any]) -> bool:
        """Whether the next micro-batch is the one in which the query emits its state; if so, set the watermark.

        All sources of a query return the same answer in one trigger, since it depends on previous micro-batches.

        Args:
            start: the current offset of the source.
        """
        offset = decode_offset(start)
        if not offset.ended or offset.closed is not None or self._keeps_rows is False:
            return False
        query = self._bridge.running_stream()
        if query is None:
            return False
        if self._keeps_rows is None:
            self._keeps_rows = _keeps_rows(query)
        if not self._keeps_rows or not self._have_ended(query):
            return False
        self._bridge.set_stream_watermark(query, END_OF_INPUT_MS)
        return True

    def _have_ended(self, query: JavaObject) -> bool:
        found = [None if text is None else decode_end(text) for text in self._bridge.source_offsets(query)]
        return all(offset is not None and offset.ended for offset in found)


def _keeps_rows(query: JavaObject) -> bool:
    """Whether a query emits rows only after its watermark has passed them; other output modes emit them earlier."""
    return query.outputMode().toString() == _APPEND and plan_keeps_rows(query.analyzedPlan())
