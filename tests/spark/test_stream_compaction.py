"""``Table.write_stream`` compacts the table that it writes to."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.stream_feed import COLUMNS, DONE, Feed, data_files, new_feed, numbers
from tests.support.garbage import needed_files, stored_files

from penstock.catalog.changes import SetOption
from penstock.spark.compact import stream as stream_compaction
from penstock.spark.compact.stream import StreamCompaction
from penstock.spark.stream.progress import ProgressListener, WriteProgress, last_write
from penstock.table.compact.background import LEASE_NAME
from penstock.table.lease import find_holder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

PATIENCE_SECONDS = 60
SCALABLE: dict[str, str] = {}
QUEUE = {"bucket": "1", "bucket-key": "k"}
KINDS = pytest.mark.parametrize(
    "options", [pytest.param(SCALABLE, id="scalable"), pytest.param(QUEUE, id="queue", marks=pytest.mark.slow)]
)
QUEUE_FIRST = pytest.mark.parametrize(
    "options", [pytest.param(SCALABLE, id="scalable", marks=pytest.mark.slow), pytest.param(QUEUE, id="queue")]
)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return new_feed(spark, tmp_path / "feed", *([7] * 12))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kinds(table: Table) -> list[str]:
    found: list[str] = table.snapshots()["commit_kind"].to_pylist()
    return found


def is_free(table: Table) -> bool:
    return find_holder(table._ref.file_io, table.location, LEASE_NAME) is None


@KINDS
def test_a_stream_merges_its_small_files_and_goes_on_until_all_are(
    catalog: Catalog, feed: Feed, tmp_path: Path, options: dict[str, str]
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=options)
    query = table.write_stream(feed.stream(), checkpoint=str(tmp_path / "checkpoint"), trigger=DONE)
    query.awaitTermination()
    assert is_free(table)
    assert "COMPACT" in kinds(table)
    assert kinds(table).count("APPEND") == 12
    assert table.files().num_rows < 8
    assert numbers(table) == list(range(84))
    if options:
        assert table.to_arrow(["n"])["n"].to_pylist() == list(range(84)), "rows stay in their order"
    users = {row["commit_user"] for row in table.snapshots().to_pylist() if row["commit_kind"] == "COMPACT"}
    assert users == {f"{query.id}-compact"}
    assert not table.inspect.fsck(all_snapshots=True).findings
    assert stored_files(table._ref) == needed_files(table._ref), "no merge left a file behind"


@QUEUE_FIRST
def test_stopping_the_query_stops_its_merges_at_once(
    catalog: Catalog, feed: Feed, tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held, may_go = threading.Event(), threading.Event()
    original = StreamCompaction._merge

    def slow(self: StreamCompaction, *arguments: object) -> object:
        held.set()
        may_go.wait(PATIENCE_SECONDS)
        return original(self, *arguments)  # type: ignore[arg-type] # the real ones come through

    monkeypatch.setattr(StreamCompaction, "_merge", slow)
    table = catalog.create_table("d.t", COLUMNS, options=options)
    query = table.write_stream(feed.stream(), checkpoint=str(tmp_path / "checkpoint"))
    assert held.wait(PATIENCE_SECONDS)
    query.processAllAvailable()
    assert kinds(table).count("APPEND") == 12, "a merge that takes its time holds nothing up"
    threading.Timer(0.3, may_go.set).start()
    query.stop()
    assert is_free(table)
    assert kinds(table) == ["APPEND"] * 12
    assert len(data_files(table)) == table.files().num_rows
    assert numbers(table) == list(range(84))


def test_a_stream_into_a_write_only_table_merges_nothing_until_it_is_one_no_more(
    catalog: Catalog, feed: Feed, tmp_path: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE | {"write-only": "true"})
    query = table.write_stream(feed.stream(), checkpoint=str(tmp_path / "checkpoint"))
    try:
        query.processAllAvailable()
        progress = last_write(query.id)
        assert progress is not None
        assert (progress.batch_id, progress.rows, progress.files, progress.compaction) == (11, 7, 1, None)
        catalog.alter_table("d.t", SetOption(key="write-only", value="false"))
        feed.add(7)
        query.processAllAvailable()
        until(lambda: "COMPACT" in kinds(table))
    finally:
        query.stop()
    assert kinds(table)[:13] == ["APPEND"] * 13
    assert is_free(table)


@pytest.mark.slow
def test_a_stream_that_replaces_all_rows_each_time_has_nothing_to_merge(
    catalog: Catalog, feed: Feed, tmp_path: Path
) -> None:
    table = catalog.create_table("d.t", "k INT, count BIGINT", options={"bucket": "1", "bucket-key": "k"})
    sdf = feed.stream().groupBy("k").count()
    query = table.write_stream(sdf, checkpoint=str(tmp_path / "checkpoint"), trigger=DONE, output_mode="complete")
    query.awaitTermination()
    assert set(kinds(table)) == {"OVERWRITE"}
    progress = last_write(query.id)
    assert progress is not None
    assert progress.compaction is None


@pytest.mark.slow
def test_a_restarted_stream_merges_what_an_earlier_one_left(catalog: Catalog, feed: Feed, tmp_path: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE | {"write-only": "true"})
    checkpoint = str(tmp_path / "checkpoint")
    table.write_stream(feed.stream(), checkpoint=checkpoint, trigger=DONE).awaitTermination()
    assert table.files().num_rows == 12
    feed.add(7)
    options = {"write-only": "false"}
    table.write_stream(feed.stream(), checkpoint=checkpoint, trigger=DONE, options=options).awaitTermination()
    assert "COMPACT" in kinds(table)
    assert table.files().num_rows < 5


def test_progress_says_what_was_written_and_what_waits_for_a_merge(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE)
    feed = new_feed(spark, tmp_path / "few", 7, 7, 7)
    told: list[WriteProgress] = []
    listener = ProgressListener(on_write=told.append)
    spark.streams.addListener(listener)
    try:
        query = table.write_stream(feed.stream(), checkpoint=str(tmp_path / "checkpoint"))
        query.processAllAvailable()

        def waiting() -> int:
            progress = last_write(query.id)
            assert progress is not None
            return 0 if progress.compaction is None else progress.compaction.waiting_files

        until(lambda: waiting() == 3)
        progress = last_write(query.id)
        assert progress is not None
        assert progress.compaction is not None
        assert (progress.table, progress.snapshot_id, progress.batch_id) == (table.name, 3, 2)
        assert (progress.rows, progress.files) == (7, 1)
        assert [(each.partition, each.files) for each in progress.compaction.waiting] == [("", 3)]
        until(lambda: any(each.batch_id == 2 for each in told))
        query.stop()
    finally:
        spark.streams.removeListener(listener)


def test_waiting_for_a_time_waits_for_no_longer(
    catalog: Catalog, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go = threading.Event()
    original = StreamCompaction._merge

    def slow(self: StreamCompaction, *arguments: object) -> object:
        may_go.wait(PATIENCE_SECONDS)
        return original(self, *arguments)  # type: ignore[arg-type] # the real ones come through

    monkeypatch.setattr(StreamCompaction, "_merge", slow)
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE)
    query = table.write_stream(feed.stream(), checkpoint=str(tmp_path / "checkpoint"), trigger=DONE)
    until(lambda: not query.isActive)
    assert query.awaitTermination(1) is False
    may_go.set()
    query.awaitTermination()
    assert "COMPACT" in kinds(table)
    assert query.awaitTermination(1) is True


def test_a_query_that_fails_says_so_and_leaves_no_merge_behind(
    spark: SparkSession, catalog: Catalog, feed: Feed, tmp_path: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE)
    fails = spark.udf.register("fails_late", lambda n: 1 // (80 - n), "bigint")
    sdf = feed.stream().withColumn("n", fails("n"))
    query = table.write_stream(sdf, checkpoint=str(tmp_path / "checkpoint"), trigger=DONE)
    with pytest.raises(StreamingQueryException, match=r"division|modulo"):
        query.awaitTermination()
    assert is_free(table)
    assert stored_files(table._ref) == needed_files(table._ref)


class Merger:
    def merge_at(self, _task: object, _ref: object) -> float:
        return time.monotonic()


def test_merges_let_waiting_tasks_go_first(spark: SparkSession) -> None:
    compaction = StreamCompaction(spark)
    assert not compaction._others_wait()
    tasks = 3 * spark.sparkContext.defaultParallelism
    job = threading.Thread(
        target=lambda: spark.sparkContext.parallelize(range(tasks), tasks).map(lambda _: time.sleep(0.3)).count()
    )
    job.start()
    until(compaction._others_wait)

    started = time.monotonic()
    compaction._merge(Merger(), None, None)  # type: ignore[arg-type] # they are handed on as they are
    assert time.monotonic() - started >= 0.3, "two waves of tasks were to come"
    job.join()


def test_merges_run_where_tasks_wait_all_the_time(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_compaction, "_MAX_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(StreamCompaction, "_others_wait", lambda _: True)
    StreamCompaction(spark)._merge(Merger(), None, None)  # type: ignore[arg-type] # it is handed on as it is
