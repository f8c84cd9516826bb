"""Computed columns in queries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.spark.golden import LOCATIONS
from tests.spark.sql_runner import Sql, collect, new_session

from penstock import UnsupportedFeatureError
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MILLIS = int(NOON.timestamp() * 1000)


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@pytest.fixture
def clicks(sql: Sql) -> Sql:
    """Three clicks, one of them without a time."""
    sql(
        f"""
        CREATE TABLE clicks (ms BIGINT, at AS TO_TIMESTAMP_LTZ(ms, 3), text STRING, flag BOOLEAN,
          parsed AS TO_TIMESTAMP(text), WATERMARK FOR at AS at);
        INSERT INTO clicks (ms, text) VALUES ({NOON_MILLIS}, '2026-03-08 02:30:00'),
          ({NOON_MILLIS + 60_123}, '2026-03-08 02:30:00.12'), (NULL, NULL)
        """  # noqa: S608 - of this file
    )
    return sql


def test_computed_columns_are_at_their_positions(clicks: Sql) -> None:
    frame = clicks("SELECT * FROM clicks")
    assert frame.dtypes == [
        ("ms", "bigint"),
        ("at", "timestamp"),
        ("text", "string"),
        ("flag", "boolean"),
        ("parsed", "timestamp_ntz"),
    ]
    rows = {row.ms: row for row in frame.collect()}
    assert rows[None].at is None
    assert rows[None].parsed is None
    assert rows[NOON_MILLIS].at.astimezone(UTC) == NOON
    assert rows[NOON_MILLIS].parsed == datetime(2026, 3, 8, 2, 30)  # noqa: DTZ001 - a wall clock
    assert rows[NOON_MILLIS + 60_123].parsed.microsecond == 120_000


def test_a_watermark_on_a_computed_column_closes_windows(clicks: Sql) -> None:
    counted = (
        "SELECT COUNT(*) AS n FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE))"
        " GROUP BY window_start, window_end"
    )
    assert clicks.rows(counted) == [(1,), (1,)]
    assert clicks.streamed(counted) == [(1,)]


def test_the_processing_time_is_that_of_the_query(clicks: Sql) -> None:
    clicks("CREATE TABLE timed (id INT, now AS PROCTIME()); INSERT INTO timed VALUES (1)")
    before = datetime.now(UTC)
    ((_, now),) = clicks.rows("SELECT * FROM timed")
    assert isinstance(now, datetime)
    assert before.replace(microsecond=0) <= now.astimezone(UTC) <= datetime.now(UTC)


def test_a_table_made_of_them_stores_them(clicks: Sql) -> None:
    clicks("CREATE TABLE kept AS SELECT * FROM clicks")
    kept = clicks.catalog.load_table("default.kept").schema
    assert [format_sql_type(field.type) for field in kept.fields] == [
        "BIGINT",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "STRING",
        "BOOLEAN",
        "TIMESTAMP(3)",
    ]
    assert len(clicks.rows("SELECT at FROM kept WHERE at IS NOT NULL")) == 2


def test_a_text_that_flink_may_read_otherwise_fails_the_query(clicks: Sql) -> None:
    clicks("INSERT INTO clicks (text) VALUES ('2026-3-8 2:30:00')")
    with pytest.raises(Exception, match=r"TO_TIMESTAMP: this is not a time such as .*: 2026-3-8 2:30:00"):
        clicks("SELECT parsed FROM clicks").collect()


def test_a_column_that_is_not_evaluated_is_refused_where_it_is_wanted(sql: Sql) -> None:
    sql("CREATE TABLE t (flag BOOLEAN, text AS CAST(flag AS STRING)); INSERT INTO t (flag) VALUES (TRUE)")
    assert sql.rows("SELECT flag, COUNT(*) FROM t GROUP BY flag") == [(True, 1)]
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"'text' is computed as CAST\(`flag` AS STRING\), and CAST of BOOLEAN as STRING is not .*; name the",
    ):
        sql("SELECT * FROM t")
    with pytest.raises(UnsupportedFeatureError, match="; compute it in the query"):
        sql("SELECT flag FROM t WHERE text = 'x'")


def test_flinks_windows_are_ours(sql: Sql) -> None:
    """Flink wrote the one table from the other by this very aggregate, and told all windows when its input ended."""
    folder = LOCATIONS["f_watermark"].parents[1]
    sql(f"CREATE CATALOG golden WITH ('type' = 'paimon', 'warehouse' = '{folder}'); USE CATALOG golden; USE flink131s")
    windows = (
        "SELECT window_start, window_end, COUNT(*), SUM(amount) FROM"
        " TABLE(TUMBLE(TABLE f_watermark, DESCRIPTOR(order_time), INTERVAL '1' MINUTES))"
        " GROUP BY window_start, window_end"
    )
    theirs = sql.rows("SELECT * FROM f_window_out")
    assert len(theirs) == 5
    assert sql.rows(windows) == theirs
    bounded = windows.replace("f_watermark", "f_watermark /*+ OPTIONS('scan.bounded' = 'true') */")
    assert collect(sql(bounded)) == theirs
