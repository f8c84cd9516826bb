"""Tables of every contender in a Spark session, created and filled in each one's own way."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

import penstock
from bench.result import DELTA, ICEBERG, OURS, PARQUET, PARQUET_BUCKETS, PARQUET_PARTITIONS
from penstock.spark.data_source.source import PenstockDataSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
    from pyspark.sql.types import StructType

    from bench.spark_session import SparkJob


TIME = "order_time"
"""Event time of the seven-column table."""
TIME_TYPE = "TIMESTAMP(3) WITH LOCAL TIME ZONE"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
FILE_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
"""Package of its values, from Spark 4.1 on."""


class Target(Protocol):
    """A table of one contender."""

    name: str

    def create(self, rows: DataFrame) -> None:
        """Create the table, empty, with the columns of ``rows``."""
        ...

    def append(self, rows: DataFrame) -> None:
        """Add the rows, which is timed."""
        ...

    def load(self) -> DataFrame:
        """Return the table's rows."""
        ...

    def load_stream(self) -> DataFrame:
        """Return a stream that starts with all of the table's rows."""
        ...

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start a query that adds the rows of a stream that are available now."""
        ...

    def drop(self) -> None:
        """Remove the table."""
        ...


class ParquetTarget:
    """A directory written by Spark's own writers: the batch writer, or the file sink."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.name = PARQUET
        self._spark = spark
        self._path = folder / "parquet"
        self._schema: StructType | None = None

    def create(self, rows: DataFrame) -> None:
        """Keep the columns, which a stream needs; the first append creates the directory."""
        self._schema = rows.schema

    def append(self, rows: DataFrame) -> None:
        """Add files."""
        rows.write.mode("append").parquet(str(self._path))

    def load(self) -> DataFrame:
        """List the directory and read it."""
        return self._spark.read.parquet(str(self._path))

    def load_stream(self) -> DataFrame:
        """Open the file stream source."""
        return self._spark.readStream.schema(self._schema).parquet(str(self._path))

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start the file sink."""
        return _writer(rows, checkpoint).format("parquet").start(str(self._path))

    def drop(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._path, ignore_errors=True)


class BucketedParquetTarget(ParquetTarget):
    """A table of Spark's own, in 8 buckets of a key."""

    def __init__(self, spark: SparkSession, folder: Path, key: str) -> None:
        super().__init__(spark, folder)
        self.name, self._path, self._key = PARQUET_BUCKETS, folder / "parquet-buckets", key

    def create(self, rows: DataFrame) -> None:
        """Forget the table; the first append creates it."""
        super().create(rows)
        self.drop()

    def append(self, rows: DataFrame) -> None:
        """Add files, several for each bucket."""
        rows.write.mode("append").bucketBy(8, self._key).option("path", str(self._path)).saveAsTable("bucketed")

    def drop(self) -> None:
        """Remove table and directory."""
        self._spark.sql("DROP TABLE IF EXISTS bucketed")
        super().drop()


class PartitionedParquetTarget(ParquetTarget):
    """A directory of 8 partitions, by the hash of a key."""

    def __init__(self, spark: SparkSession, folder: Path, key: str) -> None:
        super().__init__(spark, folder)
        self.name, self._path, self._key = PARQUET_PARTITIONS, folder / "parquet-partitions", key

    def append(self, rows: DataFrame) -> None:
        """Add files, several for each partition."""
        bucketed = rows.withColumn("bucket", F.pmod(F.hash(self._key), F.lit(8)))
        bucketed.write.mode("append").partitionBy("bucket").parquet(str(self._path))

    def load_stream(self) -> DataFrame:
        """Open the file stream source."""
        return super().load_stream().drop("bucket")


class DeltaTarget:
    """A Delta table, by path."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.name = DELTA
        self._spark = spark
        self._path = folder / "delta"

    def create(self, rows: DataFrame) -> None:
        """Commit the schema."""
        rows.limit(0).write.format("delta").save(str(self._path))

    def append(self, rows: DataFrame) -> None:
        """Commit the rows."""
        rows.write.format("delta").mode("append").save(str(self._path))

    def load(self) -> DataFrame:
        """Read the latest version."""
        return self._spark.read.format("delta").load(str(self._path))

    def load_stream(self) -> DataFrame:
        """Open Delta's source."""
        return self._spark.readStream.format("delta").load(str(self._path))

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start Delta's sink."""
        return _writer(rows, checkpoint).format("delta").start(str(self._path))

    def drop(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._path, ignore_errors=True)


class IcebergTarget:
    """An Iceberg table; with a key, partitioned by ``bucket(8, key)``."""

    def __init__(self, spark: SparkSession, key: str | None = None) -> None:
        self.name = f"{ICEBERG} bucket(8)" if key else ICEBERG
        self._spark = spark
        self._key = key
        self._table = "iceberg.bucketed" if key else "iceberg.plain"

    def create(self, rows: DataFrame) -> None:
        """Create the table."""
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema.fields)
        layout = f"PARTITIONED BY (bucket(8, `{self._key}`))" if self._key else ""
        self._spark.sql(
            f"CREATE TABLE {self._table} ({columns}) USING iceberg {layout} TBLPROPERTIES "
            "('write.parquet.compression-codec' = 'zstd', 'write.parquet.compression-level' = '1')"
        )

    def append(self, rows: DataFrame) -> None:
        """Commit the rows, distributed as Iceberg does by default."""
        rows.writeTo(self._table).append()

    def load(self) -> DataFrame:
        """Read the latest snapshot."""
        return self._spark.table(self._table)

    def load_stream(self) -> DataFrame:
        """Open Iceberg's source."""
        return self._spark.readStream.table(self._table)

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start Iceberg's sink, which requires sorted rows or the fanout writer."""
        return _writer(rows, checkpoint).option("fanout-enabled", "true").toTable(self._table)

    def drop(self) -> None:
        """Drop the table with its files."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._table}")


class OurTarget:
    """One of our tables: scalable, or with a key a queue of 8 buckets."""

    def __init__(self, spark: SparkSession, folder: Path, key: str | None = None) -> None:
        self.name = f"{OURS} bucket={8 if key else -1}"
        self._spark = spark
        self._catalog = penstock.Catalog(str(folder / "penstock"))
        self._catalog.create_database("bench", if_not_exists=True)
        self._name = "bench.queue" if key else "bench.plain"
        self._options = {"bucket": "8", "bucket-key": key} if key else {}

    def create(self, rows: DataFrame) -> None:
        """Create the table."""
        self._catalog.create_table(self._name, rows.schema, options=self._options)

    def append(self, rows: DataFrame) -> None:
        """Load the table and commit the rows."""
        self.table().append(rows)

    def load(self) -> DataFrame:
        """Load the table and read its latest snapshot natively."""
        return self.table().to_spark(self._spark)

    def load_source(self, columns: str | None = None) -> DataFrame:
        """Read through ``format("penstock")``, only the columns of the schema if one is given."""
        reader = self._spark.read.format("penstock")
        reader = reader.schema(columns) if columns else reader
        return reader.load(self.table().location)

    def load_stream(self) -> DataFrame:
        """Read all of the latest snapshot, then what follows."""
        return self.table().read_stream(self._spark)

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start our sink, without compaction and expiration, which the peers' streams do not run."""
        options = {"write-only": "true"}
        return self.table().write_stream(rows, checkpoint=checkpoint, trigger={"availableNow": True}, options=options)

    def table(self) -> penstock.Table:
        """Load the table."""
        return self._catalog.load_table(self._name)

    def drop(self) -> None:
        """Drop the table with its files."""
        self._catalog.drop_table(self._name, if_exists=True)


class OurTimedTarget(OurTarget):
    """One of our tables with an event time, in milliseconds for Flink; with or without a watermark.

    Args:
        columns: read as a stream; None for all.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        key: str | None = None,
        *,
        has_watermark: bool,
        columns: Sequence[str] | None = None,
    ) -> None:
        super().__init__(spark, folder, key)
        self.name += " with a watermark" if has_watermark else " without a watermark"
        self._name += "_watermark" if has_watermark else "_timed"
        self._watermark = (TIME, "INTERVAL '5' SECOND") if has_watermark else None
        self._columns = columns

    def create(self, rows: DataFrame) -> None:
        """Create the table."""
        columns = [
            f"`{field.name}` {TIME_TYPE if field.name == TIME else field.dataType.simpleString()}"
            for field in rows.schema.fields
        ]
        self._catalog.create_table(self._name, ", ".join(columns), options=self._options, watermark=self._watermark)

    def load_stream(self) -> DataFrame:
        """Read the columns of all of the latest snapshot, then what follows; with the watermark, if there is one."""
        return self.table().read_stream(self._spark, columns=self._columns)


class OurDurableTarget(OurTarget):
    """One of our tables, with or without durable commits."""

    def __init__(self, spark: SparkSession, folder: Path, key: str | None = None, *, is_durable: bool) -> None:
        super().__init__(spark, folder, key)
        self.name += " durable" if is_durable else " not durable"
        self._name += "_durable" if is_durable else "_quick"
        self._options = {**self._options, "penstock.durable": str(is_durable).lower()}


class OurSourceTarget(OurTarget):
    """One of our tables, through ``format("penstock")``."""

    def __init__(self, spark: SparkSession, folder: Path, key: str | None = None) -> None:
        super().__init__(spark, folder, key)
        self.name += ' format("penstock")'
        self._name += "_source"

    def load_stream(self) -> DataFrame:
        """Open the source by path."""
        self._spark.dataSource.register(PenstockDataSource)  # in place of what refuses streams after attach
        return self._spark.readStream.format("penstock").load(self.table().location)

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start the sink by path."""
        self._spark.dataSource.register(PenstockDataSource)
        return _writer(rows, checkpoint).format("penstock").start(self.table().location)


class OurCatalogTarget(OurTarget):
    """One of our tables, through an attached catalog.

    Args:
        manager: of the files of checkpoints, a class of Spark; None for its default (docs/streaming.md).
    """

    def __init__(self, spark: SparkSession, folder: Path, manager: str | None = None) -> None:
        super().__init__(spark, folder)
        self.name += " toTable" + (f", {manager}" if manager else "")
        self._name += "_catalog"
        self._options = {"write-only": "true"}
        self._manager = manager
        penstock.attach(spark, folder / "penstock")

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start Spark's own way to write to a table."""
        if self._manager is None:
            return _writer(rows, checkpoint).toTable(f"penstock.{self._name}")
        self._spark.conf.set(FILE_MANAGER, f"{FILE_MANAGERS}.{self._manager}")
        try:
            return _writer(rows, checkpoint).toTable(f"penstock.{self._name}")
        finally:
            self._spark.conf.unset(FILE_MANAGER)


def peer_targets(spark: SparkSession, job: SparkJob, key: str) -> list[Target]:
    """Return the tables of the session's peer."""
    if job.peer == "delta":
        return [DeltaTarget(spark, Path(job.folder))]
    if job.peer == "iceberg":
        return [IcebergTarget(spark), IcebergTarget(spark, key)]
    return []


def _writer(rows: DataFrame, checkpoint: str) -> DataStreamWriter:
    return rows.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
