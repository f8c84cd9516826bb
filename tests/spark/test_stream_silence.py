"""What a query does for its table while it has no rows."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.stream_feed import DONE

from penstock.errors import StorageError
from penstock.table.stream_sink.committer import StreamCommitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock import Catalog, Table

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
NOON_MILLIS = 1_767_268_800_000
COLUMNS = "k INT, t TIMESTAMP(3)"
QUICKLY = {"processingTime": "100 milliseconds"}
SECONDS = 60


@pytest.fixture
def source(catalog: Catalog) -> Table:
    """Keys 0 and 1 are in buckets of their own."""
    return catalog.create_table(
        "d.source",
        COLUMNS,
        watermark=("t", None),
        options={"bucket": "2", "bucket-key": "k", "bucket-function.type": "mod"},
    )


@pytest.fixture
def copy(catalog: Catalog) -> Table:
    return catalog.create_table("d.copy", COLUMNS)


@pytest.fixture
def stop() -> Iterator[Callable[[StreamingQuery], StreamingQuery]]:
    queries: list[StreamingQuery] = []

    def keep(query: StreamingQuery) -> StreamingQuery:
        queries.append(query)
        return query

    yield keep
    for query in queries:
        query.stop()


def append(table: Table, *rows: tuple[int, int]) -> None:
    """Append rows of keys and seconds after noon."""
    times = [NOON + timedelta(seconds=seconds) for _, seconds in rows]
    table.append(pa.table({"k": pa.array([k for k, _ in rows], pa.int32()), "t": pa.array(times, pa.timestamp("ms"))}))


def appends(table: Table) -> list[tuple[str, int, int | None]]:
    """Commit user, rows and watermark in seconds after noon of each APPEND."""
    return [
        (
            row["commit_user"],
            row["delta_record_count"],
            None if row["watermark"] is None else (row["watermark"] - NOON_MILLIS) // 1000,
        )
        for row in table.snapshots().to_pylist()
        if row["commit_kind"] == "APPEND"
    ]


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_bucket_that_becomes_idle_lets_the_watermark_go_on_while_there_are_no_rows(
    spark: SparkSession,
    source: Table,
    copy: Table,
    tmp_path: Path,
    stop: Callable[[StreamingQuery], StreamingQuery],
) -> None:
    append(source, (0, 10), (1, 70))
    rows = source.read_stream(spark, {"scan.mode": "earliest"})
    options = {"penstock.sink.watermark-idle-timeout": "12 s"}
    query = stop(copy.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=QUICKLY, options=options))
    wait_for(lambda: len(appends(copy)) == 1)
    time.sleep(3)
    append(source, (1, 90))
    # The second bucket moved later, so for a while it is the only one that is not idle.
    wait_for(lambda: len(appends(copy)) == 3)
    assert appends(copy) == [(query.id, 2, 10), (query.id, 1, 10), (f"{query.id}-idle", 0, 90)]
    append(source, (0, 20), (1, 95))
    wait_for(lambda: len(appends(copy)) == 4)
    assert appends(copy)[-1] == (query.id, 2, 90)
    query.stop()
    stop(copy.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=DONE)).awaitTermination()
    assert copy.to_arrow().num_rows == 5


def test_a_query_without_rows_makes_empty_snapshots_if_the_option_is_set(
    spark: SparkSession,
    source: Table,
    copy: Table,
    tmp_path: Path,
    stop: Callable[[StreamingQuery], StreamingQuery],
) -> None:
    append(source, (0, 10))
    rows = source.read_stream(spark, {"scan.mode": "earliest"})
    options = {"snapshot.watermark-idle-timeout": "700 ms"}
    query = stop(copy.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=QUICKLY, options=options))
    wait_for(lambda: len(appends(copy)) >= 3)
    assert appends(copy)[:3] == [(query.id, 1, 10), (f"{query.id}-idle", 0, 10), (f"{query.id}-idle", 0, 10)]
    identifiers = [row["commit_identifier"] for row in copy.snapshots().to_pylist()[1:]]
    assert identifiers == sorted(set(identifiers))
    query.stop()
    count = len(appends(copy))
    time.sleep(1.5)
    assert len(appends(copy)) == count


@pytest.mark.parametrize(
    "ends", [pytest.param(True, id="bounded", marks=pytest.mark.slow), pytest.param(False, id="available now")]
)
def test_the_end_of_a_bounded_input_has_the_watermark_of_the_options(
    spark: SparkSession, source: Table, copy: Table, tmp_path: Path, *, ends: bool
) -> None:
    append(source, (0, 10))
    bound = {"penstock.scan.bounded.snapshot-id": "1"} if ends else {}
    rows = source.read_stream(spark, {"scan.mode": "earliest"} | bound)
    options = {"end-input.watermark": str(NOON_MILLIS + 99_000)}
    query = copy.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=DONE, options=options)
    assert query.awaitTermination(SECONDS)
    # What is there now is no end: more may come.
    assert appends(copy) == [(query.id, 1, 10)] + ([(f"{query.id}-idle", 0, 99)] if ends else [])


class LastLook:
    """A silence of which nothing is seen but the look that is under way when the query ends."""

    def __init__(self, look: Callable[[], None], name: str) -> None:
        assert name == "table d.copy: query into it"
        self._look = look

    def begin(self) -> None:
        """Nothing yet."""

    def end(self) -> None:
        """Look."""
        self._look()


def test_the_watermark_behind_a_batch_that_failed_is_not_stored(
    spark: SparkSession,
    source: Table,
    copy: Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: Callable[[StreamingQuery], StreamingQuery],
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full", False)  # noqa: FBT003 - positional, so that pickling works

    monkeypatch.setattr("penstock.spark.stream.micro_batches.IdleTimer", LastLook)
    append(source, (0, 10))
    rows = source.read_stream(spark, {"scan.mode": "earliest"})
    query = stop(copy.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=QUICKLY))
    wait_for(lambda: len(appends(copy)) == 1)
    monkeypatch.setattr(StreamCommitter, "commit", fail)
    append(source, (0, 90))
    with pytest.raises(StreamingQueryException, match="the disk is full"):
        query.awaitTermination(SECONDS)
    assert appends(copy) == [(query.id, 1, 10)]


def test_the_end_of_a_bounded_input_is_stored_after_a_death_behind_the_last_commit(
    spark: SparkSession, source: Table, copy: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = StreamCommitter.commit

    def commit_and_die(*arguments: Any) -> None:
        commit(*arguments)
        raise StorageError("killed", False)  # noqa: FBT003 - positional, so that pickling works

    append(source, (0, 10))
    rows = source.read_stream(spark, {"scan.mode": "earliest", "penstock.scan.bounded.snapshot-id": "1"})
    target = copy.with_options({"end-input.watermark": str(NOON_MILLIS + 99_000)})
    with monkeypatch.context() as death:
        death.setattr(StreamCommitter, "commit", commit_and_die)
        query = target.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=DONE)
        with pytest.raises(StreamingQueryException, match="killed"):
            query.awaitTermination(SECONDS)
    assert appends(copy) == [(query.id, 1, 10)]
    assert target.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=DONE).awaitTermination(SECONDS)
    assert appends(copy) == [(query.id, 1, 10), (f"{query.id}-idle", 0, 99)]


@pytest.mark.slow
def test_the_end_of_a_bounded_input_is_stored_when_the_query_is_started_again(
    spark: SparkSession, source: Table, copy: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(source, (0, 10))
    rows = source.read_stream(spark, {"scan.mode": "earliest", "penstock.scan.bounded.snapshot-id": "1"})
    target = copy.with_options({"end-input.watermark": str(NOON_MILLIS + 99_000)})
    with pytest.MonkeyPatch.context() as failing:

        def fail(*_: object) -> None:
            raise StorageError("the disk is full", False)  # noqa: FBT003 - positional, so that pickling works

        failing.setattr(StreamCommitter, "commit_on_idle", fail)
        query = target.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=DONE)
        assert query.awaitTermination(SECONDS)
    assert ["'end-input.watermark' was not stored: the disk is full" in each.message for each in caplog.records] == [
        True
    ]
    for _ in range(2):
        assert target.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=DONE).awaitTermination(SECONDS)
        assert appends(copy) == [(query.id, 1, 10), (f"{query.id}-idle", 0, 99)]


def test_partitions_are_marked_done_while_there_are_no_rows(
    spark: SparkSession,
    catalog: Catalog,
    tmp_path: Path,
    stop: Callable[[StreamingQuery], StreamingQuery],
) -> None:
    columns = "k INT, t TIMESTAMP(3), dt STRING"
    source = catalog.create_table("d.days", columns, watermark=("t", None))
    target = catalog.create_table("d.done", columns, partition_by=["dt"])
    options = {
        "partition.timestamp-formatter": "yyyy-MM-dd",
        "partition.time-interval": "1 d",
        "partition.idle-time-to-done": "5 s",
        "partition.mark-done-action": "success-file",
    }
    time_of = pa.array([NOON], pa.timestamp("ms"))
    source.append(pa.table({"k": pa.array([0], pa.int32()), "t": time_of, "dt": ["2026-01-01"]}))
    rows = source.read_stream(spark, {"scan.mode": "earliest"})
    query = target.write_stream(rows, checkpoint=str(tmp_path / "c"), trigger=QUICKLY, options=options)
    stop(query)
    mark = tmp_path / "warehouse" / "d.db" / "done" / "dt=2026-01-01" / "_SUCCESS"
    wait_for(lambda: len(appends(target)) == 1)
    assert not mark.exists()
    wait_for(mark.exists)
    assert len(appends(target)) == 1
