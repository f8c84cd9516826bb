"""Other engines scan a table's files themselves, open only those that they need, and find the same rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import penstock

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = """id BIGINT, name STRING, price DECIMAL(10, 2), at TIMESTAMP(3), late TIMESTAMP(6), zoned TIMESTAMP_LTZ(3),
    day DATE, clock TIME(3), small TINYINT, ratio FLOAT, flag BOOLEAN, raw BYTES, tags ARRAY<STRING>,
    counts MAP<STRING, INT>, place ROW<x INT, y STRING>, dt STRING, n INT"""


@pytest.fixture
def catalog(tmp_path: Path) -> penstock.Catalog:
    made = penstock.Catalog(tmp_path)
    made.create_database("d")
    return made


@pytest.fixture
def table(catalog: penstock.Catalog) -> penstock.Table:
    made = catalog.create_table("d.t", COLUMNS, partition_by=["dt", "n"])
    time = dt.datetime(2026, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - a wall clock
    row = {
        "name": "a", "price": Decimal("1.50"), "at": time, "late": time, "zoned": time.replace(tzinfo=dt.UTC),
        "day": time.date(), "clock": time.time(), "small": 1, "ratio": 0.5, "flag": True, "raw": b"x",
        "tags": ["p", None], "counts": {"k": 1}, "place": {"x": 1, "y": "z"},
    }  # fmt: skip
    for number in range(4):
        keys = {"id": number, "dt": None if number == 3 else f"2026-01-0{number}", "n": number}
        made.append([{**row, **keys}, {**dict.fromkeys(row), **keys}])
    return made


def rows_of(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


def test_a_dataset_has_the_rows_and_types_of_the_table(table: penstock.Table) -> None:
    found = table.to_dataset().to_table()
    assert found.schema == table.arrow_schema
    assert rows_of(found) == rows_of(table.to_arrow())


@pytest.mark.parametrize("condition", ["dt = '2026-01-01'", "dt IS NULL", "n = 2", "id = 1"])
def test_duckdb_finds_the_same_rows(table: penstock.Table, condition: str) -> None:
    relation = duckdb.connect().from_arrow(table.to_dataset()).filter(condition).project("id, name, dt, n")
    wanted = table.to_arrow(["id", "name", "dt", "n"], filter=condition)
    assert wanted.num_rows == 2
    assert rows_of(relation.to_arrow_table()) == rows_of(wanted)


def test_engines_open_no_file_of_another_partition(table: penstock.Table, tmp_path: Path) -> None:
    dataset = table.to_dataset()
    for file in (tmp_path / "d.db" / "t").glob("dt=*/n=*/**/*.parquet"):
        if "n=1" not in str(file):
            file.unlink()
    condition = "dt = '2026-01-01'"
    assert duckdb.connect().from_arrow(dataset).filter(condition).aggregate("count(*)").fetchall() == [(2,)]
    scan = pl.scan_pyarrow_dataset(dataset).filter(pl.col("dt") == "2026-01-01").select("id")
    assert scan.collect().to_dicts() == [{"id": 1}, {"id": 1}]
    with pytest.raises(FileNotFoundError):
        dataset.to_table()


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("DECIMAL(5, 2)", ["1.50", "-2.25"]),
        ("DOUBLE", ["1.5", "1.0E30"]),
        ("FLOAT", ["0.1", "1.5"]),
        ("TIMESTAMP(3)", ["2026-01-01T10:00", "1969-12-31 23:59:59.001"]),
        ("TIMESTAMP(6)", ["2026-01-01 10:00:00.000001"]),
        ("DATE", ["2026-01-01"]),
        ("STRING", ["a b"]),
    ],
)
def test_files_of_a_migrated_directory_have_the_values_of_their_partitions(
    tmp_path: Path, catalog: penstock.Catalog, kind: str, texts: list[str]
) -> None:
    directory = tmp_path / "hive"
    for number, text in enumerate([*texts, "__HIVE_DEFAULT_PARTITION__"]):
        place = directory / f"p={text.replace(':', '%3A')}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), place / "file.parquet")
    catalog.migrate(directory, "d.moved", partition_types={"p": kind})
    table = catalog.load_table("d.moved")
    dataset = table.to_dataset()
    assert dataset.to_table().equals(table.to_arrow())
    values = dataset.to_table().sort_by("id")["p"]
    assert values.null_count == 1
    for number, value in enumerate(values):
        condition = pc.field("p") == value if value.is_valid else pc.field("p").is_null()
        assert dataset.to_table(filter=condition)["id"].to_pylist() == [number]


def test_a_filter_leaves_out_files_by_statistics(table: penstock.Table) -> None:
    assert len(list(table.to_dataset(filter="id = 2").get_fragments())) == 1
    assert len(list(table.to_dataset().get_fragments())) == 4
    assert table.to_dataset(snapshot_id=1).count_rows() == 2


@pytest.mark.usefixtures("table")
def test_added_columns_are_null_in_older_files(catalog: penstock.Catalog) -> None:
    later = catalog.alter_table("d.t", penstock.AddColumn(column=("note",), type="STRING"))
    assert rows_of(later.to_dataset().to_table()) == rows_of(later.to_arrow())


def test_what_would_be_read_wrong_is_refused(catalog: penstock.Catalog, table: penstock.Table) -> None:
    renamed = catalog.alter_table("d.t", penstock.RenameColumn(column=("name",), new_name="title"))
    with pytest.raises(penstock.UnsupportedFeatureError, match=r"'title' had another name or type.*to_batches"):
        renamed.to_dataset()
    orc = catalog.create_table("d.orc", "id BIGINT", options={"file.format": "orc"})
    orc.append([{"id": 1}])
    with pytest.raises(penstock.UnsupportedFeatureError, match="is not a Parquet file"):
        orc.to_dataset()
    stored = penstock.Catalog("memory://dataset/w")
    stored.create_database("d", if_not_exists=True)
    with pytest.raises(penstock.UnsupportedFeatureError, match="is not a local directory"):
        stored.create_table("d.t", "id BIGINT").to_dataset()
    assert table.to_dataset(snapshot_id=1).count_rows() == 2


def test_a_table_without_rows_is_an_empty_dataset(catalog: penstock.Catalog) -> None:
    assert catalog.create_table("d.empty", "id BIGINT").to_dataset().to_table().num_rows == 0
