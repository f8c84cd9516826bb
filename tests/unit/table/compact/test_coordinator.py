"""What the coordinator of a scalable table merges, in rounds; the examples were seen with the reference."""

from __future__ import annotations

import itertools

from penstock.format.manifest.entry import DataFileMeta, FileKind, ManifestEntry
from penstock.format.row.row import encode_row
from penstock.format.types.data_types import STRING
from penstock.table.compact.coordinator import SmallFiles, pack_small
from penstock.table.compact.task import CompactSizes, CompactTask

MIB = 1024 * 1024
SIZES = CompactSizes(
    target_bytes=256 * MIB,
    small_bytes=179 * MIB,
    min_files=5,
    max_files=None,
    open_file_cost_bytes=4 * MIB,
    round_files=100_000,
)
_NAMES = itertools.count()


def entry(partition: str, size: int = 1_000, kind: FileKind = FileKind.ADD, name: str | None = None) -> ManifestEntry:
    file = DataFileMeta(
        file_name=name or f"data-{next(_NAMES)}-0.parquet",
        file_size=size,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )
    return ManifestEntry(kind=kind, partition=encode_row([partition], [STRING]), bucket=0, total_buckets=-1, file=file)


def seen(tasks: tuple[CompactTask, ...]) -> dict[str, list[int]]:
    """Number of files of each task, by partition."""
    names = {encode_row([name], [STRING]): name for name in ("p1", "p2", "p3")}
    result: dict[str, list[int]] = {}
    for task in tasks:
        result.setdefault(names[task.partition], []).append(len(task.files))
    return result


def test_rounds_age_partitions_as_the_reference_does() -> None:
    small = SmallFiles(SIZES)
    small.take([entry("p1"), entry("p1"), entry("p3")])
    assert small.plan() == ()
    for _ in range(6):  # nothing new: nothing ages
        assert small.plan() == ()
    for _ in range(4):
        small.take([entry("p2")])
        assert small.plan() == ()
    small.take([entry("p2")])
    assert seen(small.plan()) == {"p1": [2], "p2": [5]}
    for _ in range(4):
        small.take([entry("p2")])
        assert small.plan() == ()
    small.take([entry("p2")])
    assert seen(small.plan()) == {"p2": [5]}
    # The lone file of p3 has been forgotten by now.
    assert small.waiting() == {}


def test_tiny_files_fill_a_bin_by_what_opening_them_costs() -> None:
    files = [entry("p1", 10).file for _ in range(200)]
    assert [len(part) for part in pack_small(files, SIZES)] == [128, 72]


def test_files_near_the_target_size_are_no_candidates() -> None:
    small = SmallFiles(SIZES)
    small.take([entry("p1", 179 * MIB) for _ in range(9)])
    assert small.waiting() == {}
    assert small.plan() == ()


def test_files_that_others_removed_are_not_planned() -> None:
    small = SmallFiles(SIZES)
    entries = [entry("p1") for _ in range(5)]
    small.take(entries)
    small.take([entry("p1", kind=FileKind.DELETE, name=entries[0].file.file_name)])
    assert small.plan() == ()
    assert [len(files) for files in small.waiting().values()] == [4]


def test_the_files_of_a_lost_merge_wait_again_as_far_as_they_live() -> None:
    small = SmallFiles(SIZES)
    entries = [entry("p1") for _ in range(6)]
    small.take(entries)
    (task,) = small.plan()
    small.take([entry("p1", kind=FileKind.DELETE, name=entries[0].file.file_name)])
    small.finish(task, is_done=False)
    assert seen(small.plan()) == {"p1": [5]}


def test_the_files_of_a_committed_merge_do_not_come_back() -> None:
    small = SmallFiles(SIZES)
    small.take([entry("p1") for _ in range(6)])
    (task,) = small.plan()
    small.finish(task, is_done=True)
    assert small.waiting() == {}


def test_with_a_largest_number_the_older_rule_holds() -> None:
    rule = CompactSizes(
        target_bytes=100,
        small_bytes=70,
        min_files=3,
        max_files=5,
        open_file_cost_bytes=4 * MIB,
        round_files=100_000,
    )
    assert [len(part) for part in pack_small([entry("p1", 60).file for _ in range(7)], rule)] == [3, 3]
    assert [len(part) for part in pack_small([entry("p1", 1).file for _ in range(12)], rule)] == [5, 5]


def test_files_of_equal_names_in_two_partitions_are_apart() -> None:
    """As in an adopted directory."""
    small = SmallFiles(SIZES)
    small.take([entry(partition, name=f"{number}.parquet") for partition in ("p1", "p2") for number in range(5)])
    first, second = small.plan()
    small.take([entry("p1", kind=FileKind.DELETE, name=file.file_name) for file in first.files])
    small.finish(first, is_done=True)
    small.finish(second, is_done=False)
    assert seen(small.plan()) == {"p2": [5]}
