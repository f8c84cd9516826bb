"""Leases: who may act under a name of a table, until it stops saying that it is there.

A lease is a file ``.penstock/leases/<name>-<epoch>`` of the table; the one with the highest epoch counts. Whoever takes
the lease creates the file of the next epoch by ``put_if_absent``, so that one of several wins; the holder rewrites its
own file to renew it, and who was overtaken finds a higher epoch. Nothing here stops a holder that has lost its lease
between two looks: what it does then must be harmless by itself, as a commit is.

The clocks of machines that compete have to agree within a fraction of the lease's time. Where one is far ahead, or
steps back, nobody waits longer than the time of one lease: who waits counts the time that passed, and an end that no
clock near ours would state counts for nothing unless its holder is seen to renew it.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, Self

from penstock.errors import LeaseHeldError, StorageError
from penstock.io.memory import wall_clock_millis
from penstock.table.lease.files import LEASE_MS, LeaseFiles, LeaseRecord
from penstock.table.lease.process import this_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from penstock.io.file_io import FileIO

# A renewal may fail, or come late, twice before the lease is over.
_RENEWALS_A_LEASE: Final = 3
_LOOKS_A_LEASE: Final = 30
# Clocks that differ by less than a lease's time do no harm; an end further off than this is no end.
_PLAUSIBLE_LEASES: Final = 2
_LONGEST_WATCH_MS: Final = 60_000


class Lease:
    """A lease that this process holds. Several threads may share it; it is never pickled. Made by ``acquire``.

    Attributes:
        may_have_rival: the holder before did not give it back, and is not known to be dead: it may be paused, and go on
            for a moment before it finds that its lease is lost.
    """

    def __init__(
        self, files: LeaseFiles, record: LeaseRecord, clock: Callable[[], int], *, may_have_rival: bool = False
    ) -> None:
        self.may_have_rival = may_have_rival
        self._files = files
        self._record = record
        self._clock = clock
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(StorageError):  # it ends by itself, and what was done under it counts
            self.release()

    def __repr__(self) -> str:
        return f"Lease({self._files.name!r}, epoch={self.epoch})"

    @property
    def epoch(self) -> int:
        """Grows with each holder."""
        return self._record.epoch

    @property
    def ttl_ms(self) -> int:
        """How long it lasts from each renewal."""
        return self._record.ttl_ms

    def check(self) -> None:
        """Return while nobody else has taken the lease, even if it is over. Two calls to the storage.

        Raises:
            LeaseHeldError: somebody else took it, or it was deleted.
        """
        newest = self._files.load_newest()
        if newest is None or newest.token != self._record.token:
            raise self._files.lost(newest, self._clock())

    def renew(self) -> None:
        """Make it last for its whole time from now. Raises as ``check``."""
        with self._lock:
            self.check()
            self._record = replace(self._record, expires_millis=self._clock() + self._record.ttl_ms)
            self._files.write(self._record)

    def release(self) -> None:
        """Give it back, so that the next one need not wait; nothing if it is lost already.

        Raises:
            StorageError: it could not be given back; it ends by itself.
        """
        with self._lock, contextlib.suppress(LeaseHeldError):
            self.check()
            # The file stays, so that epochs only grow.
            self._record = replace(self._record, expires_millis=0)
            try:
                self._files.write(self._record)
            except StorageError:
                # A full disk has space for no file, but deletes one. Who comes next has a token of its own, by which
                # holders are known, so it may have an epoch again.
                self._files.delete(self._record)


class Renewable(Protocol):
    """What says that somebody is there, and lasts for a while each time."""

    @property
    def ttl_ms(self) -> int:
        """How long it lasts from each renewal."""
        ...

    def renew(self) -> None:
        """Make it last for its whole time from now; on a thread of the keeper's. Raises ``LeaseHeldError`` if lost."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


class LeaseKeeper:
    """Renews a lease, or what is like one, in the background until it is closed, which gives it back.

    Args:
        interval_ms: between renewals; None for a third of the lease's time.
    """

    def __init__(self, lease: Renewable, *, interval_ms: int | None = None) -> None:
        self._lease = lease
        self._interval_ms = interval_ms or max(1, lease.ttl_ms // _RENEWALS_A_LEASE)
        self._stop = threading.Event()
        self._lost: LeaseHeldError | None = None
        self._thread = threading.Thread(target=self._run, name=f"renew {lease!r}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        """Return while no renewal found the lease taken; no call to the storage. Raises ``LeaseHeldError``."""
        if self._lost is not None:
            raise self._lost

    def close(self) -> None:
        """Stop renewing and give the lease back; again does nothing.

        Raises:
            StorageError: it could not be given back; it ends by itself.
        """
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        self._lease.release()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_ms / 1000):
            try:
                self._lease.renew()
            except LeaseHeldError as error:
                self._lost = error
                return
            except (StorageError, MemoryError):
                continue  # the next renewal may come through before the lease is over


def acquire(
    file_io: FileIO,
    location: str,
    name: str,
    *,
    ttl_ms: int = LEASE_MS,
    clock: Callable[[], int] = wall_clock_millis,
    sleep: Callable[[float], None] = time.sleep,
) -> Lease:
    """Take a lease that is free, is over, or whose holder surely is dead; else wait for its end while nobody renews it.

    Args:
        location: the table's directory.
        name: what is leased, such as ``consumer-<id>``.
        ttl_ms: how long the lease lasts from each renewal.
        clock: ms since 1970-01-01 UTC.
        sleep: seconds.

    Raises:
        LeaseHeldError: the holder renewed it meanwhile, or another one was faster.
        InvalidOptionError: a name that is blank or a path.
        StorageError: the storage failed.
    """
    files = LeaseFiles(file_io, location, name)
    seen = files.load_newest()
    # Counted by what was slept: the clock may step while we wait.
    rest_ms = float(_rest_ms(seen, clock()))
    while True:
        now = clock()
        if seen is None or rest_ms <= 0 or seen.is_free(now):
            record = _new_record(seen, now, ttl_ms)
            if files.put(record):
                return Lease(files, record, clock, may_have_rival=seen is not None and not seen.is_settled)
        else:
            pause_ms = max(seen.ttl_ms, 1) / _LOOKS_A_LEASE
            sleep(pause_ms / 1000)
            rest_ms -= pause_ms
        newest = files.load_newest()
        if newest is not None and newest != seen and not newest.is_free(clock()):
            raise files.held(newest, clock())
        seen = newest


def find_holder(
    file_io: FileIO,
    location: str,
    name: str,
    *,
    clock: Callable[[], int] = wall_clock_millis,
    sleep: Callable[[float], None] = time.sleep,
) -> LeaseRecord | None:
    """Return what the file of a lease says that somebody holds now; None where it is free.

    An end further off than any renewal puts it comes from a clock far ahead of ours. Whether such a holder is there
    shows by its renewals, for which this waits as long as the lease lasts; one that lasts over a minute counts as held.

    Args:
        clock: ms since 1970-01-01 UTC.
        sleep: seconds.
    """
    files = LeaseFiles(file_io, location, name)
    newest = files.load_newest()
    if (
        newest is not None
        and newest.ttl_ms <= _LONGEST_WATCH_MS
        and newest.expires_millis - clock() > newest.ttl_ms * _PLAUSIBLE_LEASES
    ):
        seen = newest
        sleep(seen.ttl_ms / 1000)
        newest = files.load_newest()
        if newest == seen:
            return None
    return None if newest is None or newest.is_free(clock()) else newest


def discard_lease(file_io: FileIO, location: str, name: str) -> None:
    """Delete the files of a lease that the caller holds or that nobody needs any more."""
    LeaseFiles(file_io, location, name).delete_below(None)


def _rest_ms(record: LeaseRecord | None, now: int) -> int:
    # A holder whose clock is ahead of ours says an end that is too late: its renewals show within its own time.
    return 0 if record is None else max(0, min(record.expires_millis - now, record.ttl_ms))


def _new_record(last: LeaseRecord | None, now: int, ttl_ms: int) -> LeaseRecord:
    return LeaseRecord(
        epoch=1 if last is None else last.epoch + 1,
        token=uuid.uuid4().hex,
        process=this_process(),
        acquired_millis=now,
        expires_millis=now + ttl_ms,
        ttl_ms=ttl_ms,
    )
