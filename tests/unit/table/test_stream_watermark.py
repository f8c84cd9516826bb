"""The least of what the sources of a batch have come to."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from penstock.table.stream.checkpoint import BatchEnds, decode_batch
from penstock.table.stream.offset import BucketWatermarks, Position, StreamOffset, encode_offset
from penstock.table.stream_watermark import SinkWatermark

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


def test_sparks_own_does_not_stand_in_for_a_source_of_ours_without_a_time_yet() -> None:
    assert of(batch((), None, spark=30)) is None
    assert of(batch((), spark=30)) is None


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
    assert ends == BatchEnds(sources=(ours, None, None), spark_watermark=12, takes_least=False)
    bare = decode_batch(b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5}\n-', "offsets/0")
    assert bare == BatchEnds(sources=(None,), spark_watermark=None, takes_least=True)
