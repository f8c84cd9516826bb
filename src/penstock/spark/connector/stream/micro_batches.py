"""The source of a streaming query, in the driver's process.

Offsets, planning and everything else that a query observes are the same as for ``format("penstock")``, but planning
happens in the driver process, and Spark's own reader reads the files if it reads them correctly.

Source:
    Spark's ``MicroBatchStream``, ``SupportsAdmissionControl`` and ``SupportsTriggerAvailableNow``.
"""

from __future__ import annotations

import json
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.options import StreamOptions
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.stream.input_end import InputEnd
from penstock.spark.stream.session import open_session
from penstock.table.stream.align.progress import AlignmentRule
from penstock.table.stream.limits import NO_LIMITS, limits_of
from penstock.table.stream.offset import UNRESOLVED, decode_offset, encode_offset

if TYPE_CHECKING:
    from penstock.predicate.tree import Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.stream.reader import BatchReader
    from penstock.spark.stream.session import StreamSession

_STREAMING: Final = "org.apache.spark.sql.connector.read.streaming."
# ``latestOffset`` applies all limits of the options; Spark only needs to know that there are some.
_SOME_FILES: Final = 2**31 - 1


class TableStream(Proxy):
    """Reads a table as a stream; one object for each source of a query.

    Args:
        files: reads the table with the options of the stream, and the columns that Spark expects.
        predicate: filter that skips files. Rows that Spark's reader returns are not filtered by it.
        stream_id: id by which the driver finds the query's progress.
    """

    interfaces: ClassVar = (f"{_STREAMING}MicroBatchStream", f"{_STREAMING}SupportsTriggerAvailableNow")
    names_errors: ClassVar = True

    def __init__(
        self,
        bridge: Bridge,
        files: BatchReader,
        predicate: Predicate | None = None,
        *,
        stream_id: str,
    ) -> None:
        # Spark keeps offsets by source, and two sources of one table are not the same.
        super().__init__(bridge, f"{files.ref.name} {uuid.uuid4().hex}")
        self._ref = files.ref
        self._open_session = partial(
            open_session,
            files.ref,
            files.schema,
            predicate,
            stream_id=stream_id,
            parallelism=files.spark.sparkContext.defaultParallelism,
            is_inferred=False,
        )
        self._files = files
        self._session: StreamSession | None = None
        self._input_end = InputEnd(bridge)
        self._all_available = bridge.connector("read.streaming.ReadLimit").allAvailable()
        self._offset = bridge.private("SerializedOffset")

    def description(self) -> str:
        """Return how the files of the last micro-batch were read, for ``explain``."""
        return f"stream, by {self._files.way}"

    # SparkDataStream

    @from_spark
    def initialOffset(self) -> JavaObject:
        """Return a constant, because Spark calls this again when it replays the first batch."""
        return self._encoded(encode_offset(UNRESOLVED))

    def deserializeOffset(self, text: str) -> JavaObject:
        """Return an offset of a checkpoint."""
        return self._offset(text)

    @from_spark
    def commit(self, end: JavaObject) -> None:
        """Move the consumer; Spark calls this when the next batch begins."""
        self._open().commit(_decoded(end))

    @from_spark
    def stop(self) -> None:
        """Release the resources of the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # SupportsTriggerAvailableNow

    @from_spark
    def getDefaultReadLimit(self) -> JavaObject:
        """Return whether the options limit a micro-batch."""
        limits = limits_of(self._ref.parsed(StreamOptions))
        is_aligned = AlignmentRule.of(self._ref) is not None
        if is_aligned:
            # Spark calls this on all sources of a query before it calls latestOffset() on any of them.
            self._open().join_group()
        if limits == NO_LIMITS and not is_aligned:
            return self._all_available
        return self._bridge.connector("read.streaming.ReadLimit").maxFiles(_SOME_FILES)

    @from_spark
    def prepareForTriggerAvailableNow(self) -> None:
        """End this run with the current latest snapshot."""
        self._open().stop_at_latest()

    @from_spark
    def latestOffset(self, start: JavaObject = None, limit: JavaObject = None) -> JavaObject:
        """Return the end of the next micro-batch; ``start`` itself if there is nothing to read.

        Returns:
            None if nothing was ever committed, so that even the start is unknown: Spark would run a batch for an
            offset.
        """
        given = _decoded(start)
        end = self._open().advance(given, applies_limits=not limit.equals(self._all_available))
        if end == given and self._input_end.is_to_close(given):
            end = self._open().close_input(given)
        if end == given:
            return None if decode_offset(given) == UNRESOLVED else start
        return self._encoded(end)

    @from_spark
    def reportLatestOffset(self) -> JavaObject:
        """Return the lag of the query, which Spark shows as the source's latest offset."""
        report = self._open().report()
        return None if report is None else self._encoded(report)

    # MicroBatchStream

    @from_spark
    def planInputPartitions(self, start: JavaObject, end: JavaObject) -> JavaObject:
        """Plan a micro-batch: in an ordered table, one partition for each bucket number that has rows."""
        return self._files.partitions(self._open().plan(_decoded(start), _decoded(end)))

    @from_spark
    def createReaderFactory(self) -> JavaObject:
        """Return the factory of the readers of the partitions that were planned last."""
        return self._files.factory()

    # Helpers

    def _open(self) -> StreamSession:
        if self._session is None:
            self._session = self._open_session()
        return self._session

    def _encoded(self, offset: dict[str, Any]) -> JavaObject:
        return self._offset(json.dumps(offset))


def _decoded(offset: JavaObject) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(offset.json())
    return decoded
