"""A table that changes while a query writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit_tables import new_queue, new_table, on, rows

from penstock.catalog.changes import SetOption
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import NotFoundError
from penstock.format.types.ddl import parse_columns
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

from tests.unit.table.stream_sink.queries import batch, run, start, unchanged


def test_a_table_that_goes_while_a_query_runs_ends_it() -> None:
    warehouse = open_warehouse("memory://stream-commit-drop")
    definition = TableDefinition(columns=parse_columns("id BIGINT, p STRING"), partition_by=("p",))
    location = "memory://stream-commit-drop/t"
    ref, files = warehouse.create_table(location, definition), MemoryCheckpoint()
    query = start(ref, files)
    run(query, batch(0), rows(1))
    assert query.begin(batch(1)) is not None
    warehouse.drop_table(location)
    text = "it was dropped or moved while a query wrote to it, whose checkpoint is file:/checkpoint"
    with pytest.raises(NotFoundError, match=text):
        query.commit(batch(1), (rows(2),))
    with pytest.raises(NotFoundError, match=text):
        query.load_ref()
    assert not ref.file_io.exists(location)
    anew = TableDefinition(columns=parse_columns("id BIGINT, p STRING, n INT"), partition_by=("p",))
    again = warehouse.create_table(location, anew)
    for action in (query.load_ref, lambda: query.commit(batch(1), (rows(2),)), lambda: start(again, files)):
        unchanged(again, action, "was dropped and created again since the query .* began.*start with a new checkpoint")


def test_the_schema_is_that_of_the_moment() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    assert query.load_ref() is ref
    data = ref.file_io.read(f"{ref.location}/schema/schema-0").replace(
        b'"id" : 0,\n  "fields"', b'"id" : 1,\n  "fields"'
    )
    assert b'"id" : 1,\n  "fields"' in data
    ref.file_io.write(f"{ref.location}/schema/schema-1", data)
    assert query.load_ref().schema.id == 1
    assert run(query, batch(0), rows(3)).schema_id == 1


def alter(ref: TableRef, options: dict[str, str]) -> None:
    """Set options of the table, as somebody else does."""
    warehouse, name = ref.location.removesuffix("/db.db/t"), "db.t"
    changes = [SetOption(key=key, value=value) for key, value in options.items()]
    open_warehouse(warehouse).alter_table(name, changes)


def test_options_that_are_set_while_a_query_runs_hold_from_its_next_batch_on() -> None:
    retention = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
    ref = new_table()
    query = start(ref, MemoryCheckpoint())
    for batch_id in range(5):
        run(query, batch(batch_id), rows(1))
    alter(ref, {**retention, "commit.max-retries": "3"})
    run(query, batch(5), rows(1))
    assert MetadataStore(ref).list_snapshot_ids() == (5, 6)
    assert query.committer.options.max_retries == 3
    alter(ref, {"write-only": "true"})
    for batch_id in range(6, 9):
        run(query, batch(batch_id), rows(1))
    assert MetadataStore(ref).list_snapshot_ids() == (5, 6, 7, 8, 9)


def test_new_options_cost_a_query_nothing_of_what_it_knows_of_its_buckets() -> None:
    ref = new_queue(2)
    log = RecordingFileIO(ref.file_io)
    query = start(on(ref, log), MemoryCheckpoint())
    run(query, batch(0), rows(1, total_buckets=2))
    alter(ref, {"snapshot.num-retained.max": "99"})
    log.forget()
    run(query, batch(1), rows(1, total_buckets=2))
    assert log.paths(Operation.READ, containing="/manifest/") == ()
