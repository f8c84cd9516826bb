"""Incremental clustering on Spark: files go up in levels, sorted, and what else is done with the table keeps them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.sql_runner import Sql, new_session
from tests.spark.stream_feed import DONE

from penstock import Catalog, Table
from penstock.catalog.changes import SetOption
from penstock.errors import InvalidOptionError, OptionWarning, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind
from penstock.predicate.parse import parse_filter
from penstock.spark.compact.sort import SparkSorter
from penstock.table.read.query import plan_query
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage

pytestmark = pytest.mark.spark
CLUSTERED: Final = {
    "clustering.incremental": "true",
    "clustering.columns": "a, b",
    "target-file-size": "64 kb",
    "num-sorted-run.compaction-trigger": "3",
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


def create(catalog: Catalog, **options: str) -> Table:
    return catalog.create_table("d.t", "a BIGINT, b DOUBLE", options={**CLUSTERED, **options})


def append(table: Table, *, seed: int = 0, rows: int = 10_000) -> None:
    random = np.random.default_rng(seed)
    table.append(pa.table({"a": random.integers(0, 10**12, rows), "b": random.random(rows)}))


def levels(table: Table) -> dict[int, int]:
    return dict(Counter(table.files()["level"].to_pylist()))


def counted(table: Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.to_arrow().columns), strict=True))


def opened(table: Table, filter: str) -> float:
    plan = plan_query(table._ref, MetadataStore(table._ref), parse_filter(filter)).plan
    return plan.file_count / table.files().num_rows


def test_rows_go_up_in_levels_and_only_new_ones_are_sorted_again(spark: SparkSession, catalog: Catalog) -> None:
    table = create(catalog)
    for seed in range(3):
        append(table, seed=seed)
    before = counted(table)
    assert opened(table, "a < 100000000000 AND b < 0.1") == 1
    (snapshot,) = table.compact(spark).snapshots
    assert (snapshot.commit_kind, snapshot.delta_record_count) == (CommitKind.COMPACT, 0)
    assert levels(table).keys() == {3}
    assert counted(table) == before
    assert opened(table, "a < 100000000000 AND b < 0.1") < 0.35  # zorder, which 'auto' takes for two columns
    assert table.compact(spark).partitions[0].skipped == "nothing to cluster"
    assert table.compact(spark, strategy="full").partitions[0].skipped == "nothing to cluster"

    top = table.files().filter(pa.compute.equal(table.files()["level"], 3))["file_path"].to_pylist()
    for seed in range(10, 13):
        append(table, seed=seed, rows=1_000)
    before = counted(table)
    result = table.compact(spark)
    assert (result.partitions[0].files_in, levels(table)) == (3, {3: len(top), 2: result.partitions[0].files_out})
    assert set(top) < set(table.files()["file_path"].to_pylist())
    assert counted(table) == before
    table.compact(spark, strategy="full")
    assert levels(table).keys() == {3}
    assert counted(table) == before
    # Other columns, by which no file is sorted yet; of one alone they are in order.
    catalog.alter_table("d.t", SetOption(key="clustering.columns", value="b"))
    renewed = catalog.load_table("d.t").compact(spark, strategy="full")
    assert len(renewed.snapshots) == 1
    values = table.to_arrow(["b"])["b"].to_pylist()
    assert values == sorted(values)
    assert not table.inspect.fsck(all_snapshots=True).findings


def test_a_local_sort_orders_each_file(spark: SparkSession, catalog: Catalog) -> None:
    table = create(catalog, **{"clustering.columns": "a", "clustering.incremental.mode": "local-sort"})
    for seed in range(3):
        append(table, seed=seed)
    before = counted(table)
    table.compact(spark)
    assert levels(table).keys() == {3}
    assert counted(table) == before
    files = [pa.parquet.read_table(path)["a"].to_pylist() for path in table.files()["file_path"].to_pylist()]
    assert len(files) > 1
    assert all(values == sorted(values) for values in files)
    assert any(max(before) > min(after) for before, after in pairwise(files))


def test_each_bucket_is_clustered_with_the_number_of_buckets_of_its_partition(
    spark: SparkSession, catalog: Catalog
) -> None:
    options = {"bucket": "2", "bucket-key": "b", "bucket-append-ordered": "false", "clustering.columns": "a"}
    table = catalog.create_table(
        "d.t", "a BIGINT, b BIGINT, p STRING", partition_by=["p"], options={**CLUSTERED, **options}
    )
    rows: list[tuple[int, int, str]] = []

    def add(p: str) -> None:
        new = [(n * 7_919 % 10_007, len(rows) + n, p) for n in range(2_000)]
        rows.extend(new)
        table.append([dict(zip("abp", row, strict=True)) for row in new])

    for _ in range(3):
        add("two")
    with pytest.warns(OptionWarning, match="existing ones keep 2 buckets"):
        catalog.alter_table("d.t", SetOption(key="bucket", value="3"))
    table = catalog.load_table("d.t")
    for _ in range(3):
        add("three")
    result = table.compact(spark)
    assert [(row.partition, row.files_in) for row in result.partitions] == [("p=two", 6), ("p=three", 9)]
    files = table.files().to_pylist()
    assert Counter((row["partition"], row["bucket"]) for row in files) == {
        **{("{two}", bucket): 1 for bucket in range(2)},
        **{("{three}", bucket): 1 for bucket in range(3)},
    }
    for row in files:
        values = pa.parquet.read_table(row["file_path"])["a"].to_pylist()
        assert values == sorted(values)
    assert counted(table) == Counter(rows)
    assert table.to_arrow(filter="b = 5").num_rows == table.to_arrow(filter="b = 11999").num_rows == 1
    assert levels(table).keys() == {3}
    assert not table.inspect.fsck(all_snapshots=True).findings
    # Numbers that files have in common do not matter where no order is kept.
    for _ in range(2):
        add("three")
    table.update({"a": -1}, "b < 3")
    table.compact(spark, strategy="full")
    assert counted(table) == Counter((-1, *row[1:]) if row[1] < 3 else row for row in rows)
    assert levels(table).keys() == {3}


def test_sql_clusters_as_the_method_does(spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT, b DOUBLE)")
    sql.catalog.alter_table("default.t", *(SetOption(key=key, value=value) for key, value in CLUSTERED.items()))
    table = sql.catalog.load_table("default.t")
    for seed in range(2):
        append(table, seed=seed, rows=100)
    (row,) = sql("CALL sys.compact(`table` => 't')").to_pylist()
    assert (row["files_in"], row["skipped"]) == (0, "nothing to cluster")
    (row,) = sql("CALL sys.compact(`table` => 't', compact_strategy => 'full')").to_pylist()
    assert (row["files_in"], row["files_out"], levels(table)) == (2, 1, {3: 1})
    with pytest.raises(InvalidOptionError, match="expected 'minor' or 'full'"):
        table.compact(spark, strategy="auto")
    with pytest.raises(UnsupportedFeatureError, match="without an order strategy"):
        table.compact(spark, order_strategy="zorder", order_by=["a", "b"])


def test_deletion_vectors_stay_until_files_are_sorted_again(spark: SparkSession, catalog: Catalog) -> None:
    table = create(catalog, **{"deletion-vectors.enabled": "true"})
    for seed in range(3):
        append(table, seed=seed)
    table.compact(spark)
    before = set(table.files()["file_path"].to_pylist())
    table.delete("a < 500000000000")
    assert set(table.files()["file_path"].to_pylist()) < before  # some have deletion vectors now, others are gone
    assert levels(table).keys() == {3}
    append(table, seed=5)
    before = counted(table)
    table.compact(spark, strategy="full")
    assert counted(table) == before
    assert levels(table).keys() == {3}
    table.delete("a >= 0")
    table.compact(spark, strategy="full")
    assert table.to_arrow().num_rows == 0


def test_rows_that_a_change_writes_again_are_at_level_0(spark: SparkSession, catalog: Catalog) -> None:
    table = create(catalog)
    for seed in range(3):
        append(table, seed=seed)
    table.compact(spark)
    count = table.files().num_rows
    table.delete("a < 100000000000 AND b < 0.1")
    changed = levels(table)
    assert changed[0] >= 1
    assert 0 < changed[3] < count
    table.update({"b": 0.5}, "a > 900000000000 AND b > 0.9")
    assert levels(table)[3] < changed[3]
    before = counted(table)
    table.compact(spark, strategy="full")
    assert levels(table).keys() == {3}
    assert counted(table) == before


def test_rows_keep_their_ids(spark: SparkSession, catalog: Catalog) -> None:
    table = create(catalog, **{"row-tracking.enabled": "true"})
    for seed in range(3):
        append(table, seed=seed, rows=1_000)
    ids = {row["_ROW_ID"]: (row["a"], row["b"]) for row in table.to_arrow(["a", "b", "_ROW_ID"]).to_pylist()}
    table.compact(spark)
    assert levels(table).keys() == {3}
    assert len(ids) == 3_000
    assert {r["_ROW_ID"]: (r["a"], r["b"]) for r in table.to_arrow(["a", "b", "_ROW_ID"]).to_pylist()} == ids


def test_rows_that_come_meanwhile_are_kept_at_level_0_and_what_was_replaced_is_dropped(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog)
    for seed in range(3):
        append(table, seed=seed, rows=100)
    write = SparkSorter._write

    def and_then_append(sorter: SparkSorter, task: CompactTask) -> CommitMessage:
        message = write(sorter, task)
        append(table, seed=9, rows=100)
        return message

    monkeypatch.setattr(SparkSorter, "_write", and_then_append)
    table.compact(spark)
    assert levels(table) == {0: 1, 3: 1}

    def and_then_replace(sorter: SparkSorter, task: CompactTask) -> CommitMessage:
        message = write(sorter, task)
        table.truncate()
        return message

    monkeypatch.setattr(SparkSorter, "_write", and_then_replace)
    result = table.compact(spark, strategy="full")
    assert (result.snapshots, result.partitions[0].dropped) == ((), 1)
    assert table.to_arrow().num_rows == 0


def test_a_stream_does_not_merge_files_in_levels(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, **{"compaction.min.file-num": "2"})
    source = tmp_path / "in"
    for number in range(4):
        spark.range(10).selectExpr("id a", "double(id) b").write.mode("append").json(str(source))
        frame = spark.readStream.schema("a BIGINT, b DOUBLE").json(str(source))
        query = table.write_stream(frame, checkpoint=str(tmp_path / "checkpoint"), trigger=DONE)
        query.awaitTermination()
        assert query.exception() is None
        assert table.to_arrow().num_rows == 10 * (number + 1)
    assert set(table.snapshots()["commit_kind"].to_pylist()) == {"APPEND"}
    assert levels(table).keys() == {0}
