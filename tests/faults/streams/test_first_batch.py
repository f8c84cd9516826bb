"""A driver that ends in the very first batch, and what others commit before the next one starts."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.faults.streams.calls import Plan
from tests.faults.streams.checker import LANE_OF_PRODUCER, check_rows, load_placed_rows
from tests.faults.streams.rows import Producer, make_queue

import penstock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.streams.harness import Drivers

pytestmark = pytest.mark.spark
ROWS = 300
# What a stream delivers that starts when snapshots 1 to 4 are there: the first of them, counted from 1.
FIRST = {
    "default": 1,
    "latest-full": 1,
    "full": 1,
    "compacted-full": 1,
    "earliest": 1,
    "latest": 5,
    "from-timestamp": 3,
    "from-snapshot": 2,
    "from-snapshot-full": 1,
    "from-file-creation-time": 3,
    "from-creation-timestamp": 3,
}
# One that waits for a commit, one of increments, and full ones with and without a condition.
QUICK = ("default", "latest", "from-snapshot", "from-file-creation-time")


class Modes:
    """One queue, and a stream of each start mode from it into a queue of its own."""

    def __init__(self, root: Path, names: tuple[str, ...]) -> None:
        self.root = root
        self.catalog = penstock.Catalog(str(root / "warehouse"))
        self.catalog.create_database("d")
        self.source = make_queue(self.catalog, "d.source")
        self.sent: list[pa.Table] = []
        self.between = 0
        for number in range(4):
            if number == 2:
                time.sleep(0.05)
                self.between = time.time_ns() // 1_000_000
                time.sleep(0.05)
            self.append()
        # Without merges beside the streams, which would be snapshots too.
        options = {"write-only": "true"}
        self.targets = {mode: make_queue(self.catalog, f"d.{mode.replace('-', '_')}", options) for mode in names}

    def append(self) -> None:
        """Commit rows of a producer that has the number of the commit."""
        rows = Producer(len(self.sent) + 1).rows(ROWS)
        self.source.append(rows)
        self.sent.append(rows)

    def options(self, mode: str) -> dict[str, str]:
        match mode:
            case "default":
                return {}
            case "from-timestamp":
                position = {"scan.timestamp-millis": str(self.between)}
            case "from-snapshot" | "from-snapshot-full":
                position = {"scan.snapshot-id": "2"}
            case "from-file-creation-time":
                position = {"scan.file-creation-time-millis": str(self.between)}
            case "from-creation-timestamp":
                position = {"scan.creation-time-millis": str(self.between)}
            case _:
                position = {}
        return {"scan.mode": mode, **position}

    def queries(self, trigger: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "name": mode,
                "source": self.source.location,
                "options": self.options(mode),
                "table": target.location,
                "checkpoint": str(self.root / "checkpoints" / mode),
                "trigger": trigger,
            }
            for mode, target in self.targets.items()
        ]


@pytest.mark.parametrize(
    ("names", "landed"),
    [
        pytest.param(QUICK, QUICK[::2], id="quick", marks=pytest.mark.cluster),
        pytest.param(tuple(FIRST), tuple(FIRST)[::2], id="even", marks=pytest.mark.slow),
        pytest.param(tuple(FIRST), tuple(FIRST)[1::2], id="odd", marks=pytest.mark.slow),
    ],
)
def test_a_crash_in_the_first_batch_leaves_the_start_where_it_was(
    names: tuple[str, ...], landed: tuple[str, ...], drivers: Drivers, tmp_path: Path
) -> None:
    modes = Modes(tmp_path, names)
    # All first batches wait at their snapshot until the last of them is there too: some once it has landed.
    drivers.kills_ahead = 1
    after = tuple(modes.targets[mode].location for mode in landed)
    plan = Plan(run=0, what="put_if_absent snapshot", at=len(names), is_after=False, after=after, holds=True)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(drivers.run, [modes.queries({"processingTime": "0 seconds"})], plan)
        while drivers.chosen() < len(names) - 1:
            assert not running.done(), running.result()
            time.sleep(0.1)
        # Mode latest waits for a commit; the others have their first batch without it.
        assert modes.targets["latest"].latest_snapshot() is None
        modes.append()
        outcome = running.result()
    assert outcome.is_killed
    for mode, target in modes.targets.items():
        assert (target.latest_snapshot() is not None) == (mode in landed), mode
    modes.append()
    # What the first batches were to read is gone from the latest snapshot, and no stream delivers what came for it.
    modes.source.overwrite(Producer(60).rows(ROWS, (10,)), partition={"p": 10})
    modes.append()
    outcome = drivers.run([modes.queries({"availableNow": True})])
    assert outcome.errors == {}
    for mode, target in modes.targets.items():
        sent = pa.concat_tables(modes.sent[FIRST[mode] - 1 :])
        verdict = check_rows(sent, load_placed_rows(target), lane=LANE_OF_PRODUCER)
        assert verdict.is_clean, f"{mode}: {verdict}"
