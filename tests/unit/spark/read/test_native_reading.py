"""Which of Spark's readers a scan gets, and why it gets none."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from bench.many_files import make_table
from hypothesis import example, given
from hypothesis import strategies as st

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn, DropColumn, UpdateColumnType
from penstock.catalog.place import load_location
from penstock.format.manifest import columns
from penstock.format.manifest.columns import EncodedEntries
from penstock.predicate.parse import parse_filter
from penstock.spark.read import native_files
from penstock.spark.read.native_listing import list_native
from penstock.spark.read.native_reading import PADDED, NativeReading, plan_reading
from penstock.table.actions.changes import open_committer
from penstock.table.actions.manifests import compact_manifests
from penstock.table.metadata_cache import clear_metadata_cache
from penstock.table.read import scan
from penstock.table.read.query import plan_query
from penstock.table.read.split import iter_bucket_splits, plan_splits
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.entry import ManifestEntry

DELETED = Path(__file__).parents[3] / "golden" / "data" / "deleted" / "java142.db" / "t"


def test_a_reason_names_the_column_and_what_rewrites_files_of_older_schemas(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, v DOUBLE")
    rows = pa.table({"k": pa.array([1], pa.int32()), "v": [2.5]})
    table.append(rows)
    table.append(rows)
    table = catalog.alter_table("d.t", UpdateColumnType(column="v", type="STRING", allow_explicit=True))
    table.append([{"k": 1, "v": "x"}])

    def reading(columns: int) -> NativeReading | str:
        query = table._handle.plan(None, None, {})
        return plan_reading(
            query.ref,
            table._store,
            plan_splits(query.ref, query.plan),
            table.schema.fields[:columns],
            has_class=bool,
        )

    assert isinstance(reading(1), NativeReading), "the other column is not read"
    assert reading(2) == (
        "column 'v' is DOUBLE in files and STRING in the table; compact with "
        "'compaction.force-rewrite-all-files' = 'true' rewrites them"
    )
    table.compact(options={"compaction.force-rewrite-all-files": "true"})
    assert isinstance(reading(2), NativeReading)


def test_a_type_that_spark_never_reads_has_no_cure(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k TIME")
    table.append([{"k": dt.time(1)}])
    table = catalog.alter_table("d.t", AddColumn(column="v", type="INT"))
    query = table._handle.plan(None, None, {})
    reading = plan_reading(
        query.ref, table._store, plan_splits(query.ref, query.plan), table.schema.fields, has_class=bool
    )
    assert reading == "column 'k' has type TIME(0), which Spark's parquet reader does not read"


def test_rows_are_not_numbered_where_a_stored_column_has_the_name_of_the_numbers(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "_tmp_metadata_row_index BIGINT")
    table.append([{"_tmp_metadata_row_index": 7}])
    query = table._handle.plan(None, None, {})
    splits = plan_splits(query.ref, query.plan)
    reading = plan_reading(query.ref, table._store, splits, (), has_class=bool)
    assert isinstance(reading, NativeReading)
    assert not reading.numbers_rows


def test_deletion_vectors_need_a_class_on_executors() -> None:
    table = Table.at(str(DELETED))
    fields = table.schema.fields
    for text, deletes in ((None, True), ("k >= 20", False)):
        query = table._handle.plan(text, None, {}, with_vectors=True)
        splits = plan_splits(query.ref, query.plan)
        for has_class in (True, False):
            reading = plan_reading(query.ref, table._store, splits, fields, has_class=partial(bool, has_class))
            if deletes and not has_class:
                assert reading == "rows of its files are deleted by deletion vectors"
            else:
                assert isinstance(reading, NativeReading)
                assert reading.needs_class is deletes


def test_a_column_that_files_lack_gets_a_name_that_none_of_theirs_has(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, v INT, `v_` INT")
    table.append([{"k": 1, "v": 2, "v_": 3}])
    table = catalog.alter_table("d.t", DropColumn(column="v"), AddColumn(column="v", type="INT"))
    table.append([{"k": 1, "v": 2, "v_": 3}])
    query = table._handle.plan(None, None, {})
    splits = plan_splits(query.ref, query.plan)
    reading = plan_reading(query.ref, table._store, splits, table.schema.fields, has_class=lambda: True)
    assert isinstance(reading, NativeReading)
    assert {reader.names: reader.pushable for reader in reading.readers} == {
        ("k", "v_", "v__"): {"k", "v_"},
        ("k", "v_", "v"): {"k", "v_", "v"},
    }


def test_char_is_left_to_python_workers_where_it_is_padded(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, c CHAR(3)")
    table.append(pa.table({"k": pa.array([1], pa.int32()), "c": ["a"]}))
    query = table._handle.plan(None, None, {})
    splits, fields = plan_splits(query.ref, query.plan), table.schema.fields
    plan = partial(plan_reading, query.ref, table._store, splits, has_class=bool)
    assert plan(fields, pads=True) == PADDED
    for read in (fields, fields[:1]):
        assert isinstance(plan(read), NativeReading)
    assert isinstance(plan(fields[:1], pads=True), NativeReading)


FILES: tuple[dict[str, str], ...] = (
    {},
    {"metadata.stats-mode": "none"},
    {"metadata.stats-dense-store": "false"},
    {"fields.dt.stats-mode": "none"},
    {"metadata.stats-dense-store": "false", "fields.dt.stats-mode": "none"},
    {"file.format": "orc"},
)
"""Options of an append, of which some write no statistics of a partition column."""


@example(places=[0, 4], retyped=8, names=("dt", "v"), is_merged=True, buckets={})
@example(places=[0, 4, 2], retyped=8, names=("dt", "v"), is_merged=True, buckets={})
@example(places=[0, 0, 0, 0], retyped=2, names=("v",), is_merged=True, buckets={})
@given(
    buckets=st.sampled_from([{}, {"bucket": "3", "bucket-key": "k"}]),
    places=st.lists(st.sampled_from(range(len(FILES))), min_size=1, max_size=8),
    retyped=st.integers(0, 8),
    names=st.sampled_from([(), ("v",), ("dt", "v")]),
    is_merged=st.booleans(),
)
def test_files_in_columns_get_the_reader_that_they_get_one_by_one(
    places: list[int], retyped: int, names: tuple[str, ...], buckets: dict[str, str], *, is_merged: bool
) -> None:
    def no_columns(_: object, path: str) -> frozenset[str]:
        """Return the columns of a file of a migrated directory."""
        assert Path(path).exists()
        return frozenset()

    with TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_database("d")
        table = catalog.create_table("d.t", "v STRING, k INT, dt STRING", partition_by=["dt"], options=buckets)
        for number, place in enumerate(places):
            if number == retyped:
                table = catalog.alter_table("d.t", UpdateColumnType(column="v", type="INT", allow_explicit=True))
            value = place if number >= retyped else str(place)
            rows = [{"v": value, "k": number, "dt": each} for each in ("ab", "a", "b")[number % 3]]
            table.with_options(FILES[place]).append(rows)
        if is_merged:
            compact_manifests(open_committer(load_location(table.location)))
        fields = tuple(field for field in table.schema.fields if field.name in names)
        readings = []
        for minimum in (0, 10**9):
            with pytest.MonkeyPatch.context() as patch:
                clear_metadata_cache()
                patch.setattr(columns, "MIN_RECORDS", 1)
                patch.setattr(scan, "MIN_COLUMNS", minimum)
                patch.setattr(native_files, "_column_names", no_columns)
                query = table._handle.plan(None, None, {})
                splits = tuple(iter_bucket_splits(query.ref, query.plan, in_order=minimum > 0))
                readings.append(plan_reading(query.ref, table._store, splits, fields, has_class=lambda: True))
        clear_metadata_cache()
        assert readings[0] == readings[1]


def test_many_files_are_listed_without_an_object_for_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ref = make_table(str(tmp_path / "warehouse"), 3_000, commits=2)
    clear_metadata_cache()
    decoded: list[int] = []
    entries = EncodedEntries.entries

    def counted(self: EncodedEntries, rows: Array) -> Iterator[ManifestEntry]:
        decoded.append(len(rows))
        return entries(self, rows)

    monkeypatch.setattr(EncodedEntries, "entries", counted)
    store = MetadataStore(ref)
    query = plan_query(ref, store, parse_filter("dt >= 'day-050'"))
    splits = tuple(iter_bucket_splits(ref, query.plan))
    reading = plan_reading(ref, store, splits, ref.schema.fields, has_class=bool)
    assert isinstance(reading, NativeReading)
    assert len(list_native(ref, splits, reading).split("\n")) == 1_500 + len(splits)
    assert sum(decoded) <= len(splits)


def test_a_file_without_statistics_does_not_stand_for_those_of_other_partitions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(columns, "MIN_RECORDS", 1)
    monkeypatch.setattr(scan, "MIN_COLUMNS", 0)
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    # As of Paimon before 0.9: statistics of all columns, known or not.
    options = {"metadata.stats-dense-store": "false"}
    table = catalog.create_table("d.t", "v INT, dt STRING", partition_by=["dt"], options=options)
    table.with_options({"metadata.stats-mode": "none"}).append([{"v": 1, "dt": "a"}])
    table.append([{"v": 2, "dt": "b"}])
    clear_metadata_cache()
    query = table._handle.plan(None, None, {})
    splits = tuple(iter_bucket_splits(query.ref, query.plan))
    reading = plan_reading(query.ref, table._store, splits, table.schema.fields, has_class=bool)
    assert isinstance(reading, NativeReading)
    assert not reading.left
