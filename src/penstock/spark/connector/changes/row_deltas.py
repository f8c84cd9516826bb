"""Write of a row change whose rows Spark names by their positions: tasks write what changes, the driver commits it.

Spark passes each row that is deleted, updated or inserted, and the position of the first two, to writers of ours
(``ChangeWriters.java``). They write them to Parquet files in a staging directory, those of a file one after another.

Source:
    ``SupportsDelta`` of Spark.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from penstock.datafile.streams import as_native_file
from penstock.datafile.types import has_leaf, is_variant, to_arrow_schema
from penstock.options import BucketOptions
from penstock.spark.batches import from_spark_batch
from penstock.spark.connector.executor_classes import executors_have_classes
from penstock.spark.connector.metadata_column import POSITION
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.staged_files import StagedBatchWrite, StagedFiles, WriterFactories
from penstock.spark.native_settings import WRITE_OPTIONS
from penstock.spark.versions.facts import ROW_DELTAS
from penstock.table.actions.changes import open_committer
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.dml.by_position import RowDelta, commit_deltas
from penstock.table.dml.run import marks_rows
from penstock.table.row_tracking import is_tracked
from penstock.table.write.check_rows import conform_batch, plan_conform
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.io.file_io import FileIO
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.dml.replacement import ReadFiles
    from penstock.table.ref import TableRef

_WRITE: Final = "org.apache.spark.sql.connector.write."
_DELETED: Final = "_penstock_deleted"
# The rows of each file of the table are read alone, with those of the other files in their row groups.
_ROW_GROUP_BYTES: Final = "1048576"
_FIRST_COLUMN: Final = 1 + len(POSITION)


def is_queue(ref: TableRef) -> bool:
    """Whether the rows of a table are in buckets, and in order there."""
    return ref.parsed(BucketOptions).bucket > 0


def takes_deltas(bridge: Bridge, ref: TableRef) -> bool:
    """Whether Spark names the rows that change by their positions; otherwise it rewrites whole files."""
    has_variants = any(has_leaf(field.type, is_variant) for field in ref.schema.fields)
    is_wanted = marks_rows(ref) or is_tracked(ref.options) or is_queue(ref)
    return ROW_DELTAS.is_here and is_wanted and not has_variants and executors_have_classes(bridge)


class DeltaWrite(Proxy):
    """The write of one statement, as Spark plans it.

    Args:
        columns: of the rows that are updated or inserted; empty for a DELETE.
        read_files: returns the files that may have rows to change, once the statement has run.
        check: refuses tables that the statement cannot change in this way.
    """

    interfaces: ClassVar = (f"{_WRITE}DeltaWrite", f"{_WRITE}RequiresDistributionAndOrdering")

    def __init__(
        self,
        bridge: Bridge,
        ref: TableRef,
        columns: StructType,
        read_files: Callable[[], ReadFiles],
        check: Callable[[TableRef], None],
    ) -> None:
        super().__init__(bridge, f"{ref.name} {id(self)}")
        self._ref = ref
        self._columns = columns
        self._read_files = read_files
        self._check = check

    def description(self) -> str:
        """Return the name of the table."""
        return self._ref.name

    @from_spark
    def toBatch(self) -> JavaObject:
        """Return the write of the tasks."""
        self._check(self._ref)
        return DeltaBatch(self._bridge, self._ref, self._columns, self._read_files)

    @from_spark
    def requiredDistribution(self) -> JavaObject:
        """Return that the rows of a file go to one task, or to a few if there are many."""
        return self._bridge.clustered(POSITION[:1])

    @from_spark
    def distributionStrictlyRequired(self) -> bool:
        """Return that a large file may have several tasks, and so may all new rows, which have no file."""
        return False

    @from_spark
    def requiredOrdering(self) -> JavaObject:
        """Return that each task sorts its rows by their positions."""
        return self._bridge.ascending(POSITION)


class DeltaBatch(StagedBatchWrite):
    """Writes what changes in tasks, and commits it on the driver."""

    interfaces: ClassVar = (f"{_WRITE}DeltaBatchWrite",)

    def __init__(self, bridge: Bridge, ref: TableRef, columns: StructType, read_files: Callable[[], ReadFiles]) -> None:
        staged = StagedFiles(
            WriterFactories(bridge, bridge.session()),
            ref,
            _staged_columns(columns),
            job_id=new_job_id(),
            takes=False,
            options={**WRITE_OPTIONS, "parquet.block.size": _ROW_GROUP_BYTES},
        )
        super().__init__(bridge, ref, staged)
        self._count = len(columns)
        self._read_files = read_files

    @from_spark
    def createBatchWriterFactory(self, info: JavaObject) -> JavaObject:
        """Return the factory of our writers."""
        return self._bridge.change_writers.of(self._staged.writer_factory(), len(POSITION), self._count)

    @from_spark
    def commit(self, messages: JavaObject, summary: JavaObject = None) -> None:
        """Change the rows, unless none does."""
        try:
            row_count = self._staged.finish(messages)
            committer = open_committer(self._ref)
            deltas = StagedDeltas(committer, self._staged.staging.file_io, self._staged.parts())
            self._staged.check_rows(row_count, deltas.row_count)
            if not row_count:
                return
            commit_deltas(committer, self._read_files(), deltas)
        finally:
            self._staged.delete()


def _staged_columns(columns: StructType) -> StructType:
    """Return the columns of staged files: whether the row is deleted, its position, and its columns."""
    taken = {name.casefold() for name in columns.fieldNames()}
    kinds = {_DELETED: BooleanType(), POSITION[0]: StringType(), POSITION[1]: LongType()}
    fields = []
    for name, kind in kinds.items():
        unused = name
        while unused.casefold() in taken:
            unused += "_"
        fields.append(StructField(unused, kind))
    return StructType([*fields, *columns])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Rows of a staged file that follow each other, of one file of the table.

    Attributes:
        part: path of the staged file.
        start: number of the first row.
        end: number of the first row after them.
    """

    part: str
    start: int
    end: int


class StagedDeltas:
    """What a statement does to the rows of a table, from the files that its tasks have written.

    Attributes:
        row_count: number of all rows.
    """

    def __init__(self, committer: TableCommitter, file_io: FileIO, parts: Iterable[str]) -> None:
        ref = committer.ref
        self._ref = ref
        self._file_io = file_io
        self._footers: dict[str, pq.FileMetaData] = {}
        self._runs: dict[str | None, list[_Run]] = defaultdict(list)
        for part in parts:
            for path, run in self._find_runs(part):
                self._runs[path].append(run)
        self.row_count = sum(run.end - run.start for runs in self._runs.values() for run in runs)
        fields = tuple(replace(field, default_value=None) for field in ref.schema.fields)
        self._rules = replace(ref.schema, fields=fields)
        self._open = for_existing_rows(ref, keep_lengths=False, have_ids=False).schema

    def paths(self) -> frozenset[str]:
        """Return the paths of the files with rows that change."""
        return frozenset(path for path in self._runs if path is not None)

    def of(self, path: str) -> Sequence[Iterator[RowDelta]]:
        """Return the rows of a file in parts, each in the order of their positions."""
        return [self._deltas(run) for run in self._runs.get(path, ())]

    def new_rows(self) -> Sequence[Iterator[pa.RecordBatch]]:
        """Return the rows to insert, in parts."""
        return [map(self._conformed, self._read(run)) for run in self._runs.get(None, ())]

    @contextmanager
    def _opened(self, part: str) -> Iterator[pq.ParquetFile]:
        """Open a staged file, whose footer is read once."""
        with closing(self._file_io.open_input(part)) as stream:
            file = pq.ParquetFile(as_native_file(stream), metadata=self._footers.get(part))
            self._footers[part] = file.metadata
            yield file

    def _find_runs(self, part: str) -> Iterator[tuple[str | None, _Run]]:
        with self._opened(part) as file:
            ends: list[tuple[str | None, int]] = []
            first, name = 0, file.schema_arrow.names[1]
            for batch in file.iter_batches(columns=[name]):
                paths: ArrowAny = pc.run_end_encode(batch.column(0))  # type: ignore[attr-defined] # not in the stubs
                for path, end in zip(paths.values.to_pylist(), paths.run_ends.to_pylist(), strict=True):
                    if ends and ends[-1][0] == path:
                        ends.pop()
                    ends.append((path, first + end))
                first += batch.num_rows
        starts = (0, *(end for _, end in ends))
        for (path, end), start in zip(ends, starts, strict=False):
            yield path, _Run(part=part, start=start, end=end)

    def _deltas(self, run: _Run) -> Iterator[RowDelta]:
        for batch in self._read(run):
            updated = ~batch.column(0).to_numpy(zero_copy_only=False)
            after = self._conformed(batch.filter(pa.array(updated))) if updated.any() else self._no_rows
            yield RowDelta(positions=batch.column(2).to_numpy(), updated=updated, after=after)

    @cached_property
    def _no_rows(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=to_arrow_schema(self._open.fields))

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return new values of rows as those of the table, after a check of its rules."""
        # Spark writes all metadata columns after these if the condition has one of them.
        names = batch.schema.names[_FIRST_COLUMN:][: len(self._ref.schema.fields)]
        rows = from_spark_batch(batch.select(names), self._ref.schema.fields)
        conform_batch(rows, plan_conform(self._rules, rows.schema, self._ref.name))
        return conform_batch(rows, plan_conform(self._open, rows.schema, self._ref.name))

    def _read(self, run: _Run) -> Iterator[pa.RecordBatch]:
        with self._opened(run.part) as file:
            groups, first = [], 0
            skipped = None
            for place in range(file.num_row_groups):
                last = first + file.metadata.row_group(place).num_rows
                if first < run.end and run.start < last:
                    groups.append(place)
                    skipped = first if skipped is None else skipped
                first = last
            row = skipped or 0
            for batch in file.iter_batches(row_groups=groups):
                start, end = max(run.start - row, 0), min(run.end - row, batch.num_rows)
                row += batch.num_rows
                if start < end:
                    yield batch.slice(start, end - start)
                if row >= run.end:
                    return
