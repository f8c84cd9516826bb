"""Views of the catalog, by the statements of Spark SQL; Spark's own session catalog answers the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException, UnsupportedOperationException
from tests.spark.needs import condition_of, needs

import penstock
from penstock.errors import UnsupportedFeatureError
from penstock.spark.versions.facts import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from penstock import Catalog

pytestmark = needs(VIEWS)

PLACES = ("penstock.d", "spark_catalog.views_of_spark")


@pytest.fixture(scope="module")
def places(spark: SparkSession, catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """Return a database of the warehouse and one of Spark's own catalog, each with a table ``t``."""
    spark.sql(f"CREATE DATABASE {PLACES[1]}")
    spark.sql(f"CREATE TABLE {PLACES[0]}.t (id BIGINT, name STRING)")
    spark.sql(f"CREATE TABLE {PLACES[1]}.t (id BIGINT, name STRING) USING parquet")
    for place in PLACES:
        spark.sql(f"INSERT INTO {place}.t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    yield PLACES
    spark.sql(f"DROP DATABASE {PLACES[1]} CASCADE")
    spark.sql("USE spark_catalog.default")


@pytest.fixture
def both(spark: SparkSession, places: tuple[str, ...]) -> Callable[[str], Any]:
    """Return a function that runs a statement in both databases, and returns what both answer: rows or the error."""

    def answer(place: str, text: str) -> Any:
        spark.sql(f"USE {place}")
        try:
            return sorted((tuple(row) for row in spark.sql(text).collect()), key=repr)
        except AnalysisException as error:
            return "a Python trace" if "Traceback" in str(error) else condition_of(error)
        finally:
            spark.sql("USE spark_catalog.default")

    def ask(text: str) -> Any:
        ours, sparks = (answer(place, text) for place in places)
        # Spark's conditions for catalogs of its interface are narrower: VIEW_NOT_FOUND for TABLE_OR_VIEW_NOT_FOUND.
        assert ours == sparks or (isinstance(ours, str) and isinstance(sparks, str)), text
        return ours

    return ask


def test_a_view_is_made_read_changed_and_dropped(both: Callable[[str], Any]) -> None:
    both("CREATE VIEW v (n COMMENT 'the number', text) COMMENT 'few rows' AS SELECT id, name FROM t WHERE id < 3")
    assert both("SELECT * FROM v") == [(1, "a"), (2, "b")]
    assert both("SELECT t.id, v.text FROM t LEFT JOIN v ON v.n = t.id") == [(1, "a"), (2, "b"), (3, None)]
    assert both("DESCRIBE v") == [("n", "bigint", "the number"), ("text", "string", None)]
    assert both("CREATE VIEW v AS SELECT 1 AS n") == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert both("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS n") == []
    both("CREATE OR REPLACE VIEW v AS SELECT max(id) AS most FROM t")
    assert both("SELECT most FROM v") == [(3,)]
    both("ALTER VIEW v AS SELECT name FROM t WHERE name IS NOT NULL")
    assert both("SELECT * FROM v") == [("a",), ("b",)]
    both("ALTER VIEW v SET TBLPROPERTIES ('owner-team' = 'x', 'other' = 'y')")
    both("ALTER VIEW v UNSET TBLPROPERTIES ('other')")
    assert both("SHOW TBLPROPERTIES v ('owner-team')") == [("owner-team", "x")]
    both("ALTER VIEW v RENAME TO w")
    assert both("SELECT * FROM v") == "TABLE_OR_VIEW_NOT_FOUND"
    assert both("SELECT * FROM w") == [("a",), ("b",)]
    both("DROP VIEW w")
    assert both("DROP VIEW w") == "VIEW_NOT_FOUND"
    assert both("DROP VIEW IF EXISTS w") == []


def test_tables_and_views_share_no_name(spark: SparkSession, both: Callable[[str], Any]) -> None:
    both("CREATE VIEW taken AS SELECT 1 AS one")
    for text in (
        "CREATE VIEW t AS SELECT 1 AS one",
        "ALTER VIEW taken RENAME TO t",
        "ALTER TABLE t RENAME TO taken",
        "DROP VIEW t",
        "ALTER TABLE taken ADD COLUMN x INT",
    ):
        assert str(both(text)).isupper(), text
    with pytest.raises(AnalysisException, match="Use DROP VIEW instead"):  # Spark's own catalog drops the view
        spark.sql("DROP TABLE penstock.d.taken")
    assert both("SELECT * FROM taken") == [(1,)]
    assert both("SELECT count(*) FROM t") == [(3,)]
    both("DROP VIEW taken")


def test_a_view_is_no_table_to_write_or_with_a_past(spark: SparkSession, places: object) -> None:
    view = "penstock.d.target"
    spark.sql(f"CREATE VIEW {view} AS SELECT id, name FROM penstock.d.t")
    new = "(SELECT 1L AS id, 'n' AS name)"
    for text, operation in {
        f"INSERT INTO {view} VALUES (1, 'n')": "INSERT",
        f"INSERT OVERWRITE {view} VALUES (1, 'n')": "DELETE, INSERT",
        f"DELETE FROM {view} WHERE id = 1": "DELETE",
        f"UPDATE {view} SET name = 'n'": "UPDATE",
        f"MERGE INTO {view} v USING {new} n ON v.id = n.id WHEN MATCHED THEN UPDATE SET *": "UPDATE",
        f"CREATE OR REPLACE TABLE {view} AS SELECT 1 AS id": "CREATE OR REPLACE TABLE",
        f"SELECT * FROM {view} VERSION AS OF 1": "time travel",
        f"SELECT * FROM {view} TIMESTAMP AS OF '2026-01-01'": "time travel",
    }.items():
        with pytest.raises(SparkRuntimeException) as refused:
            spark.sql(text)
        assert condition_of(refused.value) == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", text
        assert f"'{operation}' expects a table but `penstock`.`d`.`target` is a view" in str(refused.value)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("UPDATE penstock.d.absent SET name = 'n'")
    assert spark.table(view).count() == 3
    spark.sql(f"DROP VIEW {view}")


def test_names_in_a_view_are_those_of_where_it_was_made(spark: SparkSession, catalog: Catalog, places: object) -> None:
    spark.sql("USE penstock.d")
    spark.sql("CREATE VIEW names AS SELECT name FROM t WHERE id = 1")
    spark.sql("CREATE VIEW again AS SELECT name FROM names")
    spark.sql("USE spark_catalog.default")
    assert spark.table("penstock.d.again").first() == ("a",)
    catalog.attach(spark, "other")
    assert spark.table("other.d.again").first() == ("a",)
    shown = [(row.viewName, row.isTemporary) for row in spark.sql("SHOW VIEWS IN penstock.d").collect()]
    assert shown == [("again", False), ("names", False)]
    text = spark.sql("SHOW CREATE TABLE penstock.d.names").first()
    assert text is not None
    assert "SELECT name FROM t WHERE id = 1" in text[0]
    assert catalog.list_tables("d") == ("t",)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE TABLE penstock.d.names (id INT)")
    for name in ("again", "names"):
        spark.sql(f"DROP VIEW penstock.d.{name}")


def test_penstock_sql_reads_the_views_of_the_catalog(spark: SparkSession, catalog: Catalog, places: object) -> None:
    def ask(text: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in penstock.sql(spark, catalog, text).collect()), key=repr)

    spark.sql(
        "CREATE VIEW penstock.d.joined (n, twice) AS"
        " SELECT t.id, u.id * 2 AS m FROM penstock.d.t JOIN penstock.d.t u USING (name)"
    )
    spark.sql("USE penstock.d")
    spark.sql("CREATE VIEW above AS SELECT *, cast(n AS STRING) AS text FROM joined WHERE n < 3")
    spark.sql("USE spark_catalog.default")
    for name in ("joined", "above"):
        assert ask(f"SELECT * FROM d.{name}") == sorted(
            map(tuple, spark.table(f"penstock.d.{name}").collect()), key=repr
        )
    assert ask("SELECT v.n, t.name FROM d.above v JOIN d.t ON v.n = t.id") == [(1, "a"), (2, "b")]
    spark.sql("ALTER TABLE penstock.d.t ADD COLUMN later INT FIRST")
    assert ask("SELECT text, n FROM d.above") == [("1", 1), ("2", 2)]
    spark.sql("CREATE VIEW penstock.d.narrow AS SELECT later FROM penstock.d.t")
    spark.sql("ALTER TABLE penstock.d.t ALTER COLUMN later TYPE BIGINT")
    assert penstock.sql(spark, catalog, "SELECT * FROM d.narrow").schema == spark.table("penstock.d.narrow").schema
    catalog.create_view("d.python", "SELECT name, max(id) FROM t GROUP BY name", "who STRING, most BIGINT")
    assert ask("SELECT * FROM d.python") == [("a", 1), ("b", 2), (None, 3)]
    assert ask("SELECT * FROM d.python") == sorted(map(tuple, spark.table("penstock.d.python").collect()), key=repr)
    stream = penstock.sql(spark, catalog, "SET 'execution.runtime-mode' = 'streaming'; SELECT * FROM d.narrow")
    assert stream.isStreaming
    penstock.sql(
        spark, catalog, "RESET 'execution.runtime-mode'; DROP VIEW d.above; DROP VIEW d.narrow; DROP VIEW d.python"
    )
    spark.sql("USE spark_catalog.default")
    spark.sql("CREATE VIEW penstock.d.foreign AS SELECT id FROM views_of_spark.t")
    with pytest.raises(penstock.UnsupportedFeatureError, match=r"spark\.table\('penstock\.d\.foreign'\)"):
        ask("SELECT * FROM d.foreign")
    for name in ("joined", "foreign"):
        spark.sql(f"DROP VIEW penstock.d.{name}")
    spark.sql("ALTER TABLE penstock.d.t DROP COLUMN later")


def test_a_database_with_a_view_is_not_empty(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_database("e")
    spark.sql("CREATE VIEW penstock.e.only AS SELECT 1 AS one")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_EMPTY"):
        spark.sql("DROP DATABASE penstock.e")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("CREATE VIEW penstock.nowhere.v AS SELECT 1 AS one")
    spark.sql("DROP DATABASE penstock.e CASCADE")
    assert "e" not in catalog.list_databases()


@pytest.mark.parametrize("names", [("me",), ("a", "b")])
def test_views_that_read_themselves_are_one_error(
    spark: SparkSession, catalog: Catalog, names: tuple[str, ...]
) -> None:
    for name, other in zip(names, (*names[1:], names[0]), strict=True):
        catalog.create_view(f"d.{name}", f"SELECT id FROM {other}", schema="id BIGINT")
    with pytest.raises(AnalysisException, match="VIEW_EXCEED_MAX_NESTED_DEPTH"):
        spark.table(f"penstock.d.{names[0]}")
    for name in names:
        catalog.drop_view(f"d.{name}")


def test_views_of_a_catalog_that_is_not_trusted_are_refused(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_view("d.foreign", "SELECT 1L AS id", schema="id BIGINT")
    refused = "opened without views .'penstock.views' = 'false'."
    penstock.attach(spark, catalog, "untrusted", views=False)
    for text in ("SELECT * FROM untrusted.d.foreign", "CREATE OR REPLACE VIEW untrusted.d.foreign AS SELECT 2 AS x"):
        with pytest.raises(UnsupportedOperationException, match=refused):
            spark.sql(text)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("untrusted.d.nothing")
    untrusted = penstock.Catalog(catalog.warehouse, {"penstock.views": "false"})
    with pytest.raises(UnsupportedFeatureError, match=refused):
        penstock.sql(spark, untrusted, "SELECT * FROM d.foreign")
    assert spark.table("penstock.d.foreign").count() == 1
    assert untrusted.list_views("d") == catalog.list_views("d")
    untrusted.drop_view("d.foreign")


def test_views_with_schema_evolution_have_the_columns_that_their_query_has_now(
    both: Callable[[str], Any], spark: SparkSession, places: tuple[str, ...]
) -> None:
    for place, using in zip(places, ("", "USING parquet"), strict=True):
        spark.sql(f"CREATE TABLE {place}.grown (id INT) {using}")
    both("INSERT INTO grown VALUES (1)")
    both("CREATE VIEW evolving WITH SCHEMA EVOLUTION AS SELECT * FROM grown")
    both("CREATE VIEW above_it WITH SCHEMA EVOLUTION AS SELECT * FROM evolving")
    both("CREATE VIEW typed WITH SCHEMA TYPE EVOLUTION AS SELECT * FROM grown")
    both("ALTER TABLE grown ADD COLUMN later STRING COMMENT 'new'")
    assert both("SELECT * FROM above_it WHERE later IS NULL") == [(1, None)]
    assert both("DESCRIBE evolving") == [("id", "int", None), ("later", "string", "new")]
    assert both("SELECT * FROM typed") == [(1,)]
    # Spark's own tables keep the types of their columns.
    spark.sql("ALTER TABLE penstock.d.grown ALTER COLUMN id TYPE BIGINT")
    spark.sql("INSERT INTO penstock.d.grown VALUES (5000000000, 'x')")
    for view, rows in {"typed": [(1,), (5000000000,)], "above_it": [(1, None), (5000000000, "x")]}.items():
        assert sorted(map(tuple, spark.table(f"penstock.d.{view}").collect())) == rows
    assert spark.table("penstock.d.typed").schema["id"].dataType.simpleString() == "bigint"
    assert both("ALTER VIEW evolving AS SELECT * FROM above_it") in {"RECURSIVE_VIEW", "AnalysisException"}
    for name in ("above_it", "evolving", "typed"):
        both(f"DROP VIEW {name}")
    both("DROP TABLE grown")
