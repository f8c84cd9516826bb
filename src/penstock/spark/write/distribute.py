"""Shuffle rows to the task that writes their bucket, if ``partition.sink-strategy`` is set; preserves the order.

Without the shuffle each task writes to all buckets of its rows. That is faster, but creates up to tasks x buckets
files.

Source:
    Option ``partition.sink-strategy``; Paimon ``flink:sink/RowDataHashPartitionChannelComputer.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import IntegerType, LongType, StructType

from penstock.errors import TableStoreError
from penstock.format.row.murmur import hash_bytes
from penstock.options import SinkStrategy, WriteOptions
from penstock.spark.batches import from_spark_batch
from penstock.table.write.assign import Assigner
from penstock.table.write.check_rows import conform_batch, plan_conform
from penstock.table.write.plan import plan_buckets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from penstock.table.ref import TableRef
    from penstock.table.write.assign import Group, Ids

_CHANNEL: Final = "__penstock_channel"
_ORDER: Final = "__penstock_order"
# Bits for the position of a row in its task; the task's index takes the bits above.
_ORDER_BITS: Final = 40


def distribute(df: DataFrame, ref: TableRef, names: tuple[str, ...]) -> DataFrame:
    """Return the DataFrame unchanged, or shuffled by bucket if ``partition.sink-strategy`` is set.

    After the shuffle, one task has all rows of a partition and bucket, in their original order.

    Args:
        names: names of the table's columns, in the order of the columns of ``df``.
    """
    strategy = ref.parsed(WriteOptions).sink_strategy
    if strategy is SinkStrategy.NONE:
        return df
    routed = StructType(list(df.schema.fields)).add(_CHANNEL, IntegerType()).add(_ORDER, LongType())
    return (
        df.mapInArrow(RouteTask(ref=ref, names=names), routed)
        .repartition(F.col(_CHANNEL))
        .sortWithinPartitions(_ORDER)
        .drop(_CHANNEL, _ORDER)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTask:
    """Adds two columns to each row: the channel of its (partition, bucket), and its position in the DataFrame."""

    ref: TableRef
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Route the rows of a task; all rows of a batch that does not fit the table get channel 0."""
        assigner = Assigner(self.ref.schema, plan_buckets(self.ref))
        context = TaskContext.get()
        order = (context.partitionId() if context is not None else 0) << _ORDER_BITS
        plan = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            try:
                named = from_spark_batch(batch.rename_columns(list(self.names)), self.ref.schema.fields)
                plan = plan or plan_conform(self.ref.schema, named.schema, self.ref.name)
                channels = _channels(assigner, assigner.assign(conform_batch(named, plan)), batch.num_rows)
            except TableStoreError:
                # The task that writes these rows gets the same error and reports it to the user.
                channels = np.zeros(batch.num_rows, dtype=np.int32)
            places = np.arange(order, order + batch.num_rows, dtype=np.int64)
            order += batch.num_rows
            yield batch.append_column(_CHANNEL, pa.array(channels)).append_column(_ORDER, pa.array(places))


def _channels(assigner: Assigner, groups: int | Ids, num_rows: int) -> Ids:
    """Return the channel of each row: the same number in all tasks for one (partition, bucket)."""
    channels = np.array([_channel(group) for group in assigner.groups], dtype=np.int32)
    return np.full(num_rows, channels[groups], dtype=np.int32) if isinstance(groups, int) else channels[groups]


def _channel(group: Group) -> int:
    # Consecutive buckets of a partition get consecutive numbers, as in Paimon.
    return ((hash_bytes(group.partition) & 0x3FFFFFFF) + group.bucket) & 0x7FFFFFFF
