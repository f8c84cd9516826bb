"""Checks that the snapshots a stream has read are still in the table's history.

Source:
    Paimon ``core:utils/NextSnapshotFetcher.java``;
    docs/spec/streaming.md section 2.2. The digests are specific to Penstock: they reveal a rollback, and a recreated
    table, which ids alone would not.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_text
from penstock.errors import DataLossError, DataLossWarning, NotFoundError, warn
from penstock.format.snapshot import present_text
from penstock.table.assumptions import read_identity

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore
    from penstock.table.stream.offset import Position, StreamOffset

_DIGEST_CHARS: Final = 16
_ALLOWED: Final = "'penstock.fail-on-data-loss' = 'false' allows"
_NEW_START: Final = (
    "start the query with a new checkpoint, at one of them (scan.mode = 'from-snapshot' and scan.snapshot-id) or with "
    "all rows (scan.mode = 'latest-full')"
)


def snapshot_digest(snapshot: Snapshot) -> str:
    """Return a digest that differs for every snapshot, also for one with the same id after a rollback."""
    return _digest(snapshot.delta_manifest_list.encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]


class History:
    """Checks a stream's offsets against the table's history, and explains why a snapshot is missing.

    Args:
        fails: raise an error if unread rows have expired; if false, warn and continue after them.
    """

    def __init__(self, store: MetadataStore, *, fails: bool) -> None:
        self._store = store
        self._fails = fails
        self._table: str | None = None

    def load_table_digest(self) -> str:
        """Return the digest of what identifies the table."""
        try:
            data = read_identity(self._store)
        except NotFoundError as error:
            raise DataLossError(
                f"table {self._store.name}: {self._store.location} holds no table: the stream cannot continue; "
                "if it was dropped, stop the query; if it was moved, start the query at its new location"
            ) from error
        return _digest(data)

    def check_table(self, offset: StreamOffset) -> None:
        """Refuse an offset of another table; reads storage only in the first call.

        Raises:
            DataLossError: the table was dropped since, or dropped and created again.
        """
        if self._table is None:
            self._table = self.load_table_digest()
        if self._table != offset.table:
            raise self._recreated()

    def check_seen(self, snapshot: Snapshot | None, offset: StreamOffset) -> None:
        """Refuse a snapshot that differs from the one that the stream has read.

        Args:
            snapshot: None when it has expired, so that only the table can be compared.

        Raises:
            DataLossError: the table was rolled back, or dropped and created again, since.
        """
        if snapshot is not None and offset.seen is not None and snapshot_digest(snapshot) == offset.seen:
            return
        if self.load_table_digest() != offset.table:
            raise self._recreated()
        if snapshot is not None and offset.seen is not None:
            raise self.rolled_back(snapshot.id)

    def check_reach(self, position: Position, offset: StreamOffset, latest: int | None) -> None:
        """Refuse a position after the table's next snapshot.

        Args:
            latest: id of the latest snapshot.

        Raises:
            DataLossError: the table was rolled back, dropped, or dropped and created again.
        """
        if latest is None or position.rests_on > latest:
            self._check_same(offset)
        if position.rests_on > (latest or 0):
            raise self.rolled_back(position.rests_on)

    def check_delivered(self, offset: StreamOffset) -> None:
        """Refuse an offset if the last snapshot before it is not in the history any more; reads it.

        A rollback sets consumers back, and a micro-batch that ran meanwhile must not move them forward again.
        """
        position = offset.position
        if position is not None:
            self.check_reach(position, offset, self._store.latest_snapshot_id())
            self.check_seen(self._store.find_snapshot(position.rests_on) if position.rests_on > 0 else None, offset)

    def lost(self, snapshot_id: int) -> int:
        """Return the earliest later snapshot, at which the stream continues after a missing one; logs a warning."""
        ids = self._store.list_snapshot_ids()
        later = [number for number in ids if number > snapshot_id]
        if not later:
            raise self.rolled_back(snapshot_id)
        reason = "which has expired"
        cure = _NEW_START
        if self._store.is_lost(snapshot_id):
            reason = "whose file was lost, as earlier and later ones are there"
            cure = (
                f"restore {self._store.layout.snapshot_path(snapshot_id)} from a copy ('penstock fsck' lists all that "
                f"is missing); or {_NEW_START}"
            )
        what = f"table {self._store.name}: the stream was to read snapshot {snapshot_id}, {reason}"
        if self._fails:
            raise DataLossError(
                f"{what}; {self._available(ids)}: {cure}; or set 'penstock.fail-on-data-loss' = 'false' to "
                "continue "
                "at the earliest without the rows in between. A consumer ('consumer-id') keeps snapshots until they "
                "are read; Table.reset_consumer moves one whose position is too early"
            )
        warn(
            f"{what}; it continues at snapshot {later[0]} without the rows in between, as {_ALLOWED}",
            DataLossWarning,
        )
        return later[0]

    def lost_since(self, millis: int, earliest: Snapshot) -> int:
        """Return the earliest snapshot, for a stream whose requested start time is before it; logs a warning.

        Args:
            millis: requested start, ms since 1970-01-01 UTC; snapshots between it and ``earliest`` may have expired.
        """
        what = (
            f"table {self._store.name}: the stream was to begin at {utc_text(millis)} ({millis}), and snapshots before "
            f"snapshot {earliest.id}, which was committed at {utc_text(earliest.time_millis)}, have expired"
        )
        if self._fails:
            raise DataLossError(
                f"{what}; {self._available(self._store.list_snapshot_ids())}: begin at the earliest, with "
                "scan.mode = 'earliest', or with all rows (scan.mode = 'latest-full'); or set "
                "'penstock.fail-on-data-loss' = 'false' to begin at the earliest without the rows before it"
            )
        warn(
            f"{what}; it begins at snapshot {earliest.id} without the rows before it, as {_ALLOWED}",
            DataLossWarning,
        )
        return earliest.id

    def rolled_back(self, snapshot_id: int) -> DataLossError:
        """Return the error for a snapshot that the stream has read and that was rolled back."""
        return DataLossError(
            f"table {self._store.name}: the stream has read snapshot {snapshot_id}, which is not in the table's "
            f"history any more: it was rolled back; {self._available(self._store.list_snapshot_ids())}: {_NEW_START}. "
            "Rows that were delivered are not taken back"
        )

    def _check_same(self, offset: StreamOffset) -> None:
        if self.load_table_digest() != offset.table:
            raise self._recreated()

    def _recreated(self) -> DataLossError:
        return DataLossError(
            f"table {self._store.name} at {self._store.location} is not the one that the stream began with: "
            f"it was dropped and created again, or is another branch; "
            f"{self._available(self._store.list_snapshot_ids())}: {_NEW_START}"
        )

    def _available(self, ids: tuple[int, ...]) -> str:
        if not ids:
            return "it has no snapshots"
        tags = self._store.list_tags()
        kept = ", and the tags " + ", ".join(f"'{tag}'" for tag in tags) if tags else ""
        return f"{present_text(ids[0], ids[-1])}{kept}"
