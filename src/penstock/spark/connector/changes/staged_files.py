"""Files that tasks of Spark's Parquet source write next to a table, and that the driver moves into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from penstock.errors import StorageError
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.jvm.driver import places_text
from penstock.spark.native_settings import WRITE_OPTIONS, WRITE_SETTINGS, clone_session
from penstock.spark.write.native_sink import parquet_options, part_files, rows_of_target
from penstock.spark.write.sink import write_dataframe
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.commit.discard import delete_new_files, delete_staging, staging_directory
from penstock.table.write.import_files import import_parquet_files
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_FIELD_ID: Final = "parquet.field.id"


class StagedFiles:
    """One write of Spark's Parquet source into a staging directory.

    Args:
        ref: the table; rules for new rows are not applied, since the rows may have existed before.
        info: of the rows to write.
        takes: whether the files may become files of the table.
        by_partition: whether rows are sorted by partition, so that each file gets those of one partition.

    Attributes:
        write: the write of Spark's Parquet source.
    """

    def __init__(self, bridge: Bridge, ref: TableRef, info: JavaObject, *, takes: bool, by_partition: bool) -> None:
        self.job_id = new_job_id()
        self._bridge = bridge
        self._ref = for_existing_rows(ref, keep_lengths=False)
        self._takes = takes
        self._staging = staging_directory(ref, self.job_id)
        self._session = bridge.session()
        self._keys = ref.schema.partition_keys if by_partition else ()
        columns = schema_of(info.schema())
        self._plain = StructType([StructField(each.name, each.dataType) for each in columns])
        self.write = self._parquet_write(info, columns)

    def writer_factory(self, info: JavaObject) -> JavaObject:
        """Return the factory of the writers in tasks."""
        made = self.write.createBatchWriterFactory(info)
        if not self._keys:
            return made
        names = self._plain.fieldNames()
        return self._bridge.driver.byPartition(self._session, made, places_text(names.index(key) for key in self._keys))

    def delete(self) -> None:
        """Delete the files that are still staged."""
        delete_staging(self._ref, self.job_id)

    def take_over(self, row_count: int | None) -> tuple[CommitMessage, ...]:
        """Return messages for the rows that the tasks wrote: files are moved, or their rows are written again.

        Args:
            row_count: number of written rows reported by Spark; None if it is unknown.

        Raises:
            StorageError: the driver finds a different number of rows; rewritten files are deleted.
        """
        ref = self._ref
        parts = part_files(ref, self._staging, levels=len(self._keys))
        if self._takes and row_count is not None:
            found = import_parquet_files(ref, parts, job_id=self.job_id, row_count=row_count)
            if found is not None:
                return found
        if not parts and not row_count:
            return ()
        written = write_dataframe(self._rows(parts), ref)
        found_rows = sum(file.row_count for message in written for file in message.new_files)
        if row_count not in {None, found_rows}:
            delete_new_files(ref, written)
            raise StorageError(
                f"table {ref.name}: Spark has written {row_count} rows, but the driver finds {found_rows} in "
                f"{ref.location}, so nothing was changed; put the warehouse where driver and workers see it at one path"
            )
        return written

    def _rows(self, parts: list[str]) -> DataFrame:
        reader = self._session.read().schema(self._bridge.schema(self._plain)).option("datetimeRebaseMode", "CORRECTED")
        # Without this, Spark would take the values of partition columns from the names of directories.
        reader = reader.option("recursiveFileLookup", "true")
        rows = reader.parquet(self._bridge.sequence([f"file://{each}" for each in parts]))
        names = [field.name for field in self._ref.schema.fields]
        return DataFrame(rows, self._bridge.python_session(self._session)).toDF(*names)

    def _parquet_write(self, info: JavaObject, columns: StructType) -> JavaObject:
        bridge, ref = self._bridge, self._ref
        session = clone_session(self._session, WRITE_SETTINGS)
        ids = {field.name: field.id for field in ref.schema.fields}
        given = bridge.schema(
            StructType(
                [StructField(each.name, each.dataType, metadata={_FIELD_ID: ids[each.name]}) for each in columns]
            )
        )
        given_options = parquet_options(ref, rows_of_target(given, ref)) if self._takes else WRITE_OPTIONS
        options = bridge.case_insensitive(given_options)
        optional = bridge.java("java.util.Optional")
        described = bridge.private("WriteInfo")(info.queryId(), given, options, optional.empty(), optional.empty())
        kind = bridge.java_class(bridge.class_names("ParquetFileFormat")[0])
        paths = bridge.sequence([f"file://{self._staging}"])
        table = bridge.private("ParquetTable")(ref.name, session, options, paths, bridge.nothing(), kind)
        sessions = bridge.private("SparkSession")
        # The source takes its settings from the active session.
        sessions.setActiveSession(session)
        try:
            return table.newWriteBuilder(described).build().toBatch()
        finally:
            sessions.setActiveSession(self._session)
