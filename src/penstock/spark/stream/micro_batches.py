"""Micro-batches of a query that writes to a table, and the work on the table between them."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.catalog.checks.features import check_writable
from penstock.errors import LeaseHeldError, StorageError, TableStoreError
from penstock.metrics import BATCH_ROWS, BATCH_SECONDS, record
from penstock.options import WatermarkOptions
from penstock.printable import mask_locations, open_log
from penstock.spark.compact.job import merge_on_executors
from penstock.spark.compact.stream import StreamCompaction
from penstock.spark.failures import batch_failure, batch_interruption, note_failure
from penstock.spark.stream.progress import WriteProgress, note_write
from penstock.spark.stream.row_writer import RowWriter, Written, task_times
from penstock.spark.types import to_spark_type
from penstock.spark.watermark.wall_clock import with_wall_clocks
from penstock.spark.write.task import QUERY_ID
from penstock.table.assumptions import digest_of
from penstock.table.compact.plan import merges_on_its_own
from penstock.table.compact.write import TableWrite
from penstock.table.lease import LeaseKeeper, acquire
from penstock.table.stream.checkpoint import decode_batch
from penstock.table.stream.event_time import usable_watermark
from penstock.table.stream_sink.committer import Batch, StreamCommitter
from penstock.table.stream_sink.watermark import NOTHING_OBSERVED, SinkWatermark, tells_no_times

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.format.types.data_types import DataField
    from penstock.spark.stream.checkpoint import Checkpoint
    from penstock.spark.stream.row_writer import TaskTimes
    from penstock.spark.watermark.query_shape import QueryShape
    from penstock.table.lease import Lease
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.stream.checkpoint import BatchEnds

_LOG: Final = open_log(__name__)
# Idle timeouts are seconds or longer.
_LOOK_SECONDS: Final = 0.5
# A query of this process that was stopped releases its lease in the background, a moment later; on a busy machine, and
# where it stores the watermark of its end, after a renewal.
_END_WAIT_MS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunBatch:
    """A batch whose rows are being written.

    Attributes:
        ref: the table with its latest schema.
        batch: without its watermark.
        ends: of the sources.
        job_id: of the job that writes the rows; None for a replay, whose rows are read and not written.
        started_seconds: monotonic time.
    """

    ref: TableRef
    batch: Batch
    ends: BatchEnds
    job_id: str | None
    started_seconds: float


class MicroBatches:
    """Runs the micro-batches of one query in the driver, and the background work for them.

    Args:
        sdf: the rows of the query.
        committer: of the query, to the table at its start.
        lease: of the query, not yet taken.
        shape: of the query.
    """

    def __init__(
        self,
        sdf: DataFrame,
        request: StreamWrite,
        checkpoint: Checkpoint,
        committer: StreamCommitter,
        lease: QueryLease,
        shape: QueryShape,
    ) -> None:
        ref = committer.committer.ref
        self.query: StreamingQuery | None = None
        self.lease = lease
        self._spark = sdf.sparkSession
        self._checkpoint = checkpoint
        self._committer = committer
        self._observed = shape.times
        self._times = None if self._observed.metrics else task_times(ref, shuffles=shape.shuffles)
        self._rows = RowWriter(sdf, is_observed=shape.is_observed)
        self._watermark = SinkWatermark(
            table=ref.name,
            waits_for_spark=shape.keeps_rows,
            is_wanted=usable_watermark(ref) is not None,
            spark_knows_all=shape.has_watermark_of_all,
            looks_at_tasks=self._times is not None,
        )
        # Rows that each batch replaces need no compaction.
        self._compaction = None if request.is_complete else StreamCompaction(sdf.sparkSession)
        self._is_to_finish = request.is_to_finish
        # Whether all sources of the query have ended.
        self._has_ended = False
        self._turn = threading.Lock()
        self._silence = IdleTimer(self._check_on_idle, f"table {ref.name}: query into it")
        # The last batch, set once it is in the table, and the time of its commit.
        self._last: tuple[TableRef, Batch] | None = None
        self._last_seconds = time.monotonic()
        self.wall_clocks = shape.wall_clocks
        self._first_ids = frozenset(field.id for field in ref.schema.fields)

    @property
    def is_active(self) -> bool:
        """Whether the query runs."""
        return self.query is not None and self.query.isActive

    def run(self, df: DataFrame, batch_id: int) -> None:
        """Write and commit a batch; for ``foreachBatch``."""
        try:
            with self._turn:
                self._run(df, batch_id)
        except Exception as error:
            if self.query is not None and not self.is_active:
                raise batch_interruption() from None
            if isinstance(error, TableStoreError):
                raise batch_failure(error) from error
            raise

    def resume(self, query_id: str) -> None:
        """Restore the state of a query that is restarted after its sources have ended.

        Such a query runs no further batch, and may have stopped before it stored the watermark of the end.
        """
        ref = self._committer.load_ref()
        if ref.parsed(WatermarkOptions).end_input_watermark is None:
            return
        newest = self._checkpoint.load_done_offsets()
        if newest is None:
            return
        batch_id, offsets = newest
        self._has_ended = _have_ended(decode_batch(offsets, f"{self._checkpoint.place}/offsets/{batch_id}"))
        if self._has_ended:
            self._last = ref, Batch(commit_user=query_id, id=batch_id, digest=digest_of(offsets))

    def tidy_up(self) -> None:
        """Wait for the end of the query, then release its lease."""
        has_failed = True
        if self.query is not None:
            self._silence.begin()
            # Callers get the query's error from the query itself.
            with suppress(PySparkException, Py4JError):
                self.query.awaitTermination()
                has_failed = False
            if has_failed:
                note_failure(self.query)
        self._silence.end()
        if self._has_ended and not has_failed:
            self._close_input()
        self.lease.give_back()
        if self._compaction is not None:
            self._compaction.end(is_at_once=has_failed or not self._is_to_finish)

    def cancel_compaction(self) -> None:
        """Cancel the compaction in the background of the query."""
        if self._compaction is not None:
            self._compaction.end(is_at_once=True)

    def _run(self, df: DataFrame, batch_id: int) -> None:
        query_id = cast("str", df.sparkSession.sparkContext.getLocalProperty(QUERY_ID))
        begun = self._begin(query_id, batch_id)
        if begun.job_id is None:
            # Read all rows: the state of aggregates and the like advances in the checkpoint only then.
            df.write.format("noop").mode("overwrite").save()
            self._end_replay(begun)
            return
        rows = with_wall_clocks(self._with_new_columns(df, begun.ref), self.wall_clocks)
        self._commit(begun, self._rows.write(rows, begun.ref, begun.job_id, self._times_of(begun)))

    def begin(self, query_id: str, batch_id: int) -> BegunBatch:
        """Begin a batch whose rows others write; then call ``commit``, or ``give_up``."""
        self._turn.acquire()
        try:
            return self._begin(query_id, batch_id)
        except BaseException:
            self._turn.release()
            raise

    def commit(self, begun: BegunBatch, messages: tuple[CommitMessage, ...]) -> None:
        """Commit the rows of a batch, unless it is a replay."""
        try:
            if begun.job_id is None:
                self._end_replay(begun)
                return
            times = self._times_of(begun)
            least = None if times is None else times.least(messages)
            merged = TableWrite(ref=begun.ref, merge_on=merge_on_executors(self._spark)).merge(messages)
            self._commit(begun, Written(messages=merged, least_of_tasks=least))
        finally:
            self._turn.release()

    def give_up(self) -> None:
        """End a batch that was begun and whose rows were not written."""
        self._turn.release()

    def _begin(self, query_id: str, batch_id: int) -> BegunBatch:
        # If this batch fails, its watermark must not be stored.
        self._last = None
        started = time.monotonic()
        ref = self._committer.load_ref()
        self.lease.take(query_id)
        check_writable(ref)
        offsets = self._checkpoint.load_offsets(batch_id)
        batch = Batch(commit_user=query_id, id=batch_id, digest=digest_of(offsets))
        job_id = self._committer.begin(batch)
        self._watermark.restore(self._committer.upstream_times)
        ends = decode_batch(offsets, f"{self._checkpoint.place}/offsets/{batch_id}")
        self._has_ended = _have_ended(ends)
        self._is_to_finish |= self._has_ended
        return BegunBatch(ref=ref, batch=batch, ends=ends, job_id=job_id, started_seconds=started)

    def _times_of(self, begun: BegunBatch) -> TaskTimes | None:
        return self._times if tells_no_times(begun.ends) else None

    def _end_replay(self, begun: BegunBatch) -> None:
        self._last = begun.ref, self._timed(begun.batch, begun.ends, Written(messages=()), begun.ref)
        self._last_seconds = time.monotonic()

    def _commit(self, begun: BegunBatch, written: Written) -> None:
        ref, batch = begun.ref, self._timed(begun.batch, begun.ends, written, begun.ref)
        self.lease.check()
        snapshot = self._committer.commit(batch, written.messages)
        self._last, self._last_seconds = (ref, batch), time.monotonic()
        if self._compaction is not None and merges_on_its_own(ref):
            self._compaction.note_commit(ref, batch.commit_user)
        files = [file for message in written.messages for file in message.new_files]
        progress = WriteProgress(
            query_id=batch.commit_user,
            batch_id=batch.id,
            table=ref.name,
            snapshot_id=None if snapshot is None else snapshot.id,
            watermark=batch.watermark,
            rows=sum(file.row_count for file in files),
            files=len(files),
            bytes=sum(file.file_size for file in files),
            compaction=None,
        )
        _note_batch(progress, time.monotonic() - begun.started_seconds)
        compaction = self._compaction
        note_write(
            batch.commit_user, lambda: replace(progress, compaction=None if compaction is None else compaction.state)
        )

    def _timed(self, batch: Batch, ends: BatchEnds, written: Written, ref: TableRef) -> Batch:
        """Return the batch with the watermark after it."""
        self._watermark.idle_timeout_ms = ref.parsed(WatermarkOptions).upstream_idle_timeout_ms
        # From the session that created the query: a batch has a clone of that session, without its queries.
        query = self._spark.streams.get(batch.commit_user) if self._observed.metrics else None
        observed = NOTHING_OBSERVED if query is None else self._observed.read(query)
        if written.least_of_tasks is not None:
            observed = replace(observed, least_of_tasks=written.least_of_tasks)
        watermark = self._watermark.of(ends, observed)
        return replace(batch, watermark=watermark, upstream_times=self._watermark.encode())

    def _check_on_idle(self) -> None:
        """Do the work between batches, also before the first batch of a restarted query."""
        if not self.lease.is_held or not self._turn.acquire(blocking=False):
            return
        try:
            self.lease.check()
            if self._last is not None:
                self._move_watermark(*self._last)
            self._committer.committer.on_idle()
        finally:
            self._turn.release()

    def _move_watermark(self, ref: TableRef, batch: Batch) -> None:
        """Advance the watermark if partitions have become idle; commit a snapshot if the idle timeout requires one."""
        longest = ref.parsed(WatermarkOptions).snapshot_idle_timeout_ms
        is_forced = longest is not None and (time.monotonic() - self._last_seconds) * 1000 >= longest
        watermark = self._watermark.on_idle()
        moves = watermark is not None and (batch.watermark is None or watermark > batch.watermark)
        if not moves and not is_forced:
            return
        self._committer.commit_on_idle(batch, watermark, is_forced=is_forced)
        self._last = ref, replace(batch, watermark=watermark if moves else batch.watermark)
        if is_forced:
            self._last_seconds = time.monotonic()

    def _close_input(self) -> None:
        """Store the watermark that ``end-input.watermark`` sets for the end of all rows."""
        if self._last is None:
            return
        ref, batch = self._last
        watermark = ref.parsed(WatermarkOptions).end_input_watermark
        if watermark is None:
            return
        try:
            self.lease.check()
            self._committer.commit_on_idle(batch, watermark)
        except TableStoreError as error:
            _LOG.warning("table %s: 'end-input.watermark' was not stored: %s; start the query again", ref.name, error)

    def _with_new_columns(self, df: DataFrame, ref: TableRef) -> DataFrame:
        """Add the columns that were added to the table since the query began, as nulls."""
        new = [
            F.lit(None).cast(to_spark_type(field.type)).alias(field.name) for field in self.new_columns(ref, df.columns)
        ]
        return df.select("*", *new) if new else df

    def new_columns(self, ref: TableRef, names: Collection[str]) -> tuple[DataField, ...]:
        """Return the columns that were added to the table since the query began, and which the rows do not have."""
        return tuple(
            field
            for field in ref.schema.fields
            if field.id not in self._first_ids and field.type.nullable and field.name not in names
        )


def _note_batch(batch: WriteProgress, seconds: float) -> None:
    table = mask_locations(batch.table)
    _LOG.debug(
        "table %s: query %s wrote batch %s: %s rows, %s files, in %.3f s",
        *(table, batch.query_id, batch.batch_id, batch.rows, batch.files, seconds),
    )
    record(BATCH_SECONDS, seconds, table)
    record(BATCH_ROWS, batch.rows, table)


def _have_ended(ends: BatchEnds) -> bool:
    return all(source is not None and source.ended for source in ends.sources)


class QueryLease:
    """The lease that allows this process to run a query, on the storage of its table. Thread-safe."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._lease: Lease | None = None
        self._keeper: LeaseKeeper | None = None
        self._is_over = False
        self._lock = threading.Lock()

    def take(self, query_id: str) -> None:
        """Take the lease; if this process took it already, check that it still holds it. Raises ``LeaseHeldError``."""
        with self._lock:
            if self._keeper is None and not self._is_over:
                name = f"query-{query_id}"
                self._lease = acquire(self._ref.file_io, self._ref.location, name, own_wait_ms=_END_WAIT_MS)
                self._keeper = LeaseKeeper(self._lease)
        self.check()

    @property
    def is_held(self) -> bool:
        """Whether this process took the lease and has not released it."""
        return self._keeper is not None and not self._is_over

    @property
    def may_have_rival(self) -> bool:
        """Whether the process that ran the query before may still be alive, and may still commit."""
        return self._lease is not None and self._lease.may_have_rival

    def check(self) -> None:
        """Raise ``LeaseHeldError`` if a renewal found that another process has the lease. No call to the storage."""
        if self._keeper is not None:
            self._keeper.check()

    def verify(self) -> None:
        """Read the storage; raise ``LeaseHeldError`` if another process has the lease or this one never took it."""
        self.check()
        if self._lease is None:
            raise LeaseHeldError(f"table {self._ref.name}: the query is not run by this process")
        self._lease.check()

    def give_back(self) -> None:
        """Release the lease."""
        with self._lock:
            self._is_over = True
            if self._keeper is not None:
                with suppress(StorageError):  # the lease expires by itself
                    self._keeper.close()


class IdleTimer:
    """Calls a function periodically on a separate thread, also while Spark runs no micro-batch, until ``end``.

    Args:
        check: the function. Its ``TableStoreError`` is logged, and the next call tries again.
        name: name of the query and its table, for messages.
    """

    def __init__(self, check: Callable[[], None], name: str) -> None:
        self._check = check
        self._name = name
        self._is_over = threading.Event()
        self._last_failure = ""
        # A plain thread: with the local properties of the stream, Spark would cancel its jobs with those of the stream.
        self._thread = threading.Thread(target=self._run, name=f"idle check of {name}", daemon=True)

    def begin(self) -> None:
        """Start the timer."""
        self._thread.start()

    def end(self) -> None:
        """Stop the timer, and wait for a call that is running."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            try:
                self._check()
            except TableStoreError as error:
                if str(error) != self._last_failure:
                    self._last_failure = str(error)
                    _LOG.warning("%s: while it has no rows: %s; it is tried again", self._name, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWrite:
    """How a query writes to a table.

    Attributes:
        checkpoint: the checkpoint directory of the query, as a path or URI for Spark.
        trigger: one of ``{"processingTime": "10 seconds"}``, ``{"availableNow": True}``, ``{"once": True}``; None to
            start each batch as soon as the previous one is done.
        output_mode: ``append``, or ``complete``: each batch replaces all rows.
        query_name: name that Spark shows.
    """

    checkpoint: str
    trigger: Mapping[str, object] | None = None
    output_mode: str = "append"
    query_name: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether each batch replaces all rows."""
        return self.output_mode.lower() == "complete"

    @property
    def is_to_finish(self) -> bool:
        """Whether the query ends on its own under this trigger."""
        return self.trigger is not None and "processingTime" not in self.trigger
