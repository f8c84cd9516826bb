"""A snapshot as a native DataFrame: Spark's own readers on exactly the files that the plan keeps.

Spark takes the list of a directory's files from ``_spark_metadata`` where that exists (it is the log of Spark's file
sink). A log in a temporary directory that names the plan's files therefore makes a scan without any listing, with
Spark's vectorised reader, column pruning and push-down. The log is read once, when the relation is made.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.spec.file_format import FileFormat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LOG_DIRECTORY: Final = "_spark_metadata"
# What the block size of a local file says to Spark; only splitting looks at it.
_BLOCK_BYTES: Final = 134_217_728
_READ_OPTIONS: Final = {
    FileFormat.PARQUET: {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"},
    FileFormat.ORC: {},
}


def scan_files(
    spark: SparkSession, file_format: FileFormat, schema: StructType, files: Iterable[tuple[str, int]]
) -> DataFrame:
    """Return a DataFrame of files of one format.

    Args:
        schema: columns by the names that the files spell; what a file does not have is null.
        files: URI and exact size in bytes of each.
    """
    directory = tempfile.mkdtemp(prefix="penstock-scan-")
    try:
        log = Path(directory, _LOG_DIRECTORY)
        log.mkdir()
        (log / "0").write_text("\n".join(["v1", *(_log_line(uri, size) for uri, size in files)]), encoding="utf-8")
        return (
            spark.read.schema(schema)
            .format(file_format)
            .options(recursiveFileLookup="true", **_READ_OPTIONS[file_format])
            .load(Path(directory).as_uri())
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _log_line(uri: str, size: int) -> str:
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
