"""The streaming benchmarks at toy size, and the figures that they are made of."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from bench import data, latest_offset, spark_stream_compact, spark_stream_write, stream_sections
from bench.counted_storage import CountedFileIO
from bench.cpu import CpuClock
from bench.measure import Contender, Series, take_turns
from bench.micro_batches import MicroBatch, batches_of, growth, percentile, windows
from bench.result import DELTA, ICEBERG, PARQUET, time_next_to
from bench.settings import ROOT, TOY

from penstock.io.memory import MemoryFileIO

if TYPE_CHECKING:
    from pathlib import Path


def test_the_latest_offset_is_asked_for_in_every_situation_of_both_kinds_of_tables() -> None:
    section = latest_offset.measure(TOY)
    names = (
        latest_offset.FIRST_CUT,
        latest_offset.NEXT_CUT,
        latest_offset.FIRST,
        latest_offset.DROPPED,
        latest_offset.FIRST_ORDERED,
        *latest_offset.STEADY,
    )
    assert {each.work for each in section.series} == {
        f"{kind}, {files} files, {name}" for kind in latest_offset.KINDS for files in TOY.offset_files for name in names
    }
    calls = [check.values[0] for check in section.checks if check.name.endswith("nothing new: calls to storage")]
    assert len(calls) == 4
    assert len(set(calls)) == 1


@pytest.mark.bench
@pytest.mark.spark
@pytest.mark.parametrize(
    "measure",
    [
        stream_sections.measure_read,
        stream_sections.measure_write,
        stream_sections.measure_windows,
        stream_sections.measure_watermark,
        stream_sections.measure_durable,
        stream_sections.measure_slope,
    ],
)
def test_streams_run_in_a_spark_session_of_their_own(measure: Any) -> None:
    section = measure(TOY)
    assert section.series, section.notes
    assert section.checks


@pytest.mark.bench
@pytest.mark.spark
def test_streams_are_compacted_and_not_under_both_schedulers() -> None:
    section = stream_sections.measure_beside(TOY)
    assert not section.notes
    assert {each.session for each in section.series} == set(spark_stream_compact.SCHEDULERS)
    waits = [check for check in section.checks if check.unit == "s" and check.at_most is not None]
    ratios = [check for check in section.checks if check.unit == "x" and check.at_most is not None]
    assert len(waits) == len(ratios) == len(spark_stream_compact.SCHEDULERS) * len(TOY.beside_rows)
    merges = [check for check in section.checks if check.unit == "merges"]
    assert len(merges) == 2 * len(spark_stream_compact.SCHEDULERS)


def test_targets_name_all_that_there_is_a_target_for() -> None:
    for ours in (stream_sections.PLAIN_TABLE, stream_sections.QUEUE):
        for peer in (PARQUET, DELTA, ICEBERG):
            assert stream_sections.READ_TARGETS[ours, peer]
            assert stream_sections.WRITE_TARGETS[ours, peer]


def test_micro_batches_without_rows_do_not_count() -> None:
    progress = [
        {"numInputRows": 10, "durationMs": {"triggerExecution": 250, "addBatch": 200}},
        {"numInputRows": 0, "durationMs": {"triggerExecution": 5}},
    ]
    assert batches_of(progress) == (MicroBatch(rows=10, seconds=0.25, sink_seconds=0.2),)


def test_figures_of_micro_batches_are_those_of_their_times() -> None:
    batches = [MicroBatch(rows=1, seconds=float(second), sink_seconds=second / 2) for second in range(1, 21)]
    assert spark_stream_write.figures_of(batches) == {
        spark_stream_write.THROUGHPUT: 210.0,
        spark_stream_write.P50: 10.0,
        spark_stream_write.P95: 19.0,
        spark_stream_write.SINK_P50: 5.0,
        spark_stream_write.SINK_P95: 9.5,
    }


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (0.95, 4.0), (1.0, 4.0)])
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == expected


def test_the_slope_compares_the_last_hundred_of_a_thousand_with_the_second_hundred() -> None:
    early, late = windows(range(1, 1001))
    assert (early[0], early[-1]) == (101, 200)
    assert (late[0], late[-1]) == (901, 1000)
    assert growth([9.0] * 10 + [1.0] * 10 + [5.0] * 70 + [1.5] * 10) == 1.5


def test_the_first_micro_batches_do_not_count_and_the_others_do_by_their_size() -> None:
    sizes = (50,) * 5 + (10,) * 2
    batches = [MicroBatch(rows=rows, seconds=float(number), sink_seconds=0.0) for number, rows in enumerate(sizes)]
    figures = spark_stream_compact.figures_of(batches, sizes)
    assert figures[50, spark_stream_compact.P50] == 3.0
    assert figures[50, spark_stream_compact.LONGEST] == 4.0
    assert figures[10, spark_stream_compact.P95] == 6.0
    with pytest.raises(AssertionError, match="instead of"):
        spark_stream_compact.figures_of(batches[::-1], sizes)
    with pytest.raises(AssertionError, match="instead of"):
        spark_stream_compact.figures_of(batches[1:], sizes)


def test_compaction_is_held_to_a_ratio_with_a_core_free_and_else_to_a_difference() -> None:
    for case, values in ((spark_stream_compact.FREE, {"x": 1.5}), (spark_stream_compact.TAKEN, {"s": 0.5})):
        work = spark_stream_compact.work_name(case, 10, spark_stream_compact.P95)
        series = [
            Series(work=work, contender=name, session="FIFO", seconds=(seconds,))
            for name, seconds in ((spark_stream_compact.WRITES_ONLY, 1.0), (spark_stream_compact.COMPACTS, 1.5))
        ]
        held = [check for check in spark_stream_compact.compare(series, case, "FIFO") if check.at_most is not None]
        assert {check.unit: check.value for check in held} == values


def test_files_of_uneven_micro_batches_are_in_the_order_of_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "DATA", tmp_path)
    files = list(data.make_uneven_batches((11, 4), files=2).glob("*.parquet"))
    files.sort(key=lambda file: file.stat().st_mtime)
    assert [pq.read_metadata(file).num_rows for file in files] == [5, 6, 2, 2]
    ids = [value for file in files for value in pq.read_table(file)["order_id"].to_pylist()]
    assert ids == list(range(15))


def test_a_time_is_compared_round_by_round() -> None:
    ours = Series(work="w", contender="ours", session="s", seconds=(1.0, 3.0, 2.0))
    peer = Series(work="w", contender="peer", session="s", seconds=(2.0, 2.0, 2.0))
    check = time_next_to(ours, peer, at_most=0.8)
    assert check.name == "w: time of ours next to peer (s session)"
    assert check.values == (0.5, 1.5, 1.0)
    assert check.verdict == "short by 25%"


def test_turns_hand_back_what_the_work_returned() -> None:
    answers = iter(range(10))
    turns = take_turns("w", [Contender(name="a", run=lambda: next(answers))], rounds=2, warm_ups=1)
    assert [turn.answer for turn in turns["a"]] == [1, 2]


def test_every_snapshot_closes_an_account_of_what_was_read() -> None:
    storage = CountedFileIO(MemoryFileIO("bench-counts"))
    for name in ("manifest/manifest-a-0", "manifest/manifest-list-a-0"):
        storage.write(f"t/{name}", b"")
    storage.read("t/manifest/manifest-list-a-0")
    storage.read("t/manifest/manifest-a-0")
    assert storage.put_if_absent("t/snapshot/snapshot-1", b"")
    assert not storage.put_if_absent("t/snapshot/snapshot-1", b"")
    assert storage.put_if_absent("t/snapshot/snapshot-2", b"")
    assert [(each.manifests, each.calls) for each in storage.commits] == [(1, 5), (0, 2)]


def test_the_processor_time_of_children_counts() -> None:
    clock = CpuClock()
    code = "import time; s = time.process_time()\nwhile time.process_time() - s < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert clock.seconds() >= 0.25


def test_the_processor_time_of_orphans_counts() -> None:
    parent = """
import subprocess, sys
burn = "import time; s = time.process_time()\\nwhile time.process_time() - s < 0.3: pass\\nprint()"
child = subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE)
print(child.stdout.readline())
"""
    measure = f"""
import subprocess, sys
from bench.cpu import CpuClock, adopt_orphans
adopt_orphans()
clock = CpuClock()
subprocess.run([sys.executable, "-c", {parent!r}], check=True, capture_output=True)
print(clock.seconds())
"""
    done = subprocess.run([sys.executable, "-c", measure], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.25


def test_the_processor_time_of_sleep_does_not_count() -> None:
    clock = CpuClock()
    time.sleep(0.3)
    assert clock.seconds() < 0.25


def test_files_of_micro_batches_hold_their_share_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "DATA", tmp_path)
    files = sorted(data.make_batches(3, 10, files=2).glob("*.parquet"))
    assert [pq.read_metadata(file).num_rows for file in files] == [5] * 6
    ids = [value for file in files for value in pq.read_table(file)["order_id"].to_pylist()]
    assert ids == list(range(30))


def test_a_process_without_waiters_takes_no_time_back() -> None:
    measure = """
import signal, subprocess, sys
from bench.cpu import CpuClock
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
burn = "import time; s = time.process_time()\\nwhile time.process_time() - s < 0.3: pass\\nprint(flush=True); input()"
child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
clock = CpuClock()
child.stdin.close()
child.wait()
print(clock.seconds())
"""
    done = subprocess.run([sys.executable, "-c", measure], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0
