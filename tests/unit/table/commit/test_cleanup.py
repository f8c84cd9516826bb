"""Files of work that did not become a snapshot go; files that may be live stay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.table.commit_tables import append, committer, live, new_table, on, partition, rows

from penstock.errors import CommitConflictError, StorageError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import commit_append
from penstock.table.commit.cleanup import commit_or_discard, delete_job_files, delete_new_files
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.ref import TableRef

MERGING = {"manifest.full-compaction-threshold-size": "1 b"}


class Storage(RecordingFileIO):
    """Does something before it creates a snapshot, the first time."""

    def __init__(self, inner: Any, before_put: Callable[[], None]) -> None:
        super().__init__(inner)
        self.before_put = before_put
        self.puts = 0

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self.puts += 1
        if self.puts == 1:
            self.before_put()
        return super().put_if_absent(path, data)


def with_files(ref: TableRef, message: CommitMessage) -> CommitMessage:
    """Put the message's files on storage."""
    for path in paths(ref, message):
        ref.file_io.write(path, b"rows")
    return message


def paths(ref: TableRef, message: CommitMessage) -> list[str]:
    locator = FileLocator.of(ref)
    return [locator.path(message.partition, message.bucket, file) for file in message.new_files]


def are_there(ref: TableRef, message: CommitMessage) -> list[bool]:
    return [ref.file_io.exists(path) for path in paths(ref, message)]


def unnamed_manifests(ref: TableRef) -> set[str]:
    store = MetadataStore(ref)
    names = {status.name for status in ref.file_io.list(ref.layout.manifest_directory)}
    for snapshot in store.snapshots_between():
        names -= {snapshot.base_manifest_list, snapshot.delta_manifest_list}
        names -= {meta.file_name for meta in store.load_manifests(snapshot)}
    return names


def test_a_commit_that_lost_every_race_takes_its_data_files_away() -> None:
    ref = new_table({"commit.max-retries": "0"})
    message = with_files(ref, rows(1, 2))
    storage = Storage(ref.file_io, lambda: commit_append(committer(ref), (rows(1),)) and None)
    with pytest.raises(CommitConflictError):
        commit_or_discard(committer(on(ref, storage)), append(message))
    assert are_there(ref, message) == [False, False]


def test_an_interrupt_before_the_put_takes_the_data_files_away() -> None:
    ref = new_table()
    message = with_files(ref, rows(1))

    class Interrupted(RecordingFileIO):
        def write(self, path: str, data: bytes) -> None:
            super().write(path, data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_or_discard(committer(on(ref, Interrupted(ref.file_io))), append(message))
    assert are_there(ref, message) == [False]
    assert unnamed_manifests(ref) == set()


def test_an_interrupt_during_the_put_leaves_the_data_files() -> None:
    ref = new_table()
    message = with_files(ref, rows(1))

    class Interrupted(RecordingFileIO):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            super().put_if_absent(path, data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_or_discard(committer(on(ref, Interrupted(ref.file_io))), append(message))
    assert are_there(ref, message) == [True]
    assert [entry.file for entry in live(ref)] == list(message.new_files)


def test_an_interrupt_after_the_snapshot_leaves_the_data_files() -> None:
    ref = new_table()
    message = with_files(ref, rows(1))

    class Interrupted(RecordingFileIO):
        def write(self, path: str, data: bytes) -> None:
            if path.endswith("LATEST"):
                raise KeyboardInterrupt
            super().write(path, data)

    with pytest.raises(KeyboardInterrupt):
        commit_or_discard(committer(on(ref, Interrupted(ref.file_io))), append(message))
    assert are_there(ref, message) == [True]


def test_the_latest_snapshot_unreadable_after_a_lost_race_leaves_no_merged_manifest() -> None:
    ref = new_table(MERGING)
    for _ in range(3):
        commit_append(committer(ref), (rows(1),))
    message = with_files(ref, rows(1))

    class Deaf(Storage):
        def read(self, path: str) -> bytes:
            if self.puts and path.endswith("LATEST"):
                raise StorageError("refused", retryable=True)
            return super().read(path)

    storage = Deaf(ref.file_io, lambda: commit_append(committer(ref), (rows(1),)) and None)
    with pytest.raises(StorageError, match="refused"):
        commit_or_discard(committer(on(ref, storage)), append(message))
    assert are_there(ref, message) == [False]
    assert unnamed_manifests(ref) == set()


def test_an_interrupt_while_waiting_for_the_next_race_leaves_nothing() -> None:
    ref = new_table(MERGING)
    for _ in range(3):
        commit_append(committer(ref), (rows(1),))
    message = with_files(ref, rows(1))
    ours = committer(on(ref, Storage(ref.file_io, lambda: commit_append(committer(ref), (rows(1),)) and None)))

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    ours.sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        commit_or_discard(ours, append(message))
    assert are_there(ref, message) == [False]
    assert unnamed_manifests(ref) == set()


def test_a_replay_that_wrote_its_rows_again_deletes_them() -> None:
    ref = new_table()
    first, second = with_files(ref, rows(3)), with_files(ref, rows(3))
    request = append(first, user="query", commit_identifier=4, check_committed=True)
    landed = commit_or_discard(committer(ref), request)
    assert commit_or_discard(committer(ref), replace(request, messages=(second,))) == landed
    assert are_there(ref, second) == [False]
    assert are_there(ref, first) == [True]


def test_a_replay_of_the_very_same_files_deletes_none() -> None:
    ref = new_table()
    message = with_files(ref, rows(3))
    request = append(message, user="query", commit_identifier=4, check_committed=True)
    landed = commit_or_discard(committer(ref), request)
    assert commit_or_discard(committer(ref), request) == landed
    assert are_there(ref, message) == [True]


def test_a_replay_found_by_a_later_commit_deletes_nothing() -> None:
    ref = new_table()
    message = with_files(ref, rows(3))
    request = append(message, user="query", commit_identifier=4, check_committed=True)
    commit_or_discard(committer(ref), request)
    later = commit_or_discard(committer(ref), append(rows(1), user="query", commit_identifier=5))
    assert commit_or_discard(committer(ref), request) == later
    assert are_there(ref, message) == [True]


def test_a_commit_that_lost_to_its_own_retry_finds_its_snapshot() -> None:
    ref = new_table(MERGING)
    for _ in range(3):
        commit_append(committer(ref), (rows(9),))
    first, second = with_files(ref, rows(3)), with_files(ref, rows(3))
    request = append(first, user="query", commit_identifier=4, check_committed=True)

    def twin() -> None:
        commit_or_discard(committer(ref), request)
        commit_append(committer(ref), (rows(1),))

    storage = Storage(ref.file_io, twin)
    found = commit_or_discard(committer(on(ref, storage)), replace(request, messages=(second,)))
    assert found is not None
    assert found.id == 4
    assert sorted(entry.file.row_count for entry in live(ref)) == [1, 3, 9, 9, 9]
    assert (are_there(ref, first), are_there(ref, second)) == ([True], [False])
    assert unnamed_manifests(ref) == set()


def test_the_outputs_of_a_compaction_that_lost_are_deleted_its_inputs_are_not() -> None:
    ref = new_table()
    before, after = with_files(ref, rows(1)), with_files(ref, rows(1))
    message = CommitMessage(
        partition=partition("a"),
        bucket=0,
        total_buckets=-1,
        compact_before=before.new_files,
        compact_after=after.new_files,
    )
    with pytest.raises(CommitConflictError):
        commit_or_discard(
            committer(ref), CommitRequest(commit_user="user", kind=CommitKind.COMPACT, messages=(message,))
        )
    assert (are_there(ref, before), are_there(ref, after)) == ([True], [False])


def test_a_file_that_cannot_be_deleted_keeps_no_other_from_it() -> None:
    ref = new_table()
    message = with_files(ref, rows(1, 2, 3))
    stubborn = paths(ref, message)[1]

    class Stubborn(RecordingFileIO):
        def delete(self, path: str, *, recursive: bool = False) -> bool:
            if path == stubborn:
                raise StorageError("busy")
            return super().delete(path, recursive=recursive)

    delete_new_files(on(ref, Stubborn(ref.file_io)), (message,))
    assert are_there(ref, message) == [False, True, False]


@pytest.mark.parametrize("options", [{}, {"data-file.path-directory": "data"}, {"data-file.prefix": "part-"}])
def test_files_of_a_job_are_found_by_its_id_in_every_partition(options: dict[str, str]) -> None:
    ref = new_table(options)
    prefix = options.get("data-file.prefix", "data-")
    messages = []
    for p in ("a", None, "b/c"):
        files = tuple(
            replace(file, file_name=f"{prefix}{job}-{number}.parquet")
            for number, (job, file) in enumerate(zip(("job1", "job2", "job1"), rows(1, 1, 1).new_files, strict=True))
        )
        messages.append(with_files(ref, replace(rows(1, p=p), new_files=files)))
    delete_job_files(ref, "job1", keep={f"{prefix}job1-2.parquet"})
    assert [are_there(ref, message) for message in messages] == [[False, True, True]] * 3
