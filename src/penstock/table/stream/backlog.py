"""Measures the backlog of a reader.

Source:
    Spark's ``reportLatestOffset`` and source metrics; docs/spec/streaming.md section 2.1 for what a stream delivers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import FormatError, NotFoundError, warn_damaged
from penstock.format.manifest.entry import FileKind
from penstock.options import StreamOptions
from penstock.table.read.files import total
from penstock.table.read.travel import watermark_of
from penstock.table.stream.files import FileLists, OrderedFiles
from penstock.table.stream.offset import Phase, Position, StreamOffset
from penstock.table.stream.planner import delivers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# Measuring a snapshot costs three reads of storage.
_MAX_LOOKS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The rows that a stream has not delivered yet, before any filter.

    Attributes:
        snapshots: number of snapshots with rows to deliver; a partly delivered one counts.
        files: number of data files.
        bytes: size of the data files on storage.
        rows: number of rows in the data files.
        event_time_lag_ms: the table's watermark minus that of the last delivered snapshot; None if one of them has no
            watermark.
        latest_snapshot_id: None when nothing was ever committed.
        is_partial: not all snapshots are measured yet, so the numbers are too small.
    """

    snapshots: int
    files: int
    bytes: int
    rows: int
    event_time_lag_ms: int | None
    latest_snapshot_id: int | None
    is_partial: bool


class _Size(NamedTuple):
    files: int
    bytes: int
    rows: int


_NOTHING: Final = _Size(0, 0, 0)


@dataclass(slots=True, kw_only=True)
class BacklogCache:
    """Caches the sizes of measured snapshots for a caller that measures repeatedly.

    Attributes:
        files: file lists of a reader of the same table; None for a new one.
        max_looks: maximum number of snapshots that one call measures; None for 1,000.
        sizes: files, bytes and rows that a snapshot delivers, by snapshot id.
        watermarks: ms by snapshot id.
        warns: with ``DamagedFileWarning`` about newly found ids of ``damaged``.
        damaged: ids of snapshots before the latest that cannot be read: they count as empty, without a watermark.
    """

    files: FileLists | None = None
    max_looks: int | None = None
    sizes: dict[int, _Size] = field(default_factory=dict)
    watermarks: dict[int, int | None] = field(default_factory=dict)
    warns: bool = True
    damaged: set[int] = field(default_factory=set)

    def forget(self, first: int, latest: int) -> None:
        """Evict the snapshots before ``first``; evict everything when snapshots were rolled back."""
        if any(known > latest for known in self.watermarks):
            self.sizes.clear()
            self.watermarks.clear()
        for known in [known for known in self.watermarks if known < first]:
            del self.watermarks[known]
            self.sizes.pop(known, None)


def measure_backlog(
    store: MetadataStore,
    ref: TableRef,
    at: StreamOffset | int,
    cache: BacklogCache,
    *,
    latest_id: int | None = None,
) -> Backlog:
    """Measure the backlog of a reader.

    One call measures at most 1,000 snapshots, or ``max_looks`` of the cache; the next call with the same cache
    continues after them.

    Args:
        at: an offset, or the id of the next snapshot that a consumer reads.
        latest_id: id of the latest snapshot, if the caller has just loaded it.
    """
    offset = at if isinstance(at, StreamOffset) else StreamOffset(position=Position(snapshot_id=at))
    latest = store.latest_snapshot_id() if latest_id is None else latest_id
    position = offset.position
    if latest is None or position is None:
        return _backlog([], None, latest, is_partial=latest is not None)
    known = set(cache.damaged)
    cache.forget(position.snapshot_id - 1, latest)
    sizes = []
    first = position.snapshot_id
    if position.is_inside:
        sizes.append(_rest_of(store, ref, offset, position, cache))
        first += 1
    is_partial = _measure_snapshots(store, ref, range(max(first, 1), latest + 1), cache)
    sizes += [cache.sizes.get(snapshot_id, _NOTHING) for snapshot_id in range(first, latest + 1)]
    lag = _lag(store, position, latest, cache)
    if cache.warns:
        warn_damaged(store.name, sorted(cache.damaged - known))
    return _backlog(sizes, lag, latest, is_partial=is_partial)


def _backlog(sizes: list[_Size], lag: int | None, latest: int | None, *, is_partial: bool) -> Backlog:
    return Backlog(
        snapshots=sum(size.files > 0 for size in sizes),
        files=sum(size.files for size in sizes),
        bytes=sum(size.bytes for size in sizes),
        rows=sum(size.rows for size in sizes),
        event_time_lag_ms=lag,
        latest_snapshot_id=latest,
        is_partial=is_partial,
    )


def _measure_snapshots(store: MetadataStore, ref: TableRef, snapshot_ids: range, cache: BacklogCache) -> bool:
    """Measure snapshots that are not in the cache yet; return whether some are left."""
    overwrites = ref.parsed(StreamOptions).read_append_overwrite
    unknown = [snapshot_id for snapshot_id in snapshot_ids if snapshot_id not in cache.sizes]
    most = cache.max_looks or _MAX_LOOKS
    for snapshot_id in unknown[:most]:
        snapshot = _find_readable(store, snapshot_id, snapshot_ids[-1], cache)
        cache.watermarks[snapshot_id] = None if snapshot is None else watermark_of(snapshot)
        cache.sizes[snapshot_id] = _NOTHING if snapshot is None else _changes_of(store, snapshot, overwrites=overwrites)
    return len(unknown) > most


def _changes_of(store: MetadataStore, snapshot: Snapshot, *, overwrites: bool) -> _Size:
    if not delivers(snapshot, Position(snapshot_id=snapshot.id), overwrites=overwrites):
        return _NOTHING
    try:
        return _size(entry.file for entry in store.load_delta(snapshot) if entry.kind is FileKind.ADD)
    except NotFoundError:  # it expired meanwhile; the stream's reader will report that
        return _NOTHING


def _rest_of(
    store: MetadataStore, ref: TableRef, offset: StreamOffset, position: Position, cache: BacklogCache
) -> _Size:
    """Return the size of the undelivered files of the snapshot that the position is inside of."""
    if cache.files is None:
        cache.files = FileLists(ref, store)
    snapshot = store.find_snapshot(position.snapshot_id)
    if snapshot is None:
        return _NOTHING
    try:
        files = cache.files.load_files(snapshot, position.phase, by_value=offset.by_value)
    except NotFoundError:
        return _NOTHING
    created_from, rest = offset.created_from, files[position.index :]
    if isinstance(rest, OrderedFiles):
        kept = slice(None) if created_from is None else rest.column("created_millis") >= created_from
        sizes, rows = (rest.column(name)[kept] for name in ("file_size", "row_count"))
        return _Size(len(sizes), total(sizes), total(rows))
    return _size(
        entry.file for entry in rest if created_from is None or (entry.file.creation_millis or 0) >= created_from
    )


def _lag(store: MetadataStore, position: Position, latest: int, cache: BacklogCache) -> int | None:
    if position.phase is Phase.FULL:
        return None
    delivered = _watermark(store, position.snapshot_id - 1, latest, cache)
    newest = _watermark(store, latest, latest, cache)
    return None if delivered is None or newest is None else max(newest - delivered, 0)


def _watermark(store: MetadataStore, snapshot_id: int, latest: int, cache: BacklogCache) -> int | None:
    if snapshot_id not in cache.watermarks:
        snapshot = _find_readable(store, snapshot_id, latest, cache) if snapshot_id > 0 else None
        cache.watermarks[snapshot_id] = None if snapshot is None else watermark_of(snapshot)
    return cache.watermarks[snapshot_id]


def _find_readable(store: MetadataStore, snapshot_id: int, latest: int, cache: BacklogCache) -> Snapshot | None:
    """Load a snapshot; None when it is gone or, unless it is the latest one, damaged."""
    try:
        return store.find_snapshot(snapshot_id)
    except FormatError:
        if snapshot_id >= latest:
            store.load_latest_snapshot()  # its error names the rollback
            raise
        cache.damaged.add(snapshot_id)
        return None


def _size(files: Iterable[DataFileMeta]) -> _Size:
    sizes = [(file.file_size, file.row_count) for file in files]
    return _Size(len(sizes), sum(size for size, _ in sizes), sum(rows for _, rows in sizes))
