"""Sort compaction on Spark: the same rows, in an order by which fewer files are opened."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind
from penstock.predicate.parse import parse_filter
from penstock.spark.compact.sort import SparkSorter, sort_compact
from penstock.table.compact.sort import OrderStrategy, SortJob, SortOrder, plan_sort
from penstock.table.read.query import plan_query
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage

pytestmark = pytest.mark.spark
ROWS: Final = 40_000
KIB: Final = 1024


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


def fill(catalog: Catalog, *, partitioned: bool = False) -> Table:
    """Make a table of 8 files, each of which has values from the whole range of every column."""
    partition_by = ["day"] if partitioned else []
    options = {"target-file-size": f"{64 * KIB} b"}
    table = catalog.create_table("d.t", "a BIGINT, b DOUBLE, day INT", partition_by=partition_by, options=options)
    random = np.random.default_rng(7)
    for _ in range(4):
        count = ROWS // 4
        columns = {
            "a": random.integers(0, 10**12, count),
            "b": random.random(count),
            "day": random.integers(0, 2, count, dtype=np.int32),
        }
        table.append(pa.table(columns))
    return table


def plan(table: Table, strategy: str, *columns: str) -> SortJob:
    order = SortOrder(strategy=OrderStrategy(strategy), columns=columns)
    return plan_sort(table._ref, MetadataStore(table._ref), order)


def sort(spark: SparkSession, table: Table, strategy: str, *columns: str) -> CompactionResult:
    return sort_compact(spark, plan(table, strategy, *columns))


def counted(table: Table) -> Counter[tuple[Any, ...]]:
    """Return the rows as a multiset."""
    return Counter(zip(*(map(str, column.to_pylist()) for column in table.to_arrow().columns), strict=True))


def opened(table: Table, filter: str) -> float:
    """Return the part of the files that a filter opens."""
    return (
        plan_query(table._ref, MetadataStore(table._ref), parse_filter(filter)).plan.file_count / table.files().num_rows
    )


def test_files_are_narrow_in_the_columns_that_were_sorted_by(spark: SparkSession, catalog: Catalog) -> None:
    table = fill(catalog)
    before = counted(table)
    second, both = "b < 0.05", "a < 100000000000 AND b < 0.1"
    assert opened(table, second) == opened(table, both) == 1
    found = {}
    for strategy in OrderStrategy:
        (snapshot,) = sort(spark, table, strategy, "a", "b").snapshots
        assert (snapshot.commit_kind, snapshot.delta_record_count) == (CommitKind.OVERWRITE, 0)
        assert counted(table) == before
        found[strategy] = (opened(table, "a < 10000000000"), opened(table, second), opened(table, both))
        sizes = table.files()["file_size_in_bytes"].to_pylist()
        assert len(sizes) > 6
        assert max(sizes) < 2 * 64 * KIB
        assert min(sizes) > 32 * KIB
    # By the first column alone the second is as wide as before; a curve is narrow in both.
    assert found[OrderStrategy.ORDER][0] < 0.2
    assert found[OrderStrategy.ORDER][1] == 1
    for curve in (OrderStrategy.ZORDER, OrderStrategy.HILBERT):
        assert found[curve][0] < 0.6
        assert found[curve][1] < 0.6
        assert found[curve][2] < 0.35


def test_rows_come_out_sorted_partition_by_partition(spark: SparkSession, catalog: Catalog) -> None:
    table = fill(catalog, partitioned=True)
    before = counted(table)
    result = sort(spark, table, "order", "b", "a")
    assert sorted((row.partition.strip("/"), row.skipped) for row in result.partitions) == [
        ("day=0", None),
        ("day=1", None),
    ]
    assert counted(table) == before
    for day in (0, 1):
        values = table.to_arrow(["b"], f"day = {day}")["b"].to_pylist()
        assert values == sorted(values)


COLUMNS: Final = """
    id INT, boo BOOLEAN, tiny TINYINT, flo FLOAT, dec DECIMAL(20, 3), str STRING, bin BYTES, day DATE, tim TIME(3),
    ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(6), cha CHAR(3), nested ARRAY<STRING>, at ROW<x INT, y MAP<STRING, INT>>
"""


def typed_rows(table: Table) -> pa.Table:
    noon = dt.datetime(2024, 3, 10, 2, 30, 0, 5_000)  # noqa: DTZ001 - a wall clock, skipped in the session's zone
    cells: list[list[Any]] = [
        [*range(6)],
        [True, None, False, None, True, False],
        [5, None, -5, 0, 127, -128],
        [0.5, None, float("nan"), -1.0, float("inf"), -0.0],
        [Decimal("1.500"), None, Decimal("-2.000"), Decimal(0), Decimal(10**16), Decimal("0.001")],
        ["b", None, "", "ä", "b", "\U0001f600"],
        [b"\xff", None, b"", b"\x00", b"a", b"ab"],
        [
            dt.date(2024, 1, 1),
            None,
            dt.date(1969, 12, 31),
            dt.date(1, 1, 1),
            dt.date(9999, 12, 31),
            dt.date(2024, 1, 2),
        ],
        [dt.time(1, 2, 3, 4_000), None, dt.time(0), dt.time(23, 59, 59), dt.time(12), dt.time(13)],
        [noon, None, noon - dt.timedelta(days=30_000), noon, noon + dt.timedelta(days=1), noon],
        [noon.replace(tzinfo=dt.UTC), None, *[noon.replace(tzinfo=dt.UTC, year=1900 + year) for year in range(4)]],
        ["abc", None, "abd", "   ", "xyz", "b  "],
        [["x", None], None, [], ["y"], None, ["z"]],
        [{"x": 1, "y": [("k", 1)]}, None, {"x": None, "y": None}, {"x": 2, "y": []}, None, None],
    ]
    schema = table.arrow_schema
    arrays = [pa.array(values, field.type) for values, field in zip(cells, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_every_type_that_has_an_order_can_be_sorted_by_and_no_value_changes(
    spark: SparkSession, catalog: Catalog, strategy: str
) -> None:
    table = catalog.create_table("d.types", COLUMNS)
    given = typed_rows(table)
    table.append(given.slice(0, 3))
    table.append(given.slice(3))
    sort(spark, table, strategy, *[name for name in given.column_names if name not in {"nested", "at"}])
    assert table.files().num_rows == 1
    assert str(table.to_arrow().sort_by("id").to_pylist()) == str(given.to_pylist())


def test_null_comes_first_and_equal_rows_do_not_make_one_large_file(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.few", "k INT, pay STRING", options={"target-file-size": f"{64 * KIB} b"})
    random = np.random.default_rng(3)
    payload = [random.bytes(12).hex() for _ in range(20_000)]
    table.append(pa.table({"k": pa.array([1, 1, 1, None] * 5_000, pa.int32()), "pay": payload}))
    sort(spark, table, "order", "k")
    assert table.to_arrow()["k"].to_pylist() == [None] * 5_000 + [1] * 15_000
    assert max(table.files()["file_size_in_bytes"].to_pylist()) < 2 * 64 * KIB


def test_rows_appended_between_the_reading_and_the_commit_survive(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fill(catalog)
    before = counted(table)
    late = pa.table({"a": [-1], "b": [-1.0], "day": pa.array([0], pa.int32())})
    write = SparkSorter._write

    def and_then_append(sorter: SparkSorter, task: CompactTask) -> CommitMessage:
        message = write(sorter, task)
        table.append(late)
        return message

    monkeypatch.setattr(SparkSorter, "_write", and_then_append)
    assert len(sort(spark, table, "zorder", "a", "b").snapshots) == 1
    assert counted(table) == before + Counter({("-1", "-1.0", "0"): 1})
    assert not table.inspect.fsck().findings


def test_what_others_replaced_meanwhile_is_dropped(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fill(catalog)
    read = SparkSorter._read

    def and_then_expire(sorter: SparkSorter, task: CompactTask) -> object:
        frame = read(sorter, task)
        table.truncate()
        table.expire_snapshots(retain_max=1, retain_min=1)
        return frame

    monkeypatch.setattr(SparkSorter, "_read", and_then_expire)
    result = sort(spark, table, "order", "a")
    assert result.snapshots == ()
    assert result.partitions[0].skipped is not None
    assert table.to_arrow().num_rows == 0
    assert not list((table_directory(table) / "bucket-0").glob("data-*"))


def table_directory(table: Table) -> Path:
    from pathlib import Path

    return Path(table.location.removeprefix("file://"))


def test_rows_of_older_columns_get_the_new_ones(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.grown", "id INT, `Odd.name` STRING, `odd.name` STRING")
    table.append(pa.table({"id": pa.array([2, 1], pa.int32()), "Odd.name": ["x", "y"], "odd.name": ["u", "v"]}))
    catalog.alter_table("d.grown", AddColumn(column="more", type="INT"))
    grown = catalog.load_table("d.grown")
    grown.append(
        pa.table(
            {"id": pa.array([0], pa.int32()), "Odd.name": ["z"], "odd.name": ["w"], "more": pa.array([7], pa.int32())}
        )
    )
    sort(spark, table, "order", "Odd.name", "id")  # by a handle that does not know of the new column
    assert grown.to_arrow().to_pylist() == [
        {"id": 2, "Odd.name": "x", "odd.name": "u", "more": None},
        {"id": 1, "Odd.name": "y", "odd.name": "v", "more": None},
        {"id": 0, "Odd.name": "z", "odd.name": "w", "more": 7},
    ]


def test_columns_that_spark_would_change_are_refused(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.fine", "id INT, at ROW<t TIMESTAMP(9)>")
    table.append(
        pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([None], table.arrow_schema.field("at").type)})
    )
    with pytest.raises(UnsupportedFeatureError, match=r"column 'at'.*cannot represent exactly"):
        sort(spark, table, "order", "id")
    with pytest.raises(InvalidOptionError, match="'at'"):
        sort(spark, table, "order", "at")
