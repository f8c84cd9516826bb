"""Marks at the end of a batch."""

from __future__ import annotations

import pyarrow as pa
from tests.unit.table.commit_tables import new_table
from tests.unit.table.mark_done.marking import DAILY, DAY, FIRST, MINUTE, SECOND, START, Job, batch, marks

from penstock import Table


def test_a_batch_marks_the_partitions_that_it_wrote_to_where_that_is_asked_for() -> None:
    ref = new_table({"partition.end-input-to-done": "true"})
    Job(ref).commit(FIRST, SECOND)  # a stream's rows
    assert marks(ref) == {}
    job = batch(ref, FIRST)
    assert marks(ref) == {FIRST: (START, START)}
    job.commit(FIRST, identifier=2**63 - 1, at=START + 5)
    assert marks(ref) == {FIRST: (START, START + 5)}
    job.merge(SECOND)
    Table(ref).drop_partitions({"p": SECOND})
    assert list(marks(ref)) == [FIRST]


def test_rows_through_the_handle_are_a_batch() -> None:
    ref = new_table({"partition.end-input-to-done": "true"})
    table = Table(ref)
    table.append(table.arrow_schema.empty_table())
    assert marks(ref) == {}
    table.append(pa.Table.from_pylist([{"id": 1, "p": FIRST}], table.arrow_schema))
    assert list(marks(ref)) == [FIRST]


def test_batches_mark_by_time_too_each_what_those_before_it_wrote() -> None:
    ref = new_table(DAILY)
    batch(ref, FIRST)
    batch(ref, SECOND, now=START + DAY + 10 * MINUTE)
    assert marks(ref) == {}
    at = START + DAY + 16 * MINUTE
    batch(ref, SECOND, now=at)
    assert marks(ref) == {FIRST: (at, at)}
