from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import (
    append,
    committer,
    live,
    new_file,
    new_queue,
    new_table,
    on,
    partition,
    row_counts,
    rows,
)

from penstock.errors import (
    CommitConflictError,
    CommitUnknownError,
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
)
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, encode_snapshot
from penstock.table.actions.changes import commit_append, commit_overwrite, drop_partitions, overwrite_scope, truncate
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.put import search_commits
from penstock.table.message import CommitMessage
from penstock.table.partition_scope import WholeTable, WrittenPartitions, scope_of_specs
from penstock.table.store import MetadataStore
from penstock.testing.file_io import FailingFileIO, Fault, Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


def manifest_names(ref: TableRef) -> set[str]:
    return {status.name for status in ref.file_io.list(ref.layout.manifest_directory)}


def named_manifests(ref: TableRef) -> set[str]:
    """Lists and manifests that some snapshot names."""
    store = MetadataStore(ref)
    names = set()
    for snapshot in store.snapshots_between():
        names |= {snapshot.base_manifest_list, snapshot.delta_manifest_list}
        names |= {meta.file_name for meta in store.load_manifests(snapshot)}
    return names


def test_the_first_commit_makes_snapshot_one_with_both_hints() -> None:
    ref = new_table()
    snapshot = committer(ref).commit(append(rows(10), rows(5, p="b")))
    assert snapshot is not None
    assert (snapshot.id, snapshot.total_record_count, snapshot.delta_record_count) == (1, 15, 15)
    assert snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
    assert MetadataStore(ref).load_latest_snapshot() == snapshot
    assert MetadataStore(ref).earliest_snapshot_id() == 1
    assert row_counts(ref) == [10, 5]
    assert MetadataStore(ref).load_base_manifests(snapshot) == ()


def test_list_sizes_in_the_snapshot_are_exact() -> None:
    ref = new_table()
    for _ in range(3):
        snapshot = committer(ref).commit(append(rows(1)))
    assert snapshot is not None
    sizes = {status.name: status.size for status in ref.file_io.list(ref.layout.manifest_directory)}
    assert sizes[snapshot.base_manifest_list] == snapshot.base_manifest_list_size
    assert sizes[snapshot.delta_manifest_list] == snapshot.delta_manifest_list_size
    for meta in MetadataStore(ref).load_manifests(snapshot):
        assert sizes[meta.file_name] == meta.file_size


def test_a_commit_without_rows_makes_no_snapshot_and_leaves_no_file() -> None:
    ref = new_table()
    assert commit_append(committer(ref), ()) is None
    assert not ref.file_io.list(ref.layout.manifest_directory)
    assert MetadataStore(ref).load_latest_snapshot() is None


def test_an_empty_commit_can_be_asked_for() -> None:
    ref = new_table({"snapshot.ignore-empty-commit": "false"})
    snapshot = commit_append(committer(ref), ())
    assert snapshot is not None
    assert (snapshot.delta_record_count, MetadataStore(ref).load_delta(snapshot)) == (0, ())


def test_sequence_numbers_of_a_bucket_follow_the_order_of_the_messages() -> None:
    ref = new_queue()
    messages = (
        rows(3, 2, bucket=0, total_buckets=2),
        rows(4, bucket=1, total_buckets=2),
        rows(5, bucket=0, total_buckets=2),
    )
    committer(ref).commit(append(*messages))
    committer(ref).commit(append(rows(1, bucket=0, total_buckets=2)))  # a committer that knows nothing yet
    ranges = [(e.bucket, e.file.min_sequence_number, e.file.max_sequence_number) for e in live(ref)]
    assert ranges == [(0, 0, 2), (0, 3, 4), (1, 0, 3), (0, 5, 9), (0, 10, 10)]


def test_unaware_files_keep_the_numbers_of_their_writer() -> None:
    ref = new_table()
    for _ in range(2):
        committer(ref).commit(append(rows(3)))
    assert [(e.file.min_sequence_number, e.file.max_sequence_number) for e in live(ref)] == [(0, 2), (0, 2)]


def test_a_committer_reads_only_the_deltas_of_others_since_its_last_commit() -> None:
    ref = new_queue(1)
    ours, other = committer(ref), committer(ref)
    for _ in range(5):
        ours.commit(append(rows(2, total_buckets=1)))
    other.commit(append(rows(7, total_buckets=1)))
    recording = RecordingFileIO(ref.file_io)
    ours.store.file_io = recording
    ours.commit(append(rows(1, total_buckets=1)))
    assert [e.file.min_sequence_number for e in live(ref)] == [0, 2, 4, 6, 8, 10, 17]
    assert len(recording.paths(Operation.READ, containing="/manifest/manifest-list-")) <= 2
    reads = recording.paths(Operation.READ, containing="/manifest/manifest-")
    assert len([path for path in reads if "manifest-list" not in path]) == 1


def test_sequence_numbers_go_on_rightly_after_a_rollback_under_a_living_committer() -> None:
    ref = new_queue(1)
    ours = committer(ref)
    for count in (2, 3, 4):
        ours.commit(append(rows(count, total_buckets=1)))
    for snapshot_id in (3, 2):
        ref.file_io.delete(ref.layout.snapshot_path(snapshot_id))
    ref.file_io.write(ref.layout.latest_hint_path, b"1")
    ours.commit(append(rows(5, total_buckets=1)))
    assert [(e.file.min_sequence_number, e.file.max_sequence_number) for e in live(ref)] == [(0, 1), (2, 6)]


def test_another_bucket_count_is_refused_until_the_partition_is_overwritten() -> None:
    ref = new_queue(2)
    commit_append(committer(ref), (rows(3, bucket=1, total_buckets=2),))
    with pytest.raises(InvalidOptionError, match=r"db\.t.*2 buckets.*'bucket' is now 4.*overwrite"):
        commit_append(committer(ref), (rows(3, bucket=3, total_buckets=4),))
    commit_append(committer(ref), (rows(1, p="other", bucket=3, total_buckets=4),))
    commit_overwrite(committer(ref), (rows(5, bucket=3, total_buckets=4),), WrittenPartitions())
    commit_append(committer(ref), (rows(6, bucket=3, total_buckets=4),))
    assert [(e.total_buckets, e.file.row_count) for e in live(ref)] == [(4, 1), (4, 5), (4, 6)]


def test_commits_that_lost_the_race_start_again_and_lose_nothing() -> None:
    ref = new_queue(1)
    first, second = committer(ref), committer(ref)
    barrier = threading.Barrier(2)

    def work(mine: object) -> None:
        for _ in range(40):
            barrier.wait()
            mine.commit(append(rows(1, total_buckets=1)))  # type: ignore[attr-defined]

    threads = [threading.Thread(target=work, args=(each,)) for each in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = live(ref)
    assert len(entries) == 80
    assert sorted(e.file.min_sequence_number for e in entries) == list(range(80))
    assert MetadataStore(ref).list_snapshot_ids() == tuple(range(1, 81))


def test_a_commit_that_loses_every_race_says_so_and_leaves_nothing() -> None:
    ref = new_table({"commit.max-retries": "3"})

    class Rivals(RecordingFileIO):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            commit_append(committer(ref), (rows(2),), commit_user="rival")
            return self.inner.put_if_absent(path, data)

    with pytest.raises(CommitConflictError, match=r"db\.t: other writers won 4 races.*commit\.max-retries"):
        committer(on(ref, Rivals(ref.file_io))).commit(append(rows(1)))
    assert row_counts(ref) == [2, 2, 2, 2]
    assert manifest_names(ref) == named_manifests(ref)


def test_a_put_whose_answer_was_lost_is_found_to_have_succeeded() -> None:
    ref = new_table()
    probe = new_table()
    counting = FailingFileIO(probe.file_io)
    committer(on(probe, counting)).commit(append(rows(1)))
    at = [call.operation for call in counting.calls].index(Operation.PUT_IF_ABSENT) + 1
    failing = FailingFileIO(ref.file_io, Fault.ANSWER_LOST, at)
    snapshot = committer(on(ref, failing)).commit(append(rows(9)))
    assert snapshot is not None
    assert MetadataStore(ref).list_snapshot_ids() == (1,)
    assert row_counts(ref) == [9]


def test_a_storage_that_never_answers_leaves_the_outcome_unknown_and_deletes_nothing() -> None:
    ref = new_table()

    class Mute(RecordingFileIO):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.inner.put_if_absent(path, data)
            raise StorageError("no answer", retryable=True)

        def read(self, path: str) -> bytes:
            if "/snapshot/snapshot-" in path:
                raise StorageError("no answer", retryable=True)
            return self.inner.read(path)

    with pytest.raises(CommitUnknownError, match=r"db\.t: the storage did not say whether snapshot 1"):
        committer(on(ref, Mute(ref.file_io))).commit(append(rows(4)))
    assert row_counts(ref) == [4]


def test_an_interrupt_during_the_put_deletes_nothing() -> None:
    ref = new_table()

    class Interrupted(RecordingFileIO):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.inner.put_if_absent(path, data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        committer(on(ref, Interrupted(ref.file_io))).commit(append(rows(4)))
    assert row_counts(ref) == [4]


def test_a_hint_that_cannot_be_written_fails_no_commit() -> None:
    ref = new_table()

    class NoHints(RecordingFileIO):
        def write(self, path: str, data: bytes) -> None:
            if path.endswith(("LATEST", "EARLIEST")):
                raise StorageError("read-only")
            self.inner.write(path, data)

    for _ in range(2):
        committer(on(ref, NoHints(ref.file_io))).commit(append(rows(4)))
    assert row_counts(ref) == [4, 4]


def test_a_replayed_identifier_finds_its_snapshot() -> None:
    ref = new_table()
    request = append(rows(3), user="query", commit_identifier=7, check_committed=True)
    first = committer(ref).commit(request)
    committer(ref).commit(append(rows(1), user="somebody"))
    again = committer(ref).commit(replace(request, messages=(rows(3),)))
    assert again == first
    assert row_counts(ref) == [3, 1]
    later = committer(ref).commit(append(rows(2), user="query", commit_identifier=8, check_committed=True))
    assert later is not None
    assert later.id == 3
    assert search_commits(MetadataStore(ref), lambda _: True, latest_id=3, after_id=3).last is None


def test_the_watermark_never_goes_back() -> None:
    ref = new_table()
    marks = []
    for watermark in (None, 500, 100, None, 600):
        snapshot = committer(ref).commit(append(rows(1), watermark=watermark))
        assert snapshot is not None
        marks.append(snapshot.watermark)
    assert marks == [None, 500, 500, 500, 600]


def test_manifests_are_merged_so_that_their_number_stays_bounded() -> None:
    ref = new_table({"manifest.merge-min-count": "5"})
    ours = committer(ref)
    counts = []
    for _ in range(40):
        snapshot = ours.commit(append(rows(1)))
        assert snapshot is not None
        counts.append(len(MetadataStore(ref).load_manifests(snapshot)))
    assert max(counts) <= 6
    assert row_counts(ref) == [1] * 40
    assert manifest_names(ref) == named_manifests(ref)


def test_a_full_merge_drops_the_deletes_and_keeps_the_live_files() -> None:
    ref = new_table({"manifest.full-compaction-threshold-size": "1 b", "manifest.merge-min-count": "100"})
    for number in range(6):
        committer(ref).commit(append(rows(number + 1, p=str(number % 2))))
    drop_partitions(committer(ref), [{"p": "0"}])
    snapshot = committer(ref).commit(append(rows(50)))
    assert snapshot is not None
    store = MetadataStore(ref)
    assert sum(meta.num_deleted_files for meta in store.load_base_manifests(snapshot)) == 0
    assert row_counts(ref) == [2, 4, 6, 50]


def test_large_manifests_are_split_at_their_target_size() -> None:
    ref = new_table({"manifest.target-file-size": "3 kb"})
    snapshot = committer(ref).commit(append(rows(*[1] * 3_000)))
    assert snapshot is not None
    manifests = MetadataStore(ref).load_delta_manifests(snapshot)
    assert len(manifests) >= 2
    assert min(meta.file_size for meta in manifests) >= 3 * 1024
    assert row_counts(ref) == [1] * 3_000


def test_a_table_of_many_files_is_not_rewritten_by_every_commit() -> None:
    ref = new_table({"manifest.target-file-size": "40 kb", "manifest.full-compaction-threshold-size": "80 kb"})
    files = tuple(replace(new_file(1), file_name=f"data-{uuid.uuid4()}-0.parquet") for _ in range(4_000))
    committer(ref).commit(append(replace(rows(), new_files=files)))
    store = MetadataStore(ref)
    for _ in range(3):
        snapshot = committer(ref).commit(append(rows(1)))
    assert snapshot is not None
    large = {meta.file_name for meta in store.load_manifests(snapshot) if meta.file_size >= 40 * 1024}
    assert large
    for _ in range(20):
        snapshot = committer(ref).commit(append(rows(1)))
    assert snapshot is not None
    assert large <= {meta.file_name for meta in store.load_manifests(snapshot)}


def test_overwrites_replace_just_what_is_in_their_scope() -> None:
    ref = new_table()
    commit_append(committer(ref), tuple(rows(i + 1, p=p) for i, p in enumerate(("a", "b", None, ""))))
    snapshot = commit_overwrite(committer(ref), (rows(10, p="a"),), overwrite_scope(ref, None))
    assert snapshot is not None
    assert (snapshot.commit_kind, snapshot.delta_record_count) == (CommitKind.OVERWRITE, 9)
    assert sorted(row_counts(ref)) == [2, 3, 4, 10]
    commit_overwrite(committer(ref), (rows(20, p=None),), overwrite_scope(ref, {"p": None}))
    assert sorted(row_counts(ref)) == [2, 4, 10, 20]  # '' shares the directory of NULL, and stays
    commit_overwrite(committer(ref), (), overwrite_scope(ref, {"p": "b"}))
    assert sorted(row_counts(ref)) == [4, 10, 20]
    commit_overwrite(committer(ref), (rows(1),), overwrite_scope(ref, {}))
    assert row_counts(ref) == [1]


def test_a_dynamic_overwrite_without_rows_does_nothing_a_static_one_empties() -> None:
    ref = new_table()
    commit_append(committer(ref), (rows(5),))
    assert commit_overwrite(committer(ref), (), WrittenPartitions()) is None
    static = ref.with_options({"dynamic-partition-overwrite": "false"})
    emptied = commit_overwrite(committer(static), (), overwrite_scope(static, None))
    assert emptied is not None
    assert emptied.delta_record_count == -5
    again = truncate(committer(ref))
    assert again is not None
    assert (again.delta_record_count, again.total_record_count) == (0, 0)


def test_rows_outside_the_overwritten_partition_are_refused() -> None:
    ref = new_table()
    commit_append(committer(ref), (rows(5),))
    with pytest.raises(InvalidOptionError, match=r"db\.t: rows of the overwrite are outside"):
        commit_overwrite(committer(ref), (rows(5, p="b"),), scope_of_specs(ref, [{"p": "a"}]))
    assert row_counts(ref) == [5]


def test_partitions_to_drop_must_be_named_rightly() -> None:
    ref = new_table()
    for specs in ([], [{}]):
        with pytest.raises(InvalidOptionError, match="truncate"):
            drop_partitions(committer(ref), specs)
    with pytest.raises(InvalidOptionError, match=r"'id' is not a partition column; partition columns are p"):
        drop_partitions(committer(ref), [{"id": 1}])


def test_an_overwrite_is_recomputed_after_a_lost_race() -> None:
    ref = new_table()
    commit_append(committer(ref), (rows(1),))

    class Late(RecordingFileIO):
        is_done = False

        def put_if_absent(self, path: str, data: bytes) -> bool:
            if not self.is_done:
                self.is_done = True
                commit_append(committer(ref), (rows(2), rows(3, p="b")))
            return self.inner.put_if_absent(path, data)

    commit_overwrite(committer(on(ref, Late(ref.file_io))), (rows(9),), WrittenPartitions())
    assert sorted(row_counts(ref)) == [3, 9]


def test_a_compaction_replaces_its_files_once() -> None:
    ref = new_table()
    commit_append(committer(ref), (rows(1), rows(2)))
    before = tuple(entry.file for entry in live(ref))
    request = CommitRequest(
        commit_user="compactor",
        kind=CommitKind.COMPACT,
        messages=(
            CommitMessage(
                partition=partition("a"),
                bucket=0,
                total_buckets=-1,
                compact_before=before,
                compact_after=(new_file(3),),
            ),
        ),
    )
    snapshot = committer(ref).commit(request)
    assert snapshot is not None
    assert (snapshot.delta_record_count, row_counts(ref)) == (0, [3])
    with pytest.raises(CommitConflictError, match=r"was to be replaced, but another commit"):
        committer(ref).commit(request)
    kinds = [entry.kind for entry in MetadataStore(ref).load_delta(snapshot)]
    assert kinds == [FileKind.DELETE, FileKind.DELETE, FileKind.ADD]


def test_a_file_cannot_be_added_twice() -> None:
    ref = new_table()
    message = rows(1)
    commit_append(committer(ref), (message,))
    again = CommitMessage(partition=partition("a"), bucket=0, total_buckets=-1, compact_after=message.new_files)
    with pytest.raises(CommitConflictError, match="in the table already"):
        committer(ref).commit(CommitRequest(commit_user="user", kind=CommitKind.COMPACT, messages=(again,)))
    with pytest.raises(CommitConflictError, match="is given twice in one commit"):
        commit_overwrite(committer(ref), (message,), scope_of_specs(ref, [{"p": "a"}]))


def test_indexes_of_other_kinds_refuse_an_overwrite_and_are_carried_forward(empty_index_manifest: bytes) -> None:
    ref = new_table()
    first = commit_append(committer(ref), (rows(1),))
    assert first is not None
    ref.file_io.write(ref.layout.manifest_path("index-manifest-x"), empty_index_manifest)
    path = ref.layout.snapshot_path(1)
    ref.file_io.write(path, encode_snapshot(replace(first, index_manifest="index-manifest-x")))
    second = commit_append(committer(ref), (rows(2),))
    assert second is not None
    assert second.index_manifest == "index-manifest-x"
    with pytest.raises(UnsupportedFeatureError, match="index files"):
        commit_overwrite(committer(ref), (), WholeTable())
