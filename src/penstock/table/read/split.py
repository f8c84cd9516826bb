"""Packing of planned files into splits.

Source:
    Paimon ``core:table/source/AppendOnlySplitGenerator.java``, ``common:utils/BinPacking.java``; docs/spec/streaming.md
    section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.format.manifest.entry import FileKey
from penstock.format.row.row import decode_row
from penstock.options import ReadOptions
from penstock.table.read.files import LazyEntries, LazyFiles
from penstock.table.read.prune import NO_FILTER, PartitionPruneResult
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import BoundPredicate
    from penstock.table.read.scan import ScanPartition, ScanPlan
    from penstock.table.ref import ExternalPaths, TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSplit:
    """Files of one bucket that one task reads, one after another. Picklable.

    Attributes:
        snapshot_id: snapshot of the read; 0 for files of several snapshots or of none yet.
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        values: internal values of the partition, in ``partition_keys`` order.
        bucket_path: directory of the files without an external path.
        files: in reading order.
        rest: the remaining filter for the rows.
        vectors: file name and position of the deletion vectors of its files; row counts include the rows that they
            delete.
        origins: file name, and the snapshot that added the file: id, commit time in ms. For reads that return it.
    """

    snapshot_id: int
    partition: bytes
    values: tuple[object, ...]
    bucket: int
    total_buckets: int
    bucket_path: str
    files: Sequence[DataFileMeta]
    rest: BoundPredicate
    vectors: tuple[tuple[str, VectorPlace], ...] = ()
    origins: tuple[tuple[str, tuple[int, int]], ...] = ()

    @property
    def row_count(self) -> int:
        """Number of rows in the files, before the filter."""
        files = self.files
        return files.total("row_count") if isinstance(files, LazyFiles) else sum(file.row_count for file in files)

    @property
    def byte_count(self) -> int:
        """Number of bytes of the files."""
        files = self.files
        return files.total("file_size") if isinstance(files, LazyFiles) else sum(file.file_size for file in files)

    @property
    def schema_ids(self) -> set[int]:
        """Schemas that the files were written with."""
        files = self.files
        if isinstance(files, LazyFiles):
            return set(files.column("schema_id").tolist())
        return {file.schema_id for file in files}

    def sizes(self) -> list[int]:
        """Return the size in bytes of each file."""
        files = self.files
        if isinstance(files, LazyFiles):
            sizes: list[int] = files.column("file_size").tolist()
            return sizes
        return [file.file_size for file in files]

    def by_directory(self, external: ExternalPaths) -> Iterator[tuple[str, list[str]]]:
        """Yield directories, and the names of the files in each, in the order of the files."""
        files = self.files
        if isinstance(files, LazyFiles) and not files.column("is_external").any():
            yield self.bucket_path, files.names()
        else:
            yield from by_directory(self.path_of(file, external) for file in files)

    def path_of(self, file: DataFileMeta, external: ExternalPaths) -> str:
        """Return the path of one of the files."""
        if file.external_path:
            return external.readable(file.external_path)
        return f"{self.bucket_path}/{file.file_name}"


def by_directory(paths: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the directories of consecutive files, and the names of the files in them."""
    parts = (path.rpartition("/") for path in paths)
    for directory, group in groupby(parts, key=itemgetter(0)):
        yield directory, [name for _, _, name in group]


def plan_splits(ref: TableRef, plan: ScanPlan, options: ReadOptions | None = None) -> tuple[DataSplit, ...]:
    """Return all splits of ``iter_splits``."""
    return tuple(iter_splits(ref, plan, options))


def iter_splits(ref: TableRef, plan: ScanPlan, options: ReadOptions | None = None) -> Iterator[DataSplit]:
    """Pack the files of a plan into splits, each bucket separately, in the order of ``iter_bucket_splits``.

    A partition is packed when its first split is asked for, so a caller that needs the first rows only does not pay for
    the others.

    Args:
        options: None for those of the table.
    """
    options = options or ref.parsed(ReadOptions)
    return pack_splits(iter_bucket_splits(ref, plan, options), options)


def iter_bucket_splits(
    ref: TableRef, plan: ScanPlan, options: ReadOptions | None = None, *, in_order: bool = True
) -> Iterator[DataSplit]:
    """Yield a split for each bucket, with all of its files.

    Partitions are sorted by the creation time of their earliest file; with ``scan.plan-sort-partition`` by value, null
    first. Within a partition, buckets are sorted by number.

    Args:
        options: None for those of the table.
        in_order: whether the files are in write order.
    """
    if plan.snapshot is None:
        return
    by_value = (options or ref.parsed(ReadOptions)).plan_sort_partition
    locator = FileLocator.of(ref)
    for partition in _ordered(plan.partitions, by_value=by_value):
        verdict = PartitionPruneResult(values=partition.values, rest=partition.rest)
        for bucket, files in _by_bucket(partition, in_order=in_order):
            split = make_split(locator, plan.snapshot.id, bucket, files, verdict)
            yield with_vectors(split, plan.vectors) if plan.vectors else split


def pack_splits(splits: Iterable[DataSplit], options: ReadOptions) -> Iterator[DataSplit]:
    """Divide splits into splits of about the size that the options say; those that were divided already stay."""
    for split in splits:
        packs = pack_files(
            split.files,
            target_bytes=options.split_target_bytes,
            open_file_cost_bytes=options.split_open_file_cost_bytes,
        )
        for files in packs:
            yield split if len(packs) == 1 else with_vectors(replace(split, files=files), _places_of(split))


def _places_of(split: DataSplit) -> dict[FileKey, VectorPlace]:
    return {FileKey(split.partition, split.bucket, name): place for name, place in split.vectors}


class BucketFiles(Protocol):
    """Something about files of one bucket: a manifest entry, a commit message or a compaction task."""

    @property
    def partition(self) -> bytes:
        """Serialized BinaryRow of the partition values."""
        ...

    @property
    def bucket(self) -> int:
        """Number of the bucket."""
        ...

    @property
    def total_buckets(self) -> int:
        """Number of buckets of the partition."""
        ...


def make_split(
    locator: FileLocator,
    snapshot_id: int,
    like: BucketFiles,
    files: Sequence[DataFileMeta],
    verdict: PartitionPruneResult,
) -> DataSplit:
    """Return a split of files in the bucket of ``like``.

    Args:
        verdict: result of pruning for the partition.
    """
    return DataSplit(
        snapshot_id=snapshot_id,
        partition=like.partition,
        values=verdict.values,
        bucket=like.bucket,
        total_buckets=like.total_buckets,
        bucket_path=locator.directory(like.partition, like.bucket),
        files=files,
        rest=verdict.rest,
    )


def make_unfiltered_split(ref: TableRef, like: BucketFiles, files: tuple[DataFileMeta, ...]) -> DataSplit:
    """Return a split of all rows of files in the bucket of ``like``, whichever snapshots the files come from."""
    values = decode_row(like.partition, [field.type for field in ref.schema.partition_fields])
    return make_split(FileLocator.of(ref), 0, like, files, PartitionPruneResult(values=values, rest=NO_FILTER))


def with_vectors(split: DataSplit, vectors: Mapping[FileKey, VectorPlace]) -> DataSplit:
    """Return a split with the deletion vectors of its files."""
    keys = (FileKey(split.partition, split.bucket, file.file_name) for file in split.files)
    found = ((key.file_name, vectors.get(key)) for key in keys)
    return replace(split, vectors=tuple((name, place) for name, place in found if place is not None))


def with_origins(split: DataSplit, origins: Mapping[FileKey, Snapshot]) -> DataSplit:
    """Return a split with the snapshots that added its files."""
    keys = (FileKey(split.partition, split.bucket, file.file_name) for file in split.files)
    found = ((key.file_name, origins.get(key)) for key in keys)
    return replace(
        split, origins=tuple((name, (each.id, each.time_millis)) for name, each in found if each is not None)
    )


def pack_files(
    files: Sequence[DataFileMeta], *, target_bytes: int, open_file_cost_bytes: int
) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Divide files into runs of about ``target_bytes`` on storage, in the given order.

    Args:
        files: in reading order, which the runs keep; a file larger than the target gets a run of its own.
        open_file_cost_bytes: minimum weight of a file, so that a run does not get thousands of tiny files.

    Returns:
        Every file exactly once; empty when ``files`` is.
    """
    runs: list[tuple[DataFileMeta, ...]] = []
    run: list[DataFileMeta] = []
    weight = 0
    for file in files:
        cost = max(file.file_size, open_file_cost_bytes)
        if run and weight + cost > target_bytes:
            runs.append(tuple(run))
            run, weight = [], 0
        run.append(file)
        weight += cost
    if run:
        runs.append(tuple(run))
    return tuple(runs)


def value_order(values: Iterable[object]) -> tuple[Any, ...]:
    """Return a key that sorts partitions by typed value, column by column: null first, NaN last."""
    return tuple(
        (0,) if value is None else (2,) if isinstance(value, float) and math.isnan(value) else (1, value)
        for value in values
    )


def partition_order(values: Iterable[object], created_millis: int, *, by_value: bool) -> tuple[Any, ...]:
    """Return a key that sorts partitions by typed value, or else by creation time and then value.

    Manifest order is not used, because overwrites and compactions move a partition after younger ones in it.
    """
    return (0 if by_value else created_millis, value_order(values))


def _ordered(partitions: Sequence[ScanPartition], *, by_value: bool) -> list[ScanPartition]:
    return sorted(
        partitions,
        key=lambda partition: partition_order(partition.values, partition.created_millis, by_value=by_value),
    )


class _Bucket(NamedTuple):
    """Of which bucket files are."""

    partition: bytes
    bucket: int
    total_buckets: int


def _by_bucket(partition: ScanPartition, *, in_order: bool) -> Iterator[tuple[BucketFiles, Sequence[DataFileMeta]]]:
    """Yield the files of each bucket; ``in_order`` as of ``iter_bucket_splits``."""
    entries = partition.entries
    if isinstance(entries, LazyEntries):
        for bucket, total_buckets, files in entries.by_bucket(in_order=in_order):
            yield _Bucket(partition.data, bucket, total_buckets), files
        return
    buckets: dict[int, list[ManifestEntry]] = {}
    for entry in entries:
        buckets.setdefault(entry.bucket, []).append(entry)
    for bucket in sorted(buckets):
        found = buckets[bucket]
        yield found[0], tuple(sorted((entry.file for entry in found), key=lambda file: file.min_sequence_number))
