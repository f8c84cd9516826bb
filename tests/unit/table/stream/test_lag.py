from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.table.stream.queues import Queue

from penstock.errors import DamagedFileWarning, FormatError, NotFoundError
from penstock.io.memory import MemoryFileIO
from penstock.table.store import MetadataStore
from penstock.table.stream import backlog
from penstock.table.stream.checkpoint import load_delivered
from penstock.table.stream.consumers import record_progress
from penstock.table.stream.lag import LAG_SCHEMA, measure_lag
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, StreamOffset, encode_offset

if TYPE_CHECKING:
    from penstock.table.stream.scanner import StreamScanner

NOW = 1_000_000
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{"spark.sql.shuffle.partitions":"2"}}'


class Checkpoint:
    """A query's checkpoint as Spark writes it."""

    def __init__(self) -> None:
        self.file_io = MemoryFileIO(str(uuid.uuid4()))
        self.path = f"memory://{self.file_io.name}/checkpoint"
        self.file_io.write(f"{self.path}/metadata", b'{"id":"x"}')

    def begin(self, batch: int, *offsets: StreamOffset | str) -> None:
        lines = [each if isinstance(each, str) else json.dumps(encode_offset(each)) for each in offsets]
        self.file_io.write(f"{self.path}/offsets/{batch}", "\n".join(["v1", METADATA, *lines]).encode())
        self.file_io.write(f"{self.path}/offsets/.{batch}.crc", b"crc")

    def finish(self, batch: int) -> None:
        self.file_io.write(f"{self.path}/commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')


def rows_of(queue: Queue, *checkpoints: Checkpoint, **options: str) -> list[dict[str, Any]]:
    ref = queue.ref.with_options(options)
    found = measure_lag(ref, MetadataStore(ref), [each.path for each in checkpoints], clock=lambda: NOW)
    assert found.schema == LAG_SCHEMA
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def steps(follower: StreamScanner, count: int) -> list[StreamOffset]:
    """Ends of micro-batches of one file each."""
    found = [UNRESOLVED]
    while len(found) <= count:
        found.append(follower.advance(found[-1], ReadLimits(max_files=1)))
    return found[1:]


@pytest.fixture
def queue() -> Queue:
    """Three appends of one file each, with watermarks, and a compaction in between."""
    queue = Queue()
    queue.append("0:a", watermark=1_000, time_millis=NOW - 9_000)
    queue.append("0:b", watermark=4_000, time_millis=NOW - 7_000)
    queue.compact("0:c", time_millis=NOW - 6_000)
    queue.append("1:d", watermark=9_000, time_millis=NOW - 5_000)
    return queue


def test_each_consumer_has_a_row_by_name(queue: Queue) -> None:
    store = MetadataStore(queue.ref)
    for consumer_id, position in (("m", 2), ("a", 5), ("z", 1)):
        record_progress(store, consumer_id, position)
    found = rows_of(queue)
    assert [row["reader"] for row in found] == ["a", "m", "z"]
    assert found[1] == {
        "reader": "m",
        "kind": "consumer",
        "next_snapshot_id": 2,
        "latest_snapshot_id": 4,
        "snapshots_behind": 2,
        "files_behind": 2,
        "bytes_behind": 2_000,
        "rows_behind": 20,
        "event_time_lag_ms": 8_000,
        "oldest_unread_ms": 7_000,
        "expired_snapshots": 0,
    }
    assert [row["oldest_unread_ms"] for row in found] == [None, 7_000, 9_000]
    assert (found[0]["rows_behind"], found[0]["event_time_lag_ms"]) == (0, 0)


def test_snapshots_without_rows_are_not_unread(queue: Queue) -> None:
    record_progress(MetadataStore(queue.ref), "c", 3)
    (row,) = rows_of(queue)
    assert (row["snapshots_behind"], row["oldest_unread_ms"]) == (1, 5_000)


def test_what_expired_unread_is_counted_and_the_rest_measured(queue: Queue) -> None:
    record_progress(MetadataStore(queue.ref), "c", 1)
    queue.expire(1)
    (row,) = rows_of(queue)
    assert (row["next_snapshot_id"], row["expired_snapshots"], row["rows_behind"]) == (1, 1, 20)


def test_a_table_without_snapshots_has_readers_with_nothing_ahead() -> None:
    queue = Queue()
    record_progress(MetadataStore(queue.ref), "c", 1)
    (row,) = rows_of(queue)
    assert (row["latest_snapshot_id"], row["rows_behind"], row["oldest_unread_ms"]) == (None, 0, None)


def test_long_lags_are_measured_to_their_end(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "_MAX_LOOKS", 1)
    record_progress(MetadataStore(queue.ref), "c", 1)
    assert rows_of(queue)[0]["rows_behind"] == 30


def test_the_position_of_a_query_is_the_end_of_its_last_finished_batch(queue: Queue) -> None:
    first, second, third = steps(queue.with_options({"scan.mode": "earliest"}), 3)
    checkpoint = Checkpoint()
    checkpoint.begin(0, first)
    (row,) = rows_of(queue, checkpoint)
    assert (row["reader"], row["kind"], row["rows_behind"]) == (checkpoint.path, "checkpoint", 30)
    checkpoint.finish(0)
    assert rows_of(queue, checkpoint)[0]["rows_behind"] == 20
    checkpoint.begin(1, second)
    assert rows_of(queue, checkpoint)[0]["rows_behind"] == 20, "begun is not done"
    checkpoint.finish(1)
    checkpoint.begin(2, third)
    checkpoint.finish(2)
    (row,) = rows_of(queue, checkpoint)
    assert (row["rows_behind"], row["next_snapshot_id"], row["oldest_unread_ms"]) == (0, 5, None)


def test_a_query_inside_of_a_snapshot_has_the_rest_of_it_ahead() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", "0:c", time_millis=NOW - 3_000)
    for mode in ("earliest", "latest-full"):
        checkpoint = Checkpoint()
        checkpoint.begin(0, *steps(queue.with_options({"scan.mode": mode}), 1))
        checkpoint.finish(0)
        (row,) = rows_of(queue, checkpoint)
        assert (row["next_snapshot_id"], row["rows_behind"], row["oldest_unread_ms"]) == (1, 20, 3_000)


def test_other_sources_of_the_query_are_left_out(queue: Queue) -> None:
    other = Queue()
    other.file_io.write(f"{other.location}/schema/schema-0", b'{"another": "table"}')
    other.append("0:x")
    first = queue.with_options({"scan.mode": "earliest"}).advance(UNRESOLVED, NO_LIMITS)
    foreign = other.with_options({"scan.mode": "earliest"}).advance(UNRESOLVED, NO_LIMITS)
    checkpoint = Checkpoint()
    checkpoint.begin(0, '{"topic":{"0":23}}', foreign, "-", "12", first, first)
    checkpoint.finish(0)
    assert [row["rows_behind"] for row in rows_of(queue, checkpoint)] == [0, 0]
    alone = Checkpoint()
    alone.begin(0, '{"topic":{"0":23}}', foreign)
    with pytest.raises(NotFoundError, match=f"no source of the query with the checkpoint {alone.path} reads this"):
        rows_of(queue, alone)


def test_checkpoints_that_are_none_or_damaged_say_so(queue: Queue) -> None:
    empty = Checkpoint()
    with pytest.raises(NotFoundError, match="is not the checkpoint of a query that has run"):
        rows_of(queue, empty)
    empty.begin(0, '{"version": 9, "table": "x", "position": {}}')
    with pytest.raises(FormatError, match="not of this version"):
        rows_of(queue, empty)
    empty.file_io.write(f"{empty.path}/offsets/0", b"\xff\xfe")
    with pytest.raises(FormatError, match="offsets/0 is damaged"):
        rows_of(queue, empty)


def test_batches_whose_log_was_trimmed_do_not_matter(queue: Queue) -> None:
    _, second, third = steps(queue.with_options({"scan.mode": "earliest"}), 3)
    checkpoint = Checkpoint()
    for batch, offset in ((9, second), (10, third)):
        checkpoint.begin(batch, offset)
        checkpoint.finish(batch)
    checkpoint.begin(11, third)
    assert load_delivered(checkpoint.file_io, checkpoint.path) == (third,)


@pytest.mark.parametrize(("damaged", "rows"), [(1, 20), (2, 10)])
def test_a_damaged_older_snapshot_is_left_out_with_a_warning(queue: Queue, damaged: int, rows: int) -> None:
    record_progress(MetadataStore(queue.ref), "c", 2)
    queue.file_io.write(queue.ref.layout.snapshot_path(damaged), b"")
    with pytest.warns(DamagedFileWarning, match=f"snapshot {damaged} cannot be read and is left out"):
        (row,) = rows_of(queue)
    assert row["rows_behind"] == rows
    assert row["event_time_lag_ms"] == (None if damaged == 1 else 8_000)


def test_the_lag_behind_a_damaged_latest_snapshot_is_unknown(queue: Queue) -> None:
    record_progress(MetadataStore(queue.ref), "c", 2)
    queue.file_io.write(queue.ref.layout.snapshot_path(4), b"")
    with pytest.raises(FormatError, match=r"snapshot-4.*: penstock rollback .* --snapshot-id 3"):
        rows_of(queue)
