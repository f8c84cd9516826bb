"""Create the factories of Spark's own Parquet and ORC readers, which run on the executors.

Source:
    ``ParquetScan`` and ``OrcScan`` of Spark, which are not public API; see ``gateway``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import LongType, StructField, StructType

from penstock.format.layout import FileFormat
from penstock.spark.connector.metadata_column import CONSTANTS, ROW_INDEX, metadata_fields
from penstock.spark.native_settings import SCAN_OPTIONS
from penstock.spark.read.native_files import ROW_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.read.native_files import NativeReading

_V2: Final = "org.apache.spark.sql.execution.datasources.v2."
_SCANS: Final = {FileFormat.PARQUET: "ParquetScan", FileFormat.ORC: "OrcScan"}


def native_factory(
    bridge: Bridge,
    reading: NativeReading,
    schema: StructType,
    metadata: Sequence[str],
    filters_of: Callable[[frozenset[str]], JavaObject],
) -> JavaObject:
    """Return the factory of readers for files that ``list_native`` lists for the same reading.

    Args:
        schema: the columns to read, by their names in the table.
        metadata: names of metadata columns, which follow them.
        filters_of: called with columns, by which a reader may skip row groups; returns ``Filter[]``.
    """
    session, readers, numbering = bridge.session(), [], []
    constants = StructType([field for field in metadata_fields(metadata) if field.name in CONSTANTS])
    # The reader returns NULL for columns that files do not have.
    others = [
        StructField(ROW_NUMBER if field.name == ROW_INDEX else field.name, field.dataType)
        for field in metadata_fields(metadata)
        if field.name not in CONSTANTS
    ]
    has_numbers = ROW_INDEX in metadata
    number = [] if has_numbers else [StructField(ROW_NUMBER, LongType())]
    made = partial(reader_factory, bridge, session, reading.file_format, constants)
    for reader in reading.readers:
        filters = filters_of(reader.pushable)
        columns = [StructField(name, field.dataType) for name, field in zip(reader.names, schema, strict=True)]
        columns += others
        # With filters, it may leave rows out, and they cannot be counted.
        counts = reader.deletes and not has_numbers and not len(filters)
        readers.append(made(StructType(columns), filters) if counts or not reader.deletes else None)
        numbering.append(made(StructType([*columns, *number]), filters) if reader.deletes else None)
    if not reading.needs_class:
        return readers[0]
    kind = bridge.java(f"{_V2}FilePartitionReaderFactory")
    arrays = (bridge.array(kind, readers), bridge.array(kind, numbering))
    place = len(schema) + [field.name for field in (*others, *number)].index(ROW_NUMBER) if any(numbering) else 0
    return bridge.file_readers[0].of(*arrays, place, has_numbers)


def reader_factory(
    bridge: Bridge,
    session: JavaObject,
    file_format: FileFormat,
    constants: StructType,
    schema: StructType,
    filters: JavaObject,
) -> JavaObject:
    """Return Spark's factory of readers of files.

    Args:
        session: its settings apply to the readers.
        constants: columns with one value in all rows of a file, which follow the others.
        schema: the columns to read, with their names in the files.
        filters: ``Filter[]`` by which the reader may skip row groups.
    """
    options = bridge.cached("scan options", lambda: bridge.case_insensitive(SCAN_OPTIONS))
    settings = bridge.cached("scan settings", lambda: bridge.scala_map(SCAN_OPTIONS))
    conf = session.sessionState().newHadoopConfWithOptions(settings)
    columns, none, nothing = bridge.schema(schema), bridge.sequence(()), bridge.scala_none()
    scan = partial(bridge.made, _SCANS[file_format])
    # A scan uses its file index only to plan partitions, which Penstock does itself.
    first = (session, conf, None, columns, columns, bridge.schema(constants))
    if file_format is FileFormat.PARQUET:
        variants = partial(bridge.no_items, "read.VariantExtraction")
        made = scan(*first, filters, options, nothing, none, none, variants)
    else:
        made = scan(*first, options, nothing, filters, none, none)
    return made.createReaderFactory()
