"""The reference engines read tables that were made of a Hive-style directory."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, Row

from penstock import Table

INDEXED = Path(__file__).parents[1] / "golden" / "data" / "warehouse" / "java142.db" / "file_index_beside"


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_an_engine_reads_files_that_were_adopted(
    engine: Engine, location: Path, tmp_path: Path, file_format: str
) -> None:
    root = tmp_path / "old"
    for day, keys in (("a", [1, 2]), ("b", [3])):
        (root / f"p={day}").mkdir(parents=True)
        rows = pa.table({"k": pa.array(keys, pa.int32()), "s": [str(k) for k in keys], "n": [10 * k for k in keys]})
        if file_format == "parquet":
            pq.write_table(rows, root / f"p={day}" / "0.parquet")
        else:
            orc.write_table(rows, str(root / f"p={day}" / "0.orc"))
    catalog = ours.catalog_of(location)
    catalog.create_database(location.parent.stem, if_not_exists=True)
    catalog.migrate(root, ours.name_of(location))
    expected: list[Row] = [{"k": k, "s": str(k), "n": 10 * k, "p": p} for k, p in [(1, "a"), (2, "a"), (3, "b")]]
    assert engine.read(location) == sort_rows(expected)
    assert engine.read(location, filter=[["k", ">", 1]]) == sort_rows(expected[1:])
    added: list[Row] = [{"k": 4, "s": "4", "n": 40, "p": "b"}]
    engine.append(location, added)
    ours.load(location).compact(strategy="full")
    assert engine.read(location) == ours.read(location) == sort_rows(expected + added)


def test_an_engine_reads_files_whose_indexes_were_left(engine: Engine, location: Path) -> None:
    catalog = ours.catalog_of(location)
    catalog.create_database(location.parent.stem, if_not_exists=True)
    catalog.migrate(INDEXED / "bucket-0", ours.name_of(location), copy=True)
    expected = ours.read(INDEXED)
    assert len(expected) == Table.at(str(INDEXED)).to_arrow().num_rows
    assert engine.read(location) == expected
