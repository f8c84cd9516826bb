"""What it costs the storage to know a batch again."""

from __future__ import annotations

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit_tables import append, committer, new_queue, new_table, on, rows
from tests.unit.table.stream_sink.queries import batch, run, start

from penstock.testing.file_io import Operation, RecordingFileIO


def storage_reads(snapshots: int) -> tuple[int, int]:
    """Calls to storage of a replay and of the batch after it, with that many snapshots in the table."""
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(snapshots):
        run(query, batch(batch_id), rows(1))
    log = RecordingFileIO(ref.file_io)
    again = start(on(ref, log), files)
    log.forget()
    assert run(again, batch(snapshots - 1), rows(1)) is None
    replay = len(log.calls)
    log.forget()
    again.load_ref()
    again.begin(batch(snapshots))
    looks = len(log.paths(Operation.READ, containing="/snapshot-"))
    return replay, looks


def test_a_replay_is_recognised_with_as_many_reads_among_few_snapshots_as_among_many() -> None:
    few, many = storage_reads(10), storage_reads(300)
    assert few == many
    assert few[0] < 15


@pytest.mark.parametrize("buckets", [-1, 2])
def test_each_batch_asks_the_storage_for_as_much_as_the_one_before(buckets: int) -> None:
    ref = new_table() if buckets < 0 else new_queue(buckets)
    log = RecordingFileIO(ref.file_io)
    query = start(on(ref, log), MemoryCheckpoint())
    calls: list[int] = []
    manifests: list[int] = []
    for batch_id in range(240):
        log.forget()
        run(query, batch(batch_id), rows(1, total_buckets=buckets))
        calls.append(len(log.calls))
        manifests.append(len(log.paths(Operation.READ, containing="/manifest/")))
    # Thirty small manifests are merged at a time, so that batches differ within each thirty.
    assert sum(calls[180:]) <= 1.02 * sum(calls[60:120])
    # What it has written itself, a process does not read.
    assert set(manifests) == {0}


def test_a_new_query_on_a_table_of_many_snapshots_looks_at_none_of_them() -> None:
    ref = new_table()
    for _ in range(50):
        committer(ref).commit(append(rows(1), user="other"))
    log = RecordingFileIO(ref.file_io)
    query = start(on(ref, log), MemoryCheckpoint())
    log.forget()
    run(query, batch(0), rows(1))
    # The latest one, twice, and once more after the put: whether it came in time.
    assert len(log.paths(Operation.READ, containing="/snapshot-")) <= 3
