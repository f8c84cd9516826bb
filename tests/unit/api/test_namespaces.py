"""The namespaces of a table, whose methods are methods of the table too."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog, Table, TableInspection, TableMaintenance, TableReading, TableStreams, TableVersions

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACES = {
    "inspect": TableInspection,
    "maintenance": TableMaintenance,
    "reading": TableReading,
    "streams": TableStreams,
    "versions": TableVersions,
}
METHODS = [(space, name) for space, kind in NAMESPACES.items() for name in vars(kind) if not name.startswith("_")]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("n", pa.int64())]), options={"bucket": "-1"})
    table.append([{"n": 1}])
    return table


@pytest.mark.parametrize(("space", "name"), METHODS)
def test_a_method_of_a_namespace_is_a_method_of_the_table(table: Table, space: str, name: str) -> None:
    own, of_space = getattr(table, name), getattr(getattr(table, space), name)
    assert own.__func__ is of_space.__func__
    assert inspect.getdoc(own) == inspect.getdoc(of_space)
    assert inspect.signature(own) == inspect.signature(of_space)
    assert inspect.signature(getattr(Table, name)) == inspect.signature(getattr(NAMESPACES[space], name))


def test_both_ways_do_the_same(table: Table) -> None:
    table.versions.create_tag("one")
    table.create_tag("two")
    assert table.inspect.tags()["tag_name"].to_pylist() == table.tags()["tag_name"].to_pylist() == ["one", "two"]
    assert table.inspect.history().equals(table.history())


def test_a_warning_about_an_option_names_the_callers_line(table: Table) -> None:
    for compact in (table.compact, table.maintenance.compact):
        with pytest.warns(UserWarning, match="no-such-option") as found:
            compact(options={"no-such-option": "1"})
        assert found[0].filename == __file__
