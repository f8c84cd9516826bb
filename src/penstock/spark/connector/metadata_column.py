"""Metadata columns: where a row is, for queries, and what Spark needs to change rows.

Some versions of Spark need a metadata column to change rows at all; it is NULL in every row then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.read.native_listing import (
    BUCKET,
    COMMIT_TIME,
    FILE_PATH,
    FIRST_ROW_ID,
    LAST_SEQUENCE_NUMBER,
    PARTITION,
    ROW_INDEX,
    SNAPSHOT_ID,
    partition_constant,
)
from penstock.spark.read.native_reading import ROW_ID, ROW_NUMBER, SEQUENCE_NUMBER
from penstock.spark.types import nullable, to_spark_schema
from penstock.table.row_tracking import is_tracked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.ref import TableRef

TRACKED: Final = (ROW_ID, SEQUENCE_NUMBER)
"""Columns of tables with row tracking: an id that the row keeps, and the snapshot that has written it last."""

NUMBERED: Final = (ROW_INDEX, *TRACKED)
"""Columns that only readers return which number rows."""

MADE: Final = (PARTITION, *TRACKED)
"""Columns that our class on executors makes of several columns of readers."""

ORIGINS: Final = frozenset({SNAPSHOT_ID, COMMIT_TIME})
"""Columns of the snapshot that added the file of a row: NULL if the snapshot has expired."""

PLACES: Final = (ROW_INDEX, FILE_PATH, PARTITION, BUCKET, SNAPSHOT_ID, COMMIT_TIME, *TRACKED)
"""Columns that say where a row is: its number in its file, from 0, and the file's path, partition, bucket and snapshot.

Source:
    Paimon ``spark:schema/PaimonMetadataColumn.scala``, ``spark:PaimonSparkTableBase.scala``, which have no ``ORIGINS``.
"""

_CONSTANTS: Final = frozenset({FILE_PATH, BUCKET, *ORIGINS})
"""Columns with one value in all rows of a file, which readers return as they are."""


POSITION: Final = (FILE_PATH, ROW_INDEX)
"""Columns of these that name a row."""


def places_of(ref: TableRef, *, name_rows: bool = False) -> tuple[StructField, ...]:
    """Return the columns that say where a row of a table is.

    Args:
        name_rows: whether Spark names rows by them, for which they must not be NULL. It writes all of them then if a
            condition has one, which it cannot do with the partition of a table without any.
    """
    partition = StructField(PARTITION, nullable(to_spark_schema(ref.schema.partition_fields)))
    tracked = TRACKED if is_tracked(ref.options) else ()
    return (
        StructField(ROW_INDEX, LongType(), nullable=not name_rows),
        StructField(FILE_PATH, StringType(), nullable=not name_rows),
        *(() if name_rows and not ref.schema.partition_keys else (partition,)),
        StructField(BUCKET, IntegerType()),
        StructField(SNAPSHOT_ID, LongType()),
        StructField(COMMIT_TIME, TimestampType()),
        *(StructField(name, LongType()) for name in tracked),
    )


def metadata_column_of(names: Iterable[str]) -> str:
    """Return the name of the column of a change in a table that has columns of these names."""
    taken = {name.casefold() for name in names}
    name = "_penstock_row"
    while name in taken:
        name += "_"
    return name


def in_order(metadata: Iterable[StructField]) -> StructType:
    """Return metadata columns in the order in which readers return them: those with one value in a file come last."""
    return StructType(sorted(metadata, key=lambda field: field.name in _CONSTANTS))


def constants_of(metadata: StructType) -> StructType:
    """Return what readers return for metadata columns that has one value in all rows of a file."""
    found: list[StructField] = []
    for field in metadata:
        if field.name in _CONSTANTS:
            found.append(field)
        elif field.name == PARTITION:
            assert isinstance(field.dataType, StructType)  # noqa: S101 - see places_of
            found += [StructField(partition_constant(part.name), part.dataType) for part in field.dataType]
        elif field.name in TRACKED:
            found.append(StructField(FIRST_ROW_ID if field.name == ROW_ID else LAST_SEQUENCE_NUMBER, LongType()))
    return StructType(found)


def stored_of(metadata: StructType) -> list[StructField]:
    """Return what readers return for metadata columns that a file may have, and else is NULL."""
    return [field for field in metadata if field.name not in {*_CONSTANTS, PARTITION, ROW_INDEX}]


def columns_text(wanted: StructType, metadata: StructType, read: Sequence[str]) -> str:
    """Return how columns and metadata columns are made of those of a reader, as text for ``FileReaders.of``.

    Args:
        read: names of the columns of the reader, the wanted ones first.
    """
    places = {name: str(place) for place, name in enumerate(read) if place >= len(wanted)}
    made = [str(place) for place in range(len(wanted))]
    for field in metadata:
        if field.name == PARTITION:
            assert isinstance(field.dataType, StructType)  # noqa: S101 - see places_of
            parts = [places[partition_constant(part.name)] for part in field.dataType]
            made.append("+".join([*parts, ""]) or "+")
        elif field.name == ROW_ID:
            made.append("?".join(places[name] for name in (ROW_ID, FIRST_ROW_ID, ROW_NUMBER)))
        elif field.name == SEQUENCE_NUMBER:
            made.append("?".join(places[name] for name in (SEQUENCE_NUMBER, LAST_SEQUENCE_NUMBER)))
        else:
            made.append(places[ROW_NUMBER if field.name == ROW_INDEX else field.name])
    return "" if made == [str(place) for place in range(len(read))] else ",".join(made)


class MetadataColumn(Proxy):
    """The column, as Spark asks a table for it."""

    interfaces: ClassVar = ("org.apache.spark.sql.connector.catalog.MetadataColumn",)
    cached_methods: ClassVar = frozenset({"name", "dataType", "isNullable"})

    def __init__(self, bridge: Bridge, field: StructField) -> None:
        super().__init__(bridge, field.json())
        self._field = field

    def name(self) -> str:
        """Return the name."""
        return self._field.name

    def isNullable(self) -> bool:
        """Return whether it may be NULL."""
        return self._field.nullable

    @from_spark
    def dataType(self) -> JavaObject:
        """Return the type."""
        return self._bridge.schema(StructType([self._field])).fields()[0].dataType()


def metadata_columns(bridge: Bridge, columns: tuple[StructField, ...]) -> JavaObject:
    """Return a ``MetadataColumn[]``, which tables with the same ones share: Spark asks for it in each query."""
    kind = bridge.connector("catalog.MetadataColumn")
    return bridge.cached(
        ("metadata columns", StructType(list(columns)).json()),
        lambda: bridge.array(kind, [MetadataColumn(bridge, column).exposed() for column in columns]),
    )
