"""Leases: give one process at a time the right to act under a name of a table, as long as it renews the lease.

A lease is a file ``.penstock/leases/<name>-<epoch>`` of the table; the one with the highest epoch is valid. To acquire
the lease, a process creates the file of the next epoch by ``put_if_absent``, so only one of several processes succeeds.
The holder rewrites its own file to renew the lease; a holder that lost it finds a higher epoch. Between two checks, a
holder that has lost its lease does not know it: what it does then must be harmless without the lease, as a commit is.

Times are those of the storage's clock, so the clocks of competing machines may differ. A clock that steps while a lease
is held still counts on storages that are not object stores. If it is far ahead, or steps back, no process waits longer
than the time of one lease: a waiting process counts the time that it slept, and an expiry time that is implausibly late
is ignored unless the holder renews the lease meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, Self

from penstock.errors import FormatError, InvalidOptionError, LeaseHeldError, NotFoundError, StorageError
from penstock.format.layout import TableLayout
from penstock.format.text.json import decode_json, encode_json
from penstock.metrics import LEASES_LOST, record
from penstock.printable import open_log
from penstock.table.process import decode_process, encode_process, is_surely_dead, this_process
from penstock.table.times import storage_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from penstock.io.file_io import FileIO
    from penstock.table.process import Process

LEASE_MS: Final = 9_000
"""How long a lease lasts without renewal: the longest wait for the lease of a holder on a lost machine.

A new driver takes longer to start, so it hardly waits. Nothing depends on a lease's being long: a holder that lost it
because it was paused finds that out before it commits.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The content of a lease file.

    Attributes:
        epoch: counts the holders, from 1.
        token: random, different for each holder.
        process: the holder's process; None where the file is damaged.
        acquired_millis: ms since 1970-01-01 UTC.
        expires_millis: ms since 1970-01-01 UTC; 0 when the lease was released.
        ttl_ms: how long the lease lasts from each renewal.
    """

    epoch: int
    token: str
    process: Process | None
    acquired_millis: int
    expires_millis: int
    ttl_ms: int

    def is_free(self, now_millis: int) -> bool:
        """Whether the lease was released, has expired, or its holder is certainly dead."""
        return self.expires_millis <= now_millis or self.is_settled

    @property
    def is_settled(self) -> bool:
        """Whether its holder is certainly inactive: the holder of an expired lease may be paused and go on."""
        return self.expires_millis == 0 or (self.process is not None and is_surely_dead(self.process))


class LeaseFiles:
    """The files of one lease."""

    def __init__(self, file_io: FileIO, location: str, name: str) -> None:
        if not name.strip() or "/" in name or name.startswith("."):
            raise InvalidOptionError(
                f"table at {location}: '{name}' is not a valid name for a lease: it is blank or a path"
            )
        self.name = name
        self._file_io = file_io.relaxed()
        self._location = location
        self._directory = TableLayout(location).lease_directory

    def load_newest(self) -> LeaseRecord | None:
        """Load the file of the highest epoch; None when there is none."""
        epochs = self._epochs()
        if not epochs:
            return None
        epoch, modified_millis = max(epochs.items())
        path = self._path(epoch)
        try:
            return _decode(self._file_io.read(path), path, epoch)
        except FormatError:
            # The holder was killed during the write, on a storage where incomplete files are visible. The lease gets
            # the default time.
            return _damaged(epoch, modified_millis)
        except NotFoundError:
            return self.load_newest()  # there is a newer epoch

    def put(self, record: LeaseRecord) -> bool:
        """Create the file of a new epoch and delete those of lower epochs; False when another process was first."""
        path = self._path(record.epoch)
        try:
            created = self._file_io.put_if_absent(path, _encode(record))
        except StorageError:
            if self.load_newest() == record:  # the file was created, only the response was lost
                return True
            raise
        if not created and self.load_newest() != record:  # a storage client that retried finds its own file
            return False
        try:
            is_late = max(self._epochs(), default=0) > record.epoch
        except StorageError:
            self._delete_quietly(path)  # the lease is not held, but others would wait until it expires
            raise
        if is_late:
            # A process that read the epochs long ago may create one whose file was deleted in favor of a later epoch.
            self._file_io.delete(path)
            return False
        with contextlib.suppress(StorageError):
            self.delete_below(record.epoch)
        return True

    def write(self, record: LeaseRecord) -> None:
        """Replace the file of an epoch."""
        self._file_io.write(self._path(record.epoch), _encode(record))

    def delete(self, record: LeaseRecord) -> None:
        """Delete the file of an epoch."""
        self._file_io.delete(self._path(record.epoch))

    def delete_below(self, epoch: int | None) -> None:
        """Delete the files of lower epochs; None deletes all."""
        for each in self._epochs():
            if epoch is None or each < epoch:
                self._file_io.delete(self._path(each))

    def held(self, record: LeaseRecord, now: int) -> LeaseHeldError:
        """Return the error for a process that wants a lease that another one holds."""
        age = max(0, now - record.acquired_millis) // 1000
        return LeaseHeldError(
            f"table at {self._location}: '{self.name}' is in use by {record.process or 'another process'} "
            f"(for {age} s, epoch {record.epoch}): stop that one, or use another name; if it has died, try again in "
            f"{record.ttl_ms // 1000} s"
        )

    def lost(self, newest: LeaseRecord | None, now: int) -> LeaseHeldError:
        """Return the error for a holder that has lost its lease."""
        if newest is None:
            return LeaseHeldError(
                f"table at {self._location}: '{self.name}' was deleted while it was in use; stop here, and start again "
                "if that was a mistake"
            )
        age = max(0, now - newest.acquired_millis) // 1000
        return LeaseHeldError(
            f"table at {self._location}: '{self.name}' was taken over by {newest.process or 'another process'} {age} s "
            f"ago (epoch {newest.epoch}), because it had not been renewed in time; stop here and leave it to that one, "
            "or stop that one and start again"
        )

    def _delete_quietly(self, path: str) -> None:
        with contextlib.suppress(StorageError):
            self._file_io.delete(path)

    def _path(self, epoch: int) -> str:
        return f"{self._directory}/{self.name}-{epoch}"

    def _epochs(self) -> dict[int, int]:
        """Return modification times by epoch."""
        found: dict[int, int] = {}
        for status in self._file_io.list(self._directory):
            name, _, digits = status.name.rpartition("-")
            if name == self.name and digits.isascii() and digits.isdigit():
                found[int(digits)] = status.modified_millis
        return found


def _encode(record: LeaseRecord) -> bytes:
    values = asdict(record)
    del values["epoch"], values["process"]
    return encode_json({**({} if record.process is None else encode_process(record.process)), **values})


def _decode(data: bytes, path: str, epoch: int) -> LeaseRecord:
    values = decode_json(data, "lease file", path)
    return LeaseRecord(
        epoch=epoch,
        token=values.text("token"),
        process=decode_process(values),
        acquired_millis=values.integer("acquired_millis"),
        expires_millis=values.integer("expires_millis"),
        ttl_ms=values.integer("ttl_ms"),
    )


def _damaged(epoch: int, modified_millis: int) -> LeaseRecord:
    return LeaseRecord(
        epoch=epoch,
        token="",
        process=None,
        acquired_millis=modified_millis,
        expires_millis=modified_millis + LEASE_MS,
        ttl_ms=LEASE_MS,
    )


_LOG: Final = open_log("penstock.lease")

# Two renewals in a row may fail or be late before the lease expires.
_RENEWALS_PER_LEASE: Final = 3
_CHECKS_PER_LEASE: Final = 30
# Clocks that differ by less than a lease's time do no harm; an expiry time later than this many leases is implausible.
_MAX_PLAUSIBLE_LEASES: Final = 2
_MAX_WATCH_MS: Final = 60_000


class Lease:
    """A lease that this process holds. Several threads may share it; it is never pickled. Made by ``acquire``.

    Attributes:
        may_have_rival: the previous holder did not release the lease and is not certainly dead: it may be paused, and
            act for a moment before it finds that its lease is lost.
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
        with contextlib.suppress(StorageError):  # the lease expires by itself, and the work done under it is valid
            self.release()

    def __repr__(self) -> str:
        return f"Lease({self._files.name!r}, epoch={self.epoch})"

    @property
    def epoch(self) -> int:
        """Number of this holder; each next holder has a higher one."""
        return self._record.epoch

    @property
    def ttl_ms(self) -> int:
        """How long it lasts from each renewal."""
        return self._record.ttl_ms

    def check(self) -> None:
        """Check that no other process has taken the lease; an expired lease passes. Two calls to the storage."""
        newest = self._files.load_newest()
        if newest is None or newest.token != self._record.token:
            raise self._files.lost(newest, self._clock())

    def renew(self) -> None:
        """Extend the lease to its full time from now. Raises as ``check``."""
        with self._lock:
            self.check()
            self._record = replace(self._record, expires_millis=self._clock() + self._record.ttl_ms)
            self._files.write(self._record)

    def release(self) -> None:
        """Release the lease, so that the next process need not wait; does nothing if it is already lost.

        Raises:
            StorageError: it could not be released; it expires by itself.
        """
        with self._lock, contextlib.suppress(LeaseHeldError):
            self.check()
            # The file is kept, so that epochs only grow.
            self._record = replace(self._record, expires_millis=0)
            try:
                self._files.write(self._record)
            except StorageError:
                # A full disk cannot write a file but can delete one. The next holder may then reuse an epoch: holders
                # are distinguished by their tokens.
                self._files.delete(self._record)


class Renewable(Protocol):
    """A sign of life, such as a lease, that lasts for a limited time from each renewal."""

    @property
    def ttl_ms(self) -> int:
        """How long it lasts from each renewal."""
        ...

    def renew(self) -> None:
        """Extend it to its full time from now; called on the keeper's thread. Raises ``LeaseHeldError`` if lost."""
        ...

    def release(self) -> None:
        """Release it."""
        ...


class LeaseKeeper:
    """Renews a lease, or another ``Renewable``, in the background until it is closed; closing releases the lease.

    Args:
        interval_ms: between renewals; None for a third of the lease's time.
    """

    def __init__(self, lease: Renewable, *, interval_ms: int | None = None) -> None:
        self._lease = lease
        self._interval_ms = interval_ms or max(1, lease.ttl_ms // _RENEWALS_PER_LEASE)
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
        """Check that no renewal found the lease lost; no call to the storage. Raises ``LeaseHeldError``."""
        if self._lost is not None:
            raise self._lost

    def close(self) -> None:
        """Stop renewing and release the lease; a second call does nothing.

        Raises:
            StorageError: it could not be released; it expires by itself.
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
                _LOG.warning("%r was lost: %s", self._lease, error)
                record(LEASES_LOST, 1)
                return
            except (StorageError, MemoryError):
                continue  # the next renewal may succeed before the lease expires


def acquire(  # noqa: PLR0913 - the last two are for tests
    file_io: FileIO,
    location: str,
    name: str,
    *,
    ttl_ms: int = LEASE_MS,
    own_wait_ms: float = 0,
    clock: Callable[[], int] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Lease:
    """Acquire a lease that is free, has expired or has a dead holder; else wait until it expires or is renewed.

    Args:
        location: the table's directory.
        name: name of the lease, such as ``consumer-<id>``.
        ttl_ms: how long the lease lasts from each renewal.
        own_wait_ms: how long to wait for a holder of this process although it renews: it may be about to release.
        clock: ms since 1970-01-01 UTC; None for the storage's, see ``storage_clock``.
        sleep: seconds.
    """
    files = LeaseFiles(file_io, location, name)
    clock = clock or storage_clock(file_io, location)
    seen = files.load_newest()
    # Counted by the time slept: the clock may step during the wait.
    rest_ms = float(_rest_ms(seen, clock()))
    while True:
        now = clock()
        if seen is None or rest_ms <= 0 or seen.is_free(now):
            mine = _new_record(seen, now, ttl_ms)
            if files.put(mine):
                _LOG.info("%s: took lease '%s'", location, name)
                return Lease(files, mine, clock, may_have_rival=seen is not None and not seen.is_settled)
        else:
            pause_ms = max(seen.ttl_ms, 1) / _CHECKS_PER_LEASE
            sleep(pause_ms / 1000)
            rest_ms -= pause_ms
            own_wait_ms -= pause_ms
        newest = files.load_newest()
        if newest is not None and newest != seen and not newest.is_free(clock()):
            if own_wait_ms <= 0 or newest.process != this_process():
                raise files.held(newest, clock())
            rest_ms = float(_rest_ms(newest, clock()))
        seen = newest


def find_holder(
    file_io: FileIO,
    location: str,
    name: str,
    *,
    clock: Callable[[], int] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> LeaseRecord | None:
    """Return the record of a lease that is held now; None if it is free.

    An expiry time later than any renewal can set comes from a clock far ahead of this one. In that case this function
    waits for the lease's time: the lease is held if it is renewed meanwhile. It does not wait for a lease that lasts
    over a minute, which counts as held.

    Args:
        clock: as for ``acquire``.
        sleep: seconds.
    """
    files = LeaseFiles(file_io, location, name)
    newest = files.load_newest()
    if newest is None or newest.is_settled:
        return None
    clock = clock or storage_clock(file_io, location)
    if newest.ttl_ms <= _MAX_WATCH_MS and newest.expires_millis - clock() > newest.ttl_ms * _MAX_PLAUSIBLE_LEASES:
        seen = newest
        sleep(seen.ttl_ms / 1000)
        newest = files.load_newest()
        if newest == seen:
            return None
    return None if newest is None or newest.is_free(clock()) else newest


def discard_lease(file_io: FileIO, location: str, name: str) -> None:
    """Delete the files of a lease that the caller holds or that is not needed any more."""
    LeaseFiles(file_io, location, name).delete_below(None)


def _rest_ms(record: LeaseRecord | None, now: int) -> int:
    # A holder whose clock is ahead of ours writes an expiry time that is too late, but it renews within its own time.
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
