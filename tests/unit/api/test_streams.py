from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from penstock import Catalog, Table, col
from penstock.errors import InvalidFilterError, NotFoundError, OptionWarning


@pytest.fixture
def table() -> Table:
    """Two snapshots of two rows."""
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n BIGINT, s STRING", options={"bucket": "1", "bucket-key": "n"})
    for first in (1, 3):
        table.append(pa.table({"n": pa.array([first, first + 1], pa.int64()), "s": ["a", "b"]}))
    return table


def test_a_table_is_followed_without_spark(table: Table) -> None:
    batches = list(table.follow(options={"scan.mode": "earliest"}, once=True))
    assert [batch.column("n").to_pylist() for batch in batches] == [[1, 2], [3, 4]]
    some = table.follow(["s"], col("n") > 1, limit=2, options={"scan.mode": "earliest"})
    assert [row for batch in some for row in batch.to_pylist()] == [{"s": "b"}, {"s": "a"}]
    assert sum(batch.num_rows for batch in table.follow(filter="n = 4", once=True)) == 1


def test_a_consumer_misses_nothing_that_comes_after_a_rollback(table: Table) -> None:
    options = {"scan.mode": "earliest", "consumer-id": "c"}
    assert sum(batch.num_rows for batch in table.follow(options=options, once=True)) == 4
    table.rollback_to(snapshot_id=1)
    for number in (5, 6):  # up to the position that the consumer had
        table.append(pa.table({"n": pa.array([number], pa.int64()), "s": ["c"]}))
    found = [batch.column("n").to_pylist() for batch in table.follow(options=options, once=True)]
    assert found == [[5], [6]]


def test_a_consumer_is_followed_moved_and_measured(table: Table) -> None:
    options = {"scan.mode": "earliest", "consumer-id": "c"}
    assert sum(batch.num_rows for batch in table.follow(options=options, limit=2)) == 2
    (row,) = table.inspect.lag().to_pylist()
    assert (row["reader"], row["next_snapshot_id"], row["rows_behind"]) == ("c", 2, 2)
    table.maintenance.reset_consumer("c", 1)
    assert table.inspect.lag().to_pylist()[0]["rows_behind"] == 4
    table.maintenance.delete_consumer("c")
    assert table.inspect.lag().num_rows == 0


def test_wrong_arguments_are_refused_before_the_first_row(table: Table) -> None:
    with pytest.raises(NotFoundError, match="no column 'nope'"):
        table.follow(["nope"])
    with pytest.raises(InvalidFilterError):
        table.follow(filter="nope = 1")
    with pytest.warns(OptionWarning, match="scan.modee"):
        table.follow(options={"scan.modee": "latest"})
