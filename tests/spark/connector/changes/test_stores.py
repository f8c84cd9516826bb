"""UPDATE, MERGE and DELETE in Spark SQL of tables on S3, next to the same statements on tables of this disk."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from tests.spark.needs import skip_without

import penstock
from penstock.spark import staging_directory
from penstock.spark.versions.facts import PYTHON_SCANS, VARIANT
from penstock.table.dml import by_position, replacement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.s3_server import S3Bucket

    from penstock import Catalog, Table

PARTITIONED = "k INT, p STRING, v INT, t STRING"
QUEUE = {"bucket": "3", "bucket-key": "k"}
# Spark reads them without Hadoop's connector by Python workers only.
pytestmark = pytest.mark.usefixtures("_python_scans")


@pytest.fixture
def _python_scans() -> None:
    skip_without(PYTHON_SCANS)


class Pair:
    """A table on S3 and its twin on this disk, to both of which statements are applied."""

    def __init__(self, spark: SparkSession, stores: tuple[Catalog, Catalog], columns: str, **how: Any) -> None:
        self.spark = spark
        self.is_queue = "bucket" in how.get("options", {})
        self.name = f"t{uuid.uuid4().hex}"
        self.table, self.twin = (each.create_table(f"d.{self.name}", columns, **how) for each in stores)

    def append(self, rows: Any) -> None:
        for each in (self.table, self.twin):
            each.append(rows)

    def run(self, statement: str) -> None:
        """Run a statement, in which ``{t}`` is the table, on both, and compare the results."""
        for catalog in ("cloud", "penstock"):
            self.spark.sql(statement.format(t=f"{catalog}.d.{self.name}"))
        self.check()

    def check(self) -> None:
        found, expected = self.rows()
        assert found == expected
        kinds = [table.snapshots()["commit_kind"].to_pylist() for table in (self.table, self.twin)]
        assert kinds[0] == kinds[1]
        self.check_files()

    def rows(self) -> list[Any]:
        """Return the rows of both; those of a queue in their order in each bucket."""
        found = []
        for table in (self.table, self.twin):
            rows = table.to_arrow()
            queues: dict[str, list[Any]] = {}
            for row in rows.to_pylist():
                key = str((row["p"], row["k"])) if self.is_queue else ""
                queues.setdefault(key, []).append(row)
            found.append(queues if len(queues) > 1 else sorted(queues.get("", []), key=repr))
        return found

    def check_files(self) -> None:
        """Check that nothing is staged, and that each file belongs to a snapshot."""
        found = self.table.remove_orphan_files(older_than=dt.datetime.now(dt.UTC), allow_recent=True, dry_run=True)
        # Files by which the search itself asks the store for the time.
        assert [each.path for each in found.orphans if "/.clock." not in each.path] == []
        local = Path(self.spark.sparkContext._temp_dir)  # type: ignore[attr-defined] # of PySpark
        assert not list(local.glob("*/part-*"))
        assert not list(local.glob("*/_temporary"))


@pytest.fixture(scope="module")
def stores(spark: SparkSession, catalog: Catalog, s3_server: Any) -> tuple[Catalog, Catalog]:
    bucket: S3Bucket = s3_server.make_bucket()
    cloud = penstock.Catalog(f"{bucket.root}/warehouse", bucket.options)
    cloud.create_database("d")
    cloud.attach(spark, "cloud")
    return cloud, catalog


@pytest.fixture
def source(spark: SparkSession) -> None:
    rows = [(1, "b", 100), (3, "a", -1), (20, "z", 5), (21, None, 6), (22, "a", 7)]
    spark.createDataFrame(rows, "k INT, p STRING, v INT").createOrReplaceTempView("changes")


def row(n: int) -> dict[str, Any]:
    return {"k": n, "p": "ab"[n // 2 % 2] if n != 5 else None, "v": 10 * n, "t": None if n % 4 == 3 else f"t{n}"}


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize(
    "options", [pytest.param({}, id="scalable", marks=pytest.mark.slow), pytest.param(QUEUE, id="queue")]
)
def test_rows_change_as_on_a_disk(
    spark: SparkSession, stores: tuple[Catalog, Catalog], options: dict[str, str]
) -> None:
    pair = Pair(spark, stores, PARTITIONED, partition_by=["p"], options=options)
    for first in (0, 8):
        pair.append([row(n) for n in range(first, first + 8)])
    pair.run("UPDATE {t} SET v = v + 1, t = concat(t, '!') WHERE k % 3 = 1")
    pair.run("UPDATE {t} SET p = 'c', k = k + 1 WHERE k IN (SELECT id FROM range(2, 5))")
    pair.run(
        "MERGE INTO {t} t USING changes s ON t.k = s.k WHEN MATCHED AND s.v < 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = t.v + s.v "
        "WHEN NOT MATCHED THEN INSERT (k, p, v, t) VALUES (s.k, s.p, s.v, 'new') "
        "WHEN NOT MATCHED BY SOURCE AND t.k > 12 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND t.p = 'c' THEN UPDATE SET t = 'left'"
    )
    pair.run("DELETE FROM {t} WHERE k IN (SELECT k FROM changes WHERE v > 5) OR t LIKE '%!'")


TYPES = (
    "k INT, p STRING, b BOOLEAN, i1 TINYINT, i2 SMALLINT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), day DATE, "
    "t0 TIMESTAMP(0), t3 TIMESTAMP(3), t6 TIMESTAMP(6), z3 TIMESTAMP_LTZ(3), z6 TIMESTAMP_LTZ(6), c CHAR(4), "
    "s VARCHAR(9), x BYTES, a ARRAY<INT>, m MAP<STRING, DECIMAL(9, 2)>, r ROW<q INT, w ROW<e STRING>>"
)


def typed(n: int) -> dict[str, Any]:
    text = "1500-03-01T01:02:03.123456" if n % 2 else "2026-11-01T09:30:00.999999"
    moment = dt.datetime.fromisoformat(text)
    return {
        "k": n, "p": "é/=%"[: n % 5], "b": bool(n % 2), "i1": -n, "i2": n * 100, "l": n << 40, "f": n / 4,
        "d": float("nan") if n % 3 == 0 else -0.0,
        "n": Decimal(f"-{n}2345678901234.567"), "day": moment.date(), "t0": moment.replace(microsecond=0),
        "t3": moment.replace(microsecond=123000), "t6": moment, "z3": moment.replace(microsecond=123000, tzinfo=dt.UTC),
        "z6": moment.replace(tzinfo=dt.UTC), "c": f"c{n}  ", "s": "x" * n, "x": bytes([n, 0]), "a": [n, None],
        "m": [("key", Decimal("1.25"))], "r": {"q": None, "w": {"e": str(n)}},
    }  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "k"}], ids=["scalable", "queue"])
def test_all_types_return_as_they_were(
    spark: SparkSession, stores: tuple[Catalog, Catalog], options: dict[str, str]
) -> None:
    pair = Pair(spark, stores, TYPES, partition_by=["p"], options=options)
    empty = dict.fromkeys(typed(0)) | {"k": 8}
    pair.append([*(typed(n) for n in range(8)), empty])
    before = [repr(each) for each in sorted(pair.table.to_arrow().to_pylist(), key=lambda row: row["k"])]
    for catalog in ("cloud", "penstock"):
        spark.sql(f"UPDATE {catalog}.d.{pair.name} SET i1 = i1 WHERE abs(k) >= 0")
    after = [
        [repr(each) for each in sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])]
        for table in (pair.table, pair.twin)
    ]
    assert after == [before, before]
    pair.check_files()


def test_variants_return_as_they_were(spark: SparkSession, stores: tuple[Catalog, Catalog]) -> None:
    skip_without(VARIANT)
    pair = Pair(spark, stores, "k INT, j VARIANT")
    pair.run(
        "INSERT INTO {t} SELECT id, "
        """IF(id = 2, NULL, parse_json('{{"a": [1, null, "' || id || '"]}}')) FROM range(4)"""
    )
    pair.run("UPDATE {t} SET k = k + 10 WHERE abs(k) = 1")
    texts = [row.j for row in spark.sql(f"SELECT to_json(j) AS j FROM cloud.d.{pair.name} ORDER BY k").collect()]
    assert texts == ['{"a":[1,null,"0"]}', None, '{"a":[1,null,"3"]}', '{"a":[1,null,"1"]}']


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, stores: tuple[Catalog, Catalog]) -> None:
    for options in ({}, QUEUE):
        pair = Pair(spark, stores, PARTITIONED, partition_by=["p"], options=options)
        pair.append([row(n) for n in range(8)])
        latest = pair.table.latest_snapshot()
        with pytest.raises((PySparkException, Py4JJavaError), match="no luck"):
            spark.sql(f"UPDATE cloud.d.{pair.name} SET t = raise_error('no luck') WHERE v % 60 = 50")
        assert pair.table.latest_snapshot() == latest
        pair.check()


def test_appends_beside_a_change_conflict_only_where_it_read(
    spark: SparkSession, stores: tuple[Catalog, Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = replacement.commit_changes
    for options, module in (({}, replacement), (QUEUE, by_position)):
        pair = Pair(spark, stores, PARTITIONED, partition_by=["p"], options=options)
        pair.append([row(n) for n in range(8)])

        def appending(table: Table, p: str, module: Any = module) -> None:
            def appended(*args: Any) -> Any:
                table.append([row(100) | {"p": p}])
                return commit(*args)

            monkeypatch.setattr(module, "commit_changes", appended)

        appending(pair.table, "c")
        statement = f"UPDATE cloud.d.{pair.name} SET v = -v WHERE p = 'a' AND v % 20 = 0"
        spark.sql(statement)
        appending(pair.table, "a")
        with pytest.raises(PySparkException, match="others committed after snapshot"):
            spark.sql(statement)
        monkeypatch.undo()
        values = [(each["p"], each["v"]) for each in pair.table.to_arrow().to_pylist()]
        assert sorted(values, key=repr) == sorted(
            [
                ("a", 0),
                ("a", 10),
                ("a", -40),
                (None, 50),
                ("b", 20),
                ("b", 30),
                ("b", 60),
                ("b", 70),
                ("a", 1000),
                ("c", 1000),
            ],
            key=repr,
        )
        pair.check_files()


def test_a_cluster_without_the_connector_is_refused(
    spark: SparkSession, stores: tuple[Catalog, Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(spark, stores, PARTITIONED)
    pair.append([row(1)])
    monkeypatch.setattr(staging_directory, "is_on_this_machine", lambda _: False)
    for statement, cure in {
        "UPDATE {} SET v = 1 WHERE abs(k) = 1": "Table.update",
        "DELETE FROM {} WHERE k IN (SELECT id FROM range(5))": "Table.delete",
        "MERGE INTO {} USING (SELECT 1 AS i) ON k = i WHEN MATCHED THEN DELETE": "Table.merge",
    }.items():
        reason = f"its files are on S3, and there is no hadoop-aws on Spark's class path, .* use {cure}"
        with pytest.raises(PySparkException, match=reason):
            spark.sql(statement.format(f"cloud.d.{pair.name}"))
    spark.sql(f"DELETE FROM cloud.d.{pair.name} WHERE k = 1")
    assert pair.table.to_arrow().num_rows == 0
