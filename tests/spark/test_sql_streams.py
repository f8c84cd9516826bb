"""Streams in SQL: how they begin, what they keep, where they end."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import SECONDS, Sql, collect, new_session, wait_for
from typer.testing import CliRunner

from penstock import UnsupportedFeatureError
from penstock.cli.exit_codes import ExitCode
from penstock.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TUMBLED = """
SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end
"""


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@pytest.fixture
def queue(sql: Sql) -> Sql:
    """A queue ``a`` of three commits of a row each, with watermarks, and an empty table ``b``."""
    sql(
        "CREATE TABLE a (id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('bucket' = '1', 'bucket-key' = 'id')"
    )
    sql("CREATE TABLE b (id BIGINT)")
    for number in range(3):
        add(sql, number)
    return sql


def add(sql: Sql, number: int) -> None:
    sql(f"INSERT INTO a VALUES ({number}, TIMESTAMP '2026-01-01 00:0{number}:00')")  # noqa: S608 - of this file


def ids(sql: Sql) -> list[object]:
    return [row[0] for row in sql.rows("SELECT id FROM b")]


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 0, minute)  # noqa: DTZ001 - a wall clock


def test_a_bounded_read_is_a_stream_that_ends(queue: Sql) -> None:
    bounded = "/*+ OPTIONS('scan.mode' = 'earliest', 'penstock.scan.bounded.snapshot-id' = '2') */"
    assert collect(queue(f"SELECT id FROM a {bounded}")) == [(0,), (1,)]  # noqa: S608 - of this test


def test_columns_of_a_stream_are_those_of_the_table(queue: Sql) -> None:
    types = queue("SELECT * FROM a").dtypes
    assert types == [("id", "bigint"), ("at", "timestamp_ntz")]
    assert queue("SELECT * FROM a /*+ OPTIONS('scan.bounded' = 'true') */").dtypes == types


@pytest.mark.slow
def test_windows_over_a_stream_without_a_watermark_are_emitted_for_all_rows(queue: Sql) -> None:
    query = TUMBLED.replace("events", "a /*+ OPTIONS('penstock.read.watermark' = 'false', 'scan.bounded' = 'true') */")
    assert collect(queue(query), "complete") == [(at(0), 3)]


@pytest.mark.slow
def test_windows_of_times_with_a_zone_are_instants(sql: Sql) -> None:
    sql("CREATE TABLE events (at TIMESTAMP(3) WITH LOCAL TIME ZONE, WATERMARK FOR at AS at)")
    sql(
        "INSERT INTO events VALUES (TIMESTAMP '2026-01-01 00:01:00Z'), (TIMESTAMP '2026-01-01 00:02:00Z'),"
        " (TIMESTAMP '2026-01-01 00:30:00Z')"
    )
    ((start, count),) = sql.streamed(TUMBLED)
    assert isinstance(start, datetime)
    assert (start.astimezone(UTC), count) == (datetime(2026, 1, 1, tzinfo=UTC), 2)


@pytest.mark.slow
def test_windows_of_spark_and_names_of_the_query_have_the_tables_watermark(queue: Sql) -> None:
    assert queue.streamed(
        "WITH c AS (SELECT at AS t FROM a) SELECT window(t, '2 minutes').start, COUNT(*) FROM c"
        " GROUP BY window(t, '2 minutes')"
    ) == [(at(0), 2)]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT COUNT(*) FROM a", "streaming aggregations without watermark"),
        ("SELECT id FROM a ORDER BY id", "Sorting is not supported on streaming"),
    ],
)
def test_what_spark_does_not_support_in_streams_is_refused_before_anything_starts(
    queue: Sql, query: str, says: str
) -> None:
    queue("SET 'execution.runtime-mode' = 'streaming'")
    with pytest.raises(
        UnsupportedFeatureError, match=f"cannot run this query as a stream: .*{says}.*; group by windows"
    ):
        queue(f"INSERT INTO b {query}")
    queue("RESET")
    assert ids(queue) == []
    arguments = ["-w", queue.catalog.warehouse, "sql", "--spark", "local[2]", "-e"]
    result = CliRunner().invoke(app, [*arguments, f"SET 'execution.runtime-mode' = 'streaming'; {query}"])
    assert result.exit_code == ExitCode.UNSUPPORTED
    assert says in result.stderr


def test_an_insert_from_a_stream_goes_on_where_it_stopped(sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE a (id BIGINT); CREATE TABLE b (id BIGINT); INSERT INTO a SELECT id FROM range(3)")
    sql(f"SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints'")
    sql("SET 'execution.checkpointing.interval' = '100 ms'")
    script = "SET 'execution.runtime-mode' = 'streaming'; INSERT INTO b SELECT id * 10 FROM a"
    for extra in ((), (7,)):
        for number in extra:
            sql("RESET 'execution.runtime-mode'")
            sql(f"INSERT INTO a VALUES ({number})")  # noqa: S608 - of this test
        query = sql(script)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    assert [path.name.rpartition("-")[0] for path in (tmp_path / "checkpoints").iterdir()] == ["default.b"]
    sql("RESET")
    assert sql.rows("SELECT id FROM b") == [(0,), (10,), (20,), (70,)]
    with pytest.raises(UnsupportedFeatureError, match="a stream cannot overwrite"):
        sql("SET 'execution.runtime-mode' = 'streaming'; INSERT OVERWRITE b SELECT id FROM a")


def test_a_bounded_insert_can_be_waited_for(sql: Sql) -> None:
    sql("CREATE TABLE a (id BIGINT); CREATE TABLE b (id BIGINT); INSERT INTO a SELECT id FROM range(5)")
    sql(
        "SET 'table.dml-sync' = 'true';"
        " INSERT INTO b SELECT id FROM a /*+ OPTIONS('scan.mode' = 'latest-full', 'scan.bounded' = 'true') */"
    )
    assert sql.rows("SELECT COUNT(*) FROM b") == [(5,)]


def test_an_insert_waits_for_the_bound_of_its_stream(queue: Sql) -> None:
    bounded = "/*+ OPTIONS('scan.mode' = 'earliest', 'penstock.scan.bounded.snapshot-id' = '4') */"
    query = queue(f"INSERT INTO b SELECT id FROM a {bounded}")  # noqa: S608 - of this test
    wait_for(lambda: ids(queue), [0, 1, 2])
    assert not query.awaitTermination(1), "only three of the four snapshots are there"
    for number in (3, 4):
        add(queue, number)
    assert query.awaitTermination(SECONDS)
    assert query.exception() is None
    assert ids(queue) == [0, 1, 2, 3]


@pytest.mark.slow
def test_an_insert_ends_at_its_bounded_watermark(queue: Sql) -> None:
    queue(
        "CREATE TABLE c (id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('bucket' = '1', 'bucket-key' = 'id')"
    )
    feed = queue("SET 'execution.runtime-mode' = 'streaming'; INSERT INTO c SELECT * FROM a")
    queue("RESET 'execution.runtime-mode'")
    try:
        feed.processAllAvailable()
        bound = int(datetime(2026, 1, 1, 0, 3, tzinfo=UTC).timestamp() * 1000)
        query = queue(f"INSERT INTO b SELECT id FROM c /*+ OPTIONS('scan.bounded.watermark' = '{bound}') */")  # noqa: S608 - of this test
        wait_for(lambda: ids(queue), [0, 1, 2])
        for number in (3, 4):
            assert query.isActive
            add(queue, number)
            wait_for(lambda: len(queue.rows("SELECT id FROM c")), number + 1)
        assert query.awaitTermination(SECONDS)
    finally:
        feed.stop()
    assert ids(queue) == [0, 1, 2, 3]


def test_the_command_prints_a_bounded_stream_to_its_end(queue: Sql) -> None:
    bounded = "/*+ OPTIONS('scan.mode' = 'earliest', 'penstock.scan.bounded.snapshot-id' = '4') */"
    arguments = ["-w", queue.catalog.warehouse, "--format", "json", "sql", "--spark", "local[2]", "-e"]

    def come_later() -> None:
        time.sleep(2)
        for number in (3, 4):
            add(queue, number)

    late = threading.Thread(target=come_later)
    late.start()
    result = CliRunner().invoke(app, [*arguments, f"SELECT id FROM a {bounded}"])  # noqa: S608 - of this test
    late.join()
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [0, 1, 2, 3]
