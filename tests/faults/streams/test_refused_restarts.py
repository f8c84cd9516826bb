"""Checkpoints that do not go with their table any more: refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.faults.streams.chain import check_history, copy_checkpoint
from tests.faults.streams.checker import LANE_OF_PRODUCER, check_rows, load_placed_rows
from tests.faults.streams.harness import forget_last_batch, landed_batch, logged_batch
from tests.faults.streams.rows import FileFeed, Producer, make_queue

import penstock
from penstock.format.layout import TableLayout
from penstock.format.snapshot import encode_hint

if TYPE_CHECKING:
    from tests.faults.streams.harness import Drivers

pytestmark = pytest.mark.spark
ROWS = 200


class Stream:
    """Files to a queue, by a query that ends when it has read them."""

    def __init__(self, root: Path, drivers: Drivers) -> None:
        catalog = penstock.Catalog(str(root / "warehouse"))
        catalog.create_database("d")
        # Without merges beside the stream, which would be snapshots too.
        self.table = make_queue(catalog, "d.t", {"write-only": "true"})
        self.checkpoint = root / "checkpoint"
        self.feed = FileFeed(root / "feed")
        self.producer = Producer(0)
        self._drivers = drivers

    def produce(self, files: int) -> None:
        for _ in range(files):
            self.feed.put(self.producer.rows(ROWS))

    def run(self, **more: Any) -> str | None:
        """Run the query to its end; returns what it failed with."""
        query = {
            "name": "sink",
            "folder": str(self.feed.folder),
            "files": 1,
            "table": self.table.location,
            "checkpoint": str(self.checkpoint),
            "trigger": {"availableNow": True},
            **more,
        }
        outcome = self._drivers.run([[query]])
        assert not outcome.is_killed
        return outcome.errors.get("sink")

    def run_to_end(self) -> None:
        failure = self.run()
        assert failure is None, failure

    def files(self) -> dict[str, bytes]:
        """Everything that makes up the table."""
        root = Path(self.table.location)
        paths = [path for path in root.rglob("*") if path.is_file() and ".penstock" not in path.parts]
        return {str(path.relative_to(root)): path.read_bytes() for path in paths}

    def expire(self, up_to: int) -> None:
        """Delete snapshots as Paimon's expiration does, whose data files other snapshots still have."""
        for snapshot_id in range(1, up_to + 1):
            Path(TableLayout(self.table.location).snapshot_path(snapshot_id)).unlink(missing_ok=True)
        Path(TableLayout(self.table.location).earliest_hint_path).write_bytes(encode_hint(up_to + 1))

    def check(self) -> None:
        verdict = check_rows(self.feed.rows(), load_placed_rows(self.table))
        assert verdict.is_clean, verdict


def test_a_checkpoint_that_was_set_back_is_refused_before_the_first_write(drivers: Drivers, tmp_path: Path) -> None:
    stream = Stream(tmp_path, drivers)
    stream.produce(3)
    stream.run_to_end()
    copy_checkpoint(stream.checkpoint, tmp_path / "old")
    stream.produce(3)
    stream.run_to_end()
    copy_checkpoint(stream.checkpoint, tmp_path / "good")
    copy_checkpoint(tmp_path / "old", stream.checkpoint)
    stream.produce(1)
    before = stream.files()
    for _ in range(2):
        refusal = stream.run()
        assert refusal is not None
        assert "set back" in refusal or "older" in refusal or "restore" in refusal, refusal
        assert "5" in refusal  # the last batch that landed
        assert stream.files() == before
    copy_checkpoint(tmp_path / "good", stream.checkpoint)
    stream.run_to_end()
    stream.check()
    check_history(stream.table)


def test_a_batch_whose_snapshot_may_have_expired_is_refused_before_the_first_write(
    drivers: Drivers, tmp_path: Path
) -> None:
    stream = Stream(tmp_path, drivers)
    stream.produce(3)
    stream.run_to_end()
    forget_last_batch(stream.checkpoint)
    others = Producer(1)
    for _ in range(3):
        stream.table.append(others.rows(ROWS))
    stream.expire(up_to=5)
    before = stream.files()
    for _ in range(2):
        refusal = stream.run()
        assert refusal is not None
        assert "expired" in refusal, refusal
        assert "accept-unknown-batch" in refusal, refusal
        assert stream.files() == before


def test_a_new_batch_is_written_although_older_snapshots_have_expired(drivers: Drivers, tmp_path: Path) -> None:
    stream = Stream(tmp_path, drivers)
    stream.produce(3)
    stream.run_to_end()
    stream.expire(up_to=2)
    stream.produce(2)
    stream.run_to_end()
    stream.check()
    assert landed_batch(stream.table, stream.checkpoint) == 4


def test_a_query_whose_own_snapshots_have_all_expired_continues_if_the_option_allows_it(
    drivers: Drivers, tmp_path: Path
) -> None:
    stream = Stream(tmp_path, drivers)
    stream.produce(3)
    stream.run_to_end()
    stranger = Producer(1).rows(1)
    stream.table.append(stranger)
    stream.expire(up_to=3)
    stream.produce(2)
    before = stream.files()
    refusal = stream.run()
    assert refusal is not None
    assert "accept-unknown-batch" in refusal
    assert stream.files() == before
    failure = stream.run(sink_options={"penstock.accept-unknown-batch": "true"})
    assert failure is None, failure
    sent = pa.concat_tables([stream.feed.rows(), stranger])
    verdict = check_rows(sent, load_placed_rows(stream.table), lane=LANE_OF_PRODUCER)
    assert verdict.is_clean, verdict
    assert landed_batch(stream.table, stream.checkpoint) == 4


def test_a_batch_that_spark_forgot_is_not_written_again(drivers: Drivers, tmp_path: Path) -> None:
    stream = Stream(tmp_path, drivers)
    stream.produce(3)
    stream.run_to_end()
    for _ in range(2):
        forget_last_batch(stream.checkpoint)
        before = {name for name in stream.files() if "data-" in name}
        stream.run_to_end()
        assert {name for name in stream.files() if "data-" in name} == before
    forget_last_batch(stream.checkpoint)
    stream.produce(2)
    stream.run_to_end()
    stream.check()
    assert landed_batch(stream.table, stream.checkpoint) == logged_batch(stream.checkpoint) == 4
