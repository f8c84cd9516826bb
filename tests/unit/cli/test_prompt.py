"""The prompt of ``penstock sql``, in this process: keys go in through a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from penstock.cli.prompt.loop import run_prompt, runs_at_once
from penstock.cli.prompt.words import WordCompleter
from penstock.cli.session import Session
from penstock.dialect.session import run_script
from penstock.dialect.state import SqlState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.cli.conftest import Command

    from penstock import Catalog

CTRL_C, CTRL_D, UP, ENTER = "\x03", "\x04", "\x1b[A", "\r"


@pytest.fixture
def typed(
    orders: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[str, str]]:
    """Type at a prompt; return what it prints and what it says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    orders("sql", "-e", "INSERT INTO shop.orders VALUES (1, 'tea', 2.5, 'a')")

    def run(keys: str) -> tuple[str, str]:
        capsys.readouterr()
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys)
            run_prompt(Session(warehouse=orders.warehouse), orders.catalog, None, show_all=False)
        captured = capsys.readouterr()
        return captured.out, captured.err

    return run


def test_statements_have_lines_until_their_semicolon(typed: Callable[[str], tuple[str, str]]) -> None:
    out, err = typed(ENTER.join(("USE shop;", "SELECT order_id,", "product FROM orders", ";", "quit", "")))
    assert out == "using database shop\norder_id   product\n──────────────────\n       1   tea\n"
    assert err.startswith("SQL on memory://")


def test_errors_are_shown_and_the_session_continues(typed: Callable[[str], tuple[str, str]]) -> None:
    lines = ("SELECT nope FROM shop.orders;", "SELEC 1;", "USE shop; TRUNCATE TABLE x;", CTRL_D)
    out, err = typed(ENTER.join(lines))
    assert out == "using database shop\n"
    assert err.splitlines()[1:] == [
        "error: table shop.orders: no column 'nope'; its columns are order_id, product, price, dt",
        "error: line 1, column 1: found 'SELEC': did you mean SELECT?",
        "in the statement at line 1, column 11: TRUNCATE TABLE x",
        "error: there is no table shop.x; there are orders",
    ]


def test_ctrl_c_clears_what_was_typed_and_ctrl_d_leaves(typed: Callable[[str], tuple[str, str]]) -> None:
    out, _ = typed(f"DROP TABLE shop.orders{CTRL_C}SHOW DATABASES;{ENTER}{CTRL_D}")
    assert out.split() == ["database", "name", "─────────────", "shop"]


def test_earlier_statements_are_remembered_but_for_those_that_begin_with_a_blank(
    typed: Callable[[str], tuple[str, str]], tmp_path: Path
) -> None:
    typed(f"SHOW{ENTER}DATABASES;{ENTER} SET 'pipeline.name' = 'secret';{ENTER}{CTRL_D}")
    history = tmp_path / "penstock" / "sql_history"
    assert "secret" not in history.read_text("utf-8")
    assert history.stat().st_mode & 0o777 == 0o600
    out, _ = typed(f"{UP}{ENTER}{CTRL_D}")
    assert "shop" in out


def test_the_prompt_works_with_a_directory_that_cannot_be_written(
    typed: Callable[[str], tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "using database shop" in typed(f"USE shop;{ENTER}{CTRL_D}")[0]


def test_help_says_what_keys_do(typed: Callable[[str], tuple[str, str]]) -> None:
    assert "Ctrl-C" in typed(f"help{ENTER}quit;{ENTER}")[0]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("", True),
        ("  \n", True),
        ("quit", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT 1 /* ;", False),
        ("-- a comment", True),
    ],
)
def test_enter_runs_whole_statements(text: str, runs: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert runs_at_once(text) is runs


@pytest.fixture
def state(orders: Command) -> Iterator[SqlState]:
    state = SqlState()
    catalog: Catalog = orders.catalog
    with state.attached(catalog, None):
        for _ in run_script(
            state,
            "CREATE DATABASE other; CREATE TABLE other.`odd name` (x INT, `y z` INT, w AS CAST(x AS BIGINT)); USE shop;"
            " CREATE VIEW few AS SELECT product AS p FROM orders; CREATE TABLE topic (k INT) WITH ("
            " 'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json',"
            " 'scan.startup.mode' = 'latest-offset')",
        ):
            pass
        yield state


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM o", ["orders", "other"]),
        ("SELECT * FROM other.", ["`odd name`"]),
        ("INSERT INTO f", ["few"]),
        ("DESCRIBE top", ["topic"]),
        ("USE s", ["shop"]),
        ("SELECT or|  FROM orders", ["order_id", "order"]),
        ("SELECT o.p| FROM orders AS o", ["product", "price"]),
        ("SELECT few.| FROM few", ["p"]),
        ("SELECT `|` FROM other.`odd name`", ["`x`", "`y z`", "`w`"]),
        ("SELECT x FROM a; SELECT | FROM topic", ["k"]),
        ("CALL sys.reset", ["reset_consumer"]),
        ("CALL sys.reset_consumer('orders', next", ["next_snapshot_id"]),
        ("SET 'execution.r", ["execution.runtime-mode"]),
        ("CREATE TABLE t (a INT) WITH ('bucket-k", ["bucket-key"]),
        ("SELECT * FROM orders /*+ OPTIONS('scan.bounded.w", ["scan.bounded.watermark"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic-", ["topic-pattern"]),
        ("CREATE TABLE t (a INT) WITH ('bucket' = '", []),
        ("SELECT * FROM nowhere.", []),
    ],
)
def test_words_names_and_keys_are_completed(state: SqlState, typed: str, found: list[str]) -> None:
    before, _, after = typed.partition("|")
    document = Document(before + after, len(before))
    completions = WordCompleter(state).get_completions(document, CompleteEvent(completion_requested=True))
    texts = [each.text for each in completions]
    if "|" in typed and before.endswith(("SELECT ", " ")):
        texts = texts[: len(found)]
    assert texts == found


def test_an_interrupt_that_comes_with_the_statement_is_not_lost(typed: Callable[[str], tuple[str, str]]) -> None:
    statement = "SELECT order_id FROM shop.orders;"
    out, err = typed(f"{statement}{ENTER}{CTRL_C}SHOW DATABASES;{ENTER}{CTRL_D}")
    assert "order_id" not in out
    assert err.endswith("interrupted\n")
    assert "shop" in out
