"""Planning of a batch read from its options: the state or the changes to read, the columns, the files.

Source:
    Paimon ``flink:FlinkConnectorOptions.java``, ``flink:lookup/PartitionLoader.java`` for ``scan.partitions``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.format.row.row import row_decoder
from penstock.format.text.partitions import parse_partition, partition_text
from penstock.options import ReadOptions, check_reads
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And
from penstock.table.assumptions import check_same_table, warn_other_engines
from penstock.table.partition_scope import filter_of_specs
from penstock.table.read.fallback import Fallback, pin_fallback
from penstock.table.read.incremental import plan_changes, reads_changes
from penstock.table.read.live import load_live_entries
from penstock.table.read.scan import plan_scan
from penstock.table.read.travel import at_snapshot, resolve_read

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    text = ref.options.get(_KEY)
    return _both(predicate, None if text is None else filter_of_partitions(store, ref, snapshot, text))


def _both(one: Predicate | None, other: Predicate | None) -> Predicate | None:
    if one is None or other is None:
        return other if one is None else one
    return And(operands=(one, other))


_KEY: Final = "scan.partitions"
_GREATEST: Final = {"max_pt()": 1, "max_two_pt()": 2}


def filter_of_partitions(store: MetadataStore, ref: TableRef, snapshot: Snapshot | None, text: str) -> Predicate | None:
    """Return a filter that selects the partitions named by the option.

    Args:
        snapshot: the snapshot whose greatest partitions are selected.
        text: ``dt=2026-01-01,hr=5;dt=2026-01-02,hr=0``, ``max_pt()`` or ``max_two_pt()``.

    Returns:
        None if the greatest partitions are requested and the table has no partitions yet.

    Raises:
        InvalidOptionError: the text names no partitions of the table.
    """
    keys = ref.schema.partition_keys
    if not keys:
        raise InvalidOptionError(f"table {ref.name}: option '{_KEY}' = '{text}': it has no partitions; leave it out")
    count = _GREATEST.get(text.strip().lower())
    if count is not None:
        specs = _greatest(store, ref, snapshot, count)
        return filter_of_specs(ref, specs) if specs else None
    named = [parse_partition(part.strip()) for part in text.split(";") if part.strip()]
    for spec in named:
        # The reference uses NULL for columns that are left out, which is hardly ever intended.
        if set(spec) != set(keys):
            raise InvalidOptionError(
                f"table {ref.name}: option '{_KEY}' = '{text}': expected partitions such as "
                f"'{','.join(f'{key}=...' for key in keys)}', with semicolons between them, or max_pt(), max_two_pt()"
            )
    if not named:
        raise InvalidOptionError(f"table {ref.name}: option '{_KEY}' = '{text}' names no partition; leave it out")
    return filter_of_specs(ref, named)


def _greatest(
    store: MetadataStore, ref: TableRef, snapshot: Snapshot | None, count: int
) -> list[Mapping[str, str | None]]:
    if snapshot is None:
        return []
    fields = ref.schema.partition_fields
    live = {entry.partition for entry in load_live_entries(store, snapshot, lambda _: True).values()}
    decode = row_decoder(tuple(field.type for field in fields))
    # NULL is the smallest value.
    rows = sorted((decode(data) for data in live), key=lambda row: [(value is not None, value) for value in row])
    return [
        {
            field.name: None if value is None else partition_text(field, value, legacy_name=False)
            for field, value in zip(fields, row, strict=True)
        }
        for row in rows[-count:]
    ]
