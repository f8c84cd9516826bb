"""Merging real files and committing the result."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.api.catalog import Catalog
from penstock.catalog.changes import AddColumn, SetOption
from penstock.errors import FormatError, SchemaMismatchError
from penstock.format.manifest.entry import FileSource
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.compact.commit import Compacted, commit_compacted
from penstock.table.compact.queue import plan_bucket
from penstock.table.compact.rewrite import rewrite
from penstock.table.compact.task import CompactSizes, CompactTask
from penstock.table.message import CommitMessage
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.api.table import Table
    from penstock.format.manifest.entry import ManifestEntry
    from penstock.table.ref import TableRef

_NUMBERS = itertools.count()


def queue(*appends: list[int], **options: str) -> Table:
    """A queue of two partitions and one bucket, with a commit for each list."""
    catalog = Catalog(f"memory://merges-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "id BIGINT, p STRING", partition_by=["p"], options={"bucket": "1", "bucket-key": "id", **options}
    )
    for ids in appends:
        append(table, ids)
    return table


def append(table: Table, ids: list[int], p: str = "a") -> None:
    writer = table.with_options({"write-only": "true"})  # which merges nothing by itself
    writer.append(pa.table({"id": pa.array(ids, pa.int64()), "p": [p] * len(ids)}))


def ref_of(table: Table) -> TableRef:
    return table._ref


def live(table: Table) -> list[ManifestEntry]:
    store = MetadataStore(ref_of(table))
    latest = store.load_latest_snapshot()
    assert latest is not None
    return list(load_live_entries(store, latest).values())


def tasks_of(table: Table) -> list[CompactTask]:
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in live(table):
        groups.setdefault(entry.partition, []).append(entry)
    return [
        CompactTask(partition=partition, bucket=0, total_buckets=1, files=run)
        for partition, entries in groups.items()
        for run in plan_bucket([entry.file for entry in entries], CompactSizes.of(ref_of(table)))
    ]


def compact(table: Table, tasks: list[CompactTask]) -> Compacted:
    messages = [rewrite(task, ref_of(table)) for task in tasks]
    return commit_compacted(open_committer(ref_of(table)), messages, commit_user="compactor")


def data_files(table: Table) -> set[str]:
    ref = ref_of(table)
    return {
        status.name
        for partition in ref.file_io.list(ref.location)
        if "=" in partition.name
        for status in ref.file_io.list(f"{partition.path}/bucket-0")
    }


def test_merged_rows_keep_their_order_and_their_numbers() -> None:
    table = queue([3, 1], [2], [9, 8], [7], [5])
    before = table.to_arrow()
    result = compact(table, tasks_of(table))
    assert result.snapshot is not None
    assert result.snapshot.commit_kind is CommitKind.COMPACT
    assert result.snapshot.delta_record_count == 0
    assert table.to_arrow().equals(before)
    (entry,) = live(table)
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 6)
    assert entry.file.file_source is FileSource.COMPACT
    append(table, [4])
    assert table.to_arrow()["id"].to_pylist() == [3, 1, 2, 9, 8, 7, 5, 4]


def test_outputs_follow_each_other_in_number() -> None:
    table = queue(*[list(range(n * 1000, n * 1000 + 1000)) for n in range(5)], **{"target-file-row-num": "1500"})
    compact(table, tasks_of(table))
    ranges = [(entry.file.min_sequence_number, entry.file.max_sequence_number) for entry in live(table)]
    assert ranges == [(0, 1499), (1500, 2999), (3000, 4499), (4500, 4999)]
    assert table.to_arrow()["id"].to_pylist() == list(range(5000))


def test_outputs_of_overlapping_numbers_do_not_pass_the_next_file() -> None:
    table = queue(*[[n * 2, n * 2 + 1] for n in range(5)], **{"target-file-row-num": "4"})
    (task,) = tasks_of(table)
    same = tuple(replace(file, min_sequence_number=3, max_sequence_number=4) for file in task.files)
    message = rewrite(replace(task, files=same), ref_of(table))
    assert [(file.min_sequence_number, file.max_sequence_number) for file in message.compact_after] == [(3, 4)] * 3


def test_merged_files_are_as_old_as_their_oldest_input() -> None:
    table = queue([1], [2], [3], [4], [5])
    oldest = min(entry.file.creation_millis or 0 for entry in live(table))
    compact(table, tasks_of(table))
    assert [entry.file.creation_millis for entry in live(table)] == [oldest]


def test_files_of_older_columns_are_evolved() -> None:
    table = queue([1], [2], [3], [4])
    catalog = Catalog(table.location.removesuffix("/db.db/t"))
    table = catalog.alter_table("db.t", AddColumn(column=("note",), type="STRING"))
    writer = table.with_options({"write-only": "true"})
    writer.append(pa.table({"id": pa.array([5], pa.int64()), "p": ["a"], "note": ["new"]}))
    before = table.to_arrow()
    assert compact(table, tasks_of(table)).snapshot is not None
    assert table.to_arrow().equals(before)
    assert [entry.file.schema_id for entry in live(table)] == [1]


def test_a_merge_whose_input_is_gone_is_dropped_and_the_others_land() -> None:
    table = queue([1], [2], [3], [4], [5])
    for number in range(5):
        append(table, [number], p="b")
    tasks = tasks_of(table)
    assert len(tasks) == 2
    messages = [rewrite(task, ref_of(table)) for task in tasks]
    table.drop_partitions({"p": "a"})
    result = commit_compacted(open_committer(ref_of(table)), messages, commit_user="compactor")
    assert result.snapshot is not None
    assert [message.partition for message in result.lost] == [tasks[0].partition]
    assert table.to_arrow()["id"].to_pylist() == list(range(5))
    assert {file.file_name for file in result.lost[0].compact_after}.isdisjoint(data_files(table))


def test_a_merge_is_dropped_whose_rows_would_pass_those_of_a_new_file() -> None:
    table = queue([1], [2], [3], [4], [5])
    (task,) = tasks_of(table)
    message = rewrite(task, ref_of(table))
    append(table, [6])
    (*_, new) = live(table)
    # As a writer leaves it that does not number its rows.
    same = replace(new.file, file_name=f"data-{new.file.file_name}", min_sequence_number=0, max_sequence_number=0)
    directory = f"{table.location}/p=a/bucket-0"
    file_io = ref_of(table).file_io
    file_io.write(f"{directory}/{same.file_name}", file_io.read(f"{directory}/{new.file.file_name}"))
    unnumbered = CommitMessage(partition=new.partition, bucket=0, total_buckets=1, compact_after=(same,))
    open_committer(ref_of(table)).commit(
        CommitRequest(commit_user="other", kind=CommitKind.COMPACT, messages=(unnumbered,))
    )
    before = table.to_arrow()
    result = commit_compacted(open_committer(ref_of(table)), (message,), commit_user="compactor")
    assert result.snapshot is None
    assert result.lost == (message,)
    assert table.to_arrow().equals(before)
    compact(table, tasks_of(table))
    assert table.files().num_rows == 1
    assert table.to_arrow().equals(before)


def test_when_every_merge_loses_the_race_nothing_is_committed() -> None:
    table = queue([1], [2], [3], [4], [5])
    messages = [rewrite(task, ref_of(table)) for task in tasks_of(table)]
    assert compact(table, tasks_of(table)).snapshot is not None
    before = table.latest_snapshot()
    result = commit_compacted(open_committer(ref_of(table)), messages, commit_user="other")
    assert result.snapshot is None
    assert len(result.lost) == 1
    assert table.latest_snapshot() == before
    assert table.to_arrow()["id"].to_pylist() == [1, 2, 3, 4, 5]
    assert not table.inspect.fsck().findings


def test_files_that_hold_other_rows_than_the_table_says_are_not_replaced() -> None:
    table = queue([1], [2], [3], [4], [5])
    (task,) = tasks_of(table)
    files = data_files(table)
    wrong = replace(task, files=(replace(task.files[0], row_count=2), *task.files[1:]))
    with pytest.raises(FormatError, match=r"table \S+: data file .* has 1 rows, while its manifest says 2"):
        rewrite(wrong, ref_of(table))
    assert data_files(table) == files


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_text_that_is_not_utf_8_is_an_error_with_the_names_of_the_files(file_format: str) -> None:
    catalog = Catalog(f"memory://merges-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "v STRING")
    for text in ("a", "b"):
        table.append(pa.table({"v": [text]}))
    first = live(table)[0].file
    damaged = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"v": damaged}), sink)
    [path] = [path for path in _paths(table) if path.endswith(first.file_name)]
    ref_of(table).file_io.write(path, sink.getvalue().to_pybytes())
    catalog.alter_table("db.t", SetOption(key="file.format", value=file_format))
    with pytest.raises(FormatError, match=rf"{first.file_name}.* holds a text that is not UTF-8"):
        catalog.load_table("db.t").compact(strategy="full")
    with pytest.raises(SchemaMismatchError, match="cannot write rows to"):
        catalog.load_table("db.t").append(pa.table({"v": damaged}))


def _paths(table: Table) -> list[str]:
    return [status.path for status in ref_of(table).file_io.list(f"{table.location}/bucket-0")]
