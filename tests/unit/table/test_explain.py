from __future__ import annotations

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock.predicate.parse import parse_filter
from penstock.table.explain import explain_plan, format_bytes, format_predicate
from penstock.table.scan import plan_scan


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
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**4, "5.0 TiB"), (10**18, "909494.7 TiB")],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_a_plan_without_a_filter_says_so() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("a")))
    text = explain_plan(plan_scan(table.store, table.ref, table.snapshots[-1]))
    assert text.splitlines() == [
        "snapshot 1 (APPEND), schema 0",
        "filter: TRUE",
        "manifests: 1 of 1 read",
        "live files: 1, rows: unknown",
        "in the manifests read: 1 partitions, 1 buckets, 1 files, 1000 B, 10 rows",
        "filtered by row: nothing",
    ]
