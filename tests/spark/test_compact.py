"""Merges on a real session: the same rows in the same order, in one-task jobs that leave nothing when they fail."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from tests.support.garbage import needed_files, stored_files
from typer.testing import CliRunner

import penstock
from penstock.cli.main import app
from penstock.errors import StorageError, TableStoreError
from penstock.format.snapshot import CommitKind
from penstock.io.local import LocalFileIO
from penstock.spark.compact.job import SparkMerger
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.local import for_compaction
from penstock.table.compact.plan import plan_compaction
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

PATIENCE_SECONDS = 60
SHARED_BUCKETS = {"bucket": "2", "bucket-key": "k"}


class SlowFileIO(LocalFileIO):
    """Takes its time to open a data file."""

    __slots__ = ()

    def open_input(self, path: str) -> pa.NativeFile:
        time.sleep(0.3)
        return super().open_input(path)


class StuckFileIO(LocalFileIO):
    """Begins a data file, and then nothing more happens."""

    __slots__ = ()

    def open_output(self, path: str) -> pa.NativeFile:
        stream = super().open_output(path)
        time.sleep(2 * PATIENCE_SECONDS)
        return stream


class FailingFileIO(LocalFileIO):
    """Cannot open the file that ``bad``, beside the table, names."""

    __slots__ = ()

    def open_input(self, path: str) -> pa.NativeFile:
        if Path(path).parents[3].joinpath("bad").read_text() in path:
            raise StorageError("the disk is on fire", retryable=True)
        return super().open_input(path)


class SignedFileIO(LocalFileIO):
    """Leaves the number of its process in ``pids``, beside the warehouse's database."""

    __slots__ = ()

    def open_output(self, path: str) -> pa.NativeFile:
        Path(path).parents[3].joinpath("pids", str(os.getpid())).touch()
        return super().open_output(path)


# Spark's workers cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def make(folder: Path, options: dict[str, str], *, files: int, rows_each: int = 1) -> penstock.Table:
    """A table of one commit, whose files hold a row each or, with two buckets, ``rows_each`` rows two files."""
    catalog = penstock.Catalog(str(folder))
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, n BIGINT", options={**options, "write-only": "true"})
    messages: list[CommitMessage] = []
    for number in range(files):
        ids = range(number * rows_each, (number + 1) * rows_each)
        messages += write_arrow(table._ref, pa.table({"k": [each % 7 for each in ids], "n": list(ids)}))
    commit_append(open_committer(table._ref), tuple(messages))
    return table


def on(table: penstock.Table, file_io: LocalFileIO) -> TableRef:
    return replace(table._ref, file_io=file_io)


def tasks_of(table: penstock.Table) -> Any:
    return plan_compaction(table._ref, table._store).tasks


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("files", [200, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", [{}, SHARED_BUCKETS], ids=["scalable", "queue"])
def test_the_executors_merge_many_small_files(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], files: int
) -> None:
    table = make(tmp_path, options, files=files)
    before = table.to_arrow()
    assert table.files().num_rows == files
    result = table.compact(spark)
    assert sum(row.files_in for row in result.partitions) == files
    assert table.files().num_rows == (2 if options else 1)
    after = table.to_arrow()
    if options:
        assert after.equals(before)
    else:
        assert after.sort_by("n")["n"].equals(before.sort_by("n")["n"])
    assert table.inspect.fsck().findings == ()
    assert stored_files(table._ref) == needed_files(table._ref)


def test_merges_run_at_the_same_time_as_one_task_jobs_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, SHARED_BUCKETS, files=12, rows_each=20)
    context = spark.sparkContext
    context.setJobGroup("the caller's", "is left alone")
    context.setLocalProperty("spark.scheduler.pool", "mine")
    running: set[int] = set()
    most = [0]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.005):
            active = context.statusTracker().getActiveJobsIds()
            running.update(active)
            most[0] = max(most[0], len(active))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        merged = list(SparkMerger(spark=spark, ref=on(table, SlowFileIO())).execute(tasks_of(table)))
    finally:
        stop.set()
        watcher.join()
    assert [each.error for each in merged] == [None, None]
    assert (len(running), most[0]) == (2, 2)
    for job in running:
        info = context.statusTracker().getJobInfo(job)
        assert info is not None
        stages = [context.statusTracker().getStageInfo(stage) for stage in info.stageIds]
        assert [stage.numTasks for stage in stages if stage is not None] == [1]
    assert context.getLocalProperty("spark.scheduler.pool") == "mine"
    assert context.getLocalProperty("spark.jobGroup.id") == "the caller's"


def test_one_merge_after_the_other_is_done_by_the_same_worker(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, {"bucket": "5", "bucket-key": "k"}, files=6, rows_each=30)
    pids = tmp_path / "pids"
    pids.mkdir()
    merger = SparkMerger(spark=spark, ref=on(table, SignedFileIO()))
    merged = [each for task in tasks_of(table) for each in merger.execute([task])]
    assert [each.error for each in merged] == [None] * 4
    assert str(os.getpid()) not in (found := {path.name for path in pids.iterdir()})
    assert 1 <= len(found) <= spark.sparkContext.defaultParallelism


def test_a_cancelled_merge_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, {"bucket": "1", "bucket-key": "k"}, files=6)
    files = stored_files(table._ref)
    merger = SparkMerger(spark=spark, ref=on(table, StuckFileIO()))
    errors: list[Exception] = []

    def run() -> None:
        try:
            merger.merge(tasks_of(table)[0])
        except Exception as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: len(stored_files(table._ref)) > len(files))  # it has begun to write
    merger.cancel()
    thread.join(PATIENCE_SECONDS)
    assert [type(error) for error in errors] == [TableStoreError]
    assert "db.t: the Spark job that merges 6 files failed or was cancelled" in str(errors[0])
    assert stored_files(table._ref) == files
    time.sleep(1)
    assert stored_files(table._ref) == files, "nobody goes on writing"
    assert spark.range(3).count() == 3


def test_a_merge_that_fails_says_why_and_keeps_what_was_committed(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, SHARED_BUCKETS, files=12, rows_each=20)
    before = table.to_arrow()
    files = stored_files(table._ref)
    (tmp_path / "bad").write_text(tasks_of(table)[1].files[3].file_name)
    broken = penstock.Table(on(table, FailingFileIO()))
    with pytest.raises(StorageError, match="the disk is on fire"):
        broken.compact(spark)
    assert stored_files(table._ref) == files
    assert table.to_arrow().equals(before)
    (tmp_path / "bad").write_text("no such file")
    assert len(broken.compact(spark).snapshots) == 1
    assert table.to_arrow().equals(before)


def test_executors_compact_beside_a_stream_and_stop_at_once(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, SHARED_BUCKETS, files=6, rows_each=20)
    ref = for_compaction(table._ref)
    merger = SparkMerger(spark=spark, ref=ref)
    beside = BackgroundCompactor(
        ref, merger.merge_at, commit_user="q", max_tasks=1, idle_seconds=0.1, cancel=merger.cancel
    )
    beside.start()
    try:
        until(lambda: beside.state.committed_merges == 2)
        for number in range(1_000, 1_006):
            table.append(pa.table({"k": list(range(7)), "n": [number] * 7}))
            beside.wake()
        until(lambda: beside.state.committed_merges > 2)
    finally:
        beside.stop()
    kinds = table.snapshots()["commit_kind"].to_pylist()
    assert kinds.count(CommitKind.APPEND) == 7
    assert table.to_arrow().num_rows == 120 + 42
    assert stored_files(table._ref) == needed_files(table._ref)


def test_the_command_line_merges_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, SHARED_BUCKETS, files=6, rows_each=20)
    before = table.to_arrow()
    result = CliRunner().invoke(
        app, ["-w", str(tmp_path), "compact", "db.t", "--spark", "local[2]", "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert (row["files_in"], row["files_out"], row["partition"]) == (12, 2, None)
    assert table.to_arrow().equals(before)
    assert spark.range(3).count() == 3, "the session is not the command's to stop"
