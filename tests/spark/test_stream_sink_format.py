"""``writeStream.format("penstock")``: the same promise through Spark's own entry point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.stream_feed import COLUMNS, Feed, commits, data_files, forget_last_batch, live_files, new_feed, numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock import Catalog, Table

pytestmark = pytest.mark.usefixtures("format_streams")


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return new_feed(spark, tmp_path / "feed", 10, 20, 30)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def run(table: Table, rows: DataFrame, checkpoint: Path, mode: str = "append") -> StreamingQuery:
    writer = rows.writeStream.format("penstock").option("checkpointLocation", str(checkpoint)).outputMode(mode)
    query = writer.trigger(availableNow=True).start(table.location)
    query.awaitTermination()
    return query


def test_each_micro_batch_is_one_snapshot_and_a_replay_writes_nothing(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"bucket": "2", "bucket-key": "k"})
    query = run(table, feed.stream(), checkpoint)
    assert commits(table) == [(1, "APPEND", 10), (2, "APPEND", 20), (3, "APPEND", 30)]
    snapshot = table.latest_snapshot()
    assert (snapshot.commit_user, snapshot.commit_identifier) == (query.id, 2)
    forget_last_batch(checkpoint)
    run(table, feed.stream(), checkpoint)
    assert len(commits(table)) == 3
    assert data_files(table) == live_files(table)
    feed.add(5)
    run(table, feed.stream(), checkpoint)
    assert numbers(table) == list(range(65))
    # And on with the other entry point, which knows the query again.
    table.write_stream(
        feed.stream(),
        checkpoint=str(checkpoint),
        trigger={"availableNow": True},
        options={"penstock.accept-unknown-batch": "true"},
    ).awaitTermination()
    forget_last_batch(checkpoint)
    feed.add(6)
    table.write_stream(feed.stream(), checkpoint=str(checkpoint), trigger={"availableNow": True}).awaitTermination()
    assert numbers(table) == list(range(71))


def test_complete_output_replaces_all_rows_and_update_is_refused(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", "k INT, c BIGINT NOT NULL")
    counts = feed.stream().groupBy("k").agg(F.count("*").alias("c"))
    run(table, counts, checkpoint, "complete")
    assert {kind for _, kind, _ in commits(table)} == {"OVERWRITE"}
    assert table.to_arrow()["c"].to_pylist() == [12] * 5
    with pytest.raises(StreamingQueryException, match="penstock does not support Update mode"):
        run(table, counts, checkpoint.with_name("other"), "update")


def test_a_batch_that_fails_leaves_nothing(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", "n BIGINT NOT NULL, k INT, s STRING")
    broken = feed.stream().withColumn("n", F.expr("if(n = 17, null, n)"))
    with pytest.raises(StreamingQueryException, match="column 'n' is NOT NULL"):
        run(table, broken, checkpoint)
    assert len(commits(table)) == 1
    assert data_files(table) == live_files(table)
    dies = feed.stream().withColumn("n", F.expr("if(n = 27, raise_error('dead'), n)")).repartition(2)
    with pytest.raises(StreamingQueryException, match="dead"):
        run(table, dies, checkpoint.with_name("other"))
    assert data_files(table) == live_files(table)


def test_a_commit_whose_outcome_is_unknown_keeps_its_files(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    # Nothing can be put where the next snapshot belongs, and nobody can say what is there.
    blocker = Path(table.location) / "snapshot/snapshot-1"
    blocker.mkdir(parents=True)
    options = {"commit.max-retries": "1", "commit.min-retry-wait": "1 ms"}
    writer = feed.stream().writeStream.format("penstock").option("checkpointLocation", str(checkpoint))
    query = writer.options(**options).trigger(availableNow=True).start(table.location)
    with pytest.raises(StreamingQueryException, match="CommitUnknownError"):
        query.awaitTermination()
    assert len(data_files(table)) == 1
    blocker.rmdir()
    run(table, feed.stream(), checkpoint)
    assert numbers(table) == list(range(60))


def test_a_batch_write_whose_outcome_is_unknown_keeps_its_files_too(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    blocker = Path(table.location) / "snapshot/snapshot-1"
    blocker.mkdir(parents=True)
    writer = spark.range(0, 10, 1, 2).write.format("penstock").mode("append")
    options = {"commit.max-retries": "1", "commit.min-retry-wait": "1 ms"}
    with pytest.raises(Exception, match="CommitUnknownError"):
        writer.options(**options).save(table.location)
    assert len(data_files(table)) == 2
