"""The least of what the sources of a batch have come to."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from penstock.table.stream.checkpoint import BatchEnds, decode_batch
from penstock.table.stream.offset import END_OF_INPUT_MS, BucketWatermarks, Position, StreamOffset, encode_offset
from penstock.table.stream_sink.watermark import Observed, SinkWatermark, merge_times

if TYPE_CHECKING:
    import pytest

HERE = Position(snapshot_id=3)


class Clock:
    """Seconds that a test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def source(watermarks: BucketWatermarks | None) -> StreamOffset:
    return StreamOffset(start=HERE, position=HERE, watermarks=watermarks)


def batch(*watermarks: BucketWatermarks | None, spark: int | None = None, takes_least: bool = True) -> BatchEnds:
    return BatchEnds(sources=tuple(map(source, watermarks)), spark_watermark=spark, takes_least=takes_least)


def of(ends: BatchEnds, *, waits_for_spark: bool = False) -> int | None:
    return SinkWatermark(table="d.t", waits_for_spark=waits_for_spark).of(ends)


def test_it_is_the_least_over_sources_and_buckets() -> None:
    assert of(batch(((0, 50), (1, 40)), ((0, 45),))) == 40


def test_a_source_without_a_time_yet_or_without_a_declaration_holds_it() -> None:
    assert of(batch(((0, 50),), ())) is None
    assert of(batch(((0, 50),), None)) is None
    assert of(BatchEnds(sources=(source(((0, 50),)), None), spark_watermark=None, takes_least=True)) is None
    assert of(BatchEnds(sources=(), spark_watermark=None, takes_least=True)) is None


def test_sparks_own_counts_where_a_source_has_none() -> None:
    assert of(batch(((0, 50),), None, spark=30)) == 30
    assert of(batch(((0, 20),), None, spark=30)) == 20
    assert of(BatchEnds(sources=(None,), spark_watermark=30, takes_least=True)) == 30


def test_sparks_own_watermark_does_not_replace_that_of_our_source_without_a_time_yet() -> None:
    assert of(batch((), None, spark=30)) is None
    assert of(batch((), spark=30)) is None


def test_sparks_own_watermark_does_not_replace_that_of_sources_it_does_not_come_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False, is_wanted=True, spark_knows_all=False)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert watermark.of(batch(((0, 50),), None, spark=30)) is None
        assert watermark.of(BatchEnds(sources=(None,), spark_watermark=30, takes_least=True)) is None
    assert ["which report no event times; add withWatermark" in record.message for record in caplog.records] == [True]
    # Where all sources tell times, Spark's is only waited for.
    joined = SinkWatermark(table="d.t", waits_for_spark=True, spark_knows_all=False)
    assert joined.of(batch(((0, 50),), ((0, 40),), spark=30)) == 30


def test_a_source_that_comes_later_takes_no_other_ones_place() -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False)
    late = BatchEnds(sources=(None, source(((7, 10),))), spark_watermark=None, takes_least=True)
    assert watermark.of(late) is None
    assert watermark.of(batch(((0, 50),), ((7, 60),))) == 50


def test_rows_that_spark_keeps_hold_it() -> None:
    assert of(batch(((0, 50),), spark=30), waits_for_spark=True) == 30
    assert of(batch(((0, 50),)), waits_for_spark=True) is None
    assert of(batch((), spark=30), waits_for_spark=True) is None
    assert of(batch(((0, 50),), spark=30)) == 50


def test_the_greatest_of_several_is_none_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert [watermark.of(batch(None, spark=30, takes_least=False)) for _ in range(2)] == [None, None]
    assert ["multipleWatermarkPolicy" in record.message for record in caplog.records] == [True]


def test_a_bucket_that_is_silent_for_too_long_holds_nothing_until_it_is_back() -> None:
    clock = Clock()
    watermark = SinkWatermark(table="d.t", waits_for_spark=False, idle_timeout_ms=1_000, clock=clock)
    assert watermark.of(batch(((0, 10), (1, 10)))) == 10
    clock.seconds = 0.9
    assert watermark.of(batch(((0, 80), (1, 10)))) == 10
    clock.seconds = 1.1
    assert watermark.of(batch(((0, 90), (1, 10)))) == 90
    clock.seconds = 1.2
    assert watermark.of(batch(((0, 95), (1, 11)))) == 11
    clock.seconds = 9
    assert watermark.of(batch(((0, 95), (1, 11)))) is None


def test_the_watermark_by_which_spark_delivers_what_it_kept_is_no_event_time() -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=True)
    assert watermark.of(replace(batch(((0, 10), (1, 30))), spark_watermark=5)) == 5
    assert watermark.of(replace(batch(((0, 10), (1, 30))), spark_watermark=END_OF_INPUT_MS)) == 10
    stranger = SinkWatermark(table="d.t", waits_for_spark=True)
    assert stranger.of(replace(STRANGER, spark_watermark=END_OF_INPUT_MS)) is None


def test_what_spark_wrote_down_is_read() -> None:
    ours = source(((0, 7),))
    conf = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
    lines = [
        "v1",
        json.dumps({"batchWatermarkMs": 12, "conf": conf}),
        json.dumps(encode_offset(ours)),
        "-",
        '{"a":{"0":3}}',
    ]
    ends = decode_batch("\n".join(lines).encode(), "offsets/3")
    assert ends == BatchEnds(sources=(ours, None, None), spark_watermark=12, takes_least=False, topics=frozenset({"a"}))
    bare = decode_batch(b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5}\n-', "offsets/0")
    assert bare == BatchEnds(sources=(None,), spark_watermark=None, takes_least=True)


STRANGER = BatchEnds(sources=(None,), spark_watermark=None, takes_least=True)


def seen(**times: int | None) -> Observed:
    return Observed(sources=1, times=times)


def test_observed_partitions_count_one_by_one_and_a_silent_one_by_what_it_had() -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False)
    assert watermark.of(STRANGER, seen(a=50, b=40)) == 40
    assert watermark.of(STRANGER, seen(a=90, b=None)) == 40
    assert watermark.of(STRANGER, seen(a=None, b=70)) == 70
    # A late row takes nothing back.
    assert watermark.of(STRANGER, seen(a=10, b=None)) == 70


def test_a_partition_that_never_had_a_row_holds_the_others_until_it_is_idle() -> None:
    clock = Clock()
    watermark = SinkWatermark(table="d.t", waits_for_spark=False, idle_timeout_ms=1_000, clock=clock)
    assert watermark.of(STRANGER, seen(a=50, b=None)) is None
    clock.seconds = 0.5
    assert watermark.of(STRANGER, seen(a=60, b=None)) is None
    clock.seconds = 1.2
    assert watermark.on_idle() == 60
    assert watermark.of(STRANGER, seen(a=70, b=20)) == 20


def test_what_was_observed_is_known_after_a_restart() -> None:
    before = SinkWatermark(table="d.t", waits_for_spark=False)
    before.of(STRANGER, seen(a=50, b=40))
    older = before.encode()
    before.of(STRANGER, seen(a=80, b=None))
    after = SinkWatermark(table="d.t", waits_for_spark=False)
    after.restore(merge_times(before.encode(), older, None, "damaged"))
    assert after.of(STRANGER, seen(a=90, b=None)) == 40
    assert SinkWatermark(table="d.t", waits_for_spark=False).encode() is None


def test_unknown_partitions_end_it(caplog: pytest.LogCaptureFixture) -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False)
    assert watermark.of(STRANGER, seen(a=50)) == 50
    with caplog.at_level(logging.WARNING, "penstock"):
        assert watermark.of(STRANGER, Observed(sources=1, times={"a": 60}, is_complete=False)) is None
        assert watermark.of(STRANGER, seen(a=70)) is None
    assert ["partitions have appeared" in record.message for record in caplog.records] == [True]


def test_an_unknown_source_is_as_far_as_its_last_task() -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False)
    assert watermark.of(STRANGER, Observed(least_of_tasks=50)) == 50
    assert watermark.of(STRANGER, Observed(least_of_tasks=30)) == 50
    assert watermark.of(STRANGER) == 50
    early = SinkWatermark(table="d.t", waits_for_spark=False)
    assert [early.of(STRANGER, Observed(least_of_tasks=each)) for each in (0, -9)] == [0, 0]
    # Not where there are several sources, whose rows need not be in each batch.
    two = BatchEnds(sources=(None, None), spark_watermark=None, takes_least=True)
    assert SinkWatermark(table="d.t", waits_for_spark=False).of(two, Observed(least_of_tasks=50)) is None


def test_a_missing_watermark_of_a_table_that_declares_one_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False, is_wanted=True)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert [watermark.of(STRANGER) for _ in range(2)] == [None, None]
    assert ["add withWatermark to those" in record.message for record in caplog.records] == [True]


def test_a_batch_without_times_is_not_reported_as_shuffled_where_tasks_report_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watermark = SinkWatermark(table="d.t", waits_for_spark=False, is_wanted=True, looks_at_tasks=True)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert watermark.of(STRANGER) is None
        assert watermark.of(STRANGER, Observed(least_of_tasks=50)) == 50
        assert not caplog.records
        two = BatchEnds(sources=(None, None), spark_watermark=None, takes_least=True)
        assert watermark.of(two) is None
    assert ["add withWatermark to those" in record.message for record in caplog.records] == [True]


PARTITION_STEPS = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 20), max_size=3).map(lambda rows: (rows, False))
    | st.just(({}, True)),
    max_size=30,
)


@given(PARTITION_STEPS)
def test_no_row_comes_behind_the_watermark(steps: list[tuple[dict[str, int], bool]]) -> None:
    """Each partition moves on by itself, is silent for any time, and the query starts again at any time."""
    places = {"a": 1_000, "b": 0, "c": 500_000}
    watermark, kept, newest = SinkWatermark(table="d.t", waits_for_spark=False), None, None
    for rows, restarts in steps:
        if restarts:
            watermark = SinkWatermark(table="d.t", waits_for_spark=False)
            watermark.restore(kept)
            continue
        for name, step in rows.items():
            places[name] += step
            assert newest is None or places[name] >= newest
        found = watermark.of(STRANGER, seen(**{name: places[name] if name in rows else None for name in places}))
        kept = watermark.encode()
        newest = found if newest is None else max(newest, found or newest)
