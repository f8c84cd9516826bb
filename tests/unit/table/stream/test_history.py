from __future__ import annotations

import pickle

import pytest
from tests.unit.table.stream.queues import Queue, batches, flat

from penstock.errors import DataLossError, DataLossWarning, NotFoundError
from penstock.format.layout import TableLayout
from penstock.format.schema import encode_schema
from penstock.table.stream.consumers import record_progress
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, Position, StreamOffset

EARLIEST = {"scan.mode": "earliest"}
GOES_ON = {"penstock.fail-on-data-loss": "false"}


def queue_of(count: int) -> Queue:
    """Snapshot n has file fn."""
    queue = Queue()
    for number in range(1, count + 1):
        queue.append(f"0:f{number}")
    return queue


def offset_behind(queue: Queue, snapshot_id: int) -> StreamOffset:
    _, offset = batches(queue.with_options(EARLIEST), until=snapshot_id)
    assert offset.position == Position(snapshot_id=snapshot_id + 1)
    return offset


def test_expired_snapshots_fail_the_stream_with_what_is_there() -> None:
    queue = queue_of(6)
    offset = offset_behind(queue, 2)
    queue.put_tag("kept", queue.snapshots[1])
    for number in range(1, 5):
        queue.expire(number)
    with pytest.raises(DataLossError) as raised:
        queue.with_options(EARLIEST).advance(offset, NO_LIMITS)
    text = str(pickle.loads(pickle.dumps(raised.value)))
    for words in (
        "shop.orders",
        "snapshot 3, which has expired",
        "snapshots 5 to 6 are there, and the tags 'kept'",
        "scan.mode",
        "penstock.fail-on-data-loss",
        "consumer-id",
    ):
        assert words in text
    assert isinstance(raised.value, NotFoundError)


def test_a_snapshot_that_is_missing_between_others_was_lost_and_can_be_restored() -> None:
    queue = queue_of(6)
    offset = offset_behind(queue, 2)
    path = TableLayout(queue.location).snapshot_path(3)
    queue.file_io.delete(path)
    with pytest.raises(DataLossError, match=rf"snapshot 3, whose file was lost.*restore {path} .*fsck") as raised:
        queue.with_options(EARLIEST).advance(offset, NO_LIMITS)
    assert "expired" not in str(raised.value)
    with pytest.warns(DataLossWarning, match="snapshot 3, whose file was lost, .*continues at snapshot 4"):
        queue.with_options({**EARLIEST, **GOES_ON}).advance(offset, NO_LIMITS)


def test_a_stream_may_go_on_behind_expired_snapshots() -> None:
    queue = queue_of(6)
    offset = offset_behind(queue, 2)
    for number in range(1, 5):
        queue.expire(number)
    follower = queue.with_options({**EARLIEST, **GOES_ON})
    with pytest.warns(DataLossWarning, match="continues at snapshot 5"):
        reached = follower.advance(offset, NO_LIMITS)
    with pytest.warns(DataLossWarning, match="snapshot 3"):
        tasks = queue.with_options({**EARLIEST, **GOES_ON}).plan_range(offset, reached)
    assert [file.file_name for task in tasks for split in task.splits for file in split.files] == [
        "f5.parquet",
        "f6.parquet",
    ]
    assert reached.position == Position(snapshot_id=7)


def test_what_a_consumer_has_not_read_is_missed_as_well() -> None:
    queue = queue_of(6)
    record_progress(queue.store, "c", 3)
    for number in range(1, 5):
        queue.expire(number)
    with pytest.raises(DataLossError, match=r"was to read snapshot 3, which has expired.*reset_consumer"):
        batches(queue.with_options({"consumer-id": "c"}))
    goes_on = queue.with_options({"consumer-id": "c", **GOES_ON})
    with pytest.warns(DataLossWarning, match="snapshot 3, which has expired; it continues at snapshot 5"):
        found, _ = batches(goes_on)
    assert flat(found) == ["f5", "f6"]


def test_a_full_phase_whose_snapshot_expires_fails_in_the_middle() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", "0:c")
    queue.append("0:d")
    options = {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"}
    follower = queue.with_options(options)
    cut = follower.advance(UNRESOLVED, ReadLimits(max_files=2))
    queue.expire(1)
    for each in (follower, queue.with_options(options)):
        with pytest.raises(DataLossError, match=r"snapshot 1, which has expired; snapshot 2 is there"):
            each.advance(cut, NO_LIMITS)
    with pytest.raises(DataLossError, match="has expired"):
        queue.with_options(options).plan_range(UNRESOLVED, cut)
    with pytest.warns(DataLossWarning, match="continues at snapshot 2"):
        reached = queue.with_options({**options, **GOES_ON}).advance(cut, NO_LIMITS)
    assert reached.position == Position(snapshot_id=3)


def test_metadata_that_expires_under_the_reader_is_data_loss_and_lost_metadata_is_not() -> None:
    queue = queue_of(3)
    offset = offset_behind(queue, 1)
    path = TableLayout(queue.location).manifest_path(queue.snapshots[1].delta_manifest_list)
    queue.file_io.delete(path)
    with pytest.raises(NotFoundError, match="fsck") as raised:
        queue.with_options(EARLIEST).advance(offset, NO_LIMITS)
    assert not isinstance(raised.value, DataLossError)

    follower = queue.with_options(EARLIEST)
    store = follower._store
    find = store.find_snapshot

    def find_and_expire(snapshot_id: int) -> object:
        found = find(snapshot_id)
        if snapshot_id == 2:
            queue.expire(1)
            queue.expire(2)
        return found

    store.find_snapshot = find_and_expire  # type: ignore[method-assign,assignment]
    with pytest.raises(DataLossError, match="snapshot 2, which has expired"):
        follower.advance(offset, NO_LIMITS)


def test_a_rollback_below_the_offset_fails_the_stream() -> None:
    queue = queue_of(5)
    offset = offset_behind(queue, 5)
    queue.roll_back(3)
    with pytest.raises(DataLossError, match=r"read snapshot 5.*rolled back; snapshots 1 to 3 are there"):
        queue.with_options(EARLIEST).advance(offset, NO_LIMITS)
    # By one snapshot, there is nothing that the next one could be missed by.
    queue.append("0:g4")
    with pytest.raises(DataLossError, match="rolled back"):
        queue.with_options(EARLIEST).advance(offset, NO_LIMITS)


def test_a_rollback_shows_when_other_snapshots_took_the_ids() -> None:
    queue = queue_of(4)
    offset = offset_behind(queue, 4)
    follower = queue.with_options(EARLIEST)
    assert follower.advance(offset, NO_LIMITS) == offset
    queue.roll_back(2)
    for name in "xyz":
        queue.append(f"0:{name}")
    for each in (follower, queue.with_options(EARLIEST), queue.with_options({**EARLIEST, **GOES_ON})):
        with pytest.raises(DataLossError, match=r"read snapshot 4.*rolled back"):
            each.advance(offset, NO_LIMITS)


def test_a_rollback_under_a_snapshot_delivered_in_part_shows() -> None:
    for options in ({}, EARLIEST):
        queue = Queue()
        queue.append("0:a", "0:b", "0:c")
        cut = queue.with_options(options).advance(UNRESOLVED, ReadLimits(max_files=1))
        queue.roll_back(0)
        with pytest.raises(DataLossError, match="rolled back"):
            queue.with_options(options).advance(cut, NO_LIMITS)
        queue.append("0:x", "0:y", "0:z")
        with pytest.raises(DataLossError, match="rolled back"):
            queue.with_options(options).advance(cut, NO_LIMITS)
        with pytest.raises(DataLossError, match="rolled back"):
            queue.with_options(options).plan_range(UNRESOLVED, cut)


def test_a_rollback_above_the_offset_does_not_matter() -> None:
    queue = queue_of(5)
    offset = offset_behind(queue, 2)
    queue.roll_back(3)
    queue.append("0:x")
    assert flat(batches(queue.with_options(EARLIEST), offset=offset)[0]) == ["f3", "x"]


def test_a_rollback_of_what_a_running_stream_has_looked_at_and_not_delivered_does_not_matter() -> None:
    queue = queue_of(3)
    follower = queue.with_options(EARLIEST)
    _, offset = batches(follower)
    for name in "abcd":
        queue.compact(f"0:{name}")
    assert follower.advance(offset, NO_LIMITS) == offset
    queue.roll_back(4)
    assert follower.advance(offset, NO_LIMITS) == offset
    for name in "xyz":
        queue.append(f"0:{name}")
    assert flat(batches(follower, offset=offset)[0]) == ["x", "y", "z"]


def test_a_rollback_of_rows_that_wait_for_more_leaves_them_out() -> None:
    queue = queue_of(1)
    follower = queue.with_options(EARLIEST)
    now = [0]
    follower._clock_millis = lambda: now[0]
    limits = ReadLimits(min_rows=1_000, max_delay_ms=100)
    _, offset = batches(follower)
    queue.append("0:gone")
    assert follower.advance(offset, limits) == offset
    queue.roll_back(1)
    queue.append("0:there")
    assert follower.advance(offset, limits) == offset
    now[0] += 100
    reached = follower.advance(offset, limits)
    tasks = follower.plan_range(offset, reached)
    assert [file.file_name for task in tasks for split in task.splits for file in split.files] == ["there.parquet"]


def recreate(queue: Queue, files: int) -> None:
    """Drop the table and make another in its place."""
    queue.file_io.delete(queue.location, recursive=True)
    queue.snapshots.clear()
    queue._base.clear()
    queue.put_schema(queue.schema)
    queue.file_io.write(TableLayout(queue.location).schema_path(0), encode_schema(queue.schema) + b" ")
    for number in range(files):
        queue.append(f"0:n{number}")


@pytest.mark.parametrize("files", [0, 1, 3, 4])
def test_a_recreated_table_fails_the_stream(files: int) -> None:
    queue = queue_of(3)
    follower = queue.with_options(EARLIEST)
    _, offset = batches(follower)
    recreate(queue, files)
    with pytest.raises(DataLossError, match="dropped and created again"):
        queue.with_options(EARLIEST).advance(offset, NO_LIMITS)
    with pytest.raises(DataLossError, match="dropped and created again"):
        queue.with_options(EARLIEST).plan_range(UNRESOLVED, offset)
    if files != 3:  # the process that followed it learns it from the next snapshot
        with pytest.raises(DataLossError, match="dropped and created again"):
            follower.advance(offset, NO_LIMITS)


def test_a_table_recreated_before_the_first_rows_fails_the_stream() -> None:
    queue = queue_of(0)
    follower = queue.with_options(EARLIEST)
    offset = follower.advance(UNRESOLVED, NO_LIMITS)
    recreate(queue, 1)
    with pytest.raises(DataLossError, match="dropped and created again"):
        follower.advance(offset, NO_LIMITS)


def test_a_table_that_is_dropped_fails_the_stream() -> None:
    queue = queue_of(3)
    follower = queue.with_options(EARLIEST)
    _, offset = batches(follower)
    queue.file_io.delete(queue.location, recursive=True)
    for each in (follower, queue.with_options(EARLIEST)):
        with pytest.raises(DataLossError, match="holds no table"):
            each.advance(offset, NO_LIMITS)
