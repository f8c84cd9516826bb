"""Workers that do not share the table's storage: every way to write fails and says so, and no row is lost."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.quick_spark import quick_environment
from tests.spark.cluster_script import ROWS

from penstock import Catalog, StorageError, Table
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.spark.shared_storage import check_files_arrived, mark_storage
from penstock.spark.write.task import WriteTask, write_batches

SCRIPT = Path(__file__).with_name("cluster_script.py")
BATCH = pa.record_batch({"id": pa.array([1, 2], pa.int64())})
# Starts the first executor where another, empty file system lies over the warehouse.
JAVA = """#!/bin/sh
case " $* " in
*" --executor-id 0 "*) exec unshare -m sh -c 'mount -t tmpfs tmpfs {warehouse} && exec {java} "$@"' sh "$@" ;;
*) exec {java} "$@" ;;
esac
"""


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("d.t", "id BIGINT")


def files_below(directory: str | Path) -> list[Path]:
    return sorted(Path(directory).rglob("data-*"))


def test_a_task_that_finds_no_table_writes_nothing(table: Table, tmp_path: Path) -> None:
    mark = mark_storage(table._ref)
    elsewhere = replace(table._ref, location=f"{tmp_path}/elsewhere/d.db/t", file_io=LocalFileIO())
    outcome = WriteTask(ref=elsewhere, job_id="job", storage=mark).run([BATCH])
    assert isinstance(outcome.error, StorageError)
    assert "does not share the table's storage" in str(outcome.error)
    assert "there is no table at this path" in str(outcome.error)
    assert not Path(elsewhere.location).exists()
    assert WriteTask(ref=table._ref, job_id="job", storage=mark).run([BATCH]).error is None


def test_a_task_that_finds_another_table_writes_nothing(catalog: Catalog, table: Table) -> None:
    other = catalog.create_table("d.other", "id BIGINT")
    task = WriteTask(
        ref=replace(table._ref, location=other.location, file_io=LocalFileIO()),
        job_id="job",
        storage=mark_storage(table._ref),
    )
    outcome = task.run([BATCH])
    assert outcome.messages == ()
    assert "there is another table at this path" in str(outcome.error)
    assert files_below(other.location) == []


def test_files_written_beside_a_copy_of_the_table_are_not_committed(table: Table, tmp_path: Path) -> None:
    copy = shutil.copytree(table.location, tmp_path / "copy")
    there = WriteTask(
        ref=replace(table._ref, location=str(copy), file_io=LocalFileIO()),
        job_id="job",
        storage=mark_storage(table._ref),
    )
    outcome = there.run([BATCH])
    assert outcome.error is None
    here = write_batches(table._ref, [BATCH], job_id="job")
    assert len(files_below(table.location)) == 1
    check_files_arrived(table._ref, here)
    with pytest.raises(StorageError, match="no such file, so the worker does not share"):
        check_files_arrived(table._ref, [*here, *outcome.messages])
    assert files_below(table.location) == []


def test_storage_that_is_the_same_everywhere_is_not_looked_at(table: Table) -> None:
    ref = replace(table._ref, file_io=MemoryFileIO("nowhere"), location="memory://nowhere/t")
    messages = write_batches(table._ref, [BATCH], job_id="job")
    assert mark_storage(ref) is None
    check_files_arrived(ref, messages)


def may_unshare() -> bool:
    try:
        return subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what each way to write does on the cluster."""
    return run_on_cluster(tmp_path_factory.mktemp("cluster"), "native", "python", "compact", "stream")


def run_on_cluster(folder: Path, *ways: str) -> dict[str, dict[str, Any]]:
    """Run the script on two executors, the first of which sees an empty directory in the warehouse's place."""
    if not may_unshare():
        pytest.skip("mount namespaces are not allowed here")
    warehouse, binary = folder / "warehouse", folder / "java-home" / "bin" / "java"
    warehouse.mkdir()
    binary.parent.mkdir(parents=True)
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    binary.write_text(JAVA.format(warehouse=warehouse, java=java))
    binary.chmod(0o755)
    environment = {
        **os.environ,
        **quick_environment(),
        "JAVA_HOME": str(binary.parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(warehouse), *ways],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.cluster
@pytest.mark.parametrize("way", ["python", pytest.param("format", marks=pytest.mark.slow), "compact"])
def test_a_worker_without_the_table_fails_the_job_with_one_clear_error(
    way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ways = run_on_cluster(tmp_path, way) if way == "format" else request.getfixturevalue("cluster")
    found = ways[way]
    assert "does not share the table's storage" in found["error"]
    assert "at the same path" in found["error"]
    assert found["findings"] == []
    assert found["rows"] == (30 if way == "compact" else 0)


@pytest.mark.cluster
@pytest.mark.parametrize("way", ["native", "stream"])
def test_rows_that_spark_wrote_where_the_driver_does_not_see_them_fail_the_append(
    cluster: dict[str, dict[str, Any]], way: str
) -> None:
    found = cluster[way]
    assert f"{ROWS} rows were written for this append, but the driver finds files with" in found["error"]
    assert found["findings"] == []
    assert found["rows"] == 0
