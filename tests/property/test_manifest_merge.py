"""Merging manifests changes how a table is written down, never what it holds, nor in which order."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidOptionError
from penstock.format.manifest.entry import DataFileMeta, FileKind, ManifestEntry, ManifestFileMeta, merge_entries
from penstock.format.manifest.stats import partition_stats
from penstock.format.row.row import decode_row, encode_row
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import STRING, DataField
from penstock.options import ManifestOptions
from penstock.table.commit import manifests
from penstock.table.commit.manifests import (
    Merge,
    PartitionOrder,
    apply_merges,
    fullness,
    merge_manifests,
    split_count,
    split_evenly,
)
from penstock.table.read.live import pruner_of_partitions
from penstock.table.read.scan import live_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENTRY_BYTES = 100
SCHEMA = TableSchema(
    id=0, fields=(DataField(id=0, name="p", type=STRING),), highest_field_id=0, partition_keys=("p",), options={}
)


@dataclass
class Disk:
    """Manifests by name; each entry weighs the same."""

    manifests: dict[str, tuple[ManifestEntry, ...]] = field(default_factory=dict)
    target_bytes: int = 10**9
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def load(self, meta: ManifestFileMeta) -> tuple[ManifestEntry, ...]:
        return self.manifests[meta.file_name]

    def write(self, entries: tuple[ManifestEntry, ...] | list[ManifestEntry]) -> tuple[ManifestFileMeta, ...]:
        if not entries:
            return ()
        parts = split_count(len(entries) * ENTRY_BYTES, len(entries), self.target_bytes)
        return tuple(map(self.write_one, split_evenly(entries, parts)))

    def write_one(self, entries: Sequence[ManifestEntry]) -> ManifestFileMeta:
        name = f"manifest-{next(self.numbers)}"
        self.manifests[name] = tuple(entries)
        deleted = sum(entry.kind is FileKind.DELETE for entry in entries)
        return ManifestFileMeta(
            file_name=name,
            file_size=len(entries) * ENTRY_BYTES,
            num_added_files=len(entries) - deleted,
            num_deleted_files=deleted,
            partition_stats=partition_stats([entry.partition for entry in entries], (STRING,)),
            schema_id=0,
        )

    def entries(self, metas: tuple[ManifestFileMeta, ...]) -> list[ManifestEntry]:
        return [entry for meta in metas for entry in self.load(meta)]

    def live_names(self, metas: tuple[ManifestFileMeta, ...]) -> list[str]:
        return [entry.file.file_name for entry in live_entries(self.entries(metas))]


def entry(kind: FileKind, number: int) -> ManifestEntry:
    return ManifestEntry(
        kind=kind,
        partition=encode_row([("a", "b", "c", None)[number % 4]], [STRING]),
        bucket=0,
        total_buckets=-1,
        file=DataFileMeta(
            file_name=f"data-{number}",
            file_size=1,
            row_count=1,
            min_sequence_number=0,
            max_sequence_number=0,
            schema_id=0,
        ),
    )


@pytest.fixture(scope="module", params=[5_000, 3], autouse=True)
def full_entries(request: pytest.FixtureRequest) -> Iterator[int]:
    """Manifests are full by their size, or by their entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifests, "_FULL_ENTRIES", request.param)
        yield request.param


def is_small(meta: ManifestFileMeta, options: ManifestOptions) -> bool:
    entries = meta.num_added_files + meta.num_deleted_files
    return fullness(meta.file_size, entries, options.manifest_target_file_bytes) < 1


Commit: TypeAlias = tuple[int, list[int]]

# What one commit does: how many files it adds, and which live ones it deletes, by their places among these. No file
# comes back: the format lets a reader collect all deletes first.
COMMITS = st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(0, 99), max_size=4)), min_size=1, max_size=14)
OPTIONS = st.builds(
    ManifestOptions,
    manifest_target_file_bytes=st.integers(1, 20).map(lambda entries: entries * ENTRY_BYTES),
    manifest_merge_min_count=st.integers(1, 6),
    manifest_full_compaction_threshold_bytes=st.integers(0, 40).map(lambda entries: entries * ENTRY_BYTES),
)


class History:
    """The deltas of a valid history, one after the other."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.live: list[int] = []

    def commit(self, adds: int, deletes: list[int]) -> list[ManifestEntry]:
        deleted = [self.live.pop(place % len(self.live)) for place in deletes if self.live]
        added = list(itertools.islice(self.numbers, adds))
        self.live += added
        return [entry(FileKind.DELETE, number) for number in deleted] + [
            entry(FileKind.ADD, number) for number in added
        ]


def grow(disk: Disk, commits: list[Commit]) -> tuple[ManifestFileMeta, ...]:
    """One manifest a commit, nothing merged."""
    history = History()
    deltas = (history.commit(*commit) for commit in commits)
    return tuple(disk.write_one(delta) for delta in deltas if delta)


def merged(
    disk: Disk, metas: tuple[ManifestFileMeta, ...], options: ManifestOptions, order: PartitionOrder | None = None
) -> tuple[tuple[ManifestFileMeta, ...], tuple[Merge, ...]]:
    disk.target_bytes = options.manifest_target_file_bytes
    merges = merge_manifests(
        metas,
        options,
        disk.load,
        disk.write,
        find_holders=lambda partitions: pruner_of_partitions(SCHEMA, partitions).may_hold,
        order=order,
    )
    return apply_merges(metas, merges), merges


@given(commits=COMMITS, options=OPTIONS)
def test_the_live_files_and_their_order_are_what_they_were(commits: list[Commit], options: ManifestOptions) -> None:
    disk = Disk()
    before = grow(disk, commits)
    after, _ = merged(disk, before, options)
    assert disk.live_names(after) == disk.live_names(before)


@given(commits=COMMITS, options=st.lists(OPTIONS, min_size=1, max_size=3))
def test_commit_after_commit_by_writers_of_different_options_keeps_them_too(
    commits: list[Commit], options: list[ManifestOptions]
) -> None:
    disk = Disk()
    history = History()
    plain: list[ManifestEntry] = []
    metas: tuple[ManifestFileMeta, ...] = ()
    for commit, each in zip(commits, itertools.cycle(options), strict=False):
        metas, _ = merged(disk, metas, each)
        delta = history.commit(*commit)
        plain.extend(delta)
        metas += disk.write(delta)
        assert disk.live_names(metas) == [entry.file.file_name for entry in live_entries(plain)]


@given(commits=COMMITS, options=OPTIONS, cut=st.integers(0, 99))
def test_deletes_of_files_that_a_minor_merge_does_not_see_survive_it(
    commits: list[Commit], options: ManifestOptions, cut: int
) -> None:
    disk = Disk()
    every = grow(disk, commits)
    seen = every[cut % (len(every) + 1) :]
    minor = ManifestOptions(
        manifest_target_file_bytes=options.manifest_target_file_bytes,
        manifest_merge_min_count=options.manifest_merge_min_count,
        manifest_full_compaction_threshold_bytes=2**60,
    )
    after, _ = merged(disk, seen, minor)
    assert list(merge_entries(disk.entries(after)).values()) == list(merge_entries(disk.entries(seen)).values())
    unseen = every[: len(every) - len(seen)]
    assert disk.live_names(unseen + after) == disk.live_names(every)


@given(commits=COMMITS, options=OPTIONS)
def test_a_full_merge_leaves_no_delete(commits: list[Commit], options: ManifestOptions) -> None:
    disk = Disk()
    before = grow(disk, commits)
    after, merges = merged(disk, before, options)
    inputs = Counter(name for merge in merges for part in merge.parts for name in part.inputs)
    assert set(inputs.values()) <= {1}
    dirty = [meta for meta in before if meta.num_deleted_files or is_small(meta, options)]
    is_full = sum(meta.file_size for meta in dirty) >= options.manifest_full_compaction_threshold_bytes
    if is_full and len(dirty) > 1:
        assert not any(meta.num_deleted_files for meta in after)


@given(commits=COMMITS, options=OPTIONS)
def test_merged_once_there_is_little_left_to_rewrite(commits: list[Commit], options: ManifestOptions) -> None:
    disk = Disk()
    once, merges = merged(disk, grow(disk, commits), options)
    if not any(len(merge.parts) > 1 or len(merge.parts[0].inputs) > 1 for merge in merges):
        return
    _, again = merged(disk, once, options)
    small = [meta for meta in once if is_small(meta, options)]
    rewritten = {name for merge in again for part in merge.parts for name in part.inputs}
    if not any(meta.num_deleted_files for meta in once):
        assert rewritten <= {meta.file_name for meta in once[-len(small) - 1 :]}


@given(
    commits=COMMITS,
    options=OPTIONS,
    more=COMMITS,
    theirs=OPTIONS,
)
def test_merges_of_an_attempt_that_lost_the_race_fit_the_list_that_others_left(
    commits: list[Commit],
    options: ManifestOptions,
    more: list[Commit],
    theirs: ManifestOptions,
) -> None:
    disk = Disk()
    history = History()
    plain: list[ManifestEntry] = []
    base: tuple[ManifestFileMeta, ...] = ()
    for commit in commits:
        delta = history.commit(*commit)
        plain.extend(delta)
        base += disk.write(delta)
    _, ours = merged(disk, base, options)
    for commit in more:
        base, _ = merged(disk, base, theirs)
        delta = history.commit(*commit)
        plain.extend(delta)
        base += disk.write(delta)
        rebased = apply_merges(base, ours)
        assert disk.live_names(rebased) == [entry.file.file_name for entry in live_entries(plain)]


def test_a_merge_of_several_places_is_made_whole_or_not_at_all() -> None:
    disk = Disk()
    adds, clean, calm, deletes, other = (
        disk.write_one([entry(kind, number) for number in numbers])
        for kind, numbers in (
            (FileKind.ADD, range(2)),
            (FileKind.ADD, range(10, 30)),
            (FileKind.ADD, range(30, 50)),
            (FileKind.DELETE, range(1)),
            (FileKind.ADD, range(50, 51)),
        )
    )
    options = ManifestOptions(
        manifest_target_file_bytes=2 * ENTRY_BYTES, manifest_full_compaction_threshold_bytes=ENTRY_BYTES
    )
    _, merges = merged(disk, (adds, clean, calm, deletes, other), options)
    assert [part.inputs for part in merges[0].parts] == [
        (adds.file_name, clean.file_name),
        (deletes.file_name, other.file_name),
    ]
    rewritten = disk.write_one(disk.entries((adds,)))  # by a rival
    assert apply_merges((rewritten, clean, calm, deletes, other), merges) == (rewritten, clean, calm, deletes, other)


ORDER = PartitionOrder(SCHEMA.partition_fields, 0)


def values_of(disk: Disk, meta: ManifestFileMeta) -> list[tuple[bool, str]]:
    rows = [decode_row(entry.partition, [STRING])[0] for entry in disk.load(meta)]
    return [(value is not None, str(value)) for value in rows]


@given(commits=COMMITS, options=OPTIONS)
def test_a_sorted_merge_keeps_the_live_files_and_their_order_within_each_manifest(
    commits: list[Commit], options: ManifestOptions
) -> None:
    disk = Disk()
    before = grow(disk, commits)
    after, merges = merged(disk, before, options, ORDER)
    assert sorted(disk.live_names(after)) == sorted(disk.live_names(before))
    is_full = any(len(merge.parts) > 1 for merge in merges)
    for meta in (meta for merge in merges if is_full for part in merge.parts for meta in part.outputs):
        assert values_of(disk, meta) == sorted(values_of(disk, meta))


@given(commits=COMMITS, options=OPTIONS)
def test_after_a_sorted_merge_of_everything_ranges_meet_at_their_ends_only(
    commits: list[Commit], options: ManifestOptions
) -> None:
    everything = replace(options, manifest_full_compaction_threshold_bytes=0)
    disk = Disk()
    once, _ = merged(disk, grow(disk, commits), everything, ORDER)
    if any(meta.num_deleted_files for meta in once):
        return  # a single manifest, of which nothing is merged
    ranges = sorted((values[0], values[-1]) for values in (sorted(values_of(disk, meta)) for meta in once))
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(ranges))
    _, again = merged(disk, once, everything, ORDER)
    assert not any(len(merge.parts) > 1 for merge in again)


def test_only_manifests_whose_ranges_overlap_are_sorted_and_no_more_than_the_limit() -> None:
    disk = Disk(target_bytes=2 * ENTRY_BYTES)
    first, low, high, other = (
        disk.write_one([entry(FileKind.ADD, number) for number in numbers])
        for numbers in ((0, 4), (0, 1), (1, 2), (2, 6))
    )
    everything = ManifestOptions(manifest_target_file_bytes=2 * ENTRY_BYTES, manifest_full_compaction_threshold_bytes=0)
    wide = disk.write_one([entry(FileKind.ADD, number) for number in (0, 2)])
    metas = (wide, other, high, first, low)
    sections = ORDER.sections((other, high, first, low), 2**30)
    assert [[meta.file_name for meta in section] for section in sections] == [
        [meta.file_name] for meta in (first, low, high, other)
    ]
    _, merges = merged(disk, metas, everything, ORDER)
    assert {name for merge in merges for part in merge.parts for name in part.inputs} == {
        meta.file_name for meta in (wide, low, high)
    }
    assert merged(disk, metas, replace(everything, manifest_sort_max_rewrite_bytes=1), ORDER)[1] == ()


def test_the_column_that_entries_are_sorted_by_is_a_partition_column() -> None:
    enabled = ManifestOptions(manifest_sort=True)
    assert PartitionOrder.of(SCHEMA, ManifestOptions()) is None
    assert PartitionOrder.of(replace(SCHEMA, partition_keys=()), enabled) is None
    assert PartitionOrder.of(SCHEMA, enabled) is not None
    with pytest.raises(InvalidOptionError, match=r"'manifest-sort.partition-field' = 'q' is no partition column"):
        PartitionOrder.of(SCHEMA, replace(enabled, manifest_sort_column="q"))
