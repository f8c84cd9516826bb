"""Rows go to the data files of their partition and bucket, in order, and what is not handed over goes away."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.table.write_tables import batch_of, message_files, rows_of, stored_files, table_of

from penstock.clocks import local_wall_millis
from penstock.datafile.formats import FORMATS
from penstock.datafile.parquet import writer as parquet_writer
from penstock.datafile.parquet.schema import leaves_of
from penstock.errors import InvalidOptionError, NotFoundError, SchemaMismatchError, StorageError
from penstock.format.manifest.entry import EMPTY_STATS, FileSource
from penstock.format.row.bucket import bucket_of
from penstock.format.row.row import decode_row, encode_row
from penstock.options import WriteOptions
from penstock.table.ref import FileLocator
from penstock.table.write import writer as write
from penstock.table.write.assign import Assigner
from penstock.table.write.writer import TableWriter, new_job_id, write_arrow
from penstock.testing.file_io import FailingFileIO, Fault, Operation, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.datafile.data_format import EncodingChoices
    from penstock.format.layout import FileFormat
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

QUEUE = {"bucket": "4", "bucket-key": "k"}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are split, spilled and joined by the hundred, not by the ten thousand."""
    monkeypatch.setattr(write, "BATCH_ROWS", 150)


def random_columns(rows: int, *, first_id: int = 0, keys: int = 50, partitions: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(rows + first_id)
    return {
        "id": np.arange(first_id, first_id + rows),
        "k": rng.integers(0, keys, rows),
        "p": rng.integers(0, partitions, rows).astype(np.int32),
        "s": [f"row {i}" for i in range(rows)],
    }


def write_all(ref: TableRef, batches: list[pa.RecordBatch], **kwargs: Any) -> tuple[CommitMessage, ...]:
    with TableWriter(ref, **kwargs) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.prepare_commit()


def check_messages(ref: TableRef, batches: list[pa.RecordBatch], messages: tuple[CommitMessage, ...]) -> None:
    """Every row once, where it belongs, in the order it came; groups in the order they were first met."""
    types = {field.name: field.type for field in ref.schema.fields}
    buckets = int(ref.options.get("bucket", "-1"))
    expected: dict[tuple[bytes, int], list[dict[str, Any]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            keys = ref.schema.partition_keys
            partition = encode_row([row[key] for key in keys], [types[key] for key in keys])
            bucket = bucket_of([row["k"]], [types["k"]], buckets) if buckets > 0 else 0
            expected.setdefault((partition, bucket), []).append(row)
    found = {(message.partition, message.bucket): rows_of(ref, message) for message in messages}
    assert list(found) == list(expected)
    assert found == expected
    assert stored_files(ref) == message_files(ref, messages)


def test_rows_of_each_bucket_stay_in_order() -> None:
    ref = table_of(options=QUEUE)
    batches = [batch_of(ref, random_columns(500, first_id=500 * i)) for i in range(5)]
    messages = write_all(ref, batches)
    assert len(messages) == 4
    check_messages(ref, batches, messages)


def test_files_are_described_for_the_commit() -> None:
    ref = table_of(options=QUEUE)
    (message,) = write_all(
        ref, [batch_of(ref, {"id": [5, 6], "k": [1, 1], "p": [0, 0], "s": ["a", None]})], clock_millis=lambda: 12345
    )
    (file,) = message.new_files
    assert message.total_buckets == 4
    assert message.bucket == bucket_of([1], [ref.schema.fields[1].type], 4)
    assert message.partition == encode_row([], [])
    assert re.fullmatch(r"data-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-0\.parquet", file.file_name)
    assert (file.row_count, file.min_sequence_number, file.max_sequence_number) == (2, 0, 1)
    assert (file.schema_id, file.level, file.file_source, file.delete_row_count) == (3, 0, FileSource.APPEND, 0)
    assert file.creation_millis == 12345
    assert file.value_stats_cols is None
    types = [field.type for field in ref.schema.fields]
    assert decode_row(file.value_stats.min_values, types) == (5, 1, 0, "a")
    assert decode_row(file.value_stats.max_values, types) == (6, 1, 0, "a")
    assert file.value_stats.null_counts == (0, 0, 0, 1)


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_format_can_be_written_spilled_and_rolled(file_format: FileFormat) -> None:
    options = {**QUEUE, "file.format": file_format, "write-max-writers-to-spill": "3", "target-file-row-num": "100"}
    ref = table_of(options=options, partition_keys=("p",))
    batches = [batch_of(ref, random_columns(400, first_id=400 * i, partitions=3)) for i in range(4)]
    messages = write_all(ref, batches)
    assert {file.file_name.rpartition(".")[2] for message in messages for file in message.new_files} == {file_format}
    check_messages(ref, batches, messages)


def test_unaware_tables_write_bucket_0_of_minus_1_buckets() -> None:
    ref = table_of()
    batches = [batch_of(ref, random_columns(100))]
    messages = write_all(ref, batches)
    assert [(message.bucket, message.total_buckets) for message in messages] == [(0, -1)]
    check_messages(ref, batches, messages)
    assert stored_files(ref)[0].startswith("bucket-0/data-")


def test_statistics_follow_the_options_of_the_table() -> None:
    ref = table_of(options={"metadata.stats-mode": "none", "fields.id.stats-mode": "full"})
    (message,) = write_all(ref, [batch_of(ref, random_columns(10))])
    assert message.new_files[0].value_stats_cols == ("id",)
    (message,) = write_all(table_of(options={"metadata.stats-mode": "none"}), [batch_of(ref, random_columns(10))])
    assert message.new_files[0].value_stats == EMPTY_STATS
    assert message.new_files[0].value_stats_cols == ()


def test_partitions_get_their_directories_and_null_its_name() -> None:
    ref = table_of(
        {"k": "BIGINT", "dt": "STRING"},
        {**QUEUE, "data-file.path-directory": "data", "data-file.prefix": "x-"},
        partition_keys=("dt",),
    )
    messages = write_all(ref, [batch_of(ref, {"k": [1, 1, 1], "dt": ["a/b", None, "a/b"]})])
    assert sorted({path.rpartition("/")[0] for path in stored_files(ref)}) == [
        "data/dt=__DEFAULT_PARTITION__/bucket-2",
        "data/dt=a%2Fb/bucket-2",
    ]
    assert all("/x-" in path for path in stored_files(ref))
    assert [sum(file.row_count for file in message.new_files) for message in messages] == [2, 1]


def test_files_roll_at_the_target_size_and_keep_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "BATCH_ROWS", 3_000)
    ref = table_of(options={"target-file-size": "16 kb"})
    batches = [batch_of(ref, random_columns(3_000, first_id=3_000 * i)) for i in range(5)]
    messages = write_all(ref, batches)
    check_messages(ref, batches, messages)
    files = messages[0].new_files
    assert 3 <= len(files) <= 15
    assert {file.row_count % 1000 for file in files} == {0}
    stems = {file.file_name.rsplit("-", 1)[0] for file in files}
    assert len(stems) == 1
    assert [file.file_name.removesuffix(".parquet").rsplit("-", 1)[1] for file in files] == [
        str(i) for i in range(len(files))
    ]
    next_number = 0
    for file in files:
        assert file.min_sequence_number == next_number
        next_number = file.max_sequence_number + 1
        assert next_number - file.min_sequence_number == file.row_count
    assert next_number == 15_000


def test_a_large_target_is_hardly_overshot_by_one_large_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "BATCH_ROWS", 1_000_000)
    ref = table_of(
        {"id": "BIGINT"},
        {"target-file-size": "2 mb", "parquet.enable.dictionary": "false", "file.compression": "none"},
    )
    rng = np.random.default_rng(0)
    (message,) = write_all(ref, [batch_of(ref, {"id": rng.integers(0, 2**60, 1_000_000)})])
    sizes = [file.file_size for file in message.new_files]
    assert len(sizes) == 4
    assert max(sizes) <= 1.3 * 2 * 1024 * 1024


def test_files_roll_at_the_target_row_count_exactly() -> None:
    ref = table_of(options={"target-file-row-num": "7"})
    batches = [batch_of(ref, random_columns(rows, first_id=rows)) for rows in (3, 20, 5)]
    messages = write_all(ref, batches)
    assert [file.row_count for file in messages[0].new_files] == [7, 7, 7, 7]
    check_messages(ref, batches, messages)


def test_options_given_win_over_those_of_the_table() -> None:
    ref = table_of()
    (message,) = write_all(ref, [batch_of(ref, random_columns(5))], options=WriteOptions(target_file_rows=2))
    assert [file.row_count for file in message.new_files] == [2, 2, 1]


def test_each_prepare_commit_hands_over_its_own_files() -> None:
    ref = table_of(options=QUEUE)
    with TableWriter(ref) as writer:
        writer.write(batch_of(ref, {"id": [1], "k": [1], "p": [0], "s": ["a"]}))
        (first,) = writer.prepare_commit()
        assert writer.prepare_commit() == ()
        writer.write(batch_of(ref, {"id": [2], "k": [1], "p": [0], "s": ["b"]}))
        (second,) = writer.prepare_commit()
    assert first.new_files[0].file_name != second.new_files[0].file_name
    assert second.new_files[0].min_sequence_number == 0
    assert stored_files(ref) == message_files(ref, [first, second])


def test_small_batches_are_joined_before_they_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "BATCH_ROWS", 1_000)
    ref = table_of(options=QUEUE)
    batches = [
        batch_of(ref, random_columns(rows, first_id=1_000 * rows)) for rows in (10, 70, 0, 1, 2_500, 3, 900, 99, 5)
    ]
    sizes: list[int] = []

    class Spy(Assigner):
        def assign(self, batch: pa.RecordBatch) -> Any:
            sizes.append(batch.num_rows)
            return super().assign(batch)

    monkeypatch.setattr(write, "Assigner", Spy)
    check_messages(ref, batches, write_all(ref, batches))
    assert sizes == [10, 71, 1_000, 1_000, 500, 903, 104]


def test_batches_of_wide_rows_are_cut_by_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "BATCH_BYTES", 50_000)
    ref = table_of(options=QUEUE)
    wide = {**random_columns(100), "s": ["x" * 5_000] * 100}
    batches = [batch_of(ref, wide), *(batch_of(ref, {**random_columns(7), "s": ["y" * 5_000] * 7}) for _ in range(5))]
    sizes: list[int] = []

    class Spy(Assigner):
        def assign(self, batch: pa.RecordBatch) -> Any:
            sizes.append(batch.nbytes)
            return super().assign(batch)

    monkeypatch.setattr(write, "Assigner", Spy)
    check_messages(ref, batches, write_all(ref, batches))
    assert max(sizes) <= 55_000


def test_nothing_written_is_nothing_to_commit() -> None:
    ref = table_of()
    assert write_all(ref, []) == ()
    assert write_all(ref, [batch_of(ref, random_columns(0))]) == ()
    assert stored_files(ref) == []


def test_names_of_all_files_of_a_job_begin_with_its_id() -> None:
    ref = table_of(options={**QUEUE, "file.suffix.include.compression": "true"})
    job_id = new_job_id()
    messages = write_all(ref, [batch_of(ref, random_columns(100))], job_id=job_id)
    names = [file.file_name for message in messages for file in message.new_files]
    assert len(set(names)) == len(names) == 4
    assert all(name.startswith(f"data-{job_id}") for name in names)
    assert all(re.fullmatch(r"data-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-0\.zst\.parquet", name) for name in names)


SPILLING = {
    "spilled": {},
    "lz4": {"spill-compression": "lz4"},
    "uncompressed": {"spill-compression": "none"},
    "written out": {"write-buffer-spillable": "false"},
    "little disk": {"write-buffer-spill.max-disk-size": "100 kb"},
    "in memory": {"write-buffer-size": "64 mb"},
    "all buffered": {"write-buffer-for-append": "true"},
    "none direct": {"write-max-writers-to-spill": "0"},
    "rolling": {"target-file-row-num": "11"},
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", SPILLING)
def test_rows_of_many_groups_come_out_once_and_in_order(name: str, threads: int, tmp_path: Path) -> None:
    options = {**QUEUE, "write-buffer-size": "64 kb", "write-max-writers-to-spill": "10", **SPILLING[name]}
    ref = table_of(options=options, partition_keys=("p",))
    batches = [batch_of(ref, random_columns(400, first_id=400 * i, partitions=25)) for i in range(12)]
    messages = write_all(ref, batches, threads=threads, spill_directory=str(tmp_path))
    assert len(messages) == 100
    check_messages(ref, batches, messages)
    for message in messages:
        first_numbers = [file.min_sequence_number for file in message.new_files]
        assert first_numbers == sorted(first_numbers)
        assert first_numbers[0] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("drained_bytes", [1, 4_000, 40_000])
def test_jobs_of_any_size_keep_the_rows_of_a_group_in_order(
    drained_bytes: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "DRAINED_BYTES", drained_bytes)
    options = {**QUEUE, "write-buffer-size": "64 kb", "write-max-writers-to-spill": "0", "target-file-row-num": "30"}
    ref = table_of(options=options, partition_keys=("p",))
    batches = [batch_of(ref, random_columns(400, first_id=400 * i, partitions=5)) for i in range(12)]
    check_messages(ref, batches, write_all(ref, batches, threads=threads, spill_directory=str(tmp_path)))


def test_files_of_few_rows_share_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    submit = write.KeyedExecutor.submit

    def count(executor: write.KeyedExecutor, key: int, job: Callable[[], None]) -> None:
        keys.append(key)
        submit(executor, key, job)

    monkeypatch.setattr(write.KeyedExecutor, "submit", count)
    ref = table_of(options={**QUEUE, "write-max-writers-to-spill": "0"}, partition_keys=("p",))
    assert len(write_all(ref, [batch_of(ref, random_columns(4_000, partitions=20))], threads=2)) == 80
    assert keys == [0]


def most_open_files(file_io: RecordingFileIO) -> int:
    now = most = 0
    for call in file_io.calls:
        now += (call.operation is Operation.OPEN_OUTPUT) - (call.operation is Operation.STREAM_CLOSE)
        most = max(most, now)
    assert now == 0
    return most


@pytest.mark.parametrize(("writers", "limit"), [("10", 11), ("3", 4), ("0", 1)])
def test_open_files_are_bounded_however_many_groups_come(writers: str, limit: int) -> None:
    file_io = RecordingFileIO(table_of().file_io)
    # A byte of row group: every write goes to the file at once.
    options = {**QUEUE, "write-buffer-size": "64 kb", "write-max-writers-to-spill": writers, "file.block-size": "1 b"}
    ref = table_of(options=options, partition_keys=("p",), file_io=file_io)
    batches = [batch_of(ref, random_columns(4_000, first_id=4_000 * i, partitions=20)) for i in range(4)]
    messages = write_all(ref, batches)
    assert len(messages) == 80
    assert most_open_files(file_io) <= limit


def test_small_rows_open_more_files_than_ten_only_where_no_option_says_how_many() -> None:
    def most_open(options: dict[str, str]) -> int:
        file_io = RecordingFileIO(table_of().file_io)
        ref = table_of(
            options={"bucket": "32", "bucket-key": "k", "file.block-size": "1 b", **options}, file_io=file_io
        )
        assert len(write_all(ref, [batch_of(ref, random_columns(40_000, keys=1000))])) == 32
        return most_open_files(file_io)

    assert most_open({}) == 32
    assert most_open({"write-max-writers-to-spill": "10"}) == 11


def test_small_files_of_a_partition_share_the_choice_of_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []
    judge = parquet_writer.dictionary_columns

    def count(table: pa.Table, leaves: Any) -> list[str]:
        judged.append(table.num_rows)
        return judge(table, leaves)

    monkeypatch.setattr(parquet_writer, "dictionary_columns", count)
    ref = table_of(options={**QUEUE, "bucket": "64"}, partition_keys=("p",))
    columns = random_columns(16_384, keys=64 * 64, partitions=2)
    columns["s"] = [f"p{place % 3}" if part else f"row {place}" for place, part in enumerate(columns["p"].tolist())]
    batches = [batch_of(ref, columns)]

    messages = write_all(ref, batches)

    check_messages(ref, batches, messages)
    assert len(messages) == 128
    # A file in 16 of each partition, for files of 64 to 127 rows, of more, and of fewer.
    assert len(judged) <= 2 * (4 + 4 + 4)
    with_dictionary: dict[bytes, set[bool]] = {}
    for message in messages:
        (file,) = message.new_files
        data = ref.file_io.read(FileLocator.of(ref).path(message.partition, message.bucket, file))
        column = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(3)
        with_dictionary.setdefault(message.partition, set()).add(column.has_dictionary_page)
    assert sorted(map(tuple, with_dictionary.values())) == [(False,), (True,)]


def test_large_files_choose_their_dictionaries_each() -> None:
    leaves = leaves_of(table_of({"n": "BIGINT"}).schema.fields)
    few, many = pa.table({"n": [1] * 20_000}), pa.table({"n": range(20_000)})

    def choose(rows: int) -> list[list[str]]:
        choices: EncodingChoices = {}
        tables = (few, many, few)
        return [list(parquet_writer.shared_dictionary_columns(each.slice(0, rows), leaves, choices)) for each in tables]

    assert choose(20_000) == [["n"], [], ["n"]]
    assert choose(200) == [["n"], ["n"], ["n"]]


def test_no_more_files_than_ten_are_open_where_most_rows_are_buffered_in_any_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write, "BATCH_ROWS", 4_000)
    monkeypatch.setattr(write, "MAX_GROUPS_PER_OPEN_FILE", 1)
    file_io = RecordingFileIO(table_of().file_io)
    ref = table_of(options={"bucket": "80", "bucket-key": "k", "file.block-size": "1 b"}, file_io=file_io)
    assert len(write_all(ref, [batch_of(ref, random_columns(20_000, keys=1000))])) == 80
    assert most_open_files(file_io) == 11


def test_wide_rows_open_ten_files_and_no_more() -> None:
    file_io = RecordingFileIO(table_of().file_io)
    ref = table_of(options={"bucket": "32", "bucket-key": "k", "file.block-size": "1 b"}, file_io=file_io)
    columns = {**random_columns(3_000, keys=1000), "s": ["x" * 3_000] * 3_000}
    assert len(write_all(ref, [batch_of(ref, columns)])) == 32
    assert most_open_files(file_io) == 11


def test_buffered_rows_touch_no_storage_before_the_commit() -> None:
    file_io = RecordingFileIO(table_of().file_io)
    ref = table_of(options={**QUEUE, "write-buffer-for-append": "true"}, file_io=file_io)
    with TableWriter(ref) as writer:
        writer.write(batch_of(ref, random_columns(1_000)))
        assert file_io.calls == ()
        assert len(writer.prepare_commit()) == 4


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keys", [1, 50])
def test_full_buffer_without_spilling_becomes_data_files(keys: int, threads: int) -> None:
    options = {
        **QUEUE,
        "write-buffer-for-append": "true",
        "write-buffer-size": "32 kb",
        "write-buffer-spillable": "false",
    }
    ref = table_of(options=options)
    batches = [batch_of(ref, random_columns(500, first_id=500 * i, keys=keys)) for i in range(6)]
    messages = write_all(ref, batches, threads=threads)
    check_messages(ref, batches, messages)
    assert all(len(message.new_files) > 1 for message in messages)


def test_abort_deletes_open_and_finished_files() -> None:
    ref = table_of(options={**QUEUE, "target-file-row-num": "20"})
    writer = TableWriter(ref)
    writer.write(batch_of(ref, random_columns(500)))
    assert stored_files(ref)
    writer.abort()
    assert stored_files(ref) == []
    writer.abort()


def test_leaving_early_deletes_everything() -> None:
    ref = table_of(options={**QUEUE, "write-max-writers-to-spill": "2", "target-file-row-num": "20"})

    def fail_half_way() -> None:
        with TableWriter(ref) as writer:
            writer.write(batch_of(ref, random_columns(500)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert stored_files(ref) == []


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("fault", "step"),
    [
        (Fault.REFUSED, 2),
        (Fault.ANSWER_LOST, 2),
        *(pytest.param(fault, 1, marks=pytest.mark.slow) for fault in (Fault.REFUSED, Fault.ANSWER_LOST)),
    ],
)
def test_no_failure_of_storage_leaves_a_file(fault: Fault, step: int, threads: int) -> None:
    options = {**QUEUE, "write-max-writers-to-spill": "2", "write-buffer-size": "16 kb", "target-file-row-num": "60"}

    def attempt(at: int) -> FailingFileIO:
        file_io = FailingFileIO(table_of().file_io, fault, at)
        ref = table_of(options=options, file_io=file_io)
        write_all(ref, [batch_of(ref, random_columns(200, first_id=200 * i)) for i in range(2)], threads=threads)
        return file_io

    calls = attempt(0).call_count
    assert calls > 20
    # Every second call is refused, and the answers of the others are lost.
    for at in range(1 if fault is Fault.REFUSED else step, calls + 1, step):
        inner = table_of().file_io
        file_io = FailingFileIO(inner, fault, at)
        ref = table_of(options=options, file_io=file_io)
        batches = [batch_of(ref, random_columns(200, first_id=200 * i)) for i in range(2)]
        failure = None
        try:
            write_all(ref, batches, threads=threads)
        except StorageError as error:
            failure = error
        if failure is None and threads > 1 and file_io.call_count < at:
            continue  # which of two files is judged for its dictionaries differs, and so does the number of pages
        assert "made to fail" in str(failure)
        left = stored_files(table_of(options=options, file_io=inner))
        assert left == [], f"call {at} of {calls}"


def test_a_file_that_cannot_be_deleted_keeps_no_other_from_going() -> None:
    inner = table_of().file_io
    file_io = FailingFileIO(inner)
    ref = table_of(options={**QUEUE, "target-file-row-num": "20"}, file_io=file_io)
    writer = TableWriter(ref)
    writer.write(batch_of(ref, random_columns(400)))
    before = stored_files(ref)
    file_io.fault, file_io.at = Fault.REFUSED, file_io.call_count + 3
    with pytest.raises(StorageError, match="made to fail"):
        writer.abort()
    assert len(before) > 10
    assert len(stored_files(ref)) <= 1


def test_spilled_runs_leave_no_open_files_behind(tmp_path: Path) -> None:
    from pathlib import Path as OsPath

    def open_files() -> int:
        return len(list(OsPath("/proc/self/fd").iterdir()))

    ref = table_of(options={**QUEUE, "write-max-writers-to-spill": "0", "write-buffer-size": "16 kb"})
    before = open_files()
    writer = TableWriter(ref, spill_directory=str(tmp_path))
    for i in range(8):
        writer.write(batch_of(ref, random_columns(200, first_id=i)))
    assert open_files() > before
    assert list(tmp_path.iterdir()) == []
    writer.abort()
    assert open_files() == before


def test_missing_spill_directory_is_a_storage_error_with_the_cure(tmp_path: Path) -> None:
    ref = table_of(options={**QUEUE, "write-max-writers-to-spill": "0", "write-buffer-size": "1 kb"})
    with pytest.raises(StorageError, match="'write-buffer-spillable' = 'false'"):
        write_all(ref, [batch_of(ref, random_columns(200))], spill_directory=str(tmp_path / "gone"))
    assert stored_files(ref) == []


def test_unknown_spill_codec_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="'spill-compression' = 'rle'"):
        TableWriter(table_of(options={"spill-compression": "rle"}))


def test_bucket_key_that_is_no_column_is_refused_by_name() -> None:
    with pytest.raises(NotFoundError, match="'bucket-key' names 'customer'"):
        TableWriter(table_of(options={"bucket": "2", "bucket-key": "customer"}))


def test_write_arrow_takes_tables_batches_and_readers_with_columns_in_any_order() -> None:
    rows = pa.table({"s": ["a", "b"], "p": pa.array([1, 2], pa.int8()), "k": [1, 2], "id": [3, 4]})
    expected = [{"id": 3, "k": 1, "p": 1, "s": "a"}, {"id": 4, "k": 2, "p": 2, "s": "b"}]
    for given in (rows, rows.to_batches()[0], rows.to_reader()):
        ref = table_of()
        (message,) = write_arrow(ref, given)
        assert rows_of(ref, message) == expected
    assert write_arrow(table_of(), rows.slice(0, 0)) == ()


def test_write_arrow_leaves_nothing_when_a_late_row_does_not_fit() -> None:
    ref = table_of({"id": "BIGINT NOT NULL"}, {"target-file-row-num": "50000"})
    rows = pa.table({"id": pa.array([*range(200_000), None])})
    with pytest.raises(SchemaMismatchError, match="row 200000 "):
        write_arrow(ref, rows)
    assert stored_files(ref) == []


def test_creation_time_is_the_local_wall_clock_as_if_it_were_utc() -> None:
    now = dt.datetime.now().astimezone().replace(tzinfo=dt.UTC)
    assert abs(local_wall_millis() - now.timestamp() * 1000) < 60_000
