"""Retries of a commit that lost a race for the next snapshot id: when, and for how long.

Writers that start at the same time build on the same snapshot, and only one of them wins. With random waits alone, some
writers fail for minutes if many writers share few cores. So writers on one machine that have lost a race take turns,
by a file lock of the operating system. The lock is only an optimization: a writer that cannot get it continues without,
and ``put_if_absent`` alone decides the retry.

Logs, metrics and listeners of commits are here too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from penstock.errors import CommitConflictError, CommitUnknownError
from penstock.format.manifest.entry import FileKind
from penstock.metrics import (
    BYTES_ADDED,
    COMMIT_CONFLICTS,
    COMMIT_RETRIES,
    COMMIT_SECONDS,
    COMMITS,
    COMMITS_UNKNOWN,
    FILES_ADDED,
    FILES_REMOVED,
    ROWS_ADDED,
    is_counting,
    record,
)
from penstock.printable import mask_locations, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.options import CommitOptions
    from penstock.table.ref import TableRef


# Default time limit if the options set neither a time nor a count.
_DEFAULT_TIMEOUT_MS: Final = 120_000
# A commit takes about 10 ms, so longer waits would leave the storage idle.
_MAX_WAIT_MS: Final = 250
# Longer than 64 writers need for one commit each; after that, a writer assumes that the lock's holder was stopped.
_MAX_LOCK_WAIT_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02


@dataclass(slots=True, kw_only=True)
class CommitRetry:
    """The attempts of one commit. As a context manager, it releases the lock on exit.

    Attributes:
        ref: the table.
        options: number of retries and time limits.
        lost: number of races that other writers won.
    """

    ref: TableRef
    options: CommitOptions
    sleep: Callable[[float], None]
    clock: Callable[[], float] = field(default=time.monotonic)
    lost: int = 0
    _started: float = 0.0
    _handle: int | None = None

    def __enter__(self) -> Self:
        self._started = self.clock()
        return self

    def __exit__(self, *_error: object) -> None:
        self.release_lock()

    @property
    def seconds(self) -> float:
        """Seconds since the first attempt began."""
        return self.clock() - self._started

    @property
    def _is_over(self) -> bool:
        max_retries = self.options.max_retries
        limit_ms = self.options.timeout_ms
        if limit_ms is None and max_retries is None:
            limit_ms = _DEFAULT_TIMEOUT_MS
        return (max_retries is not None and self.lost > max_retries) or (
            limit_ms is not None and self.seconds * 1000 >= limit_ms
        )

    def attempts(self) -> Iterator[int]:
        """Yield attempt numbers from 0 until a limit is reached; requesting the next number counts a lost retry."""
        while True:
            yield self.lost
            self.lost += 1
            if self._is_over:
                return

    def wait(self) -> None:
        """Wait before an attempt: not before the first one, otherwise for a random time and then for the lock."""
        if self.lost == 0:
            return
        max_ms = _MAX_WAIT_MS if self.options.max_retry_wait_ms is None else self.options.max_retry_wait_ms
        # The shift is limited to 32, as the number of lost races is not.
        wait_ms = min(self.options.min_retry_wait_ms << min(self.lost - 1, 32), max_ms)
        self.sleep(wait_ms / 1000 * random.random())  # noqa: S311 - not for secrets
        if self.ref.file_io.is_local:
            self._take_lock()

    def release_lock(self) -> None:
        """Let the next writer on this machine take the lock; does nothing if this one does not hold it."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            # Unlock before closing: a process that was forked meanwhile shares the lock.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def _take_lock(self) -> None:
        if self._handle is not None:
            return
        with suppress(OSError):  # without a lock, continue
            handle = os.open(_lock_path(self.ref.location), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            if self._lock(handle):
                self._handle = handle
            else:
                os.close(handle)

    def _lock(self, handle: int) -> bool:
        deadline = time.monotonic() + _MAX_LOCK_WAIT_SECONDS
        while time.monotonic() < deadline:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(_POLL_SECONDS * random.random())  # noqa: S311 - not for secrets
        return False


def _lock_path(location: str) -> Path:
    """Return the path of a table's lock file on this machine, in a directory that only this user can write.

    Raises:
        OSError: there is no such directory, and it cannot be created.
    """
    directory = Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    info = directory.lstat()
    if directory.is_symlink() or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise PermissionError(f"other users can write to {directory}")
    return directory / f"commit-{hashlib.sha256(location.encode()).hexdigest()[:24]}.lock"


_LOG: Final = open_log("penstock.commit")
_LISTENERS: Final[dict[Hashable, Callable[[str], None]]] = {}


def note_committed(table: str, snapshot: Snapshot, delta: Sequence[ManifestEntry], retry: CommitRetry) -> None:
    """Log and count a new snapshot: at DEBUG, as a stream creates one every few seconds."""
    _LOG.debug(
        "table %s: committed snapshot %s (%s, %s rows, user %s) after %s lost races in %.3f s",
        *(table, snapshot.id, snapshot.commit_kind, snapshot.delta_record_count, snapshot.commit_user),
        *(retry.lost, retry.seconds),
    )
    if not is_counting():
        return
    name, kind = mask_locations(table), str(snapshot.commit_kind)
    added = [entry.file for entry in delta if entry.kind == FileKind.ADD]
    record(COMMITS, 1, name, kind)
    record(COMMIT_SECONDS, retry.seconds, name)
    record(FILES_ADDED, len(added), name, kind)
    record(ROWS_ADDED, sum(file.row_count for file in added), name, kind)
    record(BYTES_ADDED, sum(file.file_size for file in added), name, kind)
    record(FILES_REMOVED, len(delta) - len(added), name, kind)


def note_lost_race(table: str, snapshot_id: int, retry: CommitRetry) -> None:
    """Log and count a lost race: at INFO, since many of them indicate too many writers."""
    _LOG.info("table %s: another writer committed snapshot %s first (race %s)", table, snapshot_id, retry.lost + 1)
    record(COMMIT_RETRIES, 1, mask_locations(table))


@contextmanager
def observed(table: str) -> Iterator[None]:
    """Log and count commits that failed with a conflict, or whose outcome is unknown."""
    try:
        yield
    except CommitConflictError as error:
        # The caller gets the error, so no warning is needed.
        _LOG.info("%s", error)
        record(COMMIT_CONFLICTS, 1, mask_locations(table))
        raise
    except CommitUnknownError as error:
        _LOG.warning("%s", error)
        record(COMMITS_UNKNOWN, 1, mask_locations(table))
        raise


def on_change(key: Hashable, listener: Callable[[str], None]) -> None:
    """Call a function with the location of each table that changes from now on; a later one of the key replaces it."""
    _LISTENERS[key] = listener


def note_change(location: str) -> None:
    """Call the listeners after this process has changed rows or columns; their errors are only logged."""
    for listener in tuple(_LISTENERS.values()):
        try:
            listener(location)
        except Exception:  # noqa: BLE001 - nothing that a listener does may fail a commit
            _LOG.warning("%s was changed, but a listener failed", location, exc_info=True)
