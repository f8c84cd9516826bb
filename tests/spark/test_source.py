"""``spark.read.format("penstock")`` and ``df.write.format("penstock")`` by path."""

from __future__ import annotations

import datetime as dt
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.types import StructType

import penstock
from penstock import Catalog, Table
from penstock.errors import InvalidOptionError, NotFoundError, OptionWarning
from penstock.spark.data_source.source import PenstockDataSource
from penstock.table.inspect.system import SYSTEM_TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

SYSTEM: Final = [
    *("snapshots", "schemas", "options", "files", "partitions", "buckets", "manifests", "tags", "branches"),
    *("consumers", "compaction"),
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two snapshots, the first of them tagged: a 1 and 2, then 3."""
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT, b STRING, p STRING", partition_by=["p"])
    for rows in ([(1, "one", "x"), (2, "two", "y")], [(3, "three", "x")]):
        table.append(pa.Table.from_pylist([dict(zip("abp", row, strict=True)) for row in rows], table.arrow_schema))
    table.create_tag("first", snapshot_id=1)
    return table


def reader(spark: SparkSession, **options: str) -> DataFrameReader:
    return spark.read.format("penstock").options(**options)


def numbers(table: Table) -> list[int]:
    return sorted(table.to_arrow(["a"])["a"].to_pylist())


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "a INT, b STRING, p STRING")


# Reading


def test_options_of_a_read_name_the_snapshot_the_filter_and_the_columns(spark: SparkSession, table: Table) -> None:
    time_millis = str(table._store.load_snapshot(1).time_millis)
    first = [{"scan.snapshot-id": "1"}, {"scan.tag-name": "first"}, {"scan.timestamp-millis": time_millis}]
    for options in first:
        assert sorted(row["a"] for row in reader(spark, **options).load(table.location).collect()) == [1, 2]
    assert reader(spark, filter="p = 'x' AND a > 1").load(table.location).collect() == [(3, "three", "x")]
    few = reader(spark).schema("p STRING, a INT").load(table.location)
    assert sorted(few.collect()) == [("x", 1), ("x", 3), ("y", 2)]
    assert sorted(few.select("a").where("p = 'x'").collect()) == [(1,), (3,)]


def test_a_state_has_the_names_that_users_of_delta_lake_know(spark: SparkSession, table: Table) -> None:
    first = table._store.load_snapshot(1).time_millis
    instant = dt.datetime.fromtimestamp(first / 1000, dt.UTC)
    in_session = instant.astimezone(ZoneInfo(spark.conf.get("spark.sql.session.timeZone") or "")).replace(tzinfo=None)
    for options in ({"versionAsOf": "1"}, {"versionAsOf": "first"}, {"timestampAsOf": instant.isoformat()}):
        assert reader(spark, **options).load(table.location).count() == 2
        assert table.to_spark(spark, options=options).count() == 2
    assert table.to_spark(spark, options={"timestampAsOf": in_session.isoformat(sep=" ")}).count() == 2
    with pytest.raises(AnalysisException, match="zone of this time is not known here"):
        reader(spark, timestampAsOf="2026-01-01").load(table.location)
    with pytest.raises(NotFoundError, match="no snapshot at or before 2000-01-01 08:00"):
        table.to_spark(spark, options={"timestampAsOf": "2000-01-01 00:00:00 America/Los_Angeles"})


def test_uri_is_as_good_as_a_path(spark: SparkSession, table: Table) -> None:
    assert reader(spark).load(Path(table.location).as_uri()).count() == 3
    assert reader(spark, path=table.location).load().count() == 3


def test_system_tables_are_read_by_the_name_behind_the_path(spark: SparkSession, table: Table) -> None:
    assert set(SYSTEM) == set(SYSTEM_TABLES)
    for name in SYSTEM:
        found = reader(spark).load(f"{table.location}${name}").toArrow()
        expected = table.inspect.system_table(name)
        assert (found.num_rows, found.column_names) == (expected.num_rows, expected.column_names), name
        others = [column for column in found.column_names if not pa.types.is_timestamp(expected[column].type)]
        assert found.select(others).to_pylist() == expected.select(others).to_pylist(), name
        for column in set(found.column_names) - set(others):
            wanted = expected[column].cast(pa.timestamp("us"), safe=False)
            assert found[column].cast(pa.int64()).equals(wanted.cast(pa.int64())), (name, column)


def test_rows_of_a_dataframe_stay_those_of_its_first_read(spark: SparkSession, table: Table) -> None:
    # Spark keeps a source's plan: a new load sees the new snapshot.
    known = reader(spark).load(table.location)
    assert known.count() == 3
    table.append(pa.Table.from_pylist([{"a": 4}], table.arrow_schema))
    assert known.count() == 3
    assert reader(spark).load(table.location).count() == 4


@pytest.mark.parametrize(
    ("options", "schema", "text"),
    [
        ({"scan.snapshot-id": "1", "scan.tag-name": "first"}, None, "scan.snapshot-id.* scan.tag-name"),
        ({"scan.snapshot-id": "one"}, None, "option 'scan.snapshot-id' = 'one'"),
        ({"scan.snapshot-id": "9"}, None, "snapshot 9"),
        ({"scan.tag-name": "nothing"}, None, "nothing"),
        ({"filter": "c = 1"}, None, "unknown column 'c'"),
        ({"filter": "a ="}, None, "filter"),
        ({}, "c INT", r"has no column 'c': its columns are a, b, p"),
        ({}, "a BIGINT", r"Spark takes column 'a' for bigint, but it is int \(now\)"),
    ],
)
def test_what_cannot_be_read_is_reported_before_anything_runs(
    table: Table, options: dict[str, str], schema: str | None, text: str
) -> None:
    source = PenstockDataSource({"path": table.location, **options})
    with pytest.raises((InvalidOptionError, NotFoundError, ValueError), match=text) as raised:
        source.reader(StructType.fromDDL(schema) if schema else source.schema()).partitions()
    assert "\n" not in str(raised.value)


def test_spark_shows_the_text_of_an_error(spark: SparkSession, table: Table) -> None:
    with pytest.raises(AnalysisException, match=f"NotFoundError: .*{table.location}x"):
        reader(spark).load(f"{table.location}x")
    with pytest.raises(AnalysisException, match="InvalidOptionError: "):
        reader(spark, **{"scan.snapshot-id": "1", "scan.tag-name": "first"}).load(table.location)
    with pytest.raises(AnalysisException, match=r"needs the table's location: load\('<path>'\)"):
        reader(spark).load()


def test_options_that_would_be_dropped_are_refused(spark: SparkSession, table: Table) -> None:
    for key, text in (("branch", "read and write a branch"), ("startingVersion", "give 'scan.mode'")):
        with pytest.raises(AnalysisException, match=text):
            reader(spark).option(key, "1").load(table.location)
    older = reader(spark).option("scan.snapshot-id", "1").load(f"{table.location}$files")
    assert (older.count(), reader(spark).load(f"{table.location}$files").count()) == (2, 3)


def test_misspelt_option_warns_with_the_nearest_name(table: Table) -> None:
    with pytest.warns(OptionWarning, match=r"scan\.snapshotid.*scan\.snapshot-id"):
        PenstockDataSource({"path": table.location, "scan.snapshotid": "1"}).schema()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {
            "path": table.location,
            "filter": "a = 1",
            "partitionoverwritemode": "static",
            "scan.snapshot-id": "1",
        }
        PenstockDataSource(options).schema()


# Writing


def test_modes_append_and_overwrite_all_or_only_the_partitions_of_the_rows(spark: SparkSession, table: Table) -> None:
    writer = frame(spark, (4, "four", "x")).write.format("penstock")
    writer.mode("append").save(table.location)
    assert (numbers(table), table.latest_snapshot().commit_kind) == ([1, 2, 3, 4], "APPEND")
    writer.mode("overwrite").option("partitionOverwriteMode", "dynamic").save(table.location)
    assert (numbers(table), table.latest_snapshot().commit_kind) == ([2, 4], "OVERWRITE")
    frame(spark, (5, "five", "z")).write.format("penstock").mode("overwrite").save(table.location)
    assert numbers(table) == [5]
    assert table.latest_snapshot().id == 5


def test_the_sessions_overwrite_mode_holds_unless_the_write_says_otherwise(spark: SparkSession, table: Table) -> None:
    key = "spark.sql.sources.partitionOverwriteMode"
    writer = frame(spark, (4, "four", "x")).write.format("penstock").mode("overwrite")
    spark.conf.set(key, "dynamic")
    try:
        writer.save(table.location)
        assert numbers(table) == [2, 4]
        writer.option("partitionOverwriteMode", "static").save(table.location)
        assert numbers(table) == [4]
    finally:
        spark.conf.unset(key)


def test_replace_where_replaces_exactly_the_partitions_that_it_names(spark: SparkSession, table: Table) -> None:
    writer = frame(spark, (4, "four", "x")).write.format("penstock").mode("overwrite")
    writer.option("replaceWhere", "p = 'x'").save(table.location)
    assert numbers(table) == [2, 4]
    with pytest.raises(AnalysisException, match="'replaceWhere' = 'a = 1': 'a' is not a partition column"):
        writer.option("replaceWhere", "a = 1").save(table.location)
    with pytest.raises(PySparkException, match="are outside of the partition"):
        writer.option("replaceWhere", "p = 'y'").save(table.location)
    with pytest.raises(AnalysisException, match="goes with mode"):
        writer.mode("append").option("replaceWhere", "p = 'x'").save(table.location)
    assert numbers(table) == [2, 4]


def test_rows_keep_their_order_and_no_rows_make_no_snapshot(spark: SparkSession, table: Table) -> None:
    many = spark.range(0, 5_000, 1, 4).selectExpr("cast(id AS INT) AS a", "'b' AS b", "'q' AS p")
    many.write.format("penstock").mode("append").save(table.location)
    assert table.to_arrow(["a"], filter="p = 'q'")["a"].to_pylist() == list(range(5_000))
    assert table.latest_snapshot().id == 3
    many.limit(0).write.format("penstock").mode("append").save(table.location)
    assert table.latest_snapshot().id == 3


def test_columns_go_by_name_in_any_order(spark: SparkSession, table: Table) -> None:
    frame(spark, (4, "four", "x")).select("p", "b", "a").write.format("penstock").mode("append").save(table.location)
    assert table.to_arrow(filter="a = 4").to_pylist() == [{"a": 4, "b": "four", "p": "x"}]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT 4 AS a, 'four' AS b", "column 'p' is missing"),
        ("SELECT 4 AS a, 'four' AS b, 'x' AS p, 1 AS c", "column 'c' is not in the table"),
        ("SELECT 'four' AS a, 'four' AS b, 'x' AS p", "column 'a' is given as string"),
        ("SELECT 4000000000000 AS a, 'four' AS b, 'x' AS p", "column 'a' in row 0 .*no value 4000000000000"),
    ],
)
def test_columns_that_do_not_fit_are_named_and_nothing_is_written(
    spark: SparkSession, table: Table, query: str, text: str
) -> None:
    files = sorted(Path(table.location).rglob("data-*"))
    with pytest.raises(PySparkException, match=f"SchemaMismatchError: .*{text}"):
        spark.sql(query).write.format("penstock").mode("append").save(table.location)
    assert table.latest_snapshot().id == 2
    assert sorted(Path(table.location).rglob("data-*")) == files


def test_null_in_a_not_null_column_is_refused_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "other"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n BIGINT NOT NULL")
    values = spark.createDataFrame([(1,), (None,)], "n BIGINT")
    with pytest.raises(PySparkException, match=r"SchemaMismatchError: .*column 'n' is NOT NULL"):
        values.write.format("penstock").mode("append").save(table.location)
    assert (table.latest_snapshot(), list(Path(table.location).rglob("data-*"))) == (None, [])


def test_any_thread_writes_and_reads_once_it_has_registered_the_format(spark: SparkSession, table: Table) -> None:
    rows, before = spark.sql("SELECT 7 AS a, 'seven' AS b, 'x' AS p"), table.to_arrow().num_rows

    def work() -> int:
        penstock.register(spark)
        rows.write.format("penstock").mode("append").save(table.location)
        return spark.read.format("penstock").load(table.location).count()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(work).result() == before + 1


def test_writes_that_make_no_sense_are_refused(spark: SparkSession, table: Table) -> None:
    writer = frame(spark, (4, "four", "x")).write.format("penstock")
    with pytest.raises(AnalysisException, match=r"t\$snapshots shows metadata; it cannot be written"):
        writer.mode("append").save(f"{table.location}$snapshots")
    with pytest.raises(AnalysisException, match="'partitionOverwriteMode' = 'both': expected static or dynamic"):
        writer.mode("overwrite").option("partitionOverwriteMode", "both").save(table.location)
    for mode in ("errorifexists", "ignore"):
        with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.mode(mode).save(table.location)
    assert table.latest_snapshot().id == 2


def test_where_prunes_where_the_session_lets_python_sources_have_filters(
    spark: SparkSession, catalog: Catalog, table: Table
) -> None:
    key = "spark.sql.python.filterPushdown.enabled"
    try:
        spark.conf.set(key, "false")
        penstock.attach(spark, catalog, "filtered")
        assert spark.conf.get(key) == "false"  # what the user has set stays
        frame = spark.read.format("penstock").load(table.location).where("p = 'y' AND a > 1")
        before = frame.rdd.getNumPartitions()
        spark.conf.unset(key)
        penstock.attach(spark, catalog, "filtered")
        assert spark.conf.get(key) == "true"
        pruned = spark.read.format("penstock").load(table.location).where("p = 'y' AND a > 1")
        assert (before, pruned.rdd.getNumPartitions()) == (2, 1)
        assert pruned.collect() == frame.collect() == [(2, "two", "y")]
        assert spark.read.format("penstock").load(table.location).where("length(b) = 3").count() == 2
        assert spark.read.format("penstock").load(table.location).count() == 3
    finally:
        spark.conf.unset(key)
