from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit.interleaved import PausedFileIO, commit_rows, expire_to
from tests.unit.table.commit_tables import new_table, on, row_counts

from penstock.errors import NotFoundError
from penstock.table.commit.expiring import announce_expiration
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.expire.snapshots import SnapshotExpirer
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


class WritePausedFileIO(RecordingFileIO):
    """Lets others go on right before a file is written for the first time."""

    def __init__(self, ref: TableRef, path: str, others: object) -> None:
        super().__init__(ref.file_io)
        self._path, self._others = path, others

    def write(self, path: str, data: bytes) -> None:
        if path == self._path and self._others is not None:
            others, self._others = self._others, None
            others()  # type: ignore[operator]
        super().write(path, data)


def roll_back(ref: TableRef, target: int) -> None:
    apply_rollback(MetadataStore(ref), plan_rollback(MetadataStore(ref), snapshot_id=target))


def check_whole(ref: TableRef, *counts: int) -> None:
    """The table reads as these rows, and goes on."""
    assert row_counts(ref) == [*counts]
    commit_rows(ref, 50, 51, 52, 53)
    expire_to(ref, 1)
    assert row_counts(ref) == [*counts, 50, 51, 52, 53]


def test_a_rollback_while_an_expiration_has_found_what_goes_leaves_the_target_whole() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    expire_to(on(ref, WritePausedFileIO(ref, ref.layout.expiring_path, lambda: roll_back(ref, 2))), 1)
    check_whole(ref, 1, 2)


@pytest.mark.parametrize("name", ["snapshot-3", "snapshot-4", "snapshot-5"])
def test_an_expiration_that_began_before_a_rollback_deletes_nothing_while_that_runs(name: str) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    store = MetadataStore(ref)
    expirer = SnapshotExpirer(ref, store)
    rules = expirer.rules(retain_min=1, retain_max=1, older_than=4_000_000_000_000)
    paused = PausedFileIO(ref.file_io, f"/{name}", before=lambda: expirer.run(rules, latest_id=4))
    apply_rollback(MetadataStore(on(ref, paused)), plan_rollback(MetadataStore(ref), snapshot_id=2))
    assert store.load_expiring_end() <= 2, "what was announced for the rolled back snapshots holds no more"
    check_whole(ref, 1, 2)


def test_a_snapshot_that_is_about_to_expire_is_no_target() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    announce_expiration(MetadataStore(ref), 3)
    with pytest.raises(NotFoundError, match="snapshot 2 is about to expire"):
        roll_back(ref, 2)
    assert not [status for status in ref.file_io.list(ref.layout.own_directory) if "rolling" in status.name]
    roll_back(ref, 3)
    check_whole(ref, 1, 2, 3)


def test_the_mark_of_a_rollback_that_was_killed_holds_nothing_back_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    ref.file_io.write(ref.layout.rolling_back_path("x"), b"1")
    expire_to(ref, 1)
    assert ref.file_io.exists(ref.layout.snapshot_path(1))
    monkeypatch.setattr("penstock.table.commit.reused_ids._MAX_MARK_AGE_MS", -60_000)
    expire_to(ref, 1)
    assert not ref.file_io.exists(ref.layout.snapshot_path(1))
