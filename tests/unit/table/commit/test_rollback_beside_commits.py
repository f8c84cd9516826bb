from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit.interleaved import PausedFileIO, commit_rows
from tests.unit.table.commit_tables import append, committer, new_table, on, row_counts, rows

from penstock.errors import CommitConflictError
from penstock.table.actions.changes import truncate
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


def roll_back(ref: TableRef, through: PausedFileIO, target: int) -> None:
    """Roll back through a storage."""
    plan = plan_rollback(MetadataStore(ref), snapshot_id=target)
    apply_rollback(MetadataStore(on(ref, through)), plan)
    assert through.was_paused


def check_goes_on(ref: TableRef) -> None:
    """Commits after it add to what is there, across all ids that were used before."""
    found = row_counts(ref)
    for number in range(100, 110):
        commit_rows(ref, number)
        found.append(number)
        assert row_counts(ref) == found


@pytest.mark.parametrize("snapshot_id", [3, 4, 5])
def test_an_append_while_snapshots_are_deleted_lands_on_the_target(snapshot_id: int) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4, 5)
    paused = PausedFileIO(ref.file_io, f"/snapshot-{snapshot_id}", before=lambda: commit_rows(ref, 6))
    roll_back(ref, paused, 2)
    assert row_counts(ref) == [1, 2, 6]
    check_goes_on(ref)


def test_an_append_before_the_rollback_has_its_place_is_rolled_back_too() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    paused = PausedFileIO(ref.file_io, "/snapshot-4", before=lambda: commit_rows(ref, 6))
    roll_back(ref, paused, 2)
    assert MetadataStore(ref).list_snapshot_ids() == (1, 2)
    check_goes_on(ref)


def test_an_append_that_was_about_to_be_put_is_made_again_on_the_target() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    paused = PausedFileIO(
        ref.file_io,
        "/snapshot-4",
        before=lambda: apply_rollback(MetadataStore(ref), plan_rollback(MetadataStore(ref), snapshot_id=1)),
    )
    snapshot = committer(on(ref, paused)).commit(append(rows(9)))
    assert snapshot is not None
    assert (snapshot.id, row_counts(ref)) == (2, [1, 9])
    assert MetadataStore(ref).list_snapshot_ids() == (1, 2)
    check_goes_on(ref)


def test_an_append_in_the_last_moment_keeps_its_rows() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    # The fence is snapshot 4: it has been found to be the latest, and is deleted now.
    paused = PausedFileIO(ref.file_io, "/snapshot-4", before=lambda: None)
    real = paused.delete

    def delete(path: str, *, recursive: bool = False) -> bool:
        if path.endswith("/snapshot-4"):
            commit_rows(ref, 6)
        return real(path, recursive=recursive)

    paused.delete = delete  # type: ignore[method-assign] # the pause is at the deletion, not at the put
    roll_back(ref, paused, 2)
    assert row_counts(ref) == [1, 2, 6]
    check_goes_on(ref)


def test_a_writer_waits_for_the_end_of_a_rollback_and_not_for_ever() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    waits: list[float] = []

    def commit_beside() -> None:
        ours = committer(ref)
        ours.sleep = waits.append
        assert ours.commit(append(rows(6))) is not None

    roll_back(ref, PausedFileIO(ref.file_io, "/snapshot-3", before=commit_beside), 2)
    assert sum(waits) == pytest.approx(5.0)
    commit_beside()
    assert sum(waits) == pytest.approx(5.0)
    assert row_counts(ref) == [1, 2, 6, 6]


@pytest.mark.parametrize("snapshot_id", [4])
def test_two_rollbacks_at_once_leave_what_the_later_one_wants(snapshot_id: int) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4, 5)
    other = MetadataStore(ref)
    paused = PausedFileIO(
        ref.file_io,
        f"/snapshot-{snapshot_id}",
        before=lambda: apply_rollback(other, plan_rollback(other, snapshot_id=1)),
    )
    plan = plan_rollback(MetadataStore(ref), snapshot_id=2)
    with pytest.raises(CommitConflictError, match="another rollback ran at the same time"):
        apply_rollback(MetadataStore(on(ref, paused)), plan)
    assert row_counts(ref) == [1]
    check_goes_on(ref)


def test_an_overwrite_beside_a_rollback_replaces_what_the_target_holds() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    paused = PausedFileIO(ref.file_io, "/snapshot-3", before=lambda: truncate(committer(ref)))
    roll_back(ref, paused, 2)
    assert row_counts(ref) == []
    check_goes_on(ref)


def test_writers_that_win_every_race_stop_a_rollback_that_has_changed_nothing() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2)

    class Busy(RecordingFileIO):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            return False if "/snapshot-" in path else super().put_if_absent(path, data)

    busy = Busy(ref.file_io)
    plan = plan_rollback(MetadataStore(ref), snapshot_id=1)
    with pytest.raises(CommitConflictError, match="nothing was changed"):
        apply_rollback(MetadataStore(on(ref, busy)), plan)
    assert row_counts(ref) == [1, 2]
    assert not busy.paths(Operation.DELETE, containing="/snapshot-")
    assert ref.file_io.read(ref.layout.latest_hint_path) == b"2"
