"""Create the factories of Spark's own Parquet and ORC readers, which run on the executors.

Source:
    ``ParquetScan`` and ``OrcScan`` of Spark, which are not public API; see ``gateway``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.types import LongType, StructField, StructType

from penstock.format.layout import FileFormat
from penstock.spark.connector.conversions import converting, nullable_type
from penstock.spark.connector.metadata_column import columns_text, constants_of, stored_of
from penstock.spark.read.native_listing import ROW_INDEX
from penstock.spark.read.native_reading import ROW_ID, ROW_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.read.native_reading import NativeReading

_V2: Final = "org.apache.spark.sql.execution.datasources.v2."
_SCANS: Final = {FileFormat.PARQUET: "ParquetScan", FileFormat.ORC: "OrcScan"}


class _ScanSession(NamedTuple):
    """A session whose settings apply to readers, and their options."""

    session: JavaObject
    options: Mapping[str, str]


def native_factory(
    bridge: Bridge,
    reading: NativeReading,
    schema: StructType,
    metadata: StructType,
    filters_of: Callable[[frozenset[str]], JavaObject],
    python: Callable[[], JavaObject],
) -> JavaObject:
    """Return the factory of readers for files that ``list_native`` lists for the same reading.

    Args:
        schema: the columns to read, by their names in the table.
        metadata: metadata columns, which follow them.
        filters_of: called with columns, by which a reader may skip row groups; returns ``Filter[]``.
        python: makes the factory of readers for the files that are left to Python workers.
    """
    session, readers, numbering, converted = _ScanSession(bridge.session(), reading.options), [], [], []
    constants = constants_of(metadata)
    # The reader returns NULL for columns that files do not have.
    others = stored_of(metadata)
    number = [StructField(ROW_NUMBER, LongType())]
    has_numbers = not {ROW_INDEX, ROW_ID}.isdisjoint(metadata.fieldNames())
    plain = [*others, *(number if has_numbers else ())]
    for reader in reading.readers:
        made = partial(reader_factory, bridge, session, reader.file_format, constants)
        filters = filters_of(reader.pushable)
        types = reader.conversions or (None,) * len(schema)
        columns = [
            StructField(name, field.dataType if each is None else nullable_type(each[0]))
            for name, field, each in zip(reader.names, schema, types, strict=True)
        ]
        converted.append(types if reader.converts else ())
        # With filters, it may leave rows out, and they cannot be counted.
        counts = reader.deletes and not has_numbers and not len(filters)
        is_plain = counts or not reader.deletes
        readers.append(made(StructType([*columns, *plain]), filters) if is_plain else None)
        numbering.append(made(StructType([*columns, *others, *number]), filters) if reader.deletes else None)
    if not reading.needs_class:
        return readers[0]
    kind = bridge.java(f"{_V2}FilePartitionReaderFactory")
    arrays = (bridge.array(kind, readers), bridge.array(kind, numbering))
    texts = [
        columns_text(schema, metadata, StructType([*schema, *each, *constants]).fieldNames())
        for each in (plain, [*others, *number])
    ]
    place, conversions = len(schema) + len(others), converting(bridge, converted)
    return bridge.file_readers.of(*arrays, place, *texts, conversions, python() if reading.left else None)


def reader_factory(
    bridge: Bridge,
    session: _ScanSession,
    file_format: FileFormat,
    constants: StructType,
    schema: StructType,
    filters: JavaObject,
) -> JavaObject:
    """Return Spark's factory of readers of files.

    Args:
        constants: columns with one value in all rows of a file, which follow the others.
        schema: the columns to read, with their names in the files.
        filters: ``Filter[]`` by which the reader may skip row groups.
    """
    spark, texts = session
    options = bridge.cached(("scan options", *texts), lambda: bridge.case_insensitive(texts))
    settings = bridge.cached(("scan settings", *texts), lambda: bridge.scala_map(texts))
    conf = spark.sessionState().newHadoopConfWithOptions(settings)
    columns, none, nothing = bridge.schema(schema), bridge.sequence(()), bridge.scala_none()
    scan = partial(bridge.made, _SCANS[file_format])
    # A scan uses its file index only to plan partitions, which Penstock does itself.
    first = (spark, conf, None, columns, columns, bridge.schema(constants))
    if file_format is FileFormat.PARQUET:
        variants = partial(bridge.no_items, "read.VariantExtraction")
        made = scan(*first, filters, options, nothing, none, none, variants)
    else:
        made = scan(*first, options, nothing, filters, none, none)
    return made.createReaderFactory()
