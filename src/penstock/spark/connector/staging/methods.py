"""The methods of Spark's ``StagingTableCatalog``, and the definitions of tables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.catalog.staged.tables import StagedTable, stage_replacement, stage_table
from penstock.errors import AlreadyExistsError, NotFoundError
from penstock.spark.connector.actions.defaults import default_text
from penstock.spark.connector.definition import DefaultText, definition_of
from penstock.spark.connector.failures import no_such_namespace, no_such_table, table_exists
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.proxy import from_spark
from penstock.spark.connector.staging.table import StagedCatalogTable
from penstock.spark.connector.views.methods import ViewMethods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.catalog.new_schema import TableDefinition
    from penstock.catalog.warehouse import Warehouse
    from penstock.spark.connector.gateway import Bridge, JavaObject

_PARTS: Final = ("schema", "partitions", "properties")


class StagingMethods(ViewMethods):
    """Creation and replacement of tables together with their rows.

    The arguments after the identifier are a ``TableInfo``; or columns, partitioning and properties, from older callers.
    """

    def __init__(self, bridge: Bridge, spark: SparkSession, warehouse: Warehouse, name: str) -> None:
        super().__init__(bridge, warehouse, name)
        self._spark = spark

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
            return self.stageCreate(ident, *definition)

    def _staged_replacement(self, name: str, made: TableDefinition) -> StagedCatalogTable:
        return self._in_any_case(
            name, lambda stored: self._staged(stored, stage_replacement(self._warehouse, stored, made))
        )

    def _staged(self, name: str, staged: StagedTable) -> StagedCatalogTable:
        return StagedCatalogTable(self._bridge, self._spark, f"{self._name}.{name}", staged)

    def _definition(self, name: str, given: tuple[JavaObject, ...]) -> TableDefinition:
        if len(given) == 1:
            columns, transforms, properties = (getattr(given[0], part)() for part in _PARTS)
        else:
            columns, transforms, properties = given
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
