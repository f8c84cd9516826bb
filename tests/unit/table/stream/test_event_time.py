"""Watermarks of buckets, from the statistics of the files that a stream delivers."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import penstock
from penstock.table.store import MetadataStore
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, BucketWatermarks
from penstock.table.stream.scanner import StreamScanner

if TYPE_CHECKING:
    import pytest

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
NOON_MILLIS = 1_767_268_800_000
GOLDEN: Final = Path(__file__).parents[3] / "golden" / "data" / "warehouse"
EARLIEST = {"scan.mode": "earliest"}
ONE_FILE = ReadLimits(max_files=1)


def make(folder: Path, *, buckets: int = 1, delay: str | None = "INTERVAL '5' SECOND", **options: str) -> Any:
    catalog = penstock.Catalog(str(folder))
    catalog.create_database("d")
    queue = {"bucket": str(buckets), "bucket-key": "k"} if buckets > 0 else {}
    return catalog.create_table(
        "d.t",
        "k INT, t TIMESTAMP(3), dt STRING",
        partition_by=["dt"],
        watermark=("t", delay),
        options=queue | options,
    )


def append(table: penstock.Table, *seconds: float | None, key: int = 0, dt: str = "a") -> None:
    times = [None if each is None else NOON + timedelta(seconds=each) for each in seconds]
    rows = {
        "k": pa.array([key] * len(times), pa.int32()),
        "t": pa.array(times, pa.timestamp("ms")),
        "dt": [dt] * len(times),
    }
    table.append(pa.table(rows))


def steps(table: penstock.Table, limits: ReadLimits = NO_LIMITS) -> list[BucketWatermarks | None]:
    """Watermarks after each micro-batch, in ms after noon."""
    ref = table._ref.with_options(EARLIEST)
    follower = StreamScanner(ref, MetadataStore(ref))
    offset, found = UNRESOLVED, []
    while (end := follower.advance(offset, limits)) != offset:
        offset = end
        marks = offset.watermarks
        found.append(None if marks is None else tuple((bucket, ms - NOON_MILLIS) for bucket, ms in marks))
    return found


def test_a_watermark_is_the_latest_time_less_the_delay(tmp_path: Path) -> None:
    table = make(tmp_path)
    append(table, 10, 3)
    append(table, 7)
    append(table, 12.345, None)
    append(table, None)
    assert steps(table, ReadLimits(max_snapshots=1)) == [((0, 5_000),), ((0, 5_000),), ((0, 7_345),), ((0, 7_345),)]


def test_each_bucket_has_its_own(tmp_path: Path) -> None:
    table = make(tmp_path, buckets=4, delay=None)
    for key in range(8):
        append(table, key, key=key)
    found = dict(steps(table)[-1] or ())
    files = table.files().to_pylist()
    assert len({file["bucket"] for file in files}) > 1
    assert sorted(found) == sorted({file["bucket"] for file in files})
    assert max(found.values()) == 7_000
    assert min(found.values()) < 7_000


def test_buckets_that_a_rescale_has_removed_hold_nothing_back(tmp_path: Path) -> None:
    table = make(tmp_path, buckets=4, delay=None)
    for key in range(8):
        append(table, key, key=key)
    ref = table._ref.with_options(EARLIEST)
    offset = StreamScanner(ref, MetadataStore(ref)).advance(UNRESOLVED, NO_LIMITS)
    assert len(offset.watermarks or ()) == 4
    table.maintenance.rescale(2)
    table = penstock.Table.at(table.location)
    for key in range(8):
        append(table, 100 + key, key=key)
    for each in (ref, table._ref.with_options(EARLIEST)):  # of a query that runs, and of one that is restarted
        end = StreamScanner(each, MetadataStore(each)).advance(offset, NO_LIMITS)
        assert [bucket for bucket, _ in end.watermarks or ()] == [0, 1]
        assert min(millis for _, millis in end.watermarks or ()) > NOON_MILLIS + 100_000


def test_a_scalable_table_has_one(tmp_path: Path) -> None:
    table = make(tmp_path, buckets=-1)
    append(table, 10)
    append(table, 20)
    assert steps(table)[-1] == ((0, 15_000),)


def test_inside_of_a_snapshot_and_of_the_full_phase_it_does_not_move(tmp_path: Path) -> None:
    table = make(tmp_path)
    append(table, 100, dt="b")
    append(table, 1, dt="a")
    append(table, 200, dt="c")
    ref = table._ref.with_options({"scan.mode": "latest-full"})
    follower = StreamScanner(ref, MetadataStore(ref))
    offset, found = UNRESOLVED, []
    while (end := follower.advance(offset, ONE_FILE)) != offset:
        offset = end
        found.append(offset.watermarks)
    assert found[:-1] == [()] * (len(found) - 1)
    assert found[-1] == ((0, NOON_MILLIS + 195_000),)


def test_a_time_that_only_a_deleted_row_had_moves_nothing(tmp_path: Path) -> None:
    """In the full phase, whose files may have deletion vectors; statistics are of all rows of a file."""
    table = make(tmp_path, buckets=-1, delay=None, **{"deletion-vectors.enabled": "true"})
    append(table, 1, 2)
    append(table, 3, 1_000_000)
    table.delete("t > TIMESTAMP '2026-01-02 00:00:00'")
    assert [file["record_count"] for file in table.files().to_pylist()] == [2, 2]
    ref = table._ref.with_options({"scan.mode": "latest-full"})
    for limits in (NO_LIMITS, ONE_FILE):
        follower = StreamScanner(ref, MetadataStore(ref))
        offset, end = UNRESOLVED, follower.advance(UNRESOLVED, limits)
        while end != offset:
            offset, end = end, follower.advance(end, limits)
        assert offset.watermarks == ((0, NOON_MILLIS + 2_000),)
    append(table, 5)
    assert follower.advance(offset, NO_LIMITS).watermarks == ((0, NOON_MILLIS + 5_000),)


def test_a_table_that_declares_none_has_none(tmp_path: Path) -> None:
    catalog = penstock.Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, t TIMESTAMP(3), dt STRING", partition_by=["dt"])
    append(table, 1)
    assert steps(table) == [None]


def test_flinks_own_watermarks_come_out_where_flink_wrote() -> None:
    table = penstock.Table.at(str(GOLDEN / "flink131s.db" / "f_watermark"))
    marks = [row["watermark"] for row in table.snapshots().to_pylist()]
    assert len(set(marks)) == 8
    found = steps(table, ReadLimits(max_snapshots=1))
    assert [NOON_MILLIS + millis for each in found for _, millis in each or ()] == marks[:8]


def test_files_that_do_not_say_their_latest_time_leave_it_where_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(tmp_path, **{"metadata.stats-mode": "counts"})
    append(table, 1)
    append(table, 2)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert steps(table) == [()]
    assert [record.message.partition(" keeps ")[2][:45] for record in caplog.records] == [
        "no largest value of the event time column 't'"
    ]
