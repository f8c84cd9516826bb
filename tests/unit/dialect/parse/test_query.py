"""Queries: their tables, and the text that Spark gets."""

from __future__ import annotations

import pytest

from penstock import InvalidSqlError
from penstock.dialect.parse.query import SimpleSelect, parse_query
from penstock.dialect.parse.reader import StatementText
from penstock.dialect.parse.tables import TableUse


def rewritten(text: str) -> str:
    query = parse_query(StatementText(text=text))
    return " ".join(query.text([f"v{place}" for place in range(len(query.tables))]).split())


def tables(text: str) -> list[tuple[object, ...]]:
    return [(use.name, use.system, use.options) for use in parse_query(StatementText(text=text)).tables]


def test_only_the_names_of_tables_are_exchanged() -> None:
    text = "SELECT a.x, TRIM(BOTH 'x' FROM y) FROM d.t AS a, `u v` JOIN w USING (id) WHERE x IN (SELECT x FROM c.d.t)"
    assert rewritten(text) == (
        "SELECT a.x, TRIM(BOTH 'x' FROM y) FROM `v0` AS a, `v1` AS `u v` JOIN `v2` AS `w` USING (id)"
        " WHERE x IN (SELECT x FROM `v3` AS `t`)"
    )
    assert [name for name, _, _ in tables(text)] == [("d", "t"), ("u v",), ("w",), ("c", "d", "t")]


def test_names_that_the_query_gives_itself_are_no_tables() -> None:
    assert rewritten("WITH c AS (SELECT * FROM t) SELECT * FROM c, d.c") == (
        "WITH c AS (SELECT * FROM `v0` AS `t`) SELECT * FROM c, `v1` AS `c`"
    )


def test_hints_time_travel_and_system_tables_become_part_of_the_use() -> None:
    assert tables(
        "SELECT * FROM t /*+ OPTIONS('a' = 'b', 'c' = '''') */ FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00' x,"
        " d.t VERSION AS OF 3, t VERSION AS OF 'tag', t TIMESTAMP AS OF '2026-01-02', d.`t$files` f, c.d.t$snapshots"
    ) == [
        (("t",), None, (("a", "b"), ("c", "'"), ("scan.timestamp", "2026-01-01 00:00:00"))),
        (("d", "t"), None, (("scan.version", "3"),)),
        (("t",), None, (("scan.version", "tag"),)),
        (("t",), None, (("scan.timestamp", "2026-01-02"),)),
        (("d", "t"), "files", ()),
        (("c", "d", "t"), "snapshots", ()),
    ]


def test_hints_for_spark_stay_where_they_are() -> None:
    assert rewritten("SELECT /*+ BROADCAST(t) */ * FROM t") == "SELECT /*+ BROADCAST(t) */ * FROM `v0` AS `t`"


def test_a_tumbling_window_keeps_its_columns_and_the_streams_watermark() -> None:
    text = (
        "SELECT window_start, COUNT(*) FROM TABLE(\n TUMBLE(TABLE t /*+ OPTIONS('a'='b') */, DESCRIPTOR(`at`),"
        " INTERVAL '10' MINUTES)) GROUP BY window_start, window_end"
    )
    assert rewritten(text) == (
        "SELECT window_start, COUNT(*) FROM (SELECT *, `__window`.start AS window_start, `__window`.end AS window_end,"
        " `__window`.end - INTERVAL '0.001' SECOND AS window_time FROM (SELECT *,"
        " window(`at`, '10 MINUTES', '10 MINUTES') AS `__window` FROM `v0`)) AS `__w0`"
        " GROUP BY `__w0`.`__window`, window_start, window_end"
    )
    assert tables(text) == [(("t",), None, (("a", "b"),))]


def test_a_hopping_window_by_names_of_parameters_and_over_a_name_of_the_query() -> None:
    text = (
        "WITH c AS (SELECT * FROM t) SELECT * FROM HOP(DATA => TABLE c, TIMECOL => DESCRIPTOR(at),"
        " SIZE => INTERVAL '1' HOUR, SLIDE => INTERVAL '5' MINUTES, OFFSET => INTERVAL '2' MINUTES) AS w"
    )
    assert "window(`at`, '1 HOUR', '5 MINUTES', '120000 milliseconds') AS `__window` FROM `c`)) AS w" in " ".join(
        rewritten(text).replace(" AS w", " AS w").split()
    )
    assert "* EXCEPT (`__window`)" in rewritten(text)


def test_sessions_become_groups_of_spark() -> None:
    assert rewritten(
        "SELECT k, w.window_start, window_end AS e FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(at),"
        " INTERVAL '5' MINUTES)) AS w GROUP BY k, window_start, window_end HAVING window_end > k"
    ) == (
        "SELECT k, session_window.start AS window_start, session_window.end AS e FROM `v0` AS w"
        " GROUP BY k, session_window(`at`, '5 MINUTES'), session_window(`at`, '5 MINUTES')"
        " HAVING session_window.end > k"
    )


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("SELECT * FROM t", SimpleSelect(columns=(), where=None, limit=None)),
        (
            "SELECT a, `b c` AS d FROM t WHERE a > 'LIMIT' AND `where` = 2 LIMIT 5",
            SimpleSelect(columns=(("a", "a"), ("b c", "d")), where="a > 'LIMIT' AND `where` = 2", limit=5),
        ),
        ("SELECT a + 1 FROM t", None),
        ("SELECT count(*) FROM t", None),
        ("SELECT DISTINCT a FROM t", None),
        ("SELECT a FROM t ORDER BY a", None),
        ("SELECT a FROM t, u", None),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM u)", None),
        ("SELECT a FROM t LIMIT 1 + 1", None),
        ("SELECT a FROM t TABLESAMPLE (10 ROWS)", None),
        ("SELECT a FROM t PIVOT (SUM(a) AS a FOR b IN (1, 2))", None),
        (
            "SELECT a -- it's no WHERE\nFROM t /* LIMIT 1 */ WHERE a = 1 -- LIMIT 2\n AND/* it's */b<=2 LIMIT 3 -- 4",
            SimpleSelect(columns=(("a", "a"),), where="a = 1 AND b<=2", limit=3),
        ),
        ("SELECT 1", None),
    ],
)
def test_which_queries_need_no_engine(text: str, simple: SimpleSelect | None) -> None:
    assert parse_query(StatementText(text=text)).simple == simple


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at)))", 51, "argument SIZE"),
        ("SELECT * FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR))", 72, "argument SIZE"),
        (
            "SELECT * FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(at), INTERVAL '7' HOURS, INTERVAL '1' DAY))",
            21,
            "the size, 1 DAY, is not a multiple of the step, 7 HOURS",
        ),
        (
            "SELECT * FROM TABLE(HOP(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR, INTERVAL '1' MINUTE))",
            21,
            "the slide, 1 HOUR, is longer than the windows, 1 MINUTE",
        ),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '0' HOUR))", 53, "an interval such as"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL 'x' HOUR))", 53, "an interval such as"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), 5))", 53, "INTERVAL '10' MINUTES"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), SIZ => INTERVAL '1' DAY))", 53, "one of the parameters"),
        ("SELECT * FROM TABLE(SESSION(TABLE t, DESCRIPTOR(at), INTERVAL '1' DAY))", 15, "window_start, window_end"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(a, b), INTERVAL '1' DAY))", 49, "after the column"),
        ("SELECT * FROM t VERSION AS OF 1 VERSION AS OF 2", 33, "'scan.version' is given twice"),
        ("SELECT * FROM t VERSION AS OF 1 /*+ OPTIONS('scan.version' = '2') */", 33, "'scan.version' is given twice"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF o.at", 39, "a literal"),
        ("SELECT * FROM t TIMESTAMP AS OF 1700000000", 33, "scan.timestamp-millis"),
        ("SELECT * /*+ OPTIONS('a' = 'b') */ FROM t", 10, "follows no table"),
        ("SELECT * FROM t /*+ OPTIONS('a') */", 32, "after the key"),
        ("SELECT a /*+ OPTIONS('a' = 'b') */ FROM t", 8, "no table is"),
        ("SELECT a FROM t FETCH FIRST 1 ROWS ONLY", 17, "write LIMIT"),
        ("INSERT INTO t SELECT 1", 1, "expected a query"),
    ],
)
def test_syntax_errors_are_reported_with_their_position(text: str, column: int, hint: str) -> None:
    with pytest.raises(InvalidSqlError, match=f"line 1, column {column}: .*{hint}"):
        parse_query(StatementText(text=text))


def test_a_use_is_called_by_its_last_name() -> None:
    assert TableUse(name=("d", "t"), system="files").last_name == "t$files"


def conditions(text: str) -> tuple[str, ...]:
    return parse_query(StatementText(text=text)).conditions


def test_conditions_are_about_columns_of_the_table_itself() -> None:
    assert conditions("SELECT * FROM t WHERE a = 1 AND t.b = 'x' AND T.c = DATE '2026-01-01'") == (
        "a = 1", "b = 'x'", "c = DATE '2026-01-01'"
    )  # fmt: skip
    assert conditions("SELECT * FROM t$branch_b AS x WHERE x.a = 1 /* c */ AND t.a = 2") == ("a = 1",)
    assert conditions("SELECT * FROM t VERSION AS OF 3 WHERE t.a = 1") == ("a = 1",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE r.a = 1",
        "SELECT * FROM t WHERE t.r.a = 1",
        "SELECT * FROM t WHERE t.r.a.b.c = 1",
        "SELECT * FROM t AS x (b, a) WHERE a = 1",
        "SELECT * FROM t TABLESAMPLE (10 ROWS) WHERE a = 1",
        "SELECT * FROM t PIVOT (SUM(a) AS a FOR b IN (1, 2)) WHERE a = 1",
        "SELECT * FROM t RIGHT JOIN (VALUES (1)) AS v (x) ON t.a = v.x WHERE t.a IS NULL",
        "SELECT * FROM t RIGHT JOIN range(3) AS r ON t.a = r.id WHERE t.a IS NULL",
    ],
)
def test_conditions_about_anything_else_leave_out_no_row(text: str) -> None:
    assert conditions(text) == ()


def test_a_branch_needs_no_back_quotes() -> None:
    assert tables("SELECT * FROM d.t$branch_b, t$branch_b$files, `t$branch_c`") == [
        (("d", "t$branch_b"), None, ()),
        (("t$branch_b",), "files", ()),
        (("t$branch_c",), None, ()),
    ]


def test_an_alias_follows_the_sample() -> None:
    assert rewritten("SELECT a FROM t TABLESAMPLE (10 ROWS)") == "SELECT a FROM `v0` TABLESAMPLE (10 ROWS)"
    assert rewritten("SELECT a FROM t TABLESAMPLE (10 ROWS) AS x") == "SELECT a FROM `v0` TABLESAMPLE (10 ROWS) AS x"


def test_values_are_a_query() -> None:
    assert rewritten("VALUES (1, 'a'), (1 + 1, 'b')") == "VALUES (1, 'a'), (1 + 1, 'b')"
