"""Drivers killed at any call to storage, or between a snapshot and Spark's log: rows arrive once and in order."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.faults.streams.calls import Plan
from tests.faults.streams.chain import MERGED_FILES, Chain
from tests.faults.streams.checker import LANE, LANE_OF_PRODUCER, check_rows, load_placed_rows
from tests.faults.streams.harness import Drivers, count_snapshots
from tests.faults.streams.rows import Producer, make_queue

import penstock
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark
LIMIT_SECONDS = 900
SOAK_SECONDS = 3_000
PRODUCERS = 2
COMMITS = 5
ROWS = 200


def _kill_often(chain: Chain, kills: int, *, files: int, batches: int) -> None:
    """Kill drivers until it was often enough, deleting log entries now and then, and look at what arrived.

    Args:
        files: put into the feed before each driver.
        batches: fewest in all.
    """
    chain.drivers.kills_ahead = kills
    chain.produce(files)
    chain.run_to_end()
    chain.check()
    while chain.kills < kills or chain.in_window < kills / 3:
        chain.produce(files)
        chain.run_until_killed()
        if chain.chance.random() < 0.25:
            chain.delete_last_log_entry()
    chain.delete_last_log_entry()
    chain.run_to_end()
    while (missing := batches - chain.batches()) > 0:
        chain.produce(1 + missing * 2 // 3)
        chain.run_to_end()
    _check_all(chain)


def _check_all(chain: Chain) -> None:
    print(f"\n{chain.report()}")  # noqa: T201 - the figures that the test is about
    chain.check()
    chain.clean_up()
    chain.check()
    assert chain.in_window >= chain.kills / 3


@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize(("kills", "batches"), [(1, 10), pytest.param(17, 200, marks=pytest.mark.slow)])
def test_rows_arrive_once_and_in_order_however_often_the_driver_is_killed(
    kills: int, batches: int, drivers: Drivers, tmp_path: Path
) -> None:
    # Few batches make few files; merges shall come all the same.
    merged = 4 if batches < 100 else MERGED_FILES
    chain = Chain(tmp_path, drivers, random.Random(4), merged_files=merged)  # noqa: S311 - no secret
    _kill_often(chain, kills, files=6, batches=batches)
    assert chain.merges()


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_SECONDS)
def test_rows_arrive_once_and_in_order_where_tasks_share_nothing_with_the_driver(tmp_path: Path) -> None:
    with Drivers(tmp_path / "drivers", "local-cluster[2,1,1024]") as drivers:
        chain = Chain(tmp_path, drivers, random.Random(5))  # noqa: S311 - no secret
        drivers.kills_ahead = 1
        chain.produce(8)
        chain.run_until_killed(Plan(run=0, returning=4))
        chain.produce(4)
        chain.run_to_end()
        _check_all(chain)
        assert (chain.kills, chain.in_window) == (1, 1)


@pytest.mark.cluster
@pytest.mark.timeout(LIMIT_SECONDS)
def test_rows_of_producers_that_append_at_once_arrive_in_the_order_of_their_commits(
    drivers: Drivers, tmp_path: Path
) -> None:
    catalog = penstock.Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    source, target = make_queue(catalog, "d.source", {"commit.max-retries": "1000"}), make_queue(catalog, "d.target")
    query = {
        "name": "copy",
        "source": source.location,
        "options": {"read.stream.maxFilesPerTrigger": "20"},
        "table": target.location,
        "checkpoint": str(tmp_path / "checkpoint"),
    }

    def append(number: int) -> list[pa.Table]:
        """Append now and then, at least until the driver has ended."""
        table, producer, sent = catalog.load_table("d.source"), Producer(number), []
        while len(sent) < COMMITS or not killed.is_set():
            sent.append(producer.rows(ROWS))
            table.append(sent[-1])
            # A driver that starts slowly shall not find a backlog that grows with the time it took.
            killed.wait(0.3 if len(sent) < COMMITS else 2)
        return sent

    killed = Event()
    with ThreadPoolExecutor(PRODUCERS) as pool:
        working = [pool.submit(append, number) for number in range(PRODUCERS)]
        try:
            drivers.kills_ahead = 1
            endless = {**query, "trigger": {"processingTime": "0 seconds"}}
            outcome = drivers.run([[endless]], Plan(run=0, returning=2))
        finally:
            killed.set()
        sent = [rows for each in working for rows in each.result()]
    assert outcome.is_killed, outcome.errors
    assert count_snapshots(target, CommitKind.APPEND) == 2
    outcome = drivers.run([[{**query, "trigger": {"availableNow": True}}]])
    assert outcome.errors == {}, outcome.errors
    found = load_placed_rows(source)
    verdict = check_rows(pa.concat_tables(sent), found, lane=LANE_OF_PRODUCER)
    assert verdict.is_clean, verdict
    verdict = check_rows(found, load_placed_rows(target), lane=LANE)
    assert verdict.is_clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.parametrize("part", range(8))
def test_a_long_soak_of_killed_streams(part: int, drivers: Drivers, tmp_path: Path) -> None:
    chain = Chain(tmp_path, drivers, _chance(part))
    _kill_often(chain, 25, files=6, batches=200)


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.parametrize("part", range(2))
def test_a_soak_where_tasks_share_nothing_with_the_driver(part: int, tmp_path: Path) -> None:
    with Drivers(tmp_path / "drivers", "local-cluster[2,1,1024]") as drivers:
        chain = Chain(tmp_path, drivers, _chance(part))
        _kill_often(chain, 10, files=6, batches=100)


def _chance(part: int) -> random.Random:
    """Return chance of a seed that nobody chose, and that is told, so that a run can be had again."""
    seed = random.SystemRandom().randrange(1_000) * 10 + part
    print(f"\nseed {seed}")  # noqa: T201 - as above
    return random.Random(seed)  # noqa: S311 - no secret
