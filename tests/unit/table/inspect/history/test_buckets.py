from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.metadata_tables import MemoryTable

from penstock.table.inspect.history.buckets import SequenceRange, measure_buckets, measure_order, overlapping
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from penstock.format.manifest.entry import ManifestEntry

QUEUE = MemoryTable(partition_keys=("dt",), options={"bucket": "2", "bucket-key": "id"})
LOCATOR = FileLocator.of(QUEUE.ref)


def entry(first: int, last: int, *, day: str | None = "x", bucket: int = 0) -> ManifestEntry:
    rows = last - first + 1
    file = QUEUE.file(
        f"{day}-{bucket}-{first}", min_sequence_number=first, max_sequence_number=last, row_count=rows, file_size=rows
    )
    return QUEUE.entry(file, [day], bucket=bucket, total_buckets=2)


def test_buckets_are_summed_up_by_partition_and_number() -> None:
    live = [entry(0, 9), entry(0, 4, bucket=1), entry(10, 10), entry(0, 0, day="w")]
    found = [
        (each.partition, each.bucket, each.files, each.rows, each.bytes) for each in measure_buckets(live, LOCATOR)
    ]
    assert found == [("dt=w", 0, 1, 1, 1), ("dt=x", 0, 2, 11, 11), ("dt=x", 1, 1, 5, 5)]
    assert measure_buckets([], LOCATOR) == ()


def test_files_that_follow_each_other_are_in_order() -> None:
    order = measure_order([entry(10, 19), entry(0, 9), entry(30, 39), entry(0, 99, bucket=1)], LOCATOR)
    assert (order.buckets, order.files, order.overlaps) == (2, 4, 0)
    assert [(each.first, each.last) for each in order.shown[0].ranges] == [(0, 9), (10, 19), (30, 39)]


def test_a_file_that_begins_within_one_before_it_is_found() -> None:
    order = measure_order([entry(0, 99), entry(5, 9), entry(50, 120), entry(121, 130)], LOCATOR)
    assert order.overlaps == 2, "the long one still covers the third"
    same = measure_order([entry(0, 9), entry(0, 9, bucket=1), entry(0, 9, day="y")], LOCATOR)
    assert same.overlaps == 0, "each bucket counts for itself"


def test_partitions_with_the_same_name_are_not_mixed_up() -> None:
    # NULL is written as this very text.
    order = measure_order([entry(0, 9, day=None), entry(0, 9, day="__DEFAULT_PARTITION__")], LOCATOR)
    assert (order.buckets, order.overlaps) == (2, 0)


def test_what_is_kept_are_overlaps_and_then_the_buckets_with_most_files() -> None:
    many = [entry(number * 10, number * 10 + 9, day="many") for number in range(5)]
    few = [entry(0, 9, day=f"few-{number}") for number in range(4)]
    bad = [entry(0, 9, day="zzz"), entry(9, 10, day="zzz")]
    order = measure_order([*few, *many, *bad], LOCATOR, most=2)
    assert [each.partition for each in order.shown] == ["dt=many", "dt=zzz"]
    assert (order.buckets, order.files, order.overlaps) == (6, 11, 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=10))
def test_no_overlap_means_that_no_number_is_in_two_files(pairs: list[tuple[int, int]]) -> None:
    ranges = [SequenceRange(first=first, last=first + more, rows=1, bytes=1) for first, more in sorted(pairs)]
    numbers = [number for each in ranges for number in range(each.first, each.last + 1)]
    assert any(overlapping(ranges)) == (len(numbers) > len(set(numbers)))
