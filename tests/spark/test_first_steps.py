"""What newcomers try on Spark works, or is refused with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import penstock

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog: penstock.Catalog) -> penstock.Table:
    made = catalog.create_table("d.t", "id BIGINT, dt STRING", partition_by="dt")
    made.append([{"id": number, "dt": f"2026-01-0{number}"} for number in range(1, 4)])
    return made


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"mergeSchema": "true"}, "Catalog.alter_table"),
        ({"startingVersion": "1"}, "'scan.mode' = 'from-snapshot'"),
        ({"snapshot-id": "1"}, "'scan.snapshot-id'"),
    ],
)
def test_options_of_other_formats_are_refused_with_the_one_to_use(
    spark: SparkSession, table: penstock.Table, options: dict[str, str], cure: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("penstock").options(**options).load(table.location).count()
    assert cure in str(caught.value)
    # One frame of ours at the most, before the sentence.
    assert str(caught.value).count("  File ") <= 1


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda frame: frame, "ErrorIfExists"),
        (lambda frame: frame.mode("append").partitionBy("dt"), "partitioning or clustering columns do not match"),
    ],
)
def test_messages_of_spark_itself_are_on_the_page_of_errors(
    spark: SparkSession, table: penstock.Table, write: Any, message: str, pytestconfig: pytest.Config
) -> None:
    frame = spark.createDataFrame([(1, "2026-01-01")], "id BIGINT, dt STRING")
    with pytest.raises(Exception, match=message):
        write(frame.write.format("penstock")).save(table.location)
    assert message in (pytestconfig.rootpath / "docs" / "errors.md").read_text("utf-8")


def test_a_time_with_a_zone_is_refused_with_the_cast(spark: SparkSession, catalog: penstock.Catalog) -> None:
    times = catalog.create_table("d.times", "value BIGINT, timestamp TIMESTAMP(3)")
    frame = spark.range(1).selectExpr("id AS value", "current_timestamp() AS timestamp")
    with pytest.raises(penstock.SchemaMismatchError, match=r"\.cast\('timestamp_ntz'\).*TIMESTAMP_LTZ\(3\)"):
        times.append(frame)
    assert times.latest_snapshot() is None


def test_a_trigger_that_is_text_is_refused_with_the_choices(spark: SparkSession, table: penstock.Table) -> None:
    with pytest.raises(penstock.InvalidOptionError, match=r"'processingTime': '10 seconds'.*'availableNow': True"):
        table.write_stream(table.read_stream(spark), checkpoint="unused", trigger="10 seconds")  # type: ignore[arg-type]


def test_a_table_using_the_format_needs_a_path_that_is_one(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="needs the table's location"):
        spark.sql("CREATE TABLE no_path USING penstock")
    with pytest.raises(PySparkException, match="does not exist"):
        spark.sql(f"CREATE TABLE wrong_path USING penstock OPTIONS (path '{tmp_path}/none')")


def test_a_table_is_converted_through_spark(
    spark: SparkSession, catalog: penstock.Catalog, table: penstock.Table, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    table.to_spark(spark).write.partitionBy("dt").parquet(str(source))
    done = penstock.convert(catalog, "d.copy", source, format="parquet", partition_by="dt", spark=spark)
    copy = catalog.load_table("d.copy")
    assert done.rows == 3
    assert copy.schema.partition_keys == ("dt",)
    rows = copy.to_arrow().select(["id", "dt"]).to_pylist()
    assert sorted((row["id"], str(row["dt"])) for row in rows) == [(n, f"2026-01-0{n}") for n in range(1, 4)]


def test_delta_without_its_jar_is_refused_with_its_package(
    spark: SparkSession, catalog: penstock.Catalog, tmp_path: Path
) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(penstock.UnsupportedFeatureError, match=r"spark\.jars\.packages") as caught:
        penstock.convert(catalog, "d.copy", tmp_path / "delta", spark=spark)
    assert "io.delta:delta-spark" in str(caught.value)
    assert catalog.list_tables("d") == ()
