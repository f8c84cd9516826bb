from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, new_table, rows

from penstock.errors import FormatError, InvalidOptionError, LeaseHeldError, NotFoundError
from penstock.io.memory import MemoryFileIO
from penstock.table.lease import acquire
from penstock.table.location import TableLocation
from penstock.table.store import MetadataStore
from penstock.table.stream import consumers as module
from penstock.table.stream.consumers import (
    delete_consumer,
    expire_consumers,
    lease_of,
    record_progress,
    reset_consumer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.lease import Lease


def with_snapshots(count: int = 5) -> MetadataStore:
    ref = new_table()
    for number in range(1, count + 1):
        committer(ref).commit(append(rows(number)))
    return MetadataStore(ref, sleep=lambda _: None)


def hold(store: MetadataStore, consumer_id: str) -> Lease:
    return acquire(store.file_io, store.location, lease_of(consumer_id))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would wait for a lease is told so instead."""

    def give_up(_seconds: float) -> None:
        raise LeaseHeldError("in use")

    def acquire_now(*arguments: object) -> Lease:
        return acquire(*arguments, sleep=give_up)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "acquire", acquire_now)


def test_progress_is_kept_as_paimon_writes_it() -> None:
    store = with_snapshots()
    assert record_progress(store, "nightly", 4) == 4
    assert store.file_io.read(store.layout.consumer_path("nightly")) == b'{\n  "nextSnapshot" : 4\n}'
    assert store.list_consumers() == ("nightly",)
    assert store.load_consumer("nightly") == 4


def test_progress_never_moves_back() -> None:
    store = with_snapshots()
    record_progress(store, "c", 4)
    assert record_progress(store, "c", 2) == 4
    assert store.load_consumer("c") == 4
    assert record_progress(store, "c", 6) == 6


def test_progress_that_stalls_keeps_the_consumer_from_expiring() -> None:
    now = [1_000]
    file_io = MemoryFileIO("young-consumer", lambda: now[0])
    store = MetadataStore(TableLocation(file_io=file_io, location="t", name="t"))
    record_progress(store, "c", 4)
    now[0] = 5_000
    record_progress(store, "c", 4)
    assert [status.modified_millis for status in file_io.list("t/consumer")] == [5_000]
    file_io.discard()


@pytest.mark.parametrize("consumer_id", ["", " ", "a/b", "..", "."])
@pytest.mark.parametrize("change", [record_progress, reset_consumer])
def test_ids_that_are_blank_or_paths_are_refused(
    consumer_id: str, change: Callable[[MetadataStore, str, int], object]
) -> None:
    store = with_snapshots(1)
    with pytest.raises(InvalidOptionError, match=r"table db\.t: '.*' is not a valid name for a consumer"):
        change(store, consumer_id, 1)
    assert store.list_consumers() == ()


def test_a_position_below_the_first_snapshot_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="ids begin at 1"):
        record_progress(with_snapshots(1), "c", 0)


def test_a_reset_moves_both_ways_and_makes_a_consumer() -> None:
    store = with_snapshots()
    reset_consumer(store, "c", 6)
    assert store.load_consumer("c") == 6
    reset_consumer(store, "c", 1)
    assert store.load_consumer("c") == 1


def test_a_reset_stays_within_what_can_be_read() -> None:
    store = with_snapshots()
    store.file_io.delete(store.layout.snapshot_path(1))
    store.file_io.delete(f"{store.location}/snapshot/EARLIEST")
    for wrong in (1, 7):
        with pytest.raises(NotFoundError, match=f"cannot continue at snapshot {wrong}: choose one from 2 to 6"):
            reset_consumer(store, "c", wrong)
    assert store.list_consumers() == ()
    reset_consumer(with_snapshots(0), "c", 1)


def test_a_damaged_consumer_is_reported_and_a_reset_mends_it() -> None:
    store = with_snapshots()
    store.file_io.write(store.layout.consumer_path("c"), b'{"nextSn')
    with pytest.raises(FormatError, match="consumer file"):
        record_progress(store, "c", 3)
    with pytest.raises(FormatError):
        list(store.find_consumers())
    reset_consumer(store, "c", 3)
    assert dict(store.find_consumers()) == {"c": 3}


def test_a_deleted_consumer_is_gone_with_its_lease() -> None:
    store = with_snapshots()
    record_progress(store, "c", 3)
    hold(store, "c").release()
    delete_consumer(store, "c")
    assert store.list_consumers() == ()
    assert store.file_io.list(f"{store.location}/.penstock/leases") == ()
    with pytest.raises(NotFoundError, match="no consumer 'c'; it has no consumers"):
        delete_consumer(store, "c")
    record_progress(store, "d", 3)
    with pytest.raises(NotFoundError, match="its consumers are 'd'"):
        delete_consumer(store, "c")


@pytest.mark.usefixtures("impatient")
def test_a_consumer_that_is_read_by_a_query_is_left_alone() -> None:
    store = with_snapshots()
    record_progress(store, "c", 3)
    lease = hold(store, "c")
    with pytest.raises(LeaseHeldError):
        reset_consumer(store, "c", 1)
    with pytest.raises(LeaseHeldError):
        delete_consumer(store, "c")
    assert store.load_consumer("c") == 3
    lease.release()
    reset_consumer(store, "c", 1)
    reset_consumer(store, "c", 2)
    assert store.load_consumer("c") == 2


def test_silent_consumers_expire_by_the_age_of_their_files() -> None:
    now = [1_000_000]
    file_io = MemoryFileIO("expiring-consumers", lambda: now[0])
    store = MetadataStore(TableLocation(file_io=file_io, location="t", name="t"))
    for consumer_id in ("a", "b", "used"):
        record_progress(store, consumer_id, 1)
    acquire(file_io, "t", "consumer-used", ttl_ms=10**9)
    now[0] += 60_000
    record_progress(store, "b", 1)
    assert expire_consumers(store, 60_000, clock=lambda: now[0]) == ()
    now[0] += 1
    assert expire_consumers(store, 60_000, clock=lambda: now[0]) == ("a",)
    assert store.list_consumers() == ("b", "used")
    file_io.discard()
