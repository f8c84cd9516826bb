"""Metadata columns: the names of those that Spark needs, and of what others are made."""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from penstock.spark.connector.metadata_column import columns_text, constants_of, in_order, metadata_column_of


def test_its_name_is_that_of_no_column_of_the_table_in_any_case() -> None:
    assert metadata_column_of(["id"]) == "_penstock_row"
    assert metadata_column_of(["_Penstock_Row", "_penstock_row_"]) == "_penstock_row__"


def test_columns_are_made_of_those_of_a_reader() -> None:
    wanted = StructType([StructField("id", LongType())])
    partition = StructType([StructField("p", IntegerType()), StructField("q", StringType())])
    metadata = in_order(
        [
            StructField("__paimon_file_path", StringType()),
            StructField("__paimon_partition", partition),
            StructField("_ROW_ID", LongType()),
            StructField("_SEQUENCE_NUMBER", LongType()),
        ]
    )
    constants = constants_of(metadata).fieldNames()
    assert constants == [
        "__paimon_partition_70",
        "__paimon_partition_71",
        "_ROW_ID_first",
        "_SEQUENCE_NUMBER_last",
        "__paimon_file_path",
    ]
    read = ["id", "_ROW_ID", "_SEQUENCE_NUMBER", "_tmp_metadata_row_index", *constants]
    assert columns_text(wanted, metadata, read) == "0,4+5+,1?6?3,2?7,8"
    none = StructType([StructField("__paimon_partition", StructType([]))])
    assert columns_text(wanted, none, ["id"]) == "0,+"
    assert columns_text(wanted, StructType([]), ["id"]) == ""
