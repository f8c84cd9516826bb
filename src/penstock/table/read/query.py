"""A batch read from options to a plan: which state or which changes, with which columns, which files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.options import ReadOptions, check_reads
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And
from penstock.table.identity import check_same_table
from penstock.table.read.incremental import plan_changes, reads_changes
from penstock.table.read.partitions import KEY as PARTITIONS
from penstock.table.read.partitions import filter_of_partitions
from penstock.table.read.scan import plan_scan
from penstock.table.read.travel import at_snapshot, resolve_read

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.travel import ReadPoint
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A batch read, planned.

    Attributes:
        ref: the table with the columns to read: of a state of the past that state's own, else the latest.
    """

    ref: TableRef
    plan: ScanPlan


def read_ref(ref: TableRef, store: MetadataStore) -> TableRef:
    """Return the table with the columns that a read with its options sees; errors as ``plan_query``."""
    check_reads(ref.options, ref.name, of_batch_read=True)
    options = ref.parsed(ReadOptions)
    if reads_changes(options, ref.name):
        return ref
    point = resolve_read(store, options)
    return ref if point.is_latest or point.snapshot is None else at_snapshot(ref, store, point.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A batch read of which the state is chosen, so that all plans of it see the same rows.

    Attributes:
        ref: as of ``Query``.
        point: the state; None for a read of changes, which is resolved by each plan.
    """

    ref: TableRef
    point: ReadPoint | None

    def plan(self, store: MetadataStore, predicate: Predicate | None = None) -> ScanPlan:
        """Plan the read; errors as ``plan_query``, but that nobody looks whether the table is still there."""
        ref, point = self.ref, self.point
        if point is None:
            options = ref.parsed(ReadOptions)
            return plan_changes(
                store, ref, options, _in_partitions(store, ref, store.load_latest_snapshot(), predicate)
            )
        predicate = _in_partitions(store, ref, point.snapshot, predicate)
        return plan_scan(store, ref, point.snapshot, predicate, created_from_millis=point.created_from_millis)


def pin_read(ref: TableRef, store: MetadataStore) -> PinnedRead:
    """Choose the state that the table's options ask for; errors as ``plan_query``."""
    check_reads(ref.options, ref.name, of_batch_read=True)
    options = ref.parsed(ReadOptions)
    check_same_table(ref)
    if reads_changes(options, ref.name):
        return PinnedRead(ref=ref, point=None)
    point = resolve_read(store, options)
    if not point.is_latest and point.snapshot is not None:
        ref = at_snapshot(ref, store, point.snapshot)
    return PinnedRead(ref=ref, point=point)


def plan_query(ref: TableRef, store: MetadataStore, predicate: Predicate | str | None = None) -> Query:
    """Plan the read that the table's options ask for.

    Args:
        predicate: a filter, or the text of one.

    Raises:
        NotFoundError: there is no such snapshot or tag, or metadata is missing; or the table is not there any more.
        InvalidOptionError: options that contradict each other.
        InvalidFilterError: the filter cannot be parsed, or does not fit the columns.
        UnsupportedFeatureError: the rows of the table are not simply those of its files, or options ask for what
            Penstock does not have.
        FormatError: metadata is damaged.
    """
    pinned = pin_read(ref, store)
    parsed = parse_filter(predicate) if isinstance(predicate, str) else predicate
    return Query(ref=pinned.ref, plan=pinned.plan(store, parsed))


def _in_partitions(
    store: MetadataStore, ref: TableRef, snapshot: Snapshot | None, predicate: Predicate | None
) -> Predicate | None:
    """Return the filter together with that of the partitions that the table's options name."""
    text = ref.options.get(PARTITIONS)
    wanted = None if text is None else filter_of_partitions(store, ref, snapshot, text)
    if wanted is None or predicate is None:
        return predicate if wanted is None else wanted
    return And(operands=(predicate, wanted))
