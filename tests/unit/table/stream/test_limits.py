from __future__ import annotations

import pytest
from tests.unit.table.stream.queues import Queue, batches, flat, names

from penstock.errors import InvalidOptionError
from penstock.options import StreamOptions
from penstock.spark.connector.stream.frame import _check_options
from penstock.table.read.travel import NO_WATERMARK
from penstock.table.stream.limits import NO_LIMITS, ReadLimits, limits_of
from penstock.table.stream.offset import UNRESOLVED, decode_offset, encode_offset


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
    assert limits_of(StreamOptions.parse({"scan.max-snapshot.count": "-1"})) == ReadLimits()
    expected = ReadLimits(max_files=1, max_bytes=1024, max_rows=3, min_rows=2, max_delay_ms=9)
    both = {"minRowsPerTrigger": "2", "maxTriggerDelayMs": "9"}
    assert limits_of(StreamOptions.parse({**short, **both})) == expected
    long = {f"read.stream.{name}": value for name, value in {**short, **both}.items()}
    assert limits_of(StreamOptions.parse(long)) == expected
    assert limits_of(StreamOptions()) == ReadLimits()


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


BOUND = "scan.bounded.watermark"


def queue_of(*watermarks: int | None) -> Queue:
    """Snapshot n has file fn and was committed at 1000 n."""
    queue = Queue()
    for number, watermark in enumerate(watermarks, 1):
        queue.append(f"0:f{number}", watermark=watermark)
    return queue


def run(queue: Queue, **options: str) -> tuple[list[str], bool]:
    """Numbers of the files that were delivered, and whether the stream ended."""
    found, offset = batches(queue.with_options(options), ReadLimits(max_files=1))
    return [name[1:] for name in flat(found)], offset.ended


FROM_1 = {"scan.snapshot-id": "1"}


@pytest.mark.parametrize(
    ("bound", "options", "delivered", "ended"),
    [
        (97_000, FROM_1, "12345", True),
        (96_999, FROM_1, "1234", True),
        (200_000, FROM_1, "1234567", False),
        (16_999, FROM_1, "", True),
        (97_000, {}, "1234567", True),
        (137_000, {}, "1234567", False),
        (57_000, {"scan.snapshot-id": "5"}, "", True),
        (77_000, {"scan.snapshot-id": "5"}, "", True),
        (97_000, {"scan.snapshot-id": "5"}, "5", True),
        (57_000, {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, "123", True),
        (36_999, {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, "12", True),
        (97_000, {"scan.mode": "latest"}, "", True),
        (137_000, {"scan.mode": "latest"}, "", False),
    ],
)
def test_a_stream_ends_before_the_first_greater_watermark(
    bound: int, options: dict[str, str], delivered: str, *, ended: bool
) -> None:
    queue = queue_of(17_000, 37_000, 57_000, 77_000, 97_000, 117_000, 137_000)
    assert run(queue, **{BOUND: str(bound), **options}) == (list(delivered), ended)


def test_snapshots_without_a_watermark_neither_end_a_stream_nor_are_left_out() -> None:
    assert run(queue_of(None, NO_WATERMARK, 5, None, 11, 12), **{BOUND: "10", **FROM_1}) == (list("1234"), True)
    assert run(queue_of(None, NO_WATERMARK), **{BOUND: "10", **FROM_1}) == (list("12"), False)


def test_snapshots_that_are_skipped_end_a_stream_too() -> None:
    queue = queue_of(1)
    queue.compact("0:c", watermark=20)
    queue.append("0:f3", watermark=5)
    assert run(queue, **{BOUND: "10", **FROM_1}) == (["1"], True)


def test_a_stream_ends_behind_a_snapshot_or_before_a_younger_one() -> None:
    queue = queue_of(None, None, None, None)
    by_id = "penstock.scan.bounded.snapshot-id"
    by_time = "penstock.scan.bounded.timestamp-millis"
    assert run(queue, **{by_id: "2", **FROM_1}) == (list("12"), True)
    assert run(queue, **{by_id: "4", **FROM_1}) == (list("1234"), True)
    assert run(queue, **{by_id: "5", **FROM_1}) == (list("1234"), False)
    assert run(queue, **{by_id: "1"}) == (list("1234"), True)
    assert run(queue, **{by_time: "3000", **FROM_1}) == (list("123"), True)
    assert run(queue, **{by_time: "4000", **FROM_1}) == (list("1234"), False)
    assert run(queue, **{by_time: "2999", "scan.snapshot-id": "4"}) == ([], True)
    assert run(queue, **{by_time: "3999"}) == (list("1234"), True)


def test_a_bounded_stream_reads_what_was_there_when_it_began() -> None:
    queue = queue_of(None, None)
    options = {"scan.bounded": "true", **FROM_1}
    begun = queue.with_options(options).advance(UNRESOLVED, ReadLimits(max_files=1))
    queue.append("0:f3")
    found, offset = batches(queue.with_options(options), offset=decode_offset(encode_offset(begun)))
    assert (flat(found), offset.ended) == (["f2"], True)
    assert run(Queue(), **{"scan.bounded": "true", "scan.mode": "earliest"}) == ([], True)


def test_a_bounded_stream_of_nothing_ends_at_once() -> None:
    for options in ({}, {"scan.mode": "latest-full"}, {"scan.mode": "compacted-full"}, {"scan.snapshot-id": "9"}):
        queue = Queue()
        follower = queue.with_options({"scan.bounded": "true", **options})
        offset = follower.advance(UNRESOLVED, ReadLimits())
        assert offset.ended
        queue.append("0:late")
        assert batches(follower, offset=decode_offset(encode_offset(offset))) == ([], offset)
    queue = queue_of(None)
    assert run(queue, **{"scan.bounded": "true", "scan.snapshot-id": "9"}) == ([], True)


def test_the_end_stays_the_end() -> None:
    queue = queue_of(1, 20)
    follower = queue.with_options({BOUND: "10", **FROM_1})
    _, offset = batches(follower)
    assert offset.ended
    queue.append("0:f3", watermark=3)
    queue.log.forget()
    for each in (follower, queue.with_options(FROM_1)):
        assert each.advance(decode_offset(encode_offset(offset)), NO_LIMITS) == offset
    assert not queue.log.paths(containing="snapshot-")


def test_the_end_comes_with_the_last_rows_or_alone() -> None:
    queue = queue_of(1)
    follower = queue.with_options({BOUND: "10", **FROM_1})
    _, offset = batches(follower)
    assert not offset.ended
    queue.append("0:f2", watermark=20)
    ended = follower.advance(offset, NO_LIMITS)
    assert ended.ended
    assert follower.plan_range(offset, ended) == ()


def test_a_full_phase_in_pieces_ends_with_its_last_one() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", watermark=20)
    options = {BOUND: "10"}
    cut = queue.with_options(options).advance(UNRESOLVED, ReadLimits(max_files=1))
    assert not cut.ended
    assert queue.with_options(options).advance(cut, NO_LIMITS).ended


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        (BOUND, "yesterday", "a time in ms since 1970-01-01 UTC, such as '1763683200000'"),
        (BOUND, "1.5", "a time in ms since 1970-01-01 UTC, such as '1763683200000'"),
        ("penstock.scan.bounded.timestamp-millis", "", "a time in ms since 1970-01-01 UTC, such as '1763683200000'"),
        ("penstock.scan.bounded.snapshot-id", "last", "a whole number such as '8'"),
        ("scan.bounded", "yes", "true or false"),
    ],
)
def test_a_bound_that_is_none_is_refused_when_the_stream_is_made(key: str, value: str, wanted: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Queue().with_options({key: value})
    assert str(caught.value) == f"table shop.orders: option '{key}' = '{value}': expected {wanted}"
    with pytest.raises(InvalidOptionError):
        _check_options(Queue().ref.with_options({key: value}))
