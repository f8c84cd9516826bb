"""Thousands of micro-batches into one table with compaction and expiration meanwhile, without Spark.

The commits are those of a streaming query: each batch is recorded in a checkpoint, written, committed, and followed by
the maintenance that the table's options specify. Compaction runs between the batches, which is deterministic, or on a
separate thread, as with ``write_stream``.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

import penstock
from bench.counted_storage import READS, is_manifest
from penstock.catalog.place import load_location
from penstock.table.actions.changes import open_committer
from penstock.table.compact.background import BackgroundCompactor, CompactionWatch
from penstock.table.compact.commit import commit_compacted
from penstock.table.compact.job import merge_one
from penstock.table.compact.rewrite import rewrite
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.table.stream_sink.batch_log import BatchNotes, claim_checkpoint
from penstock.table.stream_sink.committer import Batch, StreamCommitter
from penstock.table.write.writer import write_arrow
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.ref import TableRef

_QUERY: Final = "query"
_COMPACTOR: Final = "query-compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The workload of a table.

    Attributes:
        partitions: number; each batch has rows for all of them.
        buckets: of a queue; -1 for a scalable table.
        rows: of a batch, for each partition.
        payload_bytes: incompressible bytes in each row.
        is_beside: compaction runs on its own thread, not between the batches.
        pause_seconds: between batches, untimed.
        options: of the table.
    """

    batches: int
    partitions: int
    buckets: int
    rows: int = 8
    payload_bytes: int = 0
    is_beside: bool = False
    pause_seconds: float = 0.0
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def groups(self) -> int:
        """Partitions times buckets."""
        return self.partitions * max(self.buckets, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Cost of one micro-batch, and the state of the table after it.

    Attributes:
        seconds: from the check whether it was committed to the end of the maintenance after its commit; without
            compaction between the batches.
        cpu_seconds: of all threads, in the same period.
        calls: to the storage, by the batch only.
        manifests_read: among them.
        live_files: after the compaction, if it runs between the batches.
        metadata_bytes: in the snapshot and manifest directories, as of the last ``is_looked_at``.
    """

    seconds: float
    cpu_seconds: float
    calls: int
    manifests_read: int
    live_files: int
    metadata_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Result of a workload.

    Attributes:
        appended: bytes of the files of each batch.
        rewritten_bytes: of all files that merges wrote.
        merges: number of committed merges.
        is_whole: each row is in the table exactly once at the end, and all files that snapshots reference exist.
    """

    course: Course
    steps: tuple[Step, ...]
    appended: tuple[int, ...]
    rewritten_bytes: int
    merges: int
    is_whole: bool

    @property
    def rewritten_share(self) -> float:
        """Bytes written by merges, per byte written by batches."""
        return self.rewritten_bytes / sum(self.appended)


def is_looked_at(number: int) -> bool:
    """Whether the metadata is listed after a batch: that takes as long as the batch, and it changes slowly."""
    return number % 10 == 0


def run_course(warehouse: str, course: Course) -> History:
    """Run all batches of a course into a new table.

    Args:
        warehouse: URI of a folder that does not exist yet.
    """
    ref = _create(warehouse, course)
    query = _Query(ref, course)
    compactor = _Beside(ref) if course.is_beside else _InTurn(ref)
    look = MetadataStore(ref)
    steps: list[Step] = []
    with ExitStack() as stack:
        stack.callback(compactor.stop)
        for number in range(course.batches):
            seconds, cpu_seconds = query.run(number)
            calls = query.storage.calls
            query.storage.forget()
            compactor.compact()
            steps.append(
                Step(
                    seconds=seconds,
                    cpu_seconds=cpu_seconds,
                    calls=len(calls),
                    manifests_read=sum(each.operation in READS and is_manifest(each.path) for each in calls),
                    live_files=_count_live(look),
                    metadata_bytes=_metadata_bytes(ref) if is_looked_at(number) else steps[-1].metadata_bytes,
                )
            )
            time.sleep(course.pause_seconds)
    return History(
        course=course,
        steps=tuple(steps),
        appended=tuple(query.appended),
        rewritten_bytes=compactor.rewritten_bytes,
        merges=compactor.merges,
        is_whole=_is_whole(ref, course.batches * course.partitions * course.rows),
    )


class _Query:
    """The streaming query."""

    def __init__(self, ref: TableRef, course: Course) -> None:
        self.storage = RecordingFileIO(ref.file_io)
        self.appended: list[int] = []
        self._course = course
        self._random = np.random.default_rng(7)
        ref = replace(ref, file_io=self.storage)
        notes = BatchNotes(_MemoryCheckpoint())
        mark = claim_checkpoint(ref, notes, base_id=0, has_batches=False, accept_unknown=False)
        self._committer = StreamCommitter(ref, notes, mark, is_overwrite=False)

    def run(self, number: int) -> tuple[float, float]:
        """Run a micro-batch; returns its wall and CPU time in seconds."""
        rows = self._rows(number)
        batch = Batch(commit_user=_QUERY, id=number, digest=f"offsets of {number}")
        started, cpu_started = time.perf_counter(), time.process_time()
        ref = self._committer.load_ref()
        assert self._committer.begin(batch) is not None
        messages = write_arrow(ref, rows)
        self._committer.commit(batch, messages)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        self.appended.append(sum(file.file_size for message in messages for file in message.new_files))
        return seconds, cpu_seconds

    def _rows(self, number: int) -> pa.Table:
        course = self._course
        count = course.rows * course.partitions
        first = number * count
        payloads = self._random.bytes(count * course.payload_bytes)
        size = course.payload_bytes
        return pa.table(
            {
                "id": pa.array(range(first, first + count), pa.int64()),
                "payload": pa.array([payloads[row * size : (row + 1) * size] for row in range(count)], pa.binary()),
                "dt": pa.array([f"day-{row % course.partitions}" for row in range(count)]),
            }
        )


class _InTurn:
    """Compaction between the batches."""

    def __init__(self, ref: TableRef) -> None:
        self.rewritten_bytes = 0
        self.merges = 0
        self._watch = CompactionWatch(ref, MetadataStore(ref))
        self._committer = open_committer(ref)

    def compact(self) -> None:
        """Check the table once, and compact if necessary."""
        tasks = self._watch.plan()
        if not tasks:
            return
        messages = tuple(rewrite(task, self._watch.ref) for task in tasks)
        done = commit_compacted(self._committer, messages, commit_user=_COMPACTOR)
        assert not done.lost
        for task in tasks:
            self._watch.finish(task, is_done=True)
        self.merges += len(tasks)
        self.rewritten_bytes += _bytes(file for message in messages for file in message.compact_after)

    def stop(self) -> None:
        """There is nothing to stop."""


class _Beside:
    """Compaction on its own thread."""

    def __init__(self, ref: TableRef) -> None:
        self._compactor = BackgroundCompactor(ref, merge_one, commit_user=_COMPACTOR, max_tasks=1)
        self._compactor.start()

    @property
    def rewritten_bytes(self) -> int:
        return self._compactor.state.bytes_out

    @property
    def merges(self) -> int:
        return self._compactor.state.committed_merges

    def compact(self) -> None:
        """Wake the thread after a commit."""
        self._compactor.wake()

    def stop(self) -> None:
        """End the thread."""
        self._compactor.stop()
        assert self._compactor.state.last_error is None


@dataclass(slots=True)
class _MemoryCheckpoint:
    """Penstock's files in a query's checkpoint."""

    files: dict[str, bytes] = field(default_factory=dict)
    place: str = "memory"

    def list(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


def _create(warehouse: str, course: Course) -> TableRef:
    catalog = penstock.Catalog(warehouse)
    catalog.create_database("bench", if_not_exists=True)
    options = {**course.options}
    if course.buckets > 0:
        options |= {"bucket": str(course.buckets), "bucket-key": "id"}
    table = catalog.create_table("bench.t", "id BIGINT, payload BYTES, dt STRING", partition_by=["dt"], options=options)
    return load_location(table.location)


def _bytes(files: Iterable[DataFileMeta]) -> int:
    return sum(file.file_size for file in files)


def _count_live(store: MetadataStore) -> int:
    latest = store.load_latest_snapshot()
    return 0 if latest is None else len(load_live_entries(store, latest))


def _metadata_bytes(ref: TableRef) -> int:
    folders = (ref.layout.snapshot_directory, ref.layout.manifest_directory)
    return sum(status.size for folder in folders for status in ref.file_io.list(folder))


def _is_whole(ref: TableRef, rows: int) -> bool:
    """Whether each row occurs exactly once, and all files that any snapshot references exist."""
    table = penstock.Table(ref)
    ids = table.to_arrow(columns=["id"])["id"].to_numpy()
    return np.array_equal(np.sort(ids), np.arange(rows)) and not table.inspect.fsck(all_snapshots=True).findings
