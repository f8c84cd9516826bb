"""The metadata column of versions of Spark that need one."""

from __future__ import annotations

from penstock.spark.connector.metadata_column import metadata_column_of, metadata_fields


def test_its_name_is_that_of_no_column_of_the_table_in_any_case() -> None:
    assert metadata_column_of(["id"]) == "_penstock_row"
    assert metadata_column_of(["_Penstock_Row", "_penstock_row_"]) == "_penstock_row__"
    assert metadata_column_of(["_penstock_row", "_penstock_file"], of_file=True) == "_penstock_file_"


def test_it_is_a_number_that_may_be_null() -> None:
    assert metadata_fields(["a"]).simpleString() == "struct<a:bigint>"
    assert metadata_fields(["a"])[0].nullable
    assert len(metadata_fields(())) == 0
