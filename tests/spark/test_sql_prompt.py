"""The prompt of ``penstock sql`` with Spark, as a process at a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import wait_for
from tests.unit.cli.terminal import CTRL_C, CTRL_D, ENTER, Terminal, at_terminal

import penstock
from penstock import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A table ``a`` of one row, and an empty one ``b``."""
    catalog = Catalog(str(tmp_path / "warehouse"))
    penstock.sql(None, catalog, "CREATE TABLE a (id BIGINT); CREATE TABLE b (id BIGINT); INSERT INTO a VALUES (1)")
    return catalog


@contextmanager
def prompt(catalog: Catalog, folder: Path) -> Iterator[tuple[Terminal, Callable[[str], None]]]:
    """Show a prompt; yield the terminal and what runs a statement at it."""
    environment = {"XDG_STATE_HOME": str(folder), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with at_terminal("-w", catalog.warehouse, "sql", "--spark", "local[2]", environment=environment) as terminal:
        terminal.wait_for("default>")
        yield terminal, lambda statement: terminal.type(f"{statement};{ENTER}")


def test_what_runs_is_interrupted_and_the_prompt_goes_on(catalog: Catalog, tmp_path: Path) -> None:
    with prompt(catalog, tmp_path) as (terminal, run):
        # One task, as it has a processor for itself until it is interrupted.
        run("SELECT COUNT(*) FROM range(0, 100000000000000, 1, 1) WHERE id % 7 = 3")
        time.sleep(4)
        terminal.type(CTRL_C)
        terminal.wait_for("interrupted", seconds=20)
        terminal.wait_for("default>")

        run("SELECT 1 / 0")
        assert "{" not in terminal.wait_for("error: Division by zero")
        terminal.wait_for("default>")

        run("SET 'execution.runtime-mode' = 'streaming'")
        terminal.wait_for("set execution.runtime-mode")
        run("SELECT id * 1000 AS n FROM a")
        terminal.wait_for("1000")
        penstock.sql(None, catalog, "INSERT INTO a VALUES (2)")
        terminal.wait_for("2000")
        terminal.type(CTRL_C)
        terminal.wait_for("interrupted", seconds=20)
        terminal.wait_for("default>")

        # Queries that go on beside the prompt: one that fails, and one that ends with it.
        run("INSERT INTO b SELECT CAST(raise_error('no more') AS BIGINT) FROM a")
        terminal.wait_for("a query adds to default.b")
        time.sleep(5)
        run("SHOW TABLES")
        terminal.wait_for("has failed: no more")
        run("INSERT INTO b SELECT id FROM a")
        terminal.wait_for("a query adds to default.b")
        run("SELECT 40 + 2 AS answer")
        assert "error" not in terminal.wait_for("42")
        wait_for(lambda: catalog.load_table("default.b").to_arrow().num_rows, 2)
        terminal.type(CTRL_D)
        assert "Traceback" not in terminal.wait_for("stopping 1 streaming inserts")
        assert terminal.process.wait(30) == 0
