from __future__ import annotations

import pytest
from tests.unit.table.stream.queues import Queue, batches, flat

from penstock.errors import InvalidOptionError
from penstock.spark.stream.frame import _check_options
from penstock.table.read.travel import NO_WATERMARK
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, decode_offset, encode_offset

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
