"""Values of VARIANT through Spark's own Parquet reader, also from files that keep fields in columns of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.deletion_vectors import delete_by_vectors
from tests.interop.conftest import java
from tests.spark.needs import needs

import penstock
from penstock.catalog.changes import RenameColumn
from penstock.spark.connector import scan
from penstock.spark.versions.facts import VARIANT, VARIANT_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.interop.engines import Engine

    from penstock import Catalog

__all__ = ["java"]

pytestmark = needs(VARIANT)

DOCUMENTS: Final = [
    '{"a": 1, "b": {"c": "x", "d": [1, 2]}, "arr": [1, "z", null]}',
    '{"a": "text", "b": 5}',
    '{"a": null, "b": {"c": null}}',
    '{"a": 99999999999, "b": {"c": 7}, "other": true}',
    '{"a": 1.5, "arr": {"x": 1}}',
    '{"a": true, "b": []}',
    '{"a": {"a": 3}, "arr": []}',
    "{}",
    "null",
    "[1, 2, 3]",
    "3",
    '"just text"',
    '{"a": "12", "b": {"c": "long text of more than sixty-three bytes, which is stored in another way"}}',
    '{"a": -128, "b": {"c": "ü"}, "arr": [[1], [2, [3]]]}',
]
SHREDDED: Final = {
    "type": "ROW",
    "fields": [
        {
            "id": 0,
            "name": "v",
            "type": {
                "type": "ROW",
                "fields": [
                    {"id": 1, "name": "a", "type": "BIGINT"},
                    {
                        "id": 2,
                        "name": "b",
                        "type": {"type": "ROW", "fields": [{"id": 3, "name": "c", "type": "STRING"}]},
                    },
                ],
            },
        }
    ],
}


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _source(spark: SparkSession) -> DataFrame:
    rows = [(number, text) for number, text in enumerate(DOCUMENTS)]
    return spark.createDataFrame(rows, "id INT, text STRING").selectExpr("id", "parse_json(text) AS v")


@pytest.fixture(scope="module")
def plain(spark: SparkSession, catalog: Catalog) -> str:
    table = catalog.create_table("d.plain_variants", "id INT, v VARIANT, r ROW<v VARIANT>, list ARRAY<VARIANT>")
    table.append(_source(spark).selectExpr("id", "v", "named_struct('v', v) AS r", "array(v, v) AS list"))
    return "penstock.d.plain_variants"


@pytest.fixture(scope="module")
def shredded(spark: SparkSession, java: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shredded")
    options = {"bucket": "-1", "variant.shreddingSchema": json.dumps(SHREDDED)}
    java.create(folder / "d.db" / "t", [("id", "INT"), ("v", "VARIANT")], options=options)
    rows: list[dict[str, Any]] = [{"id": len(DOCUMENTS), "v": None}]
    for row in _source(spark).collect():
        parts = {"value": row.v.value, "metadata": row.v.metadata}
        rows.append({"id": row.id, "v": {name: f"0x{bytes(part).hex()}" for name, part in parts.items()}})
    java.append(folder / "d.db" / "t", rows)
    penstock.attach(spark, folder, name="shredded")
    return "shredded.d.t"


def test_spark_reads_whole_variants(spark: SparkSession, plain: str, reader: str) -> None:
    frame = spark.sql(f"SELECT id, to_json(v), to_json(r.v), to_json(list[1]), schema_of_variant(v) FROM {plain}")
    assert "by parquet reader of Spark" in _plan(frame)
    wanted = _source(spark).selectExpr("id", "to_json(v)", "to_json(v)", "to_json(v)", "schema_of_variant(v)")
    assert sorted(map(tuple, frame.collect())) == sorted(map(tuple, wanted.collect()))


@needs(VARIANT_FIELDS)
def test_a_scan_of_fields_is_planned_once(spark: SparkSession, plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    plan = scan.plan_reading

    def plan_reading(*arguments: Any, **options: Any) -> Any:
        planned.append(arguments)
        return plan(*arguments, **options)

    monkeypatch.setattr(scan, "plan_reading", plan_reading)
    frame = spark.sql(f"SELECT try_variant_get(v, '$.a', 'INT') AS a FROM {plain} WHERE id = 0")
    assert frame.collect() == [(1,)]
    assert "read fields of v" in _plan(frame)
    assert len(planned) == 1


@pytest.mark.interop
def test_spark_reads_whole_variants_of_files_with_fields_of_their_own(
    spark: SparkSession, shredded: str, reader: str
) -> None:
    frame = spark.sql(f"SELECT id, to_json(v), schema_of_variant(v) FROM {shredded}")
    assert "by parquet reader of Spark" in _plan(frame)
    found = {row[0]: tuple(row[1:]) for row in frame.collect()}
    assert found.pop(len(DOCUMENTS)) == (None, None)
    wanted = _source(spark).selectExpr("id", "to_json(v)", "schema_of_variant(v)").collect()
    assert found == {row[0]: tuple(row[1:]) for row in wanted}


PUSHED: Final = "spark.sql.variant.pushVariantIntoScan"
PATHS: Final = (
    "$",
    "$.a",
    "$.b",
    "$.b.c",
    "$.b.d[1]",
    "$.arr",
    "$.arr[0]",
    "$.arr[3][1][0]",
    "$['other']",
    "$.missing",
    "$.a.a",
    "$[1]",
)
KINDS: Final = (
    "INT",
    "BIGINT",
    "STRING",
    "DOUBLE",
    "BOOLEAN",
    "DECIMAL(9, 2)",
    "DATE",
    "TIMESTAMP",
    "ARRAY<INT>",
    "MAP<STRING, STRING>",
    "STRUCT<c: STRING, d: ARRAY<INT>>",
    "VARIANT",
)
QUERIES: Final = {
    "SELECT variant_get(v, '$.a', 'INT') FROM t WHERE id IN (0, 2, 5)": "v:struct<0:variant>",
    "SELECT CASE WHEN id = 0 THEN variant_get(v, '$.a', 'INT') ELSE id END FROM t": "v:struct<0:variant>",
    "SELECT id FROM t WHERE try_variant_get(v, '$.a', 'INT') = 1": "v:struct<0:int>",
    "SELECT id FROM t WHERE v IS NOT NULL": "v:struct<0:boolean>",
    "SELECT id, v IS NULL FROM t WHERE id > 3": "v:struct<0:boolean>",
    "SELECT id, is_variant_null(v) FROM t": "v:variant",
    "SELECT id, to_json(v), try_variant_get(v, '$.a', 'INT') FROM t": "v:variant",
    "SELECT id, v::STRING FROM t WHERE id = 10": "v:variant",
    "SELECT n, count(*) FROM (SELECT try_variant_get(v, '$.a', 'INT') AS n FROM t WHERE id > 0) GROUP BY n": "",
    "SELECT l.id, r.id FROM t l JOIN t r ON try_variant_get(l.v, '$.a', 'INT') = try_variant_get(r.v, '$', 'INT')": "",
    "SELECT count(*), sum(try_variant_get(v, '$.a', 'INT')) FROM t": "struct<v:struct<0:int>>",
    "SELECT id % 3, sum(try_variant_get(v, '$.a', 'INT')), count(v) FROM t GROUP BY 1": "v:variant",
    "SELECT id, max(try_variant_get(v, '$.a', 'INT')) FROM t WHERE v IS NOT NULL GROUP BY id": "v:struct<0:int>",
    "SELECT try_variant_get(v, '$.a', 'INT') AS n, min(id) FROM t GROUP BY 1": "v:struct<0:int>",
    "SELECT try_variant_get(v, '$.b.c', 'STRING') AS c FROM t ORDER BY c NULLS LAST LIMIT 3": "",
    "SELECT id FROM t WHERE id = (SELECT max(try_variant_get(v, '$.a', 'INT')) FROM t)": "",
}


@pytest.fixture(params=["plain", "shredded"])
def table(request: pytest.FixtureRequest) -> str:
    """Return tables with the same documents, the second one with a NULL and with files that keep some fields apart."""
    return str(request.getfixturevalue(request.param))


def _read(frame: DataFrame) -> str:
    """Return the columns of the first scan of a query."""
    return str(frame._jdf.queryExecution().optimizedPlan().collectLeaves().head().schema().simpleString())


def _both(spark: SparkSession, text: str) -> tuple[DataFrame, list[str], list[str]]:
    """Return a query, its rows, and those of the query without the push-down of fields."""
    frame = spark.sql(text)
    found = sorted(map(repr, map(tuple, frame.collect())))
    spark.conf.set(PUSHED, "false")
    try:
        whole = spark.sql(text)
        assert "0:" not in _read(whole)
        return frame, found, sorted(map(repr, map(tuple, whole.collect())))
    finally:
        spark.conf.unset(PUSHED)


@pytest.mark.interop
@needs(VARIANT_FIELDS)
@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_those_of_the_whole_variant(spark: SparkSession, table: str, reader: str, kind: str) -> None:
    shown = "to_json({})" if kind == "VARIANT" else "CAST({} AS STRING)"
    fields = ", ".join(shown.format(f"try_variant_get(v, \"{path}\", '{kind}')") for path in PATHS)
    frame, found, wanted = _both(spark, f"SELECT id, {fields} FROM {table}")
    assert found == wanted
    assert _read(frame).startswith("struct<id:int,v:struct<0:")


@pytest.mark.interop
@needs(VARIANT_FIELDS)
@pytest.mark.parametrize("query", QUERIES)
def test_queries_read_the_fields_that_they_take(spark: SparkSession, table: str, query: str) -> None:
    frame, found, wanted = _both(spark, query.replace("FROM t", f"FROM {table}").replace("JOIN t", f"JOIN {table}"))
    assert found == wanted
    assert QUERIES[query] in _read(frame)


@pytest.mark.interop
@needs(VARIANT_FIELDS)
def test_casts_fail_only_in_rows_that_the_query_looks_at(spark: SparkSession, table: str, reader: str) -> None:
    for pushed in ("true", "false"):
        spark.conf.set(PUSHED, pushed)
        with pytest.raises(Exception, match="INVALID_VARIANT_CAST"):
            spark.sql(f"SELECT variant_get(v, '$.a', 'INT') FROM {table}").collect()
        frame = spark.sql(f"SELECT variant_get(v, '$.a', 'INT') FROM {table} WHERE id % 13 = 0")
        assert sorted(frame.collect()) == [(-128,), (1,)]
        assert ("struct<0:variant>" in _read(frame)) == (pushed == "true")
    spark.conf.unset(PUSHED)


@needs(VARIANT_FIELDS)
def test_fields_of_renamed_columns_and_without_deleted_rows(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.changed_variants_{reader[:3]}"
    table = catalog.create_table(name, "id INT, v VARIANT")
    table.append(_source(spark).coalesce(1))
    (first,) = table.files()["file_path"].to_pylist()
    table = catalog.alter_table(name, RenameColumn(column="v", new_name="w"))
    table.append(_source(spark).selectExpr("id + 100 AS id", "v AS w"))
    delete_by_vectors(table, {first.rpartition("/")[2]: [0, 3]})
    for condition in ("true", "id > 1", "id > 1 AND __paimon_row_index < 50"):
        text = f"SELECT id, try_variant_get(w, '$.a', 'STRING'), variant_get(w, '$.b.c', 'STRING') FROM penstock.{name}"
        frame, found, wanted = _both(spark, f"{text} WHERE {condition}")
        assert found == wanted
        assert "w:struct<0:" in _read(frame)
        assert "with deletion vectors" in _plan(frame)


def test_changes_of_rows_keep_whole_variants(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.changed_rows", "id INT, v VARIANT")
    table.append(_source(spark))
    spark.sql("UPDATE penstock.d.changed_rows SET id = 100 WHERE try_variant_get(v, '$.a', 'INT') = 1")
    found = spark.sql("SELECT id, to_json(v) FROM penstock.d.changed_rows").collect()
    number = "CASE WHEN try_variant_get(v, '$.a', 'INT') = 1 THEN 100 ELSE id END"
    assert sorted(found) == sorted(_source(spark).selectExpr(number, "to_json(v)").collect())
    assert sum(row.id == 100 for row in found) > 1


@needs(VARIANT_FIELDS)
def test_a_filter_on_a_field_still_prunes_the_partitions_of_the_other_side(
    spark: SparkSession, catalog: Catalog, plain: str
) -> None:
    facts = catalog.create_table("d.facts_of_variants", "n INT, p INT", partition_by=["p"])
    facts.append([{"n": n, "p": n % 4} for n in range(40)])
    frame = spark.sql(
        f"SELECT /*+ BROADCAST(v) */ n FROM penstock.{facts.name} f JOIN {plain} v ON f.p = v.id "
        "WHERE try_variant_get(v.v, '$.a', 'INT') = 1"
    )
    hits = {row.id for row in _source(spark).where("try_variant_get(v, '$.a', 'INT') = 1").collect()}
    assert sorted(row.n for row in frame.collect()) == [n for n in range(40) if n % 4 in hits]
    text = frame._jdf.queryExecution().optimizedPlan().toString()
    assert "dynamicpruning" in text
    assert "dynamicpruningexpression(true)" not in _plan(frame)


def test_changes_between_snapshots_cast_only_rows_that_the_query_looks_at(
    spark: SparkSession, catalog: Catalog
) -> None:
    table = catalog.create_table("d.read_in_parts", "id INT, v VARIANT")
    table.append(_source(spark))
    frame = table.to_spark(spark, options={"incremental-between": "0,1"})
    fits = _source(spark).where("try_variant_get(v, '$.a', 'INT') = 1").collect()[0].id
    assert frame.where(f"id = {fits}").selectExpr("variant_get(v, '$.a', 'INT')").collect() == [(1,)]


@needs(VARIANT_FIELDS)
def test_a_frame_of_a_table_reads_the_fields_that_it_takes(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.variants_of_a_frame", "id INT, v VARIANT")
    table.append(_source(spark))
    fresh = spark.newSession()
    frame = table.to_spark(fresh).selectExpr("try_variant_get(v, '$.a', 'INT')")
    assert "v:struct<0:" in _read(frame)
