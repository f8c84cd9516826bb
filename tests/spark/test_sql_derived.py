"""Views, tables made out of queries, and EXPLAIN, with Spark."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import Sql, new_session, wait_for

from penstock import InvalidSqlError
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BY_WINDOW = """
SELECT window_start, COUNT(*) AS n FROM TABLE({call}(TABLE {table}, DESCRIPTOR(t), {sizes}))
GROUP BY window_start, window_end
"""


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@pytest.fixture
def events(sql: Sql) -> Sql:
    """A table of four events, with a watermark."""
    sql(
        """
        CREATE TABLE events (id BIGINT, name VARCHAR(5), at TIMESTAMP(3), WATERMARK FOR at AS at) PARTITIONED BY (name);
        INSERT INTO events VALUES (1, 'a', TIMESTAMP '2026-01-01 00:01:00'), (2, 'a', TIMESTAMP '2026-01-01 00:02:00'),
          (3, 'b', TIMESTAMP '2026-01-01 00:11:00'), (4, 'b', TIMESTAMP '2026-01-01 00:21:00')
        """
    )
    return sql


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 0, minute)  # noqa: DTZ001 - a wall clock


def types(sql: Sql, table: str) -> list[str]:
    fields = sql.catalog.load_table(f"default.{table}").schema.fields
    return [f"{field.name} {format_sql_type(field.type)}" for field in fields]


def test_views_return_the_rows_of_their_queries(events: Sql) -> None:
    events("CREATE VIEW totals (who, total) AS SELECT name, SUM(id) FROM events GROUP BY name")
    events("CREATE TEMPORARY VIEW larger AS SELECT t.who FROM totals t WHERE t.total > 3")
    assert events.rows("SELECT l.who, e.id FROM larger l JOIN events e ON e.name = l.who") == [("b", 3), ("b", 4)]
    assert [(row["name"], row["type"]) for row in events("DESCRIBE totals").to_pylist()] == [
        ("who", "VARCHAR(5)"),
        ("total", "BIGINT"),
    ]
    events("CREATE VIEW broken (one) AS SELECT * FROM totals")
    with pytest.raises(InvalidSqlError, match=r"view default\.broken: it names 1 columns, .* 2: who, total"):
        events("SELECT * FROM broken")
    events("CREATE VIEW wrong AS SELECT nope FROM events")
    with pytest.raises(
        InvalidSqlError, match=r"view default\.wrong: line 1, column 29: Spark cannot run the query: .*`nope`"
    ):
        events("SELECT * FROM wrong")


def test_views_are_streams_where_their_tables_are(events: Sql) -> None:
    events("CREATE VIEW timed AS SELECT at AS t, name FROM events WHERE id < 5")
    tumbled = BY_WINDOW.format(call="TUMBLE", table="timed", sizes="INTERVAL '10' MINUTES")
    assert events.rows(tumbled) == [(at(0), 2), (at(10), 1), (at(20), 1)]
    assert events.streamed(tumbled) == [(at(0), 2), (at(10), 1)]
    cumulated = BY_WINDOW.format(call="CUMULATE", table="timed", sizes="INTERVAL '10' MINUTES, INTERVAL '20' MINUTES")
    assert events.streamed(cumulated) == [(at(0), 2), (at(0), 3)]


def test_the_bound_in_a_view_is_that_of_the_query(events: Sql) -> None:
    events("CREATE TABLE copy (id BIGINT); SET 'table.dml-sync' = 'true'")
    events("CREATE VIEW bounded AS SELECT id FROM events /*+ OPTIONS('scan.bounded' = 'true') */")
    query = events("INSERT INTO copy SELECT id FROM bounded")
    assert not query.isActive
    assert events.rows("SELECT * FROM copy") == [(1,), (2,), (3,), (4,)]


def test_a_table_made_of_a_query_has_the_types_of_its_tables(events: Sql) -> None:
    snapshot = events(
        "CREATE TABLE made (WATERMARK FOR t AS t) PARTITIONED BY (name) AS"
        " SELECT e.name, e.at AS t, COUNT(*) AS n, MAX(e.at) AS latest FROM events e GROUP BY e.name, e.at"
    )
    assert snapshot.total_record_count == 4
    assert types(events, "made") == [
        "name VARCHAR(5)",
        "t TIMESTAMP(3)",
        "n BIGINT NOT NULL",
        "latest TIMESTAMP(6)",
    ]


def test_a_table_made_of_a_stream_is_filled_by_it(events: Sql) -> None:
    query = events(
        "SET 'execution.runtime-mode' = 'streaming'; CREATE TABLE made AS SELECT at, id + 1 AS n FROM events"
    )
    events("RESET 'execution.runtime-mode'")
    try:
        wait_for(lambda: events.rows("SELECT n FROM made"), [(2,), (3,), (4,), (5,)])
    finally:
        query.stop()
    assert types(events, "made") == ["at TIMESTAMP(3)", "n BIGINT"]


def test_nothing_is_made_of_a_query_that_cannot_run(events: Sql) -> None:
    with pytest.raises(InvalidSqlError, match="nope"):
        events("CREATE TABLE made AS SELECT nope FROM events")
    assert events.catalog.list_tables("default") == ("events",)


def test_explain_shows_what_is_opened_and_sparks_plan(events: Sql) -> None:
    events("CREATE VIEW few AS SELECT id FROM events WHERE name = 'a'")
    (row,) = events("EXPLAIN SELECT COUNT(*) FROM events e WHERE e.name = 'a' AND e.id + 1 > 2").to_pylist()
    assert "== events ==\nsnapshot 1 (APPEND)" in row["result"]
    assert "after partitions: 1 partition," in row["result"]
    assert "== Physical Plan ==" in row["result"]
    assert "HashAggregate" in row["result"]
    (row,) = events("EXPLAIN SELECT * FROM few JOIN events$snapshots ON snapshot_id = id").to_pylist()
    assert "== paimon.default.events ==" in row["result"]
    assert "== events$snapshots ==\na system table, read whole" in row["result"]
    (row,) = events("EXPLAIN SELECT * FROM events /*+ OPTIONS('scan.bounded' = 'true') */").to_pylist()
    assert "== events ==\nread as a stream, 'scan.bounded' = 'true'" in row["result"]
    assert "== Analyzed Logical Plan ==" in row["result"]
    assert "penstock_" not in row["result"]
