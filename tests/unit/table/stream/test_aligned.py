"""``Table.follow`` in step with other sources of a group."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.io.memory import MemoryFileIO
from penstock.table.store import MetadataStore
from penstock.table.stream.align.membership import Membership, open_membership
from penstock.table.stream.tail import LocalStreamReader, PollOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
NOON_MILLIS = 1_767_268_800_000
OPTIONS = {
    "scan.mode": "earliest",
    "scan.watermark.alignment.group": "g",
    "scan.watermark.alignment.max-drift": "20 s",
    "scan.watermark.alignment.update-interval": "20 ms",
    "scan.watermark.idle-timeout": "10 min",
}


@pytest.fixture
def table() -> Iterator[Table]:
    """Ten commits, ten seconds apart."""
    catalog = Catalog("memory://aligned-tails/w")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "n INT, t TIMESTAMP(3)", watermark=("t", None), options={"bucket": "1"})
    for n in range(10):
        times = pa.array([NOON + timedelta(seconds=10 * n)], pa.timestamp("ms"))
        table.append(pa.table({"n": pa.array([n], pa.int32()), "t": times}))
    yield table
    MemoryFileIO("aligned-tails").discard()


@pytest.fixture
def other(table: Table) -> Iterator[Membership]:
    """Another source of the group, which the test moves."""
    member = open_membership(table._ref.with_options(OPTIONS))
    assert member is not None
    member.join()
    yield member
    member.leave()


def stand(member: Membership, seconds: int) -> None:
    member.report(NOON_MILLIS + 1_000 * seconds, has_rows=True, is_held=False)


def test_it_goes_no_further_than_the_group_lets_it_and_waits_though_it_is_to_read_once_only(
    table: Table, other: Membership
) -> None:
    stand(other, 0)
    found: list[int] = []
    held: list[tuple[int, float]] = []

    def go_on(seconds: float) -> None:
        held.append((len(found), seconds))
        stand(other, 10 * len(held))
        time.sleep(seconds)

    ref = table._ref.with_options(OPTIONS)
    for batch in LocalStreamReader(ref, MetadataStore(ref)).read(
        PollOptions(once=True, interval_ms=60_000, sleep=go_on)
    ):
        found += batch["n"].to_pylist()
    assert found == list(range(10))
    assert held[0] == (3, 0.02), "twenty seconds ahead of the other, and not the table's whole minute"
    assert [count for count, _ in held] == [3, 4, 5, 6, 7, 8, 9]


def test_it_leaves_the_group_when_its_reader_is_done(table: Table, other: Membership) -> None:
    stand(other, 0)
    rows = table.follow(options=OPTIONS)
    next(rows)
    assert other.look(is_fresh=True).slowest is not None
    rows.close()
    assert other.look(is_fresh=True).slowest is None
    bounded: Any = {**OPTIONS, "penstock.scan.bounded.snapshot-id": "2"}
    assert sum(batch.num_rows for batch in table.follow(options=bounded)) == 2
    assert other.look(is_fresh=True).slowest is None
