"""What a table declares (CHAR, NOT NULL, DEFAULT, new columns), against the same statements in Spark's catalog."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from tests.spark.needs import condition_of, needs

import penstock
from penstock import SchemaMismatchError
from penstock.catalog.changes import AddColumn, SetOption, UpdateColumnComment
from penstock.format.types.text import format_sql_type
from penstock.spark.versions.facts import (
    CHAR_DEFAULTS,
    CREATE_LIKE,
    OMITTED_DEFAULTS,
    PYTHON_SCANS,
    PYTHON_WRITES,
    SCHEMA_EVOLUTION,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog

TEXTS = ("", "a", "a ", "ab", "ab  ", "b", "b\t", "aa", "ba", "b a", "zz")
OURS, SPARKS = "penstock.d", "spark_catalog.declared"
# What follows "{t}" is a table of both catalogs; the answers of all statements are compared.
SAME = {
    "values are padded, cut, refused and compared": (
        "CREATE TABLE {t} (k INT, c CHAR(5), v VARCHAR(3), s STRUCT<a: CHAR(3), b: ARRAY<VARCHAR(2)>>) {using}",
        "INSERT INTO {t} VALUES (1, 'a', 'b', named_struct('a', 'x', 'b', array('y'))), (3, NULL, NULL, NULL)",
        "INSERT INTO {t} VALUES (2, 'ab     ', 'abc  ', named_struct('a', 'x    ', 'b', array('y     ')))",
        "INSERT INTO {t} VALUES (4, 'abcdefg', 'b', NULL)",
        "INSERT INTO {t} VALUES (4, 'a', 'bcde', NULL)",
        "SELECT k, length(c), c, v, s, c = 'a', c = 'a  ', c <=> 'ab', c IN ('a', 'ab'), c > 'a', c LIKE 'a' FROM {t}",
        "SELECT k FROM {t} WHERE c = 'a' OR s.a = 'x'",
        "SELECT x.k, y.k FROM {t} x JOIN {t} y ON x.c = y.c",
        "DESCRIBE {t}",
        "CREATE TABLE {t}_like LIKE {t}",
        "DESCRIBE {t}_like",
        "CREATE TABLE {t}_as {using} AS SELECT * FROM {t}",
        "INSERT INTO {t}_as VALUES (9, 'too long', 'x', NULL)",
    ),
    "partitions have padded values": (
        "CREATE TABLE {t} (k INT, p CHAR(3)) {using} PARTITIONED BY (p)",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'bbb')",
        "INSERT INTO {t} PARTITION (p = 'q') VALUES (5)",
        "SELECT k, p FROM {t} WHERE p IN ('a', 'q')",
        "SHOW PARTITIONS {t}",
        "INSERT OVERWRITE {t} PARTITION (p = 'a') VALUES (9)",
        "ALTER TABLE {t} DROP PARTITION (p = 'q')",
        "SELECT k, p FROM {t}",
    ),
}


@pytest.fixture(scope="module")
def places(spark: SparkSession, catalog: Catalog) -> Iterator[None]:
    spark.sql(f"CREATE DATABASE {SPARKS}")
    yield
    spark.sql(f"DROP DATABASE {SPARKS} CASCADE")


@pytest.fixture
def run(spark: SparkSession, places: None) -> Callable[[str], Any]:
    def answer(text: str) -> Any:
        try:
            return sorted((tuple(row) for row in spark.sql(text).collect()), key=repr)
        except PySparkException as error:
            return condition_of(error) or str(error)

    return answer


def _stored(catalog: Catalog, name: str) -> list[Any]:
    return sorted(map(tuple, (row.values() for row in catalog.load_table(name).to_arrow().to_pylist())), key=repr)


@pytest.mark.parametrize("case", SAME)
def test_declared_types_mean_what_they_mean_in_sparks_tables(run: Callable[[str], Any], case: str) -> None:
    name = "".join(word[0] for word in case.split())
    for statement in SAME[case]:
        sparks = run(statement.format(t=f"{SPARKS}.{name}", using="USING parquet"))
        assert run(statement.format(t=f"{OURS}.{name}", using="")) == sparks, statement


def _condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.4:
        word = rng.choice(("AND", "OR"))
        return f"({_condition(rng, depth - 1)} {word} {_condition(rng, depth - 1)})"
    texts = [f"'{rng.choice(TEXTS)}'" for _ in range(3)]
    column = rng.choice(("c", "c", "p", "v"))
    leaf = rng.choice(
        (
            f"{column} = {texts[0]}",
            f"{texts[0]} = {column}",
            f"{column} <=> {texts[0]}",
            f"{column} IN ({', '.join(texts)})",
            f"{column} <> {texts[0]}",
            f"{column} {rng.choice(('<', '<=', '>', '>='))} {texts[0]}",
            f"{column} LIKE '{rng.choice(TEXTS)}%'",
            f"{column} IS NULL",
            f"length({column}) > 2",
            f"{column} {rng.choice(('', 'NOT '))}BETWEEN {texts[0]} AND {texts[1]}",
            f"{column} {rng.choice(('', 'NOT '))}IN ({texts[0]}, NULL, {texts[1]})",
            f"{column} {rng.choice(('', 'NOT '))}LIKE {texts[0]}",
            f"{rng.choice(('trim', 'rtrim', 'upper'))}({column}) {rng.choice(('=', '<>', '<'))} {texts[0]}",
            f"coalesce({column}, {texts[0]}) <> {texts[1]}",
            f"startswith({column}, {texts[0]})",
            f"{column} {rng.choice(('=', '<>', '>'))} (SELECT {texts[0]})",
            f"{column} = {rng.choice('cpv')}",
        )
    )
    return f"NOT ({leaf})" if rng.random() < 0.3 else leaf


@pytest.mark.parametrize(
    ("seed", "conditions"), [(1, 4), *(pytest.param(seed, 60, marks=pytest.mark.slow) for seed in range(2, 7))]
)
@needs(PYTHON_SCANS)
def test_conditions_on_char_hold_for_values_that_others_stored_without_padding(
    run: Callable[[str], Any], catalog: Catalog, seed: int, conditions: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - not a secret
    columns = "k INT, n INT, c CHAR(4), p CHAR(3), v VARCHAR(4)"
    ours, sparks = f"{OURS}.r{seed}", f"{SPARKS}.r{seed}"
    table = catalog.create_table(f"d.r{seed}", columns, partition_by=["p"])
    run(f"CREATE TABLE {sparks} ({columns}) USING parquet")
    # In half of the partitions, values are stored as Spark stores them; in the others, with any number of blanks.
    rows = [(k, *(rng.choice((*TEXTS, None)) for _ in range(3))) for k in range(24)]
    values = [", ".join("NULL" if each is None else f"'{each}'" for each in row[1:]) for row in rows]
    run(f"INSERT INTO {sparks} VALUES " + ", ".join(f"({k}, 0, {row})" for k, row in enumerate(values)))
    run(f"INSERT INTO {ours} VALUES " + ", ".join(f"({k}, 0, {row})" for k, row in enumerate(values) if k % 2))
    for begin in range(0, 24, 8):
        table.append([{"k": k, "n": 0, "c": c, "p": p and p[:3], "v": v} for k, c, p, v in rows[begin : begin + 8 : 2]])
    changed: list[int] = []
    deleted: set[int] = set()
    for number in range(conditions):
        condition = _condition(rng)
        wanted = [k for (k,) in run(f"SELECT k FROM {sparks} WHERE {condition}") if k not in deleted]
        assert [k for (k,) in run(f"SELECT k FROM {ours} WHERE {condition}")] == wanted, condition
        if number % 3 == 0:
            changed += wanted
            assert run(f"UPDATE {ours} SET n = n + 1 WHERE {condition}") == [], condition
        elif number % 6 == 5:
            deleted |= {k for k in wanted if k % 5 == 0}
            assert run(f"DELETE FROM {ours} WHERE k % 5 = 0 AND {condition}") == [], condition
    left = (k for k in range(24) if k not in deleted)
    assert run(f"SELECT k, n FROM {ours}") == sorted(((k, changed.count(k)) for k in left), key=repr)


UNPADDED = (
    "c BETWEEN 'a' AND 'b'",
    "c NOT BETWEEN 'a' AND 'a'",
    "c NOT LIKE 'a'",
    "NOT startswith(c, 'a ')",
    "c > (SELECT 'a')",
    "c < 'a '",
    "c <> 'a'",
)


@pytest.mark.parametrize("by", [[], ["c"]])
def test_no_files_are_skipped_by_texts_that_spark_compares_without_padding(
    spark: SparkSession, run: Callable[[str], Any], catalog: Catalog, by: list[str]
) -> None:
    name, texts = f"raw{len(by)}", ("a", "a ", "a   ", "ab", "b", "a\t", None)
    table = catalog.create_table(f"d.{name}", "k INT, c CHAR(4), n INT", partition_by=by)
    for k, text in enumerate(texts):
        table.append([{"k": k, "c": text, "n": 0}])
    plain = spark.createDataFrame(list(enumerate(texts)), "k INT, c STRING")
    for condition in UNPADDED:
        stored = table.to_spark(spark).where(condition)
        assert {row.k for row in stored.collect()} == {row.k for row in plain.where(condition).collect()}, condition
    for number, condition in enumerate(UNPADDED, 1):
        selected = run(f"SELECT k FROM {OURS}.{name} WHERE {condition}")
        assert run(f"UPDATE {OURS}.{name} SET n = {number} WHERE {condition}") == [], condition
        assert run(f"SELECT k FROM {OURS}.{name} WHERE n = {number}") == selected, condition
        # Stored without padding again.
        catalog.load_table(f"d.{name}").delete("k IS NOT NULL")
        for k, text in enumerate(texts):
            table.append([{"k": k, "c": text, "n": 0}])


QUERIES = (
    "SELECT k, c, e FROM {t}",
    "SELECT k FROM {t} WHERE c = 'a' AND c <= 'a ' AND c IN ('a', 'b') AND c <> 'ab' AND c LIKE 'a %'",
    "SELECT k, length(e), r.x, length(m['q  ']), a[0] || 'x' FROM {t}",
    "SELECT k FROM {t} WHERE r.x = 'q' OR c = s OR c < 'ab'",
    "SELECT x.k, y.k FROM {t} x JOIN {t} y ON x.c = y.e",
    "SELECT f, count(*) FROM (SELECT c AS f FROM {t}) WHERE f >= 'a' GROUP BY f",
)
CHANGES = (
    "UPDATE {t} SET n = CASE WHEN c = 'a' THEN 1 WHEN c = e THEN 2 END, s = c || 'x' WHERE NOT c = 'b'",
    "UPDATE {t} SET n = CASE WHEN c IN ('b', 'zz') THEN 3 WHEN c = s THEN 4 ELSE n END WHERE k >= 0",
    "UPDATE {t} SET n = CASE WHEN c IN ('b', NULL) THEN 5 WHEN c IN (NULL, 'b   ') THEN 6 ELSE n END WHERE k >= 0",
    "MERGE INTO {t} t USING (SELECT k FROM {t} WHERE k < 3) u ON t.k = u.k WHEN MATCHED AND e = 'a' THEN DELETE",
    "MERGE INTO {t} t USING (SELECT c FROM {t} WHERE k = 2) u ON t.c = u.c WHEN MATCHED THEN UPDATE SET s = t.c",
    "DELETE FROM {t} WHERE c >= 'ab' AND c LIKE 'ab %'",
)


def test_statements_of_flinks_sql_pad_char_as_the_catalog_does(
    spark: SparkSession, run: Callable[[str], Any], catalog: Catalog
) -> None:
    columns = (
        "k INT, c CHAR(4), e CHAR(6), s STRING, n INT, r ROW<x CHAR(3)>, m MAP<CHAR(3), CHAR(5)>, a ARRAY<CHAR(2)>"
    )
    texts = ("a", "a   ", "ab", "ab  ", "abcd", "", " ", "b", None)
    nested = {"n": 0, "r": {"x": "q"}, "m": {"q": "v"}, "a": ["z"]}
    for name in ("flinks", "sparks"):
        table = catalog.create_table(f"d.{name}", columns)
        table.append([{"k": k, "c": text, "e": text, "s": text, **nested} for k, text in enumerate(texts)])
    for query in QUERIES:
        expected = run(query.format(t=f"{OURS}.flinks"))
        assert isinstance(expected, list)
        on_spark: Any = penstock.sql(spark, catalog, query.format(t="d.flinks"))
        assert sorted(map(tuple, on_spark.collect()), key=repr) == expected, query
    for query in QUERIES[:2]:
        here: Any = penstock.sql(None, catalog, query.format(t="d.flinks"))
        found = sorted((tuple(row.values()) for row in here.to_pylist()), key=repr)
        assert found == run(query.format(t=f"{OURS}.flinks")), query
    for change in CHANGES:
        assert run(change.format(t=f"{OURS}.sparks")) == [], change
        penstock.sql(spark, catalog, change.format(t="d.flinks"))
        both = [run(f"SELECT k, c, e, s, n FROM {OURS}.{name}") for name in ("flinks", "sparks")]
        assert both[0] == both[1], change


def test_an_insert_of_flinks_sql_cuts_the_blanks_that_a_shorter_text_has_no_place_for(
    spark: SparkSession, run: Callable[[str], Any], catalog: Catalog
) -> None:
    catalog.create_table("d.long", "c CHAR(5)").append([{"c": "ab"}, {"c": "a é"}, {"c": None}])
    catalog.create_table("d.short", "c CHAR(3), v VARCHAR(4), s STRING")
    for insert in ("INSERT INTO {d}.short SELECT c, c, c FROM {d}.long", "INSERT INTO {d}.short SELECT 'x', 'y', 'z'"):
        penstock.sql(spark, catalog, insert.format(d="d"))
        ours = run(f"SELECT * FROM {OURS}.short")
        run(f"TRUNCATE TABLE {OURS}.short")
        assert run(insert.format(d=f"{OURS}")) == []
        assert ours == run(f"SELECT * FROM {OURS}.short")
        run(f"TRUNCATE TABLE {OURS}.short")
    with pytest.raises(SchemaMismatchError, match=r"'c' is CHAR\(3\).* length 4 "):
        penstock.sql(spark, catalog, "INSERT INTO d.short SELECT 'abcd', '', ''")


@needs(PYTHON_WRITES)
def test_streams_pad_char_and_compare_it(spark: SparkSession, catalog: Catalog, places: None, tmp_path: Path) -> None:
    table = catalog.create_table("d.streamed", "k INT, c CHAR(5)")
    table.append([{"k": 1, "c": "a"}, {"k": 2, "c": "a   "}, {"k": 3, "c": None}, {"k": 4, "c": "b"}])
    catalog.create_table("d.copied", "k INT, c CHAR(5)")
    read = spark.readStream.table(f"{OURS}.streamed").where("c = 'a' OR c IS NULL")
    query = read.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    query.toTable(f"{OURS}.copied").awaitTermination()
    assert _stored(catalog, "d.copied") == [(1, "a    "), (2, "a    "), (3, None)]


def test_a_replaced_partition_is_found_under_each_spelling_of_its_char(
    run: Callable[[str], Any], catalog: Catalog
) -> None:
    table = catalog.create_table("d.spelt", "k INT, p CHAR(3)", partition_by=["p"])
    table.append([{"k": 1, "p": "a"}, {"k": 2, "p": "a  "}, {"k": 3, "p": "b"}, {"k": 4, "p": "c "}])
    assert run(f"INSERT OVERWRITE {OURS}.spelt PARTITION (p = 'a') VALUES (9)") == []
    assert run(f"ALTER TABLE {OURS}.spelt DROP PARTITION (p = 'b')") == []
    assert run(f"SHOW PARTITIONS {OURS}.spelt PARTITION (p = 'c')") == [("p=c ",)]
    assert run(f"SELECT k, p FROM {OURS}.spelt") == [(4, "c  "), (9, "a  ")]


def _types(catalog: Catalog, name: str) -> list[tuple[str, str, str | None]]:
    fields = catalog.load_table(name)._ref.schema.fields
    return [(field.name, format_sql_type(field.type), field.default_value) for field in fields]


WHOLE = (
    "id BIGINT NOT NULL, c CHAR(3) DEFAULT 'a', v VARCHAR(9), ts TIMESTAMP(3), tm TIME(3), y BINARY(4), "
    "r ROW<a CHAR(2) NOT NULL, `b c` VARCHAR(4)>, m INT DEFAULT 7"
)


@needs(CREATE_LIKE)
def test_definitions_are_copied_whole(run: Callable[[str], Any], catalog: Catalog) -> None:
    catalog.create_table("d.pattern", WHOLE, partition_by=["c"], comment="it's")
    assert run(f"CREATE TABLE {OURS}.copy LIKE {OURS}.pattern") == []
    assert _types(catalog, "d.copy") == _types(catalog, "d.pattern")


@needs(CHAR_DEFAULTS)
def test_definitions_are_shown_whole(run: Callable[[str], Any], catalog: Catalog) -> None:
    catalog.create_table("d.whole", WHOLE, partition_by=["c"], comment="it's")
    [(shown,)] = run(f"SHOW CREATE TABLE {OURS}.whole")
    assert run(shown.replace(f"{OURS}.whole ", f"{OURS}.again ", 1)) == []
    [(repeated,)] = run(f"SHOW CREATE TABLE {OURS}.again")
    assert repeated == shown.replace(f"{OURS}.whole ", f"{OURS}.again ", 1)

    # Spark has one type for each of these.
    known = {"ts": "TIMESTAMP(6)", "tm": "INT", "y": "BYTES"}
    expected = [(name, known.get(name, text), default) for name, text, default in _types(catalog, "d.whole")]
    assert _types(catalog, "d.again") == expected
    if OMITTED_DEFAULTS.is_here:
        assert "NOT NULL" in run(f"INSERT INTO {OURS}.again (id) VALUES (NULL)")


def test_comments_and_options_are_shown_whole(spark: SparkSession, run: Callable[[str], Any], catalog: Catalog) -> None:
    rng = random.Random(5)  # noqa: S311 - not a secret
    texts = iter(["".join(rng.choices("\\\\'\"`an\n\tu0%;é", k=rng.randint(1, 9))) for _ in range(40)])
    for number in range(8):
        table = catalog.create_table(f"d.shown{number}", "a INT, r ROW<x INT, y ROW<z STRING>>", comment=next(texts))
        for column in (("a",), ("r",), ("r", "y", "z")):
            catalog.alter_table(table.name, UpdateColumnComment(column=column, comment=next(texts)))
        catalog.alter_table(table.name, SetOption(key="partition.timestamp-pattern", value=next(texts)))
        expected = replace(catalog.load_table(table.name).schema, id=0, time_millis=0)
        [(shown,)] = run(f"SHOW CREATE TABLE {OURS}.shown{number}")
        assert run(f"DROP TABLE {OURS}.shown{number}") == run(shown) == []
        assert replace(catalog.load_table(table.name).schema, id=0, time_millis=0) == expected


@pytest.mark.parametrize(
    "column",
    [
        "d DATE DEFAULT current_date()",
        "s STRING DEFAULT current_user()",
        "s STRING DEFAULT string(current_timestamp())",
        "n TIMESTAMP_NTZ DEFAULT localtimestamp()",
        "i BIGINT DEFAULT unix_timestamp()",
        "i INT DEFAULT 1 + year(now())",
        "s STRING DEFAULT concat('a', current_timezone())",
    ],
)
def test_a_default_that_is_not_one_value_is_refused(run: Callable[[str], Any], catalog: Catalog, column: str) -> None:
    name, kind, _, default = column.split(" ", 3)
    refused = f"DEFAULT {default} of column '{name}': a default is one value"
    assert refused in run(f"CREATE TABLE {OURS}.dated (a INT, {column})")
    assert "dated" not in catalog.list_tables("d")
    run(f"CREATE TABLE IF NOT EXISTS {OURS}.undated_{name} (a INT, {name} {kind})")
    assert refused in run(f"ALTER TABLE {OURS}.undated_{name} ALTER COLUMN {name} SET DEFAULT {default}")
    assert catalog.load_table(f"d.undated_{name}")._ref.schema.fields[1].default_value is None


EVOLUTIONS = {
    # source, rows of MERGE on k into (1, 1, {a: 1}), and the columns of the table after it
    "a new column": ("SELECT 1 k, 20 w, named_struct('a', 5) s, 'x' n", [(1, 20, (5,), "x")], "k INT, w INT, n STRING"),
    "another order": ("SELECT 'x' n, 2 k", [(1, 1, (1,), None), (2, None, None, "x")], "k INT, w INT, n STRING"),
    "a wider type": ("SELECT 1 k, 5000000000 w", [(1, 5000000000, (1,))], "k INT, w BIGINT"),
    "a narrower type": ("SELECT 1 k, 5Y w", [(1, 5, (1,))], "k INT, w INT"),
    "a new nested field": ("SELECT 1 k, named_struct('a', 5, 'b', 6) s", [(1, 1, (5, 6))], "k INT, w INT"),
    "a type without counterpart": ("SELECT 1 k, NULL n", "FAILED_EVOLUTION", "k INT, w INT"),
    "another type": ("SELECT 1 k, 'text' w", "CANNOT_SAFELY_CAST", "k INT, w INT"),
}


@needs(SCHEMA_EVOLUTION)
@pytest.mark.parametrize("case", EVOLUTIONS)
def test_merge_with_schema_evolution_loses_no_value(
    run: Callable[[str], Any], spark: SparkSession, catalog: Catalog, case: str
) -> None:
    source, wanted, columns = EVOLUTIONS[case]
    name = f"{OURS}.m_{case.replace(' ', '_')}"
    run(f"CREATE TABLE {name} (k INT, w INT, s STRUCT<a: INT>)")
    run(f"INSERT INTO {name} VALUES (1, 1, named_struct('a', 1))")
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING ({source}) s ON t.k = s.k"
    found = run(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert found == [] if isinstance(wanted, list) else wanted in found
    rows = wanted if isinstance(wanted, list) else [(1, 1, (1,))]
    assert run(f"SELECT * FROM {name}") == rows
    flat = [
        field for field in catalog.load_table(name.removeprefix("penstock."))._ref.schema.fields if field.name != "s"
    ]
    assert ", ".join(f"{field.name} {format_sql_type(field.type)}" for field in flat) == columns


@needs(SCHEMA_EVOLUTION)
def test_insert_and_the_merge_of_dataframes_evolve_too(
    run: Callable[[str], Any], spark: SparkSession, catalog: Catalog
) -> None:
    run(f"CREATE TABLE {OURS}.evolved (k INT) TBLPROPERTIES ('bucket' = '1', 'bucket-key' = 'k')")
    assert run(f"INSERT WITH SCHEMA EVOLUTION INTO {OURS}.evolved BY NAME SELECT 'x' n, 1 k") == []
    assert run(f"INSERT WITH SCHEMA EVOLUTION INTO {OURS}.evolved SELECT 2, 'y', 5.5D z") == []
    assert run(f"SELECT * FROM {OURS}.evolved") == [(1, "x", None), (2, "y", 5.5)]
    rows = "SELECT 1 k, 7 more UNION ALL SELECT 3, 9"
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO {OURS}.evolved t USING ({rows}) s ON t.k = s.k"
    assert run(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *") == []
    assert run(f"SELECT * FROM {OURS}.evolved") == [(1, "x", None, 7), (2, "y", 5.5, None), (3, None, None, 9)]
    # Refused before the table is changed.
    catalog.alter_table("d.evolved", AddColumn(column="nanos", type="TIMESTAMP(9)"))
    assert "nanoseconds" in run(f"{merge.replace('more', 'further')} WHEN MATCHED THEN UPDATE SET *")
    assert "further" not in catalog.load_table("d.evolved")._ref.schema.field_names
    run(f"CREATE TABLE {OURS}.merged (k INT)")
    source = spark.sql("SELECT 1 k, 'x' n").alias("s")
    writer = source.mergeInto(f"{OURS}.merged", F.expr("merged.k = s.k")).withSchemaEvolution()
    writer.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert run(f"SELECT * FROM {OURS}.merged") == [(1, "x")]


@pytest.mark.skipif(
    SCHEMA_EVOLUTION.is_here or not hasattr(DataFrame, "mergeInto"), reason="Spark evolves, or has no mergeInto"
)
def test_a_merge_of_dataframes_that_evolves_is_refused_where_spark_does_not(
    run: Callable[[str], Any], spark: SparkSession
) -> None:
    run(f"CREATE TABLE {OURS}.left_out (k INT)")
    source = spark.sql("SELECT 1 k, 'x' n").alias("s")
    evolving = source.mergeInto(f"{OURS}.left_out", F.expr("left_out.k = s.k")).withSchemaEvolution()
    with pytest.raises(Exception, match=r"d\.left_out: WITH SCHEMA EVOLUTION needs Spark 4\.2 or newer"):
        evolving.whenNotMatched().insertAll().merge()
    # The one that was refused still lives.
    again = source.mergeInto(f"{OURS}.left_out", F.expr("left_out.k = s.k"))
    again.whenNotMatched().insertAll().merge()
    assert run(f"SELECT * FROM {OURS}.left_out") == [(1,)]
    again = source.mergeInto(f"{OURS}.left_out", F.expr("left_out.k = s.k")).withSchemaEvolution()
    with pytest.raises(Exception, match="WITH SCHEMA EVOLUTION needs Spark"):
        again.whenMatched().updateAll().merge()
    merge = f"MERGE WITH /* this */ SCHEMA EVOLUTION INTO {OURS}.left_out t USING (SELECT 2 k, 'x' n) s ON t.k = s.k"
    assert "WITH SCHEMA EVOLUTION needs Spark" in run(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    assert "WITH SCHEMA EVOLUTION needs Spark" in run(f"{merge} WHEN MATCHED THEN UPDATE SET *")
    run(f"INSERT INTO {OURS}.left_out SELECT length('WITH SCHEMA EVOLUTION')")
    assert run(f"SELECT * FROM {OURS}.left_out ORDER BY k") == [(1,), (21,)]
