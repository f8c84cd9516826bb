"""What a queue merges: adjacent files only, seldom, and never more than it needs."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.format.manifest import columns
from penstock.format.manifest.columns import EncodedEntries, columns_of_entries, decode_manifest_columns
from penstock.format.manifest.entry import EMPTY_ROW, DataFileMeta, FileKind, ManifestEntry
from penstock.format.manifest.files import encode_manifest
from penstock.table.compact.coordinator import SmallFiles
from penstock.table.compact.queue import in_write_order, plan_bucket, plan_bucket_fully
from penstock.table.compact.queue_files import QueueFiles
from penstock.table.compact.task import CompactSizes
from penstock.table.read.files import FileColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KIB = 1024
_NAMES = itertools.count()


def sizes(target: int = 100 * KIB, *, min_files: int = 5, max_files: int | None = None) -> CompactSizes:
    return CompactSizes(
        target_bytes=target,
        small_bytes=target * 7 // 10,
        min_files=min_files,
        max_files=max_files,
        open_file_cost_bytes=4 * KIB,
        round_files=100_000,
    )


def file(size: int, first: int = 0, rows: int | None = None) -> DataFileMeta:
    rows = rows or size
    return DataFileMeta(
        file_name=f"data-{next(_NAMES)}-0.parquet",
        file_size=size,
        row_count=rows,
        min_sequence_number=first,
        max_sequence_number=first + rows - 1,
        schema_id=0,
    )


def bucket(*file_sizes: int) -> list[DataFileMeta]:
    files, first = [], 0
    for size in file_sizes:
        files.append(file(size, first))
        first += size
    return files


def merge(files: Sequence[DataFileMeta], run: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """The bucket after a merge, as the rewrite would leave it."""
    run = list(run)
    merged = file(sum(f.file_size for f in run), run[0].min_sequence_number, sum(f.row_count for f in run))
    names = {f.file_name for f in run}
    return in_write_order([*(f for f in files if f.file_name not in names), merged])


def of_sizes(runs: Iterable[Iterable[DataFileMeta]]) -> list[list[int]]:
    return [[f.file_size for f in run] for run in runs]


def test_files_are_merged_from_the_smallest_number_on() -> None:
    assert of_sizes(plan_bucket(bucket(1, 1, 1, 1), sizes())) == []
    assert of_sizes(plan_bucket(bucket(1, 1, 1, 1, 1), sizes())) == [[1] * 5]


def test_a_file_larger_than_all_newer_ones_together_is_left_alone() -> None:
    assert of_sizes(plan_bucket(bucket(100, 5, 1, 1, 1, 1, 1), sizes())) == [[5, 1, 1, 1, 1, 1]]


def test_files_that_are_large_enough_separate_runs() -> None:
    large = 80 * KIB
    files = bucket(1, 1, 1, 1, 1, large, 1, 1, 1, large, 2, 2, 2, 2, 2)
    assert of_sizes(plan_bucket(files, sizes())) == [[1] * 5, [2] * 5]


def test_the_order_given_does_not_matter_that_of_writing_does() -> None:
    files = bucket(1, 1, 1, 1, 1)
    assert plan_bucket(reversed(files), sizes()) == (tuple(files),)


def test_a_staircase_is_cut_short_when_there_are_too_many_files() -> None:
    stairs = bucket(*(2**n * 10 for n in range(10, -1, -1)))
    runs = plan_bucket(stairs, sizes(10 * 1024 * KIB))
    assert runs == (tuple(stairs[-2:]),)


def test_a_long_run_becomes_tasks_of_twice_the_target_size() -> None:
    runs = plan_bucket(bucket(*[60 * KIB] * 20), sizes())
    assert [len(run) for run in runs] == [3] * 6 + [2]
    assert all(sum(f.file_size for f in run) <= 200 * KIB for run in runs)


@pytest.mark.parametrize("commits", [1_000, 10_000])
def test_small_commits_are_rewritten_a_handful_of_times(commits: int) -> None:
    ours, files = _rewritten(commits)
    papers = _rewritten_by_the_five_oldest(commits)
    assert ours <= 1 + math.log(commits, 5)
    assert files <= 10
    # Every fourth commit rewrites everything.
    assert papers > commits / 9


def _rewritten(commits: int) -> tuple[float, int]:
    files: list[DataFileMeta] = []
    rewritten, most = 0, 0
    for number in range(commits):
        files.append(file(1, number))
        for run in plan_bucket(files, sizes(10**9)):
            rewritten += sum(f.row_count for f in run)
            files = merge(files, run)
        most = max(most, len(files))
    return rewritten / commits, most


def _rewritten_by_the_five_oldest(commits: int) -> float:
    """What Paimon does while nothing has reached the size limit."""
    rows: list[int] = []
    rewritten = 0
    for _ in range(commits):
        rows.append(1)
        if len(rows) >= 5:
            rewritten += sum(rows)
            rows = [sum(rows)]
    return rewritten / commits


@given(
    st.lists(st.integers(1, 120 * KIB), max_size=60),
    st.sampled_from([None, 3, 8]),
)
def test_runs_are_adjacent_and_no_file_is_in_two(file_sizes: list[int], max_files: int | None) -> None:
    files = bucket(*file_sizes)
    places = {f.file_name: number for number, f in enumerate(files)}
    seen: set[int] = set()
    for run in plan_bucket(files, sizes(max_files=max_files)):
        numbers = [places[f.file_name] for f in run]
        assert len(run) > 1
        assert numbers == list(range(numbers[0], numbers[0] + len(run)))
        assert seen.isdisjoint(numbers)
        seen.update(numbers)


@given(st.lists(st.integers(1, 60 * KIB), max_size=80))
def test_merging_comes_to_an_end_with_few_small_files(file_sizes: list[int]) -> None:
    files = bucket(*file_sizes)
    limits = sizes()
    for _ in range(200):
        runs = plan_bucket(files, limits)
        if not runs:
            break
        for run in runs:
            files = merge(files, run)
    assert not plan_bucket(files, limits)
    longest = 0
    for is_small, group in itertools.groupby(files, key=lambda f: f.file_size < limits.small_bytes):
        longest = max(longest, len(list(group))) if is_small else longest
    assert longest <= 2 * limits.min_files


def test_with_a_largest_number_the_older_rule_holds() -> None:
    rule = sizes(100, min_files=3, max_files=4)
    assert of_sizes(plan_bucket(bucket(1, 1, 1), rule)) == []
    assert of_sizes(plan_bucket(bucket(1, 1, 1, 1), rule)) == [[1, 1, 1, 1]]
    assert of_sizes(plan_bucket(bucket(50, 30, 30), rule)) == [[50, 30, 30]]
    # Two that reach the size are too few; the oldest leaves the window.
    assert of_sizes(plan_bucket(bucket(90, 30, 1, 1), rule)) == []


def test_a_full_merge_strips_large_files_and_takes_the_rest_when_most_of_it_is_small() -> None:
    rule = sizes(100)
    assert of_sizes(plan_bucket_fully(bucket(80, 20, 75, 10, 10), rule, force=False)) == [[20, 75, 10, 10]]
    assert of_sizes(plan_bucket_fully(bucket(80, 90, 20, 10), rule, force=False)) == []
    assert of_sizes(plan_bucket_fully(bucket(20, 75, 80, 10), rule, force=False)) == []
    assert of_sizes(plan_bucket_fully(bucket(80, 90), rule, force=True)) == [[80, 90]]
    assert of_sizes(plan_bucket_fully([], rule, force=True)) == []


def as_entry(each: DataFileMeta) -> ManifestEntry:
    return ManifestEntry(kind=FileKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=1, file=each)


@pytest.mark.parametrize("kind", [QueueFiles, SmallFiles])
@given(
    files=st.lists(
        st.tuples(st.sampled_from([EMPTY_ROW, b"\0" * 16]), st.integers(0, 2), st.integers(1, 150), st.integers(0, 9))
    ),
    minimum=st.sampled_from([1, 10**9]),
)
def test_live_files_by_columns_are_taken_as_their_entries(
    kind: type[QueueFiles | SmallFiles], files: list[tuple[bytes, int, int, int]], minimum: int
) -> None:
    entries = [
        replace(as_entry(file(size * KIB, first)), partition=partition, bucket=bucket)
        for partition, bucket, size, first in files
    ]
    by_entries, by_columns = kind(sizes()), kind(sizes())
    by_entries.take(entries)
    decoded: list[int] = []
    decode = EncodedEntries.entries
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "MIN_RECORDS", minimum)
        patch.setattr(EncodedEntries, "entries", lambda each, rows: decoded.append(len(rows)) or decode(each, rows))
        part = decode_manifest_columns(encode_manifest(entries), "x") or columns_of_entries(entries)
        by_columns.start(FileColumns.live([part]))
    assert by_columns == by_entries
    small = sum(sizes().is_small(entry.file) for entry in entries)
    # A manifest is decoded as a whole for most of its entries.
    assert sum(decoded) == (0 if part.encoded is None else len(entries) if 2 * small >= len(entries) else small)


def beside(files: Iterable[DataFileMeta], limits: CompactSizes) -> tuple[tuple[DataFileMeta, ...], ...]:
    """What the compaction beside a stream merges of a bucket."""
    known = QueueFiles(limits)
    known.take(map(as_entry, files))
    return tuple(task.files for task in (*known.plan(), *known.plan_fully()))


def read(files: Iterable[DataFileMeta], merged: dict[str, list[str]]) -> list[str]:
    """The files that were written, in the order in which their rows are read."""
    return [name for each in in_write_order(files) for name in merged.get(each.file_name, [each.file_name])]


@given(
    st.lists(st.tuples(st.integers(1, 90 * KIB), st.sampled_from([0, 0, 1])), max_size=40),
    st.sampled_from(["minor", "older", "full", "force", "beside"]),
)
def test_rows_keep_their_order_where_files_begin_with_the_same_number(given: list[tuple[int, int]], how: str) -> None:
    firsts = itertools.accumulate(step for _, step in given)
    files = [file(size, first) for (size, _), first in zip(given, firsts, strict=True)]
    limits = sizes(max_files=8 if how == "older" else None)
    if how in {"full", "force"}:
        runs = plan_bucket_fully(files, limits, force=how == "force")
    else:
        runs = beside(files, limits) if how == "beside" else plan_bucket(files, limits)
    before = read(files, {})
    merged: dict[str, list[str]] = {}
    # The last one lands first; in the manifest they come behind what is there.
    for run in reversed(runs):
        files = [each for each in files if each not in run]
        for part in range(2):
            output = file(1, run[0].min_sequence_number)
            merged[output.file_name] = [each.file_name for each in run] if part == 0 else []
            files.append(output)
    assert read(files, merged) == before


def test_files_that_begin_with_the_same_number_are_merged_all_together_or_not_at_all() -> None:
    same = [file(1) for _ in range(7)]
    assert plan_bucket(same, sizes()) == (tuple(same),)
    assert beside(same, sizes()) == (tuple(same),)
    with_a_large_one = [*same, file(80 * KIB)]
    assert plan_bucket(with_a_large_one, sizes()) == ()
    assert beside(with_a_large_one, sizes()) == ()
    assert plan_bucket_fully(with_a_large_one, sizes(), force=False) == (tuple(with_a_large_one),)


def test_a_file_that_begins_with_the_number_of_one_being_merged_waits() -> None:
    known = QueueFiles(sizes())
    known.take(as_entry(file(1)) for _ in range(5))
    (task,) = known.plan()
    known.take(as_entry(file(1)) for _ in range(5))
    assert known.plan() == ()
    known.finish(task, is_done=False)
    (again,) = known.plan()
    assert len(again.files) == 10
