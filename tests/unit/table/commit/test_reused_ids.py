from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit.interleaved import PausedFileIO, commit_rows, expire_to
from tests.unit.table.commit_tables import append, committer, live, new_table, on, row_counts, rows

from penstock.errors import CommitConflictError, DataLossError
from penstock.format.layout import TableLayout, freed_ids_of
from penstock.format.snapshot import encode_snapshot
from penstock.table.commit.reused_ids import is_built_on_previous, last_kept_id
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.ref import TableRef

SECONDS = 20.0


def roll_back(ref: TableRef, target: int) -> None:
    apply_rollback(MetadataStore(ref), plan_rollback(MetadataStore(ref), snapshot_id=target))


class LatePut:
    """A writer paused before its put on a snapshot that is rolled back; its put comes when the fence has just gone.

    Args:
        meanwhile: what others do after the put, before the writer looks whether it came late; given the event after
            which the writer goes on, and one that says that it has ended.
    """

    def __init__(
        self,
        ref: TableRef,
        meanwhile: Callable[[threading.Event, threading.Event], None],
        *,
        is_rollback_over: bool = False,
    ) -> None:
        self._ref, self._is_rollback_over = ref, is_rollback_over
        self._others = threading.Thread(target=lambda: meanwhile(self.may_go_on, self.is_over))
        self._is_put, self._gone = threading.Event(), threading.Event()
        self.may_go_on, self.is_over = threading.Event(), threading.Event()
        self._rollback = threading.Thread(target=self._roll_back)

    def run(self) -> None:
        """Run everybody to the end."""
        paused = PausedFileIO(self._ref.file_io, "/snapshot-4", before=self._before, after=self._after)
        try:
            committer(on(self._ref, paused)).commit(append(rows(99)))
        finally:
            self.is_over.set()
            for thread in (self._others, self._rollback):
                thread.join()

    def _roll_back(self) -> None:
        if self._is_rollback_over:
            deleted = PausedFileIO(self._ref.file_io, "/snapshot-2", after=self._wait_for_put)
            # The first snapshot is replaced, so its deletion is the last.
        else:
            deleted = PausedFileIO(self._ref.file_io, "/snapshot-4", after=self._wait_for_put)
            deleted.was_paused = True  # by its put, which comes first
            real = deleted.put_if_absent

            def put_if_absent(path: str, data: bytes) -> bool:
                done = real(path, data)
                deleted.was_paused = False
                return done

            deleted.put_if_absent = put_if_absent  # type: ignore[method-assign] # the pause is at the deletion
        roll_back(on(self._ref, deleted), 1)

    def _wait_for_put(self) -> None:
        self._gone.set()
        if self._is_rollback_over:
            self._is_put.wait(SECONDS)
        else:
            self.is_over.wait(SECONDS)

    def _before(self) -> None:
        self._rollback.start()
        assert self._gone.wait(SECONDS)

    def _after(self) -> None:
        self._is_put.set()
        if self._is_rollback_over:
            self._rollback.join()
        self._others.start()
        assert self.may_go_on.wait(SECONDS)


def test_no_commit_builds_on_a_snapshot_put_late_after_a_rollback() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)

    def build(may_go_on: threading.Event, is_over: threading.Event) -> None:
        ours = committer(ref)

        def sleep(_seconds: float) -> None:
            may_go_on.set()
            is_over.wait(0.2)

        ours.sleep = sleep
        try:
            assert ours.commit(append(rows(6))) is not None
        finally:
            may_go_on.set()

    LatePut(ref, build).run()
    assert sorted(row_counts(ref)) == [1, 6, 99], "what was rolled back stays away, and both appends are there"
    commit_rows(ref, 7, 8, 9)
    assert sorted(row_counts(ref)) == [1, 6, 7, 8, 9, 99]


def test_nothing_expires_below_a_snapshot_put_late_after_a_rollback() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)

    def expire(may_go_on: threading.Event, _is_over: threading.Event) -> None:
        try:
            expire_to(ref, 1)
        finally:
            may_go_on.set()

    LatePut(ref, expire, is_rollback_over=True).run()
    assert sorted(row_counts(ref)) == [1, 99]


def put_late(ref: TableRef) -> None:
    """Leave a snapshot on rolled-back ones, as a writer does that is killed right after its put."""
    store = MetadataStore(ref)
    late = store.load_snapshot(4)
    roll_back(ref, 1)
    ref.file_io.put_if_absent(ref.layout.snapshot_path(4), encode_snapshot(late))
    ref.file_io.write(f"{ref.location}/snapshot/LATEST", b"4")


def test_a_late_snapshot_whose_writer_died_fails_commits_until_the_table_is_rolled_back_once_more() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    put_late(ref)
    with pytest.raises(CommitConflictError, match="snapshot 4 holds what was rolled back"):
        commit_rows(ref, 6)
    roll_back(ref, 1)
    commit_rows(ref, 6)
    assert row_counts(ref) == [1, 6]


def test_a_rollback_records_the_ids_that_it_frees_and_none_twice() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    roll_back(ref, 1)
    store = MetadataStore(ref)
    assert store.list_schema_files().freed_ids == (range(3, 6),)
    commit_rows(ref, 4)
    roll_back(ref, 1)
    assert store.list_schema_files().freed_ids == (range(3, 6),)
    assert store.list_schema_ids() == (0,)


@pytest.mark.parametrize("options", [{}, {"manifest.merge-min-count": "2", "manifest.target-file-size": "1 kb"}])
def test_commits_go_on_through_all_freed_ids_and_expire_there(options: dict[str, str]) -> None:
    ref = new_table(options)
    commit_rows(ref, 1, 2, 3, 4, 5)
    roll_back(ref, 1)
    store, counts = MetadataStore(ref), [1]
    for number in range(10, 20):
        commit_rows(ref, number)
        counts.append(number)
        assert sorted(row_counts(ref)) == counts
        latest = store.load_latest_snapshot()
        assert latest is not None
        assert is_built_on_previous(store, latest, store.list_schema_files().freed_ids)
        if number % 3 == 0:
            expire_to(ref, 1)
    assert len(live(ref)) == len(counts)


def test_an_attempt_of_a_commit_lists_the_schemas_once() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    roll_back(ref, 1)
    recording = RecordingFileIO(ref.file_io)
    committer(on(ref, recording)).commit(append(rows(4)))
    assert len(recording.paths(Operation.LIST, containing="/schema")) == 1


@pytest.mark.parametrize(
    "name", ["rolled-back-3", "rolled-back-3-", "rolled-back-x-4", "schema-3-4", "rolled-back-03-4"]
)
def test_other_names_record_nothing(name: str) -> None:
    assert freed_ids_of(name) is None


def test_the_name_of_a_record_reads_back() -> None:
    assert freed_ids_of(TableLayout("x").freed_ids_path(3, 12).rpartition("/")[2]) == range(3, 13)


@pytest.mark.parametrize(
    ("snapshot_id", "freed_ids", "kept"),
    [
        (7, [], 7),
        (1, [range(3, 6)], 1),
        (2, [range(3, 6)], 1),  # the id after the target
        (5, [range(3, 6)], 1),
        (6, [range(3, 6)], 6),
        (9, [range(8, 12), range(4, 8)], 2),  # a rollback from 9 to 6, then one from 6 to 2
    ],
)
def test_snapshots_are_kept_up_to_the_target_of_a_rollback(snapshot_id: int, freed_ids: list[range], kept: int) -> None:
    assert last_kept_id(snapshot_id, freed_ids) == kept


@pytest.mark.parametrize("is_prepared_before", [False, True])
def test_a_batch_that_another_driver_committed_after_a_rollback_is_found(*, is_prepared_before: bool) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    given = {"user": "query", "commit_identifier": 8, "check_committed": True}

    def others() -> None:
        roll_back(ref, 1)
        assert committer(ref).commit(append(rows(8), **given)) is not None
        commit_rows(ref, 4, 5, 6)

    paused = PausedFileIO(ref.file_io, "/snapshot-4", before=others)
    request = append(rows(8), **given, committed_after_id=3 if is_prepared_before else 0)
    found = committer(on(ref, paused)).commit(request)
    assert paused.was_paused
    assert found is not None
    assert (found.commit_user, found.id) == ("query", 2)
    assert sorted(row_counts(ref)) == [1, 4, 5, 6, 8]


@pytest.mark.parametrize("kept", [2, 0])
def test_commits_are_refused_while_the_newest_snapshots_are_lost(kept: int) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    lost = {number: ref.file_io.read(ref.layout.snapshot_path(number)) for number in range(kept + 1, 5)}
    for number in lost:
        ref.file_io.delete(ref.layout.snapshot_path(number))
    with pytest.raises(DataLossError, match=rf"snapshots {kept + 1} to 4 are missing .*restore the file") as raised:
        commit_rows(ref, 5)
    assert not ref.file_io.exists(ref.layout.snapshot_path(kept + 1)), "nothing was committed"

    for number, data in lost.items():
        ref.file_io.write(ref.layout.snapshot_path(number), data)
    commit_rows(ref, 5)
    assert sorted(row_counts(ref)) == [1, 2, 3, 4, 5]

    for number in range(kept + 1, 6):
        ref.file_io.delete(ref.layout.snapshot_path(number))
    with pytest.raises(DataLossError, match="accept the loss"):
        commit_rows(ref, 6)
    if kept:
        assert f"penstock rollback {ref.name} --snapshot-id {kept}" in str(raised.value)
        roll_back(ref, kept)
    else:
        assert str(raised.value).endswith(f"by deleting {ref.layout.latest_hint_path}")
        ref.file_io.delete(ref.layout.latest_hint_path)
    commit_rows(ref, 6)
    assert sorted(row_counts(ref)) == [*range(1, kept + 1), 6]


@pytest.mark.parametrize("hint", [b"2", b"4", b"5"])
def test_hints_that_lag_or_that_a_late_writer_wrote_after_a_rollback_refuse_no_commit(hint: bytes) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4, 5)
    roll_back(ref, 3)
    ref.file_io.write(ref.layout.latest_hint_path, hint)
    commit_rows(ref, 6)
    assert sorted(row_counts(ref)) == [1, 2, 3, 6]
