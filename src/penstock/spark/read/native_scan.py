"""Read exactly the files of a plan with Spark's own readers, as a native DataFrame.

If a directory has ``_spark_metadata``, the log of Spark's file sink, Spark takes the list of files from it. So a log in
a temporary directory that names the plan's files gives a scan without any listing, with Spark's vectorized reader,
column pruning and push-down. Spark reads the log once, when it makes the relation.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from penstock.spark.native_settings import SCAN_OPTIONS, scan_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.format.file_format import FileFormat

LOG_DIRECTORY: Final = "_spark_metadata"
"""Name of the sink's log directory, below the directory that the sink writes to."""
# Block size in the log; Spark uses it only to split files.
_BLOCK_BYTES: Final = 134_217_728


def scan_files(
    spark: SparkSession, file_format: FileFormat, schema: StructType, files: Iterable[tuple[str, int]]
) -> DataFrame:
    """Return a DataFrame of files of one format.

    Args:
        schema: columns, by their names in the files; columns that a file does not have are null.
        files: URI and exact size in bytes of each file.
    """
    directory = tempfile.mkdtemp(prefix="penstock-scan-")
    try:
        log = Path(directory, LOG_DIRECTORY)
        log.mkdir()
        (log / "0").write_text("\n".join(["v1", *(log_line(uri, size) for uri, size in files)]), encoding="utf-8")
        return _load(spark, file_format, schema, Path(directory).as_uri())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _load(spark: SparkSession, file_format: FileFormat, schema: StructType, uri: str) -> DataFrame:
    given: Any = spark._jsparkSession  # noqa: SLF001 - Python has no way to resolve in another session
    resolving = scan_session(given, file_format)
    reader: Any = spark.read
    reader._jreader = resolving.read()  # noqa: SLF001 - see above
    frame: DataFrame = reader.schema(schema).format(file_format).options(**SCAN_OPTIONS).load(uri)
    if resolving is given:
        return frame
    jvm: Any = spark._jvm  # noqa: SLF001 - see above
    resolved: Any = frame._jdf  # noqa: SLF001 - see above
    plan = resolved.queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(given, plan), spark)


def log_line(uri: str, size: int) -> str:
    """Return the log line for a file."""
    return json.dumps(
        {
            "path": uri,
            "size": size,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": _BLOCK_BYTES,
            "action": "add",
        }
    )
