"""Write of a row change: tasks write Parquet files to a staging directory; the driver moves them into the table.

Spark passes single rows to the writers of such a statement, which its writers for Python do not support. So the tasks
run the writer of Spark's own Parquet source (``StagedFiles``). The table needs the rows of only one partition in each
file, so Spark is asked to sort the rows by partition (design/0031).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.errors import StorageError
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.staged_files import StagedBatchWrite, StagedFiles, WriterFactories, names_any_directory
from penstock.spark.native_settings import unknown_parquet_keys
from penstock.spark.write.native_sink import takes_spark_files
from penstock.table.actions.changes import open_committer
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.dml.replacement import commit_replacement
from penstock.table.read.batches import DeletedRows
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.dml.replacement import ReadFiles
    from penstock.table.ref import TableRef

_WRITE: Final = "org.apache.spark.sql.connector.write."
_EXECUTION_ID: Final = "spark.sql.execution.id"
_KEPT: Final = ("numCopiedRows", "numTargetRowsCopied")
_ADDED: Final = "numTargetRowsInserted"
_CHANGED: Final = ("numUpdatedRows", "numTargetRowsUpdated", _ADDED)
_DELETED: Final = "numDeletedRows"
_MERGE_DELETED: Final = "numTargetRowsDeleted"


class Arrangement(Enum):
    """The distribution and order of the rows of a change in the writing tasks.

    Attributes:
        AS_READ: as the query returns them; most tasks then have files of only one partition.
        SORTED: each task sorts its rows by partition.
        CLUSTERED: the rows of a partition go to one task, or to a few if there are many, and are sorted there.
    """

    AS_READ = auto()
    SORTED = auto()
    CLUSTERED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One UPDATE, MERGE or DELETE.

    Attributes:
        command: its kind, as Spark names it.
        read_files: returns the files to replace, once the statement has run.
        arrangement: returns the arrangement of the rows if tasks write the files of the table.
        check: refuses tables that the statement cannot change in this way.
        scan_text: returns the text of its scan; empty if it has none.
    """

    command: str
    scan_text: Callable[[], str]
    read_files: Callable[[], ReadFiles]
    arrangement: Callable[[], Arrangement]
    check: Callable[[TableRef], None]


class ReplaceFiles(Proxy):
    """The write of one statement, as Spark plans it.

    Args:
        info: of the rows to write.
    """

    interfaces: ClassVar = (f"{_WRITE}RequiresDistributionAndOrdering",)

    def __init__(self, bridge: Bridge, ref: TableRef, info: JavaObject, statement: Statement) -> None:
        super().__init__(bridge, f"{ref.name} {id(self)}")
        self._ref = ref
        self._info = info
        self._statement = statement

    @cached_property
    def _takes_files(self) -> bool:
        """Whether the files of the tasks can be files of the table."""
        target = for_existing_rows(self._ref, keep_lengths=False)
        return takes_spark_files(target) and not unknown_parquet_keys(self._bridge.session())

    @cached_property
    def _arrangement(self) -> Arrangement:
        if not self._takes_files or not names_any_directory(self._bridge):
            return Arrangement.AS_READ
        return self._statement.arrangement()

    def description(self) -> str:
        """Return the name of the table."""
        return self._ref.name

    @from_spark
    def toBatch(self) -> JavaObject:
        """Return the write of the tasks."""
        self._statement.check(self._ref)
        is_arranged = self._arrangement is not Arrangement.AS_READ
        target = for_existing_rows(self._ref, keep_lengths=False)
        columns = schema_of(self._info.schema())
        factories = WriterFactories(self._bridge, self._bridge.session())
        files = StagedFiles(
            factories, target, columns, job_id=new_job_id(), takes=self._takes_files, by_partition=is_arranged
        )
        return ReplaceFilesBatch(self._bridge, self._ref, self._statement, files)

    # RequiresDistributionAndOrdering

    @from_spark
    def requiredDistribution(self) -> JavaObject:
        """Return the columns by which rows are distributed to tasks."""
        is_clustered = self._arrangement is Arrangement.CLUSTERED
        return self._bridge.clustered(self._ref.schema.partition_keys if is_clustered else ())

    @from_spark
    def distributionStrictlyRequired(self) -> bool:
        """Return that a large partition may have several tasks."""
        return False

    @from_spark
    def requiredOrdering(self) -> JavaObject:
        """Return the columns by which each task sorts its rows."""
        is_arranged = self._arrangement is not Arrangement.AS_READ
        return self._bridge.ascending(self._ref.schema.partition_keys if is_arranged else ())


class ReplaceFilesBatch(StagedBatchWrite):
    """Writes the rows in tasks, and commits them on the driver."""

    interfaces: ClassVar = (f"{_WRITE}BatchWrite",)

    def __init__(self, bridge: Bridge, ref: TableRef, statement: Statement, staged: StagedFiles) -> None:
        super().__init__(bridge, ref, staged)
        self._statement = statement

    @from_spark
    def commit(self, messages: JavaObject, summary: JavaObject = None) -> None:
        """Replace the files that were read, unless no row has changed."""
        try:
            counts = _Counts(self._bridge, self._statement, self._staged.finish(messages), summary)
            read = self._statement.read_files()
            deleted = DeletedRows(self._ref)
            rows = sum(split.row_count - deleted.count(split.files, split.vectors) for split in read.splits)
            if counts.changes_nothing(self._ref, rows):
                return
            committer = open_committer(self._ref)
            commit_replacement(committer, read, self._staged.take_over(counts.written))
        finally:
            self._staged.delete()


class _Counts:
    """Row counts of a statement; some versions of Spark report those of some statements only, and -1 for unknown ones.

    Args:
        written: rows in the new files, by what the tasks of the write have returned.
    """

    def __init__(self, bridge: Bridge, statement: Statement, written: int, summary: JavaObject) -> None:
        reported: dict[str, int] = json.loads(bridge.driver.counts(summary))
        known = [reported[name] for name in (*_KEPT, *_CHANGED) if name in reported]
        self._is_reported = bool(known) and min(known) >= 0
        self._counts = reported if self._is_reported else {}
        self._bridge = bridge
        self._statement = statement
        self.written: int = sum(known) if self._is_reported else written
        """Rows in the new files."""

    def _sum(self, *names: str) -> int:
        return sum(self._counts.get(name, 0) for name in names)

    def changes_nothing(self, ref: TableRef, rows_read: int) -> bool:
        """Whether no row was changed, added or deleted; false if Spark does not report it.

        Args:
            rows_read: number of rows in the files to replace.

        Raises:
            StorageError: rows are missing.
        """
        command = self._statement.command
        if not self._is_reported and command == "MERGE":
            self._check_scan(ref, rows_read)
            return False
        removed = rows_read + self._sum(_ADDED) - self.written
        if self._is_reported:
            # Spark derives the deleted rows of DELETE from those that its scan has returned. It has returned fewer than
            # the files hold where the optimizer, or a join with no rows on the other side, has left it out or ended it.
            max_removed = rows_read if _DELETED in self._counts else self._sum(_MERGE_DELETED)
        else:
            max_removed = rows_read if command == "DELETE" else 0
        if not 0 <= removed <= max_removed:
            counts = f"Spark counts {self._counts}" if self._is_reported else f"Spark has written {self.written}"
            raise _missing_rows(ref, rows_read, f"{removed} are missing, although {counts}")
        is_known = self._is_reported or command == "DELETE"
        return is_known and removed == 0 and self._sum(*_CHANGED) == 0

    def _check_scan(self, ref: TableRef, rows_read: int) -> None:
        """Raise ``StorageError`` if Spark's scan has returned other than all rows of the files."""
        execution = self._bridge.local_property(_EXECUTION_ID) or "-1"
        scanned = self._bridge.driver.scannedRows(execution, self._statement.scan_text())
        if scanned != rows_read:
            raise _missing_rows(ref, rows_read, f"{rows_read - scanned} are missing among those that Spark has read")


def _missing_rows(ref: TableRef, rows_read: int, what: str) -> StorageError:
    return StorageError(
        f"table {ref.name}: of {rows_read} rows in the files to replace, {what}, so nothing was changed; use "
        "Table.delete, Table.update, Table.merge, or penstock.sql"
    )
