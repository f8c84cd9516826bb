"""Incremental batch reads: the changes between two snapshots.

Source:
    Paimon ``core:table/source/AbstractDataTableScan.java``,
    ``core:table/source/snapshot/IncrementalDeltaStartingScanner.java``, ``IncrementalDiffStartingScanner.java``;
    docs/spec/streaming.md section 1.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind, present_text
from penstock.options.choices import IncrementalScanMode, ScanMode
from penstock.table.read.scan import ScanPlan, funnel_stage, plan_added, plan_scan
from penstock.table.read.travel import check_not_lost, newest_by_time, parse_local_time, read_mode

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.options import ReadOptions
    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_IDS = "incremental-between"
_TIMES = "incremental-between-timestamp"
_EMPTY_ID = 0
"""Snapshot id for the empty table before its first snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The range of snapshots of an incremental read.

    Attributes:
        start_id: exclusive; may be one before the earliest snapshot that still exists.
        start: the snapshot of ``start_id``, if the difference is read and the table was not empty then.
        end: inclusive.
        is_difference: read the files of the end that the start does not have, instead of the files that appends in
            between added.
    """

    start_id: int
    start: Snapshot | None = None
    end: Snapshot
    is_difference: bool = False


def reads_changes(options: ReadOptions, table: str) -> bool:
    """Whether a batch read with these options reads changes instead of a state."""
    return read_mode(options, table) in (ScanMode.INCREMENTAL, ScanMode.LATEST_DELTA)


def plan_changes(
    store: MetadataStore, ref: TableRef, options: ReadOptions, predicate: Predicate | None = None
) -> ScanPlan:
    """Find the files whose rows were added after one snapshot and up to another, as named by the options.

    Args:
        ref: its schema is the read schema; the filter is bound to its columns.
        options: options for which ``reads_changes`` is true.

    Returns:
        The plan; without files if the range is empty or nothing was ever committed.
    """
    _check_supported(options, store.name)
    latest = store.load_latest_snapshot()
    span = None if latest is None else _find_span(store, latest, options)
    if span is None:
        latest_id = None if latest is None else latest.id
        return replace(plan_scan(store, ref, None, predicate), snapshot=latest, after_snapshot_id=latest_id)
    plan = _plan_difference if span.is_difference else _plan_appends
    return replace(plan(store, ref, span, predicate), snapshot=span.end, after_snapshot_id=span.start_id)


def _check_supported(options: ReadOptions, table: str) -> None:
    if options.incremental_scan_mode is IncrementalScanMode.CHANGELOG:
        raise UnsupportedFeatureError(
            f"table {table}: 'incremental-between-scan-mode' = 'changelog' is for tables with a primary key; an append "
            "table has 'delta' (what appends added) and 'diff' (the files that the start did not have)"
        )
    if options.incremental_to_auto_tag is not None:
        raise UnsupportedFeatureError(
            f"table {table}: Penstock does not look for the automatic tag before "
            f"'{options.incremental_to_auto_tag}' ('incremental-to-auto-tag'): name both tags, 'incremental-between' = "
            f"'<earlier tag>,{options.incremental_to_auto_tag}'"
        )


def _plan_appends(store: MetadataStore, ref: TableRef, span: _Span, predicate: Predicate | None) -> ScanPlan:
    snapshots = _load_all(store, span.start_id + 1, span.end.id)
    # Compactions add no rows, and overwrites also remove some, so only APPEND snapshots are read.
    appends = [snapshot for snapshot in snapshots if snapshot.commit_kind is CommitKind.APPEND]
    for snapshot in appends:
        if any(meta.num_deleted_files for meta in store.load_delta_manifests(snapshot)):
            raise UnsupportedFeatureError(
                f"table {store.name}, snapshot {snapshot.id}: this APPEND also deletes files, so what was added is not "
                "what changed; read with 'incremental-between-scan-mode' = 'diff'"
            )
    return plan_added(store, ref, appends, predicate)


def _load_all(store: MetadataStore, first_id: int, last_id: int) -> list[Snapshot]:
    """Load the snapshots of a range; raise if one has expired or was lost. A rollback may have freed ids."""
    snapshots = list(store.find_snapshots(range(first_id, last_id + 1)))
    is_whole = len(snapshots) == last_id - first_id + 1
    # Snapshots expire in the order of their ids: if one of these two is there, none of the range has expired.
    if not is_whole and not store.has_snapshot(first_id) and not store.has_snapshot(first_id - 1):
        store.load_snapshot(first_id)  # raises, and says what there is
    what = f"the changes of snapshots {first_id} to {last_id} are"
    if not check_not_lost(store, first_id - 1, snapshots, last_id + 1, what):
        there = {snapshot.id for snapshot in snapshots}
        store.load_snapshot(min(each for each in range(first_id, last_id + 1) if each not in there))
    return snapshots


def _plan_difference(store: MetadataStore, ref: TableRef, span: _Span, predicate: Predicate | None) -> ScanPlan:
    plan = plan_scan(store, ref, span.end, predicate)
    # By key: a file that got another index in between is still the same.
    known = {entry.key for entry in plan_scan(store, ref, span.start, predicate).entries}
    partitions = []
    for partition in plan.partitions:
        entries = tuple(entry for entry in partition.entries if entry.key not in known)
        if entries:
            partitions.append(replace(partition, entries=entries))
    stage = funnel_stage("difference", {partition.data: partition.entries for partition in partitions})
    funnel = replace(plan.funnel, stages=(*plan.funnel.stages, stage))
    return replace(plan, partitions=tuple(partitions), funnel=funnel)


def _find_span(store: MetadataStore, latest: Snapshot, options: ReadOptions) -> _Span | None:
    """Return the range that the options name; None if it is empty."""
    if options.incremental_between is not None:
        return _between_names(store, latest, options, options.incremental_between)
    is_difference = options.incremental_scan_mode is IncrementalScanMode.DIFF
    if options.incremental_between_timestamp is not None:
        return _between_times(store, latest, options.incremental_between_timestamp, is_difference=is_difference)
    return _Span(start_id=latest.id - 1, end=latest)


def _between_names(store: MetadataStore, latest: Snapshot, options: ReadOptions, text: str) -> _Span | None:
    first, last = _pair(text, _IDS, store.name)
    is_difference = options.incremental_scan_mode is IncrementalScanMode.DIFF
    tags = store.list_tags()
    if first in tags and last in tags:
        start, end = store.load_tag(first).snapshot, store.load_tag(last).snapshot
        if not options.incremental_tags_as_snapshots:
            _check_order(start.id, end.id, _IDS, text, store.name)
            return None if start.id == end.id else _Span(start_id=start.id, start=start, end=end, is_difference=True)
        start_id, end_id = start.id, end.id
    elif first.isdecimal() and last.isdecimal():
        start_id, end_id = int(first), int(last)
    else:
        raise InvalidOptionError(
            f"table {store.name}: option '{_IDS}' = '{text}': expected two tags or two snapshot ids, the first "
            f"exclusive; its tags are {', '.join(map(repr, tags)) or 'none'}"
        )
    _check_order(start_id, end_id, _IDS, text, store.name)
    if start_id == end_id:
        return None
    earliest_id = store.earliest_snapshot_id() or latest.id
    if start_id < earliest_id - 1 or end_id > latest.id:
        raise NotFoundError(
            f"table {store.name}: option '{_IDS}' = '{text}': {present_text(earliest_id, latest.id)}, so the "
            f"first may be {earliest_id - 1} at least and the second {latest.id} at most"
        )
    end = store.load_snapshot(end_id)
    if not is_difference:
        return _Span(start_id=start_id, end=end)
    start_snapshot = None if start_id == _EMPTY_ID else store.load_snapshot(start_id)
    return _Span(start_id=start_id, start=start_snapshot, end=end, is_difference=True)


def _between_times(store: MetadataStore, latest: Snapshot, text: str, *, is_difference: bool) -> _Span | None:
    first, last = _pair(text, _TIMES, store.name)
    if first.isdecimal() and last.isdecimal():
        start_millis, end_millis = int(first), int(last)
    else:
        start_millis, end_millis = (parse_local_time(each, _TIMES, store.name) for each in (first, last))
    _check_order(start_millis, end_millis, _TIMES, text, store.name)
    start = newest_by_time(store, latest, start_millis, or_equal=True)
    end = newest_by_time(store, latest, end_millis, or_equal=True)
    if end is None or (start is not None and start.id == end.id):
        return None
    if start is None:
        earliest = store.load_earliest_snapshot() or latest
        if not is_difference or earliest.id == _EMPTY_ID + 1:
            return _Span(start_id=earliest.id - 1, end=end, is_difference=is_difference)
        # The state before the earliest snapshot is not known any more.
        start = earliest
    return _Span(start_id=start.id, start=start, end=end, is_difference=is_difference)


def _pair(text: str, key: str, table: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidOptionError(
            f"table {table}: option '{key}' = '{text}': expected two values with a comma between them, the first "
            "exclusive"
        )
    return parts[0], parts[1]


def _check_order(first: int, last: int, key: str, text: str, table: str) -> None:
    if first > last:
        raise InvalidOptionError(f"table {table}: option '{key}' = '{text}': the end is before the start: swap them")
