"""Windows of Flink that Spark does not have, against their definition."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import Sql, new_session

from penstock import InvalidSqlError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
# The night in which the clocks of the session's zone go forward.
NIGHT = datetime(2026, 3, 8)  # noqa: DTZ001 - a wall clock
MINUTE = timedelta(minutes=1)
COUNTED = """
SELECT window_start, window_end, COUNT(*) FROM TABLE(CUMULATE({table}, DESCRIPTOR(at), {sizes}))
GROUP BY window_start, window_end
"""
SHIFTED = """
SELECT window_start, COUNT(*) FROM TABLE({call}(TABLE events, DESCRIPTOR(at), {sizes}))
GROUP BY window_start, window_end
"""
SESSIONS = """
SELECT {keys} window_start, COUNT(*) FROM
  TABLE(SESSION(TABLE clicks {partition} DESCRIPTOR(at), INTERVAL '5' MINUTES)) GROUP BY {keys} window_start, window_end
"""


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@pytest.fixture
def times(sql: Sql) -> list[datetime]:
    """Times of a table ``events``, over a night; one row has none."""
    random = Random(7)  # noqa: S311 - of a test
    found = sorted(NIGHT + timedelta(seconds=random.randrange(6 * 3600)) for _ in range(60))
    sql("CREATE TABLE events (at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '2' MINUTES)")
    values = ["(NULL)", *(f"(TIMESTAMP '{time}')" for time in found)]
    sql("INSERT INTO events VALUES " + ", ".join(values))  # noqa: S608 - of this file
    return found


def cumulated(
    times: list[datetime], step: timedelta, size: timedelta, offset: timedelta
) -> Counter[tuple[datetime, datetime]]:
    """Count rows by Flink's definition of CUMULATE."""
    windows: Counter[tuple[datetime, datetime]] = Counter()
    for time in times:
        start = time - (time - EPOCH - offset) % size
        end = start + step
        while end <= start + size:
            if end > time:
                windows[start, end] += 1
            end += step
    return windows


@pytest.mark.parametrize(
    ("sizes", "step", "size", "offset"),
    [
        ("INTERVAL '10' MINUTES, INTERVAL '1' HOUR", 10, 60, 0),
        ("INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '150' MINUTES", 60, 1440, 150),
        ("SIZE => INTERVAL '4' HOURS, STEP => INTERVAL '2' HOURS, OFFSET => INTERVAL '-5' HOURS", 120, 240, -300),
        ("INTERVAL '1' MINUTE, INTERVAL '1' DAY", 1, 1440, 0),
    ],
)
def test_cumulated_windows_are_those_of_flinks_definition(
    sql: Sql, times: list[datetime], sizes: str, step: int, size: int, offset: int
) -> None:
    expected = cumulated(times, step * MINUTE, size * MINUTE, offset * MINUTE)
    assert sql.rows(COUNTED.format(table="TABLE events", sizes=sizes)) == sorted(
        (*window, count) for window, count in expected.items()
    )


@pytest.mark.slow
def test_cumulated_windows_of_a_stream_are_emitted_one_after_the_other(sql: Sql, times: list[datetime]) -> None:
    sizes = "INTERVAL '10' MINUTES, INTERVAL '1' HOUR"
    passed = max(times) - 2 * MINUTE
    windows = cumulated(times, 10 * MINUTE, 60 * MINUTE, timedelta())
    expected = sorted((*window, count) for window, count in windows.items() if window[1] <= passed)
    assert 0 < len(expected) < len(windows)
    assert max(start for start, *_ in expected) + 60 * MINUTE > passed, "a window whose whole is not over yet"
    assert sql.streamed(COUNTED.format(table="TABLE events", sizes=sizes)) == expected


def test_windows_of_instants_are_aligned_whatever_the_session_zone_does(sql: Sql) -> None:
    sql("CREATE TABLE instants (at TIMESTAMP(3) WITH LOCAL TIME ZONE)")
    sql("INSERT INTO instants VALUES (TIMESTAMP '2026-03-08 09:30:00Z'), (TIMESTAMP '2026-03-08 23:59:59.999Z')")
    rows = sql.rows(COUNTED.format(table="TABLE instants", sizes="INTERVAL '12' HOURS, INTERVAL '1' DAY"))
    day = datetime(2026, 3, 8, tzinfo=UTC)
    assert [(start.astimezone(UTC), end.astimezone(UTC), count) for start, end, count in rows] == [
        (day, day + timedelta(hours=12), 1),
        (day, day + timedelta(days=1), 2),
    ]


def test_rows_keep_their_columns(sql: Sql, times: list[datetime]) -> None:
    query = "SELECT * FROM TABLE(CUMULATE(TABLE events, DESCRIPTOR(at), INTERVAL '3' HOURS, INTERVAL '6' HOURS)) w"
    frame = sql(f"{query} WHERE w.at = TIMESTAMP_NTZ '{times[0]}'")
    assert frame.columns == ["at", "window_start", "window_end", "window_time"]
    assert sorted(row.window_end - row.window_time for row in frame.collect()) == [timedelta(milliseconds=1)] * 2


@pytest.mark.parametrize("offset", [4, 26, -26])
def test_windows_are_shifted_by_any_time(sql: Sql, times: list[datetime], offset: int) -> None:
    shift = f"INTERVAL '{offset}' MINUTES"
    tumbled = sql.rows(SHIFTED.format(call="TUMBLE", sizes=f"INTERVAL '10' MINUTES, {shift}"))
    starts = Counter(time - (time - EPOCH - offset * MINUTE) % (10 * MINUTE) for time in times)
    assert tumbled == sorted(starts.items())
    hopped = sql.rows(SHIFTED.format(call="HOP", sizes=f"INTERVAL '5' MINUTES, INTERVAL '10' MINUTES, {shift}"))
    latest = [time - (time - EPOCH - offset * MINUTE) % (5 * MINUTE) for time in times]
    assert hopped == sorted(Counter([*latest, *(start - 5 * MINUTE for start in latest)]).items())


def test_names_of_the_query_are_not_cumulated(sql: Sql) -> None:
    sizes = "INTERVAL '1' HOUR, INTERVAL '1' DAY"
    with pytest.raises(InvalidSqlError, match=r"CREATE TEMPORARY VIEW creates one of 'c'"):
        sql("WITH c AS (SELECT 1 AS at) " + COUNTED.format(table="TABLE c", sizes=sizes).strip())


def test_sessions_of_a_stream_have_keys(sql: Sql) -> None:
    sql("CREATE TABLE clicks (k STRING, at TIMESTAMP(3), WATERMARK FOR at AS at)")
    sql(
        "INSERT INTO clicks VALUES ('a', TIMESTAMP '2026-03-08 02:00:00'), ('b', TIMESTAMP '2026-03-08 02:01:00'),"
        " ('a', TIMESTAMP '2026-03-08 02:03:00'), ('b', TIMESTAMP '2026-03-08 02:09:00')"
    )
    start = NIGHT + timedelta(hours=2)
    keyed = SESSIONS.format(keys="k,", partition="PARTITION BY k,")
    assert sql.streamed(keyed) == [("a", start, 2), ("b", start + MINUTE, 1)]
    keyless = SESSIONS.format(keys="", partition=",").strip()
    assert sql.rows(keyless) == [(start, 3), (start + 9 * MINUTE, 1)]
    with pytest.raises(UnsupportedFeatureError, match=r"line 2, column 3: .* only by key: PARTITION BY"):
        sql.streamed(keyless)
