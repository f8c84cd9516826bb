"""The methods of a table and of its namespaces."""

from __future__ import annotations

import inspect
from itertools import combinations
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog, Table, TableInspection, TableMaintenance, TableVersions

if TYPE_CHECKING:
    from pathlib import Path

KINDS = (Table, TableInspection, TableMaintenance, TableVersions)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("n", pa.int64())]), options={"bucket": "-1"})
    table.append([{"n": 1}])
    return table


def public_names(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("one", "other"), [*combinations(KINDS, 2)])
def test_no_method_has_two_names(one: type, other: type) -> None:
    assert public_names(one) & public_names(other) == set()


def test_what_every_table_needs_is_a_method_of_the_table() -> None:
    names = """append overwrite truncate drop_partitions delete update merge to_arrow to_batches to_pandas to_spark
        explain read_stream write_stream follow wait_until compact expire_snapshots remove_orphan_files create_tag
        rollback_to snapshots files partitions"""
    assert set(names.split()) <= public_names(Table)


def test_methods_of_namespaces_work_on_their_table(table: Table) -> None:
    table.create_tag("one")
    table.versions.rename_tag("one", "two")
    assert table.inspect.tags()["tag_name"].to_pylist() == ["two"]
    assert table.inspect.history()["snapshot_id"].to_pylist() == table.snapshots()["snapshot_id"].to_pylist() == [1]


def test_a_warning_about_an_option_names_the_callers_line(table: Table) -> None:
    for call in (table.compact, table.maintenance.compact_in_background, table.to_arrow):
        with pytest.warns(UserWarning, match="no-such-option") as found:
            call(options={"no-such-option": "1"})
        assert found[0].filename == __file__
