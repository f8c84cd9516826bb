"""Statements and the errors of those that are not understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import InvalidSqlError
from penstock.catalog import changes
from penstock.dialect.parse import statements
from penstock.dialect.parse.parser import parse_script
from penstock.format.types.text import format_sql_type

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.sql"))


def parse(text: str) -> statements.Action:
    (statement,) = parse_script(text)
    return statement.action


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_understood(path: Path) -> None:
    assert parse_script(path.read_text("utf-8"))


def test_a_table_with_every_clause() -> None:
    table = parse(
        "create temporary table if not exists c.d.`t x` (`a b` INT NOT NULL COMMENT 'it''s', b ROW<x INT> DEFAULT 5,"
        " ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECONDS)"
        " COMMENT 'about' PARTITIONED BY (`a b`) WITH ('bucket' = '4', 'x.y' = '')"
    )
    assert isinstance(table, statements.CreateTable)
    assert table.name == ("c", "d", "t x")
    assert [(column.name, format_sql_type(column.type)) for column in table.columns] == [
        ("a b", "INT NOT NULL"),
        ("b", "ROW<x INT>"),
        ("ts", "TIMESTAMP(3)"),
    ]
    assert table.columns[0].description == "it's"
    assert table.columns[1].default_value == "5"
    assert table.watermark == statements.WatermarkClause(column="ts", interval="INTERVAL '5' SECONDS")
    assert table.partition_by == ("a b",)
    assert table.options == (("bucket", "4"), ("x.y", ""))
    assert (table.comment, table.if_not_exists, table.is_temporary) == ("about", True, True)


def test_computed_columns_are_written_as_flink_stores_them() -> None:
    table = parse(
        "CREATE TABLE t (ms BIGINT, `b c` DOUBLE, ts as to_timestamp_ltz(ms,3), d AS cast( ms*`b c` as decimal(10,2)),"
        " e AS ms, p AS proctime(), s STRING)"
    )
    assert isinstance(table, statements.CreateTable)
    assert [(each.place, each.name, each.expression, format_sql_type(each.type)) for each in table.computed] == [
        (2, "ts", "TO_TIMESTAMP_LTZ(`ms`, 3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        (3, "d", "CAST(`ms` * `b c` AS DECIMAL(10, 2))", "DECIMAL(10, 2)"),
        (4, "e", "`ms`", "BIGINT"),
        (5, "p", "PROCTIME()", "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"),
    ]
    assert [column.name for column in table.columns] == ["ms", "b c", "s"]


def test_alterations_in_flinks_words_and_in_sparks() -> None:
    flink = parse("ALTER TABLE t ADD (a INT COMMENT 'x' FIRST, b STRING DEFAULT 'q' AFTER a)")
    assert isinstance(flink, statements.AlterTable)
    assert [type(change) for change in flink.changes] == [
        changes.AddColumn,
        changes.AddColumn,
        changes.UpdateColumnDefault,
    ]
    assert parse("ALTER TABLE t ADD COLUMNS (a INT)") == parse("ALTER TABLE t ADD a INT")
    assert parse("ALTER TABLE t DROP (a, b)") == parse("ALTER TABLE t DROP COLUMNS a, b")
    assert parse("ALTER TABLE t RENAME COLUMN a TO b") == parse("ALTER TABLE t RENAME a TO b")
    assert parse("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')") == parse("ALTER TABLE t SET ('a' = 'b')")
    moved = parse("ALTER TABLE t MODIFY a BIGINT COMMENT 'x' AFTER b")
    assert isinstance(moved, statements.AlterTable)
    assert moved.changes[-1] == changes.MoveColumn(column="a", position=changes.after("b"))


def test_partitions_of_every_kind_of_value() -> None:
    dropped = parse("ALTER TABLE t DROP IF EXISTS PARTITION (dt = DATE '2026-01-01', h = -5), PARTITION (dt = NULL)")
    assert dropped == statements.DropPartitions(
        name=("t",), partitions=((("dt", "2026-01-01"), ("h", "-5")), (("dt", None),)), if_partitions_exist=True
    )


def test_arguments_of_procedures_by_place_and_by_name() -> None:
    assert parse("CALL sys.compact('d.t', `where` => 'a > 1', n => -2.5, flag => TRUE, nothing => NULL)") == (
        statements.Call(
            procedure="compact",
            arguments=(
                statements.Argument(name=None, value="d.t"),
                statements.Argument(name="where", value="a > 1"),
                statements.Argument(name="n", value=-2.5),
                statements.Argument(name="flag", value=True),
                statements.Argument(name="nothing", value=None),
            ),
        )
    )


def test_settings_with_and_without_quotes() -> None:
    with_quotes = parse("SET 'execution.runtime-mode' = 'streaming'")
    assert with_quotes == parse("SET execution.runtime-mode = streaming")
    assert parse("SET") == statements.SetSetting()
    assert parse("RESET") == statements.ResetSetting()
    assert parse("SHOW TABLES IN a.b NOT LIKE 'x%'") == statements.ShowNames(
        what="tables", within=("a", "b"), like="x%", is_negated=True
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("\n  SELEC 1", 2, 3, "did you mean SELECT"),
        ("FROB", 1, 1, "expected one of SELECT, CREATE"),
        ("USE a;\nSELECT a\nFROM t WHERE", 3, 13, "found the end: expected something after 'WHERE'"),
        ("SELECT * FROM t x y z", 1, 19, "found 'y'"),
        ("CREATE TABLE t (a INT PRIMARY KEY)", 1, 23, "no primary key"),
        ("CREATE TABLE t (a INT,\n PRIMARY KEY (a) NOT ENFORCED)", 2, 2, "no primary key"),
        ("CREATE TABLE t (a BIGIN)", 1, 19, "did you mean BIGINT"),
        ("CREATE TABLE t (a INT) WITH ('a' = 1)", 1, 36, "in single quotes"),
        ("CREATE TABLE t (a INT) WITH ('a' = '1', 'a' = '2')", 1, 41, "twice"),
        ("CREATE TABLE t", 1, 15, "columns in parentheses"),
        ("CREATE TABLE t (a, b)", 1, 22, "columns in parentheses"),
        ("CREATE TABLE t (a INT, b AS CAST(a AS BIGINT)) AS SELECT 1", 1, 51, "then INSERT INTO"),
        ("CREATE TABLE t AS TABLE b", 1, 19, "SELECT, WITH or VALUES"),
        ("CREATE TABLE t LIKE b (INCLUDING COMMENTS)", 1, 34, "expected ALL, GENERATED, OPTIONS"),
        ("CREATE TABLE t LIKE b (OVERWRITING PARTITIONS)", 1, 24, "PARTITIONS cannot be overwritten"),
        ("CREATE TABLE t LIKE b (EXCLUDING OPTIONS INCLUDING OPTIONS)", 1, 42, "OPTIONS is said twice"),
        ("CREATE TABLE t (a INT, b AS a * 2)", 1, 29, r"CAST\(… AS type\)"),
        ("CREATE TABLE t (a INT, b AS CAST(`c` AS INT))", 1, 34, "columns before it: a"),
        ("CREATE TABLE t (a INT METADATA FROM x)", 1, 37, "name of the metadata in quotes"),
        ("CREATE TABLE t (w DATE, WATERMARK FOR w AS w + INTERVAL '5' SECOND)", 1, 46, "no other watermark"),
        ("CREATE TABLE t (w TIMESTAMP(3), WATERMARK FOR w AS x)", 1, 52, "expected `w`"),
        ("CREATE TABLE t (w DATE, WATERMARK FOR w AS w - INTERVAL '5' WEEK)", 1, 61, "SECOND, MINUTE, HOUR, DAY"),
        ("CREATE FUNCTION f AS 'x'", 1, 8, "no functions of your own"),
        ("CREATE VIEW v (a INT) AS SELECT 1", 1, 18, "after the columns"),
        ("CREATE VIEW v SELECT 1", 1, 15, "expected AS and a query"),
        ("CREATE VIEW v AS\n SELECT a FROM t WHERE", 2, 23, "after 'WHERE'"),
        ("EXPLAIN DROP TABLE t", 1, 9, "a query or an INSERT"),
        ("EXPLAIN", 1, 8, "a query or an INSERT"),
        ("EXPLAIN PLAN FOR\nSELECT a FROM t WHERE", 2, 22, "after 'WHERE'"),
        ("ALTER TABLE t FOO", 1, 15, "expected one of SET"),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", 1, 19, "no keys"),
        ("CALL compact('t')", 1, 13, r"CALL sys.compact\(…\)"),
        ("CALL sys.compact(a => 'b', 'c')", 1, 31, "cannot follow"),
        ("INSERT t VALUES (1)", 1, 8, "INTO or OVERWRITE"),
        ("INSERT INTO t REPLACE WHERE a = 1 SELECT 1", 1, 15, "INSERT OVERWRITE t PARTITION"),
        ("INSERT INTO t DELETE", 1, 15, "SELECT, WITH or VALUES"),
        ("INSERT INTO t VALUES (DATE '2026-13-01')", 1, 28, "not a valid DATE"),
        ("DROP TABLE a b", 1, 14, "the end of the statement"),
        ("USE a.b.c.d", 1, 12, "at most 3 parts"),
    ],
)  # fmt: skip
def test_syntax_errors_are_reported_with_their_position_and_what_works(
    text: str, line: int, column: int, hint: str
) -> None:
    with pytest.raises(InvalidSqlError, match=f"line {line}, column {column}: .*{hint}"):
        parse_script(text)


def test_explain_takes_the_details_that_flink_has() -> None:
    plain = parse("EXPLAIN SELECT 1")
    assert isinstance(plain, statements.Explain)
    assert isinstance(plain.action, statements.Select)
    for words in ("PLAN FOR", "ESTIMATED_COST, CHANGELOG_MODE", "PLAN_ADVICE"):
        explained = parse(f"EXPLAIN {words} INSERT INTO t VALUES (1)")  # noqa: S608 - nothing runs it
        assert isinstance(explained, statements.Explain)
        assert explained.action == parse("INSERT INTO t VALUES (1)")


def test_a_view_with_every_clause() -> None:
    view = parse(
        "CREATE TEMPORARY VIEW IF NOT EXISTS d.v (a, `b c` COMMENT 'it''s') COMMENT 'x'"
        " AS WITH q AS (SELECT 1) SELECT * FROM q, t"
    )
    assert isinstance(view, statements.CreateView)
    assert (view.name, view.columns, view.comment) == (("d", "v"), (("a", None), ("b c", "it's")), "x")
    assert (view.is_temporary, view.if_not_exists) == (True, True)
    assert [use.name for use in view.query.tables] == [("t",)]
