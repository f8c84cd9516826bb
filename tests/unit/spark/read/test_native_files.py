"""Which columns Spark's own readers may be trusted with."""

from __future__ import annotations

from penstock.format.layout import FileFormat
from penstock.format.types.data_types import INT, DataField, RowType
from penstock.spark.read.native_files import plan_native_columns

A, B, ALIKE = (DataField(id=place, name=name, type=INT) for place, name in enumerate(["a", "b", "A"]))


def test_columns_whose_names_differ_by_case_alone_are_not_read_natively() -> None:
    """Spark matches names without regard to case."""
    for file_format in FileFormat.PARQUET, FileFormat.ORC:
        assert plan_native_columns(file_format, [A, B], (A, B)) is not None
        assert plan_native_columns(file_format, [A, B, ALIKE], (A,)) is None, "two in the file"
        assert plan_native_columns(file_format, [A, B], (A, ALIKE)) is None, "one was added to the table since"
        row = DataField(id=7, name="r", type=RowType(fields=(A, ALIKE)))
        assert plan_native_columns(file_format, [row], (row,)) is None
