from __future__ import annotations

import datetime as dt

import pytest
from tests.unit.table.metadata_tables import MemoryTable
from tests.unit.table.stream.queues import Queue

from penstock.errors import DataLossError, DataLossWarning, InvalidOptionError, UnsupportedFeatureError
from penstock.format.consumer import encode_consumer
from penstock.format.layout import TableLayout
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, ROLLED_BACK_TO, CommitKind
from penstock.options import ConsumerOptions, ReadOptions
from penstock.table.stream.limits import NO_LIMITS
from penstock.table.stream.offset import UNRESOLVED, Phase, Position
from penstock.table.stream.start import StreamStart, resolve_start


@pytest.fixture(scope="module")
def table() -> MemoryTable:
    """Snapshots 3 to 9, snapshot n committed at 1000 n; 4 and 6 are compactions."""
    made = Queue()
    for number in range(1, 10):
        kind = CommitKind.COMPACT if number in {4, 6} else CommitKind.APPEND
        made.append(commit_kind=kind)
    for number in (1, 2):
        made.expire(number)
    return made


def start_of(table: MemoryTable, options: dict[str, str]) -> StreamStart | None:
    read = ReadOptions.parse(options, table=table.ref.name)
    consumer = ConsumerOptions.parse(options, table=table.ref.name)
    return resolve_start(table.store, table.ref.with_options(options), read, consumer)


def described(start: StreamStart | None) -> tuple[str, int] | None:
    return None if start is None else (start.position.phase.value, start.position.snapshot_id)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("full", 9)),
        ({"scan.mode": "latest-full"}, ("full", 9)),
        ({"scan.mode": "FULL"}, ("full", 9)),
        ({"scan.mode": "latest"}, ("changes", 10)),
        ({"scan.mode": "earliest"}, ("changes", 3)),
        ({"scan.mode": "compacted-full"}, ("full", 6)),
        ({"scan.mode": "compacted-full", "full-compaction.delta-commits": "4"}, ("full", 4)),
        ({"scan.mode": "compacted-full", "full-compaction.delta-commits": "5"}, ("full", 9)),
        ({"scan.timestamp-millis": "5000"}, ("changes", 5)),
        ({"scan.timestamp-millis": "5001"}, ("changes", 6)),
        ({"scan.timestamp-millis": "3000"}, ("changes", 3)),
        ({"scan.timestamp-millis": "99999"}, ("changes", 10)),
        ({"scan.mode": "from-timestamp", "scan.timestamp-millis": "5000"}, ("changes", 5)),
        ({"scan.snapshot-id": "5"}, ("changes", 5)),
        ({"scan.snapshot-id": "10"}, ("changes", 10)),
        ({"scan.snapshot-id": "11"}, None),
        ({"scan.version": "5"}, ("changes", 5)),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "5"}, ("full", 5)),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "10"}, None),
        ({"scan.creation-time-millis": "5500"}, ("changes", 6)),
        ({"scan.creation-time-millis": "9001"}, ("full", 9)),
        ({"scan.creation-time-millis": "100"}, ("full", 9)),
        ({"scan.file-creation-time-millis": "5500"}, ("full", 9)),
    ],
)
def test_a_mode_says_where_a_stream_begins(
    table: MemoryTable, options: dict[str, str], expected: tuple[str, int] | None
) -> None:
    assert described(start_of(table, options)) == expected


@pytest.mark.parametrize(("millis", "expected"), [(3000, 3), (3001, 7), (7000, 7), (7001, 8), (9000, 9), (9001, 10)])
def test_a_time_in_a_gap_of_ids_begins_after_it(millis: int, expected: int) -> None:
    table = Queue()
    for number in range(1, 10):
        table.append(properties=((ROLLED_BACK_TO, "2"),) if number == 7 else ())
    for gone in (4, 5, 6):
        table.expire(gone)
    assert described(start_of(table, {"scan.timestamp-millis": str(millis)})) == ("changes", expected)


def test_a_local_time_is_of_this_machines_zone(table: MemoryTable) -> None:
    local = dt.datetime.fromtimestamp(4.5, dt.UTC).astimezone().replace(tzinfo=None)
    options = {"scan.timestamp": local.isoformat(sep=" ", timespec="milliseconds")}
    assert described(start_of(table, options)) == ("changes", 5)


def test_a_start_by_file_creation_keeps_the_time_as_a_wall_clock(table: MemoryTable) -> None:
    offset = dt.datetime.fromtimestamp(5.5, dt.UTC).astimezone().utcoffset() or dt.timedelta()
    wall_clock = 5500 + offset // dt.timedelta(milliseconds=1)
    for key in ("scan.file-creation-time-millis", "scan.creation-time-millis"):
        millis = "5500" if key.startswith("scan.file") else "99000"
        start = start_of(table, {key: millis})
        assert start is not None
        assert start.created_from == wall_clock + int(millis) - 5500


def test_a_batch_compaction_counts_as_full() -> None:
    table = MemoryTable()
    table.commit(commit_kind=CommitKind.COMPACT, commit_identifier=BATCH_COMMIT_IDENTIFIER)
    table.commit(commit_kind=CommitKind.COMPACT, commit_identifier=3)
    options = {"scan.mode": "compacted-full", "full-compaction.delta-commits": "2"}
    assert described(start_of(table, options)) == ("full", 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"scan.mode": "latest"}, ("changes", 1)),
        ({"scan.mode": "earliest"}, ("changes", 1)),
        ({"scan.mode": "compacted-full"}, None),
        ({"scan.timestamp-millis": "1"}, None),
        ({"scan.snapshot-id": "1"}, ("changes", 1)),
        ({"scan.snapshot-id": "2"}, None),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"}, None),
        ({"scan.file-creation-time-millis": "1"}, None),
    ],
)
def test_before_the_first_snapshot_some_modes_wait(options: dict[str, str], expected: tuple[str, int] | None) -> None:
    assert described(start_of(MemoryTable(), options)) == expected


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scan.tag-name": "t"}, InvalidOptionError, "batch read only.*'from-snapshot'"),
        ({"scan.watermark": "7"}, InvalidOptionError, "batch read only.*'from-snapshot'"),
        ({"scan.version": "t"}, InvalidOptionError, "batch read only.*'from-snapshot'"),
        ({"scan.version": "watermark-7"}, InvalidOptionError, "batch read only.*'from-snapshot'"),
        ({"scan.mode": "incremental"}, UnsupportedFeatureError, "for batch reads"),
        ({"incremental-between": "1,2"}, UnsupportedFeatureError, "for batch reads"),
        ({"scan.mode": "latest-delta"}, UnsupportedFeatureError, "for batch reads"),
        ({"scan.mode": "last"}, InvalidOptionError, "one of latest-full, (?!.*(incremental|latest-delta))"),
        ({"scan.mode": "earliest", "scan.snapshot-id": "3"}, InvalidOptionError, "'earliest' and option 'scan.snap"),
        ({"scan.mode": "latest", "scan.timestamp-millis": "3"}, InvalidOptionError, "contradict"),
        ({"scan.mode": "from-snapshot"}, InvalidOptionError, "exactly one of scan.snapshot-id"),
        ({"scan.snapshot-id": "3", "scan.version": "3"}, InvalidOptionError, "exactly one of"),
        ({"scan.mode": "from-snapshot-full", "scan.timestamp-millis": "3"}, InvalidOptionError, "contradict"),
        ({"scan.mode": "from-timestamp"}, InvalidOptionError, "exactly one of scan.timestamp-millis"),
        ({"scan.timestamp-millis": "3", "scan.timestamp": "2024-01-01"}, InvalidOptionError, "exactly one of"),
        ({"scan.timestamp-millis": "3", "scan.snapshot-id": "3"}, InvalidOptionError, "contradict"),
        ({"scan.mode": "from-file-creation-time", "scan.snapshot-id": "3"}, InvalidOptionError, "contradict"),
        ({"scan.mode": "latest-full", "incremental-between": "1,2"}, InvalidOptionError, "contradict"),
        ({"streaming-read-overwrite": "true"}, InvalidOptionError, "streaming-read-append-overwrite"),
        ({"minRowsPerTrigger": "5"}, InvalidOptionError, "maxTriggerDelayMs"),
    ],
)
def test_contradictions_are_refused_before_anything_is_read(
    options: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Queue().with_options(options)


def test_a_start_at_a_compaction_may_look_for_it_beside_expiration() -> None:
    queue = Queue()
    for number in range(9):
        queue.append(f"0:f{number}")
    follower = queue.with_options({"scan.mode": "compacted-full"})
    store, find = follower._store, follower._store.find_snapshot

    def expires_first(snapshot_id: int) -> object:
        if snapshot_id == 4:
            for number in range(1, 4):
                queue.expire(number)
        return find(snapshot_id)

    store.find_snapshot = expires_first  # type: ignore[assignment,method-assign]
    begun = follower.advance(UNRESOLVED, NO_LIMITS)
    assert begun.start == Position(snapshot_id=9, phase=Phase.FULL)


@pytest.mark.parametrize("mode", ["from-snapshot", "from-snapshot-full"])
@pytest.mark.parametrize("snapshot_id", ["0", "1", "2"])
def test_a_start_that_has_expired_is_an_error_unless_rows_may_be_missed(
    table: MemoryTable, mode: str, snapshot_id: str
) -> None:
    options = {"scan.mode": mode, "scan.snapshot-id": snapshot_id}
    with pytest.raises(DataLossError, match=r"snapshot [12], which has expired; snapshots 3 to 9 .*fail-on-data-loss"):
        start_of(table, options)
    with pytest.warns(DataLossWarning, match="it continues at snapshot 3"):
        start = start_of(table, {**options, "penstock.fail-on-data-loss": "false"})
    assert start is not None
    assert start.position.snapshot_id == 3


def test_a_start_from_before_the_earliest_snapshot_is_an_error_unless_rows_may_be_missed(table: MemoryTable) -> None:
    options = {"scan.timestamp-millis": "2999"}
    words = r"begin at 1970-01-01 00:00:02.999\+00:00 .2999.*snapshot 3, .* 00:00:03.000.*snapshots 3 to 9 .*'earliest'"
    with pytest.raises(DataLossError, match=words):
        start_of(table, options)
    with pytest.warns(DataLossWarning, match="it begins at snapshot 3 without the rows before it"):
        start = start_of(table, {**options, "penstock.fail-on-data-loss": "false"})
    assert described(start) == ("changes", 3)


def test_a_start_from_before_the_first_snapshot_misses_nothing() -> None:
    queue = Queue()
    queue.append("0:a")
    assert described(start_of(queue, {"scan.timestamp-millis": "1"})) == ("changes", 1)


@pytest.mark.parametrize(("millis", "first"), [(2500, 3), (3000, 3), (4500, 6), (8500, 9), (9500, 10)])
def test_clocks_that_go_back_lose_no_rows_since_a_time(millis: int, first: int) -> None:
    queue = Queue()
    for number in range(1, 10):  # the writer of 5 and 7 is behind: a search by halves goes right there
        queue.append(time_millis={5: 200, 7: 100}.get(number, 1000 * number))
    assert described(start_of(queue, {"scan.timestamp-millis": str(millis)})) == ("changes", first)


def put_consumer(table: MemoryTable, next_snapshot: int) -> None:
    table.file_io.write(TableLayout(table.location).consumer_path("c"), encode_consumer(next_snapshot))


def test_a_consumers_position_wins_over_the_mode(table: MemoryTable) -> None:
    options = {"consumer-id": "c", "scan.mode": "from-snapshot", "scan.snapshot-id": "5"}
    assert described(start_of(table, options)) == ("changes", 5)
    put_consumer(table, 7)
    assert described(start_of(table, options)) == ("changes", 7)
    assert described(start_of(table, {**options, "consumer.ignore-progress": "true"})) == ("changes", 5)
    put_consumer(table, 1)  # expired by now, which is for the reader to tell
    assert described(start_of(table, options)) == ("changes", 1)
    table.file_io.delete(TableLayout(table.location).consumer_path("c"))


def test_phases_are_distinguished(table: MemoryTable) -> None:
    start = start_of(table, {})
    assert start is not None
    assert (start.position.phase, start.position.index) == (Phase.FULL, 0)
