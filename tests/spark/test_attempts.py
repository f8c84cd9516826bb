"""A session of its own: tasks that Spark tries more than once, what it prints, and what it has no JARs for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from tests.spark.forked_python import forked_python

pytestmark = pytest.mark.cluster
SCRIPT = Path(__file__).with_name("session_script.py")


@pytest.fixture(scope="module")
def retried(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Run the script with three attempts a task; the first attempt of one task breaks half-way."""
    folder = tmp_path_factory.mktemp("retried")
    settings = [f"spark.sql.warehouse.dir={(folder / 'spark').as_uri()}", "spark.sql.shuffle.partitions=2"]
    settings += ["spark.sql.execution.arrow.maxRecordsPerBatch=10000", "spark.log.level=ERROR"]
    with forked_python(folder) as python:
        return subprocess.run(
            [sys.executable, str(SCRIPT), str(folder / "warehouse"), "local[2,3]", *settings],
            check=True,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYSPARK_PYTHON": python,
                "PYSPARK_DRIVER_PYTHON": python,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            cwd=folder,
            timeout=300,
        )


@pytest.mark.parametrize("entry_point", ["append", "hash", "save"])
def test_task_tried_again_writes_every_row_once_and_leaves_no_stray_file(
    retried: subprocess.CompletedProcess[str], entry_point: str
) -> None:
    assert json.loads(retried.stdout.splitlines()[-1])[entry_point] == {
        "snapshots": 1,
        "rows": 80_000,
        "distinct": 80_000,
        "ordered": True,
        "strays": [],
    }
    assert "the first attempt of this task breaks" in retried.stderr


def test_warning_of_a_misspelt_option_reaches_the_user_through_spark(
    retried: subprocess.CompletedProcess[str],
) -> None:
    [warning] = [line for line in retried.stderr.splitlines() if "OptionWarning" in line]
    assert warning.startswith("<penstock>:0: OptionWarning: table ")
    assert warning.endswith(
        "d.db/save, format('penstock'): option 'scan.snapshotid' is not known: did you mean 'scan.snapshot-id'?"
    )


def test_a_stream_has_moved_its_consumer_when_it_ends_and_the_script_ends_without_a_trace(
    retried: subprocess.CompletedProcess[str],
) -> None:
    assert json.loads(retried.stdout.splitlines()[-1])["position"] == [3]
    assert "CallbackClient" not in retried.stderr  # what Spark says whose listener is gone


def test_without_the_connector_of_kafka_the_error_names_the_package(
    retried: subprocess.CompletedProcess[str],
) -> None:
    message = json.loads(retried.stdout.splitlines()[-1])["kafka"]
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert message.startswith("table shop.kafka: Spark has no connector for Kafka: start the session with")
    assert f"config('spark.jars.packages', '{package}')" in message
    assert f"--packages {package}" in message
