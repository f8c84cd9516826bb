"""Filters of Spark for data sources in Python become predicates that prune."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import datasource as source
from pyspark.sql.datasource import DataSourceReader

import penstock
from penstock.predicate.parse import parse_filter
from penstock.predicate.text import format_filter
from penstock.predicate.tree import And
from penstock.spark.data_source.filters import take_filters
from penstock.spark.data_source.source import SplitPartition, TableSourceReader
from penstock.spark.types import to_spark_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> penstock.Table:
    catalog = penstock.Catalog(str(tmp_path))
    catalog.create_database("d")
    made = catalog.create_table("d.t", "a INT, price DOUBLE, on_day DATE, dt STRING", partition_by="dt")
    days = [f"2026-01-{number:02}" for number in range(1, 31)]
    made.append([{"a": n, "price": n / 2, "on_day": dt.date(2026, 1, n + 1), "dt": d} for n, d in enumerate(days)])
    return made


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([source.EqualTo(("dt",), "2026-01-02")], ["dt = '2026-01-02'"]),
        ([source.IsNotNull(("a",)), source.GreaterThan(("a",), 3)], ["a IS NOT NULL", "a > 3"]),
        ([source.Not(source.EqualTo(("a",), 3))], ["NOT (a = 3)"]),
        ([source.Not(source.In(("a",), (3, None)))], ["NOT (a IN (3, NULL))"]),
        ([source.StringStartsWith(("dt",), "2026-01-1")], ["dt LIKE '2026-01-1%'"]),
        ([source.LessThanOrEqual(("on_day",), dt.date(2026, 1, 2))], ["on_day <= DATE '2026-01-02'"]),
        # Days that arrive as 1582-10-15, and that day, which may be one of them.
        ([source.EqualTo(("on_day",), dt.date(1582, 10, 10)), source.IsNotNull(("a",))], ["a IS NOT NULL"]),
        ([source.Not(source.In(("on_day",), [dt.date(2026, 1, 2), dt.date(1582, 10, 15)]))], []),
        ([source.LessThan(("on_day",), dt.date(1582, 10, 16))], ["on_day < DATE '1582-10-16'"]),
        # Floating-point numbers, fields of rows, and conditions that we do not have.
        ([source.EqualTo(("price",), 1.5), source.IsNull(("a",))], ["a IS NULL"]),
        ([source.EqualTo(("a", "b"), 1)], []),
        ([source.StringEndsWith(("dt",), "x"), source.EqualNullSafe(("a",), 1)], []),
        ([source.EqualTo(("a",), "x")], []),
    ],
)
def test_what_we_can_say_is_taken_and_the_rest_left(table: penstock.Table, given: Any, wanted: list[str]) -> None:
    found = take_filters(table._ref, given)
    assert (found is None) == (wanted == [])
    operands = found.operands if isinstance(found, And) else ()
    assert [format_filter(each) for each in operands] == [format_filter(parse_filter(text)) for text in wanted]


def planned(table: penstock.Table, filters: list[source.Filter]) -> list[int]:
    """Plan a read as PySpark does, and return the numbers that it yields."""
    reader = TableSourceReader(table._ref, to_spark_schema(table.schema.fields), None)
    assert list(reader.pushFilters(filters)) == filters
    parts = [part for part in reader.partitions() if isinstance(part, SplitPartition)]
    shipped = pickle.loads(pickle.dumps(reader))
    return [value for part in parts for batch in shipped.read(part) for value in batch.column("a").to_pylist()]


def test_a_filter_of_the_query_prunes_partitions_and_spark_still_applies_it(table: penstock.Table) -> None:
    assert planned(table, [source.EqualTo(("dt",), "2026-01-02")]) == [1]
    assert sorted(planned(table, [])) == list(range(30))
    assert planned(table, [source.In(("dt",), ("2026-01-02", "2026-01-09"))]) in ([1, 8], [8, 1])


def test_a_session_without_push_down_is_not_refused(table: penstock.Table) -> None:
    reader = TableSourceReader(table._ref, to_spark_schema(table.schema.fields), None)
    # The comparison that PySpark makes.
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters


def test_a_read_of_many_files_without_a_filter_says_once_how_to_skip_some(
    table: penstock.Table, caplog: pytest.LogCaptureFixture
) -> None:
    TableSourceReader(table._ref, to_spark_schema(table.schema.fields), None).partitions()
    assert not caplog.records  # thirty files
    table.append([{"a": n, "price": 0.5, "on_day": None, "dt": f"2026-02-0{n}"} for n in range(1, 4)])
    schema = to_spark_schema(table.schema.fields)
    for text in ("dt = '2026-01-01'", None, None):
        TableSourceReader(table._ref, schema, text).partitions()
    (record,) = caplog.records
    assert "all 33 files" in record.getMessage()
    assert "spark.conf.set('spark.sql.python.filterPushdown.enabled', 'true')" in record.getMessage()
