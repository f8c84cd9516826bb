"""Waiting for a watermark: what ends it, and what it says when it was in vain."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, new_table, on, rows

from penstock import Table
from penstock.errors import InvalidOptionError, NotFoundError, TimedOutError
from penstock.table.read.travel import NO_WATERMARK
from penstock.table.read.wait import WaitPolicy, wait_for_watermark
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef


def commit(ref: TableRef, watermark: int | None) -> None:
    committer(ref).commit(append(rows(1), watermark=watermark))


class PollOptions:
    """A clock that moves by sleeping, and a writer that does its next step in each sleep."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self.steps = list(steps)
        self.now = 0.0
        self.looks: list[int | None] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.steps:
            self.steps.pop(0)()

    def wait(self, ref: TableRef, watermark: int, timeout: float | None = None, interval: float = 1.0) -> Snapshot:
        patience = WaitPolicy(timeout=timeout, interval=interval, clock=lambda: self.now, sleep=self.sleep)
        return wait_for_watermark(
            MetadataStore(ref),
            watermark,
            patience,
            on_poll=lambda latest: self.looks.append(None if latest is None else latest.id),
        )


def test_the_snapshot_that_has_reached_it_is_returned_at_once() -> None:
    ref = new_table()
    commit(ref, 5_000)
    commit(ref, None)  # inherits it
    waiting = PollOptions()
    assert waiting.wait(ref, 5_000, timeout=0).id == 2
    assert waiting.wait(ref, -1).watermark == 5_000
    assert (waiting.now, waiting.looks) == (0.0, [])


def test_it_looks_until_a_snapshot_has_come_that_has_reached_it() -> None:
    ref = new_table()
    waiting = PollOptions(
        lambda: commit(ref, None),
        lambda: commit(ref, NO_WATERMARK),
        lambda: commit(ref, 4_999),
        lambda: None,
        lambda: commit(ref, 6_000),
    )
    found = waiting.wait(ref, 5_000, timeout=10, interval=0.5)
    assert (found.id, found.watermark) == (4, 6_000)
    assert (waiting.now, waiting.looks) == (2.5, [None, 1, 2, 3, 3])


def test_the_last_look_is_when_the_time_is_up() -> None:
    ref = new_table()
    waiting = PollOptions(lambda: None, lambda: None, lambda: commit(ref, 5_000))
    assert waiting.wait(ref, 5_000, timeout=2.5).id == 1
    assert waiting.now == 2.5


def test_a_timeout_says_what_was_awaited_what_there_is_and_how_long_it_took() -> None:
    ref = new_table()
    commit(ref, 1_767_261_500_000)
    waiting = PollOptions()
    with pytest.raises(TimedOutError) as caught:
        waiting.wait(ref, 1_767_261_600_000, timeout=2.5)
    assert str(caught.value) == (
        "table db.t: waited 2.5 s for watermark 2026-01-01 10:00:00.000+00:00 (1767261600000); its latest snapshot, 1, "
        "has 2026-01-01 09:58:20.000+00:00 (1767261500000), 0:01:40 behind; check that its writer runs, or wait "
        "longer"
    )
    assert isinstance(caught.value, TimeoutError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("watermark", [None, NO_WATERMARK])
def test_a_table_that_never_had_one_says_so(watermark: int | None) -> None:
    ref = new_table()
    commit(ref, watermark)
    with pytest.raises(
        TimedOutError, match=r"its latest snapshot, 1, has no watermark, as no writer has ever .* WATERM"
    ):
        PollOptions().wait(ref, 0, timeout=1)


def test_a_table_without_snapshots_says_so() -> None:
    with pytest.raises(TimedOutError, match="nothing was committed to it yet; check that its writer runs"):
        PollOptions().wait(new_table(), 0, timeout=0)


def test_a_table_that_was_dropped_meanwhile_is_not_waited_for() -> None:
    ref = new_table()
    commit(ref, 1)

    def drop() -> None:
        ref.file_io.delete(ref.location, recursive=True)

    waiting = PollOptions(drop)
    with pytest.raises(NotFoundError, match="is not a table"):
        waiting.wait(ref, 2)


def test_a_look_asks_the_storage_three_things() -> None:
    ref = new_table()
    commit(ref, 1)
    recording = RecordingFileIO(ref.file_io)
    store = MetadataStore(on(ref, recording))
    with pytest.raises(TimedOutError):
        wait_for_watermark(store, 2, WaitPolicy(timeout=0))
    assert len(recording.calls) == 3


@pytest.mark.parametrize(("timeout", "interval"), [(-1, 1), (1, 0)])
def test_times_that_cannot_be_are_refused(timeout: float, interval: float) -> None:
    with pytest.raises(InvalidOptionError, match=rf"table db.t: cannot wait with timeout {timeout} and interval"):
        PollOptions().wait(new_table(), 0, timeout=timeout, interval=interval)


def test_the_handle_takes_a_datetime_or_ms() -> None:
    ref = new_table()
    commit(ref, 1_767_261_600_000)
    table = Table(ref)
    ten = datetime(2026, 1, 1, 11, tzinfo=timezone(timedelta(hours=1)))
    assert table.wait_until(ten, timeout=0).id == 1
    assert table.wait_until(1_767_261_600_000).id == 1
    with pytest.raises(TimedOutError, match=r"waited 0\.\d s for watermark 2026-01-01 10:00:00.001"):
        table.wait_until(ten.astimezone(UTC) + timedelta(milliseconds=1), timeout=0.05, interval=0.01)
