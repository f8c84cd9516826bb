"""``Table.write_stream``: every row once, and every refusal before a byte is written."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.stream_feed import (
    COLUMNS,
    DONE,
    Feed,
    commits,
    data_files,
    forget_last_batch,
    live_files,
    new_feed,
    numbers,
)

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn, DropColumn
from penstock.errors import (
    CheckpointError,
    InvalidOptionError,
    LeaseHeldError,
    NotFoundError,
    OptionWarning,
    SchemaMismatchError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.spark.stream import micro_batches, row_writer
from penstock.spark.versions.facts import INSTALLED
from penstock.table.lease import LeaseKeeper, acquire
from penstock.table.stream_sink.committer import BATCH_DIGEST, StreamCommitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

QUEUE = {"bucket": "2", "bucket-key": "k"}


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return new_feed(spark, tmp_path / "feed", 10, 20, 30)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def run(table: Table, feed: Feed, checkpoint: Path, **arguments: Any) -> StreamingQuery:
    """Run the query over everything that is there."""
    query = table.write_stream(feed.stream(), checkpoint=str(checkpoint), trigger=DONE, **arguments)
    query.awaitTermination()
    return query


def fail(table: Table, feed: Feed, checkpoint: Path, text: str, **arguments: Any) -> None:
    """Run the query; its first batch is refused with that text, and the table stays as it was."""
    before = (commits(table), data_files(table))
    query = table.write_stream(feed.stream(), checkpoint=str(checkpoint), trigger=DONE, **arguments)
    with pytest.raises(StreamingQueryException, match=text):
        query.awaitTermination()
    assert (commits(table), data_files(table)) == before


@pytest.mark.parametrize("where", ["driver", "tasks"])
@pytest.mark.parametrize("options", [{}, QUEUE], ids=["scalable", "queue"])
def test_each_micro_batch_is_one_snapshot_and_a_restart_goes_on(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, where: str, options: dict[str, str]
) -> None:
    if where == "tasks":
        monkeypatch.setattr(row_writer, "_MAX_ROWS", 3)
    table = catalog.create_table("d.t", COLUMNS, options=options)
    query = run(table, feed, checkpoint)
    assert commits(table) == [(1, "APPEND", 10), (2, "APPEND", 20), (3, "APPEND", 30)]
    feed.add(5)
    assert run(table, feed, checkpoint).id == query.id
    assert commits(table)[3:] == [(4, "APPEND", 5)]
    assert numbers(table) == list(range(65))
    for batch_id in range(4):
        snapshot = Table.at(table.location)._store.load_snapshot(batch_id + 1)
        assert (snapshot.commit_user, snapshot.commit_identifier) == (query.id, batch_id)
        assert len(dict(snapshot.properties)[BATCH_DIGEST]) == 32
    assert data_files(table) == live_files(table)
    assert not list(Path(table.location).glob(".penstock-*"))
    assert sorted(path.name for path in (checkpoint / "penstock").iterdir()) == ["base-2", "base-3", "table"]


def test_order_is_kept_in_every_bucket(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE)
    run(table, feed, checkpoint)
    for k in range(5):
        found = table.to_arrow(["n"], f"k = {k}")["n"].to_pylist()
        assert found == sorted(found)
        assert len(found) == 12


@pytest.fixture(params=["FileContext", "FileSystem"])
def manager(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """How Spark writes the files of checkpoints: as usual, and in the cheaper way that docs/streaming.md tells of."""
    key = "spark.sql.streaming.checkpointFileManagerClass"
    package = "checkpointing." if INSTALLED >= (4, 1) else ""
    spark.conf.set(key, f"org.apache.spark.sql.execution.streaming.{package}{request.param}BasedCheckpointFileManager")
    yield
    spark.conf.unset(key)


@pytest.mark.usefixtures("manager")
def test_a_batch_that_spark_forgot_is_found_again_and_nothing_is_written(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"write-only": "true"})
    run(table, feed, checkpoint)
    table.append(table.to_arrow().slice(0, 1))
    before = (commits(table), data_files(table))
    forget_last_batch(checkpoint)
    query = run(table, feed, checkpoint)
    assert query.lastProgress["batchId"] == 2
    assert (commits(table), data_files(table)) == before
    feed.add(5)
    run(table, feed, checkpoint)
    assert commits(table)[4:] == [(5, "APPEND", 5)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_dies_around_its_commit_is_there_once_after_the_restart(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    original = StreamCommitter.commit

    def dies(self: StreamCommitter, batch: Any, messages: Any) -> Any:
        if batch.id == 1 and when == "before":
            raise RuntimeError("killed")
        snapshot = original(self, batch, messages)
        if batch.id == 1:
            raise RuntimeError("killed")
        return snapshot

    with monkeypatch.context() as patched:
        patched.setattr(StreamCommitter, "commit", dies)
        with pytest.raises(StreamingQueryException, match="killed"):
            run(table, feed, checkpoint)
    assert len(commits(table)) == (1 if when == "before" else 2)
    run(table, feed, checkpoint)
    assert commits(table) == [(1, "APPEND", 10), (2, "APPEND", 20), (3, "APPEND", 30)]
    assert numbers(table) == list(range(60))


def test_a_checkpoint_that_was_set_back_is_refused_and_the_newer_one_still_works(
    catalog: Catalog, feed: Feed, checkpoint: Path, tmp_path: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    older = tmp_path / "older"
    run(table, feed, checkpoint)
    shutil.copytree(checkpoint, older)
    feed.add(4)
    run(table, feed, checkpoint)
    # With other rows: what was one batch is planned as another.
    feed.add(5)
    (feed.directory / "00003.json").rename(feed.directory / "00009.json")
    fail(
        table,
        feed,
        older,
        r"table d\.t: the checkpoint of query \S+ was set back to an older copy: .* batches up to 3 \(snapshot 4\)",
    )
    (feed.directory / "00009.json").rename(feed.directory / "00003.json")
    run(table, feed, checkpoint)
    fail(table, feed, older, r"batches up to 4 \(snapshot 5\)")
    assert numbers(table) == list(range(69))


def test_a_query_whose_last_snapshot_has_expired_is_refused_until_the_user_accepts(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"write-only": "true"})
    run(table, feed, checkpoint)
    table.append(table.to_arrow().slice(0, 1))
    for snapshot_id in (1, 2, 3):
        (Path(table.location) / f"snapshot/snapshot-{snapshot_id}").unlink()
    forget_last_batch(checkpoint)
    text = "it is unknown whether batch 2 .*Restore the checkpoint.*'penstock.accept-unknown-batch' = 'true'"
    fail(table, feed, checkpoint, text)
    run(table, feed, checkpoint, options={"penstock.accept-unknown-batch": "true"})
    assert commits(table)[1:] == [(5, "APPEND", 30)]
    feed.add(3)
    run(table, feed, checkpoint)
    assert commits(table)[2:] == [(6, "APPEND", 3)]


def test_a_checkpoint_serves_one_table_and_one_kind_of_sink(
    catalog: Catalog, feed: Feed, checkpoint: Path, tmp_path: Path
) -> None:
    table, other = (catalog.create_table(f"d.{name}", COLUMNS) for name in ("t", "other"))
    run(table, feed, checkpoint)
    with pytest.raises(
        CheckpointError, match=r"table d\.other: checkpoint file:\S+ belongs to another table, at .*/t;"
    ):
        run(other, feed, checkpoint)
    foreign = tmp_path / "foreign"
    sink = feed.stream().writeStream.option("checkpointLocation", str(foreign)).trigger(availableNow=True)
    sink.format("noop").start().awaitTermination()
    with pytest.raises(CheckpointError, match=r"belongs to a query that wrote somewhere else.*use a new checkpoint"):
        run(other, feed, foreign)
    feed.add(7)
    run(other, feed, foreign, options={"penstock.accept-unknown-batch": "true"})
    assert commits(other) == [(1, "APPEND", 7)]


def test_a_second_live_query_is_refused_here_and_elsewhere(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro_batches, "_END_WAIT_MS", 0)
    table = catalog.create_table("d.t", COLUMNS)
    query = table.write_stream(feed.stream(), checkpoint=str(checkpoint))
    query.processAllAvailable()
    with pytest.raises(LeaseHeldError, match=rf"table d\.t: query {query.id} runs in this session already"):
        table.write_stream(feed.stream(), checkpoint=str(checkpoint))
    assert query.isActive
    query.stop()
    lease = acquire(table._ref.file_io, table.location, f"query-{query.id}", ttl_ms=600)
    with LeaseKeeper(lease), pytest.raises(LeaseHeldError, match=f"'query-{query.id}' is in use by process"):
        table.write_stream(feed.stream(), checkpoint=str(checkpoint))
    started = time.monotonic()
    feed.add(5)
    run(table, feed, checkpoint)
    assert numbers(table) == list(range(65))
    assert time.monotonic() - started < 20


def test_a_query_that_lost_its_lease_commits_nothing_more(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    query = table.write_stream(feed.stream(), checkpoint=str(checkpoint))
    query.processAllAvailable()

    def lost(_self: LeaseKeeper) -> None:
        raise LeaseHeldError("table d.t: taken over")

    monkeypatch.setattr(LeaseKeeper, "check", lost)
    feed.add(5)
    with pytest.raises(StreamingQueryException, match=r"table d\.t: taken over"):
        query.processAllAvailable()
    assert len(commits(table)) == 3
    assert data_files(table) == live_files(table)


@pytest.mark.parametrize("max_rows", [20_000, pytest.param(1, marks=pytest.mark.slow)])
def test_complete_output_replaces_the_table_each_time_and_its_state_survives_a_replay(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, max_rows: int
) -> None:
    monkeypatch.setattr(row_writer, "_MAX_ROWS", max_rows)
    table = catalog.create_table("d.t", "k INT, c BIGINT NOT NULL")
    counts = feed.stream().groupBy("k").agg(F.count("*").alias("c"))
    for _ in range(2):
        query = table.write_stream(counts, checkpoint=str(checkpoint), trigger=DONE, output_mode="complete")
        query.awaitTermination()
        assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"]) == [{"k": k, "c": 12} for k in range(5)]
        forget_last_batch(checkpoint)
    feed.add(10)
    query = table.write_stream(counts, checkpoint=str(checkpoint), trigger=DONE, output_mode="complete")
    query.awaitTermination()
    assert [kind for _, kind, _ in commits(table)] == ["OVERWRITE"] * 4
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"]) == [{"k": k, "c": 14} for k in range(5)]


def test_what_cannot_be_done_is_refused_before_the_query_starts(
    spark: SparkSession, catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    sdf = feed.stream()
    cases: list[tuple[Any, dict[str, Any], type[TableStoreError], str]] = [
        (sdf, {"output_mode": "update"}, UnsupportedFeatureError, "output mode 'update' .* no key to find them by"),
        (sdf, {"output_mode": "upsert"}, InvalidOptionError, "'upsert': expected append or complete"),
        (sdf, {"trigger": {"continuous": "1 second"}}, InvalidOptionError, "expected one of processingTime"),
        (sdf, {"trigger": {}}, InvalidOptionError, "expected one of processingTime"),
        (spark.range(3), {}, InvalidOptionError, "is not a stream; write it with append"),
        (sdf.drop("k"), {}, SchemaMismatchError, "column 'k' is missing"),
        (sdf.withColumn("x", F.lit(1)), {}, SchemaMismatchError, "column 'x' is not in the table"),
        (sdf.withColumn("k", F.col("s")), {}, SchemaMismatchError, "column 'k' is given as string"),
    ]
    for rows, arguments, error, text in cases:
        with pytest.raises(error, match=rf"table '?d\.t'?: .*{text}"):
            table.write_stream(rows, checkpoint=str(checkpoint), **arguments)
    assert not checkpoint.exists()
    assert spark.streams.active == []


def test_an_option_of_the_source_warns(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    with pytest.warns(OptionWarning, match="'scan.mode' is one of the source and has no effect on a sink"):
        run(table, feed, checkpoint, options={"scan.mode": "latest"})
    assert len(commits(table)) == 3


def test_batches_without_rows_make_no_snapshot(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    some = feed.stream().where("n between 10 and 19")
    query = table.write_stream(some, checkpoint=str(checkpoint), trigger=DONE)
    query.awaitTermination()
    assert query.lastProgress["batchId"] == 2
    assert commits(table) == [(1, "APPEND", 10)]
    feed.add(5)
    run(table, feed, checkpoint)
    assert commits(table)[1:] == [(2, "APPEND", 5)]


def running(table: Table, feed: Feed, checkpoint: Path) -> StreamingQuery:
    """A query that waits for more."""
    query = table.write_stream(feed.stream(), checkpoint=str(checkpoint))
    query.processAllAvailable()
    return query


def test_a_dropped_or_recreated_table_ends_the_query_with_a_clear_error(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    make: Callable[[], Table] = lambda: catalog.create_table("d.t", COLUMNS)  # noqa: E731 - twice the same
    query = running(make(), feed, checkpoint)
    catalog.drop_table("d.t")
    feed.add(5)
    with pytest.raises(
        StreamingQueryException,
        match=r"table d\.t: it was dropped or moved while a query wrote to it, .*create the table again",
    ):
        query.processAllAvailable()
    assert not Path(catalog.warehouse, "d.db", "t").exists()
    anew = make()
    with pytest.raises(
        CheckpointError, match=r"table d\.t: it was dropped and created again.*start with a new checkpoint"
    ):
        run(anew, feed, checkpoint)
    query = running(anew, feed, checkpoint.with_name("second"))
    assert len(commits(anew)) == 4
    catalog.drop_table("d.t")
    third = make()
    feed.add(5)
    with pytest.raises(StreamingQueryException, match=r"table d\.t: it was dropped and created again"):
        query.processAllAvailable()
    assert commits(third) == []


def test_columns_that_come_while_the_query_runs_are_null_and_those_that_go_end_it(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    query = running(table, feed, checkpoint)
    catalog.alter_table("d.t", AddColumn(column="more", type="ROW<x INT, y STRING>"))
    feed.add(2)
    query.processAllAvailable()
    monkeypatch.setattr(row_writer, "_MAX_ROWS", 0)
    feed.add(3)
    query.processAllAvailable()
    rows = catalog.load_table("d.t").to_arrow().to_pylist()
    assert [row["more"] for row in rows] == [None] * 65
    catalog.alter_table("d.t", DropColumn(column="s"))
    feed.add(1)
    with pytest.raises(StreamingQueryException, match=r"table d\.t: column 's' is not in the table"):
        query.processAllAvailable()
    assert len(numbers(catalog.load_table("d.t"))) == 65


def test_stopping_in_the_middle_of_a_batch_is_no_failure(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS)

    def wait(n: int) -> int:
        time.sleep(0.5)
        return n

    slowly = F.udf(wait, "bigint", useArrow=False)
    for sleeps in (True, False):
        rows = feed.stream().withColumn("n", slowly("n")) if sleeps else feed.stream()
        query = table.write_stream(rows, checkpoint=str(checkpoint), trigger={"processingTime": "0 seconds"})
        if sleeps:
            time.sleep(2)
            query.stop()
            assert query.exception() is None
            assert commits(table) == []
        else:
            query.processAllAvailable()
            query.stop()
    assert numbers(table) == list(range(60))


def test_metrics_of_a_batch_count_each_row_once(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writer, "_MAX_ROWS", 3)
    table = catalog.create_table("d.t", COLUMNS)
    rows = feed.stream().observe("seen", F.count("*").alias("rows"))
    query = table.write_stream(rows, checkpoint=str(checkpoint), trigger=DONE)
    query.awaitTermination()
    assert [progress["observedMetrics"]["seen"]["rows"] for progress in query.recentProgress] == [10, 20, 30]


def test_an_error_in_a_batch_is_seen_with_table_cause_and_cure(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", "n BIGINT NOT NULL, k INT, s STRING")
    broken = feed.stream().withColumn("n", F.expr("if(n = 17, null, n)"))
    query = table.write_stream(broken, checkpoint=str(checkpoint), trigger=DONE)
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    assert re.search(r"SchemaMismatchError: table d\.t: column 'n' is NOT NULL, .* fill it or drop", str(raised.value))
    assert len(commits(table)) == 1
    assert data_files(table) == live_files(table)
    with pytest.raises(NotFoundError):
        catalog.load_table("d.none")
