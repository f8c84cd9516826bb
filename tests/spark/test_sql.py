"""SQL with a Spark session."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from tests.spark.plans import files_opened
from tests.spark.sql_runner import Sql, new_session
from typer.testing import CliRunner

from penstock import InvalidSqlError, SchemaMismatchError
from penstock.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@pytest.fixture
def events(sql: Sql) -> Sql:
    """A table of five events of two keys, one of them without a time."""
    sql(
        """
        CREATE TABLE events (k STRING, at TIMESTAMP(3));
        INSERT INTO events VALUES
          ('a', TIMESTAMP '2026-01-01 00:01:00'), ('a', TIMESTAMP '2026-01-01 00:09:59.999'),
          ('b', TIMESTAMP '2026-01-01 00:04:00'), ('a', TIMESTAMP '2026-01-01 00:10:00'), ('b', NULL)
        """
    )
    return sql


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2026, 1, 1, 0, minute, second)  # noqa: DTZ001 - a wall clock


def test_windows_keep_the_columns_of_their_rows(events: Sql) -> None:
    tumble = "SELECT * FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' MINUTES))"
    assert events(tumble).columns == ["k", "at", "window_start", "window_end", "window_time"]
    last = at(9, 59).replace(microsecond=999_000)
    assert events.rows(f"{tumble} WHERE k = 'b'") == [("b", at(4), at(0), at(10), last)]


def test_hopping_windows_overlap(events: Sql) -> None:
    assert events.rows(
        "SELECT window_start, COUNT(*) FROM TABLE(HOP(TABLE events, DESCRIPTOR(at), INTERVAL '5' MINUTES,"
        " INTERVAL '10' MINUTES)) GROUP BY window_start, window_end"
    ) == [(datetime(2025, 12, 31, 23, 55), 2), (at(0), 3), (at(5), 2), (at(10), 1)]  # noqa: DTZ001 - a wall clock


def test_sessions_end_with_a_gap_in_their_key(events: Sql) -> None:
    assert events.rows(
        "SELECT k, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(at),"
        " INTERVAL '5' MINUTES)) GROUP BY k, window_start, window_end"
    ) == [("a", at(1), at(6), 1), ("a", at(9, 59).replace(microsecond=999_000), at(15), 2), ("b", at(4), at(9), 1)]


def test_windows_work_over_names_of_the_query(events: Sql) -> None:
    assert events.rows(
        "WITH a AS (SELECT * FROM events WHERE k = 'a') SELECT COUNT(*) FROM"
        " TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '1' DAY)) AS w GROUP BY w.window_start, w.window_end"
    ) == [(3,)]


def test_tables_states_of_the_past_and_system_tables_join(events: Sql) -> None:
    events("INSERT INTO events VALUES ('c', NULL)")
    assert events.rows("SELECT n.k FROM events n LEFT ANTI JOIN events VERSION AS OF 1 o ON n.k = o.k") == [("c",)]
    assert events.rows("SELECT MAX(s.snapshot_id), COUNT(DISTINCT e.k) FROM events$snapshots s, default.events e") == [
        (2, 3)
    ]


def test_inserts_match_by_place_and_widen_values(sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT, b DOUBLE, c DECIMAL(10, 2), d TIMESTAMP(3), e STRING)")
    sql("INSERT INTO t SELECT CAST(1 AS TINYINT), 2.5, 3, DATE '2026-01-01', NULL")
    sql("INSERT INTO t (e, a) SELECT 'x', a + 1 FROM t")
    assert sql.rows("SELECT * FROM t ORDER BY a") == [
        (1, 2.5, Decimal("3.00"), at(0), None),
        (2, None, None, None, "x"),
    ]


@pytest.mark.parametrize(
    ("select", "says"),
    [
        ("SELECT 1", "the query has 1 columns .* and 2 are to be written"),
        ("SELECT 'x', 'y'", "'a'"),
        ("SELECT 1.5, 'y'", "'a'"),
    ],
)
def test_rows_that_do_not_fit_are_refused(sql: Sql, select: str, says: str) -> None:
    sql("CREATE TABLE t (a BIGINT, b STRING)")
    with pytest.raises(SchemaMismatchError, match=says):
        sql(f"INSERT INTO t {select}")
    assert sql.catalog.load_table("default.t").latest_snapshot() is None


def test_implicit_casts_lose_nothing(sql: Sql) -> None:
    sql("CREATE TABLE t (d DOUBLE, f FLOAT, n TIMESTAMP(6))")
    sql("INSERT INTO t SELECT 9007199254740992, 16777216, TIMESTAMP '2024-11-03 08:30:00Z' UNION ALL SELECT 1, 2, NULL")
    sql("INSERT INTO t SELECT 2.5, 0.1, NULL")
    for column, text in (
        ("d", "9007199254740993"),
        ("f", "16777217"),
        ("d", "0.1234567890123456789"),
        ("n", "TIMESTAMP '2024-11-03 09:30:00Z'"),  # 01:30 in the session's zone, as an hour before
    ):
        with pytest.raises(Exception, match=rf"column '{column}': .* write CAST\(... AS"):
            sql(f"INSERT INTO t ({column}) SELECT {text}")
    sql("INSERT INTO t (d, f) SELECT CAST(9007199254740993 AS DOUBLE), CAST(16777217 AS FLOAT)")
    assert sql.rows("SELECT d, f FROM t ORDER BY d") == [
        (1.0, 2.0),
        (2.5, pytest.approx(0.1)),
        (2.0**53, 2.0**24),
        (2.0**53, 2.0**24),
    ]


def test_overwrite_of_a_partition_takes_its_value_from_the_statement(sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT, d DATE) PARTITIONED BY (d)")
    sql("INSERT INTO t SELECT id, DATE '2026-01-01' + CAST(id % 2 AS INT) FROM range(4)")
    sql("INSERT OVERWRITE t PARTITION (d = DATE '2026-01-01') SELECT id + 10 FROM range(1)")
    assert [row[0] for row in sql.rows("SELECT a FROM t")] == [1, 3, 10]


def test_conditions_on_partitions_are_applied_before_spark(sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT, d STRING) PARTITIONED BY (d)")
    sql("INSERT INTO t SELECT id, CAST(id % 4 AS STRING) FROM range(8)")
    frame = sql("SELECT a FROM t x WHERE x.d = '1' AND a + 1 > 3 AND a IN (1, 5)")
    assert [row.a for row in frame.collect()] == [5]
    files = sql("SELECT DISTINCT input_file_name() AS f FROM t WHERE d IN ('1', '2')").collect()
    assert len({row.f.rpartition("/")[0].rpartition("/")[0].rpartition("/")[2] for row in files}) == 2
    # Two tasks have written to each of four partitions.
    assert (files_opened(frame), files_opened(sql("SELECT a FROM t"))) == (2, 8)


def test_sorting_by_a_procedure_runs_on_the_session(sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT); INSERT INTO t SELECT 10 - id FROM range(10)")
    sql("CALL sys.compact(`table` => 't', order_strategy => 'order', order_by => 'a')")
    assert [row["a"] for row in sql.catalog.load_table("default.t").to_arrow().to_pylist()] == list(range(1, 11))


@pytest.mark.parametrize("query", ["SELECT nope FROM events", "SELECT no_such_function(k) FROM events"])
def test_what_spark_does_not_understand_names_no_view_of_ours(events: Sql, query: str) -> None:
    with pytest.raises(InvalidSqlError, match="Spark cannot run the query") as caught:
        events(query)
    assert "penstock_" not in str(caught.value)


def test_settings_of_spark_reach_the_session_and_go_back(sql: Sql) -> None:
    before = sql.spark.conf.get("spark.sql.optimizer.maxIterations")
    sql("SET 'spark.sql.optimizer.maxIterations' = '77'")
    assert sql.spark.conf.get("spark.sql.optimizer.maxIterations") == "77"
    sql("RESET 'spark.sql.optimizer.maxIterations'")
    assert sql.spark.conf.get("spark.sql.optimizer.maxIterations") == before


def test_the_command_prints_rows_of_queries_and_of_streams(sql: Sql) -> None:
    warehouse = sql.catalog.warehouse
    sql("CREATE TABLE t (a BIGINT); INSERT INTO t SELECT id FROM range(3)")

    def run(text: str) -> str:
        arguments = ["-w", warehouse, "--format", "json", "sql", "--spark", "local[2]", "-e", text]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert json.loads(run("SELECT SUM(a) AS s FROM t")) == [{"s": 3}]
    lines = run("SELECT a FROM t /*+ OPTIONS('scan.mode' = 'latest-full', 'scan.bounded' = 'true') */").splitlines()
    assert sorted(json.loads(line)["a"] for line in lines) == [0, 1, 2]


def test_a_failure_of_spark_is_a_line_and_not_a_trace(sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)")
    arguments = ["-w", sql.catalog.warehouse, "sql", "--spark", "local[2]", "-e"]
    for query in ("SELECT a / 0 FROM t", "SET 'execution.runtime-mode' = 'streaming'; SELECT a / 0 FROM t"):
        result = CliRunner().invoke(app, [*arguments, query])
        assert result.exit_code == 1
        assert result.stderr.startswith("error: Spark could not run it: Division by zero.")
        assert len(result.stderr.splitlines()) == 1


def test_times_with_a_zone_are_instants(sql: Sql) -> None:
    sql("CREATE TABLE t (at TIMESTAMP(6) WITH LOCAL TIME ZONE)")
    sql("INSERT INTO t VALUES (TIMESTAMP '2026-07-01 00:00:00Z')")
    (row,) = sql("SELECT unix_seconds(at) AS s FROM t").collect()
    assert row.s == datetime(2026, 7, 1, tzinfo=UTC).timestamp()
