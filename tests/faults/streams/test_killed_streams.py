"""Drivers killed at any call to storage, or between a snapshot and Spark's log: rows arrive once and in order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.faults.streams.chain import Chain
from tests.faults.streams.harness import Drivers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark
LIMIT_SECONDS = 900
SOAK_SECONDS = 3 * 3600


def _kill_often(chain: Chain, kills: int, *, files: int, batches: int) -> None:
    """Kill drivers until it was often enough, deleting log entries now and then, and look at what arrived."""
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
    chain.produce(max(0, batches - chain.batches()))
    chain.run_to_end()
    print(f"\n{chain.report()}")  # noqa: T201 - the figures that the test is about
    chain.check()
    assert chain.batches() >= batches
    assert chain.in_window >= chain.kills / 3


@pytest.mark.timeout(LIMIT_SECONDS)
def test_rows_arrive_once_and_in_order_however_often_the_driver_is_killed(drivers: Drivers, tmp_path: Path) -> None:
    chain = Chain(tmp_path, drivers, random.Random(4))  # noqa: S311 - no secret
    _kill_often(chain, 17, files=8, batches=200)


@pytest.mark.timeout(LIMIT_SECONDS)
def test_rows_arrive_once_and_in_order_where_tasks_share_nothing_with_the_driver(tmp_path: Path) -> None:
    with Drivers(tmp_path / "drivers", "local-cluster[2,1,1024]") as drivers:
        chain = Chain(tmp_path, drivers, random.Random(5))  # noqa: S311 - no secret
        _kill_often(chain, 1, files=6, batches=20)


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS)
def test_a_long_soak_of_killed_streams(drivers: Drivers, tmp_path: Path) -> None:
    chain = Chain(tmp_path, drivers, random.Random())  # noqa: S311 - no secret
    _kill_often(chain, 200, files=8, batches=1_000)


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS)
def test_a_soak_where_tasks_share_nothing_with_the_driver(tmp_path: Path) -> None:
    with Drivers(tmp_path / "drivers", "local-cluster[2,1,1024]") as drivers:
        chain = Chain(tmp_path, drivers, random.Random())  # noqa: S311 - no secret
        _kill_often(chain, 20, files=8, batches=200)
