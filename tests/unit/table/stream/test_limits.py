from __future__ import annotations

import pytest
from tests.unit.table.stream.queues import Queue, batches, flat, names

from penstock.options import StreamOptions
from penstock.table.stream.limits import ReadLimits, limits_of
from penstock.table.stream.offset import UNRESOLVED


def sizes(queue: Queue, limits: ReadLimits, **options: str) -> list[int]:
    """Files of each micro-batch."""
    found, _ = batches(queue.with_options({"scan.mode": "earliest", **options}), limits)
    return [len(flat([batch])) for batch in found]


@pytest.fixture
def queue() -> Queue:
    """Three snapshots of four, one and two files; a file has 10 rows and 1,000 bytes."""
    made = Queue()
    made.append("0:a", "0:b", "1:c", "1:d")
    made.append("0:e")
    made.append("0:f", "1:g")
    return made


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (ReadLimits(), [7]),
        (ReadLimits(max_files=1), [1] * 7),
        (ReadLimits(max_files=3), [3, 3, 1]),
        (ReadLimits(max_bytes=2_500), [2, 2, 2, 1]),
        (ReadLimits(max_bytes=1), [1] * 7),
        (ReadLimits(max_rows=50), [5, 2]),
        (ReadLimits(max_rows=9), [1] * 7),
        (ReadLimits(max_files=4, max_rows=30, max_bytes=10_000), [3, 3, 1]),
        (ReadLimits(max_files=4, max_rows=70, max_bytes=2_000), [2, 2, 2, 1]),
    ],
)
def test_the_first_limit_that_is_reached_cuts(queue: Queue, limits: ReadLimits, expected: list[int]) -> None:
    assert sizes(queue, limits) == expected


def test_micro_batches_can_end_at_snapshots_only(queue: Queue) -> None:
    aligned = {"source.checkpoint-align.enabled": "true"}
    assert sizes(queue, ReadLimits(max_files=3), **aligned) == [4, 3]
    assert sizes(queue, ReadLimits(max_files=1), **aligned) == [4, 1, 2]
    assert sizes(queue, ReadLimits(max_files=5), **aligned) == [5, 2]


def test_snapshots_of_a_micro_batch_can_be_counted(queue: Queue) -> None:
    queue.compact("0:h")
    queue.append("0:i")
    assert sizes(queue, ReadLimits(max_snapshots=2)) == [5, 3]
    assert sizes(queue, ReadLimits(max_snapshots=2, max_files=3)) == [3, 2, 3]


def test_options_say_the_limits_by_long_and_short_names() -> None:
    short = {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1 kb", "maxRowsPerTrigger": "3"}
    counted = {"scan.max-snapshot.count": "4"}
    assert limits_of(StreamOptions.parse(counted)) == ReadLimits(max_snapshots=4)
    assert limits_of(StreamOptions.parse({"scan.max-snapshot.count": "-1"})).is_unlimited
    expected = ReadLimits(max_files=1, max_bytes=1024, max_rows=3, min_rows=2, max_delay_ms=9)
    both = {"minRowsPerTrigger": "2", "maxTriggerDelayMs": "9"}
    assert limits_of(StreamOptions.parse({**short, **both})) == expected
    long = {f"read.stream.{name}": value for name, value in {**short, **both}.items()}
    assert limits_of(StreamOptions.parse(long)) == expected
    assert limits_of(StreamOptions()).is_unlimited


def test_few_rows_wait_for_more_until_the_delay_is_over() -> None:
    queue = Queue()
    queue.append("0:a")
    now = [1_000]
    follower = queue.follower(clock=0)
    follower._clock_millis = lambda: now[0]
    limits = ReadLimits(min_rows=25, max_delay_ms=100)
    begun = follower.advance(UNRESOLVED, limits)
    assert begun.position == begun.start
    now[0] += 60
    queue.append("0:b")
    assert follower.advance(begun, limits) == begun
    now[0] += 40
    after_delay = follower.advance(begun, limits)
    assert after_delay != begun
    # The next rows wait anew, and enough of them do not wait at all.
    queue.append("0:c")
    assert follower.advance(after_delay, limits) == after_delay
    queue.append("0:d", "1:e")
    assert follower.advance(after_delay, limits) != after_delay


def test_the_wait_for_more_rows_begins_with_the_first_of_them() -> None:
    queue = Queue()
    queue.append("0:a")
    now = [0]
    follower = queue.with_options({"scan.mode": "latest"})
    follower._clock_millis = lambda: now[0]
    limits = ReadLimits(min_rows=25, max_delay_ms=100)
    begun = follower.advance(UNRESOLVED, limits)
    for _ in range(2):
        now[0] += 1_000
        assert follower.advance(begun, limits) == begun
    queue.append("0:b")
    assert follower.advance(begun, limits) == begun
    now[0] += 60
    queue.append("0:c")
    assert follower.advance(begun, limits) == begun
    now[0] += 40
    reached = follower.advance(begun, limits)
    assert flat([names(follower.plan_range(begun, reached))]) == ["b", "c"]


def test_nothing_waits_where_a_limit_cuts_or_the_end_is_known() -> None:
    queue = Queue()
    queue.append("0:a", "1:b")
    waiting = ReadLimits(max_files=1, min_rows=25, max_delay_ms=10**9)
    follower = queue.with_options({})
    first = follower.advance(UNRESOLVED, waiting)
    assert first.position is not None
    assert first.position.index == 1
    assert follower.advance(first, waiting) == first
    last = follower.advance(first, waiting, until=1)
    assert last != first
    bounded = queue.with_options({"penstock.scan.bounded.snapshot-id": "1"})
    assert bounded.advance(UNRESOLVED, ReadLimits(min_rows=25, max_delay_ms=10**9)).ended
