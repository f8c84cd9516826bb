"""``penstock sql``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command


def test_scripts_and_statements_run_one_after_another_in_one_session(penstock: Command, tmp_path: Path) -> None:
    script = tmp_path / "make.sql"
    script.write_text("USE shop; CREATE TABLE lines (id BIGINT, name STRING)", encoding="utf-8")
    result = penstock(
        "sql", "-f", str(script), "-e", "INSERT INTO lines VALUES (1, 'a'), (2, NULL)", "-e", "SHOW TABLES"
    )
    assert result.stdout == (
        "using database shop\ncreated table shop.lines\nappended to shop.lines: snapshot 1, +2 rows, 2 in all\n"
        "table name\n──────────\nlines\n"
    )
    assert penstock.rows("shop.lines") == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_a_script_may_come_from_standard_input(penstock: Command) -> None:
    penstock("sql", "-f", "-", input="CREATE TABLE shop.t (id INT);\nINSERT INTO shop.t VALUES (5)")
    assert penstock.json("sql", "-e", "SELECT id AS x FROM shop.t WHERE id > 1") == [{"x": 5}]


def test_programs_get_an_array_for_each_statement(orders: Command) -> None:
    lines = orders("sql", "-e", "USE shop; SHOW TABLES", "--format", "json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [[{"message": "using database shop"}], [{"table name": "orders"}]]


def test_people_see_a_hundred_rows_and_programs_all(orders: Command) -> None:
    values = ", ".join(f"({number}, NULL, NULL, 'a')" for number in range(120))
    orders("sql", "--quiet", "-e", f"INSERT INTO shop.orders VALUES {values}")  # noqa: S608 - of this test
    shown = orders("sql", "-e", "SELECT order_id FROM shop.orders")
    assert len(shown.stdout.splitlines()) == 102
    assert "only the first 100 rows; LIMIT or --all shows more" in shown.stderr
    assert len(orders("sql", "--all", "-e", "SELECT order_id FROM shop.orders").stdout.splitlines()) == 122
    assert len(orders.json("sql", "-e", "SELECT order_id FROM shop.orders")) == 120


def test_what_is_not_understood_has_line_and_column_and_changes_nothing(orders: Command) -> None:
    result = orders("sql", "-e", "CREATE DATABASE a;\n SELEC 1", code=2)
    assert result.stderr == "error: line 2, column 2: found 'SELEC': did you mean SELECT?\n"
    assert "a" not in orders.catalog.list_databases()


def test_a_failed_statement_is_named_and_ends_the_command_with_its_code(orders: Command) -> None:
    result = orders("sql", "-e", "CREATE DATABASE a; TRUNCATE TABLE a.t; CREATE DATABASE b", code=3)
    first, second = result.stderr.splitlines()
    assert first == "in the statement at line 1, column 20: TRUNCATE TABLE a.t"
    assert second == "error: there is no table a.t; there are none yet"
    assert orders.catalog.list_databases() == ("a", "shop")


def test_a_query_that_needs_spark_says_how_to_get_it(orders: Command) -> None:
    result = orders("sql", "-e", "SELECT COUNT(*) FROM shop.orders", code=10)
    assert "--spark 'local[2]'" in result.stderr
    assert "expected WHERE and a condition" in orders("sql", "-e", "DELETE FROM shop.orders", code=2).stderr


def test_the_help_needs_no_parser_of_sql_and_running_names_the_package() -> None:
    command = "import sys; sys.modules['sqlglot'] = None; from penstock.cli.main import main; main()"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", command, "-w", "memory://x/y", "sql", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    assert run("--help").stdout.startswith("Usage: ")
    missing = run("-e", "SHOW DATABASES")
    assert (missing.returncode, "pip install 'penstock[sql]'" in missing.stderr) == (10, True)


def test_something_has_to_be_given(penstock: Command, tmp_path: Path) -> None:
    assert (
        "give statements with -e, or a script with -f; at a terminal there is a prompt too"
        in penstock("sql", code=2).stderr
    )
    assert "cannot be read" in penstock("sql", "-f", str(tmp_path / "nothing.sql"), code=3).stderr


@pytest.mark.parametrize("option", [("--conf", "spark.a=b"), ("--packages", "a:b:c")])
def test_settings_of_spark_need_spark(penstock: Command, option: tuple[str, str]) -> None:
    assert "give --spark too" in penstock("sql", *option, "-e", "SHOW TABLES", code=2).stderr


def test_spark_without_java_is_one_line(penstock: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    result = penstock("sql", "--spark", "local[1]", "-e", "SHOW TABLES", code=10)
    assert result.stderr.startswith("error: Spark needs Java 17 or newer")
    assert result.stderr.count("\n") == 1


def test_a_text_of_several_lines_is_printed_as_it_is(penstock: Command) -> None:
    penstock("create", "shop.t", "a INT")
    text = penstock("sql", "-e", "SHOW CREATE TABLE shop.t").stdout
    assert text.startswith("CREATE TABLE `shop`.`t` (\n  `a` INT\n)")
    assert "\\n" not in penstock("sql", "-e", "EXPLAIN SELECT * FROM shop.t").stdout
    assert penstock.json("sql", "-e", "SHOW CREATE TABLE shop.t") == [{"result": text.removesuffix("\n")}]
