"""Which manifests the commit reads to know the live files of a few partitions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from tests.adopted_files import append_as
from tests.unit.table.commit_tables import append, committer, new_queue, on, partition, row_counts, rows

import penstock
from penstock.errors import NotFoundError
from penstock.format.snapshot import CommitKind, Snapshot
from penstock.table.actions.changes import commit_overwrite
from penstock.table.metadata_cache import clear_metadata_cache
from penstock.table.partition_scope import WrittenPartitions, scope_of_specs
from penstock.table.read.live import (
    is_in_history,
    load_deltas,
    load_live_entries,
    load_live_numbers,
    load_live_of_partitions,
    snapshots_since,
)
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.format.manifest.entry import ManifestEntry


def manifests_read(file_io: RecordingFileIO) -> list[str]:
    return [path for path in file_io.paths(Operation.READ, containing="/manifest/manifest-") if "-list-" not in path]


@pytest.mark.parametrize("wanted", [["p05"], ["p00", "p09"], [None], ["p05", None], ["elsewhere"], []])
def test_only_manifests_that_may_hold_the_partitions_are_read_and_none_is_missed(wanted: list[str | None]) -> None:
    ref = new_queue()
    days: list[str | None] = [f"p{number:02}" for number in range(10)]
    for day in (*days, None):
        snapshot = committer(ref).commit(append(rows(1, p=day, total_buckets=2), rows(2, p=day, total_buckets=2)))
    assert snapshot is not None
    partitions = frozenset(map(partition, wanted))
    file_io = RecordingFileIO(ref.file_io)
    live = load_live_of_partitions(MetadataStore(on(ref, file_io)), ref.schema, snapshot, partitions)
    assert live == load_live_entries(MetadataStore(ref), snapshot, partitions.__contains__)
    assert len(live) == 2 * len(partitions & set(map(partition, (*days, None))))
    assert len(manifests_read(file_io)) == len(partitions & set(map(partition, (*days, None))))


def test_a_queue_of_days_numbers_rows_of_a_new_day_without_reading_the_days_before() -> None:
    ref = new_queue()
    for day in range(5):
        committer(ref).commit(append(rows(3, p=f"{day}", total_buckets=2)))
    file_io = RecordingFileIO(ref.file_io)
    assert committer(on(ref, file_io)).commit(append(rows(3, p="5", total_buckets=2))) is not None
    assert not manifests_read(file_io)


def test_numbers_are_those_of_the_live_files() -> None:
    ref = new_queue()
    ours = committer(ref)
    for p in ("a", "b", "a"):
        ours.commit(append(rows(3, 4, p=p, total_buckets=2)))
    snapshot = commit_overwrite(ours, (rows(5, p="a", total_buckets=2),), scope_of_specs(ref, [{"p": "a"}]))
    assert snapshot is not None
    wanted = frozenset({partition("a")})
    for store in (MetadataStore(ref), ours.store):  # the second has read whole manifests already
        found = load_live_numbers(store, ref.schema, snapshot, wanted)
        assert [(entry.file.file_name, entry.file.max_sequence_number) for entry in found] == [
            (entry.file.file_name, entry.file.max_sequence_number)
            for entry in load_live_of_partitions(MetadataStore(ref), ref.schema, snapshot, wanted).values()
        ]
        assert [entry.file.max_sequence_number for entry in found] == [4]


@pytest.mark.parametrize("with_null", [False, True])
def test_for_many_partitions_manifests_outside_of_their_range_are_not_read(with_null: bool) -> None:  # noqa: FBT001
    ref = new_queue()
    days: list[str | None] = [f"p{number:03}" for number in range(0, 200, 2)]
    for day in (*days, None):
        snapshot = committer(ref).commit(append(rows(1, p=day, total_buckets=2)))
    assert snapshot is not None
    wanted = frozenset(map(partition, [*days[10:90], *([None] if with_null else [])]))
    assert len(wanted) > 64
    file_io = RecordingFileIO(ref.file_io)
    live = load_live_of_partitions(MetadataStore(on(ref, file_io)), ref.schema, snapshot, wanted)
    assert live == load_live_entries(MetadataStore(ref), snapshot, wanted.__contains__)
    assert {entry.partition for entry in live.values()} == wanted
    assert len(manifests_read(file_io)) < 101


@pytest.mark.parametrize("spec", [{"p": "p05"}, {"p": None}])
def test_an_overwrite_reads_only_manifests_that_may_hold_what_it_replaces(spec: dict[str, object]) -> None:
    ref = new_queue()
    for day in (*(f"p{number:02}" for number in range(10)), None):
        committer(ref).commit(append(rows(1, p=day, total_buckets=2)))
    file_io = RecordingFileIO(ref.file_io)
    commit_overwrite(committer(on(ref, file_io)), (), scope_of_specs(ref, [spec]))
    assert len(manifests_read(file_io)) == 1
    file_io.forget()
    clear_metadata_cache()
    commit_overwrite(committer(on(ref, file_io)), (rows(7, p="p03", total_buckets=2),), WrittenPartitions())
    assert len(manifests_read(file_io)) == 1
    assert sorted(row_counts(ref)) == [1] * 9 + [7]


def test_more_partitions_than_worth_looking_for_are_found_too() -> None:
    ref = new_queue()
    snapshot = committer(ref).commit(append(*(rows(1, p=f"{day}", total_buckets=2) for day in range(70))))
    assert snapshot is not None
    wanted = frozenset(partition(f"{day}") for day in range(69))
    assert len(load_live_of_partitions(MetadataStore(ref), ref.schema, snapshot, wanted)) == 69


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


def test_files_of_equal_names_have_their_own_numbers(tmp_path: Path) -> None:
    """As in an adopted directory."""
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, p STRING", partition_by=["p"])
    append_as(table, "a.parquet", [{"k": k, "p": p} for k, p in enumerate("xxy")])
    table.drop_partitions({"p": "x"})
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    live = load_live_numbers(MetadataStore(table._ref), table.schema, snapshot, frozenset(map(partition, "xy")))
    assert [entry.partition for entry in live] == [partition("y")]
