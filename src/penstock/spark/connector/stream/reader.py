"""Choose how the files of a micro-batch are read: by Spark's own reader, or in Python workers."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Final

from penstock.format.file_format import FileFormat
from penstock.spark.connector.jvm.driver import ordered_files
from penstock.spark.connector.native_reader import reader_factory
from penstock.spark.connector.python_reader import python_factory, python_partitions
from penstock.spark.read.native_files import PADDED, has_chars, list_native, why_not_native
from penstock.spark.stream.task import StreamReadTask
from penstock.table.read.batches import select_fields
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.ref import TableRef
    from penstock.table.stream.tasks import StreamTask

_LOG: Final = logging.getLogger(__name__)


class BatchReader:
    """Creates the partitions and then the reader factory of each batch: Spark requests both, in this order.

    The choice depends on the files of the micro-batch only, so that a replayed batch is read in the same way.

    Args:
        ref: the table, with the columns that the query started with.
        schema: the columns that Spark expects.
        pads: whether values of CHAR are padded.
    """

    def __init__(
        self, bridge: Bridge, spark: SparkSession, ref: TableRef, schema: StructType, *, pads: bool = False
    ) -> None:
        self._bridge = bridge
        self.spark = spark
        self.ref = ref
        self.schema = schema
        self._store = MetadataStore(ref)
        self._fields = select_fields(ref, schema.fieldNames())
        self._pads = pads and has_chars(self._fields)
        self._reason: str | None = None
        self._logged: set[str] = set()

    @property
    def way(self) -> str:
        """How the files of the last micro-batch are read."""
        return "parquet reader of Spark" if self._reason is None else f"Python workers, because {self._reason}"

    def partitions(self, tasks: Sequence[StreamTask]) -> JavaObject:
        """Return one partition for each task; it reads the task's files in their order."""
        splits = [split for task in tasks for split in task.splits]
        reason = PADDED if self._pads else why_not_native(self.ref, self._store, splits, self._fields)
        self._reason = reason
        if reason is None:
            files = [list_native(self.ref, task.splits) for task in tasks]
            return self._bridge.driver.ordered(ordered_files(files))
        if reason not in self._logged:
            self._logged.add(reason)
            _LOG.warning(
                "table %s: its stream is read by Python workers, not by Spark's own reader: %s", self.ref.name, reason
            )
        return python_partitions(self._bridge, tasks)

    def factory(self) -> JavaObject:
        """Return the reader factory for the partitions that were created last."""
        return self._native_factory if self._reason is None else self._python_factory

    # A factory holds a broadcast of the Hadoop configuration, so one serves the whole query.

    @cached_property
    def _native_factory(self) -> JavaObject:
        no_filters = self._bridge.array(self._bridge.java("org.apache.spark.sql.sources.Filter"), ())
        return reader_factory(self._bridge, self._bridge.session(), FileFormat.PARQUET, self.schema, no_filters)

    @cached_property
    def _python_factory(self) -> JavaObject:
        task = StreamReadTask(ref=self.ref, schema=self.schema, pads=self._pads)
        return python_factory(self._bridge, self.spark, task, self.schema)
