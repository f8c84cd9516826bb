"""Which columns Spark's own readers may be trusted with."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn, DropColumn, UpdateColumnType
from penstock.errors import FormatError
from penstock.format.layout import FileFormat
from penstock.format.types.data_types import INT, DataField, RowType
from penstock.format.types.text import parse_sql_type
from penstock.spark.read.native_files import PADDED, NativeReading, list_native, plan_native_columns, plan_reading
from penstock.table.read.split import plan_splits

DELETED = Path(__file__).parents[3] / "golden" / "data" / "deleted" / "java142.db" / "t"

A, B, ALIKE = (DataField(id=place, name=name, type=INT) for place, name in enumerate(["a", "b", "A"]))


def test_columns_whose_names_differ_by_case_alone_are_not_read_natively() -> None:
    """Spark matches names without regard to case."""
    for file_format in FileFormat.PARQUET, FileFormat.ORC:
        assert isinstance(plan_native_columns(file_format, [A, B], (A, B)), tuple)
        for stored, fields in (
            ([A, B, ALIKE], (A,)),  # two in the file
            ([A, B], (A, ALIKE)),  # one was added to the table since
        ):
            assert "names of columns differ in case only" in plan_native_columns(file_format, stored, fields)
        row = DataField(id=7, name="r", type=RowType(fields=(A, ALIKE)))
        assert "column 'r' has type ROW<a INT, A INT>" in plan_native_columns(file_format, [row], (row,))


@pytest.mark.parametrize(
    ("old", "new", "is_native"),
    [
        ("DECIMAL(10, 2)", "DECIMAL(14, 2)", True),
        ("DECIMAL(10, 2)", "DECIMAL(14, 6)", True),
        ("DECIMAL(10, 2)", "DECIMAL(14, 7)", False),  # some values do not fit any more, which is an error elsewhere
        ("DECIMAL(10, 2)", "DECIMAL(9, 2)", False),
        ("DECIMAL(10, 2)", "DECIMAL(14, 1)", False),
        ("INT", "DECIMAL(14, 2)", False),
        ("INT", "STRING", False),
    ],
)
def test_spark_widens_decimals_whose_values_all_fit(old: str, new: str, is_native: bool) -> None:  # noqa: FBT001 - a case
    before, after = (replace(A, type=parse_sql_type(text)) for text in (old, new))
    found = plan_native_columns(FileFormat.PARQUET, [before], (after,))
    assert isinstance(found, tuple) is is_native
    if is_native:
        assert found[0].is_cast
    else:
        assert found == f"column 'a' is {old} in files and {new} in the table"


def test_a_reason_names_the_column_and_what_rewrites_files_of_older_schemas(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, v INT")
    rows = pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([2], pa.int32())})
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
        "column 'v' is INT in files and STRING in the table; 2 of 3 files have an older schema: compact with "
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
    reading = plan_reading(query.ref, table._store, splits, (), has_class=bool, numbers=True)
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


def test_a_vector_that_is_longer_than_one_of_its_file_can_be_is_refused() -> None:
    table = Table.at(str(DELETED))
    query = table._handle.plan(None, None, {}, with_vectors=True)
    (split, *_) = plan_splits(query.ref, query.plan)
    reading = plan_reading(query.ref, table._store, (split,), table.schema.fields, has_class=lambda: True)
    assert isinstance(reading, NativeReading)
    listed = list_native(query.ref, (split,), reading)
    assert sorted(len(tag.split("\t")) for _, _, tag in listed) == [2, 6]
    vectors = tuple((name, replace(place, length=2**31 - 1)) for name, place in split.vectors)
    with pytest.raises(FormatError, match="is longer than one of its rows can be"):
        list_native(query.ref, (replace(split, vectors=vectors),), reading)


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
