"""The distribution of a snapshot's files over partitions and buckets, and the order of files in a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.table.ref import FileLocator

_SHOWN_BUCKETS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSize:
    """Live files of one bucket.

    Attributes:
        partition: such as ``dt=2026-01-01``; empty when the table has no partitions.
        bucket: 0 in a scalable table.
        total_buckets: when its files were written; -1 in a scalable table.
        bytes: on storage.
    """

    partition: str
    bucket: int
    total_buckets: int
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceRange:
    """The sequence numbers of one file's rows, both ends included."""

    first: int
    last: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOrder:
    """The files of one bucket of a queue in the order in which they are read.

    Attributes:
        partition: as of ``BucketSize``.
        overlaps: files that begin at or before the last number of a file before them.
    """

    partition: str
    bucket: int
    ranges: tuple[SequenceRange, ...]
    overlaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Whether the files of a queue's buckets are in order of their sequence numbers.

    Attributes:
        buckets: number of buckets read, with ``files`` in all and ``overlaps`` among them.
        shown: the buckets with overlaps, then those with most files, as far as kept.
    """

    buckets: int
    files: int
    overlaps: int
    shown: tuple[BucketOrder, ...]


def measure_buckets(live: Iterable[ManifestEntry], locator: FileLocator) -> tuple[BucketSize, ...]:
    """Measure the buckets of live files, by partition and bucket."""
    return tuple(
        BucketSize(
            partition=key.name,
            bucket=key.bucket,
            total_buckets=key.total_buckets,
            files=len(files),
            rows=sum(file.row_count for file in files),
            bytes=sum(file.file_size for file in files),
        )
        for key, files in _by_bucket(live, locator)
    )


def measure_order(live: Iterable[ManifestEntry], locator: FileLocator, *, most: int = _SHOWN_BUCKETS) -> Order:
    """Compare the sequence numbers of successive files of each bucket.

    Args:
        live: entries of a queue.
        most: buckets whose files are kept.
    """
    orders = [_order(key, files) for key, files in _by_bucket(live, locator)]
    foremost = sorted(range(len(orders)), key=lambda place: (orders[place].overlaps == 0, -len(orders[place].ranges)))[
        :most
    ]
    return Order(
        buckets=len(orders),
        files=sum(len(order.ranges) for order in orders),
        overlaps=sum(order.overlaps for order in orders),
        shown=tuple(orders[place] for place in sorted(foremost)),
    )


def overlapping(ranges: Iterable[SequenceRange]) -> tuple[bool, ...]:
    """Return for each range, in order of their beginnings, whether it begins within one before it."""
    found = []
    last: int | None = None
    for each in ranges:
        found.append(last is not None and each.first <= last)
        last = each.last if last is None else max(last, each.last)
    return tuple(found)


class _Key(NamedTuple):
    # Names are ambiguous: NULL and a value that is written like it have the same.
    name: str
    partition: bytes
    bucket: int
    total_buckets: int


def _order(key: _Key, files: Iterable[DataFileMeta]) -> BucketOrder:
    ranges = tuple(
        SequenceRange(
            first=file.min_sequence_number, last=file.max_sequence_number, rows=file.row_count, bytes=file.file_size
        )
        for file in sorted(files, key=lambda file: file.min_sequence_number)
    )
    return BucketOrder(partition=key.name, bucket=key.bucket, ranges=ranges, overlaps=sum(overlapping(ranges)))


def _by_bucket(live: Iterable[ManifestEntry], locator: FileLocator) -> list[tuple[_Key, list[DataFileMeta]]]:
    names: dict[bytes, str] = {}
    found: dict[_Key, list[DataFileMeta]] = {}
    for entry in live:
        name = names.get(entry.partition)
        if name is None:
            name = names[entry.partition] = locator.partition_label(entry.partition)
        found.setdefault(_Key(name, entry.partition, entry.bucket, entry.total_buckets), []).append(entry.file)
    return sorted(found.items(), key=lambda item: item[0])
