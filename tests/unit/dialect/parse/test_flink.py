"""Flink's syntax for tables in queries, and the errors of sqlglot."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import TableStoreError
from penstock.dialect.parse.flink import parse_text
from penstock.dialect.parse.parser import parse_script
from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import StatementText
from penstock.errors import InvalidSqlError


def time_of(clause: str) -> str:
    text = f"SELECT * FROM t FOR SYSTEM_TIME AS OF {clause} WHERE a > 1"  # noqa: S608 - of this file
    (use,) = parse_text(StatementText(text=text, line=1, column=1)).tables.values()
    return dict(use.options)["scan.timestamp"]


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("TIMESTAMP '2026-01-31 10:00:00'", "2026-01-31 10:00:00"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '1' DAY", "2026-02-01 10:00:00"),
        (
            "TIMESTAMP '2026-01-31 10:00:00' - INTERVAL '90' MINUTES + INTERVAL '1.5' SECOND",
            "2026-01-31 08:30:01.500000",
        ),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL 1 MONTH", "2026-02-28 10:00:00"),
        ("TIMESTAMP '2026-01-31 10:00:00' - INTERVAL '2' YEAR", "2024-01-31 10:00:00"),
        ("DATE '2026-03-01' - INTERVAL '1' DAY", "2026-02-28 00:00:00"),
        ("'2026-01-31 10:00:00.123' + INTERVAL '1' WEEK", "2026-02-07 10:00:00.123000"),
    ],
)
def test_intervals_move_the_time(clause: str, expected: str) -> None:
    assert time_of(clause) == expected


@pytest.mark.parametrize(
    ("clause", "says"),
    [
        ("TIMESTAMP '2026-01-31 10:00:00' + 5", "expected an interval such as INTERVAL '1' DAY"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '1' FORTNIGHT", "in one of SECOND, MINUTE"),
        ("TIMESTAMP 'noon' - INTERVAL '1' DAY", "expected a time such as"),
        ("CURRENT_TIMESTAMP - INTERVAL '1' DAY", "expected a literal"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '99999999999' DAY", "column 49: this time is before the year 1"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '9000' YEAR", "after 9999"),
        ("TIMESTAMP '2026-01-31 10:00:00' - INTERVAL '3000' YEAR", "before the year 1"),
    ],
)
def test_what_is_no_time_is_refused_at_its_place(clause: str, says: str) -> None:
    with pytest.raises(InvalidSqlError, match=says):
        time_of(clause)


def test_a_condition_is_not_lost_in_a_text_that_ends_elsewhere_for_spark() -> None:
    with pytest.raises(InvalidSqlError, match="column 31: Flink and Spark read this differently"):
        parse_query(StatementText(text="SELECT * FROM t VERSION AS OF 'x\\' WHERE a = 1 -- '"))
    with pytest.raises(InvalidSqlError, match="line 1, column 36: Flink and Spark read this differently"):
        parse_script("DELETE FROM t WHERE a = 1 /* /* */ AND b = 2 -- */\n AND c = 3")
    for text in (
        "SELECT a FROM t /* /* */ WHERE a = 1 -- */\n LIMIT 1",
        "SELECT * FROM t WHERE a = 'x\\' LIMIT 1 -- '",
        "SELECT a FROM t WHERE a = 'x\\' AND b = 1 -- '",
    ):
        assert parse_query(StatementText(text=text)).simple is None
    assert parse_query(StatementText(text="SELECT * FROM t WHERE a = 'x\\\\' LIMIT 1")).simple is not None
    for clause in ("VERSION AS OF 'x'", "FOR SYSTEM_TIME AS OF '2026-01-01' - INTERVAL '1' DAY", "WHERE a = X'00'"):
        assert parse_query(StatementText(text=f"SELECT * FROM t {clause} LIMIT 1")).simple is not None  # noqa: S608


def test_a_comment_ends_with_its_line() -> None:
    (deleted,) = parse_script("DELETE FROM t WHERE a = 1 -- x\rAND b = 2 -- y\nAND c = 3 -- z\r\nAND d = 4")
    assert deleted.action.where == "a = 1 AND b = 2 AND c = 3 AND d = 4"  # type: ignore[union-attr]


def test_positions_do_not_depend_on_line_breaks() -> None:
    for line_break in ("\n", "\r\n"):
        with pytest.raises(InvalidSqlError, match="line 3, column 10: found 'd'"):
            parse_script(line_break.join(("SELECT *", "-- a", "  @ FROM d.t VERSION AS OF 1")))
    with pytest.raises(InvalidSqlError, match="line 1, column 24: found 'd'"):
        parse_script("SELECT *\r-- a\r  @ FROM d.t VERSION AS OF 1")


def test_a_table_may_have_any_name_beside_one_with_a_hint() -> None:
    query = parse_query(StatementText(text="SELECT * FROM __t0, a /*+ OPTIONS('k' = 'v') */, __w0, t$files"))
    assert [use.title for use in query.tables] == ["__t0", "a", "__w0", "t$files"]
    assert [dict(use.options) for use in query.tables] == [{}, {"k": "v"}, {}, {}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT * @ FROM d.t /*+ OPTIONS('s3.secret-key' = 'abc') */", "column 17: found 'd': expected a clause"),
        ("SELECT * JOINFROM t VERSION AS OF 1 u, v", "column 19: found 't'"),
        ("SELECT * PARTITION T$file_key_ranges", "column 20: found 'T': expected BY after PARTITION"),
        ("DELETE FROM d.t WHERE k WINDOW (1)", "column 25: found 'WINDOW'"),
        ("SELECT /*+ OPTIONS('a' = 'b') */ * FROM t", "column 8: this hint follows no table"),
        ("SELECT * FROM /*+ OPTIONS('a' = 'b') */ t", "column 15: this hint follows no table"),
        ("SELECT * FROM t WHERE /*+ OPTIONS('a' = 'b') */ a = 1", "column 23: this hint follows no table"),
        ("DELETE /*+ OPTIONS('a' = 'b') */ FROM t WHERE a = 1", "column 8: this hint follows no table"),
        ("SELECT * FROM a..t", "column 15: expected a table's name"),
        ("DELETE FROM a..t WHERE id = 1", "column 13: expected a table's name"),
        ("SELECT * FROM ..t", "column 17: expected a table's name"),
        ("SELECT * FROM {a.b.c", "column 18: expected a table's name"),
        ("SELECT * FROM @a.b.c", "expected a table's name"),
        ("SELECT * FROM t TIMESTAMP AS OF /*+ OPTIONS('a' = 'b') */ '2026-01-01'", "column 33: this hint follows no"),
        ("ALTER TABLE t SET ('a' = 'b') /*+ OPTIONS('a' = 'b') */", "column 31: this hint follows no table"),
        ("INSERT INTO t (a) /*+ OPTIONS('a' = 'b') */ VALUES (1)", "column 19: this hint follows no table"),
        ("INSERT INTO t /*+ OPTIONS('a' = 'b') */ /*+ BROADCAST(t) */ VALUES (1)", "column 41: expected the hint"),
    ],
)
def test_an_error_is_at_the_word_at_fault_and_shows_no_option(text: str, says: str) -> None:
    with pytest.raises(InvalidSqlError, match=says) as caught:
        parse_script(text)
    assert "abc" not in str(caught.value)


_WORDS = re.findall(
    r"\S+",
    r"""
SELECT * FROM WHERE t d . $ , ( ) [ ] { } = - + 1 1.5 'x' `y` "z" AS OF BY ON AND NOT IN ; @ \ /* -- < > ADD INT ROW<
JOIN VALUES WITH LIKE NULL UNION USING SET => END window( WINDOW TABLE( TUMBLE( TABLE DESCRIPTOR(at) CASE WHEN MERGE
INTO DELETE UPDATE INSERT CREATE ALTER PARTITION CALL sys.x( GROUP LIMIT ORDER VERSION TIMESTAMP INTERVAL DAY FOR
SYSTEM_TIME
""",
)
_PHRASES = ("VERSION AS OF 1", "FOR SYSTEM_TIME AS OF '2026-01-01'", "INTERVAL '1' DAY", "/*+ OPTIONS('a' = 'b') */")


@given(st.lists(st.sampled_from([*_WORDS, *_PHRASES]), min_size=1, max_size=12))
def test_a_text_is_read_or_refused_with_an_error_of_ours(words: list[str]) -> None:
    with suppress(TableStoreError):
        parse_script(" ".join(words))
