"""``CALL sys.compact``, ``compact_database``, ``compact_manifest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql


def append(sql: Sql, times: int) -> None:
    for number in range(times):
        sql(f"INSERT INTO orders VALUES ({number}, 1, NULL, 'a')")  # noqa: S608 - of this file


def test_compact_merges_the_small_files_of_the_partitions_named(shop: Sql) -> None:
    append(shop, 6)
    shop("INSERT INTO orders VALUES (9, 1, NULL, 'b')")
    (row,) = shop.rows("CALL sys.compact(`table` => 'shop.orders', partitions => 'dt=a')")
    assert (row["partition"], row["files_in"], row["files_out"]) == ("dt=a", 7, 1)
    partitions = shop.rows("SELECT partition, file_count FROM orders$partitions")
    assert {each["partition"]: each["file_count"] for each in partitions} == {"dt=a": 1, "dt=b": 2}


def test_compact_takes_its_arguments_by_flinks_places(shop: Sql) -> None:
    append(shop, 6)
    (row,) = shop.rows("CALL sys.compact('orders', '', '', '', 'target-file-size=1 mb', 'dt = ''a''', '', 'FULL')")
    assert (row["partition"], row["files_out"]) == ("dt=a", 1)


def test_compact_database_goes_through_its_tables(shop: Sql) -> None:
    append(shop, 6)
    shop("CREATE TABLE empty (id INT)")
    rows = shop.rows("CALL sys.compact_database(including_databases => 'shop', excluding_tables => 'empty')")
    assert {row["table"] for row in rows} == {"shop.orders"}
    assert sum(row["files_in"] for row in rows) == 7


def test_manifests_are_merged_without_a_change_of_rows(shop: Sql) -> None:
    append(shop, 4)
    before = shop("SELECT * FROM orders")
    call = "CALL sys.compact_manifest(`table` => 'orders'"
    assert shop.rows(f"{call}, dry_run => TRUE)") == [{"manifests_before": 5, "rewritten": 5, "manifests_after": None}]
    assert shop.rows(f"{call})") == [{"manifests_before": 5, "rewritten": 5, "manifests_after": 1}]
    latest = shop.catalog.load_table("shop.orders").latest_snapshot()
    assert latest is not None
    assert (latest.id, latest.commit_kind, latest.delta_record_count) == (6, CommitKind.COMPACT, 0)
    assert pa.Table.equals(shop("SELECT * FROM orders"), before)
    assert shop.rows(f"{call}, options => 'manifest.target-file-size=1 mb')")[0]["rewritten"] == 0
    assert shop("SELECT snapshot_id FROM orders$snapshots").num_rows == 6


def test_existing_files_get_indexes(shop: Sql) -> None:
    append(shop, 2)
    shop("ALTER TABLE orders SET TBLPROPERTIES ('file-index.bitmap.columns' = 'dt')")
    call = "CALL sys.rewrite_file_index(`table` => 'orders', `where` => 'dt = ''a''', dry_run => {dry})"
    (row,) = shop.rows(call.format(dry="true"))
    assert shop.rows(call.format(dry="false")) == [row]
    assert row["written_partitions"] == 1
    assert row["written_indexes"] >= 2
    assert shop.rows(call.format(dry="false")) == [{"written_partitions": 0, "written_indexes": 0}]
