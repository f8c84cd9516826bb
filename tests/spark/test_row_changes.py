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


def test_numbers_of_several_types_are_those_of_spark(spark: SparkSession, catalog: penstock.Catalog) -> None:
    """They become DOUBLE if one is FLOAT or DOUBLE; Arrow computes FLOAT and INT as FLOAT."""
    texts = [
        *(
            "f - i",
            "f * 0.1",
            "i + f",
            "x + d",
            "x + d * 127",
            "d + 1.5e0 + i",
            "CASE WHEN i = 1 THEN f ELSE d END * i",
        ),
        *(
            "COALESCE(f, d) + i",
            "f = 0.1",
            "f IN (0.1, x)",
            "x = d",
            "x * 2 = d * 2",
            "d >= x",
            "i < f",
            "f + f",
            "1e0 + d",
        ),
    ]
    rows = [
        (0.1, 0.1, 16777217, "12.7000"),
        (1.5, 12.7, 1, "0.1000"),
        (math.nan, 0.3, 2147483647, None),
        (-0.1, None, -7, "0.3000"),
    ]
    frame = spark.createDataFrame(rows, "f FLOAT, x DOUBLE, i INT, s STRING").selectExpr(
        "f", "x", "i", "CAST(s AS DECIMAL(20, 4)) AS d"
    )
    wanted = frame.selectExpr(*texts)
    names = [f"c{place}" for place in range(len(texts))]
    types = [str(field.dataType.simpleString()) for field in wanted.schema]
    catalog.create_database("m", if_not_exists=True)
    results = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    table = catalog.create_table("m.mixed", f"f FLOAT, x DOUBLE, i INT, d DECIMAL(20, 4), {results}")
    table.append(
        frame.selectExpr("*", *(f"CAST(NULL AS {kind}) AS {name}" for name, kind in zip(names, types, strict=True)))
    )
    sets = ", ".join(f"{name} = {text}" for name, text in zip(names, texts, strict=True))
    penstock.sql(None, catalog, f"UPDATE m.mixed SET {sets} WHERE i <> 0")  # noqa: S608 - of this file
    found = table.to_arrow(["i", *names]).sort_by("i").select(names).to_pylist()
    spark_rows = [row[1:] for row in sorted(frame.selectExpr("i", *texts).collect())]
    assert repr([tuple(row.values()) for row in found]) == repr(spark_rows)


def test_upper_and_lower_case_are_those_of_spark(spark: SparkSession, catalog: penstock.Catalog) -> None:
    """Of all letters, also where one becomes several or depends on those around it; Spark knows newer letters."""
    letters = [chr(code) for code in range(1, 0x110000) if unicodedata.category(chr(code)) in {"Lu", "Ll", "Lt"}]
    texts = [*(f"a{letter}b" for letter in letters), "ΑΣ", "ΑΣ. ΣΑ", "ΑΣ\u0301", "İI"]
    catalog.create_database("m", if_not_exists=True)
    table = catalog.create_table("m.cases", "s STRING, u STRING, l STRING")
    table.append([{"s": text, "u": None, "l": None} for text in texts])
    penstock.sql(None, catalog, "UPDATE m.cases SET u = UPPER(s), l = LOWER(s) WHERE s IS NOT NULL")
    rows = table.to_spark(spark).selectExpr("u", "upper(s)", "l", "lower(s)").collect()
    pairs = [
        pair for upper, spark_upper, lower, spark_lower in rows for pair in ((upper, spark_upper), (lower, spark_lower))
    ]
    different = [wanted for found, wanted in pairs if found != wanted]
    assert [each for each in different if "Cn" not in map(unicodedata.category, each)] == []
    assert len(different) < 100 < len(pairs)


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
    table.append([dict.fromkeys(f"c{place}" for place in range(len(texts)))])
    sets = ", ".join(f"c{place} = {text}" for place, text in enumerate(texts))
    penstock.sql(None, catalog, f"UPDATE m.texts SET {sets} WHERE c0 IS NULL")  # noqa: S608 - of this file
    (found,) = table.to_arrow().to_pylist()
    assert list(found.values()) == list(spark.range(1).selectExpr(*texts).first() or ())
