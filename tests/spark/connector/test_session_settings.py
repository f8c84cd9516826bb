"""Settings of the session, its cache, and its clones."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from tests.spark.needs import needs

import penstock
from penstock.spark.versions.facts import KEPT_CACHES, PROCEDURES, PYTHON_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table


@contextmanager
def setting(spark: SparkSession, **settings: str) -> Iterator[None]:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


@pytest.fixture
def two(catalog: Catalog) -> Iterator[Table]:
    """A table with the rows 1 and 2, each of a snapshot."""
    table = catalog.create_table("d.two", "id INT, p STRING", partition_by=["p"])
    for number in (1, 2):
        table.append([{"id": number, "p": "x"}])
    yield table
    catalog.drop_table("d.two")


def ids(spark: SparkSession, name: str = "penstock.d.two") -> list[int]:
    return sorted(row.id for row in spark.table(name).collect())


def insert_into_view(spark: SparkSession, _catalog: Catalog, two: Table) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW two_by_path USING penstock OPTIONS (path '{two.location}')")
    spark.sql("INSERT INTO two_by_path VALUES (3, 'x')")


WRITES: dict[str, tuple[list[int], Callable[[SparkSession, Catalog, Table], Any]]] = {
    "rollback": ([1], lambda spark, *_: spark.sql("CALL penstock.sys.rollback(table => 'd.two', version => '1')")),
    "rollback as latest": (
        [1],
        lambda spark, *_: spark.sql("CALL penstock.sys.rollback_to_as_latest(table => 'd.two', snapshot_id => '1')"),
    ),
    "delete in penstock.sql": (
        [2],
        lambda spark, catalog, _: penstock.sql(spark, catalog, "DELETE FROM d.two WHERE id = 1"),
    ),
    "insert in penstock.sql": (
        [1, 2, 3],
        lambda spark, catalog, _: penstock.sql(spark, catalog, "INSERT INTO d.two VALUES (3, 'x')"),
    ),
    "append of a DataFrame": ([1, 2, 3], lambda spark, _, two: two.append(spark.sql("SELECT 3 AS id, 'x' AS p"))),
    "append of Arrow": ([1, 2, 3], lambda _spark, _, two: two.append([{"id": 3, "p": "x"}])),
    "update": ([1, 7], lambda _spark, _, two: two.update({"id": 7}, where="id = 2")),
    "overwrite": ([3], lambda _spark, _, two: two.overwrite([{"id": 3, "p": "x"}])),
    "drop of partitions": ([], lambda _spark, _, two: two.drop_partitions({"p": "x"})),
    "truncate": ([], lambda _spark, _, two: two.truncate()),
    "append by the data source": (
        [1, 2, 3],
        lambda spark, _, two: (
            spark.sql("SELECT 3 AS id, 'x' AS p").write.format("penstock").mode("append").save(f"{two.location}/")
        ),
    ),
    "overwrite by the data source": (
        [3],
        lambda spark, _, two: (
            spark.sql("SELECT 3 AS id, 'x' AS p").write.format("penstock").mode("overwrite").save(two.location)
        ),
    ),
    "INSERT by the data source": ([1, 2, 3], insert_into_view),
    "statement": ([2], lambda spark, *_: spark.sql("DELETE FROM penstock.d.two WHERE id = 1")),
}
NEEDED = {
    "rollback": PROCEDURES,
    "rollback as latest": PROCEDURES,
    "append by the data source": PYTHON_SOURCES,
    "overwrite by the data source": PYTHON_SOURCES,
    "INSERT by the data source": PYTHON_SOURCES,
}


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=needs(*[NEEDED[way]] if way in NEEDED else [])) for way in WRITES]
)
def test_a_cached_table_has_each_write_of_this_process(
    spark: SparkSession, catalog: Catalog, two: Table, way: str
) -> None:
    expected, write = WRITES[way]
    spark.sql("CACHE TABLE penstock.d.two")
    filtered = spark.table("penstock.d.two").where("id > 0").cache()
    try:
        assert (ids(spark), filtered.count()) == ([1, 2], 2)
        write(spark, catalog, two)
        assert ids(spark) == expected
        assert spark.table("penstock.d.two").where("id > 0").count() == len(expected)
    finally:
        filtered.unpersist()
        spark.sql("UNCACHE TABLE IF EXISTS penstock.d.two")


def test_a_cached_table_has_the_rows_of_a_stream(
    spark: SparkSession, catalog: Catalog, two: Table, tmp_path: Path
) -> None:
    source = catalog.create_table("d.source", "id INT, p STRING")
    source.append([{"id": 3, "p": "x"}])
    spark.sql("CACHE TABLE penstock.d.two")
    try:
        assert ids(spark) == [1, 2]
        query = two.write_stream(
            source.read_stream(spark), checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True}
        )
        query.awaitTermination()
        assert ids(spark) == [1, 2, 3]
    finally:
        spark.sql("UNCACHE TABLE penstock.d.two")
        catalog.drop_table("d.source")


def test_a_cached_table_keeps_its_rows_while_others_write(
    spark: SparkSession, catalog: Catalog, two: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql("CACHE TABLE penstock.d.two")
    try:
        assert ids(spark) == [1, 2]
        with monkeypatch.context() as other_process:
            other_process.setattr("penstock.table.commit.retry._LISTENERS", {})
            two.append([{"id": 3, "p": "x"}])
        assert ids(spark) == ([1, 2] if KEPT_CACHES.is_here else [1, 2, 3])
        spark.sql("REFRESH TABLE penstock.d.two")
        assert ids(spark) == [1, 2, 3]
    finally:
        spark.sql("UNCACHE TABLE penstock.d.two")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"spark.paimon.scan.snapshot-id": "1"}, [1]),
        ({"spark.paimon.penstock.d.two.scan.snapshot-id": "1"}, [1]),
        ({"spark.paimon.*.d.*.scan.snapshot-id": "1", "spark.paimon.scan.snapshot-id": "2"}, [1]),
        ({"spark.paimon.penstock.d.other.scan.snapshot-id": "1"}, [1, 2]),
        ({"spark.paimon.penstock.scan.watermark.alignment.path": "/nowhere"}, [1, 2]),
    ],
)
def test_settings_for_paimon_are_options_of_tables(
    spark: SparkSession, two: Table, settings: dict[str, str], expected: list[int]
) -> None:
    with setting(spark, **settings):
        assert ids(spark) == expected
        spark.sql("INSERT INTO penstock.d.two VALUES (3, 'x')")
        if expected == [1]:
            with pytest.raises(PySparkException, match=r"spark\.paimon"):
                spark.sql("UPDATE penstock.d.two SET id = 9")
            with pytest.raises(PySparkException, match=r"spark\.paimon"):
                spark.sql("DELETE FROM penstock.d.two WHERE id = 1")
    assert ids(spark) == [1, 2, 3]
    assert two.snapshots().num_rows == 3


def test_settings_of_a_past_state_with_other_columns_misplace_no_value(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("d.moved", "id INT, v INT")
    table.append([{"id": 1, "v": 10}])
    for change in ("ALTER COLUMN v FIRST", "RENAME COLUMN v TO w", "RENAME COLUMN id TO v"):
        spark.sql(f"ALTER TABLE penstock.d.moved {change}")
    spark.sql("INSERT INTO penstock.d.moved VALUES (20, 2)")
    with setting(spark, **{"spark.paimon.scan.snapshot-id": "1"}):
        with pytest.raises(PySparkException, match=r"d\.moved.*spark\.paimon.*unset"):
            spark.sql("INSERT INTO penstock.d.moved VALUES (3, 30)")
        with pytest.raises(PySparkException, match=r"d\.moved.*spark\.paimon.*unset"):
            spark.sql("ALTER TABLE penstock.d.moved DROP COLUMN v")  # it is 'w' now, and another one is 'v'
        stream = spark.readStream.table("penstock.d.moved")
    sink = stream.writeStream.format("memory").queryName("moved").option("checkpointLocation", str(tmp_path))
    sink.trigger(availableNow=True).start().awaitTermination()
    assert sorted((row.id, row.v) for row in spark.table("moved").collect()) == [(1, 10), (2, 20)]
    assert spark.table("penstock.d.moved").count() == 2


def test_settings_that_tables_do_not_have_are_refused(spark: SparkSession, two: Table) -> None:
    with setting(spark, **{"spark.paimon.bucket": "4"}), pytest.raises(PySparkException, match="bucket"):
        ids(spark)


def test_the_catalog_may_be_the_default_one(spark: SparkSession, two: Table) -> None:
    with setting(spark, **{"spark.sql.defaultCatalog": "penstock"}):
        spark.sql("INSERT INTO penstock.d.two SELECT id + 2, 'y' FROM penstock.d.two")
        spark.sql("CREATE TABLE penstock.d.three PARTITIONED BY (p) AS SELECT * FROM penstock.d.two")
        assert ids(spark, "penstock.d.three") == [1, 2, 3, 4]
        spark.sql("CACHE TABLE penstock.d.three")
        spark.sql("INSERT OVERWRITE penstock.d.three SELECT * FROM penstock.d.two WHERE id = 1")
        assert ids(spark, "penstock.d.three") == [1]
        spark.sql("DROP TABLE penstock.d.three")


def test_an_error_of_a_udf_reaches_the_user_of_an_insert(spark: SparkSession, two: Table) -> None:
    fails = F.udf(lambda value: 1 // (value - value), "int")
    rows = spark.range(1).select(fails("id").alias("id"), F.lit("x").alias("p"))
    with pytest.raises(PySparkException) as raised:
        rows.writeTo("penstock.d.two").append()
    assert type(raised.value).__name__ == "PythonException"
    assert "ZeroDivisionError" in str(raised.value)
    assert "UndeclaredThrowable" not in str(raised.value)


@pytest.mark.parametrize("name", ["__DEFAULT_PARTITION__", "null"])
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {} DROP PARTITION (p = '{}')",
        "TRUNCATE TABLE {} PARTITION (p = '{}')",
        "DELETE FROM {} WHERE p = '{}'",
        "INSERT OVERWRITE {} PARTITION (p = '{}') SELECT 1 WHERE false",
    ],
)
def test_the_default_name_of_partitions_is_a_value(
    spark: SparkSession, catalog: Catalog, statement: str, name: str
) -> None:
    options = {"partition.default-name": name}
    table = catalog.create_table("d.names", "id INT, p STRING", partition_by=["p"], options=options)
    table.append([{"id": number, "p": value} for number, value in enumerate([None, name, "", "x"])])
    spark.sql(statement.format("penstock.d.names", name))
    assert ids(spark, "penstock.d.names") == [0, 2, 3]
    catalog.drop_table("d.names")


@pytest.mark.parametrize(
    ("clause", "cause"),
    [
        ("CLUSTER BY (a)", "CLUSTER BY: leave it out|Syntax error at or near 'CLUSTER'"),  # of Spark 3.5
        ("CLUSTERED BY (a) SORTED BY (b) INTO 2 BUCKETS", "SORTED BY: leave"),
    ],
)
def test_layouts_that_there_are_not_are_named_as_they_were_written(
    spark: SparkSession, catalog: Catalog, clause: str, cause: str
) -> None:
    with pytest.raises(PySparkException, match=cause):
        spark.sql(f"CREATE TABLE penstock.d.laid_out (a INT, b INT) {clause}")
    assert "laid_out" not in catalog.list_tables("d")
