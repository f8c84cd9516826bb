"""The catalog in the sessions that Spark makes by itself, and what the gateway keeps of streams."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from tests.quick_spark import quick_environment
from tests.spark.needs import needs

import penstock
from penstock.spark.versions.facts import PYTHON_SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Catalog:
    catalog = penstock.attach(spark, tmp_path / "warehouse")
    catalog.create_database("d")
    return catalog


def make(catalog: Catalog, name: str, snapshots: int) -> Table:
    table = catalog.create_table(f"d.{name}", "n BIGINT", options={"bucket": "1", "write-only": "true"})
    for number in range(snapshots):
        table.append(pa.table({"n": pa.array([number], pa.int64())}))
    return table


def test_the_session_of_a_batch_has_the_catalog(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    make(catalog, "a", 3)
    make(catalog, "b", 2)
    found: list[int] = []

    def batch(rows: DataFrame, _: int) -> None:
        session = rows.sparkSession
        rows.createOrReplaceTempView("rows")
        found.append(session.sql("SELECT * FROM rows JOIN penstock.d.b USING (n)").count())
        session.sql("INSERT INTO penstock.d.b SELECT n FROM rows WHERE n = 2")

    stream = spark.readStream.table("penstock.d.a").writeStream.foreachBatch(batch)
    assert (
        stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination(60)
    )
    assert found == [2]
    assert spark.table("penstock.d.b").count() == 3


@needs(PYTHON_SOURCES)
def test_attach_registers_the_format(spark: SparkSession, catalog: Catalog) -> None:
    table = make(catalog, "a", 1)
    other = spark.newSession()
    penstock.attach(other, catalog.warehouse)
    assert other.read.format("penstock").load(table.location).count() == 1


def kept() -> tuple[int, int]:
    """Python objects that the JVM may call, and objects of the JVM that Python may call, after garbage collections."""
    gateway: Any = SparkContext._gateway
    server = gateway.java_gateway_server
    last = (-1, -1)
    for _ in range(20):
        gc.collect()
        gateway.jvm.System.gc()
        time.sleep(0.3)
        now = (len(gateway.gateway_property.pool.dict), int(server.getGateway().getBindings().size()))
        if now == last:
            break
        last = now
    return now


@pytest.mark.parametrize(
    ("batches", "sink"),
    [
        (35, "noop"),
        pytest.param(35, "to_table", marks=pytest.mark.slow),
        pytest.param(10_000, "noop", marks=pytest.mark.slow),
    ],
)
@pytest.mark.timeout(3_000)
def test_micro_batches_leave_nothing_in_the_gateway(
    batches: int, sink: str, spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    make(catalog, "a", batches)
    make(catalog, "b", 0)
    options = {"scan.mode": "earliest", "maxFilesPerTrigger": "1"}

    def run(name: str) -> int:
        writer = spark.readStream.options(**options).table("penstock.d.a").writeStream
        writer = writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True)
        query = writer.toTable("penstock.d.b") if sink == "to_table" else writer.format(sink).start()
        assert query.awaitTermination(3_000)
        last = query.lastProgress
        assert last is not None
        return int(last["batchId"]) + 1

    options["penstock.scan.bounded.snapshot-id"] = "5"
    assert run("few") == 5
    before = kept()
    del options["penstock.scan.bounded.snapshot-id"]
    assert run("many") == batches
    after = kept()
    # One object a batch would be thirty.
    assert after[0] - before[0] < 20, (before, after)
    assert after[1] - before[1] < 25, (before, after)


def test_queries_of_several_threads_run_at_once(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog, "a", 10)
    found: dict[int, list[int]] = {}

    def run(number: int) -> None:
        rows: list[int] = []
        frame = spark.readStream.options(**{"scan.mode": "earliest", "maxFilesPerTrigger": "3"}).table("penstock.d.a")
        writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(row.n for row in batch.collect()))
        query = writer.option("checkpointLocation", str(tmp_path / str(number))).trigger(availableNow=True).start()
        assert query.awaitTermination(100)
        found[number] = rows

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {key: list(range(10)) for key in range(4)}
    assert table.to_arrow().num_rows == 10


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_second_session_of_a_program_goes_on_without_a_choice_of_python(tmp_path: Path) -> None:
    script = Path(__file__).with_name("two_sessions_script.py")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    environment = {**kept, **quick_environment(), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, str(script), str(tmp_path / "warehouse"), str(tmp_path / "checkpoint")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "[1, 1]"
