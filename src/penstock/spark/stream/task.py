"""Read the rows of one task of a micro-batch in a Python worker."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.datafile.conform import with_padding
from penstock.spark.batches import to_spark_batches
from penstock.table.read.batches import TableReader, read_ahead, select_fields
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.table.ref import TableRef
    from penstock.table.stream.files import StreamTask

# Decode one file while Spark takes the rows of the previous one; more threads would only take Spark's cores.
_THREADS: Final = 2
_BATCHES_AHEAD: Final = 2


def read_task(ref: TableRef, task: StreamTask, schema: StructType, *, pads: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in the order of delivery.

    Args:
        schema: the columns to read, in Spark's types.
        pads: whether values of CHAR are padded.
    """
    names = schema.fieldNames()
    reader = TableReader(ref, MetadataStore(ref), names)
    files = [partial(reader.read_file, split, file) for split in task.splits for file in split.files]
    rows = read_ahead(files, threads=_THREADS, items_ahead=_BATCHES_AHEAD)
    fields = select_fields(ref, names)
    yield from to_spark_batches((with_padding(each, fields) for each in rows) if pads else rows, schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReadTask:
    """Reads tasks of a stream, which are pickled in rows."""

    ref: TableRef
    schema: StructType
    pads: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the rows of each task."""
        for batch in batches:
            for data in batch.column(0):
                task = pickle.loads(data.as_py() or b"")  # noqa: S301 - our own driver wrote it
                yield from read_task(self.ref, task, self.schema, pads=self.pads)
