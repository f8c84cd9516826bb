"""Merging the files of one commit before it."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.errors import StorageError
from penstock.format.manifest.entry import DataFileMeta
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.compact.job import merge_in_threads, merge_one
from penstock.table.compact.task import CompactSizes, MergedFiles
from penstock.table.compact.write import merge_before_commit, pack_new
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.api.table import Table
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_NUMBERS = itertools.count()


def table_of(**options: str) -> Table:
    catalog = Catalog(f"memory://precommit-{next(_NUMBERS)}")
    catalog.create_database("db")
    return catalog.create_table("db.t", "id BIGINT, p STRING", partition_by=["p"], options=options)


def write(ref: TableRef, *tasks: list[int], p: str = "a") -> tuple[CommitMessage, ...]:
    """What several tasks hand over."""
    return tuple(
        message
        for ids in tasks
        for message in write_arrow(ref, pa.table({"id": pa.array(ids, pa.int64()), "p": [p] * len(ids)}))
    )


def run(ref: TableRef, tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
    return merge_in_threads(tasks, partial(merge_one, ref=ref), threads=2, ref=ref)


def files_on_storage(ref: TableRef) -> list[str]:
    return [status.name for status in ref.file_io.list(f"{ref.location}/p=a/bucket-0")]


@pytest.mark.parametrize("options", [{}, {"bucket": "1", "bucket-key": "id"}])
def test_readers_never_see_the_small_files(options: dict[str, str]) -> None:
    table = table_of(**options)
    ref = table._ref
    messages = merge_before_commit(write(ref, [3], [1, 2], [9]), ref, partial(run, ref))
    snapshot = commit_append(open_committer(ref), messages)
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.APPEND
    assert table.snapshots().num_rows == 1
    assert table.files().num_rows == 1
    assert len(files_on_storage(ref)) == 1
    assert table.to_arrow()["id"].to_pylist() == [3, 1, 2, 9]
    more = merge_before_commit(write(ref, [7], [8]), ref, partial(run, ref))
    commit_append(open_committer(ref), more)
    assert table.to_arrow()["id"].to_pylist() == [3, 1, 2, 9, 7, 8]
    assert not table.inspect.fsck().findings


def test_a_lone_file_passes_as_it_is() -> None:
    ref = table_of()._ref
    messages = (*write(ref, [1]), *write(ref, [2], p="b"))
    assert merge_before_commit(messages, ref, partial(run, ref)) is messages


def test_when_a_merge_fails_nothing_is_left() -> None:
    ref = table_of()._ref

    def failing(tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        yield MergedFiles(task=tasks[0], message=None, error=StorageError("disk full"), seconds=0.0)

    with pytest.raises(StorageError, match="disk full"):
        merge_before_commit(write(ref, [1], [2]), ref, failing)
    assert files_on_storage(ref) == []


def test_files_are_packed_to_the_target_size_and_large_ones_pass() -> None:
    def file(size: int) -> DataFileMeta:
        return DataFileMeta(
            file_name=f"data-{next(_NUMBERS)}-0.parquet",
            file_size=size,
            row_count=1,
            min_sequence_number=0,
            max_sequence_number=0,
            schema_id=0,
        )

    sizes = CompactSizes(
        target_bytes=100, small_bytes=70, min_files=5, max_files=None, open_file_cost_bytes=4, round_files=9
    )
    files = [file(size) for size in (60, 60, 10, 80, 20, 20)]
    packed = [[f.file_size for f in part] for part in pack_new(files, sizes, in_order=False)]
    assert packed == [[60, 60], [10, 20, 20]]
    packed = [[f.file_size for f in part] for part in pack_new(files, sizes, in_order=True)]
    assert packed == [[60, 60], [20, 20]]
