"""Metadata columns: where a row is, for queries, and what Spark needs to change rows.

Some versions of Spark need a metadata column to change rows at all; it is NULL in every row then. For a queue, two of
them hold the position of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.read.native_files import BUCKET, FILE_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.types import DataType

    from penstock.spark.connector.gateway import Bridge, JavaObject

ROW_INDEX: Final = "__paimon_row_index"
CONSTANTS: Final = (FILE_PATH, BUCKET)
"""Columns that have one value in all rows of a file."""

_TYPES: Final[dict[str, DataType]] = {ROW_INDEX: LongType(), FILE_PATH: StringType(), BUCKET: IntegerType()}
PLACES: Final = tuple(_TYPES)
"""Columns that say where a row is: its number in its file, from 0, and the file's path and bucket.

Source:
    Paimon ``spark:schema/PaimonMetadataColumn.scala``. Its ``__paimon_partition`` has the values of the partition
    columns, which rows have, too.
"""


def metadata_column_of(names: Iterable[str], *, of_file: bool = False) -> str:
    """Return the name of the column of a change in a table that has columns of these names.

    Args:
        of_file: the column with the number of the row's file, instead of the row's number in it.
    """
    taken = {name.casefold() for name in names}
    name = "_penstock_file" if of_file else "_penstock_row"
    while name in taken:
        name += "_"
    return name


def metadata_fields(names: Iterable[str]) -> StructType:
    """Return the schema of metadata columns, in the order in which readers return them."""
    ordered = sorted(names, key=lambda name: CONSTANTS.index(name) if name in CONSTANTS else -1)
    return StructType([StructField(name, _TYPES.get(name, LongType())) for name in ordered])


class MetadataColumn(Proxy):
    """The column, as Spark asks a table for it."""

    interfaces: ClassVar = ("org.apache.spark.sql.connector.catalog.MetadataColumn",)
    cached_methods: ClassVar = frozenset({"name", "dataType"})

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


def metadata_columns(bridge: Bridge, names: tuple[str, ...]) -> JavaObject:
    """Return a ``MetadataColumn[]``, which all tables share: Spark asks for it in each query."""
    kind = bridge.connector("catalog.MetadataColumn")
    return bridge.cached(
        ("metadata columns", names),
        lambda: bridge.array(kind, [MetadataColumn(bridge, name).exposed() for name in names]),
    )
