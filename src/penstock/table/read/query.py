"""Planning of a batch read from its options: the state or the changes to read, the columns, the files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.options import ReadOptions, check_reads
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And
from penstock.table.foreign_commits import warn_other_engines
from penstock.table.identity import check_same_table
from penstock.table.read.fallback import Fallback, pin_fallback
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
    """A planned batch read.

    Attributes:
        ref: the table with the columns to read: those of the past state if one is read, else the latest.
        pinned: the read, to plan it again with more filters.
    """

    ref: TableRef
    plan: ScanPlan
    pinned: PinnedRead


def read_ref(ref: TableRef, store: MetadataStore) -> TableRef:
    """Return the table with the columns of a read with its options; errors as ``plan_query``."""
    check_reads(ref.options, ref.name, of_batch_read=True)
    options = ref.parsed(ReadOptions)
    if reads_changes(options, ref.name):
        return ref
    point = resolve_read(store, options)
    return ref if point.is_latest or point.snapshot is None else at_snapshot(ref, store, point.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A batch read with a fixed state, so that all its plans have the same rows.

    Attributes:
        ref: as for ``Query``.
        point: the state; None for an incremental read, whose range each plan resolves.
        fallback: the state of the branch from which missing partitions are read.
        predicate: a filter that is combined with that of every plan.
    """

    ref: TableRef
    point: ReadPoint | None
    fallback: Fallback | None = None
    predicate: Predicate | None = None

    @property
    def state(self) -> str:
        """The state as a text, which differs between any two states of a table."""
        if self.point is None:
            return "changes"
        return _state_of(self.point.snapshot) + (
            f" with {self.fallback.ref.name} {_state_of(self.fallback.snapshot)}" if self.fallback else ""
        )

    def plan(self, store: MetadataStore, predicate: Predicate | None = None, *, with_vectors: bool = False) -> ScanPlan:
        """Plan the read; errors as ``plan_query``, but without a check that the table still exists."""
        ref, point = self.ref, self.point
        predicate = _both(self.predicate, predicate)
        if point is None:
            options = ref.parsed(ReadOptions)
            return plan_changes(
                store, ref, options, _in_partitions(store, ref, store.load_latest_snapshot(), predicate)
            )
        predicate = _in_partitions(store, ref, point.snapshot, predicate)
        plan = plan_scan(
            store,
            ref,
            point.snapshot,
            predicate,
            created_from_millis=point.created_from_millis,
            with_vectors=with_vectors,
        )
        return self.fallback.add_to(store, plan, predicate, with_vectors=with_vectors) if self.fallback else plan


def pin_read(ref: TableRef, store: MetadataStore) -> PinnedRead:
    """Fix the state that the table's options name; errors as ``plan_query``."""
    check_reads(ref.options, ref.name, of_batch_read=True)
    options = ref.parsed(ReadOptions)
    check_same_table(ref)
    if reads_changes(options, ref.name):
        pin_fallback(ref, store, None)
        return PinnedRead(ref=ref, point=None)
    point = resolve_read(store, options)
    if point.is_latest:
        warn_other_engines(ref, point.snapshot)
    elif point.snapshot is not None:
        ref = at_snapshot(ref, store, point.snapshot)
    return PinnedRead(ref=ref, point=point, fallback=pin_fallback(ref, store, point))


def plan_query(
    ref: TableRef, store: MetadataStore, predicate: Predicate | str | None = None, *, with_vectors: bool = False
) -> Query:
    """Plan the read that the table's options define.

    Args:
        predicate: a filter, or the text of one.
        with_vectors: as for ``plan_scan``.

    Raises:
        NotFoundError: there is no such snapshot or tag, or metadata is missing; or the table does not exist any more.
        InvalidOptionError: the options contradict each other.
        InvalidFilterError: the filter cannot be parsed, or does not fit the columns.
        UnsupportedFeatureError: the snapshot has deletion vectors, or the options name a feature that Penstock does
            not have.
        FormatError: metadata is damaged.
    """
    parsed = parse_filter(predicate) if isinstance(predicate, str) else predicate
    pinned = replace(pin_read(ref, store), predicate=parsed)
    return Query(ref=pinned.ref, plan=pinned.plan(store, with_vectors=with_vectors), pinned=pinned)


def _state_of(snapshot: Snapshot | None) -> str:
    return "empty" if snapshot is None else str(snapshot.id)


def _in_partitions(
    store: MetadataStore, ref: TableRef, snapshot: Snapshot | None, predicate: Predicate | None
) -> Predicate | None:
    """Return the filter combined with the filter of the partitions that the table's options name."""
    text = ref.options.get(PARTITIONS)
    return _both(predicate, None if text is None else filter_of_partitions(store, ref, snapshot, text))


def _both(one: Predicate | None, other: Predicate | None) -> Predicate | None:
    if one is None or other is None:
        return other if one is None else one
    return And(operands=(one, other))
