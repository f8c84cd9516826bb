"""What a write through the catalog notices, without Spark."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from penstock import Catalog
from penstock.spark.connector.write import null_partitions
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from pathlib import Path

DAY = dt.date(2026, 1, 1)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([(DAY, 1)], ()),
        ([(DAY, None)], ("k",)),
        ([(None, None)], ("d", "k")),
        ([(None, 1), (DAY, None)], ()),
        ([(None, 1), (None, None)], ("d",)),
        ([], ()),
    ],
)
def test_a_partition_column_that_is_null_in_all_rows_is_noticed(
    tmp_path: Path, rows: list[tuple[dt.date | None, int | None]], names: tuple[str, ...]
) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    ref = catalog.create_table("d.t", "n INT, d DATE, k INT", partition_by=["d", "k"])._ref
    schema = catalog.load_table("d.t").arrow_schema
    table = schema.empty_table().from_pylist([{"n": 1, "d": day, "k": k} for day, k in rows], schema)
    assert null_partitions(ref, write_arrow(ref, table)) == names
