"""Statement sets: inserts between BEGIN and END."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import InvalidSqlError, UnsupportedFeatureError
from penstock.dialect.parse.parser import parse_script
from penstock.dialect.parse.statements import Insert
from penstock.dialect.run.rows import place_for
from penstock.dialect.settings import read_settings
from penstock.dialect.state import SqlState

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql


@pytest.fixture
def two(sql: Sql) -> Sql:
    sql("CREATE TABLE a (k INT); CREATE TABLE b (k INT)")
    return sql


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a VALUES (1); INSERT INTO b VALUES (2); END;",
        "execute statement set\nbegin\n  insert into a values (1);\n  -- and then\n  insert into b values (2);\nend",
        "BEGIN STATEMENT SET; INSERT INTO a VALUES (1); INSERT INTO b VALUES (2); END; SELECT * FROM a",
    ],
)
def test_all_inserts_of_a_set_are_run(two: Sql, text: str) -> None:
    two(text)
    assert two.rows("SELECT * FROM a") == [{"k": 1}]
    assert two.rows("SELECT * FROM b") == [{"k": 2}]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a VALUES (1)", InvalidSqlError, "line 1, column 1: .* never closed"),
        ("BEGIN STATEMENT SET; SELECT * FROM a; END", InvalidSqlError, "column 22: a statement set has INSERT"),
        ("BEGIN STATEMENT SET; BEGIN STATEMENT SET; END", InvalidSqlError, "inside of no other"),
        ("END", UnsupportedFeatureError, "it ends no statement set"),
        ("EXECUTE PLAN 'x'", UnsupportedFeatureError, "expected EXECUTE STATEMENT SET BEGIN"),
    ],
)
def test_what_is_no_set_is_refused_before_anything_runs(two: Sql, text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        two(f"{text}")
    assert two.rows("SELECT * FROM a") == []


def test_errors_inside_of_a_set_have_their_place(two: Sql) -> None:
    with pytest.raises(InvalidSqlError, match="line 2, column 15"):
        two("EXECUTE STATEMENT SET BEGIN\n  INSERT INTO 5; END")


def test_queries_of_a_set_share_no_name_and_no_checkpoint() -> None:
    text = (
        "BEGIN STATEMENT SET; INSERT INTO a SELECT k FROM t; INSERT INTO b SELECT k FROM t; END; INSERT INTO b SELECT 1"
    )
    actions = [each.action for each in parse_script(text)]
    inserts = [each for each in actions if isinstance(each, Insert)]
    assert [each.place_in_set for each in inserts] == [0, 1, None]
    settings = read_settings({"pipeline.name": "my job", "execution.checkpointing.dir": "/points/"})
    state = SqlState()
    places = [place_for(state, settings, each, f"d.{each.name[0]}", "SELECT 1") for each in inserts]
    assert places == [
        ("my job", "/points/my_job"),
        ("my job-d.b-667f399b", "/points/my_job-d.b-667f399b"),
        ("my job", "/points/my_job"),
    ]
    nameless = read_settings({"execution.checkpointing.dir": "/points"})
    assert place_for(state, nameless, inserts[1], "d.b", "SELECT  1") == (None, "/points/d.b-667f399b")
