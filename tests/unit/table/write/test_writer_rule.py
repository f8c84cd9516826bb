"""A batch that begins too many files is told so, with what helps."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.api.catalog import Catalog
from penstock.table.message import CommitMessage
from penstock.table.write.writer import warn_too_many_writers

if TYPE_CHECKING:
    import pytest

    from penstock.table.ref import TableRef

_NUMBERS = itertools.count()


def ref_of(**options: str) -> TableRef:
    catalog = Catalog(f"memory://rule-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p BIGINT", partition_by=["p"], options=options)
    return table._ref


def messages(partitions: int, buckets: int) -> list[CommitMessage]:
    return [
        CommitMessage(partition=bytes([p]), bucket=b, total_buckets=buckets)
        for p in range(partitions)
        for b in range(buckets)
    ]


def test_ninety_nine_writers_a_task_are_fine(caplog: pytest.LogCaptureFixture) -> None:
    warn_too_many_writers(ref_of(), messages(99, 2), tasks=2)
    warn_too_many_writers(ref_of(), [], tasks=0)
    assert caplog.text == ""


def test_a_hundred_are_reported_once_an_hour_with_the_option_to_set(caplog: pytest.LogCaptureFixture) -> None:
    ref = ref_of(bucket="4", **{"bucket-key": "k"})
    warn_too_many_writers(ref, messages(50, 4), tasks=2, clock=lambda: 0.0)
    warn_too_many_writers(ref, messages(50, 4), tasks=2, clock=lambda: 3_599.0)
    assert len(caplog.records) == 1
    text = caplog.text
    assert "table db.t: an append wrote 200 files in 2 tasks" in text
    assert "write fewer than 100 per task" in text
    assert "write fewer than 50 partitions at a time, or use fewer than 4 buckets, or set" in text
    assert "'partition.sink-strategy' = 'hash', so that" in text
    warn_too_many_writers(ref, messages(50, 4), tasks=2, clock=lambda: 3_600.0)
    assert len(caplog.records) == 2


def test_an_append_without_spark_is_one_task(caplog: pytest.LogCaptureFixture) -> None:
    catalog = Catalog(f"memory://rule-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.many", "k BIGINT, p BIGINT", partition_by=["p"])
    table.append(pa.table({"k": list(range(99)), "p": list(range(99))}))
    assert caplog.text == ""
    table.append(pa.table({"k": list(range(100)), "p": list(range(100))}))
    assert "db.many: an append wrote 100 files in 1 task," in caplog.text
