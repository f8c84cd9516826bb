"""Procedures that delete what is not needed, and for marks and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import InvalidOptionError, LeaseHeldError, NotFoundError
from penstock.format.snapshot import CommitKind
from penstock.table.lease import acquire

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

    from penstock import Table


def append(sql: Sql, times: int) -> None:
    for number in range(times):
        sql(f"INSERT INTO orders VALUES ({number}, 1, NULL, 'a')")  # noqa: S608 - of this file


def test_expiration_of_snapshots_and_partitions(shop: Sql) -> None:
    append(shop, 4)
    (row,) = shop.rows("CALL sys.expire_snapshots(`table` => 'orders', retain_max => 2, retain_min => 1)")
    assert row["expired_snapshots"] == 3
    shop("INSERT INTO orders VALUES (1, 1, NULL, '2001-01-01')")
    rows = shop.rows("CALL sys.expire_partitions('orders', '1 d', 'yyyy-MM-dd', '$dt')")
    assert rows == [{"expired_partitions": "dt=2001-01-01"}]


def test_partitions_are_marked_done(shop: Sql) -> None:
    assert shop.rows("CALL sys.mark_partition_done(`table` => 'orders', partitions => 'dt=a;dt=b')") == [
        {"partition": "dt=a"},
        {"partition": "dt=b"},
    ]
    ref = shop.catalog.load_table("shop.orders")._ref
    assert ref.file_io.exists(f"{ref.location}/dt=a/_SUCCESS")
    with pytest.raises(InvalidOptionError, match="needs the argument partitions"):
        shop("CALL sys.mark_partition_done('orders')")


def test_orphans_of_a_whole_database(shop: Sql) -> None:
    shop("CREATE TABLE other (id INT)")
    rows = shop.rows("CALL sys.remove_orphan_files(`table` => 'shop.*', dry_run => TRUE)")
    assert [row["table"] for row in rows] == ["shop.orders", "shop.other"]


def test_a_consumer_is_set_and_deleted(shop: Sql) -> None:
    shop("CALL sys.reset_consumer('orders', 'me', 1)")
    assert shop.rows("SELECT * FROM orders$consumers") == [{"consumer_id": "me", "next_snapshot_id": 1}]
    shop("CALL sys.reset_consumer(`table` => 'orders', consumer_id => 'me')")
    assert shop.rows("SELECT * FROM orders$consumers") == []
    shop("CALL sys.reset_consumer(table => 'orders', consumerId => 'you', nextSnapshotId => 1)")
    assert shop.rows("SELECT * FROM orders$consumers") == [{"consumer_id": "you", "next_snapshot_id": 1}]
    shop("CALL sys.clear_consumers(table => 'orders', includingConsumers => 'yo.*')")
    assert shop.rows("SELECT * FROM orders$consumers") == []


def test_options_of_the_call_count_for_an_expiration(shop: Sql) -> None:
    append(shop, 4)
    options = "snapshot.num-retained.min=1,snapshot.num-retained.max=3"
    (row,) = shop.rows(f"CALL sys.expire_snapshots(`table` => 'orders', options => '{options}')")
    assert row["expired_snapshots"] == 2
    shop("INSERT INTO orders VALUES (1, 1, NULL, '2001-01-01')")
    options = "partition.expiration-time=1 d,partition.timestamp-pattern=$dt,partition.timestamp-formatter=yyyy-MM-dd"
    rows = shop.rows(f"CALL sys.expire_partitions(`table` => 'orders', options => '{options}')")
    assert rows == [{"expired_partitions": "dt=2001-01-01"}]


def test_orphans_take_the_arguments_of_flink(shop: Sql) -> None:
    call = "CALL sys.remove_orphan_files('shop.orders', '', TRUE, 4, 'DISTRIBUTED')"
    assert shop.rows(call) == [{"table": "shop.orders", "orphan_files": 0, "orphan_bytes": 0}]
    with pytest.raises(InvalidOptionError, match="'local' or 'distributed' for mode"):
        shop("CALL sys.remove_orphan_files(`table` => 'orders', mode => 'remote')")


def test_files_that_are_gone_leave_the_table(shop: Sql) -> None:
    shop("INSERT INTO orders VALUES (3, 1, NULL, 'a'), (4, 1, NULL, 'c')")
    table = shop.catalog.load_table("shop.orders")
    lost = [row["file_path"] for row in table.files().to_pylist() if row["partition"] == "{a}"]
    lost = [path for path in lost if path in {each["file_path"] for each in table.files(snapshot_id=1).to_pylist()}]
    table._ref.file_io.delete(lost[0])
    call = "CALL sys.remove_unexisting_files(`table` => 'orders'"
    assert shop.rows(f"{call}, dry_run => TRUE)") == [{"path": lost[0], "lost_rows": 1}]
    assert table.latest_snapshot().id == 2  # type: ignore[union-attr]
    assert shop.rows(f"{call}, parallelism => 2)") == [{"path": lost[0], "lost_rows": 1}]
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.commit_kind, latest.delta_record_count, latest.total_record_count) == (CommitKind.OVERWRITE, -1, 3)
    assert sorted(row["id"] for row in shop.rows("SELECT id FROM orders")) == [2, 3, 4]
    assert shop.rows(f"{call})") == []
    assert table.latest_snapshot() == latest


@pytest.mark.parametrize("name", ["orders", "orders$branch_b"])
def test_manifests_that_are_gone_leave_the_table(shop: Sql, name: str) -> None:
    shop("CALL sys.create_branch('orders', 'b')")
    for number in (7, 8, 9):
        shop(f"INSERT INTO `{name}` VALUES ({number}, 1, NULL, 'z')")  # noqa: S608 - of this file
    table = shop.catalog.load_table(f"shop.{name}")
    before = table_ids(shop, name)
    lost = next(
        row["file_name"]
        for row in table.inspect.manifests().to_pylist()
        if row["num_added_files"] == 1 and row["file_name"] not in names_of_manifests(table, -2)
    )
    path = table._ref.layout.manifest_path(lost)
    table._ref.file_io.delete(path)
    call = f"CALL sys.remove_unexisting_manifests(`table` => '{name}'"
    gone = [{"path": path, "added_files": 1, "deleted_files": 0}]
    latest = table.latest_snapshot()
    assert shop.rows(f"{call}, dry_run => TRUE)") == gone
    assert table.latest_snapshot() == latest
    with pytest.raises(NotFoundError, match="manifest"):
        shop.catalog.load_table(f"shop.{name}").to_arrow()
    assert shop.rows(f"{call})") == gone
    after = table.latest_snapshot()
    assert latest is not None
    assert after is not None
    assert (after.id, after.commit_kind, after.delta_record_count) == (latest.id + 1, CommitKind.OVERWRITE, 0)
    ids = table_ids(shop, name)
    assert (after.total_record_count, ids) == (len(before) - 1, before[:-1])
    assert shop.rows(f"{call})") == []
    shop(f"INSERT INTO `{name}` VALUES (10, 1, NULL, 'z')")  # noqa: S608 - of this file
    assert table_ids(shop, name) == [*ids, 10]


def test_files_whose_deletion_was_lost_are_live_again(shop: Sql) -> None:
    table = shop.catalog.load_table("shop.orders")
    shop("INSERT INTO orders VALUES (7, 1, NULL, 'z')")
    known = names_of_manifests(table, -1)
    ids = table_ids(shop, "orders")
    shop("DELETE FROM orders WHERE id = 7")
    (lost,) = names_of_manifests(table, -1) - known
    table._ref.file_io.delete(table._ref.layout.manifest_path(lost))
    (found,) = shop.catalog.load_table("shop.orders").maintenance.remove_missing_manifests(dry_run=False)
    assert found.deleted_files == 1
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.total_record_count == len(ids)
    assert table_ids(shop, "orders") == ids


def table_ids(sql: Sql, name: str) -> list[int]:
    """Ids of all rows of a table or a branch, in order."""
    return sorted(row["id"] for row in sql.rows(f"SELECT id FROM `{name}`"))  # noqa: S608 - of this file


def names_of_manifests(table: Table, place: int) -> set[str]:
    """Names of the manifests of the snapshot at a place among all."""
    snapshot_id = table.snapshots()["snapshot_id"].to_pylist()[place]
    return {str(name) for name in table.inspect.manifests(snapshot_id=snapshot_id)["file_name"].to_pylist()}


def test_consumers_are_cleared_by_their_names(shop: Sql) -> None:
    for name in ("job-1", "job-2", "job-23", "me"):
        shop(f"CALL sys.reset_consumer('orders', '{name}', 1)")
    shop("CALL sys.clear_consumers(`table` => 'orders', including_consumers => 'job-.', excluding_consumers => '.*1')")
    assert [row["consumer_id"] for row in shop.rows("SELECT * FROM orders$consumers")] == ["job-1", "job-23", "me"]
    with pytest.raises(InvalidOptionError, match="not a regular expression"):
        shop("CALL sys.clear_consumers('orders', '(')")
    ref = shop.catalog.load_table("shop.orders")._ref
    lease = acquire(ref.file_io, ref.location, "consumer-job-23")
    with pytest.raises(LeaseHeldError, match="'job-23', which are kept"):
        shop("CALL sys.clear_consumers('orders')")
    lease.release()
    assert [row["consumer_id"] for row in shop.rows("SELECT * FROM orders$consumers")] == ["job-23"]
    shop("CALL sys.clear_consumers('orders')")
    assert shop.rows("SELECT * FROM orders$consumers") == []
