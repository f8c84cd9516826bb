"""Tables that have a name in Spark's catalog: SELECT, INSERT INTO and INSERT OVERWRITE reach the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from penstock.errors import InvalidOptionError, SchemaMismatchError
from penstock.format.types.data_types import BIGINT, INT
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.data_source.table_names import find_source, find_target, with_location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    Named = Callable[..., Table]

NO_TARGET = "Spark does not say which penstock table these rows are for"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


@pytest.fixture
def named(spark: SparkSession, catalog: Catalog) -> Iterator[Named]:
    """Make tables that have names in Spark too, for one test."""
    names = []

    def make(name: str, columns: str = "a INT, b STRING", rows: list[dict[str, Any]] | None = None) -> Table:
        table = catalog.create_table(f"d.{name}", columns)
        if rows is not None:
            table.append(pa.Table.from_pylist(rows, table.arrow_schema))
        names.append(name)
        spark.sql(f"CREATE TABLE {name} USING penstock OPTIONS (path '{table.location}')")
        return table

    yield make
    for name in names:
        spark.sql(f"DROP TABLE {name}")


def rows_of(table: Table) -> list[dict[str, Any]]:
    return table.to_arrow().to_pylist()


def test_two_tables_of_one_session_are_created_selected_inserted_into_and_overwritten(
    spark: SparkSession, named: Named
) -> None:
    left, right = named("n_left"), named("n_right", "x BIGINT NOT NULL, y DOUBLE")
    spark.sql("INSERT INTO n_left VALUES (1, 'one'), (2, NULL)")
    spark.sql("INSERT INTO n_right SELECT a + 100, 0.5 FROM n_left")
    assert sorted(spark.table("n_left").collect()) == [(1, "one"), (2, None)]
    assert sorted(spark.sql("SELECT * FROM n_right").collect()) == [(101, 0.5), (102, 0.5)]
    spark.sql("INSERT OVERWRITE n_left SELECT 3, 'three'")
    assert rows_of(left) == [{"a": 3, "b": "three"}]
    assert rows_of(right) == [{"x": 101, "y": 0.5}, {"x": 102, "y": 0.5}]
    assert [snapshot.as_py() for snapshot in left.snapshots()["commit_kind"]] == ["APPEND", "OVERWRITE"]
    joined = spark.sql("SELECT l.b, r.x FROM n_left l CROSS JOIN n_right r ORDER BY x").collect()
    assert joined == [("three", 101), ("three", 102)]


@pytest.mark.slow
def test_rows_of_one_named_table_go_to_the_other_whatever_columns_they_share(spark: SparkSession, named: Named) -> None:
    # The writer is handed the columns of the query: they must not be taken for those of the target.
    rows = [{"a": 1, "b": "one"}]
    source, target = named("n_from", rows=rows), named("n_to")
    spark.sql("INSERT INTO n_to SELECT * FROM n_from")
    spark.table("n_from").write.insertInto("n_to")
    spark.table("n_from").writeTo("n_to").append()
    assert rows_of(target) == rows * 3
    spark.sql("INSERT OVERWRITE n_to SELECT a, b FROM n_from UNION ALL SELECT a + 1, b FROM n_from")
    assert sorted(row["a"] for row in rows_of(target)) == [1, 2]
    assert rows_of(source) == rows
    assert source.latest_snapshot().id == 1


@pytest.mark.slow
def test_columns_that_fit_as_they_are_go_to_the_named_table(spark: SparkSession, named: Named) -> None:
    target = named("n_fit")
    frame = spark.createDataFrame([(1, "one")], "a INT, b STRING")
    frame.writeTo("n_fit").append()
    spark.sql("INSERT INTO n_fit (a) VALUES (2)")
    spark.sql("INSERT INTO n_fit BY NAME SELECT 'three' AS b, 3 AS a")
    assert rows_of(target) == [{"a": 1, "b": "one"}, {"a": 2, "b": None}, {"a": 3, "b": "three"}]


def test_rows_that_may_be_for_another_table_are_refused_where_there_is_no_string(
    spark: SparkSession, named: Named
) -> None:
    rows = [{"a": 1, "b": 0.5}]
    source, target = named("n_from", "a INT, b DOUBLE", rows), named("n_to", "a INT, b DOUBLE")
    for statement in (
        "INSERT INTO n_to SELECT * FROM n_from",
        "INSERT OVERWRITE n_to SELECT a, b + 1 AS b FROM n_from",
    ):
        with pytest.raises(AnalysisException, match=NO_TARGET):
            spark.sql(statement)
    assert (rows_of(source), rows_of(target)) == (rows, [])
    # The cure that the error names, and what Spark has to make a projection for.
    spark.sql(f"INSERT INTO n_to WITH (path = '{target.location}') SELECT * FROM n_from")  # noqa: S608 - a path of our own
    spark.sql("INSERT INTO n_to VALUES (2, 1.5D)")
    assert (rows_of(source), rows_of(target)) == (rows, [*rows, {"a": 2, "b": 1.5}])


def test_explicit_columns_are_refused_with_the_cure(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "a INT, b STRING")
    spark.sql(f"CREATE TABLE n_explicit (a INT, b STRING) USING penstock OPTIONS (path '{table.location}')")
    try:
        with pytest.raises(AnalysisException, match=r"create it without a column list .* or use load\('<path>'\)"):
            spark.table("n_explicit").collect()
        cure = rf"{NO_TARGET}: create t without a column list .* save\('<path>'\)"
        with pytest.raises(AnalysisException, match=cure):
            spark.sql("INSERT INTO n_explicit VALUES (1, 'one')")
        with pytest.raises(AnalysisException, match=cure):
            spark.createDataFrame([(1, "one")], "a INT, b STRING").writeTo("n_explicit").append()
    finally:
        spark.sql("DROP TABLE n_explicit")
    assert table.latest_snapshot() is None


def test_name_without_a_path_is_refused(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"needs the table's location: load\('<path>'\)"):
        spark.sql("CREATE TABLE n_nowhere USING penstock")


def test_temporary_view_takes_the_options_of_a_read_and_of_an_insert(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "a INT, b STRING")
    table.append(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["one", "two"]}))
    table.append(pa.table({"a": pa.array([3], pa.int32()), "b": ["three"]}))
    path = f"path '{table.location}'"
    spark.sql(f"CREATE TEMPORARY VIEW v_then USING penstock OPTIONS ({path}, 'scan.snapshot-id' '1', filter 'a > 1')")
    assert spark.table("v_then").collect() == [(2, "two")]
    spark.sql(f"CREATE TEMPORARY VIEW v_now USING penstock OPTIONS ({path})")
    spark.sql("INSERT INTO v_now VALUES (4, 'four')")
    assert [row["a"] for row in rows_of(table)] == [1, 2, 3, 4]
    spark.sql("INSERT OVERWRITE v_now VALUES (5, 'five')")
    assert rows_of(table) == [{"a": 5, "b": "five"}]
    # Spark plans a view of options once: what is committed after its first read is for a new view.
    assert spark.table("v_now").collect() == [(5, "five")]
    spark.sql("INSERT INTO v_now VALUES (6, 'six')")
    assert spark.table("v_now").collect() == [(5, "five")]
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_now USING penstock OPTIONS ({path})")
    assert sorted(spark.table("v_now").collect()) == [(5, "five"), (6, "six")]


def test_changes_of_the_table_are_seen_or_refused_under_the_old_name(
    spark: SparkSession, catalog: Catalog, named: Named
) -> None:
    table = named("n_alter", "a INT, b STRING, c INT", [{"a": 1, "b": "one", "c": 7}])
    catalog.alter_table("d.n_alter", AddColumn(column="d", type=INT))
    assert spark.table("n_alter").collect() == [(1, "one", 7)]
    with pytest.raises(
        Exception, match=r"column 'd' is missing.* Spark takes its columns for a int, b string, c int, but"
    ):
        spark.sql("INSERT INTO n_alter VALUES (2, 'two', 8)")
    catalog.alter_table("d.n_alter", UpdateColumnType(column="a", type=BIGINT))
    with pytest.raises(
        AnalysisException, match=r"Spark takes column 'a' for int, but it is bigint \(now\): create the"
    ):
        spark.table("n_alter").collect()
    catalog.alter_table("d.n_alter", RenameColumn(column="b", new_name="bb"), DropColumn(column="a"))
    with pytest.raises(AnalysisException, match=r"has no column 'a': its columns are bb, c, d"):
        spark.table("n_alter").collect()
    assert catalog.load_table("d.n_alter").to_arrow().to_pylist() == [{"bb": "one", "c": 7, "d": None}]
    assert table.location


# Without a session


def test_rows_for_columns_that_only_spark_has_are_refused_with_what_altered_them(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "a INT, b STRING")
    altered = StructType([StructField("a", LongType()), StructField("b", StringType()), StructField("c", LongType())])
    named = with_location(altered, table.location)
    for field in named.fields:
        field.metadata.pop("__CHAR_VARCHAR_TYPE_STRING", None)
    rows = pa.record_batch({"a": [1], "b": ["one"], "c": [2]})
    text = r"Spark takes its columns for a bigint, b string, c bigint, but they are a int, b string \(now\): .* ALTER"
    writer = PenstockDataSource({}).writer(named, overwrite=False)
    with pytest.raises(SchemaMismatchError, match=text):
        writer.commit([writer.write(iter([rows]))])
    by_path = PenstockDataSource({"path": table.location}).writer(altered, overwrite=False)
    with pytest.raises(SchemaMismatchError) as raised:
        by_path.commit([by_path.write(iter([rows]))])
    assert "Spark takes" not in str(raised.value)


def test_location_is_found_again_in_a_column_that_can_hold_it() -> None:
    schema = StructType(
        [
            StructField("nested", StructType([StructField("odd name", LongType())])),
            StructField("number", IntegerType(), nullable=False),
            StructField("text", StringType(), metadata={"comment": "kept"}),
        ]
    )
    marked = with_location(schema, "/somewhere")
    assert find_source(marked) == "/somewhere"
    assert [field.metadata == {} for field in marked.fields] == [True, True, False]
    assert marked["text"].metadata["comment"] == "kept"
    assert (
        marked["text"].metadata["__CHAR_VARCHAR_TYPE_STRING"]
        != (with_location(schema, "/elsewhere")["text"].metadata["__CHAR_VARCHAR_TYPE_STRING"])
    )
    without_text = with_location(StructType(schema.fields[:2]), "/somewhere")
    assert find_source(without_text) == "/somewhere"
    assert without_text["number"].metadata["__CHAR_VARCHAR_TYPE_STRING"] == "int"
    times = with_location(StructType([StructField("t", TimestampType())]), "/somewhere")
    assert times["t"].metadata["__CHAR_VARCHAR_TYPE_STRING"] == "timestamp_ltz"
    assert with_location(StructType(schema.fields[:1]), "/somewhere") == StructType(schema.fields[:1])


def test_target_is_known_only_where_spark_has_put_its_columns() -> None:
    schema = with_location(StructType([StructField("text", StringType())]), "/source")
    with pytest.raises(InvalidOptionError, match=NO_TARGET):
        find_target(schema)
    with pytest.raises(InvalidOptionError, match=NO_TARGET):
        find_target(StructType([StructField("text", StringType())]))
    projected = {key: value for key, value in schema["text"].metadata.items() if key == "penstock.location"}
    assert find_target(StructType([StructField("text", StringType(), metadata=projected)])) == "/source"
