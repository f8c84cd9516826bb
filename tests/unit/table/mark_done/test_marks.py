"""Partitions that are marked manually."""

from __future__ import annotations

import time
from datetime import date

import pyarrow as pa
import pytest
from tests.unit.table.commit_tables import new_table
from tests.unit.table.mark_done.marking import FIRST, SECOND, Job, marks

from penstock import Catalog, Table
from penstock.errors import InvalidOptionError, NotFoundError


def test_named_partitions_are_marked_whether_due_or_not() -> None:
    ref = new_table()
    Job(ref).commit(FIRST, SECOND)
    table = Table(ref)
    would = table.maintenance.mark_partitions_done([{"p": SECOND}], dry_run=True)
    assert [(each.directory, each.rows) for each in would] == [(f"p={SECOND}", 1)]
    assert marks(ref) == {}
    (done,) = table.maintenance.mark_partitions_done([{"p": SECOND}])
    assert marks(ref) == {SECOND: (done.creation_millis, done.modification_millis)}
    assert abs(done.creation_millis - time.time() * 1000) < 60_000
    time.sleep(0.002)
    (again,) = table.maintenance.mark_partitions_done([{"p": SECOND}, {"p": SECOND}])
    assert again.creation_millis == done.creation_millis < again.modification_millis


def test_a_day_without_rows_can_be_marked() -> None:
    ref = new_table()
    (done,) = Table(ref).maintenance.mark_partitions_done([{"p": FIRST}])
    assert (done.directory, done.rows) == (f"p={FIRST}", 0)
    assert list(marks(ref)) == [FIRST]


@pytest.mark.parametrize(
    ("specs", "error", "says"),
    [
        ([], InvalidOptionError, "name the partitions to mark, such as"),
        ([{}], InvalidOptionError, "name the partitions to mark"),
        ([{"q": "1"}], InvalidOptionError, "'q' is not a partition column; partition columns are p"),
    ],
)
def test_wrong_specs_are_refused(specs: list[dict[str, object]], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Table(new_table()).maintenance.mark_partitions_done(specs)


def test_due_partitions_are_marked_without_being_named() -> None:
    ref = new_table()
    Job(ref).commit("2001-01-01", "2999-01-01")
    table = Table(ref)
    with pytest.raises(InvalidOptionError, match=r"'partition.time-interval' determines"):
        table.maintenance.mark_partitions_done()
    table = table.with_options({"partition.idle-time-to-done": "1 s", "partition.time-interval": "1 d"})
    ledger = ref.layout.done_ledger_path
    assert [each.directory for each in table.maintenance.mark_partitions_done(dry_run=True)] == ["p=2001-01-01"]
    assert (marks(ref, "2001-01-01"), ref.file_io.exists(ledger)) == ({}, False)
    assert [each.directory for each in table.maintenance.mark_partitions_done()] == ["p=2001-01-01"]
    assert table.maintenance.mark_partitions_done() == ()


def test_specs_of_several_columns_and_types() -> None:
    catalog = Catalog("memory://marks")
    catalog.create_database("db", if_not_exists=True)
    table = catalog.create_table("db.t", "k INT, d DATE, h INT", partition_by=["d", "h"])
    values = [{"k": 1, "d": date(2026, 1, 1), "h": hour} for hour in (5, 6)]
    table.append(pa.Table.from_pylist(values, table.arrow_schema))

    def directories(*specs: dict[str, object]) -> list[str]:
        return [each.directory for each in table.maintenance.mark_partitions_done(specs)]

    assert directories({"d": "2026-01-01"}) == ["d=20454/h=5", "d=20454/h=6"]
    assert directories({"d": "2026-01-01", "h": "6"}, {"h": 5}) == ["d=20454/h=5", "d=20454/h=6"]
    assert directories({"d": "2026-01-02", "h": 7}) == ["d=20455/h=7"]
    assert directories({"d": None, "h": 7}) == ["d=__DEFAULT_PARTITION__/h=7"]
    with pytest.raises(NotFoundError, match=r"no partition agrees with .*; to mark one without rows, name all of d, h"):
        directories({"d": "2026-01-02"})
    with pytest.raises(InvalidOptionError, match="'h' = 'noon': expected a"):
        directories({"d": "2026-01-01", "h": "noon"})
