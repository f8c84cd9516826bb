"""Logs, metrics and listeners of changes to tables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

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
    from penstock.table.commit.retry import CommitRetry

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
