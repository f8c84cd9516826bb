"""Tables that a statement creates or replaces together with its rows.

Source:
    ``StagingTableCatalog`` and ``StagedTable`` of Spark: the rows are written into a staged table, then
    ``commitStagedChanges`` or ``abortStagedChanges`` is called.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.catalog.staged_tables import (
    NewTable,
    StagedTable,
    abort_staged,
    commit_staged,
    stage_replacement,
    stage_table,
)
from penstock.errors import AlreadyExistsError, NotFoundError
from penstock.spark.compact.job import merge_on_executors
from penstock.spark.connector.actions.defaults import default_text
from penstock.spark.connector.definition import DefaultText, definition_of
from penstock.spark.connector.failures import no_such_namespace, no_such_table, table_exists
from penstock.spark.connector.gateway import SessionReference, schema_of
from penstock.spark.connector.proxy import PlainTable, from_spark
from penstock.spark.connector.views import ViewMethods
from penstock.spark.connector.write import TableWriteBuilder
from penstock.spark.types import nullable, to_catalog_schema
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.compact.write import compact_appended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.catalog.backend import Backend
    from penstock.catalog.new_schema import TableDefinition
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_CATALOG: Final = "org.apache.spark.sql.connector.catalog."
_CAPABILITIES: Final = ("V1_BATCH_WRITE", "TRUNCATE")
_PARTS: Final = ("schema", "partitions", "properties")


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
            compact_appended(committer, self._messages, merge_on_executors(self._spark))

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


class StagingMethods(ViewMethods):
    """Creation and replacement of tables together with their rows.

    The arguments after the identifier are a ``TableInfo``; or columns, partitioning and properties, from older callers.
    """

    def __init__(self, bridge: Bridge, spark: SparkSession, warehouse: Backend, name: str) -> None:
        super().__init__(bridge, warehouse, name)
        self._session = SessionReference(bridge, spark)

    @from_spark
    def stageCreate(self, ident: JavaObject, *definition: JavaObject) -> JavaObject:
        """Stage a new table."""
        with self._creation(ident):
            name = self._vacant_name(ident)
            made = self._definition(name, definition)
            return self._staged(name, stage_table(self._warehouse, name, made))

    @from_spark
    def stageReplace(self, ident: JavaObject, *definition: JavaObject) -> JavaObject:
        """Stage another definition of a table."""
        name = self._needed_name(ident)
        made = self._definition(name, definition)
        try:
            return self._staged_replacement(name, made)
        except NotFoundError:
            raise no_such_table(self._bridge, ident) from None

    @from_spark
    def stageCreateOrReplace(self, ident: JavaObject, *definition: JavaObject) -> JavaObject:
        """Stage another definition of a table or, if there is none of the name, a new one."""
        name = self._needed_name(ident)
        made = self._definition(name, definition)
        try:
            return self._staged_replacement(name, made)
        except NotFoundError:
            # Spark allows no TableAlreadyExistsException here.
            self._check_is_no_view(ident, "CREATE OR REPLACE TABLE")
            return self.stageCreate(ident, *definition)

    def _staged_replacement(self, name: str, made: TableDefinition) -> StagedCatalogTable:
        return self._in_any_case(
            name, lambda stored: self._staged(stored, stage_replacement(self._warehouse, stored, made))
        )

    def _staged(self, name: str, staged: StagedTable) -> StagedCatalogTable:
        return StagedCatalogTable(self._bridge, self._session.get(), f"{self._name}.{name}", staged)

    def _definition(self, name: str, definition: tuple[JavaObject, ...]) -> TableDefinition:
        if len(definition) == 1:
            columns, transforms, properties = (getattr(definition[0], part)() for part in _PARTS)
        else:
            columns, transforms, properties = definition
        texts = {str(key): str(properties.get(key)) for key in properties.keySet()}
        schema = schema_of(self._bridge.struct_type(columns))
        return definition_of(schema, transforms, texts, name, self._defaults_of(schema, name))

    @contextmanager
    def _creation(self, ident: JavaObject) -> Iterator[None]:
        """Convert the errors of a creation."""
        try:
            yield
        except AlreadyExistsError:
            raise table_exists(self._bridge, ident) from None
        except NotFoundError:
            raise no_such_namespace(self._bridge, list(ident.namespace())) from None

    def _defaults_of(self, schema: StructType, table: str) -> DefaultText:
        """Return the function that computes the text of a default of one of these columns."""
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        return lambda column, sql: default_text(self._bridge, sql, column, types.get(column, "nested"), table)
