"""Files to a queue, that queue to another one, by drivers that come to an end at any moment."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

from tests.faults.streams.checker import check_rows, load_placed_rows
from tests.faults.streams.harness import (
    count_snapshots,
    draw_plan,
    forget_last_batch,
    landed_batch,
    logged_batch,
    stray_files,
)
from tests.faults.streams.rows import PARTITIONS, FileFeed, Producer, make_queue

import penstock
from penstock.clocks import utc_millis
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.faults.streams.calls import Logged, Plan
    from tests.faults.streams.harness import Drivers, Outcome

PRODUCERS: Final = 3
FILE_ROWS: Final = 240
# Most batches before the end of a driver: each costs half a second.
SPREAD: Final = 6
# Merges are fewer and larger than by default, each being a Spark job.
MERGED_FILES: Final = 16


class Chain:
    """Two streams, one behind the other, and what was done to them.

    Attributes:
        kills: drivers that were killed.
        in_window: of these, how many between the landing of a snapshot and Spark's own log of the batch.
    """

    def __init__(self, root: Path, drivers: Drivers, chance: random.Random, merged_files: int = MERGED_FILES) -> None:
        self.root = root
        self.drivers = drivers
        self.chance = chance
        catalog = penstock.Catalog(str(root / "warehouse"))
        catalog.create_database("d")
        # Nothing expires, so that the whole history can be looked at.
        options = {"snapshot.time-retained": "10 d", "compaction.min.file-num": str(merged_files)}
        self.tables = {name: make_queue(catalog, f"d.{name}", options) for name in ("first", "second")}
        self.feed = FileFeed(root / "feed")
        self.producers = [Producer(number, seed=chance.randrange(2**31)) for number in range(PRODUCERS)]
        self.kills = 0
        self.in_window = 0
        self.entries_deleted = 0
        self._clean_calls: tuple[Logged, ...] = ()

    def checkpoint(self, name: str) -> Path:
        return self.root / f"checkpoint-{name}"

    def produce(self, files: int) -> None:
        """Let the producers, by turns that chance gives them, put more files into the feed."""
        for _ in range(files):
            partitions = PARTITIONS if self.chance.random() < 0.2 else (self.chance.choice(PARTITIONS),)
            self.feed.put(self.chance.choice(self.producers).rows(FILE_ROWS, partitions))

    def run_to_end(self) -> Outcome:
        """Let everything that is in the feed arrive."""
        outcome = self.drivers.run(self._phases())
        assert not outcome.is_killed, "the driver ended by itself"
        assert outcome.errors == {}, outcome.errors
        self._clean_calls = outcome.calls
        return outcome

    def run_until_killed(self, plan: Plan | None = None) -> None:
        """Let a driver work until it comes to a place, by default one that chance has chosen; count where that was."""
        landed = self._landed()
        outcome = self.drivers.run(self._phases(), plan or self._draw_plan())
        assert outcome.errors == {}, outcome.errors
        if not outcome.is_killed:
            return
        self.kills += 1
        for name, batch in self._landed().items():
            if batch > landed[name] and batch > logged_batch(self.checkpoint(name)):
                self.in_window += 1
                break

    def delete_last_log_entry(self) -> None:
        """Have Spark forget that it has done its last batch of a query."""
        for name in self.tables:
            checkpoint, batch = self.checkpoint(name), logged_batch(self.checkpoint(name))
            # Beside a newer offset the entry would only be missing, and Spark would not do the batch again.
            if batch >= 0 and not (checkpoint / "offsets" / str(batch + 1)).exists():
                forget_last_batch(checkpoint)
                self.entries_deleted += 1

    def batches(self) -> int:
        """Count the micro-batches that became snapshots."""
        return self._count(CommitKind.APPEND)

    def merges(self) -> int:
        """Count the snapshots of the compaction beside the streams."""
        return self._count(CommitKind.COMPACT)

    def check(self) -> None:
        """Every row once, in order, in both tables; nothing missing on storage, and no batch that nobody knows."""
        first, second = self.tables.values()
        found = load_placed_rows(first)
        verdict = check_rows(self.feed.rows(), found)
        assert verdict.is_clean, f"{first.name}: {verdict}"
        verdict = check_rows(found, load_placed_rows(second))
        assert verdict.is_clean, f"{second.name}: {verdict}"
        for name, table in self.tables.items():
            check_history(table)
            assert landed_batch(table, self.checkpoint(name)) == count_snapshots(table, CommitKind.APPEND) - 1

    def clean_up(self) -> None:
        """Remove what killed drivers left, which is all that no snapshot needs."""
        for table in self.tables.values():
            table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
            assert stray_files(table) == set()

    def report(self) -> str:
        """Return the figures in a line."""
        strays = [len(stray_files(table)) for table in self.tables.values()]
        return (
            f"{self.kills} kills, {self.in_window} of them between snapshot and Spark's log; {self.batches()} "
            f"micro-batches, {self.merges()} snapshots of merges; {self.feed.rows().num_rows} rows; "
            f"{self.entries_deleted} log entries deleted; {strays} files left by killed attempts"
        )

    def _count(self, kind: CommitKind) -> int:
        return sum(count_snapshots(table, kind) for table in self.tables.values())

    def _landed(self) -> dict[str, int]:
        return {name: landed_batch(table, self.checkpoint(name)) for name, table in self.tables.items()}

    def _draw_plan(self) -> Plan:
        locations = [table.location for table in self.tables.values()]
        return draw_plan(self.chance, self._clean_calls, locations, spread=SPREAD)

    def _phases(self) -> list[list[dict[str, Any]]]:
        """Both streams at once until the feed is empty, then what is left for the second one."""
        first, second = self.tables.values()
        checkpoints = {name: str(self.checkpoint(name)) for name in self.tables}
        now, always = {"availableNow": True}, {"processingTime": "0 seconds"}
        files = {"name": "first", "folder": str(self.feed.folder), "files": 1}
        queue = {"name": "second", "source": first.location, "options": {"read.stream.maxFilesPerTrigger": "20"}}
        write_first = {**files, "table": first.location, "checkpoint": checkpoints["first"]}
        write_second = {**queue, "table": second.location, "checkpoint": checkpoints["second"]}
        return [
            [{**write_first, "trigger": now}, {**write_second, "trigger": always}],
            [{**write_second, "trigger": now}],
        ]


def check_history(table: penstock.Table) -> None:
    """Snapshots without gaps, whose files are all there."""
    ids = table.snapshots()["snapshot_id"].to_pylist()
    assert ids == list(range(1, len(ids) + 1))
    assert table.inspect.fsck(all_snapshots=True).findings == ()


def copy_checkpoint(source: Path, target: Path) -> None:
    """Make a checkpoint what another one is."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
