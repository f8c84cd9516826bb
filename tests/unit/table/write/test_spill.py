"""Buffered rows come out group by group, each group's rows in the order they went in."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StorageError
from penstock.options import WriteOptions
from penstock.table.write import spill
from penstock.table.write.spill import SpillBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))])


def batch_of(numbers: Iterable[int]) -> pa.RecordBatch:
    values = list(numbers)
    return pa.RecordBatch.from_pydict(
        {"n": values, "s": [f"row {n}" for n in values], "l": [[n, None] for n in values]}, schema=SCHEMA
    )


def drained(buffer: SpillBuffer) -> list[tuple[int, int]]:
    return [(group, n) for group, batch in buffer.drain() for n in batch.column("n").to_pylist()]


# A number is a batch's group ids; None asks for a spill.
STEPS = st.lists(st.none() | st.lists(st.sampled_from([0, 1, 2, 7, 300, 70_000]), min_size=1, max_size=20), max_size=12)


@given(steps=STEPS, codec=st.sampled_from(["zstd", "lz4", "none"]))
def test_draining_is_a_stable_sort_by_group(steps: list[list[int] | None], codec: str) -> None:
    buffer = SpillBuffer(SCHEMA, WriteOptions(spill_compression=codec))
    arrived: list[tuple[int, int]] = []
    for groups in steps:
        if groups is None:
            buffer.spill()
        else:
            buffer.add(batch_of(range(len(arrived), len(arrived) + len(groups))), np.array(groups, dtype=np.int32))
            arrived += [(group, len(arrived) + i) for i, group in enumerate(groups)]
    assert drained(buffer) == sorted(arrived, key=lambda item: item[0])
    assert buffer.run_count == 0
    assert drained(buffer) == []


def test_runs_are_read_back_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "RUN_BATCH_BYTES", 1_000)
    buffer = SpillBuffer(SCHEMA, WriteOptions())
    for first in (0, 500):
        buffer.add(batch_of(range(first, first + 500)), np.zeros(500, dtype=np.int32))
        buffer.spill()
    parts = [rows for _, rows in buffer.drain()]
    assert max(rows.num_rows for rows in parts) < 50
    assert [n for rows in parts for n in rows.column("n").to_pylist()] == list(range(1000))


def test_rows_of_what_was_sliced_off_are_not_kept() -> None:
    buffer = SpillBuffer(SCHEMA, WriteOptions())
    buffer.add(batch_of(range(100)).slice(90), np.zeros(10, dtype=np.int32))
    assert drained(buffer) == [(0, n) for n in range(90, 100)]


def test_the_buffer_is_full_at_half_of_its_size_since_sorting_takes_the_other_half() -> None:
    buffer = SpillBuffer(SCHEMA, WriteOptions(write_buffer_bytes=20_000))
    added = 0
    while not buffer.is_full:
        batch = batch_of(range(10))
        buffer.add(batch, np.zeros(10, dtype=np.int32))
        added += batch.nbytes
    assert 8_000 <= added <= 11_000
    buffer.spill()
    assert not buffer.is_full
    buffer.close()


def test_memory_given_to_others_fills_the_buffer_earlier_but_a_quarter_stays() -> None:
    def bytes_until_full(yielded: int) -> int:
        buffer = SpillBuffer(SCHEMA, WriteOptions(write_buffer_bytes=80_000))
        buffer.yield_memory(yielded)
        added = 0
        while not buffer.is_full:
            batch = batch_of(range(5))
            buffer.add(batch, np.zeros(5, dtype=np.int32))
            added += batch.nbytes
        return added

    assert bytes_until_full(0) > 1.9 * bytes_until_full(40_000) > 3.5 * bytes_until_full(10**9) > 25_000


def test_spilling_stops_at_the_disk_limit_and_begins_again_after_draining() -> None:
    buffer = SpillBuffer(SCHEMA, WriteOptions(write_buffer_spill_max_disk_bytes=10_000, spill_compression="none"))
    batch, ids = batch_of(range(100)), np.zeros(100, dtype=np.int32)
    spills = 0
    while buffer.may_spill:
        buffer.add(batch, ids)
        if buffer.may_spill:
            buffer.spill()
            spills += 1
    assert 1 <= spills <= 3
    assert len(drained(buffer)) == 100 * (spills + 1)
    assert buffer.may_spill


class FullDisk:
    """A file that takes nothing, and fails once more when it is closed."""

    closed = False

    def write(self, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.closed = True
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_one_error_and_closing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    file = FullDisk()
    monkeypatch.setattr(spill.tempfile, "TemporaryFile", lambda **_: file)
    buffer = SpillBuffer(SCHEMA, WriteOptions(), table="db.t")
    buffer.add(batch_of([1]), np.zeros(1, dtype=np.int32))
    with pytest.raises(StorageError, match=r"table db\.t: cannot spill rows to .*No space left"):
        buffer.spill()
    buffer.close()
    assert file.closed


def test_spilling_stops_at_so_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "MAX_RUNS", 3)
    buffer = SpillBuffer(SCHEMA, WriteOptions())
    for _ in range(3):
        assert buffer.may_spill
        buffer.add(batch_of([1]), np.zeros(1, dtype=np.int32))
        buffer.spill()
    assert not buffer.may_spill
    buffer.close()


def test_spilling_can_be_switched_off() -> None:
    assert not SpillBuffer(SCHEMA, WriteOptions(write_buffer_spillable=False)).may_spill


def test_closing_forgets_everything() -> None:
    buffer = SpillBuffer(SCHEMA, WriteOptions())
    buffer.add(batch_of([1]), np.zeros(1, dtype=np.int32))
    buffer.spill()
    buffer.add(batch_of([2]), np.zeros(1, dtype=np.int32))
    buffer.close()
    buffer.close()
    assert drained(buffer) == []
