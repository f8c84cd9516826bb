"""``CALL sys.…``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import InvalidOptionError, InvalidSqlError, NotFoundError
from penstock.dialect.run.procedures import PROCEDURES
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.request import CommitRequest

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


def test_tags_and_rollback(shop: Sql) -> None:
    append(shop, 2)
    shop("CALL sys.create_tag(`table` => 'orders', tag => 'one', snapshot_id => 1, time_retained => '1 d')")
    shop("CALL sys.create_tag('orders', 'three')")
    assert shop.rows("SELECT tag_name, snapshot_id FROM orders$tags") == [
        {"tag_name": "one", "snapshot_id": 1},
        {"tag_name": "three", "snapshot_id": 3},
    ]
    assert shop.rows("CALL sys.rollback_to(`table` => 'orders', tag => 'one')") == [
        {"snapshot_id": 1, "removed_snapshots": 2, "removed_tags": 1}
    ]
    shop("CALL sys.delete_tag('orders', 'one'); CALL sys.expire_tags('orders')")
    assert shop.rows("SELECT tag_name FROM orders$tags") == []


def test_rollback_to_a_watermark(shop: Sql) -> None:
    append(shop, 1)
    ref = shop.catalog.load_table("shop.orders")._ref
    open_committer(ref).commit(
        CommitRequest(commit_user="u", kind=CommitKind.APPEND, messages=(), watermark=5_000, commit_empty=True)
    )
    append(shop, 2)
    with pytest.raises(InvalidOptionError, match="needs the argument watermark"):
        shop("CALL sys.rollback_to_watermark('orders')")
    with pytest.raises(NotFoundError, match=r"the least is 1970-01-01 00:00:05.000\+00:00 \(5000\)"):
        shop("CALL sys.rollback_to_watermark('orders', 4999)")
    assert shop.rows("CALL sys.rollback_to_watermark(`table` => 'orders', watermark => 6000)") == [
        {"snapshot_id": 5, "removed_snapshots": 0, "removed_tags": 0}
    ]


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


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("sys.compat('orders')", InvalidSqlError, "did you mean sys.compact?"),
        ("sys.compact()", InvalidOptionError, "needs the argument table"),
        ("sys.compact(tabel => 'orders')", InvalidOptionError, "did you mean table?"),
        ("sys.compact('orders', `table` => 'orders')", InvalidOptionError, "'table' twice"),
        ("sys.expire_tags('orders', 1)", InvalidOptionError, "at most 1 arguments: table"),
        ("sys.compact('orders', 'dt')", InvalidOptionError, "expects key=value for partitions, found 'dt'"),
        ("sys.create_tag('orders', 'x', 'first')", InvalidOptionError, "a whole number for snapshot_id"),
        ("sys.remove_orphan_files('orders', 'yesterday')", InvalidOptionError, "a time such as"),
        ("sys.remove_orphan_files('orders', '', 'perhaps')", InvalidOptionError, "TRUE or FALSE for dry_run"),
        ("sys.compact_database(mode => 'parallel')", InvalidOptionError, "'divided' or 'combined'"),
    ],
)
def test_wrong_calls_say_what_is_right(shop: Sql, call: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says.replace("?", r"\?")):
        shop(f"CALL {call}")


def test_every_procedure_begins_with_what_it_works_on() -> None:
    assert {each.parameters[0] for each in PROCEDURES.values()} == {"table", "including_databases"}
