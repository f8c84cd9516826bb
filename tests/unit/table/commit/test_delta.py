"""Sequence numbers stay dense whatever a committer saw, missed, or failed to read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, live, new_file, new_queue, on, partition, rows

from penstock.errors import StorageError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import commit_append, truncate
from penstock.table.commit.delta import BucketIndex, CommitRequest
from penstock.table.message import CommitMessage
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


class Refusing(RecordingFileIO):
    """Refuses to read the manifests (lists excepted) while it is told to."""

    is_refusing = False

    def read(self, path: str) -> bytes:
        if self.is_refusing and "/manifest/manifest-" in path and "manifest-list" not in path:
            raise StorageError("refused", retryable=True)
        return super().read(path)


def ranges(ref: TableRef, bucket: int = 0) -> list[tuple[int, int]]:
    files = [entry.file for entry in live(ref) if entry.bucket == bucket]
    return sorted((file.min_sequence_number, file.max_sequence_number) for file in files)


def add(ref: TableRef, count: int, p: str = "a") -> None:
    commit_append(committer(ref), (rows(count, p=p, total_buckets=1),))


def test_numbers_go_on_after_a_partition_could_not_be_read() -> None:
    ref = new_queue(1)
    add(ref, 5)
    storage = Refusing(ref.file_io)
    ours = committer(on(ref, storage))
    storage.is_refusing = True
    with pytest.raises(StorageError):
        ours.commit(append(rows(2, total_buckets=1)))
    storage.is_refusing = False
    ours.commit(append(rows(2, total_buckets=1)))
    assert ranges(ref) == [(0, 4), (5, 6)]


def test_what_was_read_of_a_delta_is_forgotten_when_the_next_could_not_be_read_and_history_changed() -> None:
    ref = new_queue(1)
    storage = Refusing(ref.file_io)
    ours = committer(on(ref, storage))
    ours.commit(append(rows(1, total_buckets=1)))
    add(ref, 100)
    ours.store.load_delta(ours.store.load_snapshot(2))  # this one is in the cache, the next is not
    add(ref, 100)
    storage.is_refusing = True
    with pytest.raises(StorageError):
        ours.commit(append(rows(2, total_buckets=1)))
    storage.is_refusing = False
    for snapshot_id in (3, 2):
        ref.file_io.delete(ref.layout.snapshot_path(snapshot_id))
    ref.file_io.write(ref.layout.latest_hint_path, b"1")
    ours.commit(append(rows(2, total_buckets=1)))
    assert ranges(ref) == [(0, 0), (1, 2)]


def test_an_empty_commit_after_those_of_others_hides_none_of_their_numbers() -> None:
    ref = new_queue(1)
    ours = committer(ref)
    ours.commit(append(rows(2, total_buckets=1)))
    add(ref, 7)
    ours.commit(append(commit_empty=True))
    ours.commit(append(rows(1, total_buckets=1)))
    assert ranges(ref) == [(0, 1), (2, 8), (9, 9)]


def test_a_compaction_after_commits_of_others_hides_none_of_their_numbers() -> None:
    ref = new_queue(1)
    ours = committer(ref)
    ours.commit(append(rows(2, 3, total_buckets=1)))
    before = tuple(entry.file for entry in live(ref))
    add(ref, 7)
    message = CommitMessage(
        partition=partition("a"), bucket=0, total_buckets=1, compact_before=before, compact_after=(new_file(5),)
    )
    ours.commit(CommitRequest(commit_user="user", kind=CommitKind.COMPACT, messages=(message,)))
    ours.commit(append(rows(1, total_buckets=1)))
    assert ranges(ref) == [(0, 4), (5, 11), (12, 12)]


@pytest.mark.parametrize("by_us", [True, False])
def test_numbers_start_again_after_everything_was_removed(*, by_us: bool) -> None:
    ref = new_queue(1)
    ours = committer(ref)
    ours.commit(append(rows(2, total_buckets=1)))
    truncate(ours if by_us else committer(ref))
    ours.commit(append(rows(3, total_buckets=1)))
    assert ranges(ref) == [(0, 2)]


def test_partitions_and_buckets_are_numbered_by_themselves() -> None:
    ref = new_queue(2)
    ours = committer(ref)
    for _ in range(2):
        ours.commit(append(rows(2, bucket=0, total_buckets=2), rows(3, bucket=1, total_buckets=2)))
        ours.commit(append(rows(5, p="b", bucket=1, total_buckets=2)))
    assert ranges(ref, bucket=0) == [(0, 1), (2, 3)]
    assert ranges(ref, bucket=1) == [(0, 2), (0, 4), (3, 5), (5, 9)]


def test_far_behind_the_partitions_are_listed_again_instead_of_every_delta() -> None:
    ref = new_queue(1)
    ours = committer(ref)
    first = ours.commit(append(rows(2, total_buckets=1)))
    assert first is not None
    looked: list[frozenset[bytes]] = []

    def load_live(_: object, partitions: frozenset[bytes]) -> tuple[()]:
        looked.append(partitions)
        return ()

    class Unread:
        """Metadata of which nothing may be read."""

        def find_snapshot(self, _snapshot_id: int) -> None:
            raise AssertionError("reads snapshots")

        def load_delta(self, _snapshot: object) -> tuple[()]:
            raise AssertionError("reads deltas")

    index = BucketIndex(snapshot=first, partitions={partition("a")}, next_numbers={(partition("a"), 0): 2})
    index.advance(
        replace(first, id=1_000),
        frozenset({partition("a")}),
        source=Unread(),
        load_live=load_live,
        load_numbers=lambda _snapshot, wanted: ((), wanted),
    )
    assert looked == [frozenset({partition("a")})]
    assert index.next_numbers == {}
