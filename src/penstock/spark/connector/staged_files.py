"""Files that the writer of Spark's own Parquet source writes in tasks; the driver takes them over into a table.

They are moved into the table if they are exactly what the table needs; otherwise their rows are written again as in an
append.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from penstock.errors import StorageError
from penstock.spark.connector.jvm.driver import places_text
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.native_settings import WRITE_OPTIONS, WRITE_SETTINGS, clone_session
from penstock.spark.staging_directory import StagingDirectory
from penstock.spark.versions.facts import PYTHON_WRITES
from penstock.spark.write.native_sink import (
    Dictionaries,
    native_order,
    parquet_options,
    part_files,
    rows_of_target,
)
from penstock.spark.write.sink import write_dataframe
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.write.imports import import_parquet_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.write.native_sink import Reason
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_ENCODING: Final = "sun.jnu.encoding"
_UTF8: Final = "UTF-8"
_FIELD_ID: Final = "parquet.field.id"
_MAX_FACTORIES: Final = 4


def names_any_directory(bridge: Bridge) -> bool:
    """Whether the JVM can encode all strings in directory names, so that no two partitions share a directory."""
    return bool(
        bridge.cached("encoding of names", lambda: bridge.java("java.lang.System").getProperty(_ENCODING)) == _UTF8
    )


def order_of_files(ref: TableRef, columns: StructType, *more: Reason) -> tuple[int, ...] | None:
    """Return the places of a table's columns among those of new rows; None if Python workers have to write the rows."""
    if not PYTHON_WRITES.is_here:
        return None  # they refuse to
    return native_order(columns, ref, *more)


class WriterFactories:
    """Makes factories of the writers of Spark's Parquet source in one session, for one write or those of a query.

    They are kept: to make one takes a clone of the session, copies of Hadoop's configuration, and directories, for each
    of which Hadoop starts a process on a local disk.
    """

    def __init__(self, bridge: Bridge, session: JavaObject) -> None:
        self.bridge = bridge
        self.session = session
        self._made: dict[object, JavaObject] = {}
        self.dictionaries = Dictionaries()

    def make(self, columns: JavaObject, options: Mapping[str, str], directory: str) -> JavaObject:
        """Return a factory whose writers write into some directory; see ``Driver.intoDirectory``.

        Args:
            columns: of the files, with their ids.
            options: of the write.
            directory: in which others may be made, as a URI.
        """
        chosen = {**options, **self.dictionaries.options()}
        key = str(columns.json()), tuple(chosen.items())
        if key not in self._made:
            if len(self._made) >= _MAX_FACTORIES:
                self._made.clear()
            self._made[key] = self._new(columns, chosen, directory)
        return self._made[key]

    def _new(self, columns: JavaObject, options: Mapping[str, str], directory: str) -> JavaObject:
        bridge, name = self.bridge, "staged"
        session = clone_session(self.session, WRITE_SETTINGS)
        java_options, nothing = bridge.case_insensitive(options), bridge.java("java.util.Optional").empty()
        described = bridge.private("WriteInfo")(name, columns, java_options, nothing, nothing)
        kind = bridge.java_class(bridge.class_names("ParquetFileFormat")[0])
        paths = bridge.sequence([directory])
        table = bridge.private("ParquetTable")(name, session, java_options, paths, bridge.scala_none(), kind)
        sessions = bridge.private("SparkSession")
        # The source takes its settings from the active session.
        sessions.setActiveSession(session)
        try:
            made = table.newWriteBuilder(described).build().toBatch().createBatchWriterFactory(None)
            return bridge.driver.withoutSources(made)
        finally:
            sessions.setActiveSession(self.session)


class StagedFiles:
    """One write of Spark's Parquet source into a staging directory.

    Args:
        factories: of the writers.
        ref: the table, with the rules that its rows are subject to.
        columns: of the rows, which are those of the table, or others too if the files stay staged.
        job_id: of the names of the files and of the directory.
        takes: whether the files may become files of the table.
        by_partition: whether rows are sorted by partition, so that each file gets those of one partition.
        options: of files that stay staged.
    """

    def __init__(  # noqa: PLR0913 - by name
        self,
        factories: WriterFactories,
        ref: TableRef,
        columns: StructType,
        *,
        job_id: str,
        takes: bool,
        by_partition: bool = False,
        options: Mapping[str, str] = WRITE_OPTIONS,
    ) -> None:
        self.job_id = job_id
        self._bridge = factories.bridge
        self._ref = ref
        self._takes = takes
        self._options = options
        self.staging = StagingDirectory.of(ref, job_id)
        self._session = factories.session
        self._factories = factories
        self._keys = ref.schema.partition_keys if by_partition else ()
        self._columns = columns
        self._names: frozenset[str] = frozenset()

    def writer_factory(self) -> JavaObject:
        """Return the factory of the writers in tasks, and make the staging directory.

        Not before the rows come: Spark does not abort a write whose query fails before, in a shuffle.
        """
        bridge, ref = self._bridge, self._ref
        self.staging.create()
        ids = {field.name: {_FIELD_ID: field.id} for field in ref.schema.fields}
        row_schema = bridge.schema(
            StructType([StructField(each.name, each.dataType, metadata=ids.get(each.name)) for each in self._columns])
        )
        options = parquet_options(ref, rows_of_target(row_schema, ref)) if self._takes else self._options
        directory = self.staging.uri(self.staging.path)
        made = self._factories.make(row_schema, options, directory)
        made = bridge.driver.intoDirectory(made, self.job_id, directory)
        if not self._keys:
            return made
        names = self._columns.fieldNames()
        places = places_text(names.index(key) for key in self._keys)
        return bridge.driver.byPartition(self._session, made, places)

    def delete(self) -> None:
        """Delete the files that are still staged."""
        self.staging.delete(self._session)

    def commit(self, messages: JavaObject) -> tuple[CommitMessage, ...]:
        """Take over the files of new rows, after all tasks have succeeded; nothing stays staged."""
        try:
            return self.take_over(self.finish(messages))
        finally:
            self.delete()

    def finish(self, messages: JavaObject) -> int:
        """Note which files the tasks have written, after all have succeeded; return the number of their rows.

        Other files are of attempts whose result Spark has not taken.
        """
        rows, *names = str(self._bridge.driver.writtenFiles(messages)).split("\n")
        self._names = frozenset(names)
        return int(rows)

    def parts(self) -> list[str]:
        """Return the files that the tasks have written, in the order of the rows."""
        found = part_files(self.staging.file_io, self.staging.path, levels=len(self._keys))
        return [path for path in found if path.rpartition("/")[2] in self._names]

    def take_over(self, row_count: int) -> tuple[CommitMessage, ...]:
        """Return messages for the rows that the tasks wrote: files are moved, or their rows are written again.

        Args:
            row_count: number of rows that Spark has written.
        """
        ref = self._ref
        parts = self.parts()
        if self._takes:
            note = self._factories.dictionaries.note
            found = import_parquet_files(ref, parts, job_id=self.job_id, row_count=row_count, note=note)
            if found is not None:
                return found
        if not parts and not row_count:
            return ()
        written = write_dataframe(self._read(parts), ref)
        found_rows = sum(file.row_count for message in written for file in message.new_files)
        if row_count != found_rows:
            delete_new_files(ref, written)
        self.check_rows(row_count, found_rows)
        return written

    def check_rows(self, written: int, found: int) -> None:
        """Raise ``StorageError`` if the driver does not find the rows that Spark has written."""
        if written != found:
            raise StorageError(
                f"table {self._ref.name}: Spark has written {written} rows in {self.staging.path}, but the driver "
                f"finds {found}, so nothing was changed; put the warehouse where driver and workers see it at one path"
            )

    def _read(self, parts: list[str]) -> DataFrame:
        plain = StructType([StructField(each.name, each.dataType) for each in self._columns])
        reader = self._session.read().schema(self._bridge.schema(plain)).option("datetimeRebaseMode", "CORRECTED")
        # Without this, Spark would take the values of partition columns from the names of directories.
        reader = reader.option("recursiveFileLookup", "true")
        # Names of tables may have characters that are patterns to Spark.
        reader = reader.option("__globPaths__", "false")
        rows = reader.parquet(self._bridge.sequence([self.staging.uri(each) for each in parts]))
        names = [field.name for field in self._ref.schema.fields]
        return DataFrame(rows, self._bridge.python_session(self._session)).toDF(*names)


class StagedBatchWrite(Proxy):
    """A write whose tasks write staged files; subclasses commit them on the driver."""

    def __init__(self, bridge: Bridge, ref: TableRef, staged: StagedFiles) -> None:
        super().__init__(bridge, f"{ref.name} {staged.job_id}")
        self._ref = ref
        self._staged = staged

    @from_spark
    def createBatchWriterFactory(self, info: JavaObject) -> JavaObject:
        """Return the factory of Spark's Parquet source."""
        return self._staged.writer_factory()

    @from_spark
    def useCommitCoordinator(self) -> bool:
        """Return that there is none: the files of only one attempt of each task are taken."""
        return False

    @from_spark
    def abort(self, messages: JavaObject) -> None:
        """Delete the staged files; files that were moved into the table may be live after a failed commit."""
        self._staged.delete()
