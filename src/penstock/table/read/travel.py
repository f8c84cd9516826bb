"""Time travel: the snapshot that a batch read uses, by its arguments and options. ``incremental`` reads changes.

Source:
    Paimon ``core:table/source/snapshot/TimeTravelUtil.java``, ``*StartingScanner.java``,
    ``core:utils/SnapshotManager.java``, ``core:schema/SchemaValidation.java``;
    docs/spec/streaming.md sections 1.1, 1.2; for ``versionAsOf`` and ``timestampAsOf`` Delta Lake's options of
    ``spark.read``, and Paimon's ``scan.version``, to which its ``VERSION AS OF`` is translated.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_text
from penstock.errors import DataLossError, InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind, find_lost_ids, snapshots_text
from penstock.options import ReadOptions
from penstock.options.choices import ScanMode
from penstock.table.times import instant, parse_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

NO_WATERMARK: Final = -(2**63)
"""The value that some engines store for "no watermark"."""

_CLEAN_STEPS: Final = 200
"""Number of snapshots that are checked for commit times that go back. With one commit per second, this allows for
clocks that differ by three minutes."""

_TIMES: Final = ("timestamp_millis", "timestamp")
_VERSIONS: Final = ("snapshot_id", "tag_name", "watermark", "version")
_CHANGES: Final = ("incremental_between", "incremental_between_timestamp", "incremental_to_auto_tag")
_KEYS: Final = {
    "timestamp_millis": "scan.timestamp-millis",
    "timestamp": "scan.timestamp",
    "snapshot_id": "scan.snapshot-id",
    "tag_name": "scan.tag-name",
    "watermark": "scan.watermark",
    "version": "scan.version",
    "file_creation_time_millis": "scan.file-creation-time-millis",
    "creation_time_millis": "scan.creation-time-millis",
    "incremental_between": "incremental-between",
    "incremental_between_timestamp": "incremental-between-timestamp",
    "incremental_to_auto_tag": "incremental-to-auto-tag",
}
"""Fields of ``ReadOptions`` that say where to read, with their keys for messages."""

POSITION_KEYS: Final = ("scan.mode", *_KEYS.values())
"""Options that say where a read begins: the mode, then the positions."""

# The meaning of `default`: the mode of the first row of which an option is set.
_DEFAULTS: Final = (
    (_TIMES, ScanMode.FROM_TIMESTAMP),
    (_VERSIONS, ScanMode.FROM_SNAPSHOT),
    (("file_creation_time_millis",), ScanMode.FROM_FILE_CREATION_TIME),
    (("creation_time_millis",), ScanMode.FROM_CREATION_TIMESTAMP),
    (_CHANGES, ScanMode.INCREMENTAL),
)

# Mode to positions: the mode takes exactly one of them, and no other position may be set.
_ONE_OF: Final[dict[ScanMode, tuple[str, ...]]] = {
    ScanMode.LATEST_FULL: (),
    ScanMode.LATEST: (),
    ScanMode.COMPACTED_FULL: (),
    ScanMode.FROM_TIMESTAMP: _TIMES,
    ScanMode.FROM_SNAPSHOT: _VERSIONS,
    ScanMode.FROM_SNAPSHOT_FULL: ("snapshot_id",),
    ScanMode.FROM_FILE_CREATION_TIME: ("file_creation_time_millis",),
    ScanMode.FROM_CREATION_TIMESTAMP: ("creation_time_millis",),
    ScanMode.INCREMENTAL: _CHANGES,
    ScanMode.LATEST_DELTA: (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPoint:
    """The state that a batch read uses.

    Attributes:
        snapshot: None where nothing was ever committed.
        created_from_millis: read only files created at or after this, ms since 1970-01-01 UTC; None for all files.
        is_latest: whether no past state was requested, so that the read schema is the table's latest.
    """

    snapshot: Snapshot | None
    created_from_millis: int | None = None
    is_latest: bool = False


def resolve_snapshot(
    store: MetadataStore,
    *,
    snapshot_id: int | None = None,
    timestamp_millis: int | None = None,
    tag: str | None = None,
    watermark: int | None = None,
) -> Snapshot | None:
    """Load the snapshot that the given argument names; the latest snapshot without arguments.

    Args:
        timestamp_millis: selects the newest snapshot committed at or before it, ms since 1970-01-01 UTC.
        tag: read from the tag file, so its snapshot may have expired.
        watermark: selects the first snapshot whose watermark (ms of event time) has reached it.

    Returns:
        The snapshot; None if nothing was ever committed and no argument was given.
    """
    position = ReadOptions(
        snapshot_id=snapshot_id, timestamp_millis=timestamp_millis, tag_name=tag, watermark=watermark
    )
    return resolve_read(store, position).snapshot


def resolve_read(store: MetadataStore, options: ReadOptions) -> ReadPoint:
    """Find the state that a batch read with these options uses."""
    positions = _positions_of(options)
    mode = read_mode(options, store.name)
    if options.tag_name is not None:
        return ReadPoint(snapshot=store.load_tag(options.tag_name).snapshot)
    if options.snapshot_id is not None:  # the latest snapshot may be damaged
        return ReadPoint(snapshot=store.load_snapshot(options.snapshot_id))
    with store.file_io.prefetch() as ahead:
        reading = store.reading(ahead)
        if positions:
            reading.request_latest()
            reading.request_earliest()
        latest = reading.load_latest_snapshot()
        if latest is not None:
            return _point(reading, latest, mode, options)
    if not positions:
        return ReadPoint(snapshot=None, is_latest=True)
    raise NotFoundError(
        f"table {store.name}: {_KEYS[positions[0]]} = '{getattr(options, positions[0])}' names no snapshot, nothing "
        "was committed yet"
    )


def read_mode(options: ReadOptions, table: str) -> ScanMode:
    """Resolve the mode of a batch read, including ``default``, and check that the positions fit it."""
    mode = resolve_default(options)
    if mode not in _ONE_OF:
        raise UnsupportedFeatureError(
            f"table {table}: scan.mode '{mode}' is for streams: read the table as one, name a state with "
            "scan.snapshot-id, scan.tag-name or scan.timestamp-millis, or changes with incremental-between"
        )
    check_positions(options, mode, _ONE_OF[mode], table)
    return mode


def resolve_default(options: ReadOptions) -> ScanMode:
    """Return the mode; ``default`` is resolved by the positions that are set."""
    if options.scan_mode is not ScanMode.DEFAULT:
        return options.scan_mode
    positions = _positions_of(options)
    return next((mode for names, mode in _DEFAULTS if any(name in positions for name in names)), ScanMode.LATEST_FULL)


def check_positions(options: ReadOptions, mode: ScanMode, allowed: tuple[str, ...], table: str) -> None:
    """Refuse positions that do not fit a mode.

    Args:
        allowed: fields of ``ReadOptions`` of which the mode takes exactly one; empty when it takes none.
    """
    positions = _positions_of(options)
    for name in positions:
        if name not in allowed:
            raise InvalidOptionError(
                f"table {table}: scan.mode '{mode}' and option '{_KEYS[name]}' contradict each other: leave one out"
            )
    if allowed and len(positions) != 1:
        found = " and ".join(f"'{_KEYS[name]}'" for name in positions) or "none"
        expected = ", ".join(_KEYS[name] for name in allowed)
        raise InvalidOptionError(f"table {table}: scan.mode '{mode}' takes exactly one of {expected}; found {found}")


def at_snapshot(ref: TableRef, store: MetadataStore, snapshot: Snapshot) -> TableRef:
    """Return the table as of a snapshot: with that snapshot's columns and the current options.

    The bucket key is of then: its columns may have been renamed, and their names given to others.
    """
    if snapshot.schema_id == ref.schema.id:
        return ref
    schema = store.load_schema(snapshot.schema_id)
    options = [option for option in ref.schema.options if option[0] != "bucket-key"]
    options += [option for option in schema.options if option[0] == "bucket-key"]
    return replace(ref, schema=replace(schema, options=tuple(options)))


def watermark_of(snapshot: Snapshot) -> int | None:
    """Return the snapshot's watermark in ms of event time; None if it has none or holds ``NO_WATERMARK``."""
    return None if snapshot.watermark == NO_WATERMARK else snapshot.watermark


def _positions_of(options: ReadOptions) -> tuple[str, ...]:
    return tuple(name for name in _KEYS if getattr(options, name) is not None)


def _point(store: MetadataStore, latest: Snapshot, mode: ScanMode, options: ReadOptions) -> ReadPoint:
    match mode:
        case ScanMode.LATEST_FULL | ScanMode.LATEST:
            return ReadPoint(snapshot=latest, is_latest=True)
        case ScanMode.COMPACTED_FULL:
            return ReadPoint(snapshot=newest_compacted(store, latest))
        case ScanMode.FROM_FILE_CREATION_TIME:
            return ReadPoint(snapshot=latest, created_from_millis=options.file_creation_time_millis, is_latest=True)
        case ScanMode.FROM_CREATION_TIMESTAMP:
            return _from_creation(store, latest, options.creation_time_millis or 0)
        case _:
            return ReadPoint(snapshot=_named_snapshot(store, latest, options))


def _named_snapshot(store: MetadataStore, latest: Snapshot, options: ReadOptions) -> Snapshot:
    if options.watermark is not None:
        return _first_with_watermark(store, latest, options.watermark)
    if options.version is not None:
        return _by_version(store, latest, options.version)
    if options.timestamp is not None:
        return newest_until_time(store, latest, parse_local_time(options.timestamp, "scan.timestamp", store.name))
    return newest_until_time(store, latest, options.timestamp_millis or 0)


def _by_version(store: MetadataStore, latest: Snapshot, version: str) -> Snapshot:
    tags = store.list_tags()
    if version in tags:
        return store.load_tag(version).snapshot
    if version.isdecimal():
        return store.load_snapshot(int(version))
    watermark = version.removeprefix("watermark-")
    if watermark != version and watermark.lstrip("-").isdecimal():
        return _first_with_watermark(store, latest, int(watermark))
    raise NotFoundError(
        f"table {store.name}: scan.version = '{version}' is not a tag, a snapshot id or a 'watermark-<ms>'; its tags "
        f"are {', '.join(map(repr, tags)) or 'none'}"
    )


def parse_local_time(text: str, key: str, table: str) -> int:
    """Parse a wall clock time in this machine's zone; return ms since 1970-01-01 UTC."""
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except ValueError:
        raise InvalidOptionError(
            f"table {table}: option '{key}' = '{text}': expected 'yyyy-MM-dd HH:mm:ss.SSS'"
        ) from None


def find_at_or_before(store: MetadataStore, snapshot_id: int) -> Snapshot | None:
    """Load the newest snapshot with this id or a lower one; None when there is none.

    An id between two snapshots may be missing: a rollback during a commit can leave a gap. The directory is
    listed only if the id is missing.
    """
    if snapshot_id < 1:
        return None
    snapshot = store.find_snapshot(snapshot_id)
    if snapshot is not None:
        return snapshot
    below = max((each for each in store.list_snapshot_ids() if each < snapshot_id), default=None)
    return None if below is None else store.find_snapshot(below)


def find_at_or_after(store: MetadataStore, snapshot_id: int) -> Snapshot | None:
    """Load the oldest snapshot with this id or a higher one; None when there is none. As ``find_at_or_before``."""
    snapshot = store.find_snapshot(snapshot_id)
    if snapshot is not None:
        return snapshot
    return next(store.snapshots_between(snapshot_id), None)


def newest_before(store: MetadataStore, latest: Snapshot, is_before: Callable[[Snapshot], bool]) -> Snapshot | None:
    """Find the newest snapshot for which ``is_before`` is true, as ``_neighbours`` does; None if there is none.

    Raises:
        DataLossError: the next snapshots after it were lost, and might be the newest.
    """
    found, above = _neighbours(store, latest, is_before)
    return found if found is None or above is None else _next_below(store, found, above)


def _neighbours(
    store: MetadataStore, latest: Snapshot, is_before: Callable[[Snapshot], bool]
) -> tuple[Snapshot | None, Snapshot | None]:
    """Find the newest snapshot for which ``is_before`` is true and the one above it, by a search in parts.

    ``is_before`` must be true for all snapshots up to some id, and false for all later ones. Ids may be missing between
    two snapshots, after a rollback concurrent with a commit. The directory is listed only if an id is missing.
    """
    earliest = store.load_earliest_snapshot()
    if earliest is None or not is_before(earliest):
        return None, earliest
    if is_before(latest):
        return latest, None
    found, above, is_listed = earliest, latest, False
    ids: Sequence[int] = range(earliest.id + 1, latest.id)
    while ids:
        step = -(-len(ids) // (store.snapshots_at_once + 1))
        asked = ids[step - 1 :: step][: store.snapshots_at_once]
        snapshots = list(store.find_snapshots(asked))
        if len(snapshots) < len(asked) and not is_listed:
            ids, is_listed = store.list_snapshot_ids(), True
        place = bisect_left(snapshots, True, key=lambda each: not is_before(each))  # noqa: FBT003 - the first such one
        found, above = [found, *snapshots][place], [*snapshots, above][place]
        ids = [each for each in ids if found.id < each < above.id and each not in asked]
    return found, above


def newest_by_time(store: MetadataStore, latest: Snapshot, millis: int, *, or_equal: bool = False) -> Snapshot | None:
    """Find the newest snapshot before the first one that was committed at or after a time; None if there is none.

    If the clocks of writers differ, commit times may go back. Then the first snapshot at or after the given time
    decides: no snapshot up to the result has such a commit time, and later commits do not change the result.

    Args:
        millis: since 1970-01-01 UTC.
        or_equal: whether snapshots of exactly this time also count as before it.

    Raises:
        DataLossError: the next snapshots after it were lost, and might be the newest.

    Source:
        Paimon ``core:table/source/snapshot/TimeTravelUtil.java`` assumes ascending times; so does this function, but it
        checks ``_CLEAN_STEPS`` further snapshots, until all of them are before the time.
    """

    def is_before(snapshot: Snapshot) -> bool:
        return snapshot.time_millis <= millis if or_equal else snapshot.time_millis < millis

    start = newest_before(store, latest, is_before)
    if start is None:
        return None
    found: Snapshot | None = start
    above, clean = None, 0
    for previous in predecessors(store, start.id):
        if is_before(previous):
            found, clean = found or previous, clean + 1
        else:
            found, above, clean = None, previous, 0
        if clean == _CLEAN_STEPS:
            break
    return found if found is None or above is None else _next_below(store, found, above)


def predecessors(store: MetadataStore, snapshot_id: int) -> Iterator[Snapshot]:
    """Yield the snapshots before an id, newest first; several are requested at once.

    The directory is listed only if an id is missing, as in ``find_at_or_before``.
    """
    first = snapshot_id
    while first > 1:
        ids = range(first - 1, max(first - 1 - store.snapshots_at_once, 0), -1)
        found = 0
        for snapshot in store.find_snapshots(ids):
            yield snapshot
            found += 1
        first = ids[-1]
        if found < len(ids):
            yield from store.find_snapshots([each for each in reversed(store.list_snapshot_ids()) if each < first])
            return


def _checked_predecessors(store: MetadataStore, above: Snapshot) -> Iterator[Snapshot]:
    """Yield the snapshots before another, newest first, down to those that are being expired.

    Raises:
        DataLossError: some of them were lost.
    """
    for below in predecessors(store, above.id):
        if _next_below(store, below, above) is None:
            return
        yield below
        above = below


def newest_until_time(store: MetadataStore, latest: Snapshot, millis: int) -> Snapshot:
    """Return the newest snapshot that was committed at or before a time in ms since 1970-01-01 UTC."""
    found = newest_by_time(store, latest, millis, or_equal=True)
    if found is None:
        earliest = store.load_earliest_snapshot() or latest
        raise NotFoundError(
            f"table {store.name}: no snapshot at or before {utc_text(millis)} ({millis}); the earliest that is still "
            f"there, snapshot {earliest.id}, was committed at {utc_text(earliest.time_millis)}"
        )
    return found


def _first_with_watermark(store: MetadataStore, latest: Snapshot, watermark: int) -> Snapshot:
    """Find the first snapshot whose watermark has reached the given one.

    Watermarks never decrease. For a snapshot without one, that of the nearest earlier snapshot that has one counts.
    """

    def is_before(snapshot: Snapshot) -> bool:
        reached = watermark_reached(store, snapshot)
        return reached is None or reached < watermark

    below, found = _neighbours(store, latest, is_before)
    if found is None:
        raise NotFoundError(
            f"table {store.name}: no snapshot has a watermark of {utc_text(watermark)} ({watermark}) or later; the "
            f"latest, snapshot {latest.id}, has {watermark_of(latest)}"
        )
    if below is not None:
        _next_below(store, below, found)
    return found


def watermark_reached(store: MetadataStore, snapshot: Snapshot) -> int | None:
    """Return the watermark of a snapshot, or of the nearest earlier one that has one; None if none has."""
    found = map(watermark_of, chain((snapshot,), _checked_predecessors(store, snapshot)))
    return next((each for each in found if each is not None), None)


def newest_compacted(
    store: MetadataStore, latest: Snapshot, is_meant: Callable[[Snapshot], bool] = lambda _: True
) -> Snapshot:
    """Find the newest COMPACT snapshot for which ``is_meant`` is true; the latest snapshot if there is none.

    This reads the snapshots from the latest down; all of them if there is no such snapshot.
    """
    for snapshot in chain((latest,), _checked_predecessors(store, latest)):
        if snapshot.commit_kind is CommitKind.COMPACT and is_meant(snapshot):
            return snapshot
    return latest


def check_not_lost(
    store: MetadataStore, below_id: int, snapshots: Sequence[Snapshot], above_id: int, what: str
) -> bool:
    """Check that no snapshot between two ids was lost.

    Args:
        snapshots: those between the two ids that exist, ascending.
        what: what is not known without the lost ones, for the error.

    Returns:
        False if some are missing because an expiration deletes them, in no certain order. A rollback may have deleted
        some in any case.

    Raises:
        DataLossError: some were lost.
    """
    lost = find_lost_ids((below_id, *(snapshot.id for snapshot in snapshots), above_id), snapshots)
    if lost and lost[-1].stop > store.load_expiring_end():
        raise DataLossError(
            f"table {store.name}: {what} not known: the files of {snapshots_text(lost)} are missing, and no "
            "rollback deleted them: restore them from a backup, or read before or after them, by snapshot ids; "
            "'penstock fsck' lists what is missing"
        )
    return not lost


def _next_below(store: MetadataStore, below: Snapshot, above: Snapshot) -> Snapshot | None:
    """Return the snapshot next below another; None if those between, and so this one too, are being expired.

    Raises:
        DataLossError: those between were lost.
    """
    what = f"the snapshot that is looked for before snapshot {above.id} is"
    return below if check_not_lost(store, below.id, [above], above.id + 1, what) else None


def _from_creation(store: MetadataStore, latest: Snapshot, millis: int) -> ReadPoint:
    before = newest_by_time(store, latest, millis)
    if before is not None and before.id < latest.id:
        return ReadPoint(snapshot=find_at_or_after(store, before.id + 1) or latest)
    return ReadPoint(snapshot=latest, created_from_millis=millis, is_latest=True)


_NAMES: Final = {"versionasof": "versionAsOf", "timestampasof": "timestampAsOf"}


def translate_as_of(options: Mapping[str, str], table: str, zone: str | None = None) -> dict[str, str]:
    """Return the options of a batch read, with Delta Lake's options for a state replaced by Penstock's.

    Args:
        options: keys are not case-sensitive.
        zone: for times without a zone, such as the session's; None if it is unknown.
    """
    as_of = {key: value for key, value in options.items() if key.lower() in _NAMES}
    if not as_of:
        return dict(options)
    others = {key: value for key, value in options.items() if key not in as_of}
    states = [*as_of, *(key for key in POSITION_KEYS if key in others)]
    if len(states) > 1:
        raise InvalidOptionError(
            f"table {table}: options '{states[0]}' and '{states[1]}' contradict each other: leave one out"
        )
    ((key, value),) = as_of.items()
    if key.lower() == "versionasof":
        return {**others, "scan.version": value}
    return {**others, "scan.timestamp-millis": str(_millis(value, table, zone))}


def _millis(text: str, table: str, zone: str | None) -> int:
    key = _NAMES["timestampasof"]
    clock, name = _parts(text.strip())
    if clock is None:
        raise InvalidOptionError(
            f"table {table}: option '{key}' = '{text}': expected a time such as '2026-01-01 10:00:00' or "
            "'2026-01-01T10:00:00+01:00'"
        )
    name = name or zone
    if clock.tzinfo is None and name is None:
        raise InvalidOptionError(
            f"table {table}: option '{key}' = '{text}': the zone of this time is not known here: add it, such as "
            f"'{clock.isoformat()}Z' or '{clock.isoformat()}+01:00'; Table.to_spark takes the session's"
        )
    millis = instant(clock, parse_zone(name, key, table) if clock.tzinfo is None else clock.tzinfo)
    if millis is None:
        raise InvalidOptionError(f"table {table}: option '{key}' = '{text}' is outside of the calendar")
    return millis


def _parts(text: str) -> tuple[datetime | None, str | None]:
    """Split a text into a time and the name of a zone.

    The time is None if it cannot be parsed. The name is None if there is none or the zone is part of the time.
    """
    head, _, tail = text.rpartition(" ")
    for time, name in ((text, None), (head, tail)):
        try:
            return datetime.fromisoformat(time), name
        except ValueError:
            continue
    return None, None
