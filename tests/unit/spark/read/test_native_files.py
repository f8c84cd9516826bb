"""Which columns Spark's own readers may be trusted with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.format.layout import FileFormat
from penstock.format.types.data_types import INT, DataField, RowType
from penstock.format.types.text import parse_sql_type
from penstock.spark.read.native_files import plan_native_columns

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
    ("old", "new", "way"),
    [
        ("DECIMAL(10, 2)", "DECIMAL(14, 2)", "is_cast"),
        ("DECIMAL(10, 2)", "DECIMAL(14, 6)", "is_cast"),
        ("DECIMAL(10, 2)", "DECIMAL(14, 7)", "converts"),  # some values do not fit any more
        ("DECIMAL(10, 2)", "DECIMAL(9, 2)", "converts"),
        ("DECIMAL(10, 2)", "DECIMAL(14, 1)", "converts"),
        ("INT", "DECIMAL(14, 2)", "converts"),
        ("INT", "STRING", "converts"),
        ("STRING", "INT", None),
        ("ROW<x INT>", "ROW<x INT, y INT>", "converts"),
        ("ARRAY<INT>", "ARRAY<BIGINT>", None),
    ],
)
def test_spark_widens_values_that_all_fit_and_converts_others(old: str, new: str, way: str | None) -> None:
    before, after = (replace(A, type=parse_sql_type(text)) for text in (old, new))
    found = plan_native_columns(FileFormat.PARQUET, [before], (after,))
    if isinstance(found, str):
        assert found == f"column 'a' is {old} in files and {new} in the table"
        assert way is None
    else:
        assert [each for each in ("is_cast", "converts") if getattr(found[0], each)] == [way]
