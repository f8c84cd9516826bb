"""The search for own commits, also across ids that have no snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, new_table, row_counts, rows

from penstock.format.snapshot import encode_hint
from penstock.table.commit.put import OwnCommits, search_commits
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

OWN = 2


@pytest.fixture
def ref() -> TableRef:
    """Snapshots 1 to 9, of which the second is an own one."""
    ref = new_table()
    for number in range(1, 10):
        committer(ref).commit(append(rows(1), user="own" if number == OWN else "other"))
    return ref


def _remove(ref: TableRef, *ids: int) -> None:
    for snapshot_id in ids:
        assert ref.file_io.delete(ref.layout.snapshot_path(snapshot_id))


def _search(ref: TableRef, after_id: int = 0, latest_id: int = 9) -> OwnCommits:
    return search_commits(
        MetadataStore(ref), lambda each: each.commit_user == "own", latest_id=latest_id, after_id=after_id
    )


def _found_id(found: OwnCommits) -> int | None:
    assert found.is_complete
    return None if found.last is None else found.last.id


@pytest.mark.parametrize("gap", [(4,), (3, 4, 5), (3, 6, 7, 8)])
def test_a_gap_of_ids_is_passed_over(ref: TableRef, gap: tuple[int, ...]) -> None:
    """A rollback beside a commit leaves one."""
    _remove(ref, *gap)
    assert _found_id(_search(ref)) == OWN
    assert _found_id(_search(ref, after_id=OWN)) is None
    assert _found_id(_search(ref, after_id=gap[0])) is None


def test_a_replayed_batch_is_found_across_a_gap() -> None:
    ref = new_table()
    request = append(rows(3), user="query", commit_identifier=7, check_committed=True)
    first = committer(ref).commit(request)
    for _ in range(3):
        committer(ref).commit(append(rows(1), user="other"))
    _remove(ref, 2, 3)
    assert committer(ref).commit(replace(request, messages=(rows(3),))) == first
    assert row_counts(ref)[:1] == [3]


def test_expired_snapshots_may_have_been_own_ones(ref: TableRef) -> None:
    _remove(ref, 1, 2, 3)
    assert _search(ref) == OwnCommits(last=None, is_complete=False)
    assert _found_id(_search(ref, after_id=3)) is None


def test_what_an_expiration_has_announced_may_have_been_own_ones(ref: TableRef) -> None:
    """A storage that deletes many files in one request may delete the newer ones first."""
    ref.file_io.write(ref.layout.expiring_path, encode_hint(5))
    _remove(ref, 2, 3)
    assert _search(ref) == OwnCommits(last=None, is_complete=False)


def test_a_rollback_that_runs_or_has_run_leaves_it_open(ref: TableRef) -> None:
    mark = ref.layout.rolling_back_path("x")
    ref.file_io.write(mark, b"")
    _remove(ref, 4)
    assert _search(ref) == OwnCommits(last=None, is_complete=False)
    ref.file_io.delete(mark)
    assert _found_id(_search(ref)) == OWN
    # The snapshot that was the latest is gone, and with it perhaps own ones.
    _remove(ref, 2, 9)
    assert _search(ref) == OwnCommits(last=None, is_complete=False)
