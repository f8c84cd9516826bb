"""What compaction has before it, as a system table and in ``penstock show``."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.cli.output.describe import describe_table
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock.api.table import Table

_NUMBERS = itertools.count()


def table_of(**options: str) -> Table:
    catalog = Catalog(f"memory://debts-{next(_NUMBERS)}")
    catalog.create_database("db")
    return catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"], options=options)


def append(table: Table, p: str, *ks: int) -> None:
    table.append(pa.table({"k": pa.array(ks, pa.int64()), "p": [p] * len(ks)}))


def debts(table: Table) -> dict[str, dict[str, Any]]:
    rows = table.inspect.compaction_debt().to_pylist()
    return {str(row.pop("partition")): row for row in rows}


def test_a_partition_owes_its_small_files_until_they_are_merged() -> None:
    table = table_of(bucket="2", **{"bucket-key": "k", "write-only": "true"})
    assert table.inspect.compaction_debt().num_rows == 0
    for _ in range(4):
        append(table, "a", *range(20))
    append(table, "b", 1)
    found = debts(table)
    assert found["p=a"] | {"small_file_bytes": 0, "waiting_bytes": 0} == {
        "file_count": 8,
        "small_file_count": 8,
        "small_file_bytes": 0,
        "waiting_file_count": 8,
        "waiting_bytes": 0,
        "bucket_count": 2,
        "max_bucket_file_count": 4,
        "last_compaction_snapshot_id": None,
    }
    assert (
        found["p=a"]["waiting_bytes"]
        == found["p=a"]["small_file_bytes"]
        == table.partitions().to_pylist()[0]["file_size_in_bytes"]
    )
    assert (found["p=b"]["small_file_count"], found["p=b"]["waiting_file_count"]) == (1, 0)
    described = describe_table(table)
    assert (described["small_files"], described["waiting_files"]) == (9, 8)

    (snapshot,) = table.compact().snapshots
    append(table, "b", 2)
    after = debts(table)
    assert (after["p=a"]["waiting_file_count"], after["p=a"]["last_compaction_snapshot_id"]) == (0, snapshot.id)
    assert (after["p=a"]["max_bucket_file_count"], after["p=b"]["last_compaction_snapshot_id"]) == (1, None)
    earlier = table.inspect.compaction_debt(snapshot_id=snapshot.id - 1).to_pylist()
    assert sum(row["waiting_file_count"] for row in earlier) == 8


def test_a_file_that_is_large_enough_is_no_debt() -> None:
    table = table_of(**{"target-file-size": "100 b"})
    for _ in range(3):
        append(table, "a", 1)
    assert debts(table)["p=a"]["small_file_count"] == 0


def test_of_files_in_levels_those_wait_that_are_due() -> None:
    table = table_of(**{"clustering.incremental": "true", "clustering.columns": "k"})
    for p, count in {"a": 4, "b": 5}.items():
        for k in range(count):
            append(table, p, k)
    assert {name: row["waiting_file_count"] for name, row in debts(table).items()} == {"p=a": 0, "p=b": 5}


def test_a_table_that_is_not_compacted_here_has_none_to_show() -> None:
    table = table_of(bucket="1", **{"bucket-key": "k"})
    append(table, "a", 1)
    leveled = table.with_options({"clustering.incremental": "true"})
    with pytest.raises(UnsupportedFeatureError, match="the order of the rows in its buckets"):
        leveled.inspect.compaction_debt()
    assert describe_table(leveled)["small_files"] is None
