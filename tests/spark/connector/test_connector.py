"""DDL and writes of Spark SQL: what the catalog does with them, as the Python handles see it afterwards."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from tests.spark.needs import needs

import penstock
from penstock.format.types.text import format_sql_type
from penstock.spark.versions.facts import COLLATIONS, OMITTED_DEFAULTS, PYTHON_SCANS, PYTHON_WRITES, VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table


@pytest.fixture
def run(spark: SparkSession, catalog: Catalog) -> Callable[[str], list[Any]]:
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


def _rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)


def test_databases_are_made_listed_and_dropped(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run("CREATE DATABASE penstock.shop")
    run("CREATE DATABASE IF NOT EXISTS penstock.shop")
    assert "shop" in catalog.list_databases()
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        run("CREATE DATABASE penstock.shop")
    run("CREATE TABLE penstock.shop.t (id INT)")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_EMPTY"):
        run("DROP DATABASE penstock.shop")
    run("DROP DATABASE penstock.shop CASCADE")
    assert "shop" not in catalog.list_databases()
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        run("DROP DATABASE penstock.shop")
    run("DROP DATABASE IF EXISTS penstock.shop")


def test_a_table_is_made_as_the_statement_says(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run(
        """CREATE TABLE penstock.d.made (
            id BIGINT NOT NULL COMMENT 'the key', name VARCHAR(20), price DECIMAL(10, 2), dt STRING
        ) PARTITIONED BY (dt) COMMENT 'things' TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'id')"""
    )
    table = catalog.load_table("d.made")
    schema = table._ref.schema
    assert [str(field.name) for field in schema.fields] == ["id", "name", "price", "dt"]
    assert not schema.fields[0].type.nullable
    assert schema.fields[0].description == "the key"
    assert schema.partition_keys == ("dt",)
    assert schema.comment == "things"
    assert schema.option_map == {"bucket": "2", "bucket-key": "id"}
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        run("CREATE TABLE penstock.d.made (id INT)")
    run("CREATE TABLE IF NOT EXISTS penstock.d.made (id INT)")
    [(made,)] = run("SHOW CREATE TABLE penstock.d.made")
    assert "PARTITIONED BY (dt)" in made
    assert "'bucket' = '2'" in made
    run("DROP TABLE penstock.d.made")
    assert "made" not in catalog.list_tables("d")
    run(made)
    assert catalog.load_table("d.made")._ref.schema.option_map == {"bucket": "2", "bucket-key": "id"}
    run("DROP TABLE IF EXISTS penstock.d.made")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("DROP TABLE penstock.d.made")


def test_a_warning_names_the_line_of_the_statement(spark: SparkSession) -> None:
    with pytest.warns(penstock.OptionWarning, match="did you mean 'bucket'") as found:
        spark.sql("CREATE TABLE penstock.d.misspelled (id INT) TBLPROPERTIES ('buckt' = '4')")
    assert {each.filename for each in found} == {__file__}


def test_a_clause_that_cannot_be_is_refused_in_one_line(run: Callable[[str], list[Any]]) -> None:
    for clause, message in {
        "USING csv": "the option file.format chooses",
        "PARTITIONED BY (days(at))": "partitions are columns",
        "LOCATION '/elsewhere'": "the catalog gives the table its place",
    }.items():
        with pytest.raises(PySparkException, match=message) as caught:
            run(f"CREATE TABLE penstock.d.refused (id INT, at TIMESTAMP) {clause}")
        assert "Traceback" not in str(caught.value)


@needs(PYTHON_SCANS)
def test_columns_and_options_are_altered(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run("CREATE TABLE penstock.d.altered (a INT, b STRING)")
    run("INSERT INTO penstock.d.altered VALUES (1, 'x')")
    run("ALTER TABLE penstock.d.altered ADD COLUMNS (c INT COMMENT 'new' FIRST)")
    run("ALTER TABLE penstock.d.altered RENAME COLUMN b TO text")
    run("ALTER TABLE penstock.d.altered ALTER COLUMN a TYPE BIGINT")
    run("ALTER TABLE penstock.d.altered ALTER COLUMN text COMMENT 'words'")
    run("ALTER TABLE penstock.d.altered ALTER COLUMN a AFTER text")
    run("ALTER TABLE penstock.d.altered SET TBLPROPERTIES ('write-buffer-size' = '64 mb', 'comment' = 'hi')")
    run("ALTER TABLE penstock.d.altered ADD COLUMN gone INT")
    run("ALTER TABLE penstock.d.altered DROP COLUMN gone")
    schema = catalog.load_table("d.altered")._ref.schema
    assert [field.name for field in schema.fields] == ["c", "text", "a"]
    assert [field.description for field in schema.fields] == ["new", "words", None]
    assert schema.comment == "hi"
    assert schema.option_map["write-buffer-size"] == "64 mb"
    run("ALTER TABLE penstock.d.altered UNSET TBLPROPERTIES ('write-buffer-size')")
    assert "write-buffer-size" not in catalog.load_table("d.altered")._ref.schema.option_map
    assert run("SELECT * FROM penstock.d.altered") == [(None, "x", 1)]
    run("ALTER TABLE penstock.d.altered RENAME TO d.renamed")
    assert run("SELECT a FROM penstock.d.renamed") == [(1,)]


def test_a_table_is_renamed_to_a_name_with_its_catalog(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    catalog.create_database("e", if_not_exists=True)
    for name in ("one", "two", "three"):
        run(f"CREATE TABLE penstock.d.{name} (id INT)")
    run("ALTER TABLE penstock.d.one RENAME TO penstock.e.one")
    run("ALTER TABLE penstock.d.two RENAME TO uno")
    wrong = ["ALTER TABLE penstock.d.three RENAME TO other.e.three"]
    if VIEWS.is_here:
        run("CREATE VIEW penstock.d.seen AS SELECT 1 AS n")
        run("ALTER VIEW penstock.d.seen RENAME TO penstock.e.seen")
        wrong.append("ALTER VIEW penstock.e.seen RENAME TO o.d.v")
    for statement in wrong:
        with pytest.raises(PySparkException, match="in the same catalog"):
            run(statement)
    assert catalog.list_tables("e") == ("one",)
    assert {"uno", "three"} <= set(catalog.list_tables("d"))
    if VIEWS.is_here:
        assert run("SELECT * FROM penstock.e.seen") == [(1,)]


def test_names_with_dots_are_names_and_names_with_slashes_are_no_locations(
    run: Callable[[str], list[Any]], catalog: Catalog, tmp_path: Path
) -> None:
    run("CREATE TABLE penstock.d.`a.b``c` (`x.y` INT, `q``` INT)")
    run("INSERT INTO penstock.d.`a.b``c` VALUES (1, 2), (3, 4)")
    assert run("SELECT `x.y` FROM penstock.d.`a.b``c` WHERE `q``` = 4") == [(3,)]
    assert run("SELECT count(*) FROM penstock.d.`a.b``c`.snapshots") == [(1,)]
    assert run("SELECT count(*) FROM penstock.d.`a.b``c$snapshots`") == [(1,)]
    run("ALTER TABLE penstock.d.`a.b``c` RENAME TO `d.e`")
    assert "d.e" in catalog.list_tables("d")
    run("DROP TABLE penstock.d.`d.e`")
    outside = penstock.Catalog(tmp_path)
    outside.create_database("far")
    outside.create_table("far.t", "id INT")
    for name in (f"d.`{tmp_path}/far.db/t`", f"`{tmp_path}/far`.`db/t`", "d.`x/y`"):
        for statement, error in (
            (f"SELECT * FROM penstock.{name}", "TABLE_OR_VIEW_NOT_FOUND"),
            (f"DROP TABLE penstock.{name}", "TABLE_OR_VIEW_NOT_FOUND"),
            (f"CREATE TABLE penstock.{name} (i INT)", "the character '/' cannot be in a name"),
        ):
            with pytest.raises(PySparkException, match=error):
                run(statement)
    assert outside.list_tables("far") == ("t",)


def test_rows_are_added_and_replaced(spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run("CREATE TABLE penstock.d.sales (id INT, dt STRING) PARTITIONED BY (dt)")
    table = catalog.load_table("d.sales")
    run("INSERT INTO penstock.d.sales VALUES (1, 'a'), (2, 'b')")
    spark.createDataFrame([(3, "c")], "id INT, dt STRING").writeTo("penstock.d.sales").append()
    run("INSERT INTO penstock.d.sales (dt, id) VALUES ('a', 4)")
    assert _rows(table) == [(1, "a"), (2, "b"), (3, "c"), (4, "a")]
    run("INSERT OVERWRITE penstock.d.sales PARTITION (dt = 'a') VALUES (5)")
    assert _rows(table) == [(2, "b"), (3, "c"), (5, "a")]
    run("INSERT INTO penstock.d.sales REPLACE WHERE dt >= 'b' VALUES (6, 'b')")
    assert _rows(table) == [(5, "a"), (6, "b")]
    replacing = spark.createDataFrame([(7, "b"), (8, "c")], "id INT, dt STRING")
    if PYTHON_WRITES.is_here:
        replacing.writeTo("penstock.d.sales").overwritePartitions()
    else:
        table.overwrite(replacing)
    assert _rows(table) == [(5, "a"), (7, "b"), (8, "c")]
    run("INSERT OVERWRITE penstock.d.sales SELECT id + 1, dt FROM penstock.d.sales WHERE dt <> 'b'")
    assert _rows(table) == [(6, "a"), (9, "c")]
    assert table.snapshots()["commit_kind"].to_pylist()[-3:] == ["OVERWRITE"] * 3


def test_explain_and_the_log_say_who_writes_the_rows(
    spark: SparkSession, run: Callable[[str], list[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "penstock.spark.write")
    for table, columns, reason in (
        ("scalable", "n BIGINT", None),
        ("buckets", "n BIGINT) TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'n'", "it has buckets"),
        ("orc", "n BIGINT) TBLPROPERTIES ('file.format' = 'orc'", "its files are not Parquet"),
        ("days", "n BIGINT, p INT) PARTITIONED BY (p", "it has partitions"),
    ):
        run(f"CREATE TABLE penstock.d.w_{table} ({columns})")
        value = "id, 1" if table == "days" else "id"
        for insert in ("INSERT INTO", "INSERT OVERWRITE"):
            spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
            statement = f"{insert} penstock.d.w_{table} SELECT {value} FROM range(2)"
            ((plan,),) = run(f"EXPLAIN {statement}")
            run(statement)
            assert f"d.w_{table} by {'Spark' if reason is None else f'Python workers, because {reason}'}" in plan
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
        line = f"table d.w_{table}: rows are written by Python workers, not by Spark's own writer: {reason}"
        assert [each.message for each in caplog.records if f"d.w_{table}:" in each.message] == [line][: bool(reason)]


def test_explain_and_the_log_say_that_a_query_or_its_configuration_keeps_spark_from_writing(
    spark: SparkSession, catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "penstock.spark.write")

    def explained_and_logged(table: str, rows: str) -> tuple[str, list[str]]:
        catalog.create_table(f"d.{table}", "n BIGINT")
        caplog.clear()
        ((plan,),) = spark.sql(f"EXPLAIN INSERT INTO penstock.d.{table} SELECT n FROM {rows}").collect()
        spark.sql(f"INSERT INTO penstock.d.{table} SELECT n FROM {rows}")
        return plan, [each.message for each in caplog.records]

    spark.range(2).toDF("n").createOrReplaceTempView("plain")
    spark.range(2).toDF("n").observe("counted", F.count("n")).createOrReplaceTempView("observed")
    before = "rows are written by Python workers, not by Spark's own writer"
    unless = "by Spark's own writer unless the query observes metrics"
    plan, lines = explained_and_logged("k_plain", "plain")
    assert f"d.k_plain {unless}" in plan
    assert lines == []
    plan, lines = explained_and_logged("k_observed", "observed")
    assert f"d.k_observed {unless}" in plan
    assert lines == [f"table d.k_observed: {before}: the query observes metrics"]
    spark.conf.set("parquet.bloom.filter.enabled", "true")
    try:
        plan, lines = explained_and_logged("k_keys", "plain")
    finally:
        spark.conf.unset("parquet.bloom.filter.enabled")
    reason = "the Hadoop configuration sets parquet.bloom.filter.enabled: unset it for faster writes"
    assert f"d.k_keys by Python workers, because {reason}" in plan
    assert lines == [f"table d.k_keys: {before}: {reason}"]


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("DOUBLE", "1.5D"),
        ("DECIMAL(5, 2)", "1.50"),
        ("TIMESTAMP", "TIMESTAMP '2024-01-01 00:00:00'"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("CHAR(4)", "'ab'"),
    ],
)
def test_partitions_of_any_type_are_replaced(run: Callable[[str], list[Any]], kind: str, literal: str) -> None:
    run(f"CREATE OR REPLACE TABLE penstock.d.of_type (id INT, p {kind}) PARTITIONED BY (p)")
    run(f"INSERT INTO penstock.d.of_type VALUES (1, {literal}), (2, NULL)")
    run(f"INSERT OVERWRITE penstock.d.of_type PARTITION (p = {literal}) VALUES (3)")
    assert sorted(run("SELECT id FROM penstock.d.of_type")) == [(2,), (3,)]
    run("INSERT OVERWRITE penstock.d.of_type PARTITION (p = NULL) VALUES (4)")
    assert sorted(run("SELECT id, p IS NULL FROM penstock.d.of_type")) == [(3, False), (4, True)]
    with pytest.raises(PySparkException, match=r"replaces whole partitions.*\(p\)") as caught:
        run(f"INSERT INTO penstock.d.of_type REPLACE WHERE id = 3 VALUES (5, {literal})")
    assert "Traceback" not in str(caught.value)


@needs(COLLATIONS)
def test_collations_of_columns_are_refused(run: Callable[[str], list[Any]]) -> None:
    run("CREATE TABLE penstock.d.texts (s STRING)")
    for statement in (
        "CREATE TABLE penstock.d.collated (s STRING COLLATE UTF8_LCASE)",
        "CREATE TABLE penstock.d.collated (s ARRAY<STRING COLLATE UTF8_LCASE>)",
        "CREATE TABLE penstock.d.collated AS SELECT 'a' COLLATE UTF8_LCASE AS s",
        "ALTER TABLE penstock.d.texts ADD COLUMN t STRING COLLATE UTF8_LCASE",
    ):
        with pytest.raises(PySparkException, match="compared by their bytes"):
            run(statement)
    run("INSERT INTO penstock.d.texts VALUES ('A'), ('b')")
    assert run("SELECT s FROM penstock.d.texts WHERE s COLLATE UTF8_LCASE = 'a'") == [("A",)]


@needs(PYTHON_WRITES)
def test_dynamic_mode_replaces_the_partitions_of_the_rows(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    run("CREATE TABLE penstock.d.dyn (id INT, dt STRING, hr INT) PARTITIONED BY (dt, hr)")
    table = catalog.load_table("d.dyn")
    run("INSERT INTO penstock.d.dyn VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1), (4, NULL, 1)")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        run("INSERT OVERWRITE penstock.d.dyn VALUES (5, 'a', 1), (6, NULL, 1)")
        assert _rows(table) == [(2, "a", 2), (3, "b", 1), (5, "a", 1), (6, None, 1)]
        run("INSERT OVERWRITE penstock.d.dyn PARTITION (dt = 'a', hr) VALUES (7, 2)")
        assert _rows(table) == [(3, "b", 1), (5, "a", 1), (6, None, 1), (7, "a", 2)]
        before = table.latest_snapshot()
        run("INSERT OVERWRITE penstock.d.dyn SELECT * FROM penstock.d.dyn WHERE id > 100")
        assert table.latest_snapshot() == before
        with pytest.raises(PySparkException):
            run("INSERT OVERWRITE penstock.d.dyn SELECT id, raise_error('stop'), hr FROM penstock.d.dyn")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert _rows(table) == [(3, "b", 1), (5, "a", 1), (6, None, 1), (7, "a", 2)]
    assert table.snapshots()["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE", "OVERWRITE"]
    assert {pq.read_metadata(path).created_by.split()[0] for path in _files(table)} == {"parquet-cpp-arrow"}


@needs(PYTHON_WRITES)
def test_dynamic_mode_replaces_all_rows_of_a_table_without_partitions(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    run("CREATE TABLE penstock.d.whole (id INT)")
    table = catalog.load_table("d.whole")
    run("INSERT INTO penstock.d.whole VALUES (1), (2)")
    known = _files(table)
    spark.sql("SELECT 3 AS id").writeTo("penstock.d.whole").overwritePartitions()
    assert _rows(table) == [(3,)]
    # Spark's own writer has written the rows, and nothing is left where it has.
    (new,) = set(_files(table)) - set(known)
    assert pq.read_metadata(new).created_by.split()[0] == "parquet-mr"
    assert list(Path(table.location).glob(".penstock-*")) == []


def _files(table: Table) -> list[Path]:
    return [path for path in Path(table.location).rglob("*.parquet") if path.is_file()]


@pytest.mark.parametrize(
    ("column", "values", "literals", "names"),
    [
        (
            "TIMESTAMP(6)",
            (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 1, 30, 0, 1)),  # noqa: DTZ001 - of wall clocks
            ("TIMESTAMP_NTZ '0001-01-01 00:00:00'", "TIMESTAMP_NTZ '9999-12-31 01:30:00.000001'"),
            ("0001-01-01 00%3A00%3A00", "9999-12-31 01%3A30%3A00.000001"),
        ),
        ("TIME(3)", (dt.time(0), dt.time(1, 30, 0, 1000)), ("0", "5400001"), ("0", "5400001")),
        ("DOUBLE", (0.0, -0.0), ("0.0", "'-0.0'"), ("0.0", "-0.0")),
    ],
)
def test_partitions_at_the_limits_of_their_types_are_listed_and_dropped(
    run: Callable[[str], list[Any]],
    catalog: Catalog,
    column: str,
    values: tuple[object, object],
    literals: tuple[str, str],
    names: tuple[str, str],
) -> None:
    name = f"d.limits_{column.partition('(')[0].lower()}"
    table = catalog.create_table(name, f"id INT, p {column}", partition_by=["p"])
    for place, literal in enumerate(literals):
        table.append([{"id": place, "p": value} for place, value in enumerate(values)])
        assert {row[0] for row in run(f"SHOW PARTITIONS penstock.{name}")} == {f"p={each}" for each in names}
        run(f"ALTER TABLE penstock.{name} DROP PARTITION (p = {literal})")
        assert table.to_arrow()["id"].to_pylist() == [1 - place]
        table.truncate()


@needs(PYTHON_SCANS)
def test_a_condition_on_time_names_milliseconds_of_the_day(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table = catalog.create_table("d.times", "id INT, at TIME(3), t TIME(3)", partition_by=["at"])
    table.append([{"id": number, "at": dt.time(number), "t": dt.time(0, number)} for number in range(4)])
    run("INSERT OVERWRITE penstock.d.times PARTITION (at = 3600000) VALUES (10, 5)")
    run("INSERT INTO penstock.d.times REPLACE WHERE at >= 10800000 VALUES (30, 10800000, NULL)")
    assert sorted(row[:2] for row in _rows(table)) == [
        (0, dt.time(0)),
        (2, dt.time(2)),
        (10, dt.time(1)),
        (30, dt.time(3)),
    ]
    for condition, ids in (
        ("at IN (0, 7200000)", [0, 2]),
        ("NOT at = 0 AND t IS NOT NULL", [2, 10]),
        ("at > 86400000 OR at = -1", []),
        ("t < 120000", [0, 10]),
        ("t <=> 120000", [2]),
    ):
        assert run(f"SELECT id FROM penstock.d.times WHERE {condition} ORDER BY id") == [(each,) for each in ids], (
            condition
        )
    run("DELETE FROM penstock.d.times WHERE at = 7200000")
    assert table.snapshots()["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE", "OVERWRITE", "OVERWRITE"]
    assert sorted(row[0] for row in _rows(table)) == [0, 10, 30]


def test_a_statement_replaces_the_partition_of_the_zero_that_it_names(
    run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    for column in ("FLOAT", "DOUBLE"):
        table = catalog.create_table(f"d.zeros_{column}", f"id INT, p {column}", partition_by=["p"])
        table.append([{"id": 1, "p": 0.0}, {"id": 2, "p": -0.0}])
        run(f"INSERT OVERWRITE penstock.{table.name} PARTITION (p = 0.0) SELECT 3")
        assert sorted(map(repr, _rows(table))) == ["(2, -0.0)", "(3, 0.0)"]
        run(f"INSERT OVERWRITE penstock.{table.name} PARTITION (p = '-0.0') SELECT 4")
        assert sorted(map(repr, _rows(table))) == ["(3, 0.0)", "(4, -0.0)"]
        run(f"INSERT INTO penstock.{table.name} REPLACE WHERE p = 0 SELECT 5, {column}(0)")
        assert _rows(table) == [(5, 0.0)]


def test_partitions_are_listed_dropped_and_truncated(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run(
        "CREATE TABLE penstock.d.parts (id INT, s STRING, n INT, d DATE, t TIMESTAMP_NTZ, e DECIMAL(5, 2)) "
        "PARTITIONED BY (s, n, d, t, e)"
    )
    run(
        "INSERT INTO penstock.d.parts VALUES (1, 'a', 1, DATE '2026-01-02', TIMESTAMP_NTZ '2026-01-02 03:04:05', 1.5), "
        "(2, NULL, NULL, NULL, NULL, NULL), (3, 'b', 2, DATE '1500-01-01', TIMESTAMP_NTZ '2026-01-02 03:04:05', 2)"
    )
    table = catalog.load_table("d.parts")
    empty = "s=null/n=null/d=null/t=null/e=null"
    first = "s=a/n=1/d=2026-01-02/t=2026-01-02 03%3A04%3A05/e=1.50"
    assert sorted(row[0] for row in run("SHOW PARTITIONS penstock.d.parts")) == [
        first,
        "s=b/n=2/d=1500-01-01/t=2026-01-02 03%3A04%3A05/e=2.00",
        empty,
    ]
    assert run("SHOW PARTITIONS penstock.d.parts PARTITION (n = 1)") == [(first,)]
    assert run("SHOW PARTITIONS penstock.d.parts PARTITION (n = 5)") == []
    run(
        "ALTER TABLE penstock.d.parts DROP PARTITION "
        "(s = 'b', n = 2, d = DATE '1500-01-01', t = TIMESTAMP_NTZ '2026-01-02 03:04:05', e = 2)"
    )
    assert sorted(row[0] for row in _rows(table)) == [1, 2]
    with pytest.raises(AnalysisException, match="PARTITIONS_NOT_FOUND"):
        run("ALTER TABLE penstock.d.parts DROP PARTITION (s = 'b', n = 2, d = NULL, t = NULL, e = 2)")
    with pytest.raises(PySparkException, match="a partition exists where it has rows"):
        run("ALTER TABLE penstock.d.parts ADD PARTITION (s = 'b', n = 2, d = NULL, t = NULL, e = 2)")
    run("TRUNCATE TABLE penstock.d.parts PARTITION (n = 1)")
    assert [row[0] for row in _rows(table)] == [2]
    run("CREATE TABLE penstock.d.unparted (id INT)")
    with pytest.raises(AnalysisException, match="not partitioned"):
        run("SHOW PARTITIONS penstock.d.unparted")


def test_null_in_a_partition_clause_is_no_text(run: Callable[[str], list[Any]]) -> None:
    for name, using in (("penstock.d.nulls", ""), ("own_nulls", "USING parquet")):
        run(f"CREATE TABLE {name} (id INT, p STRING) {using} PARTITIONED BY (p)")
        run(f"INSERT INTO {name} PARTITION (p = NULL) VALUES (1)")
        run(f"INSERT INTO {name} PARTITION (p = 'NULL') VALUES (2)")
        assert sorted(run(f"SELECT id, p FROM {name}")) == [(1, None), (2, "NULL")]
        assert len(run(f"SHOW PARTITIONS {name} PARTITION (p = NULL)")) == 1
        run(f"TRUNCATE TABLE {name} PARTITION (p = NULL)")
        assert run(f"SELECT id, p FROM {name}") == [(2, "NULL")]
        run(f"DROP TABLE {name}")


def test_columns_have_defaults(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run(
        "CREATE TABLE penstock.d.defaults (id INT, n INT DEFAULT 1 + 4, s STRING DEFAULT 'it\\'s', "
        "d DATE DEFAULT DATE '2026-01-02', e DECIMAL(5, 2) DEFAULT 1.5)"
    )
    table = catalog.load_table("d.defaults")
    assert [field.default_value for field in table.schema.fields] == [None, "5", "it's", "2026-01-02", "1.50"]
    omitted = "(id) VALUES (1)" if OMITTED_DEFAULTS.is_here else "VALUES (1, DEFAULT, DEFAULT, DEFAULT, DEFAULT)"
    run(f"INSERT INTO penstock.d.defaults {omitted}")
    run("INSERT INTO penstock.d.defaults VALUES (2, DEFAULT, DEFAULT, DEFAULT, 2)")
    assert run("SELECT n, s, CAST(d AS STRING), CAST(e AS STRING) FROM penstock.d.defaults ORDER BY id") == [
        (5, "it's", "2026-01-02", "1.50"),
        (5, "it's", "2026-01-02", "2.00"),
    ]
    run("CREATE TABLE penstock.d.infinite (n FLOAT DEFAULT float('NaN'), m DOUBLE DEFAULT -double('Infinity'))")
    run("INSERT INTO penstock.d.infinite VALUES (DEFAULT, DEFAULT)")
    assert run("SELECT n = float('NaN'), m FROM penstock.d.infinite") == [(True, float("-inf"))]
    [(made,)] = run("SHOW CREATE TABLE penstock.d.defaults")
    run("ALTER TABLE penstock.d.defaults ALTER COLUMN n DROP DEFAULT")
    run("ALTER TABLE penstock.d.defaults ALTER COLUMN s SET DEFAULT 'x'")
    assert [field.default_value for field in catalog.load_table("d.defaults").schema.fields][1:3] == [None, "x"]
    with pytest.raises(PySparkException, match="rows that are there have NULL"):
        run("ALTER TABLE penstock.d.defaults ADD COLUMN late INT DEFAULT 3")
    run("ALTER TABLE penstock.d.defaults ADD COLUMN late INT")
    run("ALTER TABLE penstock.d.defaults ALTER COLUMN late SET DEFAULT 3")
    if PYTHON_SCANS.is_here:
        assert run("SELECT DISTINCT late FROM penstock.d.defaults") == [(None,)]
    with pytest.raises(PySparkException, match="only columns of numbers"):
        run("CREATE TABLE penstock.d.zoned (t TIMESTAMP DEFAULT TIMESTAMP '2026-01-01 00:00:00')")
    run("DROP TABLE penstock.d.defaults")
    run(made)
    assert [field.default_value for field in catalog.load_table("d.defaults").schema.fields][1] == "5"


def test_partitions_are_deleted_and_tables_truncated(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run("CREATE TABLE penstock.d.logs (id INT, dt STRING) PARTITIONED BY (dt)")
    run("INSERT INTO penstock.d.logs VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    table = catalog.load_table("d.logs")
    run("DELETE FROM penstock.d.logs WHERE dt = 'a' OR dt IS NULL")
    assert _rows(table) == [(2, "b")]
    run("TRUNCATE TABLE penstock.d.logs")
    assert _rows(table) == []


def test_a_table_is_made_of_a_query(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run(
        "CREATE TABLE penstock.d.made_of PARTITIONED BY (part) TBLPROPERTIES ('bucket' = '-1') AS "
        "SELECT id, id % 2 AS part FROM range(4)"
    )
    assert _rows(catalog.load_table("d.made_of")) == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_rows_that_do_not_fit_are_refused_without_a_trace(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run("CREATE TABLE penstock.d.strict (id INT NOT NULL, name VARCHAR(3))")
    with pytest.raises(PySparkException) as caught:
        run("INSERT INTO penstock.d.strict VALUES (1, 'long')")
    assert 'File "' not in str(caught.value)
    with pytest.raises(PySparkException):
        run("INSERT INTO penstock.d.strict VALUES (NULL, 'a')")
    assert catalog.load_table("d.strict").latest_snapshot() is None


@needs(PYTHON_SCANS)
def test_replaced_columns_keep_the_values_of_the_same_names(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    run(
        "CREATE TABLE penstock.d.columns (id INT COMMENT 'old', gone STRING, n INT DEFAULT 3, dt STRING) "
        "PARTITIONED BY (dt)"
    )
    run("INSERT INTO penstock.d.columns VALUES (1, 'a', 2, 'x')")
    run("ALTER TABLE penstock.d.columns REPLACE COLUMNS (dt STRING, n BIGINT COMMENT 'wide', fresh INT, id INT)")
    table = catalog.load_table("d.columns")
    assert [
        (field.name, format_sql_type(field.type), field.description, field.default_value)
        for field in table.schema.fields
    ] == [
        ("dt", "STRING", None, None),
        ("n", "BIGINT", "wide", None),
        ("fresh", "INT", None, None),
        ("id", "INT", None, None),
    ]
    assert run("SELECT * FROM penstock.d.columns") == [("x", 2, None, 1)]
    run("ALTER TABLE penstock.d.columns REPLACE COLUMNS (dt STRING, other INT)")
    assert run("SELECT * FROM penstock.d.columns") == [("x", None)]
    for columns, reason in (("other INT", "partition key 'dt' cannot be dropped"), ("dt STRING, other DATE", "other")):
        with pytest.raises(PySparkException, match=reason) as caught:
            run(f"ALTER TABLE penstock.d.columns REPLACE COLUMNS ({columns})")
        assert 'File "' not in str(caught.value)
    run("ALTER TABLE penstock.d.columns REPLACE COLUMNS (id INT, OTHER INT, dt STRING)")
    run("INSERT INTO penstock.d.columns VALUES (1, 2, 'x')")
    run("ALTER TABLE penstock.d.columns REPLACE COLUMNS (Other BIGINT, ID INT, dt STRING)")
    assert run("SELECT * FROM penstock.d.columns WHERE id = 1") == [(2, 1, "x")]
    assert catalog.load_table("d.columns").schema.field_names == ("Other", "ID", "dt")
    run("CREATE TABLE penstock.d.single (id INT)")
    run("ALTER TABLE penstock.d.single REPLACE COLUMNS (name STRING)")
    assert catalog.load_table("d.single").schema.field_names == ("name",)
