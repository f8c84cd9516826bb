"""Scan planning: the files that a read of a snapshot opens.

Source:
    Paimon ``core:operation/AbstractFileStoreScan.java``;
    docs/spec/format.md sections 5.4 and 7, docs/spec/streaming.md 5.1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.clocks import to_wall_clock
from penstock.errors import UnsupportedFeatureError
from penstock.format.manifest.entry import FileKind, ManifestEntry, merge_entries
from penstock.format.manifest.index_manifest import (
    DELETION_VECTORS,
    VectorPlace,
    decode_index_types,
    decode_vector_places,
)
from penstock.predicate.bind import bind
from penstock.predicate.tree import FALSE, TRUE, BoundPredicate, Predicate
from penstock.table.assumptions import check_schema_of_file
from penstock.table.read.files import (
    FileColumns,
    LazyEntries,
    by_code,
    count_pairs,
    count_values,
    sorted_codes,
    total_of,
)
from penstock.table.read.indexes import FileIndexPruner, has_index
from penstock.table.read.prune import BucketPruner, PartitionPruner, PartitionPruneResult, StatsPruner
from penstock.table.read.prune_columns import ColumnsPruner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.columns import ManifestColumns
    from penstock.format.manifest.entry import FileKey, ManifestFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

MIN_COLUMNS: Final = 1_000
"""With fewer entries in the manifests, columns take as long as objects."""

# With more schemas than this, reading all of them costs more than skipping manifests by bucket saves.
_MAX_SCHEMAS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPartition:
    """The files to read of one partition.

    Attributes:
        data: serialized BinaryRow (arity prefix included) of the partition values.
        values: internal values, in ``partition_keys`` order.
        created_millis: earliest creation time of its live files, including pruned ones; the writer's wall clock time as
            ms since 1970-01-01.
        rest: the remaining filter for the rows.
        entries: in manifest order; of many files, decoded when they are first used.
    """

    data: bytes
    values: tuple[object, ...]
    created_millis: int
    rest: BoundPredicate
    entries: Sequence[ManifestEntry]

    @property
    def row_count(self) -> int:
        """Number of rows in the files, before the filter."""
        return total_of(self.entries, "row_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelStage:
    """Number of files and rows that are left after a step of pruning.

    Attributes:
        name: ``live``, ``partition``, ``bucket``, ``statistics``, ``file index`` or ``difference``.
        buckets: distinct pairs of partition and bucket.
        bytes: size of the data files on storage.
    """

    name: str
    partitions: int
    buckets: int
    files: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """Effect of all steps of pruning.

    Attributes:
        manifests_total: manifests that the snapshot names.
        manifests_read: manifests that their own statistics did not exclude.
        files_total: live files of the snapshot, including those of manifests that were not read.
        rows_total: rows of the snapshot; None if the snapshot does not record them.
        stages: in the order of the steps; ``live`` counts the live files of the manifests that were read.
        index_files: number of index files that were read, at least in part.
        index_bytes: number of bytes read from them.
    """

    manifests_total: int = 0
    manifests_read: int = 0
    files_total: int = 0
    rows_total: int | None = 0
    stages: tuple[FunnelStage, ...] = ()
    index_files: int = 0
    index_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The files of a read.

    Attributes:
        snapshot: None if nothing was ever committed.
        predicate: the whole filter, bound to the read schema.
        partitions: in the order in which they first appear in the manifests.
        vectors: deletion vectors by data file; empty unless requested. Row counts include the rows that they delete.
        after_snapshot_id: for an incremental read, the exclusive start of its range; else None.
    """

    snapshot: Snapshot | None
    predicate: BoundPredicate
    partitions: tuple[ScanPartition, ...]
    funnel: Funnel
    after_snapshot_id: int | None = None
    vectors: Mapping[FileKey, VectorPlace] = field(default_factory=dict)

    @property
    def entries(self) -> tuple[ManifestEntry, ...]:
        """All files, partition by partition."""
        return tuple(chain.from_iterable(partition.entries for partition in self.partitions))

    @property
    def file_count(self) -> int:
        """Number of files to read."""
        return sum(len(partition.entries) for partition in self.partitions)

    @property
    def row_count(self) -> int:
        """Number of rows in the files to read, before the filter."""
        return sum(partition.row_count for partition in self.partitions)


def plan_scan(
    store: MetadataStore,
    ref: TableRef,
    snapshot: Snapshot | None,
    predicate: Predicate | None = None,
    created_from_millis: int | None = None,
    *,
    with_vectors: bool = False,
) -> ScanPlan:
    """Find the live files of a snapshot that may contain a row that passes the filter.

    Args:
        ref: its schema is the read schema; the filter is bound to its columns.
        snapshot: None gives an empty plan.
        created_from_millis: only plan files created at or after this time, ms since 1970-01-01 UTC.
        with_vectors: set only by readers that apply ``ScanPlan.vectors``.
    """
    bound = bind(TRUE if predicate is None else predicate, ref.schema.fields, ref.name)
    if snapshot is None:
        return ScanPlan(snapshot=None, predicate=bound, partitions=(), funnel=Funnel())
    vectors = load_vector_places(store, snapshot) if with_vectors else {}
    if not with_vectors:
        check_deletion_vectors(store, snapshot)
    scan = _Scan(store, ref, bound)
    metas = scan.choose(store.load_manifests(snapshot))
    wall_clock = None if created_from_millis is None else to_wall_clock(created_from_millis)
    if entry_count(metas) >= MIN_COLUMNS:
        files = FileColumns.live(scan.iter_columns(snapshot, metas), is_whole=scan.is_whole)
        if wall_clock is not None:
            files = files.where(files.column("created_millis") >= wall_clock)
        partitions = scan.prune_columns(files)
    else:
        live = live_entries(scan.load(snapshot, metas), scan.is_whole)
        if wall_clock is not None:
            live = [entry for entry in live if (entry.file.creation_millis or 0) >= wall_clock]
        partitions = scan.prune(live)
    plan = scan.plan(snapshot, partitions, snapshot.total_record_count)
    return replace(plan, vectors=vectors) if vectors else plan


def plan_added(
    store: MetadataStore, ref: TableRef, snapshots: Sequence[Snapshot], predicate: Predicate | None = None
) -> ScanPlan:
    """Find the files that some snapshots added and that may contain a row that passes the filter.

    Files that the snapshots deleted are ignored.

    Args:
        ref: its schema is the read schema; the filter is bound to its columns.
        snapshots: ascending; the last one becomes the plan's snapshot.
    """
    scan = _Scan(store, ref, bind(TRUE if predicate is None else predicate, ref.schema.fields, ref.name))
    added = [
        entry
        for snapshot in snapshots
        for entry in scan.load(snapshot, scan.choose(store.load_delta_manifests(snapshot)))
        if entry.kind is FileKind.ADD
    ]
    counts = [snapshot.delta_record_count for snapshot in snapshots]
    rows_total = None if None in counts else sum(count or 0 for count in counts)
    return scan.plan(snapshots[-1] if snapshots else None, scan.prune(added), rows_total)


def entry_count(metas: Iterable[ManifestFileMeta]) -> int:
    """Return the number of entries of manifests."""
    return sum(meta.num_added_files + meta.num_deleted_files for meta in metas)


def live_entries(
    entries: Iterable[ManifestEntry], is_whole: Callable[[ManifestEntry], bool] | None = None
) -> list[ManifestEntry]:
    """Return the ADD entries that no DELETE entry cancels, in their order; ``is_whole`` as of ``merge_entries``.

    File names are compared first; full identities, which cost five times as much, only for equal names. Names contain a
    UUID, so they nearly always differ.
    """
    entries = list(entries)
    added = [entry for entry in entries if entry.kind is FileKind.ADD]
    counts = Counter(entry.file.file_name for entry in added)
    suspects = {entry.file.file_name for entry in entries if entry.kind is not FileKind.ADD}
    if len(counts) < len(added):
        suspects.update(name for name, count in counts.items() if count > 1)
    if not suspects:
        return added
    merged = merge_entries((entry for entry in entries if entry.file.file_name in suspects), is_whole)
    # One entry may be in several manifests, and is one object then: it survives once, where it was added last.
    survivors = {id(entry) for entry in merged.values()}
    live = []
    for entry in reversed(added):
        if entry.file.file_name not in suspects:
            live.append(entry)
        elif id(entry) in survivors:
            survivors.remove(id(entry))
            live.append(entry)
    live.reverse()
    return live


def funnel_stage(name: str, groups: Mapping[bytes, Sequence[ManifestEntry]]) -> FunnelStage:
    """Return the counts of the entries that a step of pruning left; ``groups`` are by serialized partition."""
    return FunnelStage(
        name=name,
        partitions=len(groups),
        buckets=sum(len({entry.bucket for entry in entries}) for entries in groups.values()),
        files=sum(map(len, groups.values())),
        bytes=sum(entry.file.file_size for entries in groups.values() for entry in entries),
        rows=sum(entry.file.row_count for entries in groups.values() for entry in entries),
    )


def check_deletion_vectors(store: MetadataStore, snapshot: Snapshot) -> None:
    """Refuse a snapshot with live deletion vectors: a read would return deleted rows."""
    data = store.read_index_manifest(snapshot)
    if data is None:
        return
    path = store.layout.manifest_path(snapshot.index_manifest or "")
    if DELETION_VECTORS in decode_index_types(data, path, store.limits):
        raise UnsupportedFeatureError(
            f"table {store.name}, snapshot {snapshot.id}: rows were deleted through deletion vectors, which reads of "
            "a difference do not apply: read the whole table, or compact it first with the option "
            "'compaction.delete-ratio-threshold' = '0'"
        )


def check_index_files(store: MetadataStore, snapshot: Snapshot | None) -> None:
    """Refuse a snapshot with index files other than deletion vectors: a change of rows would have to rewrite them."""
    data = None if snapshot is None else store.read_index_manifest(snapshot)
    if snapshot is None or data is None:
        return
    path = store.layout.manifest_path(snapshot.index_manifest or "")
    others = decode_index_types(data, path, store.limits) - {DELETION_VECTORS}
    if others:
        raise UnsupportedFeatureError(
            f"table {store.name}: snapshot {snapshot.id} has index files ({', '.join(sorted(others))}), which changing "
            "rows would have to rewrite; change them with an engine that maintains these"
        )


def load_vector_places(store: MetadataStore, snapshot: Snapshot) -> dict[FileKey, VectorPlace]:
    """Load the positions of a snapshot's deletion vectors, by their data file."""
    data = store.read_index_manifest(snapshot)
    if data is None:
        return {}
    return decode_vector_places(data, store.layout.manifest_path(snapshot.index_manifest or ""), store.limits)


class _Scan:
    """The pruners of one plan, and the counts after each of them."""

    def __init__(self, store: MetadataStore, ref: TableRef, predicate: BoundPredicate) -> None:
        self._stages: list[FunnelStage] = []
        self._metas: list[ManifestFileMeta] = []
        self._manifests_read = 0
        self._ref = ref
        self._store = store
        self._predicate = predicate
        self._partitions = PartitionPruner(ref.schema, predicate)
        self._buckets = BucketPruner(ref, predicate, store.load_schema)
        self._verdicts: dict[bytes, PartitionPruneResult] = {}
        self._stats = StatsPruner(store.load_schema)
        self._indexes = FileIndexPruner(ref, store.load_schema)
        self._index_budget = self._indexes.new_budget()
        self._totals = self._bucket_counts() if self._buckets.is_active else frozenset[int]()

    def _may_hold(self, meta: ManifestFileMeta) -> bool:
        return (
            self._predicate.root != FALSE
            and self._partitions.may_hold(meta)
            and self._buckets.may_hold(meta, self._totals)
        )

    def is_whole(self, entry: ManifestEntry) -> bool:
        """Whether no manifest is skipped that may have entries of the same file: of its partition and bucket."""
        return not self._partitions.evaluate(entry.partition).is_excluded and self._buckets.keeps(entry)

    def choose(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta]:
        """Return a snapshot's manifests without those that can be skipped."""
        self._metas += metas
        if self._predicate.root != TRUE:
            # The reader checks this too, but a filter by the older type may prune a file with newer values, so that the
            # file is never opened.
            for schema_id in {meta.schema_id for meta in metas}:
                check_schema_of_file(self._ref, self._store, schema_id, self._ref.schema.fields)
        read = [meta for meta in metas if self._may_hold(meta)]
        self._manifests_read += len(read)
        return read

    def load(self, snapshot: Snapshot, metas: Sequence[ManifestFileMeta]) -> Iterator[ManifestEntry]:
        """Yield the entries of some of a snapshot's manifests."""
        for entries in self._store.iter_manifests(metas, snapshot_id=snapshot.id):
            yield from entries

    def iter_columns(self, snapshot: Snapshot, metas: Sequence[ManifestFileMeta]) -> Iterator[ManifestColumns]:
        """Yield the entries of some of a snapshot's manifests as columns.

        The statistics that the filter needs are read when they are decoded, which saves to uncompress them twice.
        """
        predicate = self._predicate
        fields = tuple(field for field in predicate.fields if field.name not in self._ref.schema.partition_keys)
        visit = partial(ColumnsPruner(self._stats).read, replace(predicate, fields=fields)) if fields else None
        return self._store.iter_columns(metas, snapshot_id=snapshot.id, visit=visit)

    def _verdict(self, partition: bytes) -> PartitionPruneResult:
        verdict = self._verdicts.get(partition)
        if verdict is None:
            verdict = self._verdicts[partition] = self._partitions.evaluate(partition)
        return verdict

    def plan(
        self, snapshot: Snapshot | None, partitions: tuple[ScanPartition, ...], rows_total: int | None
    ) -> ScanPlan:
        """Return the plan, with the counts of its steps."""
        funnel = Funnel(
            manifests_total=len(self._metas),
            manifests_read=self._manifests_read,
            files_total=sum(meta.num_added_files - meta.num_deleted_files for meta in self._metas),
            rows_total=rows_total,
            stages=tuple(self._stages),
            index_files=self._index_budget.files,
            index_bytes=self._index_budget.bytes,
        )
        return ScanPlan(snapshot=snapshot, predicate=self._predicate, partitions=partitions, funnel=funnel)

    def prune(self, live: Sequence[ManifestEntry]) -> tuple[ScanPartition, ...]:
        """Return the files to read, by partition."""
        groups: dict[bytes, list[ManifestEntry]] = {}
        for entry in live:
            groups.setdefault(entry.partition, []).append(entry)
        self._note("live", groups)
        verdicts = {partition: self._partitions.evaluate(partition) for partition in groups}
        created = {data: min(entry.file.creation_millis or 0 for entry in entries) for data, entries in groups.items()}
        if self._predicate.root != TRUE:
            groups = self._pruned(groups, verdicts)
        return tuple(
            ScanPartition(
                data=data,
                values=verdicts[data].values,
                created_millis=created[data],
                rest=verdicts[data].rest,
                entries=tuple(entries),
            )
            for data, entries in groups.items()
        )

    def _pruned(
        self, groups: dict[bytes, list[ManifestEntry]], verdicts: Mapping[bytes, PartitionPruneResult]
    ) -> dict[bytes, list[ManifestEntry]]:
        groups = {data: entries for data, entries in groups.items() if not verdicts[data].is_excluded}
        self._note("partition", groups)
        if self._buckets.is_active:
            groups = _filtered({data: filter(self._buckets.keeps, entries) for data, entries in groups.items()})
        self._note("bucket", groups)
        kept = {
            data: [entry for entry in entries if self._stats.keeps(entry.file, verdicts[data].rest)]
            for data, entries in groups.items()
        }
        groups = _filtered(kept)
        self._note("statistics", groups)
        return self._kept_by_indexes(groups, verdicts)

    def prune_columns(self, files: FileColumns) -> tuple[ScanPartition, ...]:
        """Return the same as ``prune``, for files in columns."""
        data, codes = files.partitions()
        verdicts = [self._verdict(each) for each in data]
        order, starts = sorted_codes(codes)
        created = np.minimum.reduceat(files.column("created_millis")[order], starts) if len(starts) else starts
        self._note_columns("live", files, codes)
        if self._predicate.root != TRUE:
            files, codes = self._pruned_columns(files, codes, verdicts)
        groups: dict[int, Sequence[ManifestEntry]] = {
            code: LazyEntries(part) for code, part in by_code(files, codes, are_all_used=True)
        }
        if self._predicate.root != TRUE and files.column("may_have_index").any():
            by_data = self._kept_by_indexes(
                {data[code]: list(entries) for code, entries in groups.items()},
                {data[code]: verdicts[code] for code in groups},
            )
            groups = {code: by_data[data[code]] for code in groups if data[code] in by_data}
        return tuple(
            ScanPartition(
                data=data[code],
                values=verdicts[code].values,
                created_millis=int(created[code]),
                rest=verdicts[code].rest,
                entries=entries,
            )
            for code, entries in groups.items()
        )

    def _pruned_columns(
        self, files: FileColumns, codes: Array, verdicts: Sequence[PartitionPruneResult]
    ) -> tuple[FileColumns, Array]:
        is_excluded = np.array([verdict.is_excluded for verdict in verdicts], bool)
        if is_excluded.any():
            kept = ~is_excluded[codes]
            files, codes = files.where(kept), codes[kept]
        self._note_columns("partition", files, codes)
        if self._buckets.is_active:
            kept = self._buckets.keeps_columns(files)
            files, codes = files.where(kept), codes[kept]
        self._note_columns("bucket", files, codes)
        kept = self._kept_by_statistics(files, codes, verdicts)
        files, codes = files.where(kept), codes[kept]
        self._note_columns("statistics", files, codes)
        return files, codes

    def _kept_by_statistics(self, files: FileColumns, codes: Array, verdicts: Sequence[PartitionPruneResult]) -> Array:
        filters, filter_of = _distinct_filters(verdicts)
        of_files = filter_of[codes]
        pruner = ColumnsPruner(self._stats)
        kept = np.zeros(len(files), bool)
        at = 0
        for part, rows in files.by_part():
            numbers_of = of_files[at : at + len(rows)]
            numbers = np.flatnonzero(np.bincount(numbers_of)).tolist() if len(filters) > 1 else [0]
            for number in numbers:
                chosen = numbers_of == number if len(numbers) > 1 else slice(None)
                kept[at : at + len(rows)][chosen] = pruner.keeps(part, rows[chosen], filters[number])
            at += len(rows)
        return kept

    def _kept_by_indexes(
        self, groups: dict[bytes, list[ManifestEntry]], verdicts: Mapping[bytes, PartitionPruneResult]
    ) -> dict[bytes, list[ManifestEntry]]:
        asked = [(entry, verdicts[data].rest) for data, entries in groups.items() for entry in entries]
        if not any(has_index(entry.file) for entry, _ in asked):
            return groups
        kept = iter(self._indexes.kept(asked, self._index_budget))
        groups = _filtered({data: [entry for entry in entries if next(kept)] for data, entries in groups.items()})
        self._note("file index", groups)
        return groups

    def _note(self, name: str, groups: Mapping[bytes, Sequence[ManifestEntry]]) -> None:
        self._stages.append(funnel_stage(name, groups))

    def _note_columns(self, name: str, files: FileColumns, codes: Array) -> None:
        last = self._stages[-1] if self._stages else None
        if last is not None and last.files == len(files):
            # Each step leaves some of the files of the one before.
            self._stages.append(replace(last, name=name))
            return
        self._stages.append(
            FunnelStage(
                name=name,
                partitions=count_values(codes),
                buckets=count_pairs(codes, files.column("bucket")),
                files=len(files),
                bytes=files.total("file_size"),
                rows=files.total("row_count"),
            )
        )

    def _bucket_counts(self) -> frozenset[int]:
        """Return all bucket counts that the table has had; -1 if they are not known, or the key had another type."""
        ids = self._store.list_schema_ids()
        if len(ids) > _MAX_SCHEMAS or not all(map(self._buckets.has_same_key, ids)):
            return frozenset({-1})
        options = [self._ref.options, *(self._store.load_schema(schema_id).option_map for schema_id in ids)]
        return frozenset(int(each.get("bucket", "-1")) for each in options)


def _distinct_filters(verdicts: Sequence[PartitionPruneResult]) -> tuple[list[BoundPredicate], Array]:
    """Return the distinct filters for the rows of partitions, and for each partition the index of its filter."""
    filters: list[BoundPredicate] = []
    numbers: dict[Predicate, int] = {}
    for verdict in verdicts:
        if numbers.setdefault(verdict.rest.root, len(filters)) == len(filters):
            filters.append(verdict.rest)
    return filters, np.array([numbers[verdict.rest.root] for verdict in verdicts], np.int64)


def _filtered(groups: Mapping[bytes, Iterable[ManifestEntry]]) -> dict[bytes, list[ManifestEntry]]:
    lists = {data: list(entries) for data, entries in groups.items()}
    return {data: entries for data, entries in lists.items() if entries}
