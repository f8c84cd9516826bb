"""The clock of a table's storage, which is the same for all machines that use the table."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.clocks import elapsed_seconds, utc_millis
from penstock.errors import StorageError
from penstock.format.layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.file_io import FileIO

# File times may be as coarse as two seconds, and such a small difference does not matter.
_AGREES_MS: Final = 2_500


def load_storage_millis(file_io: FileIO, location: str) -> int | None:
    """Return the current time by the storage's clock, ms since 1970-01-01 UTC; None if the storage has no file times.

    It is the modification time of a file that is created in the table's directory and deleted again.

    Raises:
        StorageError: the storage failed, or is read-only.
    """
    directory = TableLayout(location).own_directory
    path = f"{directory}/.clock.{uuid.uuid4()}.tmp"
    try:
        file_io.relaxed().write(path, b"")
        found = [status.modified_millis for status in file_io.list(directory) if status.path == path]
    finally:
        with suppress(StorageError):
            file_io.delete_many([path])
    return next((millis for millis in found if millis > 0), None)


def storage_clock(file_io: FileIO, location: str) -> Callable[[], int]:
    """Return a clock, in ms since 1970-01-01 UTC, that agrees with those of the other machines that use the table.

    On an object store it continues from the store's time, which is requested once; so neither a wrong clock of this
    machine nor a step of it matters, and on Linux time during which the machine was suspended counts. On other
    storages, such as a network file system, it is the clock of this machine, corrected by its difference from the file
    times of the storage, if that is more than a few seconds.

    Raises:
        StorageError: the storage failed, and may work later. If it is read-only, the clock is that of this machine.
    """
    try:
        stored = load_storage_millis(file_io, location)
    except StorageError as error:
        if error.retryable:
            raise  # a wrong clock would go on for as long as the lease is held
        return utc_millis
    if stored is None:
        return utc_millis
    if not file_io.is_object_store:
        ahead = utc_millis() - stored
        return utc_millis if abs(ahead) <= _AGREES_MS else lambda: utc_millis() - ahead
    started = elapsed_seconds()
    return lambda: stored + int((elapsed_seconds() - started) * 1000)
