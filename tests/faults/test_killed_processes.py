"""Real processes killed while they write: what they acknowledged is there once, the rest once or not at all."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.faults.forking import Forker

import penstock
from penstock.format.snapshot import CommitKind
from penstock.table.read.live import load_live_entries
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Appends rows numbered from ``first`` on, one commit after the other, each acknowledged in a file once it has
# returned; every fifth commit overwrites a partition of its own instead. With ``dies_at`` the process ends by itself,
# without any clean-up, before or after that call to storage; with ``dies_at_put`` at that attempt to create a snapshot.
WRITER = """
import os
from dataclasses import replace
import pyarrow as pa
import penstock
from penstock.api.table import Table
from penstock.testing.file_io import RecordingFileIO

class DyingFileIO(RecordingFileIO):
    at, put, is_after = 0, 0, False

    def _call(self, operation, path, effect):
        dies = self._note(operation, path) == self.at
        if operation == "put_if_absent":
            self.put -= 1
            dies = dies or self.put == 0
        if dies and not self.is_after:
            os._exit(9)
        result = effect()
        if dies:
            os._exit(9)
        return result

def work(root, first, acks, dies_at=0, dies_at_put=0, is_after=False, count=10**9):
    table = penstock.Catalog(root + "/warehouse").load_table("db.t")
    file_io = DyingFileIO(table._ref.file_io)
    file_io.at, file_io.put, file_io.is_after = dies_at, dies_at_put, is_after
    table = Table(replace(table._ref, file_io=file_io))
    ack = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(first, first + count):
        kind, p = ("overwrite", "b") if number % 5 == 4 else ("append", "a")
        numbers, keys = pa.array([number] * 3, pa.int64()), pa.array([1, 2, 3], pa.int64())
        rows = pa.table({"number": numbers, "k": keys, "p": [p] * 3})
        getattr(table, kind)(rows)
        os.write(ack, f"{kind} {number}\\n".encode())
"""
STEP = 100_000


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with Forker(WRITER) as forker:
        yield forker


class Scene:
    """A table, and writers that come to an end."""

    def __init__(self, root: Path, forker: Forker, **more: str) -> None:
        self.root = root
        self.forker = forker
        self.runs = 0
        catalog = penstock.Catalog(f"{root}/warehouse")
        catalog.create_database("db")
        options = {
            "bucket": "2",
            "bucket-key": "k",
            "manifest.merge-min-count": "3",
            "manifest.full-compaction-threshold-size": "20 kb",
            # Writers that do nothing but commit make the others lose many races in a row.
            "commit.max-retries": "1000",
            "commit.max-retry-wait": "40 ms",
            **more,
        }
        catalog.create_table("db.t", "number BIGINT, k BIGINT, p STRING", partition_by=["p"], options=options)

    def start(self, **how: int) -> int:
        """Start a writer with numbers of its own; returns its pid."""
        self.runs += 1
        return self.forker.start(root=str(self.root), first=self.runs * STEP, acks=str(self.acks(self.runs)), **how)

    def acks(self, run: int) -> Path:
        return self.root / f"acks-{run}"

    def wait_until_it_commits(self, run: int) -> None:
        deadline = time.monotonic() + 60
        while not self.acks(run).exists() or "append" not in self.acks(run).read_text():
            assert time.monotonic() < deadline, "the writer did not start"
            time.sleep(0.002)

    def acknowledged(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {"append": set(), "overwrite": set()}
        for path in self.root.glob("acks-*"):
            for line in path.read_text().splitlines():
                kind, number = line.split()
                found[kind].add(int(number))
        return found

    def check(self) -> int:
        """Look as a fresh process does; returns how many commits there are that nobody acknowledged."""
        table = penstock.Catalog(f"{self.root}/warehouse").load_table("db.t")
        ids = table._store.list_snapshot_ids()
        assert ids == tuple(range(1, len(ids) + 1))
        rows = table.to_arrow().to_pylist()
        latest = table.latest_snapshot()
        assert len(rows) == ((latest.total_record_count or 0) if latest else 0)
        appended = Counter(row["number"] for row in rows if row["p"] == "a")
        done = self.acknowledged()
        assert set(appended.values()) <= {3}
        assert set(appended) >= done["append"]
        assert all(number % 5 != 4 for number in appended)
        extra = set(appended) - done["append"]
        # Of each writer, nothing but the one commit that it was at when it ended.
        assert max(Counter(number // STEP for number in extra).values(), default=0) <= 1
        for number in extra:
            assert number > max((each for each in done["append"] if each // STEP == number // STEP), default=0)
        overwritten = {row["number"] for row in rows if row["p"] == "b"}
        assert len(overwritten) == (1 if overwritten or done["overwrite"] else 0)
        self.check_files(table)
        merges = sum(table._store.load_snapshot(each).commit_kind is CommitKind.COMPACT for each in ids)
        return len(ids) - merges - len(done["append"]) - len(done["overwrite"])

    def check_files(self, table: penstock.Table) -> None:
        latest = table.latest_snapshot()
        if latest is None:
            return
        locator = FileLocator.of(table._ref)
        ends: dict[tuple[bytes, int], int] = {}
        entries = load_live_entries(table._store, latest).values()
        for entry in sorted(entries, key=lambda each: each.file.min_sequence_number):
            assert table._ref.file_io.exists(locator.path(entry.partition, entry.bucket, entry.file))
            key = (entry.partition, entry.bucket)
            assert entry.file.min_sequence_number == ends.get(key, 0)
            ends[key] = entry.file.max_sequence_number + 1

    def kill_somewhere(self, chance: random.Random, *, among: int = 1) -> None:
        """Kill writers that run together, each at a moment that nobody chose."""
        first = self.runs + 1
        pids = [self.start() for _ in range(among)]
        for run in range(first, first + among):
            self.wait_until_it_commits(run)
        for pid in chance.sample(pids, len(pids)):
            time.sleep(chance.uniform(0, 0.06))
            self.forker.kill(pid)
            assert self.forker.wait(pid) == -9


@pytest.mark.parametrize("rounds", [(1, 2, 4), pytest.param((1, 2, 3, 4) * 4, marks=pytest.mark.slow)], ids=len)
def test_processes_that_are_killed_at_any_moment_lose_and_double_nothing(
    rounds: tuple[int, ...], forker: Forker, tmp_path: Path
) -> None:
    chance = random.Random(20)  # noqa: S311 - no secret
    scene = Scene(tmp_path, forker)
    for among in rounds:
        scene.kill_somewhere(chance, among=among)
        scene.check()
    assert len(scene.acknowledged()["append"]) > sum(rounds)
    assert forker.wait(scene.start(count=6)) == 0
    scene.check()


@pytest.mark.parametrize("ends", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_processes_that_end_at_a_chosen_call_lose_and_double_nothing(ends: int, forker: Forker, tmp_path: Path) -> None:
    chance = random.Random(21)  # noqa: S311 - no secret
    scene = Scene(tmp_path, forker)
    # A commit takes some 35 calls here, merging some more.
    for number, call in enumerate(chance.sample(range(1, 160), ends)):
        assert forker.wait(scene.start(dies_at=call, is_after=chance.random() < 0.5)) == 9
        if number % 3 == 2:
            scene.check()
    assert forker.wait(scene.start(count=6)) == 0
    scene.check()
    assert len(scene.acknowledged()["append"]) > ends // 2  # merges end some writers, too


@pytest.mark.parametrize("is_after", [False, True])
def test_the_creation_of_the_snapshot_alone_decides(
    is_after: bool,  # noqa: FBT001 - a parameter of the test
    forker: Forker,
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, forker, **{"write-only": "true"})  # puts are those of appends alone
    for run in range(1, 4):
        assert forker.wait(scene.start(dies_at_put=run, is_after=is_after)) == 9
        assert scene.check() == (run if is_after else 0)
    assert forker.wait(scene.start(count=6)) == 0
    assert scene.check() == (3 if is_after else 0)


@pytest.mark.slow
def test_a_long_soak_of_kills(forker: Forker, tmp_path: Path) -> None:
    chance = random.Random()  # noqa: S311 - no secret
    scene = Scene(tmp_path, forker)
    for _ in range(100):
        scene.kill_somewhere(chance, among=chance.randint(1, 4))
        scene.check()
