"""System tables of a whole catalog."""

from __future__ import annotations

import uuid

import pytest

import penstock
from penstock import Catalog, NotFoundError


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w", {"table-default.bucket": "1", "s3.secret-key": "hidden"})
    for database in ("a", "b"):
        catalog.create_database(database)
    table = catalog.create_table("a.t", "k INT, dt STRING", partition_by="dt", options={"bucket": "-1"})
    table.append([{"k": 1, "dt": "x"}, {"k": 2, "dt": "y"}, {"k": 3, "dt": "y"}])
    table.maintenance.mark_partitions_done([{"dt": "y"}])
    with pytest.warns(penstock.OptionWarning):
        catalog.create_table("b.u", "k INT", options={"password": "hidden"})
    return catalog


def test_tables_of_all_databases_are_counted(catalog: Catalog) -> None:
    found = catalog.system_table("tables").to_pylist()
    kept = ("database_name", "table_name", "table_type", "partitioned", "primary_key", "record_count", "file_count")
    assert [tuple(row[name] for name in kept) for row in found] == [
        ("a", "t", "table", True, False, 3, 2),
        ("b", "u", "table", False, False, 0, 0),
    ]
    assert [row["owner"] for row in found] == [None, None]
    assert found[0]["file_size_in_bytes"] == sum(catalog.load_table("a.t").files()["file_size_in_bytes"].to_pylist())
    assert found[0]["last_file_creation_time"] > 0


def test_partitions_say_whether_they_are_done(catalog: Catalog) -> None:
    found = catalog.system_table("partitions").to_pylist()
    assert [(row["table_name"], row["partition_name"], row["record_count"], row["done"]) for row in found] == [
        ("t", "dt=x", 1, False),
        ("t", "dt=y", 2, True),
    ]


def test_options_hide_what_is_secret(catalog: Catalog) -> None:
    options = catalog.system_table("all_table_options").to_pylist()
    assert {"database_name": "a", "table_name": "t", "key": "bucket", "value": "-1"} in options
    assert {"database_name": "b", "table_name": "u", "key": "password", "value": "******"} in options
    own = dict(map(tuple, (row.values() for row in catalog.system_table("catalog_options").to_pylist())))
    assert own["table-default.bucket"] == "1"
    assert own["s3.secret-key"] == "******"
    assert own["warehouse"] == catalog.warehouse


def test_a_table_with_damaged_metadata_is_left_out_by_name(catalog: Catalog) -> None:
    ref = catalog.load_table("a.t")._ref
    ref.file_io.write(ref.layout.snapshot_path(1), b"")
    for name in ("tables", "partitions"):
        with pytest.warns(penstock.DamagedFileWarning, match=r"table a\.t is left out: .*snapshot-1"):
            assert "t" not in catalog.system_table(name)["table_name"].to_pylist()
    ref.file_io.write(ref.layout.schema_path(0), b"")
    with pytest.warns(penstock.DamagedFileWarning, match=r"table a\.t is left out: .*schema-0"):
        found = catalog.system_table("all_table_options").to_pylist()
    assert {row["table_name"] for row in found} == {"u"}


def test_sql_reads_them_in_sys(catalog: Catalog) -> None:
    rows = penstock.sql(None, catalog, "SELECT table_name, record_count FROM sys.tables")
    assert rows.to_pylist() == [{"table_name": "t", "record_count": 3}, {"table_name": "u", "record_count": 0}]
    assert penstock.sql(None, catalog, "SELECT * FROM paimon.sys.partitions LIMIT 1").num_rows == 1
    with pytest.raises(penstock.UnsupportedFeatureError, match="shows the catalog as it is"):
        penstock.sql(None, catalog, "SELECT * FROM sys.tables VERSION AS OF 1")
    with pytest.raises(NotFoundError, match=r"no table sys\.users; there are tables, partitions"):
        catalog.system_table("users")
