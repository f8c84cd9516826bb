"""Sources of one group, asked in turn as Spark asks them, without Spark."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.unit.spark.aligned_sources import DRIFT, FIRST, OPTIONS, Clock, Source, close, sources_of
from tests.unit.table.stream.queues import Queue, flat, names

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.manifest.stats import ColumnStats
from penstock.spark.data_source.stream_reader import PenstockStreamReader
from penstock.spark.types import to_spark_schema
from penstock.table.stream.offset import decode_offset

DECLARED = {
    "schema.watermark.0.rowtime": "id",
    "schema.watermark.0.strategy.expr": "`id`",
    "schema.watermark.0.strategy.data-type": "TIMESTAMP(3)",
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def widest_gap(sources: list[Source], rounds: int, *, waits_for_all: bool = False) -> int:
    """Ask all in turn; the widest distance of what is delivered after a round.

    Args:
        waits_for_all: count from when all have delivered something.
    """
    gaps = [0]
    for source in sources:
        source.session.join_group()
    for _ in range(rounds):
        for source in sources:
            source.step()
        marks = [source.watermark for source in sources]
        if all(marks) or not waits_for_all:
            gaps.append(max(marks) - min(marks))
        sources[0].clock.now += 1
    close(*sources)
    return max(gaps)


def fill(sources: list[Source], until: int) -> None:
    for source in sources:
        source.write(until // source.speed)


@pytest.mark.parametrize("limits", [{}, {"scan.max-snapshot.count": "1"}, {"maxFilesPerTrigger": "3"}])
def test_sources_of_very_different_speeds_keep_the_drift_and_one_snapshots_span(
    clock: Clock, limits: dict[str, str]
) -> None:
    sources = sources_of(clock, 100, 10, 1, **limits)
    fill(sources, 200)
    assert widest_gap(sources, 250) <= DRIFT + 100
    assert [source.watermark for source in sources] == [200] * 3
    assert [len(source.files) for source in sources] == [2, 20, 200]


def test_without_alignment_the_same_sources_run_far_apart(clock: Clock) -> None:
    limits = {"scan.max-snapshot.count": "1", "scan.watermark.alignment.group": "apart"}
    sources = sources_of(clock, 100, 10, 1, **limits)
    for source in sources:  # each in a group of its own
        source.options = {**limits, "scan.watermark.alignment.group": f"only-{source.name}"}
        source.session.close()
        source.session = source.start()
    fill(sources, 300)
    assert widest_gap(sources, 20) > 10 * DRIFT


def test_small_snapshots_keep_the_drift_itself(clock: Clock) -> None:
    sources = sources_of(clock, 7, 3, 1)
    fill(sources, 420)
    assert widest_gap(sources, 450, waits_for_all=True) <= DRIFT
    assert [source.watermark for source in sources] == [420] * 3


def test_who_starts_first_waits_for_the_first_rows_of_the_others(clock: Clock) -> None:
    fast, slow = sources_of(clock, 100, 1)
    fill([fast], 600)
    for source in (fast, slow):
        source.session.join_group()
    for _ in range(58):
        fast.step()
        slow.step()
        clock.now += 1
    assert fast.files == []
    slow.write(5)
    clock.now += 1
    for _ in range(3):
        slow.step()
        clock.now += 1
        fast.step()
    assert (slow.watermark, fast.files) == (5, []), "its first snapshot is beyond the drift"
    slow.write(90)
    for _ in range(6):
        slow.step()
        fast.step()
        clock.now += 1
    assert (slow.watermark, fast.files) == (95, ["a1"])
    close(fast, slow)


def test_an_idle_source_releases_the_others_and_holds_them_when_it_comes_back(clock: Clock) -> None:
    fast, slow = sources_of(clock, 10, 1, **{"scan.watermark.idle-timeout": "30 s"})
    fill([fast, slow], 10)
    assert widest_gap([fast, slow], 5) <= DRIFT
    fast.session, slow.session = fast.start(), slow.start()
    fast.write(1)
    for _ in range(3):
        slow.step()
        fast.step()
        clock.now += 1
    fast.write(99)
    for _ in range(20):
        slow.step()
        fast.step()
        clock.now += 1
    assert (slow.watermark, fast.watermark) == (10, 30)
    clock.now += 20
    slow.step()
    assert slow.session._aligned._membership._member.state == "idle"
    fast.step()
    assert fast.watermark == 1_010
    fast.write(10)
    slow.write(1)
    clock.now += 1
    slow.step()
    fast.step()
    assert fast.watermark == 1_010
    assert fast.session.report()["waits_for"] == "shop.b"
    close(fast, slow)


def test_a_waiting_source_checks_no_more_often_than_its_interval(clock: Clock) -> None:
    fast, slow = sources_of(clock, 100, 1, **{"scan.watermark.alignment.update-interval": "5 s"})
    fill([fast, slow], 600)
    for source in (fast, slow):
        source.session.join_group()
    slow.session.advance(FIRST)
    fast.step()
    fast.step()
    seen = fast.session.report()
    for _ in range(40):
        clock.now += 0.1
        assert fast.session.advance(fast.offset) is fast.offset
        assert fast.session.report() is seen
    clock.now += 1
    fast.session.advance(fast.offset)
    assert fast.session.report() is not seen
    close(fast, slow)


def test_a_source_that_ends_leaves_at_once(clock: Clock) -> None:
    fast, slow = sources_of(clock, 10, 1)
    slow.options = {"scan.bounded.watermark": "3"}
    slow.session = slow.start()
    fill([fast, slow], 100)
    for source in (fast, slow):
        source.session.join_group()
    for _ in range(4):
        slow.step()
        fast.step()
        clock.now += 1
    assert decode_offset(slow.offset).ended
    assert (len(slow.files), len(fast.files)) == (3, 10)
    again = slow.start()
    again.join_group()
    assert again.advance(slow.offset) == slow.offset
    clock.now += 1
    fast.write(1)
    assert fast.step()
    close(fast)


def test_a_query_that_has_delivered_all_it_kept_is_refused_with_another_bound(clock: Clock) -> None:
    (source,) = sources_of(clock, 1)
    source.options = {"scan.bounded.watermark": "3"}
    source.session = source.start()
    fill([source], 5)
    while source.step():
        clock.now += 1
    closed = source.session.close_input(source.offset)
    assert source.start().advance(closed) == closed
    for options in ({"scan.bounded.watermark": "4"}, {}):
        source.options = options
        with pytest.raises(InvalidOptionError, match=r"the bound 'scan.bounded.watermark' = '3'.*new checkpoint"):
            source.start().advance(closed)


def test_after_a_restart_a_source_is_where_it_was(clock: Clock) -> None:
    fast, slow = sources_of(clock, 10, 1)
    fill([fast, slow], 40)
    assert widest_gap([fast, slow], 1) <= DRIFT + 10
    gaps = []
    for _ in range(5):
        for source in (fast, slow):
            source.session.close()
            source.session = source.start()
        fast.session.join_group()
        slow.session.join_group()
        for source in (fast, slow, fast, slow):
            source.step()
            clock.now += 1
        gaps.append(abs(fast.watermark - slow.watermark))
    assert max(gaps) <= DRIFT
    assert (fast.watermark, slow.watermark) == (40, 40)
    close(fast, slow)


def until_nothing_moves(sources: list[Source]) -> tuple[int, int]:
    """An ``availableNow`` query of several sources; its batches, and how many of them had no rows."""
    for source in sources:
        source.session.stop_at_latest()
        source.session.join_group()
    batches = empty = 0
    while True:
        before = sum(len(source.files) for source in sources)
        moved = [source.step() for source in sources]
        if not any(moved):
            return batches, empty
        batches += 1
        empty += before == sum(len(source.files) for source in sources)
        sources[0].clock.now += 0.1


@pytest.mark.parametrize(
    ("order", "limits"),
    [((0, 1, 2), {}), ((2, 1, 0), {"maxFilesPerTrigger": "1"}), ((1, 0, 2), {})],
)
def test_a_query_that_ends_by_itself_reads_all_its_sources_to_the_end(
    clock: Clock, order: tuple[int, ...], limits: dict[str, str]
) -> None:
    sources = sources_of(clock, 100, 10, 1, **limits)
    fill(sources, 200)
    _, empty = until_nothing_moves([sources[number] for number in order])
    assert [len(source.files) for source in sources] == [2, 20, 200]
    assert empty <= 2
    assert clock.slept == [], "nobody waits for a source that is asked next"
    # Once more from where it came to: there is nothing, whoever is asked first.
    for source in sources:
        source.session = source.start()
    assert until_nothing_moves([sources[number] for number in order])[0] <= 1
    sources[2].write()
    for source in sources:
        source.session = source.start()
    until_nothing_moves([sources[number] for number in order])
    assert [len(source.files) for source in sources] == [2, 20, 201]


@pytest.mark.parametrize("until", [0, 50])
def test_a_source_that_has_nothing_more_neither_ends_a_query_early_nor_holds_it(clock: Clock, until: int) -> None:
    sources = sources_of(clock, 100, 10, 1)
    fill(sources[:2], 300)
    fill(sources[2:], until)
    until_nothing_moves(sources)
    assert [len(source.files) for source in sources] == [3, 30, until]
    assert clock.slept == []


def test_a_query_that_ends_by_itself_waits_for_one_that_does_not_end(clock: Clock) -> None:
    fast, slow = sources_of(clock, 100, 1)
    fill([fast, slow], 300)
    slow.options = {"scan.max-snapshot.count": "50"}
    slow.session = slow.start()
    slow.session.join_group()
    steps = itertools.count()

    def meanwhile() -> None:
        if next(steps) % 3 == 0:
            slow.step()  # another process, asked now and then

    slow.step()
    clock.meanwhile = meanwhile
    batches, empty = until_nothing_moves([fast])
    assert len(fast.files) == 3
    assert slow.watermark == 200, "then it is the slowest itself"
    assert (batches, empty) == (3, 1), "the first one says only where the stream begins"
    assert 0 < sum(clock.slept) < 30
    close(slow)


def test_a_query_that_ends_by_itself_goes_on_behind_a_dead_source(clock: Clock) -> None:
    fast, slow = sources_of(clock, 100, 1)
    fill([fast, slow], 300)
    slow.session.join_group()
    slow.session._aligned._membership._keeper._stop.set()  # its process is killed
    until_nothing_moves([fast])
    assert len(fast.files) == 3
    assert sum(clock.slept) < 25


def test_a_wait_is_no_place_in_the_stream(clock: Clock) -> None:
    fast, slow = sources_of(clock, 100, 1)
    fill([fast, slow], 300)
    fast.session.stop_at_latest()
    for source in (fast, slow):
        source.session.join_group()
    first = fast.session.advance(FIRST)
    second = fast.session.advance(first)
    assert (decode_offset(first).waits, decode_offset(second).waits) == (0, 1)
    assert fast.session.plan(first, second) == ()
    slow.session.close()
    third = fast.session.advance(second)
    assert decode_offset(third).waits == 0
    assert flat([names(fast.session.plan(second, third))]) == ["a1", "a2", "a3"]
    assert fast.session.plan(first, third) == fast.session.plan(second, third)
    close(fast)


def timed(table: Queue, *files: tuple[str, int], **values: Any) -> None:
    """Commit files ``bucket:name`` with an event time, in ms."""
    entries = []
    for text, millis in files:
        entry = table.entry_of(text)
        like = table.file("", {"id": ColumnStats(min=0, max=millis * 1_000_000, null_count=0)})
        stats = {"value_stats": like.value_stats, "value_stats_cols": like.value_stats_cols}
        entries.append(replace(entry, file=replace(entry.file, **stats)))
    table.commit(*entries, **values)


def declared(source: Source, *, buckets: int = 2, **options: str) -> Source:
    """The same source with a table that declares a watermark."""
    source.table = Queue(store_name=source.store, table=source.name, buckets=buckets, options=DECLARED)
    source.options = options
    source.session = source.start()
    return source


def test_where_snapshots_have_no_watermark_the_event_time_of_files_counts(clock: Clock) -> None:
    fast, slow = sources_of(clock, 1, 1)
    declared(fast)
    slow.write(100)
    for number in range(1, 11):
        timed(fast.table, (f"{number % 2}:f{number}", 10 * number))
    for source in (fast, slow):
        source.session.join_group()
    slow.session._limits = replace(slow.session._limits, max_snapshots=10)
    stood = []
    for _ in range(12):
        slow.step()
        fast.step()
        stood.append((slow.watermark, len(fast.files)))
        clock.now += 1
    # The watermark is that of the slower of two buckets: ten ms behind the newest file.
    assert stood[:5] == [(0, 3), (10, 4), (20, 5), (30, 6), (40, 7)]
    assert stood[-1] == (100, 10)
    close(fast, slow)


def test_a_watermark_that_batch_writers_repeat_blocks_no_source(clock: Clock) -> None:
    fast, slow = sources_of(clock, 10, 1)
    declared(slow)
    fast.write(10)
    for number in range(1, 101):
        timed(slow.table, (f"0:f{number}", number), watermark=3)
    assert widest_gap([fast, slow], 20) <= DRIFT + 10
    assert (len(fast.files), len(slow.files)) == (10, 100)


def test_the_full_phase_is_held_back_file_by_file(clock: Clock) -> None:
    fast, slow = sources_of(clock, 1, 1)
    declared(fast, **{"scan.mode": "latest-full"})
    timed(fast.table, *((f"{number % 2}:f{number}", 10 * number) for number in range(1, 11)), watermark=90)
    slow.session._limits = replace(slow.session._limits, max_snapshots=10)
    slow.write(100)
    for source in (fast, slow):
        source.session.join_group()
    stood = []
    for number in range(12):
        slow.step()
        fast.step()
        stood.append((slow.watermark, len(fast.files)))
        if number % 3 == 2:  # in the middle of the phase
            fast.session.close()
            fast.session = fast.start()
            fast.step()
        clock.now += 1
    # File by file of two buckets in turn; the slower bucket tells.
    assert stood[:5] == [(0, 3), (10, 5), (20, 5), (30, 7), (40, 7)]
    assert stood[-1] == (100, 10)
    assert len(set(fast.files)) == 10
    close(fast, slow)


@pytest.mark.parametrize("align", ["true", "false"])
def test_without_event_times_the_full_phase_is_one_snapshot(clock: Clock, align: str) -> None:
    fast, slow = sources_of(clock, 1, 1)
    fast.options = {"scan.mode": "latest-full", "maxFilesPerTrigger": "2"}
    if align == "true":
        declared(fast, **fast.options, **{"source.checkpoint-align.enabled": "true"})
        timed(fast.table, *((f"0:f{number}", 10 * number) for number in range(1, 11)), watermark=90)
    else:
        fast.session = fast.start()
        fast.table.append(*(f"0:f{number}" for number in range(1, 11)), watermark=90)
    slow.session._limits = replace(slow.session._limits, max_snapshots=10)
    slow.write(100)
    for source in (fast, slow):
        source.session.join_group()
    stood = []
    for _ in range(10):
        slow.step()
        fast.step()
        stood.append((slow.watermark, len(fast.files)))
        clock.now += 1
    first = next(mark for mark, files in stood if files)
    assert first == (80 if align == "true" else 70)
    close(fast, slow)


def test_rows_that_wait_for_more_rows_are_not_reported_before_they_are_delivered(clock: Clock) -> None:
    fast, slow = sources_of(clock, 10, 1)
    slow.options = {"minRowsPerTrigger": "1000", "read.stream.maxTriggerDelayMs": "100000000"}
    slow.session = slow.start()
    fill([fast, slow], 60)
    for source in (fast, slow):
        source.session.join_group()
    for _ in range(5):
        slow.step()
        fast.step()
        clock.now += 1
    assert slow.files == []
    assert [int(name[1:]) for name in fast.files] == [1, 2], "the first of the other has 1"
    close(fast, slow)


def test_a_query_of_a_single_batch_is_refused() -> None:
    table = Queue()
    table.append("0:f1", watermark=1)
    reader = PenstockStreamReader(table.ref.with_options(OPTIONS), to_spark_schema(table.fields), None)
    limit = reader.getDefaultReadLimit()
    assert not isinstance(limit, ReadAllAvailable)
    with pytest.raises(UnsupportedFeatureError, match="which a query of a single batch cannot: use trigger"):
        reader.latestOffset(FIRST, ReadAllAvailable())
    assert reader.latestOffset(FIRST, limit) != FIRST
    reader.stop()
