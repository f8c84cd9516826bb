"""Threads, sessions, and what is left in memory after queries."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import penstock
from penstock.spark.connector import gateway
from penstock.spark.connector.catalog import WarehouseCatalog

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table


@pytest.fixture(scope="module")
def numbers(catalog: Catalog) -> Table:
    table = catalog.create_table("d.numbers", "id INT, p INT", partition_by=["p"])
    table.append(
        pa.table({"id": pa.array(range(40), pa.int32()), "p": pa.array([n % 4 for n in range(40)], pa.int32())})
    )
    return table


def test_threads_query_and_write_beside_each_other(spark: SparkSession, numbers: Table, catalog: Catalog) -> None:
    target = catalog.create_table("d.from_threads", "id INT, p INT")

    def work(number: int) -> list[int]:
        frame = spark.table("penstock.d.numbers").where(f"p = {number % 4} AND id >= {number}")
        if number % 4 == 0:
            frame.writeTo("penstock.d.from_threads").append()
        return sorted(row.id for row in frame.collect())

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(12)))
    assert found == [[each for each in range(40) if each % 4 == number % 4 and each >= number] for number in range(12)]
    assert target.to_arrow().num_rows == sum(len(found[number]) for number in (0, 4, 8))
    assert target.snapshots().num_rows == 3


def test_one_frame_is_used_by_several_threads(spark: SparkSession, numbers: Table) -> None:
    frame = spark.table("penstock.d.numbers")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda p: frame.where(f"p = {p}").count(), range(4))) == [10] * 4


def test_objects_of_past_queries_go_away(spark: SparkSession, numbers: Table) -> None:
    pool = spark.sparkContext._gateway.gateway_property.pool  # type: ignore[union-attr] # Py4J has no types

    def collected() -> int:
        """Return how many Python objects the JVM holds when several collections in a row have freed none."""
        counts: list[int] = []
        while len(counts) < 4 or len(set(counts[-4:])) > 1:
            gc.collect()
            spark._jvm.java.lang.System.gc()
            spark._jvm.java.lang.System.runFinalization()
            time.sleep(0.1)  # the JVM tells Python in a thread of its own
            counts.append(len(pool.dict))
        return counts[-1]

    def ask(count: int) -> None:
        for number in range(count):
            spark.table("penstock.d.numbers").where(f"p = 1 AND id > {number}").collect()

    ask(5)
    before = collected()
    ask(30)
    # Spark keeps the plans of its latest executions.
    assert collected() < before + 20


def test_unused_sessions_go_away_with_their_catalogs(
    spark: SparkSession, numbers: Table, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catalogs() -> int:
        gc.collect()
        spark._jvm.java.lang.System.gc()
        spark._jvm.java.lang.System.runFinalization()
        return sum(isinstance(each, WarehouseCatalog) for each in gc.get_objects())

    monkeypatch.setattr(gateway, "_MAX_SESSIONS", 2)
    penstock.attach(spark, catalog, "shared")  # under a name that no other test attaches, which each session may use
    assert spark.table("shared.d.numbers").count() == 40
    before = catalogs()
    for number in range(20):
        session = spark.newSession()
        session.sql(f"CREATE TEMPORARY VIEW ours AS SELECT id FROM shared.d.numbers WHERE id > {number}")
        assert len(session.table("ours").collect()) == 39 - number
    del session
    spark.table("shared.d.numbers").count()  # so that the last one is not the active session
    # Python keeps the two sessions that were used last, and a thread that Spark started for a task the one that was
    # active then, until the thread ends after an idle minute.
    deadline = time.monotonic() + 75
    while (left := catalogs()) > before + 8 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left <= before + 8


def test_another_session_attaches_for_itself(spark: SparkSession, numbers: Table, catalog: Catalog) -> None:
    other = spark.newSession()
    penstock.attach(other, catalog, "mine")
    assert other.sql("SELECT count(*) FROM mine.d.numbers").collect() == [(40,)]
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|REQUIRES_SINGLE_PART_NAMESPACE|mine"):
        spark.table("mine.d.numbers")


SCRIPT = """
import sys
import penstock
import pyarrow as pa
from pyspark.sql import SparkSession

for number in range(2):
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    catalog = penstock.attach(spark, sys.argv[1])
    catalog.create_database("d", if_not_exists=True)
    if number == 0:
        catalog.create_table("d.t", "id BIGINT").append(pa.table({"id": [1, 2]}))
    spark.sql("INSERT INTO penstock.d.t VALUES (3)")
    assert spark.table("penstock.d.t").where("id > 1").count() == 2 + number
    spark.stop()
print("done")
"""


@pytest.mark.slow
def test_a_session_after_a_stopped_one_works(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "warehouse")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]
