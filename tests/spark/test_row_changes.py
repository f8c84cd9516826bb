"""MERGE of the rows of a DataFrame, and DELETE, UPDATE and MERGE in SQL with Spark."""

from __future__ import annotations

import itertools
import math
import unicodedata
from typing import TYPE_CHECKING

from tests.spark.ways import READ_FORMAT_IF_SLOW

import penstock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = READ_FORMAT_IF_SLOW


def test_a_dataframe_is_merged(spark: SparkSession, catalog: penstock.Catalog) -> None:
    catalog.create_database("m", if_not_exists=True)
    table = catalog.create_table("m.t", "k BIGINT, name STRING")
    table.append([{"k": k, "name": f"n{k}"} for k in range(5)])
    source = spark.range(3, 8).selectExpr("id AS k", "concat('s', id) AS name")
    result = table.merge(source, "k", matched=penstock.MergeUpdate(), not_matched=penstock.MergeInsert())
    assert (result.rows_updated, result.rows_inserted) == (2, 3)
    wanted = [(k, f"n{k}" if k < 3 else f"s{k}") for k in range(8)]
    assert sorted(map(tuple, table.to_spark(spark).collect())) == wanted


def test_sql_merges_a_query_of_spark(spark: SparkSession, catalog: penstock.Catalog) -> None:
    penstock.sql(
        spark,
        catalog,
        """
        CREATE TABLE t (k BIGINT, v INT);
        INSERT INTO t VALUES (1, 10), (2, 20);
        CREATE TABLE s (k BIGINT, v INT);
        INSERT INTO s VALUES (2, 1), (2, 2), (3, 3);
        MERGE INTO t USING (SELECT k, CAST(SUM(v) AS INT) AS v FROM s GROUP BY k) AS s ON t.k = s.k
        WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT *;
        DELETE FROM t WHERE k = 1;
        UPDATE t SET v = v * 2 WHERE k = 3
        """,
    )
    rows = penstock.sql(spark, catalog, "SELECT * FROM t")
    assert sorted(map(tuple, rows.collect())) == [(2, 23), (3, 6)]


def test_expressions_compare_nan_and_null_as_spark_does(spark: SparkSession, catalog: penstock.Catalog) -> None:
    """As conditions of ``WHERE`` do, although Arrow evaluates the expressions."""
    conditions = [
        *("x = x", "x <> x", "x < f", "x <= f", "x > 1", "1 >= x", "f IN (x, 2)", "NOT x < f", "x + 1 > f"),
        *("i = NULL", "i IN (1, NULL)", "s <> 'a'", "b >= FALSE", "x = i", "CASE WHEN x > i THEN x ELSE f END = f"),
    ]
    floats = [math.nan, 1.0, None, -0.0]
    others = [(1, "a", True), (None, None, None)]
    rows = [(k, *values, *more) for k, (*values, more) in enumerate(itertools.product(floats, floats, others))]
    columns = "k INT, x DOUBLE, f FLOAT, i INT, s STRING, b BOOLEAN"
    names = [f"c{place}" for place in range(len(conditions))]
    catalog.create_database("m", if_not_exists=True)
    table = catalog.create_table("m.nan", ", ".join((columns, *(f"{name} BOOLEAN" for name in names))))
    frame = spark.createDataFrame(rows, columns)
    table.append(frame.selectExpr("*", *(f"CAST(NULL AS BOOLEAN) AS {name}" for name in names)))
    sets = ", ".join(f"{name} = {text}" for name, text in zip(names, conditions, strict=True))
    penstock.sql(None, catalog, f"UPDATE m.nan SET {sets} WHERE k >= 0")  # noqa: S608
    wanted = frame.orderBy("k").selectExpr(*conditions).collect()
    assert [tuple(row.values()) for row in table.to_arrow().sort_by("k").select(names).to_pylist()] == [
        tuple(row) for row in wanted
    ]


def test_upper_and_lower_case_are_those_of_spark(spark: SparkSession, catalog: penstock.Catalog) -> None:
    """Of all letters that this Python knows, also where one becomes several, or depends on those around it."""
    letters = [chr(code) for code in range(1, 0x110000) if unicodedata.category(chr(code)) in {"Lu", "Ll", "Lt", "Mn"}]
    texts = [
        *(f"a{''.join(part)}" for part in (letters[at : at + 50] for at in range(0, len(letters), 50))),
        *("ΑΣ", "ΑΣ. ΣΑ", "İI", "ﬃß", "ΑΣ\u0301"),
    ]
    catalog.create_database("m", if_not_exists=True)
    table = catalog.create_table("m.cases", "k INT, s STRING, u STRING, l STRING")
    table.append([{"k": k, "s": text} for k, text in enumerate(texts)])
    wanted = table.to_spark(spark).selectExpr("k", "upper(s) AS u", "lower(s) AS l").toArrow().sort_by("k")
    penstock.sql(None, catalog, "UPDATE m.cases SET u = UPPER(s), l = LOWER(s) WHERE k >= 0")
    found = table.to_arrow(["k", "u", "l"]).sort_by("k")
    newer = str.maketrans("\ua7dc\ua7cb", "\u019b\u0264")
    assert [row["u"].translate(newer) for row in wanted.to_pylist()] == [row["u"] for row in found.to_pylist()]
    assert wanted.column("l").to_pylist() == found.column("l").to_pylist()


def test_texts_have_the_escapes_of_spark(spark: SparkSession, catalog: penstock.Catalog) -> None:
    letters = "".join(map(chr, range(0x20, 0x7F)))
    texts = [rf"'\{each}'" for each in letters if each != "'"]
    texts += [
        r"'it''s'",
        '"a""b\'"',
        r"'\u0041\U0001F600\ud83d\ude00\u00'",
        r"'\101\377\08'",
        r"r'\n'",
        r"R'\'",
        "'a' '\\n'",
        r"r'a''b'",
    ]
    catalog.create_database("m", if_not_exists=True)
    table = catalog.create_table("m.texts", ", ".join(f"c{place} STRING" for place in range(len(texts))))
    table.append([{"c0": None}])
    sets = ", ".join(f"c{place} = {text}" for place, text in enumerate(texts))
    penstock.sql(None, catalog, f"UPDATE m.texts SET {sets} WHERE c0 IS NULL")  # noqa: S608 - of this file
    (found,) = table.to_arrow().to_pylist()
    assert list(found.values()) == list(spark.range(1).selectExpr(*texts).first() or ())
