"""Writing of rows to data files by partition and bucket, in order, in bounded memory, and on several threads.

Memory is bounded differently from the reference, which gives every writer its own buffer: here a single sort by group
serves all of them, so that one file after another is written. A task with too many writers is warned about.

Source:
    Paimon ``core:operation/AbstractFileStoreWrite.java``, ``core:append/AppendOnlyWriter.java``;
    docs/spec/commit.md 2.2 to 2.6; the limit of writers per task, "(N * B) / P < 100", from Paimon's documentation of
    append tables.
"""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from penstock.datafile.types import to_arrow_schema
from penstock.errors import StorageError
from penstock.io.failures import enough_memory
from penstock.metrics import ROWS
from penstock.options import SinkStrategy, WriteOptions
from penstock.printable import open_log
from penstock.table.write.assign import Assigner
from penstock.table.write.check_rows import conform_batches, plan_conform
from penstock.table.write.rolling import GroupWriter, new_job_id, plan_buckets, plan_files
from penstock.table.write.spill import SpillBuffer, split_sorted, stable_order, to_indices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

__all__ = ["TableWriter", "new_job_id", "write_arrow"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.write.spill import Ids, Places

# Larger batches are cut, since splitting a batch by group copies its rows. Smaller batches are joined if they have to
# be split by group: with 8 buckets, Spark's batches of 10,000 rows cost a third more than batches of 65,536.
BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 32 * 1024 * 1024
MAX_THREADS: Final = 4
WRITE_MAX_WRITERS_TO_SPILL: Final = "write-max-writers-to-spill"
# Each open file holds up to one row group in memory. The option's default allows ten open files; more may be open as
# long as their row groups fit into these bytes. With 100-byte rows, 16 buckets take 1.3 times as long as one file, and
# 2.1 times as long if six of them are buffered.
OPEN_FILES_BYTES: Final = 256 * 1024 * 1024
MAX_OPEN_FILES: Final = 64
# With more groups for each open file than this, hardly any row is written directly.
MAX_GROUPS_PER_OPEN_FILE: Final = 8
ROW_GROUP_ROWS: Final = 131_072
# Bytes of sorted rows that threads are given at once, in a job each, so that small files share a job: handing over each
# step of each file took longer than some of the steps.
DRAINED_BYTES: Final = 8 * 1024 * 1024


class TableWriter:
    """Writes rows to new data files of a table. One task uses it from one thread.

    Rows of the first groups (partition and bucket) are written directly to open files. The number of these groups is
    ``write-max-writers-to-spill``; if that is not set, ten, or more if the rows are small. Rows of further groups are
    sorted by group in a bounded buffer, which spills to disk if it must, and are written one file after another. Rows
    of one group keep their incoming order.

    As a context manager, it deletes on exit all files that ``prepare_commit`` has not returned.

    Args:
        ref: the table, with its options.
        options: write options to use instead of those of ``ref``.
        job_id: from ``new_job_id``, if several tasks write for one commit: it identifies their files.
        threads: number of threads that encode files; use more than 1 only if cores are free.
        clock_millis: returns the files' creation times; None for the local wall clock as if it were UTC.
        spill_directory: local directory for spilled rows; None for the system's temporary directory.
    """

    def __init__(
        self,
        ref: TableRef,
        options: WriteOptions | None = None,
        *,
        job_id: str | None = None,
        threads: int = 1,
        clock_millis: Callable[[], int] | None = None,
        spill_directory: str | None = None,
    ) -> None:
        options = options or ref.parsed(WriteOptions)
        self._target = plan_files(ref, options, job_id=job_id, clock_millis=clock_millis)
        self._assigner = Assigner(ref.schema, plan_buckets(ref))
        self._direct_groups = 0 if options.write_buffer_for_append else options.write_max_writers_to_spill
        self._may_open_more = WRITE_MAX_WRITERS_TO_SPILL not in ref.options and self._direct_groups > 0
        self._buffer = SpillBuffer(
            to_arrow_schema(ref.schema.fields), options, directory=spill_directory, table=ref.name
        )
        self._executor = KeyedExecutor(threads)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._is_spread = False
        self._writers: dict[int, GroupWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.abort()
        except StorageError as failure:
            if error is None:
                raise
            error.add_note(f"deleting the unfinished files failed too: {failure}")

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows.

        Args:
            batch: of exactly the table's canonical Arrow schema; the writer may keep it, so it must not be changed.
        """
        with enough_memory(self._target.ref.name):
            self._take(batch)

    def _take(self, batch: pa.RecordBatch) -> None:
        size = batch.nbytes
        if self._waiting_rows + batch.num_rows > BATCH_ROWS or self._waiting_bytes + size > BATCH_BYTES:
            self._write_waiting()
        if self._is_spread and batch.num_rows < BATCH_ROWS and size < BATCH_BYTES:
            self._waiting.append(batch)
            self._waiting_rows += batch.num_rows
            self._waiting_bytes += size
        else:
            self._write_in_steps(batch)

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Finish all files and return their messages: one per group with files, in the order groups first appeared.

        Afterwards the writer can be used for the next commit.
        """
        with enough_memory(self._target.ref.name):
            self._write_waiting()
            self._drain()
            for group, writer in self._writers.items():
                if group < self._direct_groups:  # the files of the others are finished
                    self._executor.submit(group, writer.finish_file)
            self._executor.wait()
            messages = (self._writers[group].take_message() for group in sorted(self._writers))
            handed_over = tuple(message for message in messages if message.new_files)
        self._writers.clear()
        return handed_over

    def abort(self) -> None:
        """Delete every file that ``prepare_commit`` has not returned, and free memory and disk."""
        with ExitStack() as clean_up:
            for writer in self._writers.values():
                clean_up.callback(writer.abort)
            clean_up.callback(self._buffer.close)
            # Last in, first out: no job may write while files are deleted.
            clean_up.callback(self._executor.close)
            self._writers.clear()
            self._waiting.clear()

    def _write_waiting(self) -> None:
        if self._waiting:
            joined = pa.Table.from_batches(self._waiting).combine_chunks().to_batches()
            self._waiting.clear()
            self._waiting_rows = self._waiting_bytes = 0
            for batch in joined:
                self._write_in_steps(batch)

    def _write_in_steps(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            rows = min(BATCH_ROWS, max(1, BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1)))
            for start in range(0, batch.num_rows, rows):
                self._write_batch(batch.slice(start, rows))

    def _write_batch(self, batch: pa.RecordBatch) -> None:
        ids = self._assigner.assign(batch)
        if self._may_open_more:
            self._open_more(batch)
        self._is_spread = not isinstance(ids, int)
        if isinstance(ids, int):
            if ids < self._direct_groups:
                self._submit(ids, batch, None)
            else:
                self._keep(batch, np.full(batch.num_rows, ids, dtype=np.int32))
        else:
            self._split(batch, ids)
        self._executor.end_round()

    def _open_more(self, batch: pa.RecordBatch) -> None:
        """Let more groups write directly to open files if their row groups are small; this shrinks the buffer.

        Not if most rows go through the buffer nevertheless: a smaller one would spill them earlier.
        """
        indexes = self._target.indexes
        index_bytes = 0 if indexes is None else indexes.bloom_bytes
        row_group_bytes = max(ROW_GROUP_ROWS * batch.nbytes // batch.num_rows, 1) + index_bytes
        more = min(OPEN_FILES_BYTES // row_group_bytes, MAX_OPEN_FILES) - self._direct_groups
        if more > 0 and len(self._assigner.groups) <= MAX_GROUPS_PER_OPEN_FILE * (self._direct_groups + more):
            self._direct_groups += more
            self._buffer.yield_memory(more * row_group_bytes)
        self._may_open_more = False

    def _split(self, batch: pa.RecordBatch, ids: Ids) -> None:
        """Pass each group a copy of its rows, so that no group keeps rows of other groups in memory."""
        order = stable_order(ids)
        sorted_ids = ids[order]
        direct_rows = int(sorted_ids.searchsorted(self._direct_groups))
        for group, start, stop in split_sorted(sorted_ids[:direct_rows]):
            self._submit(group, batch, order[start:stop])
        if direct_rows == 0:
            self._keep(batch, ids)
        elif direct_rows < len(order):
            self._keep(batch.take(to_indices(order[direct_rows:])), sorted_ids[direct_rows:])

    def _submit(self, group: int, batch: pa.RecordBatch, places: Places | None) -> None:
        writer = self._writer_of(group)
        if len(self._writers) == 1:
            # With a single writer there is nothing to run in parallel, so a thread would only add cost.
            _write_rows(writer, batch, places)
        else:
            self._executor.submit(group, partial(_write_rows, writer, batch, places))

    def _keep(self, batch: pa.RecordBatch, ids: Ids) -> None:
        self._buffer.add(batch, ids)
        if self._buffer.is_full:
            if self._buffer.may_spill:
                self._buffer.spill()
            else:
                self._drain()

    def _drain(self) -> None:
        """Write all buffered rows to data files, one group after another, so that each thread has one open file."""
        # On object stores, files must wait for their requests at the same time.
        limit = 0 if self._target.ref.file_io.is_object_store else DRAINED_BYTES // self._executor.count
        steps: list[Callable[[], None]] = []
        job = step_bytes = round_bytes = 0
        current: GroupWriter | None = None
        for group, rows in self._buffer.drain():
            writer = self._writer_of(group)
            is_next = writer is not current
            if is_next and current is not None:
                steps.append(current.finish_file)
            if step_bytes >= limit:
                self._executor.submit(job, partial(_run, steps))
                # The rows of a group stay on one thread.
                job += is_next
                round_bytes += step_bytes
                steps, step_bytes = [], 0
                if round_bytes >= DRAINED_BYTES:
                    self._executor.end_round()
                    round_bytes = 0
            current = writer
            steps.append(partial(writer.write, rows))
            step_bytes += rows.nbytes
        if current is not None:
            self._executor.submit(job, partial(_run, [*steps, current.finish_file]))
            self._executor.wait()

    def _writer_of(self, group: int) -> GroupWriter:
        writer = self._writers.get(group)
        if writer is None:
            writer = self._writers[group] = GroupWriter(self._target, self._assigner.groups[group])
        return writer


def write_arrow(
    ref: TableRef, rows: pa.Table | pa.RecordBatch | pa.RecordBatchReader, *, threads: int | None = None
) -> tuple[CommitMessage, ...]:
    """Write Arrow rows to new data files of a table, without a JVM; they are visible once committed.

    Args:
        ref: the table, with the options to write with.
        rows: columns in any order, of types that fit without loss.
        threads: number of threads that encode files; None for one per core, at most 4, and more on object stores.

    Returns:
        Messages to commit; empty when there are no rows.
    """
    plan = plan_conform(ref.schema, rows.schema, ref.name)
    with TableWriter(ref, threads=threads or _thread_count(ref)) as writer:
        for batch in conform_batches(_batches(rows), plan):
            writer.write(batch)
            if ROWS.location is not None:
                ROWS.add(ref.location, written=batch.num_rows)
        messages = writer.prepare_commit()
    warn_too_many_writers(ref, messages, tasks=1)
    return messages


def _thread_count(ref: TableRef) -> int:
    # Threads mostly wait for responses of object stores.
    return ref.file_io.parallel_calls if ref.file_io.is_object_store else min(os.cpu_count() or 1, MAX_THREADS)


def _write_rows(writer: GroupWriter, batch: pa.RecordBatch, places: Places | None) -> None:
    writer.write(batch if places is None else batch.take(to_indices(places)))


def _run(steps: Sequence[Callable[[], None]]) -> None:
    for step in steps:
        step()


def _batches(rows: pa.Table | pa.RecordBatch | pa.RecordBatchReader) -> Iterable[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return (rows,)
    if isinstance(rows, pa.Table):
        return rows.to_batches(max_chunksize=BATCH_ROWS)
    return rows


MAX_ROUNDS: Final = 2


class KeyedExecutor:
    """Runs the jobs of one key in order on one thread; jobs of other keys may run in parallel.

    Args:
        count: number of threads; with 1, every job runs immediately in the caller's thread.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._executors = [ThreadPoolExecutor(1, thread_name_prefix="penstock-write") for _ in range(count)]
        self._rounds: deque[list[Future[None]]] = deque([[]])
        if count == 1:
            self._executors.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, key: int, job: Callable[[], None]) -> None:
        """Run the job after all earlier jobs of the key. This call or a later one raises the job's error."""
        if not self._executors:
            job()
        else:
            executor = self._executors[key % len(self._executors)]
            self._rounds[-1].append(executor.submit(job))

    def end_round(self) -> None:
        """Wait until at most ``MAX_ROUNDS`` rounds of jobs are unfinished, to bound the memory of their data."""
        self._rounds.append([])
        while len(self._rounds) > MAX_ROUNDS:
            _wait(self._rounds.popleft())

    def wait(self) -> None:
        """Wait for all jobs."""
        while self._rounds:
            _wait(self._rounds.popleft())
        self._rounds.append([])

    def close(self) -> None:
        """Stop: cancel jobs that have not started, and wait for those that are running."""
        for executor in self._executors:
            executor.shutdown(cancel_futures=True)
        self._rounds = deque([[]])


def _wait(futures: list[Future[None]]) -> None:
    for future in futures:
        future.result()


MOST_WRITERS: Final = 100
_LOG: Final = open_log("penstock.write")
_REPEAT_SECONDS: Final = 3_600.0
_warned: dict[str, float] = {}


def warn_too_many_writers(
    ref: TableRef,
    messages: Sequence[CommitMessage],
    *,
    tasks: int,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Log a warning if tasks opened too many writers on average, at most once an hour for each table.

    Args:
        messages: of all tasks, one for each writer.
        tasks: number of tasks that wrote.
    """
    if tasks < 1 or len(messages) < MOST_WRITERS * tasks:
        return
    now = clock()
    if now - _warned.get(ref.location, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
        return
    _warned[ref.location] = now
    partitions = len({message.partition for message in messages})
    buckets = len({message.bucket for message in messages})
    cures = []
    if partitions > 1:
        cures.append(f"write fewer than {partitions} partitions at a time")
    if buckets > 1:
        cures.append(f"use fewer than {buckets} buckets")
    if tasks > 1 and ref.parsed(WriteOptions).sink_strategy is SinkStrategy.NONE:
        cures.append(
            "set 'partition.sink-strategy' = 'hash', so that one task writes all rows of a partition and bucket"
        )
    else:
        cures.append("write with more Spark tasks and 'partition.sink-strategy' = 'hash'")
    _LOG.warning(
        "table %s: an append wrote %d files in %d %s, one for each partition and bucket of a task; write fewer than %d "
        "per task, since many small files slow down reads and open writers take memory: %s",
        ref.name,
        len(messages),
        tasks,
        "task" if tasks == 1 else "tasks",
        MOST_WRITERS,
        ", or ".join(cures),
    )
