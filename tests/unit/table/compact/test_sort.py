"""Sort compaction but for the sorting: what it refuses, and what its commit replaces."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.catalog.changes import AddColumn, SetOption
from penstock.errors import FormatError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.manifest.entry import FileSource
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.compact.job import CompactionResult, plan_only, run_compaction
from penstock.table.compact.sort import OrderStrategy, SortJob, SortOrder, count_ranges, plan_sort, sorted_message
from penstock.table.compact.task import MergedFiles
from penstock.table.partition_scope import scope_of_specs
from penstock.table.read.scan import plan_scan
from penstock.table.store import MetadataStore
from penstock.table.stream.limits import NO_LIMITS
from penstock.table.stream.offset import UNRESOLVED
from penstock.table.stream.scanner import StreamScanner
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.api.table import Table
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage

_NUMBERS = itertools.count()
BY_ID = SortOrder(strategy=OrderStrategy.ORDER, columns=("id",))


def table_of(columns: str = "id BIGINT, name STRING, p STRING", **options: str) -> Table:
    catalog = Catalog(f"memory://sort-{next(_NUMBERS)}")
    catalog.create_database("db")
    return catalog.create_table("db.t", columns, partition_by=["p"], options=options)


def append(table: Table, *ids: int, p: str = "a") -> None:
    table.append(rows(*ids, p=p))


def rows(*ids: int, p: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [str(each) for each in ids], "p": [p] * len(ids)})


def plan(table: Table, order: SortOrder = BY_ID, **arguments: Any) -> SortJob:
    return plan_sort(table._ref, MetadataStore(table._ref), order, **arguments)


def in_order(table: Table, task: CompactTask) -> tuple[CommitMessage, ...]:
    """Write the rows of the task's files, all of a partition, by id and in two messages."""
    assert {entry.file.file_name for entry in live(table)} == {file.file_name for file in task.files}
    ids = sorted(table.to_arrow()["id"].to_pylist())
    return (*write_arrow(table._ref, rows(*ids[:2])), *write_arrow(table._ref, rows(*ids[2:])))


def live(table: Table) -> tuple[Any, ...]:
    store = MetadataStore(table._ref)
    return plan_scan(store, table._ref, store.load_latest_snapshot()).entries


def run(table: Table, meanwhile: Callable[[], object] = lambda: None) -> CompactionResult:
    """Sort a table, and let something happen between the writing and the commit."""
    job = plan(table)

    def execute(tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        for task in tasks:
            message = sorted_message(task, in_order(table, task), job.ref)
            meanwhile()
            yield MergedFiles(task=task, message=message, error=None, seconds=1.0)

    committer = open_committer(job.ref)
    return run_compaction(job.plan, committer, execute, commit_user="sorter", kind=CommitKind.OVERWRITE)


def data_files(table: Table) -> set[str]:
    ref = table._ref
    return {
        status.name
        for directory in ref.file_io.list(ref.location)
        if "=" in directory.name
        for status in ref.file_io.list(f"{directory.path}/bucket-0")
    }


def test_sorted_rows_take_the_place_of_those_that_were_read() -> None:
    table = table_of()
    append(table, 5, 1)
    append(table, 4, 2, 3)
    oldest = min(entry.file.creation_millis for entry in live(table))
    result = run(table)
    assert [snapshot.commit_kind for snapshot in result.snapshots] == [CommitKind.OVERWRITE]
    assert [snapshot.delta_record_count for snapshot in result.snapshots] == [0]
    assert table.to_arrow()["id"].to_pylist() == [1, 2, 3, 4, 5]
    files = [entry.file for entry in live(table)]
    assert [(file.min_sequence_number, file.max_sequence_number) for file in files] == [(0, 1), (2, 4)]
    assert {file.file_source for file in files} == {FileSource.APPEND}
    assert {file.creation_millis for file in files} == {oldest}
    (row,) = result.partitions
    assert (row.files_in, row.files_out, row.skipped) == (2, 2, None)


def test_rows_that_come_meanwhile_are_kept() -> None:
    table = table_of()
    append(table, 5, 1)
    append(table, 4, 2, 3)
    result = run(table, lambda: append(table, 9, 0))
    assert len(result.snapshots) == 1
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 5, 9]
    assert table.files().num_rows == 3
    assert not table.inspect.fsck(all_snapshots=True).findings


@pytest.mark.parametrize("removal", ["truncate", "overwrite"])
def test_where_a_file_is_gone_the_result_is_dropped_and_leaves_no_file(removal: str) -> None:
    table = table_of()
    append(table, 5, 1)
    append(table, 4, 2, 3)

    def replace() -> None:
        if removal == "truncate":
            table.truncate()
        else:
            table.overwrite(rows(7))

    before = data_files(table)
    result = run(table, replace)
    assert result.snapshots == ()
    assert result.partitions[0].skipped == "another commit replaced the files meanwhile"
    assert result.partitions[0].files_out == 0
    assert table.to_arrow()["id"].to_pylist() == ([] if removal == "truncate" else [7])
    assert len(data_files(table) - before) == (0 if removal == "truncate" else 1)


def test_streams_pass_over_what_was_only_sorted() -> None:
    table = table_of()
    append(table, 5, 1)
    store = MetadataStore(table._ref)
    follower = StreamScanner(table._ref, store)
    seen = follower.advance(UNRESOLVED, NO_LIMITS)
    append(table, 4, 2, 3)
    run(table)
    append(table, 6)
    delivered = []
    while (end := follower.advance(seen, NO_LIMITS)) != seen:
        for task in follower.plan_range(seen, end):
            delivered += [file.row_count for split in task.splits for file in split.files]
        seen = end
    assert delivered == [3, 1]


def test_a_plan_takes_every_file_of_the_partitions_in_scope() -> None:
    table = table_of()
    append(table, 1)
    append(table, 2)
    append(table, 3, p="b")
    job = plan(table, scope=scope_of_specs(table._ref, [{"p": "a"}]))
    assert [len(task.files) for task in job.plan.tasks] == [2]
    assert [(row.partition.strip("/"), row.files_in) for row in plan_only(job.plan).partitions] == [("p=a", 2)]
    assert [len(task.files) for task in plan(table).plan.tasks] == [2, 1]


def test_the_table_is_sorted_at_its_latest_columns() -> None:
    """Else a handle from before would lose the values of a column that others have added since."""
    table = table_of()
    catalog = Catalog(table.location.rsplit("/", 2)[0])
    catalog.alter_table("db.t", AddColumn(column="more", type="INT"))
    assert plan(table).ref.schema.field_names == ("id", "name", "p", "more")
    assert "more" not in table.schema.field_names


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), "names no column"),
        (("nam",), "did you mean 'name'"),
        (("id", "p"), "partition column 'p'"),
        (("id", "name", "id"), "'id' twice"),
        (("tags",), "'tags', and values of type ARRAY<STRING> have no order"),
    ],
)
def test_columns_that_cannot_be_sorted_by_are_refused_by_name(columns: tuple[str, ...], message: str) -> None:
    table = table_of("id BIGINT, name STRING, tags ARRAY<STRING>, p STRING")
    with pytest.raises(InvalidOptionError, match=message):
        plan(table, SortOrder(strategy=OrderStrategy.ZORDER, columns=columns))


@pytest.mark.parametrize(
    "type_text", ["TIMESTAMP(9)", "TIMESTAMP_LTZ(7)", "ARRAY<TIMESTAMP(9)>", "MAP<STRING, ROW<t TIMESTAMP(9)>>"]
)
def test_a_column_that_spark_cannot_hold_is_refused_when_it_is_planned(type_text: str) -> None:
    table = table_of(f"id BIGINT, at {type_text}, p STRING")
    with pytest.raises(UnsupportedFeatureError, match=r"column 'at'.*cannot represent exactly"):
        plan(table)
    assert plan(table_of("id BIGINT, at TIMESTAMP(6), p STRING")).plan.partitions == ()


def test_a_hilbert_curve_through_one_column_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="needs two columns"):
        plan(table_of(), SortOrder(strategy=OrderStrategy.HILBERT, columns=("id",)))


def test_a_queue_is_refused_because_it_promises_an_order() -> None:
    table = table_of(bucket="2", **{"bucket-key": "id"})
    with pytest.raises(UnsupportedFeatureError, match="order in which rows were written"):
        plan(table)


def test_tables_that_keep_files_in_levels_are_refused() -> None:
    table = table_of()
    catalog = Catalog(table.location.rsplit("/", 2)[0])
    catalog.alter_table("db.t", SetOption(key="clustering.incremental", value="true"))
    with pytest.raises(UnsupportedFeatureError, match="levels"):
        plan(catalog.load_table("db.t"))


def test_a_sort_that_lost_rows_is_not_committed() -> None:
    table = table_of()
    append(table, 5, 1)
    (task,) = plan(table).plan.tasks
    with pytest.raises(FormatError, match="should hold 2 rows, but 1"):
        sorted_message(task, write_arrow(table._ref, rows(1)), table._ref)
    with pytest.raises(FormatError, match="rows of another one"):
        sorted_message(task, write_arrow(table._ref, rows(1, 5, p="b")), table._ref)


def test_there_are_as_many_ranges_as_files_of_the_target_size() -> None:
    table = table_of()
    append(table, *range(1_000))
    (task,) = plan(table).plan.tasks
    assert count_ranges(task, task.size_bytes) == 1
    assert count_ranges(task, task.size_bytes - 1) == 2
    assert count_ranges(task, task.size_bytes // 10 + 1) == 10
