"""Tasks that Spark tries more than once: every row exactly once, in order, and no file that nobody knows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("session_script.py")


@pytest.fixture(scope="module")
def retried(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Run the script with three attempts a task; the first attempt of one task breaks half-way."""
    folder = tmp_path_factory.mktemp("retried")
    settings = [f"spark.sql.warehouse.dir={(folder / 'spark').as_uri()}", "spark.sql.shuffle.partitions=2"]
    settings += ["spark.sql.execution.arrow.maxRecordsPerBatch=10000", "spark.log.level=ERROR"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(folder / "warehouse"), "local[2,3]", *settings],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
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
    assert "OptionWarning" in retried.stderr
    assert "'scan.snapshot-id'" in retried.stderr


def test_a_stream_has_moved_its_consumer_when_it_ends_and_the_script_ends_without_a_trace(
    retried: subprocess.CompletedProcess[str],
) -> None:
    assert json.loads(retried.stdout.splitlines()[-1])["position"] == [3]
    assert "CallbackClient" not in retried.stderr  # what Spark says whose listener is gone
