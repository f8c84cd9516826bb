"""Files that cannot have the first rows of an order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock import Catalog
from penstock.table.read.prune import ColumnStatsReader
from penstock.table.read.split import plan_splits
from penstock.table.read.top import Top, files_of_top

if TYPE_CHECKING:
    from pathlib import Path


def test_files_of_equal_names_have_their_own_statistics(tmp_path: Path) -> None:
    """An adopted directory may have a file of the same name in each partition."""
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n INT, p INT", partition_by=["p"])
    for p in range(3):
        table.append([{"n": 10 * p + n, "p": p} for n in range(10)])
    query = table._handle.plan(None, None, {})
    splits = [
        replace(split, files=tuple(replace(file, file_name="part-0.parquet") for file in split.files))
        for split in plan_splits(query.ref, query.plan)
    ]
    reader = ColumnStatsReader(table._store.load_schema, table.schema.fields[:1])
    for descends, wanted in ((False, (0,)), (True, (2,))):
        top = Top(column="n", descends=descends, nulls_first=False, rows=4)
        assert [split.values for split in files_of_top(splits, reader, top)] == [wanted]
