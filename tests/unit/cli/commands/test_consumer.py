"""Consumers from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.table.lease import Lease, acquire
from penstock.table.stream import consumers
from penstock.table.stream.consumers import lease_of

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command


@pytest.fixture
def three(orders: Command) -> Command:
    """Three snapshots of one row each."""
    for number in (1, 2, 3):
        line = f'{{"order_id": {number}, "dt": "2026-01-0{number}"}}\n'
        orders("append", "shop.orders", "-", "--input-format", "json", input=line)
    return orders


def positions(penstock: Command) -> dict[str, int]:
    return {row["consumer_id"]: row["next_snapshot_id"] for row in penstock.json("consumer", "list", "shop.orders")}


def test_a_reset_makes_a_consumer_without_asking_and_moves_it_after_asking(three: Command) -> None:
    assert three("consumer", "reset", "shop.orders", "c", "--to", "latest").stdout == (
        "consumer c of shop.orders goes on at snapshot 4\n"
    )
    refused = three("consumer", "reset", "shop.orders", "c", "--to", "earliest", code=1, input="n\n")
    assert "from 4 to 1?" in refused.stderr
    assert positions(three) == {"c": 4}
    three("consumer", "reset", "shop.orders", "c", "--to", "earliest", input="y\n")
    assert positions(three) == {"c": 1}
    three("consumer", "reset", "shop.orders", "c", "--to", "2", "--yes")
    assert positions(three) == {"c": 2}


def test_a_dry_run_changes_nothing(three: Command) -> None:
    three("consumer", "reset", "shop.orders", "c", "--to", "2")
    reset = three.json("consumer", "reset", "shop.orders", "c", "--to", "3", "--dry-run")
    assert reset == [
        {
            "table": "shop.orders",
            "consumer_id": "c",
            "next_snapshot_id": 3,
            "previous_next_snapshot_id": 2,
            "dry_run": True,
        }
    ]
    assert three.json("consumer", "delete", "shop.orders", "c", "--dry-run") == [
        {"table": "shop.orders", "consumer_id": "c", "dry_run": True}
    ]
    assert positions(three) == {"c": 2}


def test_a_deleted_consumer_is_gone(three: Command) -> None:
    three("consumer", "reset", "shop.orders", "c", "--to", "2")
    three("consumer", "delete", "shop.orders", "c", code=1, input="n\n")
    assert positions(three) == {"c": 2}
    three("consumer", "delete", "shop.orders", "c", "--yes")
    assert positions(three) == {}
    for flag in ("--yes", "--dry-run"):
        assert "no consumer 'c'" in three("consumer", "delete", "shop.orders", "c", flag, code=3).stderr


def test_positions_that_do_not_exist_are_refused_before_anything_is_asked(three: Command) -> None:
    for to, code, words in (("9", 3, "choose one from 1 to 4"), ("0", 2, "begin at 1"), ("tomorrow", 2, "expected")):
        for more in ((), ("--dry-run",)):
            assert words in three("consumer", "reset", "shop.orders", "c", "--to", to, *more, code=code).stderr
    assert positions(three) == {}


def test_a_consumer_in_use_is_left_alone_with_11(three: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    three("consumer", "reset", "shop.orders", "c", "--to", "2")
    ref = three.catalog.load_table("shop.orders")._ref
    lease = acquire(ref.file_io, ref.location, lease_of("c"))

    def acquire_while_it_is_renewed(*arguments: object) -> Lease:
        return acquire(*arguments, sleep=lambda _: lease.renew())  # type: ignore[arg-type]

    monkeypatch.setattr(consumers, "acquire", acquire_while_it_is_renewed)
    for words in (("reset", "shop.orders", "c", "--to", "1"), ("delete", "shop.orders", "c")):
        assert "'consumer-c' is in use by process" in three("consumer", *words, "--yes", code=11).stderr
    assert positions(three) == {"c": 2}
