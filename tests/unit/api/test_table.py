from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import penstock
from penstock.api import lazy
from penstock.api.lazy import is_spark_object
from penstock.catalog.changes import AddColumn
from penstock.errors import (
    InvalidFilterError,
    InvalidOptionError,
    NotFoundError,
    OptionWarning,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from penstock.format.layout import TableLayout
from penstock.format.snapshot import CommitKind
from penstock.io.memory import MemoryFileIO

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def catalog() -> Iterator[penstock.Catalog]:
    catalog = penstock.Catalog("memory://api-table")
    catalog.create_database("db")
    yield catalog
    MemoryFileIO("api-table").discard()


@pytest.fixture
def table(catalog: penstock.Catalog) -> penstock.Table:
    """Unaware, partitioned; two appends: 1a 2b, then 3a."""
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"])
    table.append(rows((1, "a"), (2, "b")))
    table.append(rows((3, "a")))
    return table


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table({"k": [k for k, _ in pairs], "p": pa.array([p for _, p in pairs], pa.string())})


def pairs(found: pa.Table) -> list[tuple[int, str | None]]:
    return sorted((row["k"], row["p"]) for row in found.to_pylist())


def test_a_table_has_a_repr_and_an_arrow_schema(table: penstock.Table) -> None:
    assert repr(table) == "Table('db.t', location='memory://api-table/db.db/t', schema_id=0)"
    assert repr(table.preview).startswith("<TablePreview of db.t: alter, drop_partitions, ")
    assert table.arrow_schema == pa.schema([("k", pa.int64()), ("p", pa.string())])


def test_an_empty_table_has_no_snapshot_and_no_rows(catalog: penstock.Catalog) -> None:
    empty = catalog.create_table("db.e", "a INT, s STRING")
    assert empty.latest_snapshot() is None
    assert empty.to_arrow().schema == empty.arrow_schema
    assert (empty.to_arrow().num_rows, empty.snapshots().num_rows, empty.files().num_rows) == (0, 0, 0)
    assert empty.append(empty.arrow_schema.empty_table()) is None
    assert empty.latest_snapshot() is None


def test_rows_come_as_table_batch_or_reader_in_any_column_order(catalog: penstock.Catalog) -> None:
    table = catalog.create_table("db.r", "k BIGINT, p STRING")
    table.append(rows((1, "a")))
    table.append(rows((2, "a")).to_batches()[0])
    table.append(rows((3, "a")).to_reader())
    snapshot = table.append(rows((4, "a")).select(["p", "k"]))
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind, snapshot.total_record_count) == (4, CommitKind.APPEND, 4)
    assert pairs(table.to_arrow()) == [(1, "a"), (2, "a"), (3, "a"), (4, "a")]
    assert table.latest_snapshot() == snapshot


def test_objects_without_rows_are_refused(table: penstock.Table) -> None:
    with pytest.raises(
        SchemaMismatchError, match=r"db\.t: cannot take rows from a list that holds a .*: .*list of dicts"
    ):
        table.append([1])  # type: ignore[list-item]
    with pytest.raises(SchemaMismatchError):
        table.append(pa.table({"k": [1]}))
    with pytest.raises(SchemaMismatchError):
        table.append(pa.table({"k": ["x"], "p": ["a"]}))
    assert table.to_arrow().num_rows == 3


def test_reads_pick_columns_rows_and_snapshots(table: penstock.Table) -> None:
    first = table._store.load_snapshot(1)
    table.create_tag("one", snapshot_id=1)
    assert table.to_arrow(["p"], limit=1).column_names == ["p"]
    assert table.to_arrow(limit=2).num_rows == 2
    assert pairs(table.to_arrow(filter="k > 1 AND p = 'a'")) == [(3, "a")]
    assert pairs(table.to_arrow(filter=penstock.col("k") < 2)) == [(1, "a")]
    for position in ({"snapshot_id": 1}, {"tag": "one"}, {"options": {"scan.snapshot-id": "1"}}):
        assert pairs(table.to_arrow(**position)) == [(1, "a"), (2, "b")]  # type: ignore[arg-type]
    assert table.to_arrow(timestamp_millis=first.time_millis + 10**9).num_rows == 3
    assert pairs(table.to_batches(filter="p = 'b'").read_all()) == [(2, "b")]


@pytest.mark.parametrize("method", ["to_arrow", "to_batches", "to_pandas", "to_polars", "to_duckdb", "explain"])
def test_a_keyword_that_names_no_snapshot_is_an_error_of_that_method(table: penstock.Table, method: str) -> None:
    with pytest.raises(TypeError, match=rf"{method}\(\) got an unexpected keyword argument 'snapshot'"):
        getattr(table, method)(snapshot=1)


def test_positions_and_filters_that_make_no_sense_are_refused(table: penstock.Table) -> None:
    with pytest.raises(InvalidOptionError):
        table.to_arrow(snapshot_id=1, tag="one")
    with pytest.raises(NotFoundError):
        table.to_arrow(snapshot_id=9)
    with pytest.raises(NotFoundError):
        table.to_arrow(tag="none")
    with pytest.raises(NotFoundError):
        table.to_arrow(["none"])
    with pytest.raises(InvalidFilterError):
        table.to_arrow(filter="k >")
    with pytest.warns(OptionWarning, match="scan.snapshot-id"):
        table.to_arrow(options={"scan.snapshot-it": "1"})


def test_overwrites_replace_touched_named_or_all_partitions(table: penstock.Table) -> None:
    table.overwrite(rows((10, "a")))
    assert pairs(table.to_arrow()) == [(2, "b"), (10, "a")]
    table.overwrite(rows((20, "b")), partition={"p": "b"})
    assert pairs(table.to_arrow()) == [(10, "a"), (20, "b")]
    assert table.overwrite(rows()) is None
    with pytest.raises(InvalidOptionError, match="are outside"):
        table.overwrite(rows((1, "c")), partition={"p": "b"})
    with pytest.raises(InvalidOptionError, match="not a partition column"):
        table.overwrite(rows((1, "c")), partition={"k": 1})
    static = table.with_options({"dynamic-partition-overwrite": "false"})
    static.overwrite(rows((30, "c")))
    assert pairs(table.to_arrow()) == [(30, "c")]
    table.overwrite(rows(), partition={})
    assert table.to_arrow().num_rows == 0
    assert table.to_arrow(snapshot_id=2).num_rows == 3


def test_files_of_a_refused_overwrite_are_deleted(table: penstock.Table) -> None:
    with pytest.raises(InvalidOptionError, match="are outside"):
        table.overwrite(rows((1, "c")), partition={"p": "b"})
    assert not table._ref.file_io.list(f"{table.location}/p=c")


def test_truncate_and_drop_partitions_are_snapshots(table: penstock.Table) -> None:
    table.append(rows((4, None)))
    dropped = table.drop_partitions({"p": None}, {"p": "b"})
    assert dropped is not None
    assert (dropped.commit_kind, dropped.delta_record_count) == (CommitKind.OVERWRITE, -2)
    assert pairs(table.to_arrow()) == [(1, "a"), (3, "a")]
    table.truncate()
    assert table.to_arrow().num_rows == 0
    with pytest.raises(InvalidOptionError, match="truncate"):
        table.drop_partitions()


def test_rows_of_one_bucket_come_in_the_order_they_were_written(catalog: penstock.Catalog) -> None:
    queue = catalog.create_table("db.q", "k BIGINT, n INT", options={"bucket": "1"})
    other = catalog.load_table("db.q")
    for number in range(0, 12, 2):
        queue.append(pa.table({"k": [9, 1], "n": pa.array([number, number], pa.int32())}))
        other.append(pa.table({"k": [5, 3], "n": pa.array([number + 1, number + 1], pa.int32())}))
    found = [(row["n"], row["k"]) for row in queue.to_arrow().to_pylist()]
    assert found == [(n, k) for n in range(12) for k in ((9, 1) if n % 2 == 0 else (5, 3))]


def test_system_tables_speak_of_the_snapshot_asked_for(table: penstock.Table) -> None:
    table.create_tag("one", snapshot_id=1, time_retained="1 d")
    assert table.snapshots()["snapshot_id"].to_pylist() == [1, 2]
    assert table.inspect.schemas().num_rows == 1
    assert (table.files().num_rows, table.files(snapshot_id=1).num_rows) == (3, 2)
    assert sorted(table.partitions()["record_count"].to_pylist()) == [1, 2]
    assert sorted(table.partitions(snapshot_id=1)["record_count"].to_pylist()) == [1, 1]
    assert table.inspect.buckets(snapshot_id=1).num_rows == 2
    assert table.inspect.manifests(snapshot_id=1).num_rows == 1
    assert table.inspect.tags()["tag_name"].to_pylist() == ["one"]
    assert table.inspect.consumers().num_rows == 0
    assert table.inspect.system_table("options").num_rows == len(table.schema.options)
    with pytest.raises(NotFoundError):
        table.files(snapshot_id=9)


def test_an_explained_read_counts_what_was_pruned(table: penstock.Table) -> None:
    assert "p" in table.explain("p = 'a'")
    assert table.explain("p = 'a'") != table.explain()


def test_tags_and_rollback_through_the_handle(table: penstock.Table) -> None:
    table.create_tag("two")
    table.append(rows((4, "a")))
    plan = table.rollback_to(tag="two", dry_run=True)
    assert (plan.target.id, plan.snapshot_ids) == (2, (3,))
    assert table.to_arrow().num_rows == 4
    table.rollback_to(tag="two")
    assert table.to_arrow().num_rows == 3
    table.rollback_to(snapshot_id=1)
    assert table.inspect.tags().num_rows == 0
    snapshot = table.append(rows((5, "a")))
    assert snapshot is not None
    assert snapshot.id == 2
    assert pairs(table.to_arrow()) == [(1, "a"), (2, "b"), (5, "a")]
    with pytest.raises(NotFoundError):
        table.versions.delete_tag("two")


def test_a_handle_keeps_its_schema_and_a_new_one_has_the_latest(
    catalog: penstock.Catalog, table: penstock.Table
) -> None:
    catalog.alter_table("db.t", AddColumn(column="n", type="INT"))
    snapshot = table.append(rows((4, "a")))
    assert snapshot is not None
    assert snapshot.schema_id == 1
    assert table.to_arrow().column_names == ["k", "p"]
    assert catalog.load_table("db.t").to_arrow()["n"].to_pylist() == [None] * 4
    assert table.to_arrow(snapshot_id=2).column_names == ["k", "p"]
    assert table.to_arrow(snapshot_id=3).column_names == ["k", "p", "n"]


def test_a_table_that_can_only_be_read_refuses_every_change(table: penstock.Table) -> None:
    path = TableLayout(table.location).schema_path(0)
    text = table._ref.file_io.read(path).decode()
    table._ref.file_io.write(
        path, text.replace('"options" : {', '"options" : {\n "metadata.iceberg.storage" : "table-location"', 1).encode()
    )
    mirrored = penstock.Table.at(table.location)
    for change in (
        lambda: mirrored.append(rows((1, "a"))),
        lambda: mirrored.overwrite(rows((1, "a"))),
        mirrored.truncate,
        lambda: mirrored.drop_partitions({"p": "a"}),
    ):
        with pytest.raises(UnsupportedFeatureError, match="iceberg"):
            change()


def test_without_pyspark_its_entry_points_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name}", name="pyspark.sql")

    monkeypatch.setattr(lazy.importlib, "import_module", missing)
    with pytest.raises(UnsupportedFeatureError, match=r"pip install 'penstock\[spark\]'"):
        _ = lazy.lazy_spark.write_dataframe
    assert not is_spark_object(rows())
