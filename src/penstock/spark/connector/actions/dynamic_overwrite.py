"""Dynamic overwrite: ``overwritePartitions()``, and ``INSERT OVERWRITE`` where ``partitionOverwriteMode`` is dynamic.

Spark does not provide the rows of such a write as a DataFrame. So tasks run the writer of Spark's own Parquet source if
its files are exactly those that the table needs, else Spark's writers for Python.

Source:
    ``SupportsDynamicOverwrite`` and ``BatchWrite`` of Spark; ``PythonBatchWriterFactory`` takes a pickled function from
    the Arrow batches of a task to one batch with one binary value, which reaches ``commit``.
"""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.types import StructField, StructType

from penstock.spark.compact.job import merge_on_executors
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.python_workers import OUTCOME, made_factory, outcomes_of, writer_source
from penstock.spark.connector.staged_files import StagedBatchWrite, StagedFiles, WriterFactories, order_of_files
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.shared_storage import mark_storage
from penstock.spark.write.native_sink import why_configured, writer_text
from penstock.spark.write.sink import collect_messages
from penstock.spark.write.task import WriteTask, delete_failed_job
from penstock.table.compact.write import TableWrite
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef

_WRITE: Final = "org.apache.spark.sql.connector.write."


class DynamicOverwrite(Proxy):
    """One dynamic overwrite, as Spark plans it.

    Args:
        columns: of the rows, in the places of the table's.
        scope: the rows to replace.
    """

    interfaces: ClassVar = (f"{_WRITE}Write",)

    def __init__(
        self, bridge: Bridge, spark: SparkSession, ref: TableRef, columns: StructType, scope: OverwriteScope
    ) -> None:
        names = (field.name for field in ref.schema.fields)
        fields = [StructField(name, each.dataType) for name, each in zip(names, columns, strict=True)]
        self._columns = StructType(fields)
        self._reason = partial(why_configured, bridge.session())
        writer = writer_text(self._columns, ref, self._reason)
        super().__init__(bridge, f"{ref.name} {writer} replaces {scope} {id(self)}")
        self._spark = spark
        self._ref = ref
        self._scope = scope

    def description(self) -> str:
        """Return the name of the table."""
        return self._ref.name

    @from_spark
    def toBatch(self) -> JavaObject:
        """Return the write."""
        if order_of_files(self._ref, self._columns, self._reason) is None:
            return DynamicBatchWrite(self._bridge, self._spark, self._ref, self._columns, self._scope)
        factories = WriterFactories(self._bridge, self._bridge.session())
        files = StagedFiles(factories, self._ref, self._columns, job_id=new_job_id(), takes=True)
        return DynamicFileWrite(self._bridge, self._ref, files, self._scope)


class DynamicFileWrite(StagedBatchWrite):
    """Has tasks write Parquet files, and commits them on the driver."""

    interfaces: ClassVar = (f"{_WRITE}BatchWrite",)

    def __init__(self, bridge: Bridge, ref: TableRef, staged: StagedFiles, scope: OverwriteScope) -> None:
        super().__init__(bridge, ref, staged)
        self._scope = scope

    @from_spark
    def commit(self, messages: JavaObject, summary: JavaObject = None) -> None:
        """Commit the rows of all tasks as one snapshot."""
        session = self._bridge.python_session(self._bridge.session())
        files = self._staged.commit(messages)
        TableWrite(ref=self._ref, merge_on=merge_on_executors(session)).commit(files, self._scope)


class DynamicBatchWrite(Proxy):
    """Writes files in Python workers, and commits them on the driver."""

    interfaces: ClassVar = (f"{_WRITE}BatchWrite",)

    def __init__(
        self, bridge: Bridge, spark: SparkSession, ref: TableRef, columns: StructType, scope: OverwriteScope
    ) -> None:
        names = tuple(field.name for field in ref.schema.fields)
        self._task = WriteTask(ref=ref, job_id=new_job_id(), storage=mark_storage(ref), names=names)
        super().__init__(bridge, f"{ref.name} {self._task.job_id}")
        self._spark = spark
        self._columns = columns
        self._scope = scope

    @from_spark
    def createBatchWriterFactory(self, info: JavaObject) -> JavaObject:
        """Return the factory that creates writers on executors."""
        bridge = self._bridge
        ensure_python_worker(self._spark)
        source = writer_source(bridge, self._spark)
        function = bytearray(pickle.dumps((self._task, OUTCOME)))
        return made_factory(bridge, "PythonBatchWriterFactory", source, function, self._columns)

    @from_spark
    def useCommitCoordinator(self) -> bool:
        """Return that there is none: the files of only one attempt of each task are taken.

        The coordinator fails the query where a stage runs again while a task of its first run ends.
        """
        return False

    @from_spark
    def commit(self, messages: JavaObject, summary: JavaObject = None) -> None:
        """Commit the rows of all tasks as one snapshot."""
        ref = self._task.ref
        session = self._bridge.python_session(self._bridge.session())
        files = collect_messages(ref, outcomes_of(messages), self._task.job_id, session)
        TableWrite(ref=ref, merge_on=merge_on_executors(session)).commit(files, self._scope)

    @from_spark
    def abort(self, messages: JavaObject) -> None:
        """Delete the files that the tasks of a failed job have written."""
        if any(message is None for message in messages):
            delete_failed_job(self._task.ref, self._task.job_id)
        # Otherwise all tasks succeeded and the commit failed. Only the commit knows which files may be live: delete
        # none.
