"""A table that a statement creates or replaces together with its rows.

Source:
    ``StagedTable`` of Spark: the rows are written into it, then ``commitStagedChanges`` or ``abortStagedChanges`` is
    called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from penstock.catalog.staged.tables import NewTable, abort_staged, commit_staged
from penstock.spark.compact.job import SparkMerger
from penstock.spark.connector.proxy import PlainTable, from_spark
from penstock.spark.connector.write import TableWriteBuilder
from penstock.spark.types import nullable, to_catalog_schema
from penstock.table.commit.discard import delete_new_files
from penstock.table.compact.local import compact_appended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.catalog.staged.tables import StagedTable
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_CATALOG: Final = "org.apache.spark.sql.connector.catalog."
_CAPABILITIES: Final = ("V1_BATCH_WRITE", "TRUNCATE")


class StagedCatalogTable(PlainTable):
    """A staged table, and the files of the rows that were written into it.

    Args:
        name: full name including the catalog, as messages and plans show it.
    """

    interfaces: ClassVar = (f"{_CATALOG}StagedTable", f"{_CATALOG}SupportsWrite")

    def __init__(self, bridge: Bridge, spark: SparkSession, name: str, staged: StagedTable) -> None:
        schema = nullable(to_catalog_schema(staged.ref.schema.fields))
        super().__init__(bridge, f"staged {name} {id(staged)}", name, schema)
        self._spark = spark
        self._staged = staged
        self._ref = staged.ref
        self._messages: tuple[CommitMessage, ...] = ()
        self._is_done = False

    @from_spark
    def partitioning(self) -> JavaObject:
        """Return the partition columns."""
        return self._bridge.identities(self._ref.schema.partition_keys)

    @from_spark
    def capabilities(self) -> JavaObject:
        """Return that rows can be written, also in place of others."""
        return self._bridge.values_of("catalog.TableCapability", _CAPABILITIES)

    @from_spark
    def newWriteBuilder(self, info: JavaObject) -> JavaObject:
        """Return the write builder; its write commits nothing."""
        return TableWriteBuilder(self._bridge, self._spark, self._ref, info, keep=self._keep)

    @from_spark
    def commitStagedChanges(self) -> None:
        """Let the table and its rows take effect."""
        self._is_done = True
        committer = commit_staged(self._staged, self._ref, self._messages)
        if isinstance(self._staged, NewTable):
            compact_appended(
                committer, self._messages, lambda latest: SparkMerger(spark=self._spark, ref=latest).execute
            )

    @from_spark
    def abortStagedChanges(self) -> None:
        """Leave everything as it was; Spark also calls this after a commit that failed."""
        if self._is_done:
            # Only the commit knows which files may be live. If it is certain that none is, it has deleted them.
            return
        delete_new_files(self._ref, self._messages)
        abort_staged(self._staged)

    def _keep(self, ref: TableRef, messages: tuple[CommitMessage, ...]) -> None:
        self._ref = ref
        self._messages += messages
