"""``readStream.format("penstock")``: the streaming source.

Spark creates the reader in three places: in the process that plans offsets and partitions as long as the query runs, in
a process that only pickles it for the tasks, and in the tasks, from that pickle. Only the first one opens a
``StreamSession``. The tasks use only what is in their partition, so the columns of a query do not change while it runs.

Source:
    PySpark's ``DataSourceStreamReader``, ``python_streaming_source_runner``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from penstock.options import StreamOptions
from penstock.printable import open_log
from penstock.spark.data_source.tracebacks import without_frames
from penstock.spark.stream.session import open_session
from penstock.spark.stream.task import read_task
from penstock.spark.versions.python_api import datasource, streaming_datasource
from penstock.table.stream.align.progress import AlignmentRule
from penstock.table.stream.limits import limits_of
from penstock.table.stream.offset import UNRESOLVED, decode_offset, encode_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from penstock.predicate.tree import Predicate
    from penstock.spark.stream.session import StreamSession
    from penstock.table.ref import TableRef
    from penstock.table.stream.files import StreamTask

_LOG: Final = open_log(__name__)
# Spark has no limit by snapshots; any limit other than ReadAllAvailable will do.
_SOME_LIMIT: Final = streaming_datasource.ReadMaxFiles(2**31 - 1)


@dataclass
class StreamPartition(datasource.InputPartition):
    """The files of one task.

    Attributes:
        ref: the table, with the schema that the query started with.
    """

    task: StreamTask
    ref: TableRef


class PenstockStreamReader(datasource.DataSourceStreamReader, streaming_datasource.SupportsTriggerAvailableNow):
    """Reads a table as a stream.

    Args:
        ref: the table, with the options of the stream.
        schema: the columns that Spark expects from the tasks.
        predicate: filter on rows; files without a matching row are skipped.
        is_inferred: whether Spark got the columns from Penstock, and not from the user.
    """

    def __init__(
        self,
        ref: TableRef,
        schema: StructType,
        predicate: Predicate | None,
        *,
        is_inferred: bool = False,
    ) -> None:
        self._ref = ref
        self._schema = schema
        # How many tasks run at the same time is not known here.
        self._open_session = partial(open_session, ref, schema, predicate, is_inferred=is_inferred)
        self._session: StreamSession | None = None
        self._is_aligned = AlignmentRule.of(ref) is not None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return a constant, because Spark calls this again when it replays the first batch."""
        return encode_offset(UNRESOLVED)

    @without_frames
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        """Return one of the limits, since Spark accepts only one; ``latestOffset`` applies all of them."""
        limits = limits_of(self._ref.parsed(StreamOptions))
        if self._is_aligned:
            # Spark calls this on all sources of a query before it calls latestOffset() on any of them.
            self._open().join_group()
        if limits.max_rows is not None:
            return streaming_datasource.ReadMaxRows(limits.max_rows)
        if limits.max_files is not None:
            return streaming_datasource.ReadMaxFiles(limits.max_files)
        if limits.max_bytes is not None:
            return streaming_datasource.ReadMaxBytes(limits.max_bytes)
        if limits.max_snapshots is not None or (self._is_aligned and limits.min_rows is None):
            return _SOME_LIMIT
        return (
            streaming_datasource.ReadAllAvailable()
            if limits.min_rows is None
            else streaming_datasource.ReadMinRows(limits.min_rows)
        )

    @without_frames
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        """End this run with the current latest snapshot."""
        self._open().stop_at_latest()

    @without_frames
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the end of the next micro-batch; ``start`` itself if there is nothing to read."""
        # Spark passes ReadAllAvailable if no limit is set, and for a trigger that ignores the limits.
        end = self._open().advance(start, applies_limits=not isinstance(limit, streaming_datasource.ReadAllAvailable))
        if end != start and decode_offset(end).ended:
            _warn_of_kept_rows(self._ref.name)
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - PySpark's name
        """Return the lag of the query, which Spark shows as the source's latest offset."""
        return self._open().report()

    @without_frames
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[StreamPartition]:
        """Plan a micro-batch: in an ordered table, one task for each bucket number that has rows."""
        return [StreamPartition(task, self._ref) for task in self._open().plan(start, end)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task in the order of delivery."""
        if not isinstance(partition, StreamPartition):
            return
        yield from read_task(partition.ref, partition.task, self._schema)

    @without_frames
    def commit(self, end: dict[str, Any]) -> None:
        """Move the consumer; Spark calls this when the next batch begins."""
        self._open().commit(end)

    def stop(self) -> None:
        """Release the resources of the session; in most cases Spark ends the process instead."""
        if self._session is not None:
            self._session.close()

    def _open(self) -> StreamSession:
        if self._session is None:
            self._session = self._open_session()
        return self._session


def _warn_of_kept_rows(table: str) -> None:
    """Warn at the end of a bounded stream that open windows stay open: only the driver could advance the watermark."""
    _LOG.warning(
        "table %s: its bounded stream has ended. What the query still keeps for a watermark, such as its last windows, "
        'is not delivered through readStream.format("penstock"): use Table.read_stream, or spark.readStream.table '
        "after penstock.attach",
        table,
    )
