"""Selective scans through each contender's catalog or path: whole query times, including planning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final

import penstock
from bench.measure import Contender, race
from bench.paimon_spark import open_other_spark
from bench.result import DELTA, ICEBERG, OURS, PARQUET, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from bench.measure import Series
    from bench.spark_session import SparkJob

PARTITIONS: Final = 100
FILES: Final = 50
ATTACHED: Final = f"{OURS} catalog"
ONE_PARTITION: Final = "one partition of 100"
ONE_KEY: Final = "one key of a z-ordered table"
ONE_SORTED_KEY: Final = "one key of a sorted table"
ONE_BUCKET: Final = "one bucket"
TIME_RANGE: Final = "1 % time range"
JOIN: Final = "join with a filtered dimension"
APPEND: Final = "append to 30 partitions"
APPENDED_PARTITIONS: Final = 30
FIRST_ROW: Final = "first row of many files"
# Sums of doubles differ in their last digits.
_SUMS: Final = ("round(sum(v), 2)", "count(s)", "sum(k)")


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Fill the tables of all contenders, then query in turns."""
    rows = job.settings.sort_rows
    penstock.attach(spark, f"{job.folder}/penstock").create_database("b", if_not_exists=True)
    source = spark.range(0, rows, 1, job.settings.cores).selectExpr(
        "id",
        "pmod(xxhash64(id), 10000) AS k",
        "pmod(xxhash64(id, 1), 10000) AS w",
        "CAST(id AS DOUBLE) / 7 AS v",
        "timestamp_micros(id * 1000000) AS t",
        "concat('text ', id % 977) AS s",
        f"CAST(id % {PARTITIONS} AS INT) AS p",
    )
    source.write.parquet(f"{job.folder}/source")
    source = spark.read.parquet(f"{job.folder}/source")
    everybody = _sides(spark, job)
    works = {
        ONE_PARTITION: ("p", "p = 42"),
        ONE_KEY: ("z", "k = 4242"),
        ONE_SORTED_KEY: ("k", "k = 4242"),
        ONE_BUCKET: ("b", "k = 4242"),
        TIME_RANGE: ("t", f"t >= timestamp_seconds({rows // 2}) AND t < timestamp_seconds({rows // 2 + rows // 100})"),
    }
    for side in everybody.values():
        for layout in ("p", "z", "k", "b", "t"):
            side.fill(layout, source)
    series: list[Series] = []
    with open_other_spark(job) as others:
        for other in others:
            other.fill(f"{job.folder}/source", ("p",))
        for work, (layout, condition) in works.items():
            beside = [other.sums(_SUMS, condition) for other in others] if layout == "p" else []
            readers = {name: side.reader(layout, condition) for name, side in everybody.items()}
            series += _race(job, work, readers, beside)
    spark.range(PARTITIONS).selectExpr("CAST(id AS INT) AS p", "concat('name ', id) AS n").createOrReplaceTempView(
        "dim"
    )
    series += _race(job, JOIN, {name: side.joiner() for name, side in everybody.items()})
    return Section(name="select", title="Selective scans from Spark", series=tuple(series))


def measure_append(spark: SparkSession, job: SparkJob) -> Section:
    """Append the same rows to partitioned tables."""
    penstock.attach(spark, f"{job.folder}/penstock").create_database("b", if_not_exists=True)
    everybody = _sides(spark, job)
    source = spark.read.parquet(job.arguments["path"])
    source = source.selectExpr("*", f"CAST(product_id % {APPENDED_PARTITIONS} AS INT) AS p")
    contenders = [
        Contender(
            name=name,
            before=side.drop,
            run=lambda side=side: side.fill("p", source),
            verify=lambda side=side: side.load("p").count(),
            after=side.drop,
        )
        for name, side in everybody.items()
    ]
    rounds, warm_ups = job.settings.rounds, job.settings.warm_ups
    series = race(APPEND, contenders, rounds=rounds, warm_ups=warm_ups, session=job.peer)
    return Section(name="append-partitioned", title="Append to partitions from Spark", series=series)


def measure_first_row(spark: SparkSession, job: SparkJob) -> Section:
    """Select one row of tables with many small files, each in its own partition."""
    penstock.attach(spark, f"{job.folder}/penstock").create_database("b", if_not_exists=True)
    files = job.settings.live_files[0]
    rows = spark.range(files).selectExpr("id", "CAST(id AS INT) AS p").repartition(job.settings.cores, "p")
    everybody = _sides(spark, job)
    for side in everybody.values():
        side.fill("p", rows)
    contenders = [
        Contender(
            name=name,
            run=lambda side=side: side.load("p").limit(1).collect(),
            verify=lambda side=side: side.load("p").count(),
        )
        for name, side in everybody.items()
    ]
    rounds, warm_ups = job.settings.rounds, 2 * job.settings.warm_ups
    series = race(FIRST_ROW, contenders, rounds=rounds, warm_ups=warm_ups, session=job.peer)
    return Section(name="first-row", title="First row of many files", series=series)


def _race(
    job: SparkJob, work: str, runs: dict[str, Callable[[], DataFrame]], beside: Sequence[Contender] = ()
) -> tuple[Series, ...]:
    last: dict[str, object] = {}

    def contender(name: str, make: Callable[[], DataFrame]) -> Contender:
        def run() -> None:
            (row,) = make().collect()
            last[name] = tuple(row)

        return Contender(name=name, run=run, verify=lambda: last[name])

    contenders = [*(contender(name, make) for name, make in runs.items()), *beside]
    rounds, warm_ups = 3 * job.settings.rounds, 2 * job.settings.warm_ups
    return race(work, contenders, rounds=rounds, warm_ups=warm_ups, session=job.peer)


def _sides(spark: SparkSession, job: SparkJob) -> dict[str, _Side]:
    found: dict[str, _Side] = {ATTACHED: _Ours(spark), PARQUET: _ByPath(spark, Path(job.folder), "parquet")}
    if job.peer == "delta":
        found[DELTA] = _Delta(spark, Path(job.folder), "delta")
    if job.peer == "iceberg":
        found[ICEBERG] = _Iceberg(spark)
    return found


class _Side(ABC):
    """Tables by layout: ``p`` partitioned, ``z`` z-ordered, ``k`` by key, ``b`` bucketed, ``t`` in time order."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @abstractmethod
    def load(self, layout: str) -> DataFrame:
        """Return a table's rows."""

    @abstractmethod
    def fill(self, layout: str, rows: DataFrame) -> None:
        """Create a table with the rows."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the partitioned table."""

    def reader(self, layout: str, condition: str) -> Callable[[], DataFrame]:
        """Return a query for some of the rows."""
        return lambda: self.load(layout).where(condition).selectExpr(*_SUMS)

    def joiner(self) -> Callable[[], DataFrame]:
        """Return a query for the rows of one partition, selected through a join with a dimension."""

        def make() -> DataFrame:
            dimension = self._spark.table("dim").where("n = 'name 42'").hint("broadcast")
            return self.load("p").join(dimension, "p").selectExpr(*_SUMS)

        return make


def _arranged(layout: str, rows: DataFrame) -> DataFrame:
    """Distribute rows over about as many files as those of all others."""
    if layout in {"t", "k"}:
        return rows.repartitionByRange(FILES, layout)
    return rows.repartition(FILES) if layout != "p" else rows


class _Ours(_Side):
    def load(self, layout: str) -> DataFrame:
        return self._spark.table(f"penstock.b.{layout}")

    def fill(self, layout: str, rows: DataFrame) -> None:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields)
        # As Iceberg does by default: each bucket is written by one task. Otherwise each of the 50 tasks writes 8 files.
        hashed = "CLUSTERED BY (k) INTO 8 BUCKETS TBLPROPERTIES ('partition.sink-strategy' = 'hash')"
        clauses = {"p": "PARTITIONED BY (p)", "b": hashed}.get(layout, "")
        self._spark.sql(f"CREATE TABLE penstock.b.{layout} ({columns}) {clauses}")
        _arranged(layout, rows).writeTo(f"penstock.b.{layout}").append()
        if layout == "z":
            size = _size(self._spark, "penstock.b.z")
            options = f"target-file-size={max(size // FILES, 1)} b"
            self._spark.sql(
                "CALL penstock.sys.compact(table => 'b.z', order_strategy => 'zorder', order_by => 'k,w', "
                f"options => '{options}')"
            )

    def drop(self) -> None:
        self._spark.sql("DROP TABLE IF EXISTS penstock.b.p")


class _ByPath(_Side):
    """Tables that are directories of one format."""

    def __init__(self, spark: SparkSession, folder: Path, name: str) -> None:
        super().__init__(spark)
        self._root = folder / f"select-{name}"
        self._format = name

    def load(self, layout: str) -> DataFrame:
        return self._spark.read.format(self._format).load(f"{self._root}/{layout}")

    def fill(self, layout: str, rows: DataFrame) -> None:
        writer = _arranged(layout, rows).write.format(self._format).mode("overwrite")
        (writer.partitionBy("p") if layout == "p" else writer).save(f"{self._root}/{layout}")

    def drop(self) -> None:
        path = self._spark._jvm.org.apache.hadoop.fs.Path(f"{self._root}/p")  # noqa: SLF001 - as Spark deletes
        path.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration()).delete(path, True)  # noqa: FBT003, SLF001


class _Delta(_ByPath):
    def fill(self, layout: str, rows: DataFrame) -> None:
        super().fill(layout, rows)
        if layout == "z":
            path = f"{self._root}/z"
            size = sum(file.stat().st_size for file in Path(path).glob("*.parquet"))
            self._spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size // FILES))
            self._spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (k, w)")


class _Iceberg(_Side):
    """Iceberg tables; z-ordering needs an extension that does not support Spark 4.2, so rows are sorted by key."""

    def load(self, layout: str) -> DataFrame:
        return self._spark.table(f"iceberg.select_{layout}")

    def fill(self, layout: str, rows: DataFrame) -> None:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields)
        by = {"p": "PARTITIONED BY (p)", "b": "PARTITIONED BY (bucket(8, k))"}.get(layout, "")
        self._spark.sql(f"CREATE TABLE iceberg.select_{layout} ({columns}) USING iceberg {by}")
        arranged = rows.repartitionByRange(FILES, "k") if layout == "z" else _arranged(layout, rows)
        arranged.writeTo(f"iceberg.select_{layout}").append()

    def drop(self) -> None:
        self._spark.sql("DROP TABLE IF EXISTS iceberg.select_p")


def _size(spark: SparkSession, table: str) -> int:
    return int(spark.sql(f"SELECT sum(file_size_in_bytes) FROM {table}.files").collect()[0][0])  # noqa: S608 - our own
