"""Build Spark's own Parquet and ORC scans over the files of a plan; the executors run them.

Source:
    ``ParquetScan`` and ``OrcScan`` of Spark, which are not promised to stay; see ``gateway``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from penstock.format.file_format import FileFormat
from penstock.spark.native_settings import SCAN_OPTIONS, scan_session
from penstock.spark.read.native_scan import LOG_DIRECTORY, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.native_files import NativeFiles

FIELD_ID: Final = "parquet.field.id"
"""Key of the field id in the metadata of a column."""

# Without effect on columns that have no id in the schema to read.
_BY_ID: Final = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
}
_SCANS: Final = {FileFormat.PARQUET: "ParquetScan", FileFormat.ORC: "OrcScan"}


def is_vectorised(session: JavaObject) -> bool:
    """Whether Spark's Parquet reader reads vectors: row by row it does not find columns by their field ids."""
    conf = session.sessionState().conf()
    return bool(conf.parquetVectorizedReaderEnabled() and conf.parquetVectorizedReaderNestedColumnEnabled())


def native_scan(bridge: Bridge, given: NativeFiles, schema: StructType, filters: Sequence[JavaObject]) -> JavaObject:
    """Return Spark's scan of files.

    Args:
        schema: the columns to read, by their names in the files, or with field ids.
        filters: filters by which the reader may skip row groups, as Spark's V1 filters.
    """
    jvm, session = bridge.jvm, bridge.session()
    options = bridge.case_insensitive(SCAN_OPTIONS)
    conf = session.sessionState().newHadoopConfWithOptions(bridge.scala_map({**SCAN_OPTIONS, **_BY_ID}))
    index = _index(bridge, session, given.files)
    columns, none = bridge.schema(schema), bridge.sequence(())
    pushed = bridge.array(jvm.org.apache.spark.sql.sources.Filter, filters)
    scan = bridge.private(_SCANS[given.file_format])
    first = (session, conf, index, columns, columns, bridge.schema(StructType([])))
    if given.file_format is FileFormat.PARQUET:
        variants = bridge.array(bridge.connector("read.VariantExtraction"), ())
        return scan(*first, pushed, options, bridge.nothing(), none, none, variants)
    return scan(*first, options, bridge.nothing(), pushed, none, none)


def _index(bridge: Bridge, session: JavaObject, files: Iterable[tuple[str, int]]) -> JavaObject:
    """Return an index of exactly these files, from a log of Spark's file sink: one call for any number of files."""
    directory = tempfile.mkdtemp(prefix="penstock-scan-")
    try:
        log = Path(directory, LOG_DIRECTORY)
        log.mkdir()
        (log / "0").write_text("\n".join(["v1", *(log_line(uri, size) for uri, size in files)]), encoding="utf-8")
        made = bridge.private("FileIndex")
        path = bridge.jvm.org.apache.hadoop.fs.Path(Path(directory).as_uri())
        parameters = bridge.scala_map({"recursiveFileLookup": "true"})
        index = made(scan_session(session), path, parameters, bridge.nothing())
        # Read the log here, before it is deleted.
        index.allFiles()
        return index
    finally:
        shutil.rmtree(directory, ignore_errors=True)
