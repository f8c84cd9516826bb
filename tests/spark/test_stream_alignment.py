"""Queries whose sources wait for each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.ways import STREAM_FORMAT_IF_SLOW

from penstock.errors import InvalidOptionError
from penstock.spark.stream.progress import decode_progress

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock import Catalog, Table

NOON: Final = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
SECONDS: Final = 90
DRIFT: Final = 15
# Seconds of event time that a snapshot goes on.
SPEEDS: Final = {"fast": 100, "medium": 10, "slow": 1}
OPTIONS: Final = {
    "scan.mode": "earliest",
    "scan.watermark.alignment.group": "g",
    "scan.watermark.alignment.max-drift": f"{DRIFT} s",
    "scan.watermark.alignment.update-interval": "100 ms",
}
ALONE: Final = {"scan.mode": "earliest", "scan.max-snapshot.count": "1"}


def fill(catalog: Catalog, name: str, until: int) -> Table:
    """A table with a row a snapshot, which goes on in event time as its name says."""
    table = catalog.create_table(
        f"d.{name}",
        "n INT, t TIMESTAMP(3)",
        watermark=("t", None),
        # Snapshots of merges would count as seconds.
        options={"bucket": "1", "bucket-key": "n", "write-only": "true"},
    )
    for second in range(SPEEDS[name], until + 1, SPEEDS[name]):
        append(table, second)
    return table


def append(table: Table, second: int) -> None:
    times = pa.array([NOON + timedelta(seconds=second)], pa.timestamp("ms"))
    table.append(pa.table({"n": pa.array([second], pa.int32()), "t": times}))


def union(spark: SparkSession, tables: list[Table], options: dict[str, str]) -> DataFrame:
    frames = [table.read_stream(spark, options, columns=["n"]) for table in tables]
    return reduce(lambda one, other: one.union(other), frames)


def start(frame: DataFrame, checkpoint: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return writer.trigger(**trigger).start()


def marks(progress: Any) -> dict[str, int]:
    """Seconds that are delivered of each table, at the end of a micro-batch."""
    found = {}
    for each in decode_progress(progress):
        position = each.position.position
        done = 0 if position is None else position.snapshot_id - 1
        # The name of a table, or its location.
        found[each.table] = done * SPEEDS[re.split("[./]", each.table)[-1]]
    return found


def gaps(query: StreamingQuery) -> list[int]:
    stood = [marks(progress) for progress in query.recentProgress if progress["numInputRows"]]
    return [max(each.values()) - min(each.values()) for each in stood]


def wait_for(query: StreamingQuery, seconds: int) -> None:
    """Wait until every source has delivered so many seconds."""
    deadline = time.monotonic() + SECONDS
    while query.lastProgress is None or min(marks(query.lastProgress).values(), default=0) < seconds:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)


@STREAM_FORMAT_IF_SLOW
@pytest.mark.slow
def test_three_sources_keep_the_drift_and_one_snapshots_span_at_every_micro_batch(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    tables = [fill(catalog, name, 200) for name in SPEEDS]
    query = start(union(spark, tables, OPTIONS), tmp_path / "aligned", processingTime="0 seconds")
    try:
        wait_for(query, 200)
        assert max(gaps(query)) <= DRIFT + max(SPEEDS.values())
        assert sum(progress["numInputRows"] for progress in query.recentProgress) == 222
    finally:
        query.stop()
    query = start(union(spark, tables, ALONE), tmp_path / "alone", processingTime="0 seconds")
    try:
        deadline = time.monotonic() + SECONDS
        while max(gaps(query), default=0) <= 10 * DRIFT:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        query.stop()


@STREAM_FORMAT_IF_SLOW
@pytest.mark.parametrize("order", [pytest.param(("fast", "slow"), marks=pytest.mark.slow), ("slow", "fast")])
def test_a_query_that_ends_by_itself_reads_two_sources_to_the_end(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, order: tuple[str, ...]
) -> None:
    tables = {name: fill(catalog, name, 100 if name == "slow" else 300) for name in order}
    frame = union(spark, list(tables.values()), OPTIONS)
    began = time.monotonic()
    query = start(frame, tmp_path / "checkpoint", availableNow=True)
    assert query.awaitTermination(SECONDS)
    assert query.exception() is None
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 103
    assert max(each for each in gaps(query)[:-1]) <= DRIFT + 100
    append(tables["slow"], 101)
    again = start(frame, tmp_path / "checkpoint", availableNow=True)
    assert again.awaitTermination(SECONDS)
    assert sum(progress["numInputRows"] for progress in again.recentProgress) == 1
    assert time.monotonic() - began < 60, "nobody is waited for who has come to its end"


@STREAM_FORMAT_IF_SLOW
def test_two_queries_that_end_by_themselves_wait_for_each_other(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    tables = {name: fill(catalog, name, 200) for name in ("fast", "slow")}
    queries = {}
    for name, table in tables.items():
        options = OPTIONS | {"scan.max-snapshot.count": "25"}
        queries[name] = start(union(spark, [table], options), tmp_path / name, availableNow=True)
    for query in queries.values():
        assert query.awaitTermination(SECONDS)
        assert query.exception() is None
    rows = {name: sum(each["numInputRows"] for each in query.recentProgress) for name, query in queries.items()}
    assert rows == {"fast": 2, "slow": 200}


FOLLOWER: Final = """
import json, sys, time
from penstock import Table
table = Table.at(sys.argv[1])
rows = 0
for batch in table.follow(options=json.loads(sys.argv[2])):
    rows += batch.num_rows
    if rows % 50 == 0:
        print(rows, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.cluster
@STREAM_FORMAT_IF_SLOW
def test_a_query_that_ends_by_itself_waits_for_another_process_and_goes_on_when_that_is_killed(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    fast, slow = (fill(catalog, name, 300) for name in ("fast", "slow"))
    follower = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, slow.location, json.dumps(OPTIONS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert follower.stdout is not None
        assert follower.stdin is not None
        assert follower.stdout.readline() == "50\n"
        query = start(union(spark, [fast], OPTIONS), tmp_path / "checkpoint", availableNow=True)
        time.sleep(5)
        assert query.isActive
        assert sum(progress["numInputRows"] for progress in query.recentProgress) == 0
        follower.stdin.write("\n")
        follower.stdin.flush()
        assert follower.stdout.readline() == "100\n"
        deadline = time.monotonic() + SECONDS
        while sum(progress["numInputRows"] for progress in query.recentProgress) == 0:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert query.isActive
        assert not query.awaitTermination(3)
        follower.kill()
        follower.wait()
        assert query.awaitTermination(20)
        assert sum(progress["numInputRows"] for progress in query.recentProgress) == 3
    finally:
        follower.kill()
        follower.communicate()


@STREAM_FORMAT_IF_SLOW
def test_a_query_that_was_stopped_blocks_no_other(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    fast, slow = fill(catalog, "fast", 300), fill(catalog, "slow", 10)
    query = start(union(spark, [slow], OPTIONS), tmp_path / "slow", processingTime="0 seconds")
    wait_for(query, 10)
    other = start(union(spark, [fast], OPTIONS), tmp_path / "fast", availableNow=True)
    assert not other.awaitTermination(4)
    query.stop()
    assert other.awaitTermination(30)
    assert sum(progress["numInputRows"] for progress in other.recentProgress) == 3


def test_a_group_is_refused_where_waiting_is_impossible(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    table = fill(catalog, "fast", 100)
    with pytest.raises(InvalidOptionError, match=r"is set and 'scan\.watermark\.alignment\.max-drift' is not"):
        table.read_stream(spark, {"scan.watermark.alignment.group": "g"})
    query = start(union(spark, [table], OPTIONS), tmp_path / "checkpoint", once=True)
    with pytest.raises(StreamingQueryException, match=r"use trigger\(availableNow=True\)"):
        query.awaitTermination(SECONDS)


@STREAM_FORMAT_IF_SLOW
def test_a_copy_of_aligned_sources_is_whole_though_batches_without_rows_come_between(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    tables = [fill(catalog, name, 200) for name in ("fast", "slow")]
    copy = catalog.create_table("d.copy", "n INT")
    query = copy.write_stream(
        union(spark, tables, OPTIONS), checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True}
    )
    assert query.awaitTermination(SECONDS)
    assert sorted(copy.to_arrow()["n"].to_pylist()) == sorted([100, 200, *range(1, 201)])
