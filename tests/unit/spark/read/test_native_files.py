"""Which columns Spark's own readers may be trusted with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock import Catalog, Table
from penstock.format.layout import FileFormat
from penstock.format.types.data_types import INT, DataField, RowType
from penstock.spark.read.native_files import PADDED, NativeReading, plan_native_columns, plan_reading, why_not_native
from penstock.table.read.split import plan_splits

DELETED = Path(__file__).parents[3] / "golden" / "data" / "deleted" / "java142.db" / "t"

A, B, ALIKE = (DataField(id=place, name=name, type=INT) for place, name in enumerate(["a", "b", "A"]))


def test_columns_whose_names_differ_by_case_alone_are_not_read_natively() -> None:
    """Spark matches names without regard to case."""
    for file_format in FileFormat.PARQUET, FileFormat.ORC:
        assert plan_native_columns(file_format, [A, B], (A, B)) is not None
        assert plan_native_columns(file_format, [A, B, ALIKE], (A,)) is None, "two in the file"
        assert plan_native_columns(file_format, [A, B], (A, ALIKE)) is None, "one was added to the table since"
        row = DataField(id=7, name="r", type=RowType(fields=(A, ALIKE)))
        assert plan_native_columns(file_format, [row], (row,)) is None


def test_files_with_deletion_vectors_are_left_to_python_workers() -> None:
    table = Table.at(str(DELETED))
    fields = table.schema.fields
    for text, is_native in ((None, False), ("k >= 20", True)):
        query = table._handle.plan(text, None, {}, with_vectors=True)
        splits = plan_splits(query.ref, query.plan)
        reading = plan_reading(query.ref, table._store, splits, fields)
        assert isinstance(reading, NativeReading) is is_native
        if not is_native:
            assert reading == "rows of its files are deleted by deletion vectors"


def test_char_is_left_to_python_workers_where_it_is_padded(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, c CHAR(3)")
    table.append(pa.table({"k": pa.array([1], pa.int32()), "c": ["a"]}))
    query = table._handle.plan(None, None, {})
    splits, fields = plan_splits(query.ref, query.plan), table.schema.fields
    assert plan_reading(query.ref, table._store, splits, fields, pads=True) == PADDED
    assert why_not_native(query.ref, table._store, splits, fields, pads=True) == PADDED
    for read in (fields, fields[:1]):
        assert isinstance(plan_reading(query.ref, table._store, splits, read), NativeReading)
        assert why_not_native(query.ref, table._store, splits, read) is None
    assert isinstance(plan_reading(query.ref, table._store, splits, fields[:1], pads=True), NativeReading)
