"""The prompt of ``penstock sql`` as a process at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.terminal import CTRL_C, CTRL_D, ENTER, TAB, UP, at_terminal

from penstock import Catalog

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", "order_id BIGINT, product STRING")
    return catalog.warehouse


def test_a_person_types_completes_clears_and_leaves(warehouse: str, tmp_path: Path) -> None:
    with at_terminal("-w", warehouse, "sql", environment={"XDG_STATE_HOME": str(tmp_path)}) as terminal:
        terminal.wait_for("default>")
        terminal.type(f"USE shop;{ENTER}")
        terminal.wait_for("using database shop")
        terminal.wait_for("shop>")
        terminal.type("DROP DATABASE shop CASCADE")
        terminal.wait_for("CASCADE")
        terminal.type(CTRL_C)
        terminal.wait_for("shop>")
        terminal.type(f"SELECT *{ENTER}FROM ord")
        terminal.wait_for("FROM ord")
        terminal.type(TAB)
        terminal.wait_for_input("FROM orders")
        terminal.type(f";{ENTER}")
        terminal.wait_for("order_id   product")
        terminal.wait_for("shop>")
        terminal.type(CTRL_D)
        assert terminal.process.wait(10) == 0


def test_statements_of_an_earlier_prompt_come_back(warehouse: str, tmp_path: Path) -> None:
    for keys in (f"SHOW{ENTER}DATABASES;{ENTER}", UP + ENTER):
        with at_terminal("-w", warehouse, "sql", environment={"XDG_STATE_HOME": str(tmp_path)}) as terminal:
            terminal.wait_for("default>")
            terminal.type(keys)
            terminal.wait_for("database name")
            terminal.wait_for("shop")
            terminal.wait_for("default>")
            terminal.type(f"quit{ENTER}")
            assert terminal.process.wait(10) == 0
