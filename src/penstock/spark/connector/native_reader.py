"""Create the factories of Spark's own Parquet and ORC readers, which run on the executors.

Source:
    ``ParquetScan`` and ``OrcScan`` of Spark, which are not public API; see ``gateway``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from penstock.format.layout import FileFormat
from penstock.spark.native_settings import SCAN_OPTIONS

if TYPE_CHECKING:
    from penstock.spark.connector.gateway import Bridge, JavaObject

FIELD_ID: Final = "parquet.field.id"
"""Key of the field id in the metadata of a column."""

# Has no effect on columns without an id in the read schema.
_BY_ID: Final = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
}
_SCANS: Final = {FileFormat.PARQUET: "ParquetScan", FileFormat.ORC: "OrcScan"}


def is_vectorised(bridge: Bridge) -> bool:
    """Whether Spark's Parquet reader is vectorized; the row-based reader does not match columns by field ids."""
    return bool(bridge.driver.readsVectors(bridge.session()))


def reader_factory(
    bridge: Bridge, session: JavaObject, file_format: FileFormat, schema: StructType, filters: JavaObject
) -> JavaObject:
    """Return Spark's factory of readers of files.

    Args:
        session: its settings apply to the readers.
        schema: the columns to read, with their names in the files, or with field ids.
        filters: ``Filter[]`` by which the reader may skip row groups.
    """
    options = bridge.cached("scan options", lambda: bridge.case_insensitive(SCAN_OPTIONS))
    settings = bridge.cached("scan settings", lambda: bridge.scala_map({**SCAN_OPTIONS, **_BY_ID}))
    conf = session.sessionState().newHadoopConfWithOptions(settings)
    columns, none, nothing = bridge.schema(schema), bridge.sequence(()), bridge.scala_none()
    scan = partial(bridge.made, _SCANS[file_format])
    # A scan uses its file index only to plan partitions, which Penstock does itself.
    first = (session, conf, None, columns, columns, bridge.schema(StructType([])))
    if file_format is FileFormat.PARQUET:
        variants = partial(bridge.no_items, "read.VariantExtraction")
        made = scan(*first, filters, options, nothing, none, none, variants)
    else:
        made = scan(*first, options, nothing, filters, none, none)
    return made.createReaderFactory()
