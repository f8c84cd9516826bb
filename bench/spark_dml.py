"""Copy-on-write DELETE, UPDATE and MERGE: a few rows of one partition, and some rows of all partitions by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

import penstock
from bench.measure import Contender, race
from bench.result import DELTA, ICEBERG, OURS, Section

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.measure import Series
    from bench.spark_session import SparkJob

PARTITIONS: Final = 100
ATTACHED: Final = f"{OURS} catalog"
HANDLE: Final = f"{OURS} Table"
DELETE: Final = "DELETE 1 % of one partition of 100"
UPDATE: Final = "UPDATE 1 % of one partition of 100"
MERGE: Final = "MERGE 1 % by key"
_STATE: Final = "SELECT count(*), round(sum(v), 2), sum(id), count(DISTINCT s) FROM {table}"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Fill the tables of all contenders, then change them in turns: other rows each round, without new tables."""
    sides = _sides(spark, job)
    partitions = min(PARTITIONS, max(job.settings.rows // 200, 10))  # toys have fewer
    source = spark.range(0, job.settings.rows, 1, job.settings.cores).selectExpr(
        "id",
        "CAST(pmod(xxhash64(id), 1000) AS DOUBLE) AS v",
        "CAST(pmod(xxhash64(id, 2), 1000) AS INT) AS k",
        "concat('text ', id % 977) AS s",
        f"CAST(pmod(xxhash64(id, 1), {partitions}) AS INT) AS p",
    )
    source.write.parquet(f"{job.folder}/source")
    rows = spark.read.parquet(f"{job.folder}/source").repartition(partitions, "p")
    rows.createOrReplaceTempView("base")
    for side in sides:
        side.fill(spark)
    series: list[Series] = []
    for work, method in ((DELETE, "delete"), (UPDATE, "update"), (MERGE, "merge")):
        contenders = [
            Contender(
                name=side.name,
                before=lambda side=side: side.next_round(spark),
                run=partial(getattr(side, method), spark),
                verify=lambda side=side: spark.sql(_STATE.format(table=side.table)).collect()[0],
            )
            for side in sides
        ]
        rounds, warm_ups = job.settings.rounds, max(job.settings.warm_ups, 1)
        series += race(work, contenders, rounds=rounds, warm_ups=warm_ups, session=job.peer, rows=job.settings.rows)
    return Section(name="dml", title="DELETE, UPDATE and MERGE", series=tuple(series))


@dataclass(slots=True)
class _Side:
    """A table that is changed by SQL.

    Attributes:
        create: of the table, with ``{columns}``.
        round: number of this contender's rounds so far, which determines the changed rows.
    """

    name: str
    table: str
    create: str
    round: int = field(default=0)

    def fill(self, spark: SparkSession) -> None:
        spark.sql(self.create.format(table=self.table, columns="id BIGINT, v DOUBLE, k INT, s STRING, p INT"))
        spark.sql(f"INSERT INTO {self.table} SELECT id, v, k, s, p FROM base")  # noqa: S608 - our own

    def next_round(self, spark: SparkSession) -> None:
        """Choose other rows than before; untimed."""
        self.round += 1
        changed = spark.table("base").where(f"id % 100 = {self.round}").selectExpr("id", "v + 1 AS v", "k", "s", "p")
        spark.createDataFrame(changed.toArrow()).createOrReplaceTempView("changed")

    def delete(self, spark: SparkSession) -> None:
        spark.sql(f"DELETE FROM {self.table} WHERE {self.rows(0)}")  # noqa: S608 - our own

    def update(self, spark: SparkSession) -> None:
        spark.sql(f"UPDATE {self.table} SET v = v + 1 WHERE {self.rows(10)}")  # noqa: S608 - our own

    def rows(self, first: int) -> str:
        """Return the condition for 1 % of this round's partition."""
        return f"p = {self.round} AND k >= {first} AND k < {first + 10}"

    def merge(self, spark: SparkSession) -> None:
        spark.sql(
            f"MERGE INTO {self.table} t USING changed c ON t.id = c.id "
            "WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT *"
        )


@dataclass(slots=True)
class _Handle(_Side):
    """A table of ours that is changed through the methods of ``Table``; its rows are read through the catalog."""

    location: str = ""

    def delete(self, spark: SparkSession) -> None:  # noqa: ARG002 - as of the others
        self._open().delete(self.rows(0))

    def update(self, spark: SparkSession) -> None:  # noqa: ARG002 - as of the others
        self._open().update({"v": pc.field("v") + 1}, self.rows(10))

    def merge(self, spark: SparkSession) -> None:
        self._open().merge(
            spark.table("changed"),
            on="id",
            matched=penstock.MergeUpdate(set={"v": pc.field("source.v")}),
            not_matched=penstock.MergeInsert(),
        )

    def _open(self) -> penstock.Table:
        return penstock.Table.at(self.location)


def _sides(spark: SparkSession, job: SparkJob) -> list[_Side]:
    catalog = penstock.attach(spark, f"{job.folder}/penstock")
    catalog.create_database("b", if_not_exists=True)
    ours = "CREATE TABLE {table} ({columns}) PARTITIONED BY (p)"
    handle = _Handle(HANDLE, "penstock.b.handle", ours, location=f"{job.folder}/penstock/b.db/handle")
    sides = [_Side(ATTACHED, "penstock.b.attached", ours), handle]
    if job.peer == "delta":
        place = f"LOCATION '{job.folder}/delta' TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
        create = "CREATE TABLE {table} ({columns}) USING delta PARTITIONED BY (p) " + place
        sides.append(_Side(DELTA, "default.dml", create))
    if job.peer == "iceberg":
        modes = ", ".join(f"'write.{verb}.mode' = 'copy-on-write'" for verb in ("delete", "update", "merge"))
        create = f"CREATE TABLE {{table}} ({{columns}}) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({modes})"
        sides.append(_Side(ICEBERG, "iceberg.dml", create))
    return sides
