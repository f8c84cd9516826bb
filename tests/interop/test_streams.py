"""Java Paimon and we follow one table: the same rows in the same order, whatever the start and the bound."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop import ours
from tests.interop.canonical import dumps, sort_rows
from tests.interop.engines import JavaPaimon, Row

from penstock.table.stream.limits import ReadLimits

pytestmark = pytest.mark.jvm

QUEUE: Final = {"bucket": "8", "bucket-key": "k"}
SCALABLE: Final = {"bucket": "-1"}
BUCKETS: Final = pytest.mark.parametrize("bucket", [SCALABLE, QUEUE], ids=["scalable", "queue"])
FROM_FIRST: Final = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
# One file a micro-batch, so every snapshot is cut wherever it can be.
CUT: Final = ReadLimits(max_files=1)


class Producer:
    """Numbers rows, so that each tells its place in the order of writes."""

    def __init__(self) -> None:
        self.number = 0

    def rows(self, count: int, partitions: str = "ba") -> list[Row]:
        """Return the next rows; partitions turn up in the order given."""
        start, self.number = self.number, self.number + count
        return [
            {"k": 7 * i % 23, "n": i, "p": partitions[(i - start) * len(partitions) // count]}
            for i in range(start, self.number)
        ]


def queue_history(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> Producer:
    """Appends with a partition that comes late, a compaction and an overwrite in between."""
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options=bucket)
    producer = Producer()
    for _ in range(3):
        ours.append(location, producer.rows(40))
    java.ask("compact", location)
    ours.append(location, producer.rows(40, "cba"))
    ours.overwrite(location, producer.rows(30, "b"), {"p": "b"})
    for _ in range(3):
        ours.append(location, producer.rows(40, "acb"))
    kinds = ours.load(location).snapshots()["commit_kind"].to_pylist()
    assert kinds == ["APPEND"] * 3 + ["COMPACT", "APPEND", "OVERWRITE"] + ["APPEND"] * 3
    return producer


def in_order(answer: dict[str, Any]) -> list[dict[str, list[Row]]]:
    """Return plan by plan the rows of each partition and bucket, in the order in which they come."""
    plans = []
    for plan in answer["plans"]:
        places: dict[str, list[Row]] = {}
        for split in plan["splits"]:
            places.setdefault(dumps([split["snapshot"], split["partition"], split["bucket"]]), []).extend(split["rows"])
        plans.append(places)
    return plans


def delivered(answer: dict[str, Any], *, has_order: bool) -> list[Any]:
    """Return what both have to agree on; without an order of writes only what each plan holds."""
    plans = in_order(answer)
    if has_order:
        return plans
    return [{place: sort_rows(rows) for place, rows in places.items()} for places in plans]


STARTS: Final = {
    "changes": FROM_FIRST,
    "with-overwrites": FROM_FIRST | {"streaming-read-append-overwrite": "true"},
    "latest-full": {"scan.mode": "latest-full"},
    "from-snapshot-full": {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "5"},
    "compacted-full": {"scan.mode": "compacted-full"},
}


@BUCKETS
def test_java_and_we_deliver_the_same_rows_in_the_same_order(
    java: JavaPaimon, location: Path, bucket: dict[str, str]
) -> None:
    producer = queue_history(java, location, bucket)
    streams = {name: [ours.Stream(location, options) for _ in range(2)] for name, options in STARTS.items()}

    def follow_all(plans: range) -> None:
        for name, both in streams.items():
            theirs = delivered(java.follow(location, name, STARTS[name]), has_order=bucket == QUEUE)
            assert len(theirs) in plans, name
            for stream, limits in zip(both, (ReadLimits(), CUT), strict=True):
                assert delivered(stream.follow(limits), has_order=bucket == QUEUE) == theirs, (name, limits)

    follow_all(range(1, 100))
    java.ask("compact", location)
    for _ in range(2):
        ours.append(location, producer.rows(40, "dabc"))
    follow_all(range(2, 3))


@BUCKETS
def test_java_and_we_deliver_the_same_of_tables_with_deletion_vectors(
    java: JavaPaimon, location: Path, bucket: dict[str, str]
) -> None:
    marked = {"deletion-vectors.enabled": "true", "write-only": "true"}
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options=bucket | marked)
    producer = Producer()
    streams = {name: ours.Stream(location, STARTS[name]) for name in STARTS if name != "compacted-full"}
    for first in range(0, 160, 40):
        ours.append(location, producer.rows(40))
        table = ours.load(location)
        assert table.delete(f"n >= {first + 3} AND n < {first + 5}").rows_deleted == 2
        assert table.update({"k": 100}, f"n IN ({first // 2}, {first + 20})").files_added
    assert "OVERWRITE" in ours.load(location).snapshots()["commit_kind"].to_pylist()
    for name, stream in streams.items():
        theirs = delivered(java.follow(location, name, STARTS[name]), has_order=bucket == QUEUE)
        assert delivered(stream.follow(CUT), has_order=bucket == QUEUE) == theirs, name
        assert theirs
    rows = ours.load(location).to_arrow().to_pylist()
    assert sorted(row["n"] for row in rows if row["k"] == 100) == [0, 20, 40, 60, 100, 140]


def test_rows_of_one_bucket_never_overtake_each_other(java: JavaPaimon, location: Path) -> None:
    queue_history(java, location, QUEUE)
    for options in (FROM_FIRST, {"scan.mode": "latest-full"}):
        for answer in (
            java.follow(location, options["scan.mode"], options),
            ours.Stream(location, options).follow(CUT),
        ):
            ends: dict[str, int] = {}
            for split in (split for plan in answer["plans"] for split in plan["splits"]):
                place = dumps([split["partition"], split["bucket"]])
                found = [ends.get(place, -1), *(row["n"] for row in split["rows"])]
                assert found == sorted(found)
                ends[place] = found[-1]
            assert len(ends) > 16


def test_a_batch_read_has_the_order_of_the_stream(java: JavaPaimon, location: Path) -> None:
    queue_history(java, location, QUEUE)
    [full] = in_order(java.follow(location, "full", {"scan.mode": "latest-full"}))
    batch = [row["n"] for row in ours.load(location).to_arrow().to_pylist()]
    places = {row["n"]: place for place, rows in full.items() for row in rows}
    found: dict[str, list[int]] = {}
    for number in batch:
        found.setdefault(places[number], []).append(number)
    assert found == {place: [row["n"] for row in rows] for place, rows in full.items()}


def test_partitions_follow_each_other_by_value_where_that_is_asked_for(java: JavaPaimon, location: Path) -> None:
    ours.create(location, "k INT, n INT, p INT", partition_by=["p"], options=QUEUE)
    values = [10, 9, None, -1, 100]
    for _ in range(2):
        rows: list[Row] = [{"k": i, "n": i, "p": values[i % 5]} for i in range(80)]
        ours.append(location, rows)
    for start in (FROM_FIRST, {"scan.mode": "latest-full"}):
        options = start | {"scan.plan-sort-partition": "true"}
        theirs = java.follow(location, options["scan.mode"], options)
        mine = ours.Stream(location, options).follow()
        for bucket in range(8):
            orders = [
                [
                    list(dict.fromkeys(split["partition"]["p"] for split in of_bucket(plan, bucket)))
                    for plan in each["plans"]
                ]
                for each in (theirs, mine)
            ]
            assert orders[0] == orders[1]
            for order in orders[0]:
                assert order == [value for value in (None, -1, 9, 10, 100) if value in order]
                assert len(order) > 2


def of_bucket(plan: dict[str, Any], bucket: int) -> Iterable[dict[str, Any]]:
    return (split for split in plan["splits"] if split["bucket"] == bucket)


# ------------------------------------------------------------- starts and bounds


def watermark_history(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> list[int]:
    """Watermarks that stand still, are missing at first, and come with empty snapshots; return all commit times."""
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options=bucket)
    producer = Producer()
    ours.append(location, producer.rows(10))
    ours.append_until(location, producer.rows(10), 1000)
    ours.append_until(location, producer.rows(10), 2000)
    ours.append_until(location, [], 2500)
    java.ask("compact", location)
    ours.overwrite(location, producer.rows(10, "a"), {"p": "a"})
    ours.append_until(location, producer.rows(10), 3000)
    ours.append_until(location, producer.rows(10), None)
    ours.append_until(location, producer.rows(10), 4000)
    store = ours.load(location)._store
    assert store.list_snapshot_ids() == tuple(range(1, 10))
    return [store.load_snapshot(snapshot_id).time_millis for snapshot_id in range(1, 10)]


def starts(times: list[int]) -> list[dict[str, str]]:
    """Every mode of a stream, at every place where it may make a difference."""
    edges = sorted({edge for time in times for edge in (time, time + 1)} | {1})
    return [
        {},
        *({"scan.mode": mode} for mode in ("latest-full", "FULL", "latest", "compacted-full")),
        *({"scan.snapshot-id": str(number)} for number in (0, 1, 2, 4, 5, 6, 9, 10, 11)),
        *({"scan.mode": "from-snapshot-full", "scan.snapshot-id": str(number)} for number in (1, 3, 5, 9)),
        *({"scan.timestamp-millis": str(edge)} for edge in edges),
        *({"scan.creation-time-millis": str(edge)} for edge in edges),
        *({"scan.file-creation-time-millis": str(edge)} for edge in (1, times[4], times[8], times[8] + 10**9)),
    ]


def compare(java: JavaPaimon, location: Path, streams: list[tuple[dict[str, str], ours.Stream]]) -> list[int]:
    """Compare what comes now of each stream; return how many plans each had."""
    counts = []
    for number, (options, stream) in enumerate(streams):
        theirs, mine = java.follow(location, f"stream {number}", options), stream.follow()
        assert delivered(mine, has_order=False) == delivered(theirs, has_order=False), options
        assert [plan["watermark"] for plan in mine["plans"]] == [plan["watermark"] for plan in theirs["plans"]], options
        assert mine["ended"] == theirs["ended"], options
        counts.append(len(mine["plans"]))
    return counts


@BUCKETS
def test_every_start_delivers_what_java_delivers(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> None:
    times = watermark_history(java, location, bucket)
    streams = [(options, ours.Stream(location, options)) for options in starts(times)]
    assert {0, 1, 2, 3, 4, 6} <= set(compare(java, location, streams))
    producer = Producer()
    for _ in range(3):
        ours.append_until(location, producer.rows(10), 5000)
    java.ask("compact", location)
    *counts, of_future_files = compare(java, location, streams)
    assert set(counts) == {2, 3}
    assert of_future_files == 0
    assert set(compare(java, location, streams)) == {0}


@BUCKETS
def test_every_bound_ends_where_java_ends(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> None:
    times = watermark_history(java, location, bucket)
    bounds = [str(bound) for bound in (-1, 999, 1000, 2000, 2499, 2500, 2999, 3000, 3999, 4000, 4999, 5000, 9999)]
    streams = [
        (options, ours.Stream(location, options))
        for bound in bounds
        for start in (
            {"scan.mode": "latest-full"},
            {"scan.mode": "latest"},
            FROM_FIRST,
            {"scan.mode": "from-snapshot", "scan.snapshot-id": "4"},
            {"scan.mode": "from-snapshot", "scan.snapshot-id": "8"},
            {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"},
            {"scan.timestamp-millis": str(times[6])},
        )
        for options in [start | {"scan.bounded.watermark": bound}]
    ]
    compare(java, location, streams)
    assert {stream.offset.ended for _, stream in streams} == {True, False}
    producer = Producer()
    ours.append_until(location, producer.rows(10), 4000)
    ours.append_until(location, producer.rows(10), 5000)
    compare(java, location, streams)
    ours.append_until(location, producer.rows(10), 6000)
    compare(java, location, streams)
    assert {options["scan.bounded.watermark"] for options, stream in streams if not stream.offset.ended} == {"9999"}


@pytest.mark.parametrize(
    "options", [{}, {"scan.mode": "latest"}, FROM_FIRST], ids=["default", "latest", "from-snapshot"]
)
def test_a_stream_of_an_empty_table_waits_for_its_first_row(
    java: JavaPaimon, location: Path, options: dict[str, str]
) -> None:
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options=QUEUE)
    streams = [(options, ours.Stream(location, options))]
    assert compare(java, location, streams) == [0]
    producer = Producer()
    ours.append(location, producer.rows(10))
    assert compare(java, location, streams) == [1]
    ours.append(location, producer.rows(10))
    assert compare(java, location, streams) == [1]


# ------------------------------------------------------------------- golden tables

GOLDEN: Final = {path.name: path for path in Path(__file__).parent.parent.glob("golden/data/warehouse/*.db/*")}
ORDERED: Final = ["f_stream_bucket8", "bucket8_stream", "f_bucket8", "part_bucket", "s20_bucket8"]
UNORDERED: Final = ["f_stream_unaware", "f_stream_wo", "f_watermark", "f_window_out", "stream_empty_commit"]
# Its DELETE and UPDATE rewrote rows in commits that call themselves APPEND: both deliver them again.
REWRITING: Final = "s09_append"


@pytest.mark.parametrize("name", [*ORDERED, *UNORDERED, REWRITING])
@pytest.mark.parametrize(
    "options",
    [{"scan.snapshot-id": "1"}, {"scan.mode": "latest-full"}, {"scan.mode": "compacted-full"}],
    ids=["changes", "latest-full", "compacted-full"],
)
def test_java_and_we_follow_a_golden_table_alike(java: JavaPaimon, name: str, options: dict[str, str]) -> None:
    theirs = java.follow(GOLDEN[name], dumps(options), options)
    mine = ours.Stream(GOLDEN[name], options).follow(CUT)
    assert theirs["plans"]
    has_order = name in ORDERED
    assert delivered(mine, has_order=has_order) == delivered(theirs, has_order=has_order)
    assert [plan["watermark"] for plan in mine["plans"]] == [plan["watermark"] for plan in theirs["plans"]]
