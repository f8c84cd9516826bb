from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock import Catalog
from penstock.errors import DataLossError, InvalidOptionError, LeaseHeldError, NotFoundError
from penstock.format.layout import TableLayout
from penstock.io.memory import MemoryFileIO
from penstock.predicate.parse import parse_filter
from penstock.table.lease import acquire
from penstock.table.store import MetadataStore
from penstock.table.stream import tail as module
from penstock.table.stream.consumers import lease_of, record_progress
from penstock.table.stream.offset import Phase
from penstock.table.stream.tail import LocalStreamReader, PollOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.api.table import Table

ONCE = PollOptions(once=True)
EARLIEST = {"scan.mode": "earliest"}


@pytest.fixture
def table() -> Iterator[Table]:
    """A queue with four buckets, partitioned by ``p``."""
    name = "tails"
    catalog = Catalog(f"memory://{name}/w")
    catalog.create_database("db")
    yield catalog.create_table(
        "db.t", "n BIGINT, p INT", partition_by=["p"], options={"bucket": "4", "bucket-key": "n"}
    )
    MemoryFileIO(name).discard()


def add(table: Table, *rows: tuple[int, int]) -> None:
    numbers, partitions = zip(*rows, strict=True)
    table.append(pa.table({"n": pa.array(numbers, pa.int64()), "p": pa.array(partitions, pa.int32())}))


def tail(table: Table, options: dict[str, str] | None = None, **more: Any) -> LocalStreamReader:
    ref = table._ref.with_options({**EARLIEST, **(options or {})})
    return LocalStreamReader(ref, MetadataStore(ref), **more)


def read(table: Table, options: dict[str, str] | None = None, limit: int | None = None, **more: Any) -> list[Any]:
    batches = tail(table, options, **more).read(ONCE, limit=limit)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_partitions_come_by_creation_and_with_the_option_by_value(table: Table) -> None:
    add(table, *((number, 9) for number in range(20)))
    time.sleep(0.002)
    add(table, *((number, 8 + number % 2) for number in range(20, 60)))
    time.sleep(0.002)
    add(table, *((number, 7 + number % 2) for number in range(60, 90)))
    full, sort = {"scan.mode": "latest-full"}, {"scan.plan-sort-partition": "true"}
    assert partitions(read(table)) == partitions(read(table, full)) == [9, 8, 7]
    assert partitions(read(table, sort)) == [9, 8, 9, 7, 8]
    assert partitions(read(table, {**full, **sort})) == [7, 8, 9]


def partitions(rows: list[Any]) -> list[int]:
    """Partitions in the order met, each run of one once."""
    met = [partition for _, partition in rows]
    return [each for at, each in enumerate(met) if not at or met[at - 1] != each]


@pytest.mark.usefixtures("table")
def test_rows_of_a_bucket_come_in_the_order_of_writes() -> None:
    one = Catalog("memory://tails/w").create_table(
        "db.one", "n BIGINT, p INT", options={"bucket": "1", "bucket-key": "p"}
    )
    numbers = [(number * 7) % 100 for number in range(100)]
    for first in range(0, 100, 10):
        add(one, *((number, 1) for number in numbers[first : first + 10]))
    for mode in ("earliest", "latest-full"):
        assert [number for number, _ in read(one, {"scan.mode": mode})] == numbers
    assert [number for number, _ in read(one, limit=37)] == numbers[:37]


def test_a_snapshot_is_whole_before_the_next_one_begins(table: Table) -> None:
    for first in range(0, 30, 10):
        add(table, *((number, 1) for number in range(first, first + 10)))
    found = [number for number, _ in read(table)]
    assert [set(found[at : at + 10]) for at in (0, 10, 20)] == [set(range(at, at + 10)) for at in (0, 10, 20)]


def test_columns_and_filters_apply_to_files_and_rows(table: Table) -> None:
    add(table, *((number, number % 3) for number in range(30)))
    found = read(table, columns=["n"], predicate=parse_filter("p = 1 AND n > 10"))
    assert sorted(found) == [(number,) for number in range(13, 30, 3)]
    assert tail(table, columns=["p", "n"]).schema.names == ["p", "n"]


def test_each_snapshot_is_announced_before_its_rows(table: Table) -> None:
    add(table, (1, 1))
    add(table, (2, 1))
    met: list[Any] = []

    def note(*what: Any) -> None:
        met.append(what)

    for batch in tail(table, on_snapshot=note).read(ONCE):
        note(batch.num_rows)
    assert met == [(1, Phase.CHANGES), (1,), (2, Phase.CHANGES), (1,)]
    met.clear()
    for batch in tail(table, {"scan.mode": "latest-full"}, on_snapshot=note).read(ONCE):
        note(batch.num_rows)
    assert met[0] == (2, Phase.FULL)
    assert sum(rows for (rows,) in met[1:]) == 2


def test_it_waits_for_more_and_ends_at_a_bound(table: Table) -> None:
    waits: list[float] = []

    def add_one(seconds: float) -> None:
        waits.append(seconds)
        add(table, (len(waits), 1))

    waiting = PollOptions(interval_ms=500, sleep=add_one)
    bounded = tail(table, {"penstock.scan.bounded.snapshot-id": "3"})
    assert [row["n"] for batch in bounded.read(waiting) for row in batch.to_pylist()] == [1, 2, 3]
    assert waits[:3] == [0.5] * 3


def test_a_table_without_snapshots_has_nothing_to_read_once(table: Table) -> None:
    assert read(table) == []
    assert read(table, {"scan.mode": "latest-full"}) == []


def test_errors_of_the_arguments_come_before_anything_is_read(table: Table) -> None:
    with pytest.raises(NotFoundError, match="no column 'nope'"):
        tail(table, columns=["nope"])
    with pytest.raises(InvalidOptionError):
        tail(table, {"scan.snapshot-id": "1"})
    with pytest.raises(InvalidOptionError, match="' ' is not a valid name for a consumer"):
        tail(table, {"consumer-id": " "})


def test_what_expired_before_it_was_read_ends_it(table: Table) -> None:
    for number in range(3):
        add(table, (number, 1))
    rows = tail(table).read(ONCE)
    assert next(rows).to_pylist() == [{"n": 0, "p": 1}]
    table._ref.file_io.delete(TableLayout(table.location).snapshot_path(2))
    with pytest.raises(DataLossError):
        list(rows)


# Consumers


def position(table: Table) -> int | None:
    return MetadataStore(table._ref).load_consumer("c")


def test_a_consumer_moves_when_more_is_asked_for_behind_a_snapshot(table: Table) -> None:
    for number in range(3):
        add(table, (number, 1))
    rows = tail(table, {"consumer-id": "c"}).read(ONCE)
    met = [(batch.to_pylist()[0]["n"], position(table)) for batch in rows]
    assert met == [(0, 1), (1, 2), (2, 3)]
    assert position(table) == 4
    assert read(table, {"consumer-id": "c"}) == []


def test_who_stops_inside_a_snapshot_gets_it_again(table: Table) -> None:
    add(table, *((number, 1) for number in range(20)))
    rows = tail(table, {"consumer-id": "c"}).read(ONCE)
    next(rows)
    rows.close()
    assert position(table) == 1
    assert len(read(table, {"consumer-id": "c"}, limit=19)) == 19
    assert position(table) == 1
    assert len(read(table, {"consumer-id": "c"}, limit=20)) == 20
    assert position(table) == 2


def test_the_full_phase_is_no_position_to_go_on_at(table: Table) -> None:
    add(table, *((number, 1) for number in range(20)))
    add(table, *((number, 2) for number in range(20)))
    options = {"scan.mode": "latest-full", "consumer-id": "c"}
    rows = tail(table, options).read(ONCE)
    next(rows)
    rows.close()
    assert position(table) is None, "snapshot 2 as increment would leave out the rows of snapshot 1"
    assert len(read(table, options)) == 40
    assert position(table) == 3


def test_who_begins_earlier_than_the_consumer_keeps_what_it_reads(table: Table) -> None:
    for number in range(3):
        add(table, (number, 1))
    assert len(read(table, {"consumer-id": "c"})) == 3
    rows = tail(table, {"consumer-id": "c", "consumer.ignore-progress": "true"}).read(ONCE)
    met = [(batch.to_pylist()[0]["n"], position(table)) for batch in rows]
    assert met == [(0, 1), (1, 2), (2, 3)]
    assert position(table) == 4


def test_a_rollback_sets_a_consumer_back_whose_rows_are_being_read(table: Table) -> None:
    for number in range(3):
        add(table, (number, 1))
    rows = tail(table, {"consumer-id": "c"}).read(ONCE)
    for _ in range(3):
        next(rows)
    table.rollback_to(snapshot_id=1)
    add(table, (7, 1))
    add(table, (8, 1))
    with pytest.raises(DataLossError, match="it was rolled back"):
        next(rows)
    assert position(table) == 2
    assert [number for number, _ in read(table, {"consumer-id": "c"})] == [7, 8]


def test_one_reads_as_a_consumer_and_then_the_next(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(_seconds: float) -> None:
        raise LeaseHeldError("in use")

    monkeypatch.setattr(module, "acquire", lambda *arguments: acquire(*arguments, sleep=give_up))
    add(table, *((number, 1) for number in range(20)))
    options = {"consumer-id": "c"}
    rows = tail(table, options).read(ONCE)
    next(rows)
    with pytest.raises(LeaseHeldError):
        read(table, options)
    rows.close()
    assert len(read(table, options)) == 20


def test_a_reader_that_lost_its_lease_moves_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    add(table, (1, 1))
    add(table, (2, 1))
    rows = tail(table, {"consumer-id": "c"}).read(ONCE)
    next(rows)

    def lost(_keeper: object) -> None:
        raise LeaseHeldError("taken over")

    monkeypatch.setattr(module.LeaseKeeper, "check", lost)
    with pytest.raises(LeaseHeldError):
        next(rows)
    assert position(table) == 1


def test_a_consumer_with_nothing_to_read_stays_young(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ALIVE_SECONDS", 0.0)
    add(table, (1, 1))
    record_progress(MetadataStore(table._ref), "c", 2)
    ages: list[int] = []

    def look(_seconds: float) -> None:
        (status,) = table._ref.file_io.list(f"{table.location}/consumer")
        ages.append(status.modified_millis)
        time.sleep(0.003)
        if len(ages) == 3:
            add(table, (2, 1))

    assert [batch.num_rows for batch in tail(table, {"consumer-id": "c"}).read(PollOptions(sleep=look), limit=1)] == [1]
    assert ages[0] < ages[1] < ages[2]


def test_the_lease_is_given_back_at_the_end(table: Table) -> None:
    add(table, (1, 1))
    read(table, {"consumer-id": "c"})
    acquire(table._ref.file_io, table.location, lease_of("c"), sleep=lambda _: pytest.fail("it is still held"))
