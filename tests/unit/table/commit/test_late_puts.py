from __future__ import annotations

import pytest
from tests.unit.table.commit.interleaved import PausedFileIO, commit_rows, expire_to
from tests.unit.table.commit_tables import append, committer, new_table, on, row_counts, rows

from penstock.errors import CommitUnknownError, NotFoundError
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO


def ids(*, of: object) -> tuple[int, ...]:
    return MetadataStore(of).list_snapshot_ids()  # type: ignore[arg-type] # a TableRef, whose import is for types only


def test_a_put_after_its_id_has_expired_is_taken_back_and_made_again() -> None:
    ref = new_table()
    commit_rows(ref, 1)

    def others() -> None:
        commit_rows(ref, 2, 3, 4)
        expire_to(ref, 1)

    paused = PausedFileIO(ref.file_io, "/snapshot-2", before=others)
    snapshot = committer(on(ref, paused)).commit(append(rows(99)))
    assert paused.was_paused
    assert snapshot is not None
    assert snapshot.id == 5
    assert row_counts(ref) == [1, 2, 3, 4, 99]
    assert ids(of=ref) == (4, 5)


def test_a_late_put_is_seen_also_where_the_next_snapshot_of_the_others_is_there() -> None:
    ref = new_table()
    commit_rows(ref, 1)

    def others() -> None:
        commit_rows(ref, 2, 3, 4)
        expire_to(ref, 2)

    paused = PausedFileIO(ref.file_io, "/snapshot-2", before=others)
    assert committer(on(ref, paused)).commit(append(rows(99))) is not None
    assert row_counts(ref) == [1, 2, 3, 4, 99]
    assert ids(of=ref) == (3, 4, 5)


def test_a_late_put_of_the_first_snapshot_of_a_table_is_seen() -> None:
    ref = new_table()

    def others() -> None:
        commit_rows(ref, 1, 2, 3)
        expire_to(ref, 1)

    paused = PausedFileIO(ref.file_io, "/snapshot-1", before=others)
    assert committer(on(ref, paused)).commit(append(rows(99))) is not None
    assert row_counts(ref) == [1, 2, 3, 99]


@pytest.mark.parametrize("options", [{}, {"manifest.merge-min-count": "2", "manifest.target-file-size": "1 kb"}])
def test_a_put_whose_base_expires_right_after_it_stays(options: dict[str, str]) -> None:
    ref = new_table(options)
    commit_rows(ref, 1)

    def others() -> None:
        commit_rows(ref, 2, 3)
        expire_to(ref, 3)  # the base alone goes

    paused = PausedFileIO(ref.file_io, "/snapshot-2", after=others)
    snapshot = committer(on(ref, paused)).commit(append(rows(99)))
    assert snapshot is not None
    assert snapshot.id == 2
    assert sorted(row_counts(ref)) == [1, 2, 3, 99]


def test_a_put_that_is_the_only_snapshot_left_stays() -> None:
    ref = new_table()
    commit_rows(ref, 1)
    paused = PausedFileIO(ref.file_io, "/snapshot-2", after=lambda: expire_to(ref, 1))
    snapshot = committer(on(ref, paused)).commit(append(rows(99)))
    assert snapshot is not None
    assert (snapshot.id, row_counts(ref)) == (2, [1, 99])


def test_a_put_that_has_expired_itself_is_neither_acknowledged_nor_undone() -> None:
    ref = new_table()
    commit_rows(ref, 1)

    def others() -> None:
        commit_rows(ref, 2, 3)
        expire_to(ref, 1)

    paused = PausedFileIO(ref.file_io, "/snapshot-2", after=others)
    with pytest.raises(CommitUnknownError):
        committer(on(ref, paused)).commit(append(rows(99)))
    assert row_counts(ref) == [1, 99, 2, 3]


def test_a_put_into_a_table_that_was_dropped_meanwhile_leaves_nothing() -> None:
    ref = new_table()
    commit_rows(ref, 1)
    paused = PausedFileIO(ref.file_io, "/snapshot-2", before=lambda: ref.file_io.delete(ref.location, recursive=True))
    with pytest.raises(NotFoundError, match="dropped"):
        committer(on(ref, paused)).commit(append(rows(99)))
    assert not ref.file_io.list(f"{ref.location}/snapshot")


def test_a_commit_looks_at_its_base_once_more() -> None:
    ref = new_table()
    commit_rows(ref, 1)
    recording = RecordingFileIO(ref.file_io)
    assert committer(on(ref, recording)).commit(append(rows(2))) is not None
    assert recording.paths(Operation.READ).count(ref.layout.snapshot_path(1)) == 2
    assert not recording.paths(Operation.LIST, containing="/snapshot")


def test_an_append_whose_base_expires_while_it_is_read_is_made_on_the_next_one() -> None:
    ref = new_table()
    commit_rows(ref, 1)

    class Slow(RecordingFileIO):
        """Others go on before the base's manifest list is read."""

        was_slow = False

        def read(self, path: str) -> bytes:
            if "/manifest-list-" in path and not self.was_slow:
                self.was_slow = True
                commit_rows(ref, 2, 3)
                expire_to(ref, 1)
            return super().read(path)

    slow = Slow(ref.file_io)
    assert committer(on(ref, slow)).commit(append(rows(99))) is not None
    assert slow.was_slow
    assert row_counts(ref) == [1, 2, 3, 99]
