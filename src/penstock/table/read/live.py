"""The live files of a snapshot, and the changes since an earlier one, as commit and maintenance need them.

State that a process updates from snapshot to snapshot (file lists, sequence numbers, partitions) needs only the deltas
in between. It must be rebuilt after a rollback, when the same ids may have other content, and if snapshots in between
have expired.

Source:
    Paimon ``core:manifest/FileEntry.java``; docs/spec/format.md section 5.4.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.errors import NotFoundError
from penstock.format.manifest.entry import FileKey, FileKind
from penstock.format.manifest.files import number_buckets
from penstock.format.row.row import row_decoder
from penstock.format.snapshot import CommitKind
from penstock.predicate.tree import TRUE, And, BoundPredicate, Compare, IsNull, Operator, Or, Predicate
from penstock.table.partition_scope import MatchingPartitions, WholeTable
from penstock.table.read.files import FileColumns, LazyEntries, by_code
from penstock.table.read.prune import NO_FILTER, PartitionPruner
from penstock.table.read.scan import MIN_COLUMNS, entry_count, live_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import (
        BucketNumbers,
        DataFileMeta,
        EntryNumbers,
        FileIdentity,
        ManifestEntry,
        ManifestFileMeta,
    )
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.store import MetadataStore


# For more partitions, manifests are skipped by the range of each column's values.
_MAX_PARTITIONS: Final = 64


def load_live_entries(
    store: MetadataStore,
    snapshot: Snapshot,
    keep: Callable[[bytes], bool] | None = None,
    pruner: PartitionPruner | None = None,
) -> dict[FileIdentity, ManifestEntry]:
    """Load the live entries of some partitions, in manifest order; entries of others are not decoded.

    Args:
        keep: called once per distinct serialized partition of each manifest; None for all partitions.
        pruner: skips manifests that contain none of these partitions.
    """
    metas = [meta for meta in store.load_manifests(snapshot) if pruner is None or pruner.may_hold(meta)]
    if keep is not None and entry_count(metas) >= MIN_COLUMNS:
        live = FileColumns.live(store.iter_columns(metas, snapshot_id=snapshot.id), keep).entries()
    else:
        manifests = store.iter_manifests(metas, snapshot_id=snapshot.id)
        live = live_entries(_of_partitions(chain.from_iterable(manifests), keep))
    return {entry.identity: entry for entry in live}


def load_live_files(store: MetadataStore, snapshot: Snapshot) -> FileColumns:
    """Load the live files as columns: for many files of which few, or few at a time, have to be objects."""
    return FileColumns.live(store.iter_columns(store.load_manifests(snapshot), snapshot_id=snapshot.id))


def _of_partitions(entries: Iterable[ManifestEntry], keep: Callable[[bytes], bool] | None) -> Iterable[ManifestEntry]:
    if keep is None:
        return entries
    test = cache(keep)
    return (entry for entry in entries if test(entry.partition))


def load_live_by_partition(
    store: MetadataStore,
    snapshot: Snapshot,
    keep: Callable[[bytes], bool] | None = None,
    pruner: PartitionPruner | None = None,
) -> dict[bytes, Sequence[ManifestEntry]]:
    """Load the live entries of some partitions by serialized partition; many entries are decoded when they are used.

    Args:
        keep: as for ``load_live_entries``.
        pruner: likewise.
    """
    metas = [meta for meta in store.load_manifests(snapshot) if pruner is None or pruner.may_hold(meta)]
    if entry_count(metas) >= MIN_COLUMNS:
        files = FileColumns.live(store.iter_columns(metas, snapshot_id=snapshot.id), keep)
        data, codes = files.partitions()
        return {data[code]: LazyEntries(part) for code, part in by_code(files, codes, are_all_used=False)}
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in load_live_entries(store, snapshot, keep, pruner).values():
        groups.setdefault(entry.partition, []).append(entry)
    return dict(groups)


def load_partitions(store: MetadataStore, snapshot: Snapshot) -> frozenset[bytes]:
    """Load the serialized partitions that have live files."""
    metas = store.load_manifests(snapshot)
    if entry_count(metas) >= MIN_COLUMNS:
        return frozenset(FileColumns.live(store.iter_columns(metas, snapshot_id=snapshot.id)).partitions()[0])
    return frozenset(entry.partition for entry in load_live_entries(store, snapshot).values())


def load_live_of_partitions(
    store: MetadataStore, schema: TableSchema, snapshot: Snapshot, partitions: frozenset[bytes]
) -> dict[FileIdentity, ManifestEntry]:
    """Load the live entries of some serialized partitions.

    Manifests are in commit order, so for a table that is partitioned by time only the last few manifests are read,
    however many there are.
    """
    return load_live_entries(store, snapshot, partitions.__contains__, pruner_of_partitions(schema, partitions))


def load_live_numbers(
    store: MetadataStore, schema: TableSchema, snapshot: Snapshot, partitions: frozenset[bytes]
) -> Collection[ManifestEntry | EntryNumbers]:
    """Load only the fields of the live entries of some serialized partitions that sequence numbers need.

    This takes half the time of ``load_live_of_partitions``.
    """
    pruner = pruner_of_partitions(schema, partitions)
    live: dict[FileKey, ManifestEntry | EntryNumbers] = {}
    metas = [meta for meta in store.load_manifests(snapshot) if pruner.may_hold(meta)]
    for entries in _numbers_of(store, schema, snapshot, metas, partitions):
        for entry in entries:
            if entry.partition not in partitions:
                continue
            key = FileKey(entry.partition, entry.bucket, entry.file.file_name)
            if entry.kind is FileKind.ADD:
                live[key] = entry
            else:
                live.pop(key, None)
    return live.values()


def load_bucket_numbers(
    store: MetadataStore, schema: TableSchema, snapshot: Snapshot, partitions: frozenset[bytes]
) -> tuple[tuple[BucketNumbers, ...], frozenset[bytes]]:
    """Load the largest sequence number of the live files by bucket, mostly from the headers of the manifests.

    The largest number of all ADD entries of a bucket is that of a live file if more ADD than DELETE entries have it: a
    DELETE entry has the numbers of its file, and a merged file the largest of those that it replaces. It is not if, for
    example, the newest files were overwritten; names of files decide then.

    Returns:
        One value per bucket with live files, and the partitions that are not among them, because only their entries
        say which number is the largest one, or what their number of buckets is: for ``load_live_numbers``.
    """
    pruner = pruner_of_partitions(schema, partitions)
    metas = [meta for meta in store.load_manifests(snapshot) if pruner.may_hold(meta)]
    buckets: defaultdict[tuple[bytes, int], list[BucketNumbers]] = defaultdict(list)
    left: list[ManifestFileMeta] = []
    for meta, numbers in store.iter_bucket_numbers(metas, snapshot_id=snapshot.id):
        if numbers is None:
            left.append(meta)
        for each in numbers or ():
            buckets[each.partition, each.bucket].append(each)
    for entries in _numbers_of(store, schema, snapshot, left, partitions) if left else ():
        for each in number_buckets(entries):
            buckets[each.partition, each.bucket].append(each)
    found: list[BucketNumbers] = []
    unknown: set[bytes] = set()
    total_buckets: defaultdict[bytes, set[int]] = defaultdict(set)
    for (partition, _), parts in buckets.items():
        if partition not in partitions:
            continue
        live = _live_numbers(parts)
        if live is None:
            unknown.add(partition)
        else:
            found.append(live)
        total_buckets[partition].update(each.total_buckets for each in parts)
    unknown.update(partition for partition, totals in total_buckets.items() if len(totals) > 1)
    return tuple(each for each in found if each.partition not in unknown), frozenset(unknown)


def _live_numbers(numbers: Sequence[BucketNumbers]) -> BucketNumbers | None:
    """Sum up the numbers of one bucket; None if they do not say what the largest number of its live files is."""
    added = [each for each in numbers if each.added_count]
    deleted = [each for each in numbers if each.deleted_count]
    largest = max((each.added_max for each in added), default=-1)
    count = sum(each.added_count for each in added if each.added_max == largest)
    count -= sum(each.deleted_count for each in deleted if each.deleted_max == largest)
    if count <= 0 or any(each.deleted_max > largest for each in deleted):
        return None
    return added[0]._replace(added_max=largest, added_count=count, deleted_max=0, deleted_count=0)


def _numbers_of(
    store: MetadataStore,
    schema: TableSchema,
    snapshot: Snapshot,
    metas: Sequence[ManifestFileMeta],
    partitions: frozenset[bytes],
) -> Iterator[Sequence[ManifestEntry | EntryNumbers]]:
    """Yield the entries of each manifest that may be in the partitions."""
    if schema.partition_keys and entry_count(metas) >= MIN_COLUMNS:
        for columns in store.iter_columns(metas, snapshot_id=snapshot.id):
            yield columns.entries(columns.of_partitions(partitions.__contains__))
    else:
        yield from store.iter_entry_numbers(metas, snapshot_id=snapshot.id)


def pruner_of_partitions(schema: TableSchema, partitions: Collection[bytes]) -> PartitionPruner:
    """Return a pruner of manifests that contain none of some serialized partitions."""
    return PartitionPruner(schema, _partition_filter(schema, partitions))


def pruner_of_scope(schema: TableSchema, scope: OverwriteScope, touched: frozenset[bytes]) -> PartitionPruner | None:
    """Return a pruner of manifests that contain no partition of a scope; None if every manifest may contain one.

    Args:
        touched: the serialized partitions of the new files.
    """
    match scope:
        case WholeTable():
            return None
        case MatchingPartitions(predicate=predicate):
            return PartitionPruner(schema, predicate)
        case _:
            return pruner_of_partitions(schema, touched)


def _partition_filter(schema: TableSchema, partitions: Collection[bytes]) -> BoundPredicate:
    if not schema.partition_keys:
        return NO_FILTER
    decode = row_decoder(tuple(field.type for field in schema.partition_fields))
    rows = [decode(partition) for partition in partitions]
    root: Predicate
    if len(rows) > _MAX_PARTITIONS:
        columns = zip(schema.partition_keys, zip(*rows, strict=True), strict=True)
        root = And(operands=tuple(_range(name, values) for name, values in columns))
    else:
        branches = [
            And(operands=tuple(_leaf(name, value) for name, value in zip(schema.partition_keys, row, strict=True)))
            for row in rows
        ]
        root = Or(operands=tuple(branches))
    return BoundPredicate(root=root, fields=schema.partition_fields)


def _leaf(name: str, value: object) -> Predicate:
    return IsNull(column=name) if value is None else Compare(column=name, operator=Operator.EQ, value=value)


def _range(name: str, values: Collection[Any]) -> Predicate:
    """Return a filter that holds for all of the values; NaN, the greatest number, has no place in a range."""
    present = [value for value in values if value is not None]
    if not present or any(value != value for value in present):  # noqa: PLR0124 - NaN
        return TRUE if present else IsNull(column=name)
    low = Compare(column=name, operator=Operator.GE, value=min(present))
    high = Compare(column=name, operator=Operator.LE, value=max(present))
    within = And(operands=(low, high))
    return within if len(present) == len(values) else Or(operands=(within, IsNull(column=name)))


MAX_STEPS: Final = 256
"""Above this many snapshots, a scan of the table costs less than reading the deltas."""


class DeltaSource(Protocol):
    """The two reads of a ``MetadataStore`` that are needed."""

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Load one snapshot; None if it does not exist."""
        ...

    def load_delta(self, snapshot: Snapshot) -> Sequence[ManifestEntry]:
        """Load the entries of a snapshot's changes."""
        ...


def is_in_history(source: DeltaSource, seen: Snapshot) -> bool:
    """Whether a snapshot that was read before still exists: it has not expired, and was not rolled back."""
    return source.find_snapshot(seen.id) == seen


def snapshots_since(
    source: DeltaSource, seen: Snapshot, latest: Snapshot, *, most: int | None = None
) -> tuple[Snapshot, ...] | None:
    """Load the snapshots after ``seen`` up to ``latest``, ascending.

    Args:
        most: maximum number of snapshots to load.

    Returns:
        None where ``seen`` is not in the history of ``latest``, a snapshot in between has expired, or there are more
        than ``most``.
    """
    steps = latest.id - seen.id
    if steps < 0 or (most is not None and steps > most):
        return None
    if steps == 0:
        return () if seen == latest else None
    if not is_in_history(source, seen):
        return None
    found = []
    for snapshot_id in range(seen.id + 1, latest.id):
        snapshot = source.find_snapshot(snapshot_id)
        if snapshot is None:
            return None
        found.append(snapshot)
    return (*found, latest)


def load_deltas(
    source: DeltaSource, snapshots: Iterable[Snapshot]
) -> tuple[tuple[Snapshot, Sequence[ManifestEntry]], ...] | None:
    """Load the changes of each snapshot; None where one has expired meanwhile."""
    try:
        return tuple((snapshot, source.load_delta(snapshot)) for snapshot in snapshots)
    except NotFoundError:
        return None


def load_written_partitions(store: MetadataStore, snapshot: Snapshot) -> frozenset[bytes]:
    """Return the serialized partitions to which a snapshot added rows; compaction and sorting add none.

    This reads at least two small files, unless the store has cached them, as a committer's store has for its own
    snapshots.
    """
    if snapshot.commit_kind is CommitKind.COMPACT:
        return frozenset()
    added: defaultdict[bytes, list[DataFileMeta]] = defaultdict(list)
    removed: defaultdict[bytes, list[DataFileMeta]] = defaultdict(list)
    for entry in store.load_delta(snapshot):
        (added if entry.kind is FileKind.ADD else removed)[entry.partition].append(entry.file)
    return frozenset(
        partition for partition, files in added.items() if not _is_sorted_anew(files, removed.get(partition, ()))
    )


def _is_sorted_anew(files: Sequence[DataFileMeta], replaced: Sequence[DataFileMeta]) -> bool:
    """Whether files hold the rows of the files that they replace: same row count, creation time of the oldest."""
    if sum(file.row_count for file in files) != sum(file.row_count for file in replaced):
        return False
    ages = {file.creation_millis for file in files}
    return None not in ages and ages == {min((file.creation_millis or 0 for file in replaced), default=None)}
