"""``scan.fallback-branch``: partitions that a branch does not have come from another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock import UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock import Catalog, Table

FALLBACK = {"scan.fallback-branch": "b"}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return penstock.Catalog(tmp_path)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, dt STRING", partition_by=["dt"])
    table.create_branch("b")
    table.with_options({"branch": "b"}).append([{"k": k, "dt": dt} for k, dt in [(1, "x"), (2, "y"), (3, "z")]])
    return table


def _keys(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.to_arrow(["k"], where, options=FALLBACK)["k"].to_pylist())


def test_partitions_that_are_missing_come_from_the_other_branch(table: Table) -> None:
    assert _keys(table) == [1, 2, 3]
    table.append([{"k": 10, "dt": "x"}, {"k": 11, "dt": "w"}])
    assert _keys(table) == [2, 3, 10, 11]
    assert _keys(table, "dt > 'x'") == [2, 3]
    # The partition is there, even if none of its files holds such a row.
    assert _keys(table, "k = 1") == []
    assert sorted(table.to_arrow(["k"])["k"].to_pylist()) == [10, 11]
    table.drop_partitions({"dt": "x"})
    assert _keys(table) == [1, 2, 3, 11]


def test_another_state_or_other_columns_are_refused(catalog: Catalog, table: Table) -> None:
    table.append([{"k": 10, "dt": "x"}])
    with pytest.raises(UnsupportedFeatureError, match="the latest state only"):
        table.to_arrow(options=FALLBACK, snapshot_id=1)
    with pytest.raises(penstock.NotFoundError, match="no branch 'c'"):
        table.to_arrow(options={"scan.fallback-branch": "c"})
    # Columns of a branch change only with those of the table that it was made of.
    catalog.alter_table("d.t", penstock.AddColumn(column="extra", type="INT"))
    table = catalog.load_table("d.t")
    assert _keys(table) == [2, 3, 10]
    table.create_branch("c")
    catalog.load_table("d.t$branch_c").append([{"k": 4, "dt": "v", "extra": 1}])
    assert table.to_arrow(["extra"], "k = 4", options={"scan.fallback-branch": "c"})["extra"].to_pylist() == [1]
    schema = Path(table.location, "branch/branch-c/schema/schema-1")
    schema.write_text(schema.read_text().replace("extra", "other"))
    with pytest.raises(UnsupportedFeatureError, match="schema 1 that differs here"):
        catalog.load_table("d.t").to_arrow(options={"scan.fallback-branch": "c"})
