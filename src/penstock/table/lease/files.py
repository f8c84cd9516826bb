"""The files of a lease: each holder has one, and the file with the highest epoch is valid."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, InvalidOptionError, LeaseHeldError, NotFoundError, StorageError
from penstock.format.layout import TableLayout
from penstock.format.text.json import decode_json, encode_json
from penstock.table.lease.process import decode_process, encode_process, is_surely_dead

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.lease.process import Process

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
