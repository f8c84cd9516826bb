"""Tables of files in a directory: Spark's readers and writers of Parquet and ORC, and lines of CSV and JSON.

Lines are decoded like the values of Kafka records, by the rules of Flink's formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StringType, StructField, StructType

from penstock.errors import NotFoundError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.spark.kafka.decode import ORIGIN, decode_values
from penstock.spark.kafka.encode import encode_value
from penstock.spark.read.frame import LOG_DIRECTORY
from penstock.spark.types import nullable, to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.format.types.data_types import DataField
    from penstock.options.connectors import FilesystemTable

_LINE: Final = "value"
_PATH: Final = "__path"
# Not ORIGIN, which names a column of the same projection.
_SOURCE: Final = "__source"


def read_files(
    spark: SparkSession,
    files: FilesystemTable,
    fields: Sequence[DataField],
    partition_by: Sequence[str],
    *,
    table: str,
) -> DataFrame:
    """Return the rows of the files of a directory; a stream if the table is monitored for new files.

    Args:
        partition_by: columns whose values are in directory names, such as ``dt=2026-01-01``.
        table: name of the table, for messages.
    """
    stored = [field for field in fields if field.name not in partition_by]
    how = files.value_format
    schema = to_spark_schema(fields)
    if how is not None:
        parts = [schema[name] for name in partition_by]
        schema = StructType([StructField(_line_name(fields), StringType()), *parts])
    source = "text" if how is not None else str(files.options.format)
    reader = spark.read if files.options.monitor_interval_ms is None else spark.readStream
    try:
        found = reader.format(source).schema(nullable(schema)).load(files.options.path)
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        raise NotFoundError(
            f"table {table}: there is no directory {files.options.path}: write to the table first, or correct 'path'"
        ) from error
    if how is None:
        return found.select(*(F.col(quoted(field.name)) for field in fields))
    path = F.col("_metadata.file_path").alias(_PATH)
    record = F.struct(path, *(F.col(quoted(name)) for name in partition_by)).alias(_SOURCE)
    lines = found.select(F.col(quoted(_line_name(fields))).alias("value"), record)
    place = F.concat(F.lit("a line of the file "), F.col(_SOURCE)[_PATH])
    rows = decode_values(lines, stored, how, table, origin=F.col(_SOURCE), place=place)
    return rows.select(
        *(
            F.col(ORIGIN)[field.name].alias(field.name) if field.name in partition_by else F.col(quoted(field.name))
            for field in fields
        )
    )


def check_no_stream_log(spark: SparkSession, files: FilesystemTable, table: str) -> None:
    """Raise ``UnsupportedFeatureError`` if a stream has written to the directory; its log would not list our files."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark's own file systems
    path = jvm.org.apache.hadoop.fs.Path(files.options.path, LOG_DIRECTORY)
    settings: Any = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - as above
    if path.getFileSystem(settings).exists(path):
        raise UnsupportedFeatureError(
            f"table {table}: a stream has written to {files.options.path}, and Spark reads what the log of its streams "
            f"names, {LOG_DIRECTORY}: insert from a stream, or give these rows a directory of their own"
        )


def file_writer_input(
    rows: DataFrame, files: FilesystemTable, fields: Sequence[DataField], partition_by: Sequence[str], *, table: str
) -> tuple[DataFrame, str]:
    """Return the rows in the form that Spark's writer of the format expects, and the name of that writer."""
    how = files.value_format
    if how is None:
        return rows, str(files.options.format)
    stored = [field for field in fields if field.name not in partition_by]
    line = encode_value(stored, how, table).alias(_line_name(fields))
    return rows.select(line, *(F.col(quoted(name)) for name in partition_by)), "text"


def _line_name(fields: Sequence[DataField]) -> str:
    """Return a name for the column of lines that differs from all partition columns."""
    names = {field.name for field in fields}
    name = _LINE
    while name in names:
        name += "_"
    return name
