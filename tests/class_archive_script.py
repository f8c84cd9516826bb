"""A session that loads what most sessions load: ``class_archive_script.py <directory>``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession, functions

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on."""
    yield from batches


def work(spark: SparkSession, root: Path) -> None:
    """Write and read a table, in SQL and as a stream."""
    catalog = penstock.attach(spark, root / "warehouse")
    catalog.create_database("d")
    columns, options = "id BIGINT, t TIMESTAMP(3)", {"bucket": "2", "bucket-key": "id"}
    source = catalog.create_table("d.a", columns, options=options, watermark=("t", "INTERVAL '5' SECOND"))
    target = catalog.create_table("d.b", columns)
    frame = spark.range(0, 100, 1, 2).selectExpr("id", "timestamp_ntz'2026-01-01' AS t")
    source.append(frame.mapInArrow(same, frame.schema))
    spark.sql("INSERT INTO penstock.d.b SELECT * FROM penstock.d.a WHERE id > 3")
    spark.sql("SELECT a.id, count(*) FROM penstock.d.a JOIN penstock.d.b USING (id) GROUP BY a.id ORDER BY 1").collect()
    spark.read.format("penstock").load(target.location).count()
    for name, rows in (
        ("a", source.read_stream(spark)),
        ("b", spark.readStream.schema("id BIGINT").parquet(_files(frame, root))),
    ):
        target.write_stream(rows, checkpoint=str(root / name), trigger={"availableNow": True}).awaitTermination()
    windows = source.read_stream(spark).groupBy(functions.window("t", "1 minute")).count()
    query = windows.writeStream.foreachBatch(_collect).option("checkpointLocation", str(root / "c"))
    query.trigger(availableNow=True).start().awaitTermination()


def _files(frame: DataFrame, root: Path) -> str:
    frame.select("id").write.parquet(str(root / "files"))
    return str(root / "files")


def _collect(rows: DataFrame, _: int) -> None:
    rows.collect()


def main() -> None:
    """Work, and wait until the JVM has ended, as it writes the archive then."""
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    work(spark, Path(sys.argv[1]))
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
