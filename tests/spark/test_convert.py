"""Directories that Spark reads for a conversion become tables with the rows and types that Spark finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import penstock

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("file_format", "values"),
    [
        ("parquet", "interval '1' day AS i"),
        ("orc", "timestamp'2026-01-01 00:00:00' AS t"),
        ("orc", "array(struct(timestamp_ntz'2026-01-01 00:00:00' AS n)) AS a"),
    ],
)
def test_types_that_only_spark_finds_in_its_files_are_refused_without_it(
    file_format: str, values: str, spark: SparkSession, tmp_path: Path
) -> None:
    source, catalog = str(tmp_path / "old"), penstock.Catalog(tmp_path / "w")
    frame = spark.sql(f"SELECT 1 AS id, {values}")
    frame.write.format(file_format).save(source)
    with pytest.raises(penstock.SchemaMismatchError, match=r"only Spark reads: .*spark=spark"):
        penstock.convert(catalog, "d.t", source)
    with pytest.raises(penstock.UnsupportedFeatureError, match="penstock convert --spark"):
        catalog.migrate(source, "d.t")
    if file_format == "orc":
        penstock.convert(catalog, "d.t", source, spark=spark)
        assert catalog.load_table("d.t").to_spark(spark).collect() == frame.collect()


def test_directories_that_spark_reads_stay_partitions_with_the_columns_of_all_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, catalog = str(tmp_path / "old"), penstock.Catalog(tmp_path / "w")
    for columns in ("id, id % 2 AS p", "id + 10 AS id, 'x' AS `b.c`, id % 2 AS p"):
        spark.range(4).selectExpr(*columns.split(", ")).write.mode("append").partitionBy("p").parquet(source)
    penstock.convert(catalog, "d.t", source, spark=spark)
    table = catalog.load_table("d.t")
    assert table.schema.partition_keys == ("p",)
    found = table.to_spark(spark).select("id", "p", "`b.c`").orderBy("id").collect()
    assert [tuple(row) for row in found] == [
        *((number, number % 2, None) for number in range(4)),
        *((number + 10, number % 2, "x") for number in range(4)),
    ]


def test_texts_of_directories_have_the_declared_types_whatever_spark_infers(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, catalog = str(tmp_path / "old"), penstock.Catalog(tmp_path / "w")
    rows = spark.sql("SELECT * FROM VALUES (1, '01', '2026-01-02'), (2, NULL, '2026-01-03') AS (id, hh, dt)")
    rows.write.partitionBy("hh", "dt").parquet(source)
    for name, session in (("with", spark), ("without", None)):
        penstock.convert(catalog, f"d.{name}", source, spark=session, types={"hh": "STRING", "dt": "STRING"})
        found = catalog.load_table(f"d.{name}").to_arrow(["id", "hh", "dt"]).sort_by("id")
        assert [tuple(row.values()) for row in found.to_pylist()] == [(1, "01", "2026-01-02"), (2, None, "2026-01-03")]


def test_csv_that_spark_reads_has_the_names_of_its_header(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.csv").write_text("id,v\n1,x\n")
    catalog = penstock.Catalog(tmp_path / "w")
    penstock.convert(catalog, "d.t", tmp_path / "old", spark=spark)
    assert catalog.load_table("d.t").to_arrow().to_pylist() == [{"id": 1, "v": "x"}]
