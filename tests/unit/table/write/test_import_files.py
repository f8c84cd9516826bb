"""Files of another writer become data files of a table, or leave no trace in it."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.table.write_tables import message_files, rows_of, stored_files, table_of

from penstock.errors import FormatError, SchemaMismatchError, StorageError
from penstock.format.manifest.stats import decode_stats
from penstock.io.memory import MemoryFileIO
from penstock.table.write.imports import import_parquet_files
from penstock.testing.file_io import FailingFileIO, Fault, Operation

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

STAGING = ".staging"
JOB_ID = "01234567-89ab-cdef-"


def put(ref: TableRef, name: str, columns: dict[str, list[object]]) -> str:
    path = f"{ref.location}/{STAGING}/{name}"
    fields = [pa.field(field.name, pa.int64()) for field in ref.schema.fields]
    with ref.file_io.open_output(path) as output:
        pq.write_table(pa.table(columns, schema=pa.schema(fields)), output)
    return path


def two_files(ref: TableRef) -> list[str]:
    return [put(ref, "b", {"id": [1, 2], "n": [None, 5]}), put(ref, "a", {"id": [3], "n": [7]})]


COLUMNS = {"id": "BIGINT NOT NULL", "n": "BIGINT"}


def test_files_keep_their_order_and_are_described_for_the_commit() -> None:
    ref = table_of(COLUMNS)
    (message,) = import_parquet_files(ref, two_files(ref), job_id=JOB_ID, row_count=3)
    assert rows_of(ref, message) == [{"id": 1, "n": None}, {"id": 2, "n": 5}, {"id": 3, "n": 7}]
    assert (message.bucket, message.total_buckets) == (0, -1)
    assert [(file.min_sequence_number, file.max_sequence_number) for file in message.new_files] == [(0, 1), (2, 2)]
    assert all(file.file_name.startswith(f"data-{JOB_ID}") for file in message.new_files)
    assert stored_files(ref) == message_files(ref, [message])
    first = message.new_files[0]
    assert first.schema_id == ref.schema.id
    stats = decode_stats(first.value_stats, first.value_stats_cols, ref.schema.fields)
    assert (stats["n"].min, stats["n"].max, stats["n"].null_count) == (5, 5, 1)


def test_columns_that_have_values_and_no_dictionary_are_noted() -> None:
    ref = table_of({"id": "BIGINT NOT NULL", "n": "BIGINT", "m": "BIGINT"})
    path = f"{ref.location}/{STAGING}/a"
    table = pa.table({"id": [1, 2], "n": [1, 1], "m": pa.nulls(2, pa.int64())})
    with ref.file_io.open_output(path) as output:
        pq.write_table(table, output, use_dictionary=["n"], row_group_size=1)
    noted: list[frozenset[str]] = []
    import_parquet_files(
        ref,
        [path],
        job_id=JOB_ID,
        row_count=2,
        note=lambda files: noted.extend(each.without_dictionary for each in files),
    )
    assert noted == [frozenset({"id"})]


def test_files_without_rows_stay_where_they_are() -> None:
    ref = table_of(COLUMNS)
    empty = put(ref, "empty", {"id": [], "n": []})
    assert import_parquet_files(ref, [empty], job_id=JOB_ID, row_count=0) == ()
    (message,) = import_parquet_files(ref, [empty, *two_files(ref)], job_id=JOB_ID, row_count=3)
    assert len(message.new_files) == 2
    assert stored_files(ref, f"{ref.location}/{STAGING}") == [f"{STAGING}/empty"]


def test_null_in_a_not_null_column_is_refused_before_a_file_moves() -> None:
    ref = table_of(COLUMNS)
    paths = [*two_files(ref), put(ref, "c", {"id": [4, None], "n": [1, 2]})]
    with pytest.raises(SchemaMismatchError, match="'id' is NOT NULL, but 1 rows"):
        import_parquet_files(ref, paths, job_id=JOB_ID, row_count=5)
    assert all(name.startswith(STAGING) for name in stored_files(ref))


@pytest.mark.parametrize("row_count", [0, 2, 4])
def test_another_number_of_rows_than_was_written_is_refused_before_a_file_moves(row_count: int) -> None:
    ref = table_of(COLUMNS)
    with pytest.raises(StorageError, match=f"{row_count} rows were written .* files with 3 rows"):
        import_parquet_files(ref, two_files(ref), job_id=JOB_ID, row_count=row_count)
    with pytest.raises(StorageError, match="files with 0 rows"):
        import_parquet_files(ref, [], job_id=JOB_ID, row_count=row_count or 1)
    assert all(name.startswith(STAGING) for name in stored_files(ref))


def test_files_of_other_columns_are_refused() -> None:
    ref = table_of(COLUMNS)
    path = put(table_of({"id": "BIGINT", "m": "BIGINT"}, file_io=ref.file_io), "x", {"id": [1], "m": [1]})
    with pytest.raises(FormatError, match="id, m"):
        import_parquet_files(ref, [path], job_id=JOB_ID, row_count=1)


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.ANSWER_LOST])
def test_a_rename_that_fails_leaves_no_data_file(fault: Fault) -> None:
    for number in count(1):
        storage = FailingFileIO(MemoryFileIO(f"adopt-{fault}-{number}"), None)
        ref = table_of(COLUMNS, file_io=storage)
        paths = two_files(ref)
        storage.fault, storage.at = fault, storage.call_count + number
        try:
            import_parquet_files(ref, paths, job_id=JOB_ID, row_count=3)
        except StorageError:
            assert not [name for name in stored_files(ref) if name.startswith("bucket-")]
            continue
        finally:
            storage.inner.discard()  # type: ignore[attr-defined] # the store of this round
        assert len(storage.paths(Operation.RENAME_FILE)) == 2
        assert number > 4
        break


def test_files_go_to_the_partitions_that_their_statistics_show() -> None:
    ref = table_of(COLUMNS, partition_keys=("n",))
    paths = [
        put(ref, "a", {"id": [1, 2], "n": [7, 7]}),
        put(ref, "b", {"id": [3], "n": [None]}),
        put(ref, "c", {"id": [4], "n": [7]}),
    ]
    messages = import_parquet_files(ref, paths, job_id=JOB_ID, row_count=4)
    assert messages is not None
    assert [rows_of(ref, message) for message in messages] == [
        [{"id": 1, "n": 7}, {"id": 2, "n": 7}, {"id": 4, "n": 7}],
        [{"id": 3, "n": None}],
    ]
    assert stored_files(ref) == message_files(ref, messages)


@pytest.mark.parametrize("values", [[7, 8], [7, None]])
def test_a_file_of_two_partitions_is_not_moved(values: list[object]) -> None:
    ref = table_of(COLUMNS, partition_keys=("n",))
    paths = [put(ref, "a", {"id": [1], "n": [7]}), put(ref, "b", {"id": [2, 3], "n": values})]
    assert import_parquet_files(ref, paths, job_id=JOB_ID, row_count=3) is None
    assert all(name.startswith(STAGING) for name in stored_files(ref))
