from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, new_table, on, rows

from penstock.clocks import local_now
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError
from penstock.table.expire.tags import delete_tag
from penstock.table.store import MetadataStore
from penstock.table.tags.store import create_tag
from penstock.testing.file_io import FailingFileIO, Fault, Operation

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


def with_snapshots(count: int = 3) -> TableRef:
    ref = new_table()
    for number in range(1, count + 1):
        committer(ref).commit(append(rows(number)))
    return ref


def test_a_tag_names_the_latest_snapshot_or_the_one_given() -> None:
    store = MetadataStore(with_snapshots())
    create_tag(store, "now")
    create_tag(store, "then", snapshot_id=1)
    assert store.list_tags() == ("now", "then")
    assert store.load_tag("now").snapshot == store.load_snapshot(3)
    assert store.load_tag("then").snapshot == store.load_snapshot(1)
    assert store.load_tag("now").retained_seconds is None


def test_a_tag_outlives_its_snapshot() -> None:
    ref = with_snapshots()
    store = MetadataStore(ref)
    snapshot = store.load_snapshot(1)
    create_tag(store, "then", snapshot_id=1)
    ref.file_io.delete(ref.layout.snapshot_path(1))
    assert MetadataStore(ref).load_tag("then").snapshot == snapshot


def test_a_tag_that_ends_stores_its_time_and_the_local_clock() -> None:
    store = MetadataStore(with_snapshots())
    now = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=UTC)
    tag = create_tag(store, "week", time_retained="7 d", now=lambda: now)
    assert tag.retained_seconds == Decimal(7 * 86_400)
    assert tag.create_time == 1_774_751_400_123_456_000
    assert store.load_tag("week") == tag


def test_the_local_clock_is_that_of_the_wall() -> None:
    wall = datetime.now().astimezone().replace(tzinfo=UTC)
    assert abs((local_now() - wall).total_seconds()) < 5


def test_a_tag_is_not_replaced() -> None:
    store = MetadataStore(with_snapshots())
    create_tag(store, "mine", snapshot_id=1)
    with pytest.raises(AlreadyExistsError, match=r"db\.t has a tag 'mine' already; delete it first"):
        create_tag(store, "mine", snapshot_id=2)
    assert store.load_tag("mine").snapshot.id == 1


@pytest.mark.parametrize("name", ["", "  ", "a/b", "..", ".", "12"])
def test_names_that_are_blank_paths_or_numbers_are_refused(name: str) -> None:
    store = MetadataStore(with_snapshots(1))
    with pytest.raises(InvalidOptionError, match=r"table db\.t: "):
        create_tag(store, name)
    assert store.list_tags() == ()


def test_there_must_be_something_to_tag() -> None:
    with pytest.raises(NotFoundError, match="no snapshot to tag; append to it first"):
        create_tag(MetadataStore(new_table()), "t")
    with pytest.raises(NotFoundError, match=r"snapshot 9 does not exist yet"):
        create_tag(MetadataStore(with_snapshots()), "t", snapshot_id=9)


def test_a_deleted_tag_is_gone_and_its_name_is_free() -> None:
    ref = with_snapshots()
    store = MetadataStore(ref)
    create_tag(store, "t", snapshot_id=2)
    assert delete_tag(ref, store, "t") == store.load_snapshot(2)
    assert store.list_tags() == ()
    with pytest.raises(NotFoundError, match=r"no tag 't'; it has no tags"):
        delete_tag(ref, store, "t")
    create_tag(store, "t", snapshot_id=3)
    assert store.load_tag("t").snapshot.id == 3


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REFUSED])
def test_a_tag_whose_answer_was_lost_is_found_to_be_there(fault: Fault) -> None:
    ref = with_snapshots()
    counting = FailingFileIO(ref.file_io)
    create_tag(MetadataStore(on(ref, counting)), "first")
    at = [call.operation for call in counting.calls].index(Operation.PUT_IF_ABSENT) + 1
    store = MetadataStore(on(ref, FailingFileIO(ref.file_io, fault, at)))
    if fault is Fault.ANSWER_LOST:
        create_tag(store, "second")
    else:
        with pytest.raises(StorageError, match="made to fail"):
            create_tag(store, "second")
    assert ref.file_io.exists(ref.layout.tag_path("second")) is (fault is Fault.ANSWER_LOST)
