"""What a session is configured with changes no name, byte or value of native writes and scans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.plans import BY_SPARK, plan_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

COLUMNS: Final = "n BIGINT, s STRING, at TIMESTAMP(6), x DECIMAL(12, 2), r ROW<p INT>"
ROWS: Final = 40
# Each changed the files, or lost rows, in a write that did not set it; the last three are of readers only.
WRITE: Final = {
    "mapreduce.output.basename": "out",
    "mapreduce.output.fileoutputformat.compress": "true",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "mapreduce.outputcommitter.factory.class": "org.apache.hadoop.mapreduce.lib.output.NamedCommitterFactory",
    "spark.sql.sources.outputCommitterClass": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
    "spark.sql.parquet.output.committer.class": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.files.maxRecordsPerFile": "3",
    "spark.sql.sources.useV1SourceList": "",
    "parquet.block.size": "1024",
    "parquet.page.size": "64",
    "parquet.dictionary.page.size": "64",
    "parquet.enable.dictionary": "false",
    "parquet.writer.version": "PARQUET_2_0",
    "parquet.compression": "gzip",
    "parquet.compression.codec.zstd.level": "9",
    "parquet.filter.stats.enabled": "false",
    "parquet.hadoop.vectored.io.enabled": "false",
    "parquet.read.allocation.size": "1024",
}
# The write goes over Arrow: nothing takes them back for one write.
UNKNOWN: Final = {"parquet.bloom.filter.enabled": "true"}
SCAN: Final = {
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "true",
    "spark.sql.streaming.fileSink.log.compactInterval": "1",
    "spark.sql.streaming.checkpointFileManagerClass": "no.such.Manager",
    "spark.sql.sources.useV1SourceList": "",
    "spark.sql.parquet.aggregatePushdown": "true",
    "spark.sql.orc.aggregatePushdown": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.orc.impl": "hive",
    "orc.force.positional.evolution": "true",
}


def session_with(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def append(spark: SparkSession, table: Table) -> None:
    rows = spark.range(0, ROWS, 1, 1).selectExpr(
        "id AS n",
        "concat('v', id % 4) AS s",
        "make_timestamp_ntz(1500 + id, 3, 4, 5, 6, 7.000008) AS at",
        "CAST(id AS DECIMAL(12, 2)) AS x",
        "named_struct('p', CAST(id AS INT)) AS r",
    )
    table.append(rows)


def described(table: Table) -> list[object]:
    """What the table's directory and its one file look like, but for the name's unique part."""
    (path,) = Path(table.location).glob("bucket-*/*")
    file = pq.ParquetFile(path)
    group = file.metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    return [
        sorted(each.name for each in Path(table.location).iterdir()),
        str(file.schema).split("\n", 1)[1],
        [field.metadata for field in file.schema_arrow],
        file.metadata.num_row_groups,
        file.metadata.format_version,
        [(column.compression, sorted(column.encodings), column.total_uncompressed_size) for column in columns],
    ]


def test_settings_of_the_session_change_nothing_in_the_files_of_a_native_write(
    spark: SparkSession, catalog: Catalog, native: list[bool]
) -> None:
    plain, configured = (catalog.create_table(f"d.{name}", COLUMNS) for name in ("plain", "configured"))
    append(spark, plain)
    append(session_with(spark, WRITE), configured)
    assert native == [True, True]
    assert described(configured) == described(plain)
    assert configured.to_arrow() == plain.to_arrow()


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value"), [*WRITE.items(), *UNKNOWN.items()])
def test_each_setting_changes_nothing_in_what_is_written(
    spark: SparkSession, catalog: Catalog, native: list[bool], key: str, value: str
) -> None:
    plain, configured = (catalog.create_table(f"d.{name}", COLUMNS) for name in ("plain", "configured"))
    append(spark, plain)
    append(session_with(spark, {key: value}), configured)
    assert native == [True, key not in UNKNOWN]
    assert key in UNKNOWN or described(configured) == described(plain)
    assert configured.to_arrow() == plain.to_arrow()


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_settings_of_the_session_change_nothing_in_the_rows_of_a_native_scan(
    spark: SparkSession, catalog: Catalog, file_format: str
) -> None:
    table = catalog.create_table("d.t", "n BIGINT, f DOUBLE, s STRING", options={"file.format": file_format})
    table.append(pa.table({"n": [1, 2], "f": [1.5, float("nan")], "s": ["a", "b"]}))
    table.append(pa.table({"n": [3], "f": [3.5], "s": ["c"]}))
    session = session_with(spark, SCAN)
    frame = table.to_spark(session, columns=["s", "n", "f"])
    assert frame.sparkSession is session
    assert BY_SPARK in plan_of(frame)
    assert [repr(tuple(row)) for row in frame.orderBy("n").collect()] == [
        "('a', 1, 1.5)",
        "('b', 2, nan)",
        "('c', 3, 3.5)",
    ]
    assert repr(frame.selectExpr("max(f)", "count(*)").collect()[0][:]) == "(nan, 3)"

    damaged, gone = sorted(Path(table.location).glob("bucket-*/*"), key=lambda path: path.stat().st_mtime_ns)
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    gone.unlink()
    for number in (1, 3):
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            table.to_spark(session, filter=f"n = {number}").collect()
