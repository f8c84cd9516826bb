"""Which table is which."""

from __future__ import annotations

import penstock
from penstock.table.identity import load_identity


def test_tables_of_the_same_columns_made_at_once_are_different_ones() -> None:
    catalog = penstock.Catalog("memory://identity/w")
    catalog.create_database("d")
    tables = [catalog.create_table(f"d.t{number}", "n BIGINT") for number in range(50)]
    assert len({load_identity(table._ref) for table in tables}) == 50
