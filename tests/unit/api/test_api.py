"""The methods of a table and of its namespaces."""

from __future__ import annotations

import inspect
from itertools import combinations
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

import penstock
from penstock import Catalog, OptionWarning, Table, TableInspection, TableMaintenance, TableVersions
from penstock.catalog.changes import SetOption

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = (Table, TableInspection, TableMaintenance, TableVersions)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
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


BAD: Final = {"no-such-option": "1"}
WARNED: Final[dict[str, Callable[[Catalog, Table], object]]] = {
    "Catalog": lambda catalog, _: Catalog(catalog.warehouse, {"s3.acces-key": "1"}),
    "create_table": lambda catalog, _: catalog.create_table("db.made", "a INT", options=BAD),
    "create_table of rows": lambda catalog, _: catalog.create_table(
        "db.made", pa.table({"a": pa.array([1])}), options=BAD
    ),
    "alter_table": lambda catalog, _: catalog.alter_table("db.t", SetOption(key="no-such-option", value="1")),
    "with_options": lambda _, table: table.with_options(BAD),
    "load_table with options": lambda catalog, _: catalog.load_table("db.t").with_options(BAD).to_arrow(),
    "to_arrow": lambda _, table: table.to_arrow(options=BAD),
    "to_pandas": lambda _, table: table.to_pandas(options=BAD),
    "to_polars": lambda _, table: table.to_polars(options=BAD),
    "to_batches": lambda _, table: list(table.to_batches(options=BAD)),
    "to_duckdb": lambda _, table: table.to_duckdb(options=BAD),
    "to_dataset": lambda _, table: table.to_dataset(options=BAD),
    "explain": lambda _, table: table.explain(options=BAD),
    "follow": lambda _, table: next(iter(table.follow(options=BAD))),
    "compact": lambda _, table: table.compact(options=BAD),
    "compact_in_background": lambda _, table: table.maintenance.compact_in_background(options=BAD),
    "sql": lambda catalog, _: penstock.sql(None, catalog, "SELECT * FROM db.t /*+ OPTIONS('no-such-option'='1') */"),
    "sql CREATE TABLE": lambda catalog, _: penstock.sql(
        None, catalog, "CREATE TABLE db.made (a INT) WITH ('no-such-option' = '1')"
    ),
    "sql ALTER TABLE": lambda catalog, _: penstock.sql(None, catalog, "ALTER TABLE db.t SET ('no-such-option' = '1')"),
    "sql INSERT": lambda catalog, _: penstock.sql(
        None, catalog, "INSERT INTO db.t /*+ OPTIONS('no-such-option'='1') */ VALUES (1)"
    ),
    "sql CALL": lambda catalog, _: penstock.sql(
        None, catalog, "CALL sys.compact(table => 'db.t', options => 'no-such-option=1')"
    ),
}


@pytest.mark.parametrize("way", WARNED)
def test_a_warning_names_the_callers_line(way: str, catalog: Catalog, table: Table) -> None:
    with pytest.warns(OptionWarning, match=r"no-such-option|s3\.acces-key") as found:
        WARNED[way](catalog, table)
    assert {each.filename for each in found} == {__file__}
