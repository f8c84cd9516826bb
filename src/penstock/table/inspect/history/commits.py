"""The changes of each commit to a table, the state of the table after it, and stalls of its watermark.

For each snapshot, its file, its delta manifest list and the manifests in it are read. The state of the table is
computed backwards from the newest snapshot, so that only its base manifest list is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from penstock.clocks import END_OF_TIME_MS
from penstock.errors import FormatError, NotFoundError
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import CommitKind
from penstock.table.compact.task import CompactSizes
from penstock.table.read.live import is_in_history, load_live_entries
from penstock.table.read.travel import watermark_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

DEFAULT_LIMIT: Final = 1_000
"""Snapshots to read: a second or two on a local disk."""


_ROW_COMMITS: Final = frozenset({CommitKind.APPEND, CommitKind.OVERWRITE})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSums:
    """Sums over data files.

    Attributes:
        bytes: on storage.
        small_files: number of small files by the table's current options.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    small_files: int = 0
    small_bytes: int = 0

    def __add__(self, other: FileSums) -> FileSums:
        """Return the sums over both."""
        return FileSums(
            files=self.files + other.files,
            rows=self.rows + other.rows,
            bytes=self.bytes + other.bytes,
            small_files=self.small_files + other.small_files,
            small_bytes=self.small_bytes + other.small_bytes,
        )

    def __sub__(self, other: FileSums) -> FileSums:
        """Return the sums without those of the other."""
        return FileSums(
            files=self.files - other.files,
            rows=self.rows - other.rows,
            bytes=self.bytes - other.bytes,
            small_files=self.small_files - other.small_files,
            small_bytes=self.small_bytes - other.small_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes of one commit.

    Attributes:
        added: files that it added, including merged ones.
        removed: files that it removed.
        rewritten_rows: rows of added files that replace removed ones, as those of a DELETE, UPDATE or MERGE do.
    """

    snapshot: Snapshot
    added: FileSums
    removed: FileSums
    rewritten_rows: int = 0

    @property
    def new_rows(self) -> int:
        """Rows that it added: not those that a compaction or a row change has copied."""
        is_compaction = self.snapshot.commit_kind not in _ROW_COMMITS
        return 0 if is_compaction else max(0, self.added.rows - self.rewritten_rows)

    @property
    def brings_rows(self) -> bool:
        """Whether it added new rows."""
        return self.new_rows > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The changes of one commit, and the state of the table after it.

    Attributes:
        live: all files of the snapshot.
    """

    change: Change
    live: FileSums

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that it created."""
        return self.change.snapshot

    @property
    def watermark(self) -> int | None:
        """Event time in ms up to which the snapshot is complete; None if it has no watermark."""
        return watermark_of(self.snapshot)

    @property
    def event_time_lag_ms(self) -> int | None:
        """Commit time minus watermark, negative if the watermark is ahead; None without a watermark."""
        watermark = self.watermark
        if watermark is None or watermark >= END_OF_TIME_MS:
            return None
        return self.snapshot.time_millis - watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of the newest commits, oldest first.

    Attributes:
        left_out: number of older snapshots that exist.
        unreadable: for the ids of the snapshots among them that are damaged, what is wrong; newest first.
    """

    changes: tuple[Change, ...]
    left_out: int
    unreadable: tuple[tuple[int, str], ...]


class ChangeReader:
    """Reads the changes of commits; later calls read only new commits. Not thread-safe."""

    def __init__(self, ref: TableRef, store: MetadataStore) -> None:
        self._store = store
        self._sizes = CompactSizes.of(ref)
        self._known: dict[int, Change] = {}
        self._live_before_gaps: dict[Snapshot, FileSums] = {}

    def load(self, limit: int = DEFAULT_LIMIT) -> Changes:
        """Load the changes of the newest commits.

        Args:
            limit: maximum number of snapshots to read.

        Returns:
            Fewer than requested if snapshots expire meanwhile.

        Raises:
            FormatError: the latest snapshot is damaged.
            NotFoundError: a manifest of it is lost.
        """
        ids = self._store.list_snapshot_ids()
        self._forget(frozenset(ids))
        changes: list[Change] = []
        unreadable: list[tuple[int, str]] = []
        for snapshot_id in reversed(ids[max(0, len(ids) - limit) :]):
            try:
                change = self._known.get(snapshot_id) or self._load(snapshot_id)
            except (NotFoundError, FormatError) as error:
                if not changes:
                    self._store.load_latest_snapshot()  # its error names the rollback
                    raise
                unreadable.append((snapshot_id, str(error)))
                continue
            if change is None:
                if changes:
                    break  # it has expired meanwhile, and so have all before it
                continue  # a rollback runs at the same time
            self._known[snapshot_id] = change
            changes.append(change)
        left_out = len(ids) - len(changes) - len(unreadable)
        return Changes(changes=tuple(reversed(changes)), left_out=left_out, unreadable=tuple(unreadable))

    def with_totals(self, changes: Sequence[Change], live: FileSums) -> tuple[Commit, ...]:
        """Return for each commit the state of the table after it.

        Before a snapshot that is lost or damaged, the state is read, because the changes of that one are not known.

        Args:
            changes: of snapshots, oldest first.
            live: after the last one.

        Raises:
            NotFoundError, FormatError: a manifest of the snapshot before such a one is lost or damaged.
        """
        commits: list[Commit] = []
        for change in reversed(changes):
            if commits and commits[-1].snapshot.id > change.snapshot.id + 1:
                live = self._load_live(change.snapshot)
            commits.append(Commit(change=change, live=live))
            live = live - change.added + change.removed
        return tuple(reversed(commits))

    def _load_live(self, snapshot: Snapshot) -> FileSums:
        found = self._live_before_gaps.get(snapshot)
        if found is None:
            entries = load_live_entries(self._store, snapshot).values()
            found = self._live_before_gaps[snapshot] = self.sum_up(entry.file for entry in entries)
        return found

    def sum_up(self, files: Iterable[DataFileMeta]) -> FileSums:
        """Return the sums over some files."""
        files = list(files)
        small = [file.file_size for file in files if self._sizes.is_small(file)]
        return FileSums(
            files=len(files),
            rows=sum(file.row_count for file in files),
            bytes=sum(file.file_size for file in files),
            small_files=len(small),
            small_bytes=sum(small),
        )

    def _forget(self, there: Collection[int]) -> None:
        self._known = {known: change for known, change in self._known.items() if known in there}
        newest = max(self._known, default=None)
        # After a rollback an id is used again with other content.
        if newest is not None and not is_in_history(self._store, self._known[newest].snapshot):
            self._known.clear()

    def _load(self, snapshot_id: int) -> Change | None:
        snapshot = self._store.find_snapshot(snapshot_id)
        if snapshot is None:
            return None
        try:
            entries = self._store.load_delta(snapshot)
        except NotFoundError:
            if self._store.find_snapshot(snapshot_id) is None:
                return None
            raise
        added = [entry.file for entry in entries if entry.kind is FileKind.ADD]
        removed = [entry.file for entry in entries if entry.kind is FileKind.DELETE]
        # Files with copied rows keep the creation time of the oldest file that they replace (``as_replacement``).
        times = {file.creation_millis for file in removed} - {None}
        return Change(
            snapshot=snapshot,
            added=self.sum_up(added),
            removed=self.sum_up(removed),
            rewritten_rows=sum(file.row_count for file in added if file.creation_millis in times),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledWatermark:
    """A period in which rows were committed but the watermark did not advance.

    Attributes:
        watermark: ms of event time.
        from_millis: commit time of the first snapshot with it that was read.
        to_millis: commit time of the last one that added rows and did not advance it.
        commits: number of commits that added rows and did not advance it.
        is_open: it has not ended.
    """

    watermark: int
    from_millis: int
    to_millis: int
    commits: int
    is_open: bool

    @property
    def duration_ms(self) -> int:
        """How long it lasted."""
        return max(0, self.to_millis - self.from_millis)


def find_stalled_watermarks(commits: Sequence[Commit]) -> tuple[StalledWatermark, ...]:
    """Find the periods in which rows were added but the watermark did not advance, oldest first.

    Periods without new rows are ignored.

    Args:
        commits: oldest first.
    """
    runs = [(watermark, tuple(run)) for watermark, run in groupby(commits, key=lambda commit: commit.watermark)]
    found = []
    for number, (watermark, run) in enumerate(runs):
        stuck = [commit for commit in run[1:] if commit.change.brings_rows]
        if watermark is None or not stuck:
            continue
        found.append(
            StalledWatermark(
                watermark=watermark,
                from_millis=run[0].snapshot.time_millis,
                to_millis=stuck[-1].snapshot.time_millis,
                commits=len(stuck),
                is_open=number + 1 == len(runs),
            )
        )
    return tuple(found)
