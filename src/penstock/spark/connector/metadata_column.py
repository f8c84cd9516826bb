"""Metadata columns of a table whose rows change.

Some versions of Spark need one to change rows at all; it is NULL in every row then. For a queue, two of them hold the
position of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.types import LongType, StructField, StructType

from penstock.spark.connector.proxy import Proxy, from_spark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.spark.connector.gateway import Bridge, JavaObject


def metadata_column_of(names: Iterable[str], *, of_file: bool = False) -> str:
    """Return the name of the column in a table that has columns of these names.

    Args:
        of_file: the column with the number of the row's file, instead of the row's number in it.
    """
    taken = {name.casefold() for name in names}
    name = "_penstock_file" if of_file else "_penstock_row"
    while name in taken:
        name += "_"
    return name


def metadata_fields(names: Iterable[str]) -> StructType:
    """Return the schema of metadata columns."""
    return StructType([StructField(name, LongType()) for name in names])


class MetadataColumn(Proxy):
    """The column, as Spark asks a table for it."""

    interfaces: ClassVar = ("org.apache.spark.sql.connector.catalog.MetadataColumn",)

    def __init__(self, bridge: Bridge, name: str) -> None:
        super().__init__(bridge, name)
        self._name = name

    def name(self) -> str:
        """Return the name."""
        return self._name

    @from_spark
    def dataType(self) -> JavaObject:
        """Return the type."""
        return self._bridge.schema(metadata_fields((self._name,))).fields()[0].dataType()
