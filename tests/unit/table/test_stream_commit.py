"""Micro-batches become snapshots once, whatever happens to the process, the checkpoint and the table."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit_tables import append, committer, new_queue, new_table, on, row_counts, rows

from penstock.catalog.changes import SetOption
from penstock.catalog.filesystem import alter_table, create_table, drop_table, load_table, rename_table
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import CheckpointError, CommitUnknownError, NotFoundError, StorageError
from penstock.spec.ddl import parse_columns
from penstock.spec.hint import encode_hint
from penstock.spec.layout import latest_hint_path, schema_path, snapshot_path
from penstock.spec.snapshot import CommitKind
from penstock.table.batch_notes import BatchNotes
from penstock.table.checkpoint_claim import claim_checkpoint
from penstock.table.discard import staging_directory
from penstock.table.locate import FileLocator
from penstock.table.store import MetadataStore
from penstock.table.stream_commit import (
    BATCH_DIGEST,
    Batch,
    StreamCommitter,
    commit_unnoted,
)
from penstock.testing.file_io import FailingFileIO, Fault, Operation, ProcessDiedError, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spec.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

QUERY = "query-1"


def batch(batch_id: int, digest: str | None = None) -> Batch:
    return Batch(commit_user=QUERY, id=batch_id, digest=digest or f"offsets of {batch_id}")


def start(ref: TableRef, files: MemoryCheckpoint, **arguments: Any) -> StreamCommitter:
    """Start the query, or start it again in a new process."""
    notes = BatchNotes(files)
    given = {"base_id": MetadataStore(ref).latest_snapshot_id() or 0, "has_batches": False, "accept_unknown": False}
    is_overwrite = arguments.pop("is_overwrite", False)
    mark = claim_checkpoint(ref, notes, **(given | arguments))
    result = StreamCommitter(ref, notes, mark, is_overwrite=is_overwrite)
    result.committer.sleep = lambda _: None
    return result


def run(query: StreamCommitter, which: Batch, *messages: CommitMessage) -> Snapshot | None:
    """Run one batch as the sink does; None when it was there already."""
    query.load_ref()
    return None if query.begin(which) is None else query.commit(which, messages)


def snapshot_of(ref: TableRef, snapshot_id: int) -> Snapshot:
    return MetadataStore(ref).load_snapshot(snapshot_id)


def metadata_files(ref: TableRef) -> list[str]:
    return [
        status.path
        for directory in ("snapshot", "manifest", "schema")
        for status in ref.file_io.list(f"{ref.location}/{directory}")
    ]


def unchanged(ref: TableRef, action: Callable[[], object], text: str, error: type[Exception] = CheckpointError) -> None:
    """The action is refused with that text, and leaves the table's metadata as they were."""
    before = metadata_files(ref)
    with pytest.raises(error, match=text):
        action()
    assert metadata_files(ref) == before


def test_each_batch_is_one_snapshot_that_says_which() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(3):
        run(query, batch(batch_id), rows(10 + batch_id))
    assert row_counts(ref) == [10, 11, 12]
    for batch_id in range(3):
        snapshot = snapshot_of(ref, batch_id + 1)
        assert (snapshot.commit_user, snapshot.commit_identifier) == (QUERY, batch_id)
        assert snapshot.commit_kind is CommitKind.APPEND
        assert dict(snapshot.properties) == {BATCH_DIGEST: f"offsets of {batch_id}"}


def test_a_batch_without_rows_makes_no_snapshot_unless_that_is_wanted() -> None:
    ref = new_table()
    query = start(ref, MemoryCheckpoint())
    assert run(query, batch(0)) is None
    assert run(query, batch(1), rows()) is None
    assert MetadataStore(ref).latest_snapshot_id() is None
    forced = start(ref.with_options({"commit.force-create-snapshot": "true"}), MemoryCheckpoint())
    assert run(forced, batch(0)).total_record_count == 0


def test_a_batch_without_rows_makes_a_snapshot_where_the_watermark_moves() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    marks = [None, 50, 50, 40, None, 60]
    found = [run(query, replace(batch(number), watermark=mark)) for number, mark in enumerate(marks)]
    assert [None if each is None else (each.id, each.watermark) for each in found] == [
        None,
        (1, 50),
        None,
        None,
        None,
        (2, 60),
    ]
    behind = run(query, replace(batch(6), watermark=55), rows(1))
    assert behind is not None
    assert behind.watermark == 60


def test_snapshots_without_a_batch_tell_which_one_they_are_behind_when_its_own_has_expired() -> None:
    ref = new_table().with_options({"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    files = MemoryCheckpoint()
    query, first = start(ref, files), replace(batch(0), upstream_times='{"a":5}')
    run(query, first, rows(5))
    for _ in range(4):
        query.commit_in_silence(first, None, is_forced=True)
    assert MetadataStore(ref).earliest_snapshot_id() == 4
    again = start(ref, files, has_batches=True)
    assert run(again, batch(0), rows(5)) is None
    assert again.upstream_times == '{"a":5}'
    assert run(start(ref, files, has_batches=True), batch(1), rows(6)).total_record_count == 11
    unchanged(ref, lambda: run(start(ref, files), batch(0), rows(5)), "up to 1 ")
    query = start(ref, files)
    query.commit_in_silence(batch(1), None, is_forced=True)
    unchanged(ref, lambda: run(start(ref, files), batch(1, "others"), rows(5)), "has the query's batches up to 1 ")


def test_what_partitions_came_to_in_a_batch_without_a_snapshot_is_known_after_a_restart() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    run(query, replace(batch(0), upstream_times='{"a":10}'), rows(5))
    assert run(query, replace(batch(1), upstream_times='{"a":50,"b":5}')) is None
    again = start(ref, files, has_batches=True)
    assert again.begin(batch(2)) is not None
    assert again.upstream_times == '{"a":50,"b":5}'


def test_a_replay_in_a_new_process_finds_itself_and_writes_nothing() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(5))
    committer(ref).commit(append(rows(1), user="other"))
    again = start(ref, files)
    assert run(again, batch(0), rows(5)) is None
    assert run(again, batch(1), rows(6)).id == 3
    assert row_counts(ref) == [5, 1, 6]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_process_that_dies_at_any_call_leaves_the_batch_there_once_after_its_replay(fault: Fault) -> None:
    for at in itertools.count(1):
        ref, files = new_table(), MemoryCheckpoint()
        run(start(ref, files), batch(0), rows(5))
        storage = FailingFileIO(ref.file_io, fault, at)
        try:
            run(start(on(ref, storage), files), batch(1), rows(6))
            died = False
        except ProcessDiedError:
            died = True
        again = start(ref, files)
        run(again, batch(1), rows(6))
        run(again, batch(2), rows(7))
        assert row_counts(ref) == [5, 6, 7], f"call {at}"
        if not died:
            break
    assert at > 15


def test_an_unknown_outcome_is_known_after_the_restart() -> None:
    ref, files = new_table(), MemoryCheckpoint()

    class Deaf(RecordingFileIO):
        """Puts snapshots, but says that it failed; then reads nothing any more."""

        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.inner.put_if_absent(path, data)
            raise StorageError("no answer", True)  # noqa: FBT003

        def read(self, path: str) -> bytes:
            if "/snapshot-" in path:
                raise StorageError("no answer", True)  # noqa: FBT003
            return self.inner.read(path)

    query = start(on(ref, Deaf(ref.file_io)), files)
    with pytest.raises(CommitUnknownError):
        run(query, batch(0), rows(5))
    assert run(start(ref, files), batch(0), rows(5)) is None
    assert row_counts(ref) == [5]


def test_a_checkpoint_that_was_set_back_is_refused_by_name_and_the_table_stays() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    run(query, batch(0), rows(1))
    older = MemoryCheckpoint(dict(files.files))
    run(query, batch(1), rows(2))
    oldest = MemoryCheckpoint({"table": files.files["table"]})
    text = (
        r"was set back: it is about to run batch 1 .* the query's batches up to 1 \(snapshot 2\); nothing was written"
    )
    unchanged(ref, lambda: run(start(ref, older), batch(1, "others"), rows(2)), text)
    run(query, batch(2), rows(3))
    for copy in (older, oldest):
        unchanged(ref, lambda copy=copy: run(start(ref, copy), batch(1), rows(2)), r"up to 2 \(snapshot 3\)")
    assert row_counts(ref) == [1, 2, 3]


def test_a_checkpoint_set_back_is_refused_when_the_notes_of_later_batches_are_left_in_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(3):
        run(query, batch(batch_id), rows(10 + batch_id))
    assert run(query, batch(3)) is None  # its note has all the others behind it
    for batch_id, digest in ((0, None), (1, None), (1, "others"), (2, "others")):
        again = start(ref, files, has_batches=True)
        which = batch(batch_id, digest)
        unchanged(ref, lambda again=again, which=which: run(again, which, rows(1)), r"up to 2 \(snapshot 3\)")
    assert row_counts(ref) == [10, 11, 12]


def test_a_checkpoint_set_back_with_the_table_goes_on() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(4):
        run(query, batch(batch_id), rows(10 + batch_id))
    roll_back(ref, 2)
    assert run(start(ref, files), batch(2, "others"), rows(7)).id == 3
    assert row_counts(ref) == [10, 11, 7]


def roll_back(ref: TableRef, snapshot_id: int) -> None:
    store = MetadataStore(ref)
    for later in range(snapshot_id + 1, (store.latest_snapshot_id() or 0) + 1):
        ref.file_io.delete(snapshot_path(ref.location, later))
    ref.file_io.write(latest_hint_path(ref.location), encode_hint(snapshot_id))


def expire(ref: TableRef, up_to: int) -> None:
    for snapshot_id in range(1, up_to + 1):
        ref.file_io.delete(snapshot_path(ref.location, snapshot_id))


def test_a_batch_of_which_nobody_can_tell_is_refused_until_somebody_accepts_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(1))
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    text = "nobody can tell any more whether batch 0 of query query-1 .* 'penstock.accept-unknown-batch' = 'true'"
    unchanged(ref, lambda: run(start(ref, files), batch(0), rows(1)), text)
    unchanged(ref, lambda: run(start(ref, files), batch(1), rows(1)), "Restore the checkpoint")
    accepting = ref.with_options({"penstock.accept-unknown-batch": "true"})
    assert run(start(accepting, files), batch(1), rows(2)).id == 5
    expire(ref, 4)
    # From there on it is known again.
    assert run(start(ref, files), batch(2), rows(3)).id == 6


def test_snapshots_that_expire_while_the_query_runs_are_nothing_new_to_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    run(query, batch(0), rows(1))
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 3)
    assert run(query, batch(1), rows(2)).id == 5


def test_a_checkpoint_belongs_to_one_table() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    other = new_table()
    start(ref, files)
    text = f"belongs to another table, at {ref.location}; use a new checkpoint"
    unchanged(other, lambda: start(other, files, has_batches=True), text)


def test_a_start_that_came_to_no_batch_binds_the_checkpoint_to_no_table() -> None:
    ref, other, files = new_table(), new_table(), MemoryCheckpoint()
    committer(other).commit(append(rows(3), user="other"))
    start(ref, files)
    assert run(start(other, files), batch(0), rows(4)).id == 2
    unchanged(ref, lambda: start(ref, files, has_batches=True), "belongs to another table")
    # A batch that was begun is noted, whatever became of Spark's own files.
    unchanged(ref, lambda: start(ref, files), "belongs to another table")


def test_a_query_goes_on_where_its_table_was_moved_to() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    warehouse = open_warehouse(ref.location.removesuffix("/db.db/t"))
    query = start(ref, files)
    run(query, batch(0), rows(1))
    run(query, batch(1), rows(2))
    rename_table(warehouse, "db.t", "db.new")
    with pytest.raises(NotFoundError, match=r"dropped or moved .* start the query with that where the table is now"):
        query.load_ref()
    moved = load_table(warehouse, "db.new")
    again = start(moved, files, has_batches=True)
    assert run(again, batch(1), rows(2)) is None
    assert run(again, batch(2), rows(3)).id == 3
    assert run(start(moved, files, has_batches=True), batch(3), rows(4)).id == 4


def test_a_copy_of_the_table_is_not_the_table() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(1))
    copy = replace(ref, location=ref.location.removesuffix("t") + "copy")
    copy.file_io.write(schema_path(copy.location, 0), ref.file_io.read(schema_path(ref.location, 0)))
    text = f"another table, at {ref.location}; use a new checkpoint for this one, a copy of that; or, if that was moved"
    unchanged(copy, lambda: start(copy, files, has_batches=True), text)
    elsewhere = replace(files, files=dict(files.files))
    elsewhere.files["table"] = elsewhere.files["table"].replace(b"memory://", b"s3://")
    unchanged(ref, lambda: start(ref, elsewhere, has_batches=True), r"another table, at s3://.*, a copy of that")


def test_a_checkpoint_of_another_sink_is_refused_until_somebody_accepts_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    first = append(rows(4), user=QUERY, commit_identifier=7)
    committer(ref).commit(first)
    unchanged(ref, lambda: start(ref, files, has_batches=True), "a query that wrote somewhere else")
    assert files.files == {}
    query = start(ref, files, has_batches=True, accept_unknown=True)
    # Through another door the same query wrote here.
    assert run(query, batch(7), rows(4)) is None
    assert run(query, batch(8), rows(5)).id == 2
    start(ref, files, has_batches=True)


def test_a_table_that_goes_while_a_query_runs_ends_it() -> None:
    warehouse = open_warehouse("memory://stream-commit-drop")
    definition = TableDefinition(columns=parse_columns("id BIGINT, p STRING"), partition_by=("p",))
    location = "memory://stream-commit-drop/t"
    ref, files = create_table(warehouse, location, definition), MemoryCheckpoint()
    query = start(ref, files)
    run(query, batch(0), rows(1))
    assert query.begin(batch(1)) is not None
    drop_table(warehouse, location)
    text = "it was dropped or moved while a query wrote to it, whose checkpoint is file:/checkpoint"
    with pytest.raises(NotFoundError, match=text):
        query.commit(batch(1), (rows(2),))
    with pytest.raises(NotFoundError, match=text):
        query.load_ref()
    assert not ref.file_io.exists(location)
    anew = TableDefinition(columns=parse_columns("id BIGINT, p STRING, n INT"), partition_by=("p",))
    again = create_table(warehouse, location, anew)
    for action in (query.load_ref, lambda: query.commit(batch(1), (rows(2),)), lambda: start(again, files)):
        unchanged(again, action, "was dropped and made anew since the query .* began.*start with a new checkpoint")


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
    alter_table(open_warehouse(warehouse), name, changes)


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


def test_complete_output_replaces_all_rows_each_time() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files, is_overwrite=True)
    assert run(query, batch(0)) is None
    run(query, batch(1), rows(4), rows(5, p="b"))
    last = run(query, batch(2), rows(6))
    assert (last.commit_kind, last.total_record_count) == (CommitKind.OVERWRITE, 6)
    assert run(start(ref, files, is_overwrite=True), batch(2), rows(6)) is None
    assert run(query, batch(3)).total_record_count == 0
    assert run(query, batch(4)) is None


def test_what_a_killed_attempt_left_where_spark_writes_goes_with_its_replay() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    first = start(ref, files).begin(batch(0))
    staging = staging_directory(ref, first)
    ref.file_io.write(f"{staging}/part-0", b"x")
    second = start(ref, files).begin(batch(0))
    assert second not in (None, first)
    assert not ref.file_io.exists(staging)


def test_what_killed_attempts_left_in_the_buckets_goes_after_the_replays_commit() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(5))
    message = rows(5)
    directory = FileLocator.of(ref).directory(message.partition, message.bucket)
    left = []
    for _ in range(3):
        job = start(ref, files).begin(batch(1))
        left.append(f"{directory}/data-{job}-0000-0.parquet")
        ref.file_io.write(left[-1], b"x")
    other = f"{directory}/data-{'0' * 8}-0000-0.parquet"
    ref.file_io.write(other, b"x")
    query = start(ref, files)
    query.begin(batch(1))
    assert all(ref.file_io.exists(path) for path in left), "the driver that left them might not be dead"
    recording = RecordingFileIO(ref.file_io)
    query.committer.ref = replace(ref, file_io=recording)
    query.commit(batch(1), (message,))
    assert not any(ref.file_io.exists(path) for path in left)
    assert ref.file_io.exists(other)
    query.begin(batch(2))
    query.commit(batch(2), (rows(1),))
    assert recording.paths(Operation.LIST, containing="bucket-") == (directory,), "once, and no other bucket"


def written_by(ref: TableRef, job_id: str, count: int) -> tuple[CommitMessage, str]:
    """A message with one file that bears the job's id, and its path; the file is there."""
    message = rows(count)
    file = replace(message.new_files[0], file_name=f"data-{job_id}-0.parquet")
    message = replace(message, new_files=(file,))
    return message, files_of(ref, message)[0]


def test_files_of_an_attempt_thought_dead_stay_where_it_lands_after_all() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    paused, again = start(ref, files), start(ref, files)
    first, live_path = written_by(ref, paused.begin(batch(0)), 5)
    second, replayed_path = written_by(ref, again.begin(batch(0)), 5)
    assert paused.commit(batch(0), (first,)).id == 1
    assert again.commit(batch(0), (second,)).id == 1
    assert row_counts(ref) == [5]
    assert ref.file_io.exists(live_path)
    assert not ref.file_io.exists(replayed_path)
    third, next_path = written_by(ref, again.begin(batch(1)), 6)
    again.commit(batch(1), (third,))
    assert ref.file_io.exists(live_path)
    assert ref.file_io.exists(next_path)


def test_files_of_a_batch_of_which_nobody_can_tell_stay_when_it_is_accepted() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    message, path = written_by(ref, query.begin(batch(0)), 5)
    query.commit(batch(0), (message,))
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    again = start(ref.with_options({"penstock.accept-unknown-batch": "true"}), files)
    message, second = written_by(ref, again.begin(batch(0)), 5)
    again.commit(batch(0), (message,))
    assert row_counts(ref) == [5, 9, 9, 9, 5]
    assert ref.file_io.exists(path)
    assert ref.file_io.exists(second)


def test_a_rival_that_was_faster_with_the_same_batch_counts_and_with_another_one_does_not() -> None:
    for digest, lands in (("offsets of 0", True), ("others", False)):
        ref, files = new_table(), MemoryCheckpoint()
        query = start(ref, files)
        query.begin(batch(0))
        run(start(ref, MemoryCheckpoint(dict(files.files))), batch(0, digest), rows(5))
        if lands:
            assert query.commit(batch(0), (rows(5),)).id == 1
        else:
            with pytest.raises(CheckpointError, match="set back"):
                query.commit(batch(0), (rows(5),))
        assert row_counts(ref) == [5]


def storage_reads(snapshots: int) -> tuple[int, int]:
    """Calls to storage of a replay and of the batch after it, with that many snapshots in the table."""
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(snapshots):
        run(query, batch(batch_id), rows(1))
    log = RecordingFileIO(ref.file_io)
    again = start(on(ref, log), files)
    log.forget()
    assert run(again, batch(snapshots - 1), rows(1)) is None
    replay = len(log.calls)
    log.forget()
    again.load_ref()
    again.begin(batch(snapshots))
    looks = len(log.paths(Operation.READ, containing="/snapshot-"))
    return replay, looks


def test_a_replay_is_recognised_with_as_many_reads_among_few_snapshots_as_among_many() -> None:
    few, many = storage_reads(10), storage_reads(300)
    assert few == many
    assert few[0] < 15


@pytest.mark.parametrize("buckets", [-1, 2])
def test_each_batch_asks_the_storage_for_as_much_as_the_one_before(buckets: int) -> None:
    ref = new_table() if buckets < 0 else new_queue(buckets)
    log = RecordingFileIO(ref.file_io)
    query = start(on(ref, log), MemoryCheckpoint())
    calls: list[int] = []
    manifests: list[int] = []
    for batch_id in range(240):
        log.forget()
        run(query, batch(batch_id), rows(1, total_buckets=buckets))
        calls.append(len(log.calls))
        manifests.append(len(log.paths(Operation.READ, containing="/manifest/")))
    # Thirty small manifests are merged at a time, so that batches differ within each thirty.
    assert sum(calls[180:]) <= 1.02 * sum(calls[60:120])
    # What it has written itself, a process does not read.
    assert set(manifests) == {0}


def test_a_new_query_on_a_table_of_many_snapshots_looks_at_none_of_them() -> None:
    ref = new_table()
    for _ in range(50):
        committer(ref).commit(append(rows(1), user="other"))
    log = RecordingFileIO(ref.file_io)
    query = start(on(ref, log), MemoryCheckpoint())
    log.forget()
    run(query, batch(0), rows(1))
    assert len(log.paths(Operation.READ, containing="/snapshot-")) <= 2


# Where no checkpoint can be asked


def files_of(ref: TableRef, *messages: CommitMessage) -> list[str]:
    """Make the messages' files; returns their paths."""
    locator = FileLocator.of(ref)
    paths = [
        locator.path(message.partition, message.bucket, file) for message in messages for file in message.new_files
    ]
    for path in paths:
        ref.file_io.write(path, b"x")
    return paths


def test_without_a_checkpoint_a_replay_is_found_and_its_files_go() -> None:
    ref = new_table()
    first = replace(batch(0), digest=None)
    commit_unnoted(ref, first, (rows(3),), is_overwrite=False)
    committer(ref).commit(append(rows(9), user="other"))
    again = rows(3)
    paths = files_of(ref, again)
    assert commit_unnoted(ref, first, (again,), is_overwrite=False).id == 1
    assert not any(map(ref.file_io.exists, paths))
    assert commit_unnoted(ref, replace(first, id=1), (rows(4),), is_overwrite=False).properties == ()
    assert row_counts(ref) == [3, 9, 4]
    late = rows(5)
    paths = files_of(ref, late)
    unchanged(ref, lambda: commit_unnoted(ref, first, (late,), is_overwrite=False), "was set back")
    assert not any(map(ref.file_io.exists, paths))


def test_without_a_checkpoint_a_later_batch_that_may_have_expired_is_refused_and_a_first_one_is_new() -> None:
    ref = new_table()
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    later = replace(batch(1), digest=None)
    unchanged(ref, lambda: commit_unnoted(ref, later, (rows(1),), is_overwrite=False), "nobody can tell")
    assert commit_unnoted(ref, replace(later, id=0), (rows(1),), is_overwrite=False).id == 4
    assert commit_unnoted(ref, later, (rows(2),), is_overwrite=False).id == 5
    assert commit_unnoted(ref, replace(later, id=2), (rows(2),), is_overwrite=True).total_record_count == 2


def test_without_a_checkpoint_a_first_batch_without_rows_makes_the_query_known() -> None:
    ref = new_table()
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    first, second, third = (replace(batch(number), digest=None) for number in range(3))
    for _ in range(2):
        assert commit_unnoted(ref, first, (), is_overwrite=False).id == 4
    assert commit_unnoted(ref, second, (), is_overwrite=False) is None
    committer(ref).commit(append(rows(9), user="other"))
    assert commit_unnoted(ref, third, (rows(7),), is_overwrite=False).id == 6
    assert row_counts(ref) == [9, 9, 9, 9, 7]
