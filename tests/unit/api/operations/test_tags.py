"""Procedures for tags and rollbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import AlreadyExistsError, InvalidOptionError, NotFoundError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql


def append(sql: Sql, times: int) -> None:
    for number in range(times):
        sql(f"INSERT INTO orders VALUES ({number}, 1, NULL, 'a')")  # noqa: S608 - of this file


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


@pytest.mark.parametrize(
    "call",
    [
        "rollback_to('orders', 2)",
        "rollback(table => 'orders', version => 'two')",
        "rollback(table => 'orders', version => 2)",
        "rollback(table => 'orders', snapshot => 2)",
        "rollback(table => 'orders', tag => 'two')",
    ],
)
def test_rollback_in_the_words_of_flink_1_18_and_of_spark(shop: Sql, call: str) -> None:
    append(shop, 3)
    shop("CALL sys.create_tag(table => 'orders', tag => 'one', snapshot => 2)")
    shop("CALL sys.rename_tag(table => 'orders', tag => 'one', target_tag => 'two')")
    assert shop.rows(f"CALL sys.{call}") == [{"snapshot_id": 2, "removed_snapshots": 2, "removed_tags": 0}]


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


@pytest.fixture
def timed(shop: Sql) -> Sql:
    """The table ``timed`` with snapshots at 1000, 2000 and 3000 ms, whose watermarks are 10, 20 and 30."""
    shop("CREATE TABLE timed (id INT) WITH ('bucket' = '-1', 'write-only' = 'true')")
    committer = open_committer(shop.catalog.load_table("shop.timed")._ref)
    for number in (1, 2, 3):
        committer.clock_millis = lambda millis=number * 1000: millis  # type: ignore[misc]
        committer.commit(
            CommitRequest(commit_user="u", kind=CommitKind.APPEND, watermark=number * 10, commit_empty=True)
        )
    return shop


def tags(sql: Sql, table: str = "timed") -> dict[str, int]:
    found = sql.rows(f"SELECT tag_name, snapshot_id FROM {table}$tags")  # noqa: S608 - of this file
    return {row["tag_name"]: row["snapshot_id"] for row in found}


@pytest.mark.parametrize(("millis", "expected"), [(3000, 3), (2999, 2), (1000, 1)])
def test_rollback_to_the_newest_snapshot_until_a_time(timed: Sql, millis: int, expected: int) -> None:
    call = f"CALL sys.rollback_to_timestamp(`table` => 'shop.timed', `timestamp` => {millis})"
    assert timed.rows(call) == [{"snapshot_id": expected, "removed_snapshots": 3 - expected, "removed_tags": 0}]


def test_no_rollback_to_a_time_before_the_first_snapshot(timed: Sql) -> None:
    with pytest.raises(NotFoundError, match="no snapshot at or before"):
        timed("CALL sys.rollback_to_timestamp('timed', 999)")
    with pytest.raises(InvalidOptionError, match="needs the argument timestamp"):
        timed("CALL sys.rollback_to_timestamp('timed')")


@pytest.mark.parametrize(("millis", "expected"), [(0, 1), (1000, 1), (1001, 2), (3000, 3)])
def test_a_tag_of_the_first_snapshot_since_a_time(timed: Sql, millis: int, expected: int) -> None:
    assert timed.rows(f"CALL sys.create_tag_from_timestamp('timed', 'then', {millis}, '1 d')") == [
        {"tagName": "then", "snapshot": expected, "commit_time": expected * 1000, "watermark": str(expected * 10)}
    ]
    assert tags(timed) == {"then": expected}


@pytest.mark.parametrize(("watermark", "expected"), [(1, 1), (10, 1), (11, 2), (30, 3)])
def test_a_tag_of_the_first_snapshot_that_reached_a_watermark(timed: Sql, watermark: int, expected: int) -> None:
    timed(f"CALL sys.create_tag_from_watermark(`table` => 'timed', tag => 'w', watermark => {watermark})")
    assert tags(timed) == {"w": expected}


def test_no_tag_of_a_time_that_no_snapshot_has_reached(timed: Sql) -> None:
    with pytest.raises(NotFoundError, match="no snapshot was committed at"):
        timed("CALL sys.create_tag_from_timestamp('timed', 'then', 3001)")
    with pytest.raises(NotFoundError, match="no snapshot has a watermark of"):
        timed("CALL sys.create_tag_from_watermark('timed', 'then', 31)")


def test_expired_snapshots_can_be_tagged_while_another_tag_keeps_them(timed: Sql) -> None:
    timed("CALL sys.create_tag('timed', 'first', 1)")
    timed("CALL sys.expire_snapshots(`table` => 'timed', retain_max => 1, retain_min => 1)")
    timed("CALL sys.create_tag_from_timestamp('timed', 'again', 500)")
    timed("CALL sys.create_tag_from_watermark('timed', 'third', 5)")
    timed("CALL sys.create_tag('timed', 'fourth', 1)")
    assert tags(timed) == {"again": 1, "first": 1, "fourth": 1, "third": 1}
    with pytest.raises(NotFoundError, match="snapshot 2"):
        timed("CALL sys.create_tag('timed', 'second', 2)")


def test_a_tag_is_moved_to_another_snapshot(timed: Sql) -> None:
    with pytest.raises(NotFoundError):
        timed("CALL sys.replace_tag('timed', 'one', 1)")
    timed("CALL sys.create_tag('timed', 'one', 1)")
    timed("CALL sys.replace_tag(`table` => 'timed', tag => 'one', snapshot_id => 2, time_retained => '2 d')")
    (row,) = timed.rows("SELECT * FROM timed$tags")
    assert (row["tag_name"], row["snapshot_id"], row["time_retained"]) == ("one", 2, "PT48H")
    timed("CALL sys.replace_tag('timed', 'one')")
    assert tags(timed) == {"one": 3}
    with pytest.raises(NotFoundError, match="snapshot 9"):
        timed("CALL sys.replace_tag('timed', 'one', 9)")
    assert tags(timed) == {"one": 3}


def test_a_moved_tag_lets_the_files_go_that_only_it_kept(shop: Sql) -> None:
    shop("CALL sys.create_tag('orders', 'old', 1); TRUNCATE TABLE orders; INSERT INTO orders VALUES (5, 1, NULL, 'a')")
    shop("CALL sys.expire_snapshots(`table` => 'orders', retain_max => 1, retain_min => 1)")
    table = shop.catalog.load_table("shop.orders")
    assert table.to_arrow(tag="old").num_rows == 2
    shop("CALL sys.replace_tag('orders', 'old')")
    assert table.to_arrow(tag="old").num_rows == 1
    assert table.inspect.fsck(all_snapshots=True).findings == ()


def test_a_tag_gets_another_name(timed: Sql) -> None:
    timed("CALL sys.create_tag('timed', 'one', 1, '3 d')")
    before = timed.rows("SELECT * FROM timed$tags")
    call = "CALL sys.rename_tag(`table` => 'timed', tagName => 'one', targetTagName => 'uno')"
    assert timed.rows(call) == [{"result": "Rename [one] to [uno] successfully."}]
    assert timed.rows("SELECT * FROM timed$tags") == [{**before[0], "tag_name": "uno"}]
    timed("CALL sys.create_tag('timed', 'two', 2)")
    with pytest.raises(AlreadyExistsError, match="'two' already"):
        timed("CALL sys.rename_tag('timed', 'uno', 'two')")
    with pytest.raises(NotFoundError):
        timed("CALL sys.rename_tag('timed', 'one', 'three')")
    with pytest.raises(InvalidOptionError, match="like a snapshot id"):
        timed("CALL sys.rename_tag('timed', 'uno', '7')")
    assert tags(timed) == {"two": 2, "uno": 1}


def test_tags_go_that_were_made_before_a_time(timed: Sql) -> None:
    timed("CALL sys.create_tag('timed', 'kept', 1); CALL sys.create_tag('timed', 'aged', 2, '9 d')")
    assert timed.rows("CALL sys.expire_tags(`table` => 'timed', older_than => '2001-01-01 00:00:00')") == []
    found = timed.rows("CALL sys.expire_tags('timed', '2999-01-01 00:00:00')")
    assert found == [{"expired_tags": "aged"}, {"expired_tags": "kept"}]
    assert tags(timed) == {}


def test_due_tags_are_made_on_request(timed: Sql) -> None:
    assert timed.rows("CALL sys.trigger_tag_automatic_creation('timed')") == [{"result": "Success"}]
    assert tags(timed) == {}
    timed(
        "ALTER TABLE timed SET ('tag.automatic-creation' = 'process-time', 'sink.process-time-zone' = 'UTC');"
        "CALL sys.trigger_tag_automatic_creation(`table` => 'timed')"
    )
    assert tags(timed) == {"1969-12-31": 1}
