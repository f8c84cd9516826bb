"""A few cases of ``make fuzz``, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import Catalog
from penstock.testing.differential.run import run_case

if TYPE_CHECKING:
    from pathlib import Path


def test_random_tables_read_as_plain_python_has_them(tmp_path: Path) -> None:
    # The last four showed literals that no FLOAT holds, and texts that a widening cut.
    catalog = Catalog(str(tmp_path))
    catalog.create_database("fuzz")
    assert [finding for seed in (*range(8), 18, 71, 88, 150) for finding in run_case(catalog, seed)] == []
