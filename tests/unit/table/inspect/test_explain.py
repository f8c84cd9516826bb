from __future__ import annotations

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock.format.schema import assign_field_ids
from penstock.format.types.ddl import parse_columns
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.printable import bytes_text
from penstock.table.inspect.explain import explain_plan, format_predicate
from penstock.table.read.scan import plan_scan


@pytest.mark.parametrize(
    "text",
    [
        "`a` = 5 AND (`b` <> 'x' OR `c` IS NOT NULL)",
        "`a` IN (1, 2)",
        "`a` NOT IN (1)",
        "NOT (`a` = 1 AND `b` = 2)",
        "`s` LIKE 'ab%'",
        "`s` NOT LIKE 'ab%'",
        "TRUE",
        "FALSE",
    ],
)
def test_a_filter_prints_as_it_was_written(text: str) -> None:
    assert format_predicate(parse_filter(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "`price` > 60.00",
        "`at` >= TIMESTAMP '2026-01-07 10:00:00'",
        "`at` < TIMESTAMP '1969-12-31 23:59:59.999'",
        "`z` = TIMESTAMP '2026-01-07 10:00:00Z'",
        "`d` IN (DATE '2026-01-01', DATE '1969-12-31')",
        "`tm` > TIME '01:00:00'",
        "`s` = 'it''s'",
        "`b` = X'78'",
        "`ok` = true",
    ],
)
def test_literals_of_a_plan_print_as_sql_writes_them(text: str) -> None:
    columns = (
        "price DECIMAL(10, 2), at TIMESTAMP(3), z TIMESTAMP(6) WITH LOCAL TIME ZONE, d DATE, tm TIME, s STRING, "
        "b BYTES, ok BOOLEAN"
    )
    fields, _ = assign_field_ids(parse_columns(columns))
    bound = bind(parse_filter(text), fields, "d.t")
    assert format_predicate(bound.root, bound.fields) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**4, "5.0 TiB"), (10**18, "909494.7 TiB")],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert bytes_text(size) == text


def test_a_plan_without_a_filter_says_so() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("a")))
    text = explain_plan(plan_scan(table.store, table.ref, table.snapshots[-1]))
    assert text.splitlines() == [
        "snapshot 1 (APPEND), schema 0",
        "filter: TRUE",
        "manifests: 1 of 1 read",
        "live files: 1, rows: unknown",
        "in the manifests read: 1 partition, 1 bucket, 1 file, 1000 B, 10 rows",
        "filtered by row: nothing",
    ]
