"""Row changes of a queue: each row returns to the position that it was read from.

Spark joins and shuffles the rows of a change, so a scan gives each row the number of its file and its own number in it,
as metadata columns. Spark does not pass these to the writers of files, but distributes and sorts rows by them. The
numbers of the files are chosen so that Spark's hash sends each file to a task of its own, and new rows, whose number is
NULL, to another one. So the number of a task tells which file its rows replace, and in which order (design/0035).

Source:
    ``HashPartitioning`` of Spark: ``pmod(hash(column), tasks)``, with ``Murmur3Hash`` of seed 42; NULL keeps the seed.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.datafile.streams import as_native_file
from penstock.datafile.types import has_leaf, is_char, is_variant
from penstock.errors import StorageError, UnsupportedFeatureError
from penstock.options import BucketOptions
from penstock.spark.batches import from_spark_batch
from penstock.spark.connector.changes.group_scan import GroupScan
from penstock.spark.connector.python_workers import python_factory, python_partitions
from penstock.spark.read.frame import ReadTask
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.delta import find_displaced
from penstock.table.dml.by_position import check_keys, moved_rows
from penstock.table.dml.change import ChangedBatch
from penstock.table.dml.run import write_in_place
from penstock.table.read.batches import DeletedRows
from penstock.table.read.live import load_live_of_partitions
from penstock.table.read.prune import NO_FILTER
from penstock.table.write.check_rows import conform_batches, plan_conform
from penstock.table.write.rolling import plan_buckets
from penstock.table.write.writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.io.file_io import FileIO
    from penstock.spark.connector.gateway import JavaObject
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.dml.replacement import ReadFiles
    from penstock.table.message import CommitMessage
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_SEED: Final = 42
_THREADS: Final = 4
_CURE: Final = "use Table.update, Table.merge, Table.delete, or penstock.sql"


def is_queue(ref: TableRef) -> bool:
    """Whether the rows of a table are in buckets, and in order there."""
    return ref.parsed(BucketOptions).bucket > 0


def why_no_queue_changes(ref: TableRef) -> str | None:
    """Return why Spark must not rewrite the rows of a queue; None if it may."""
    if any(has_leaf(field.type, is_variant) for field in ref.schema.fields):
        return "it is a queue with a column of VARIANT"
    keys = plan_buckets(ref).key
    if any(field.name in keys and is_char(field.type) for field in ref.schema.fields):
        return "Spark pads its bucket key, a CHAR, and rows would change their buckets"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlaces:
    """The tasks that get the rows of files.

    Attributes:
        numbers: by the name of a file: the value of the metadata column, and the task to which Spark sends it.
        new_rows: the task of rows that were in no file.
        task_count: number of tasks.
    """

    numbers: Mapping[str, tuple[int, int]]
    new_rows: int
    task_count: int

    @classmethod
    def of(cls, names: Sequence[str]) -> FilePlaces:
        """Choose the number of each file such that no two files have one task."""
        count = len(names) + 1
        new_rows = _SEED % count
        free = np.ones(count, dtype=bool)
        free[new_rows] = False
        found: list[tuple[int, int]] = []
        first = 0
        while len(found) < len(names):
            numbers = np.arange(first, first + 4 * count, dtype=np.int64)
            tasks, places = np.unique(tasks_of(numbers, count), return_index=True)
            is_new = free[tasks]
            free[tasks] = False
            found += zip(numbers[places[is_new]].tolist(), tasks[is_new].tolist(), strict=True)
            first += 4 * count
        return cls(numbers=dict(zip(names, found, strict=True)), new_rows=new_rows, task_count=count)


def tasks_of(numbers: npt.NDArray[np.int64], task_count: int) -> npt.NDArray[np.int64]:
    """Return the task to which Spark sends each number of a column of BIGINT."""
    low = (numbers & 0xFFFFFFFF).astype(np.uint32)
    high = ((numbers >> 32) & 0xFFFFFFFF).astype(np.uint32)
    state = np.full(len(numbers), _SEED, dtype=np.uint32)
    for part in (low, high):
        mixed = _rotated(part * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        state = _rotated(state ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(8)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state.view(np.int32).astype(np.int64) % task_count


def _rotated(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))


class QueueScan(GroupScan):
    """A scan of whole files of a queue, whose rows have their positions in metadata columns."""

    @cached_property
    def places(self) -> FilePlaces:
        """The tasks that get the rows of the files, before runtime filters."""
        return FilePlaces.of([file.file_name for split in self._files.splits for file in split.files])

    def _refusal(self) -> str | None:
        return "the position of each row in its queue is read, too"

    def partitions_of(self, splits: Sequence[DataSplit]) -> tuple[JavaObject, JavaObject]:
        """Return the partitions and their reader factory."""
        self.remember(splits)
        columns = tuple(self._files.columns.fieldNames())
        task = PositionTask(
            reader=ReadTask(ref=self._request.read.pinned.ref, columns=columns, pads=self._pads()),
            names=tuple(self._request.metadata.fieldNames()),
        )
        files = [
            (replace(split, files=(file,), rest=NO_FILTER), self.places.numbers[file.file_name][0])
            for split in splits
            for file in split.files
        ]
        return (
            python_partitions(self._bridge, files),
            python_factory(self._bridge, self._request.spark, task, self._returned),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTask:
    """Reads files, which come pickled with their numbers, and adds the position of each row.

    Attributes:
        names: of the columns of the file's number and of the row's number in it; fewer if Spark needs fewer.
    """

    reader: ReadTask
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the files of a task."""
        for batch in batches:
            for data in batch.column(0):
                split, number = pickle.loads(data.as_py() or b"")  # noqa: S301 - our own driver wrote it
                first = 0
                for rows in self.reader.read(split):
                    last = first + rows.num_rows
                    yield self._with_position(rows, number, first)
                    first = last

    def _with_position(self, rows: pa.RecordBatch, number: int, first: int) -> pa.RecordBatch:
        count = rows.num_rows
        columns = (
            pa.array(np.full(count, number, dtype=np.int64)),
            pa.array(np.arange(first, first + count, dtype=np.int64)),
        )
        for name, column in zip(self.names, columns, strict=True):
            rows = rows.append_column(name, column)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenRows:
    """The rows of a statement, as Spark's tasks wrote them.

    Attributes:
        command: kind of the statement, as Spark names it.
        file_io: storage of the files that they wrote.
        parts: Parquet files by the task that wrote them.
        row_count: number of rows that Spark says to have written.
        places: the tasks that get the rows of files; None if Spark reads no rows.
        task_count: number of tasks that Spark has run.
    """

    command: str
    file_io: FileIO
    parts: Mapping[int, Sequence[str]]
    row_count: int
    places: FilePlaces | None
    task_count: int

    def check(self, ref: TableRef, files: Mapping[str, int]) -> None:
        """Raise ``StorageError`` unless each task has written rows of its file only.

        Args:
            files: names of those that Spark has read, and their numbers of rows.
        """
        rows = {task: sum(_row_count(self.file_io, path) for path in paths) for task, paths in self.parts.items()}
        left = {task for task, count in rows.items() if count}
        problem = None
        if sum(rows.values()) != self.row_count:
            problem = f"Spark has written {self.row_count} rows, but the driver finds {sum(rows.values())}"
        elif left and (self.places is None or self.places.task_count != self.task_count):
            problem = f"Spark has written them in {self.task_count} tasks"
        elif self.places is not None:
            if self.command == "MERGE":
                left.discard(self.places.new_rows)
            for name, count in files.items():
                if name not in self.places.numbers:
                    problem = f"Spark has read {name} without a task for its rows"
                    continue
                task = self.places.numbers[name][1]
                left.discard(task)
                found = rows.get(task, 0)
                if found > count or (self.command == "UPDATE" and found < count):
                    problem = f"of {count} rows of {name}, Spark has written {found}"
            if left:
                problem = problem or f"Spark has written rows in the tasks {sorted(left)}, which have no file"
        if problem is not None:
            raise StorageError(
                f"table {ref.name}: {problem}, so nothing was changed; if the warehouse is where driver and workers "
                f"see it at one path, {_CURE}"
            )

    def of(self, file: DataFileMeta, ref: TableRef) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, as rows of the table."""
        return iter(()) if self.places is None else self._read(self.places.numbers[file.file_name][1], ref)

    def new(self, ref: TableRef) -> Iterator[pa.RecordBatch]:
        """Yield the rows that were in no file."""
        return iter(()) if self.places is None else self._read(self.places.new_rows, ref)

    def _read(self, task: int, ref: TableRef) -> Iterator[pa.RecordBatch]:
        for path in self.parts.get(task, ()):
            with opened_parquet(self.file_io, path) as file:
                batches = (from_spark_batch(each, ref.schema.fields) for each in file.iter_batches())
                plan = plan_conform(ref.schema, from_spark_batch(_no_rows(file), ref.schema.fields).schema, ref.name)
                yield from conform_batches(batches, plan)


def write_queue(committer: TableCommitter, read: ReadFiles, rows: RewrittenRows) -> tuple[CommitMessage, ...]:
    """Write the rows of a statement into the buckets of a queue: each at its position, or at the end of its new bucket.

    Returns:
        Messages in the order of the files, then one of the new rows. No file is left after an error.
    """
    ref, store = for_existing_rows(committer.ref, keep_lengths=False), committer.store
    files = [(split, file) for split in read.splits for file in split.files]
    deleted = DeletedRows(ref)
    rows.check(ref, {f.file_name: f.row_count - deleted.count((f,), split.vectors) for split, f in files})
    if rows.command != "DELETE":
        check_keys(committer.ref, store, (file for _, file in files))
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        futures = [
            pool.submit(write_in_place, ref, split, (file,), _changed(ref, split, rows.of(file, ref), rows.command))
            for split, file in files
        ]
        futures.append(pool.submit(_append, ref, rows.new(ref)))
    messages = tuple(message for each in futures if each.exception() is None for message in each.result())
    try:
        for each in futures:
            each.result()
        _check_order(committer.ref, store, read, messages)
    except BaseException:
        delete_new_files(ref, messages)
        raise
    return messages


def _changed(
    ref: TableRef, split: DataSplit, batches: Iterable[pa.RecordBatch], command: str
) -> Iterator[ChangedBatch]:
    """Yield the rows that replace those of a file, which may have other partitions and buckets now."""
    for rows in batches:
        moved = None if command == "DELETE" or not rows.num_rows else moved_rows(ref, split, rows)
        yield ChangedBatch(after=rows, moved=moved)


def _append(ref: TableRef, batches: Iterable[pa.RecordBatch]) -> tuple[CommitMessage, ...]:
    with TableWriter(ref) as writer:
        for rows in batches:
            writer.write(rows)
        return writer.prepare_commit()


@contextmanager
def opened_parquet(file_io: FileIO, path: str) -> Iterator[pq.ParquetFile]:
    """Open a file that Spark's tasks have written."""
    with closing(file_io.open_input(path)) as stream, pq.ParquetFile(as_native_file(stream)) as file:
        yield file


def _no_rows(file: pq.ParquetFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=file.schema_arrow)


def _row_count(file_io: FileIO, path: str) -> int:
    with opened_parquet(file_io, path) as file:
        return int(file.metadata.num_rows)


def _check_order(ref: TableRef, store: MetadataStore, read: ReadFiles, messages: Sequence[CommitMessage]) -> None:
    """Refuse files whose position in the queue only the order of a manifest tells, unless all of them are replaced."""
    if read.snapshot is None:
        return
    partitions = frozenset(split.partition for split in read.splits)
    live = load_live_of_partitions(store, ref.schema, read.snapshot, partitions)
    if find_displaced(live.values(), messages):
        raise UnsupportedFeatureError(
            f"table {ref.name}: files of a bucket begin with the same sequence number, so rows would lose their order, "
            f"and nothing was changed; {_CURE}"
        )
