from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from penstock.errors import InvalidOptionError, LeaseHeldError, StorageError
from penstock.io.memory import MemoryFileIO
from penstock.table import lease as module
from penstock.table.lease import Lease, LeaseFiles, LeaseKeeper, acquire, discard_lease, find_holder
from penstock.table.process import Process, is_surely_dead, this_process
from penstock.testing.file_io import FailingFileIO, Fault, Operation

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "db.db/t/.penstock/leases/consumer-c"


@dataclass
class Clock:
    """Time that passes in ``sleep`` only; ``at`` runs something when a moment is reached."""

    now: int = 1_000_000
    at: tuple[int, object] | None = None

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1000)
        if self.at is not None and self.now >= self.at[0]:
            (_, action), self.at = self.at, None
            action()  # type: ignore[operator]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file_io() -> MemoryFileIO:
    return MemoryFileIO(str(uuid.uuid4()))


def take(file_io: object, clock: Clock, *, ttl_ms: int = 30_000, own_wait_ms: int = 0) -> Lease:
    return acquire(
        file_io,  # type: ignore[arg-type]
        "db.db/t",
        "consumer-c",
        ttl_ms=ttl_ms,
        own_wait_ms=own_wait_ms,
        clock=clock,
        sleep=clock.sleep,
    )


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def names(file_io: MemoryFileIO) -> list[str]:
    return [status.name for status in file_io.list("db.db/t/.penstock/leases")]


def test_a_free_lease_is_acquired_immediately(file_io: MemoryFileIO, clock: Clock) -> None:
    lease = take(file_io, clock)
    assert clock.now == 1_000_000
    assert lease.epoch == 1
    lease.check()
    assert names(file_io) == ["consumer-c-1"]


def test_a_released_lease_is_acquired_immediately_with_the_next_epoch(file_io: MemoryFileIO, clock: Clock) -> None:
    take(file_io, clock).release()
    assert take(file_io, clock).epoch == 2
    assert clock.now == 1_000_000
    assert names(file_io) == ["consumer-c-2"], "older files are gone"


def test_an_expired_lease_is_acquired_immediately(file_io: MemoryFileIO, clock: Clock) -> None:
    take(file_io, clock)
    clock.now += 30_000
    assert take(file_io, clock).epoch == 2
    assert clock.now == 1_030_000


def test_a_lease_shows_whether_its_previous_holder_may_be_alive(
    file_io: MemoryFileIO, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not take(file_io, clock).may_have_rival
    clock.now += 30_000
    paused = take(file_io, clock)
    assert paused.may_have_rival
    paused.release()
    assert not take(file_io, clock).may_have_rival
    monkeypatch.setattr(module, "is_surely_dead", lambda process: process == this_process())
    assert not take(file_io, clock).may_have_rival


def test_acquire_waits_for_a_lease_that_is_not_renewed_to_expire(file_io: MemoryFileIO, clock: Clock) -> None:
    take(file_io, clock)
    clock.now += 10_000
    assert take(file_io, clock).epoch == 2
    assert 1_030_000 <= clock.now <= 1_031_000


def test_a_renewed_lease_is_refused_and_the_error_names_its_holder(file_io: MemoryFileIO, clock: Clock) -> None:
    first = take(file_io, clock)
    clock.at = (1_010_000, first.renew)
    with pytest.raises(LeaseHeldError) as caught:
        take(file_io, clock)
    assert clock.now <= 1_011_000, "told at the first renewal"
    me = this_process()
    assert f"'consumer-c' is in use by process {me.pid} on {me.host} (for 10 s" in str(caught.value)
    assert "try again in 30 s" in str(caught.value)
    first.check()


def test_a_renewed_lease_of_this_process_is_waited_for_as_long_as_the_caller_says(
    file_io: MemoryFileIO, clock: Clock
) -> None:
    first = take(file_io, clock)

    def renew_and_release_later() -> None:
        first.renew()
        clock.at = (1_018_000, first.release)

    clock.at = (1_010_000, renew_and_release_later)
    second = take(file_io, clock, own_wait_ms=20_000)
    assert second.epoch == 2
    assert clock.now <= 1_019_000
    start = clock.now
    clock.at = (start + 5_000, second.renew)
    with pytest.raises(LeaseHeldError, match="is in use by process"):
        take(file_io, clock, own_wait_ms=3_000)
    assert clock.now <= start + 6_000
    second.check()


def test_a_lease_released_during_the_wait_is_acquired(file_io: MemoryFileIO, clock: Clock) -> None:
    first = take(file_io, clock)
    clock.at = (1_005_000, first.release)
    assert take(file_io, clock).epoch == 2
    assert clock.now < 1_007_000


def test_a_fast_clock_of_the_holder_delays_by_at_most_one_lease(file_io: MemoryFileIO, clock: Clock) -> None:
    take(file_io, Clock(now=clock.now + 3_600_000))
    assert take(file_io, clock).epoch == 2
    assert clock.now <= 1_032_000


def test_a_lease_acquired_by_another_process_during_the_wait_is_refused(file_io: MemoryFileIO, clock: Clock) -> None:
    first = take(file_io, clock)
    others: list[Lease] = []

    def encode_reader_options() -> None:
        first.release()
        others.append(take(file_io, clock))

    clock.at = (1_002_000, encode_reader_options)
    with pytest.raises(LeaseHeldError, match="epoch 2"):
        take(file_io, clock)
    others[0].check()


def test_a_holder_that_lost_its_lease_notices_and_changes_nothing(file_io: MemoryFileIO, clock: Clock) -> None:
    first = take(file_io, clock)
    clock.now += 31_000
    second = take(file_io, clock)
    for look in (first.check, first.renew):
        with pytest.raises(LeaseHeldError, match=r"taken over by process \d+ on .* 0 s ago \(epoch 2\)"):
            look()
    first.release()
    second.check()
    assert names(file_io) == ["consumer-c-2"]


def test_a_late_renewal_does_not_regain_a_lost_lease(file_io: MemoryFileIO, clock: Clock) -> None:
    first = take(file_io, clock)
    clock.now += 31_000
    second = take(file_io, clock)
    first._files.write(replace(first._record, expires_millis=clock.now + 30_000))
    second.check()
    with pytest.raises(LeaseHeldError):
        first.check()
    clock.now += 30_000
    assert take(file_io, clock).epoch == 3


def test_an_epoch_that_was_deleted_meanwhile_is_not_taken_again(file_io: MemoryFileIO, clock: Clock) -> None:
    take(file_io, clock).release()
    files = LeaseFiles(file_io, "db.db/t", "consumer-c")
    slow = module._new_record(files.load_newest(), clock.now, 30_000)
    assert slow.epoch == 2
    take(file_io, clock).release()
    third = take(file_io, clock)
    assert names(file_io) == ["consumer-c-3"]
    assert not files.put(slow)
    assert names(file_io) == ["consumer-c-3"]
    third.check()


def test_a_lease_over_but_not_taken_can_be_renewed(file_io: MemoryFileIO, clock: Clock) -> None:
    lease = take(file_io, clock)
    clock.now += 60_000
    lease.check()
    lease.renew()
    clock.at = (clock.now + 9_000, lease.renew)
    with pytest.raises(LeaseHeldError):
        take(file_io, clock)


def test_names_with_a_common_prefix_are_different_leases(file_io: MemoryFileIO) -> None:
    leases = [acquire(file_io, "t", name) for name in ("consumer-c", "consumer-c-1", "consumer", "consumer-")]
    assert [lease.epoch for lease in leases] == [1] * 4
    for lease in leases:
        lease.check()


@pytest.mark.parametrize("name", ["", " ", "a/b", "..", "."])
def test_names_that_are_blank_or_paths_are_refused(file_io: MemoryFileIO, name: str) -> None:
    with pytest.raises(InvalidOptionError, match="not a valid name for a lease"):
        acquire(file_io, "t", name)


def test_a_deleted_lease_is_lost_to_its_holder(file_io: MemoryFileIO, clock: Clock) -> None:
    lease = take(file_io, clock)
    discard_lease(file_io, "db.db/t", "consumer-c")
    assert names(file_io) == []
    with pytest.raises(LeaseHeldError, match="was deleted while it was in use"):
        lease.check()
    again = take(file_io, clock)
    assert again.epoch == lease.epoch
    with pytest.raises(LeaseHeldError):
        lease.check()


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REFUSED])
def test_a_lost_response_is_checked_by_a_read(file_io: MemoryFileIO, clock: Clock, fault: Fault) -> None:
    failing = FailingFileIO(file_io, fault, at=2)
    if fault is Fault.ANSWER_LOST:
        take(failing, clock).check()
        assert failing.calls[1].operation is Operation.PUT_IF_ABSENT
    else:
        with pytest.raises(StorageError):
            take(failing, clock)
        assert names(file_io) == []


def test_a_damaged_file_counts_as_a_lease_since_its_modification(clock: Clock) -> None:
    file_io = MemoryFileIO(str(uuid.uuid4()), clock)
    file_io.write(f"{PATH}-4", b'{"token": "x", "expi')
    assert take(file_io, clock).epoch == 5
    assert module.LEASE_MS <= clock.now - 1_000_000 <= module.LEASE_MS + 1_000


def test_acquire_does_not_wait_for_a_dead_holder(
    file_io: MemoryFileIO, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(file_io, clock)
    monkeypatch.setattr(module, "is_surely_dead", lambda process: process == this_process())
    assert take(file_io, clock).epoch == 2
    assert clock.now == 1_000_000


def test_processes_of_other_machines_are_never_certainly_dead() -> None:
    me = this_process()
    assert not is_surely_dead(me)
    assert is_surely_dead(replace(me, started=(me.started or 0) + 1)), "the id was given to another process"
    gone = replace(me, pid=2**22 + 1)  # above what Linux gives out
    assert is_surely_dead(gone)
    assert not is_surely_dead(replace(gone, machine="another machine"))
    assert not is_surely_dead(replace(gone, machine=""))
    assert not is_surely_dead(Process(host="h", machine=me.machine, pid=1, started=None))


def test_a_keeper_renews_until_it_is_closed(file_io: MemoryFileIO) -> None:
    lease = acquire(file_io, "t", "q", ttl_ms=60_000)
    with LeaseKeeper(lease, interval_ms=20) as keeper:
        first = lease._record.expires_millis
        until(lambda: lease._record.expires_millis > first)
        keeper.check()

        def wait_for_a_renewal(_seconds: float) -> None:
            before = lease._record
            until(lambda: lease._record != before)

        with pytest.raises(LeaseHeldError):
            acquire(file_io, "t", "q", sleep=wait_for_a_renewal)
    assert acquire(file_io, "t", "q", sleep=lambda _: pytest.fail("it was given back")).epoch == 2
    keeper.close()


def test_a_keeper_raises_when_the_lease_was_lost(file_io: MemoryFileIO) -> None:
    lease = acquire(file_io, "t", "q", ttl_ms=100)
    time.sleep(0.12)
    other = acquire(file_io, "t", "q")
    with LeaseKeeper(lease, interval_ms=1) as keeper:
        keeper._thread.join(60)
        with pytest.raises(LeaseHeldError, match="taken over"):
            keeper.check()
    other.check()


def test_a_keeper_survives_a_storage_that_fails_for_a_while(file_io: MemoryFileIO) -> None:
    failing = FailingFileIO(file_io)
    lease = acquire(failing, "t", "q", ttl_ms=10_000)
    before = file_io.read("t/.penstock/leases/q-1")
    failing.fault, failing.at = Fault.REFUSED, failing.call_count + 3  # look, read, write
    with LeaseKeeper(lease, interval_ms=10) as keeper:
        until(lambda: file_io.read("t/.penstock/leases/q-1") != before)
        keeper.check()
        assert failing.calls[failing.at - 1].operation is Operation.WRITE
        assert file_io.read("t/.penstock/leases/q-1") != before


def give_up(_seconds: float) -> None:
    raise LeaseHeldError("somebody else holds it")


def test_threads_that_want_the_same_lease_get_it_once(file_io: MemoryFileIO) -> None:
    for round_number in range(20):
        won: list[Lease] = []
        start = threading.Barrier(8)

        def try_it(name: str = f"q{round_number}", won: list[Lease] = won, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                won.append(acquire(file_io, "t", name, sleep=give_up))
            except LeaseHeldError:
                return

        threads = [threading.Thread(target=try_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].check()


def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the holder be on a machine of which nothing is known."""
    monkeypatch.setattr(module, "this_process", lambda: Process(host="other", machine="m2", pid=1, started=1))


@pytest.mark.parametrize("step_ms", [-3_600_000, -86_400_000])
def test_a_clock_that_steps_back_does_not_lengthen_the_wait(
    file_io: MemoryFileIO, clock: Clock, monkeypatch: pytest.MonkeyPatch, step_ms: int
) -> None:
    elsewhere(monkeypatch)
    take(file_io, clock)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.sleep(seconds)
        if len(slept) == 1:
            clock.now += step_ms

    acquire(file_io, "db.db/t", "consumer-c", clock=clock, sleep=sleep)
    assert sum(slept) == pytest.approx(30)


def test_a_dead_holder_with_a_fast_clock_does_not_hold_the_lease(
    file_io: MemoryFileIO, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch)
    take(file_io, Clock(now=clock.now + 86_400_000))
    before = clock.now
    assert find_holder(file_io, "db.db/t", "consumer-c", clock=clock, sleep=clock.sleep) is None
    assert clock.now == before + 30_000


def test_a_holder_with_a_fast_clock_holds_the_lease_while_it_renews(
    file_io: MemoryFileIO, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch)
    ahead = Clock(now=clock.now + 86_400_000)
    lease = take(file_io, ahead)

    def renew() -> None:
        ahead.now += 10_000
        lease.renew()

    clock.at = (clock.now + 10_000, renew)
    found = find_holder(file_io, "db.db/t", "consumer-c", clock=clock, sleep=clock.sleep)
    assert found is not None
    assert found.epoch == lease.epoch
