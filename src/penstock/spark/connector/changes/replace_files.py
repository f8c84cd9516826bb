"""Write of a change of rows: tasks write Parquet files next to the table, and the driver takes them over and commits.

Spark gives the writers of such a statement one row after the other, which its writers for Python do not take. So the
tasks run the writer of Spark's own Parquet source, whose files are then moved into the table if they are exactly what
the table needs, else written once more as the rows of an append are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from penstock.errors import StorageError
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.native_settings import WRITE_OPTIONS, WRITE_SETTINGS, clone_session, unknown_parquet_keys
from penstock.spark.write.native_sink import parquet_options, part_files, rows_of_target, takes_spark_files
from penstock.spark.write.sink import write_dataframe
from penstock.table.actions.changes import open_committer
from penstock.table.commit.discard import delete_new_files, delete_staging, staging_directory
from penstock.table.dml.replacement import commit_replacement
from penstock.table.write.import_files import import_parquet_files
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.dml.replacement import ReadFiles
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_WRITE: Final = "org.apache.spark.sql.connector.write."
_FIELD_ID: Final = "parquet.field.id"
_KEPT: Final = ("numCopiedRows", "numTargetRowsCopied")
_CHANGED: Final = (
    "numUpdatedRows",
    "numTargetRowsUpdated",
    "numTargetRowsInserted",
)
_DELETED: Final = ("numDeletedRows", "numTargetRowsDeleted")


class ReplaceFiles(Proxy):
    """The write of one operation, as Spark plans it.

    Args:
        info: of the rows to write.
        read_files: returns what the operation has read, once it has run.
        check: refuses tables that cannot be changed so.
    """

    interfaces: ClassVar = (f"{_WRITE}Write",)

    def __init__(
        self,
        bridge: Bridge,
        ref: TableRef,
        info: JavaObject,
        read_files: Callable[[], ReadFiles],
        check: Callable[[TableRef], None],
    ) -> None:
        super().__init__(bridge, f"{ref.name} {id(self)}")
        self._ref = ref
        self._info = info
        self._read_files = read_files
        self._check = check

    def description(self) -> str:
        """Return the name of the table."""
        return self._ref.name

    @from_spark
    def toBatch(self) -> JavaObject:
        """Return the write of the tasks."""
        self._check(self._ref)
        return ReplaceFilesBatch(self._bridge, self._ref, self._info, self._read_files)

    def toStreaming(self) -> None:
        """Refuse: no stream changes rows."""
        self._refuse("streaming write")

    def supportedCustomMetrics(self) -> JavaObject:
        """Return none."""
        return self._bridge.array(self._bridge.connector("metric.CustomMetric"), ())

    def reportDriverMetrics(self) -> JavaObject:
        """Return none."""
        return self._bridge.array(self._bridge.connector("metric.CustomTaskMetric"), ())


class ReplaceFilesBatch(Proxy):
    """Writes the rows in tasks, and commits them on the driver."""

    interfaces: ClassVar = (f"{_WRITE}BatchWrite",)

    def __init__(self, bridge: Bridge, ref: TableRef, info: JavaObject, read_files: Callable[[], ReadFiles]) -> None:
        self._job_id = new_job_id()
        super().__init__(bridge, f"{ref.name} {self._job_id}")
        self._ref = ref
        self._read_files = read_files
        self._staging = staging_directory(ref, self._job_id)
        self._session = bridge.session()
        clone = clone_session(self._session, WRITE_SETTINGS)
        self._takes_files = takes_spark_files(ref) and not unknown_parquet_keys(clone)
        self._files = self._parquet_write(clone, info)

    @from_spark
    def createBatchWriterFactory(self, info: JavaObject) -> JavaObject:
        """Return the factory of Spark's Parquet source."""
        return self._files.createBatchWriterFactory(info)

    @from_spark
    def useCommitCoordinator(self) -> bool:
        """Return what Spark's Parquet source does: its own protocol lets one attempt of each task commit only."""
        return bool(self._files.useCommitCoordinator())

    def onDataWriterCommit(self, message: JavaObject) -> None:
        """Do nothing: ``commit`` gets all messages."""

    @from_spark
    def commit(self, messages: JavaObject, summary: JavaObject = None) -> None:
        """Replace the files that were read, unless no row has changed."""
        try:
            self._files.commit(messages)
            counts = _Counts(summary)
            if counts.changes_nothing:
                return
            written = self._take_over(counts.written)
            read = self._read_files()
            commit_replacement(open_committer(self._ref), read, written)
        finally:
            delete_staging(self._ref, self._job_id)

    @from_spark
    def abort(self, messages: JavaObject) -> None:
        """Delete the files that the tasks of a failed job have written."""
        try:
            self._files.abort(messages)
        finally:
            delete_staging(self._ref, self._job_id)

    def _take_over(self, row_count: int | None) -> tuple[CommitMessage, ...]:
        """Return the messages of the rows that the tasks wrote."""
        ref = self._ref
        parts = part_files(ref, self._staging, by_partition=False)
        if self._takes_files and row_count is not None:
            found = import_parquet_files(ref, parts, job_id=self._job_id, row_count=row_count)
            if found is not None:
                return found
        if not parts and not row_count:
            return ()
        session = self._bridge.python_session(self._session)
        names = [field.name for field in ref.schema.fields]
        reader = self._session.read().schema(self._bridge.schema(self._plain)).option("datetimeRebaseMode", "CORRECTED")
        rows = reader.parquet(self._bridge.sequence([f"file://{each}" for each in parts]))
        written = write_dataframe(DataFrame(rows, session).toDF(*names), ref)
        found_rows = sum(file.row_count for message in written for file in message.new_files)
        if row_count not in {None, found_rows}:
            delete_new_files(ref, written)
            raise StorageError(
                f"table {ref.name}: Spark has written {row_count} rows, but the driver finds {found_rows} in "
                f"{ref.location}, so nothing was changed; put the warehouse where driver and workers see it at one path"
            )
        return written

    def _parquet_write(self, session: JavaObject, info: JavaObject) -> JavaObject:
        """Return the write of Spark's Parquet source into the staging directory."""
        bridge, ref = self._bridge, self._ref
        columns = schema_of(info.schema())
        self._plain = StructType([StructField(each.name, each.dataType) for each in columns])
        ids = {field.name: field.id for field in ref.schema.fields}
        given = bridge.schema(
            StructType(
                [StructField(each.name, each.dataType, metadata={_FIELD_ID: ids[each.name]}) for each in columns]
            )
        )
        given_options = parquet_options(ref, rows_of_target(given, ref)) if self._takes_files else WRITE_OPTIONS
        options = bridge.case_insensitive(given_options)
        optional = bridge.jvm.java.util.Optional
        described = bridge.private("WriteInfo")(info.queryId(), given, options, optional.empty(), optional.empty())
        kind = bridge.java_class(bridge.class_names("ParquetFileFormat")[0])
        paths = bridge.sequence([f"file://{self._staging}"])
        table = bridge.private("ParquetTable")(ref.name, session, options, paths, bridge.nothing(), kind)
        sessions = bridge.private("SparkSession")
        # The source takes its settings from the session that is active.
        sessions.setActiveSession(session)
        try:
            return table.newWriteBuilder(described).build().toBatch()
        finally:
            sessions.setActiveSession(self._session)


class _Counts:
    """What Spark reports of the rows of an operation; it may not know some counts."""

    def __init__(self, summary: JavaObject) -> None:
        self._summary = summary

    @property
    def written(self) -> int | None:
        """Rows in the new files; None if Spark does not say."""
        counts = [self._get(name) for name in (*_KEPT, *_CHANGED)]
        known = [count for count in counts if count is not None]
        return sum(known) if known and min(known) >= 0 else None

    @property
    def changes_nothing(self) -> bool:
        """Whether Spark says that no row was changed, added or deleted."""
        known = [count for name in (*_CHANGED, *_DELETED) if (count := self._get(name)) is not None]
        return bool(known) and all(count == 0 for count in known)

    def _get(self, name: str) -> int | None:
        if self._summary is None or not any(
            method.getName() == name for method in self._summary.getClass().getMethods()
        ):
            return None
        return int(getattr(self._summary, name)())
