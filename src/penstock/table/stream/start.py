"""Resolves where a stream begins.

Source:
    Paimon ``core:table/source/snapshot/*StartingScanner.java``, ``core:schema/SchemaValidation.java``;
    docs/spec/streaming.md sections 1.1 to 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.clocks import to_wall_clock
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER
from penstock.options import CompactOptions, ReadOptions, StreamOptions
from penstock.options.choices import ScanMode
from penstock.table.assumptions import warn_other_engines
from penstock.table.read.travel import (
    check_positions,
    find_at_or_after,
    newest_by_time,
    newest_compacted,
    parse_local_time,
    resolve_default,
)
from penstock.table.stream.history import History
from penstock.table.stream.offset import Phase, Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.options import ConsumerOptions
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# For each mode, the position options of which exactly one must be set; all other position options contradict the mode.
_ONE_OF: Final[dict[ScanMode, tuple[str, ...]]] = {
    ScanMode.LATEST_FULL: (),
    ScanMode.LATEST: (),
    ScanMode.EARLIEST: (),
    ScanMode.COMPACTED_FULL: (),
    ScanMode.FROM_TIMESTAMP: ("timestamp_millis", "timestamp"),
    ScanMode.FROM_SNAPSHOT: ("snapshot_id", "version"),
    ScanMode.FROM_SNAPSHOT_FULL: ("snapshot_id",),
    ScanMode.FROM_FILE_CREATION_TIME: ("file_creation_time_millis",),
    ScanMode.FROM_CREATION_TIMESTAMP: ("creation_time_millis",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """The start of a stream.

    Attributes:
        created_from: only files created at or after it, a wall clock as ms since 1970-01-01; None for all.
    """

    position: Position
    created_from: int | None = None


def read_options(ref: TableRef) -> ReadOptions:
    """Return the options of a stream's start. Raises ``InvalidOptionError``, which names the modes of streams only."""
    given = ref.options.get("scan.mode")
    if given is not None and given.lower() not in {*ScanMode, "full"}:
        modes = ", ".join(_ONE_OF)
        raise InvalidOptionError(f"table {ref.name}: option 'scan.mode' = '{given}': expected one of {modes}")
    return ref.parsed(ReadOptions)


def check_start(options: ReadOptions, table: str) -> ScanMode:
    """Return the scan mode of a stream, with ``default`` resolved; checks that the position options fit it."""
    batch_only = {"scan.tag-name": options.tag_name, "scan.watermark": options.watermark}
    if options.version is not None and not options.version.isdecimal():
        batch_only["scan.version"] = options.version
    for key, value in batch_only.items():
        if value is not None:
            raise InvalidOptionError(
                f"table {table}: option '{key}' = '{value}' starts a batch read only: a stream starts at a snapshot "
                "with scan.mode = 'from-snapshot' or 'from-snapshot-full' and scan.snapshot-id"
            )
    mode = resolve_default(options)
    if mode not in _ONE_OF:
        raise UnsupportedFeatureError(
            f"table {table}: scan.mode '{mode}' is for batch reads: a stream takes all changes that follow its start, "
            "choose that with scan.mode = 'from-snapshot', 'from-timestamp' or 'latest-full'"
        )
    check_positions(options, mode, _ONE_OF[mode], table)
    return mode


def resolve_start(
    store: MetadataStore, ref: TableRef, read: ReadOptions, consumer: ConsumerOptions
) -> StreamStart | None:
    """Resolve where a stream with these options begins.

    The stored position of a consumer takes precedence over the options, unless ``consumer.ignore-progress`` is set.

    Returns:
        The start; None while it cannot be resolved, because nothing was committed yet or the requested snapshot does
        not exist yet: call again later.

    Raises:
        InvalidOptionError: options that contradict each other, or that only a batch read has.
        UnsupportedFeatureError: a mode that only a batch read has.
        DataLossError: the requested snapshot has expired, or snapshots since the requested time may have, and
            ``penstock.fail-on-data-loss`` is true.
        FormatError: metadata is damaged.
    """
    mode = check_start(read, ref.name)
    if consumer.consumer_id is not None and not consumer.ignore_progress:
        kept = store.load_consumer(consumer.consumer_id)
        if kept is not None:
            return _changes(kept)  # may have expired: the scanner that reads it reports the loss
    latest = store.load_latest_snapshot()
    warn_other_engines(ref, latest)
    if latest is None:
        # These modes deliver the changes of the first snapshot; the others wait until it exists.
        is_first = mode in {ScanMode.LATEST, ScanMode.EARLIEST} or _snapshot_id(read) in {0, 1}
        return _changes(1) if is_first and mode is not ScanMode.FROM_SNAPSHOT_FULL else None
    return _start(store, ref, mode, read, latest)


def _start(  # noqa: PLR0911 - one return for each mode
    store: MetadataStore, ref: TableRef, mode: ScanMode, read: ReadOptions, latest: Snapshot
) -> StreamStart | None:
    earliest = store.earliest_snapshot_id() or latest.id
    match mode:
        case ScanMode.LATEST:
            return _changes(latest.id + 1)
        case ScanMode.EARLIEST:
            return _changes(earliest)
        case ScanMode.COMPACTED_FULL:
            return _full(newest_compacted(store, latest, _is_full_compaction(ref)).id)
        case ScanMode.FROM_TIMESTAMP:
            return _changes(_begun_at(store, ref, latest, _start_millis(read, ref.name)))
        case ScanMode.FROM_SNAPSHOT:
            wanted = _still_there(store, ref, _snapshot_id(read), earliest)
            return _changes(wanted) if wanted <= latest.id + 1 else None
        case ScanMode.FROM_SNAPSHOT_FULL:
            wanted = _still_there(store, ref, _snapshot_id(read), earliest)
            return _full(wanted) if wanted <= latest.id else None
        case ScanMode.FROM_FILE_CREATION_TIME:
            return _full(latest.id, created_from=to_wall_clock(read.file_creation_time_millis or 0))
        case ScanMode.FROM_CREATION_TIMESTAMP:
            millis = read.creation_time_millis or 0
            first = _first_since(store, latest, millis)
            if earliest < first <= latest.id:
                return _changes(first)
            return _full(latest.id, created_from=to_wall_clock(millis))
        case _:
            return _full(latest.id)


def _changes(snapshot_id: int) -> StreamStart:
    return StreamStart(position=Position(snapshot_id=snapshot_id))


def _full(snapshot_id: int, created_from: int | None = None) -> StreamStart:
    return StreamStart(position=Position(snapshot_id=snapshot_id, phase=Phase.FULL), created_from=created_from)


def _still_there(store: MetadataStore, ref: TableRef, wanted: int, earliest: int) -> int:
    """Return the requested snapshot id; if it has expired and data loss is allowed, the earliest one."""
    if wanted >= earliest:
        return wanted
    if earliest <= 1:
        return earliest
    return _history(store, ref).lost(max(wanted, 1))


def _begun_at(store: MetadataStore, ref: TableRef, latest: Snapshot, millis: int) -> int:
    """Return the id of the first snapshot committed at or after a time.

    If that one may have expired and data loss is allowed, it is the earliest, with a warning. The reference begins at
    the earliest without a warning.
    """
    earliest = store.load_earliest_snapshot()
    if earliest is not None and earliest.id > 1 and earliest.time_millis > millis:
        return _history(store, ref).lost_since(millis, earliest)
    return _first_since(store, latest, millis)


def _history(store: MetadataStore, ref: TableRef) -> History:
    return History(store, fails=ref.parsed(StreamOptions).fail_on_data_loss)


def _snapshot_id(read: ReadOptions) -> int:
    """Return the requested snapshot id; -1 for none."""
    if read.snapshot_id is not None:
        return max(read.snapshot_id, 0)
    return int(read.version) if read.version is not None else -1


def _start_millis(read: ReadOptions, table: str) -> int:
    if read.timestamp is not None:
        return parse_local_time(read.timestamp, "scan.timestamp", table)
    return read.timestamp_millis or 0


def _first_since(store: MetadataStore, latest: Snapshot, millis: int) -> int:
    """Return the id after the newest snapshot older than a time; the earliest id where no snapshot is older.

    A rollback during a commit may leave a gap of ids after that snapshot; then it is the first id after the gap.
    """
    older = newest_by_time(store, latest, millis)
    if older is None:
        return store.earliest_snapshot_id() or latest.id
    following = None if older.id >= latest.id else find_at_or_after(store, older.id + 1)
    return older.id + 1 if following is None else following.id


def _is_full_compaction(ref: TableRef) -> Callable[[Snapshot], bool]:
    """Return the test for compactions to start from; with ``full-compaction.delta-commits`` only full ones pass."""
    step = ref.parsed(CompactOptions).delta_commits
    return lambda snapshot: (
        step is None or snapshot.commit_identifier % step == 0 or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
    )
