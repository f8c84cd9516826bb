"""The changes since a snapshot that was read before."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from penstock.errors import NotFoundError
from penstock.format.snapshot import CommitKind, Snapshot
from penstock.table.read.deltas import is_in_history, load_deltas, snapshots_since

if TYPE_CHECKING:
    from penstock.format.manifest.entry import ManifestEntry


def snapshot(number: int, list_name: str = "list") -> Snapshot:
    return Snapshot(
        id=number,
        schema_id=0,
        total_record_count=0,
        delta_record_count=0,
        base_manifest_list=f"{list_name}-base-{number}",
        delta_manifest_list=f"{list_name}-{number}",
        commit_user="user",
        commit_identifier=number,
        commit_kind=CommitKind.APPEND,
        time_millis=number,
    )


@dataclass
class Metadata:
    """Snapshots 1 to 5, and which of them were read."""

    snapshots: dict[int, Snapshot] = field(default_factory=lambda: {number: snapshot(number) for number in range(1, 6)})
    read: list[int] = field(default_factory=list)
    expired_lists: frozenset[int] = frozenset()

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        self.read.append(snapshot_id)
        return self.snapshots.get(snapshot_id)

    def load_delta(self, snapshot: Snapshot) -> tuple[ManifestEntry, ...]:
        if snapshot.id in self.expired_lists:
            raise NotFoundError("expired")
        return ()


def ids(found: tuple[Snapshot, ...] | None) -> list[int] | None:
    return None if found is None else [each.id for each in found]


def test_snapshots_in_between_are_loaded_and_the_latest_is_not_read_again() -> None:
    metadata = Metadata()
    assert ids(snapshots_since(metadata, snapshot(2), snapshot(5))) == [3, 4, 5]
    assert metadata.read == [2, 3, 4]


def test_nothing_is_read_where_nothing_has_changed() -> None:
    metadata = Metadata()
    assert ids(snapshots_since(metadata, snapshot(5), snapshot(5))) == []
    assert metadata.read == []


@pytest.mark.parametrize("seen", [snapshot(2, "rolled-back"), snapshot(5, "rolled-back"), snapshot(6)])
def test_a_snapshot_that_was_rolled_back_cannot_be_followed(seen: Snapshot) -> None:
    metadata = Metadata()
    assert snapshots_since(metadata, seen, snapshot(5)) is None
    assert not is_in_history(metadata, seen)


@pytest.mark.parametrize("missing", [2, 4])
def test_an_expired_snapshot_cannot_be_followed_or_passed(missing: int) -> None:
    metadata = Metadata()
    del metadata.snapshots[missing]
    assert snapshots_since(metadata, snapshot(2), snapshot(5)) is None


def test_too_many_snapshots_are_not_read() -> None:
    metadata = Metadata()
    assert ids(snapshots_since(metadata, snapshot(2), snapshot(5), most=3)) == [3, 4, 5]
    metadata.read.clear()
    assert snapshots_since(metadata, snapshot(1), snapshot(5), most=3) is None
    assert metadata.read == []


def test_deltas_come_with_their_snapshots_or_not_at_all() -> None:
    metadata = Metadata()
    news = snapshots_since(metadata, snapshot(3), snapshot(5))
    assert news is not None
    assert load_deltas(metadata, news) == ((snapshot(4), ()), (snapshot(5), ()))
    assert load_deltas(replace(metadata, expired_lists=frozenset({5})), news) is None
