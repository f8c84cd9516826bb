"""Following a table, and the lag of its readers, from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.table.stream import tail

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command


@pytest.fixture
def queue(penstock: Command) -> Command:
    """The command, with three snapshots of two rows each in a queue of two buckets."""
    penstock("create", "shop.q", "n BIGINT, s STRING", "--option", "bucket=2", "--option", "bucket-key=n")
    for first in (1, 3, 5):
        add(penstock, first, first + 1)
    return penstock


def add(penstock: Command, *numbers: int) -> None:
    table = penstock.catalog.load_table("shop.q")
    table.append(pa.table({"n": pa.array(numbers, pa.int64()), "s": [f"row {number}" for number in numbers]}))


def followed(penstock: Command, *args: str, code: int = 0) -> list[int]:
    result = penstock("follow", "shop.q", "--once", "--format", "json", *args, code=code)
    return [json.loads(line)["n"] for line in result.stdout.splitlines()]


def pairs(numbers: list[int]) -> list[set[int]]:
    """The numbers of each snapshot, whose buckets come one after the other."""
    return [set(numbers[at : at + 2]) for at in range(0, len(numbers), 2)]


def test_rows_come_snapshot_by_snapshot_from_where_the_reader_wants(queue: Command) -> None:
    assert pairs(followed(queue, "--from", "earliest")) == [{1, 2}, {3, 4}, {5, 6}]
    assert pairs(followed(queue, "--from", "2")) == [{3, 4}, {5, 6}]
    assert sorted(followed(queue, "--from", "latest-full")) == [1, 2, 3, 4, 5, 6]
    assert followed(queue, "--from", "latest") == []
    assert followed(queue) == [], "without --from only what is added"
    assert pairs(followed(queue, "-o", "scan.snapshot-id=3")) == [{5, 6}]
    second = queue.json("snapshots", "shop.q")[1]["commit_time"]
    assert followed(queue, "--from", "1999-01-01") == followed(queue, "--from", "earliest")
    assert followed(queue, "--from", "2999-01-01T00:00:00Z") == []
    assert second


def test_what_the_table_says_is_the_default(queue: Command) -> None:
    queue("alter", "set", "shop.q", "scan.mode=from-snapshot", "scan.snapshot-id=2")
    assert pairs(followed(queue)) == [{3, 4}, {5, 6}]


def test_a_position_that_is_none_is_refused(queue: Command) -> None:
    result = queue("follow", "shop.q", "--from", "yesterday", code=2)
    assert "expected earliest, latest, latest-full, the id of a snapshot, or a time" in result.stderr


def test_columns_filters_and_limits_apply(queue: Command) -> None:
    result = queue(
        "follow", "shop.q", "--once", "--from", "earliest", "--columns", "s", "--where", "n > 2", "--limit", "3",
        "--format", "csv",
    )  # fmt: skip
    header, *rows = result.stdout.splitlines()
    assert header == '"s"'
    assert set(rows[:2]) == {'"row 3"', '"row 4"'}
    assert len(rows) == 3
    assert followed(queue, "--from", "earliest", "--limit", "0") == []
    assert queue("follow", "shop.q", "--columns", "nope", code=3).stdout == ""
    assert queue("follow", "shop.q", "--where", "n >", code=2).stdout == ""


def test_a_table_for_people_has_one_header_and_columns_that_widen(queue: Command) -> None:
    add(queue, 1_000_000)
    lines = queue("follow", "shop.q", "--once", "--from", "3").stdout.splitlines()
    assert lines[:2] == ["n   s", "─────────"]
    assert set(lines[2:4]) == {"5   row 5", "6   row 6"}
    assert lines[4:] == ["1000000   row 1000000"]
    nothing = queue("follow", "shop.q", "--once", "--from", "latest")
    assert nothing.stdout.splitlines() == ["n   s", "─────"]
    assert queue("follow", "shop.q", "--once", "--from", "latest", "--format", "csv").stdout == '"n","s"\n'


def test_snapshots_are_announced_beside_the_rows(queue: Command) -> None:
    for start, words in (("2", ["snapshot 2", "snapshot 3"]), ("latest-full", ["snapshot 3, all rows"])):
        result = queue("follow", "shop.q", "--once", "--from", start, "--snapshots", "--format", "json")
        assert result.stderr.splitlines() == words
        assert all(line.startswith("{") for line in result.stdout.splitlines())


def test_rows_that_are_added_while_it_runs_are_seen(queue: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def add_instead(seconds: float) -> None:
        waits.append(seconds)
        add(queue, 100 + len(waits))

    class Adding(tail.PollOptions):
        def __init__(self, **values: Any) -> None:
            super().__init__(**values, sleep=add_instead)

    monkeypatch.setattr("penstock.api.streams.PollOptions", Adding)
    result = queue("follow", "shop.q", "--limit", "3", "--interval", "250 ms", "--format", "json")
    assert [json.loads(line)["n"] for line in result.stdout.splitlines()] == [101, 102, 103]
    assert waits == [0.25] * 3


def test_a_consumer_goes_on_where_it_stopped(queue: Command) -> None:
    assert pairs(followed(queue, "--consumer", "c", "--from", "earliest")) == [{1, 2}, {3, 4}, {5, 6}]
    assert queue.json("consumers", "shop.q") == [{"consumer_id": "c", "next_snapshot_id": 4}]
    add(queue, 7, 8)
    assert pairs(followed(queue, "--consumer", "c", "--from", "earliest")) == [{7, 8}]
    assert followed(queue, "--consumer", "c", "--from", "earliest") == []


def test_a_snapshot_that_was_not_read_to_its_end_comes_again(queue: Command) -> None:
    first = followed(queue, "--consumer", "c", "--from", "earliest", "--limit", "3")
    assert pairs(first)[0] == {1, 2}
    assert queue.json("consumers", "shop.q") == [{"consumer_id": "c", "next_snapshot_id": 2}]
    assert pairs(followed(queue, "--consumer", "c", "--limit", "2")) == [{3, 4}]
    assert queue.json("consumers", "shop.q") == [{"consumer_id": "c", "next_snapshot_id": 3}]


def test_lag_has_a_row_a_consumer(queue: Command) -> None:
    for consumer, position in (("done", "latest"), ("slow", "2"), ("new", "earliest")):
        queue("consumer", "reset", "shop.q", consumer, "--to", position)
    found = {row["reader"]: row for row in queue.json("lag", "shop.q")}
    behind = {reader: (row["snapshots_behind"], row["rows_behind"]) for reader, row in found.items()}
    assert behind == {"done": (0, 0), "new": (3, 6), "slow": (2, 4)}
    assert all(row["kind"] == "consumer" and row["latest_snapshot_id"] == 3 for row in found.values())
    assert found["done"]["oldest_unread_ms"] is None
    assert found["new"]["oldest_unread_ms"] >= found["slow"]["oldest_unread_ms"] >= 0


def test_lag_beyond_what_is_allowed_ends_with_12(queue: Command) -> None:
    queue("consumer", "reset", "shop.q", "slow", "--to", "2")
    queue("consumer", "reset", "shop.q", "done", "--to", "latest")
    queue("lag", "shop.q", "--max-snapshots", "2", "--max-rows", "4")
    for arguments in (("--max-snapshots", "1"), ("--max-rows", "3"), ("--max-rows", "3", "--max-snapshots", "9")):
        result = queue("lag", "shop.q", *arguments, code=12)
        assert result.stderr == "lag above the limit: slow\n"
        assert "slow" in result.stdout
        assert "done" in result.stdout
    queue("consumer", "delete", "shop.q", "slow", "--yes")
    queue("lag", "shop.q", "--max-snapshots", "0")


def test_a_reader_whose_snapshots_expired_is_too_late_with_any_limit(queue: Command) -> None:
    queue("consumer", "reset", "shop.q", "slow", "--to", "earliest")
    table = queue.catalog.load_table("shop.q")
    table._ref.file_io.delete(f"{table.location}/snapshot/snapshot-1")
    table._ref.file_io.delete(f"{table.location}/snapshot/EARLIEST")
    assert "slow: 1 snapshot expired before it read them" in queue("lag", "shop.q").stderr
    assert queue.json("lag", "shop.q")[0]["expired_snapshots"] == 1
    queue("lag", "shop.q", "--max-rows", "1000", code=12)


def test_lag_of_a_table_without_readers_is_empty(queue: Command) -> None:
    assert queue.json("lag", "shop.q") == []
    note = "no reader of shop.q is measured: it has no readable consumer, and no --checkpoint was given\n"
    assert queue("lag", "shop.q").stderr == note


def test_limits_without_a_reader_are_an_error(queue: Command) -> None:
    """An alert on a consumer that was deleted or misspelled must not stay silent."""
    for limit in ("--max-rows", "--max-snapshots"):
        result = queue("lag", "shop.q", limit, "0", code=3)
        assert "no reader of shop.q is measured" in result.stderr
        assert "no lag was compared with the limit" in result.stderr
    assert "not the checkpoint" in queue("lag", "shop.q", "--checkpoint", "memory://x/nothing", code=3).stderr
