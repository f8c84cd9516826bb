"""What merging manifests costs over the life of a table."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from penstock.format.manifest.entry import EMPTY_STATS, DataFileMeta, FileKind, ManifestEntry, ManifestFileMeta
from penstock.format.row.row import encode_row
from penstock.options import ManifestOptions
from penstock.table.commit.manifests import apply_merges, fullness, merge_manifests, split_count, split_evenly

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER_BYTES = 3_000
ENTRY_BYTES = 40
COMMITS = 4_000


class Disk:
    """Manifests by name; counts the entries written."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[ManifestEntry, ...]] = {}
        self.written = 0

    def load(self, meta: ManifestFileMeta) -> tuple[ManifestEntry, ...]:
        return self.entries[meta.file_name]

    def write(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestFileMeta, ...]:
        name = f"manifest-{len(self.entries)}"
        self.entries[name] = tuple(entries)
        self.written += len(entries)
        meta = ManifestFileMeta(
            file_name=name,
            file_size=HEADER_BYTES + ENTRY_BYTES * len(entries),
            num_added_files=len(entries),
            num_deleted_files=0,
            partition_stats=EMPTY_STATS,
            schema_id=0,
        )
        return (meta,)


def test_an_entry_is_rewritten_a_few_times_however_many_commits_follow() -> None:
    disk = Disk()
    options = ManifestOptions()
    manifests: tuple[ManifestFileMeta, ...] = ()
    numbers = itertools.count()
    longest = merges_made = 0
    for _ in range(COMMITS):
        merges = merge_manifests(manifests, options, disk.load, disk.write, find_holders=lambda _: lambda _meta: True)
        merges_made += bool(merges)
        manifests = (*apply_merges(manifests, merges), *disk.write([new_entry(next(numbers))]))
        longest = max(longest, len(manifests))
    rewritten = disk.written - COMMITS
    assert merges_made >= COMMITS // 40, "no merges, nothing to see"
    assert rewritten <= 10 * COMMITS
    assert longest <= options.manifest_merge_min_count + 1
    live = [entry.file.file_name for meta in manifests for entry in disk.load(meta)]
    assert live == [f"data-{number}.parquet" for number in range(COMMITS)]


def new_entry(number: int) -> ManifestEntry:
    file = DataFileMeta(
        file_name=f"data-{number}.parquet",
        file_size=1,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )
    return ManifestEntry(kind=FileKind.ADD, partition=encode_row((), ()), bucket=0, total_buckets=-1, file=file)


def test_entries_are_split_among_full_manifests_of_at_most_ten_thousand() -> None:
    for count in (*range(4_000, 31_000, 97), 9_987, 9_988, 10_000, 10_624, 1_000_000):
        parts = split_evenly(range(count), split_count(0, count, 1 << 23))  # type: ignore[arg-type] # for their number
        assert max(map(len, parts)) < 10_000
        assert len(parts) == 1 or min(fullness(0, len(part), 1 << 23) for part in parts) >= 1
