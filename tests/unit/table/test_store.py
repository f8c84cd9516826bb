from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.layout import TableLayout
from penstock.format.manifest.files import decode_manifest_list, encode_manifest_list
from penstock.table.location import TableLocation
from penstock.table.metadata_cache import MetadataCache, entry_bytes
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.io.file_io import FileIO, FileStatus


def table_of(count: int) -> MemoryTable:
    table = MemoryTable()
    for number in range(1, count + 1):
        table.commit(table.entry(table.file(f"f{number}")))
    return table


@pytest.mark.parametrize("hint", [b"3", b"1", b"2", b"99", b"", b"garbage", b"-5", b"0", None])
def test_the_latest_snapshot_is_found_whatever_the_hint_says(hint: bytes | None) -> None:
    table = table_of(3)
    path = TableLayout(table.location).latest_hint_path
    if hint is None:
        table.file_io.delete(path)
    else:
        table.file_io.write(path, hint)
    assert table.store.latest_snapshot_id() == 3
    latest = table.store.load_latest_snapshot()
    assert latest is not None
    assert latest.id == 3


class ListingOvertakenFileIO(RecordingFileIO):
    """Others act between a listing and what the caller does with it, the first ``times`` times."""

    def __init__(self, inner: FileIO, act: Callable[[], None], times: int = 1) -> None:
        super().__init__(inner)
        self.act = act
        self.times = times

    def list(self, path: str) -> Sequence[FileStatus]:
        found = super().list(path)
        if self.times:
            self.times -= 1
            self.act()
        return found


def test_a_listing_whose_snapshots_have_all_expired_is_made_again() -> None:
    table = table_of(2)
    table.file_io.delete(TableLayout(table.location).latest_hint_path)

    def commit_and_expire() -> None:
        table.commit(table.entry(table.file("f3")))
        for snapshot_id in (1, 2):
            table.file_io.delete(TableLayout(table.location).snapshot_path(snapshot_id))
        table.file_io.delete(TableLayout(table.location).latest_hint_path)

    overtaken = ListingOvertakenFileIO(table.file_io, commit_and_expire)
    store = MetadataStore(TableLocation(file_io=overtaken, location=table.location, name="db.t"))
    latest = store.load_latest_snapshot()
    assert latest is not None
    assert latest.id == 3


def test_listings_that_name_snapshots_which_are_never_there_are_an_error_and_no_empty_table() -> None:
    table = table_of(1)
    listed = table.file_io.list(f"{table.location}/snapshot")
    for status in listed:
        table.file_io.delete(status.path)
    stale = ListingOvertakenFileIO(table.file_io, lambda: None)
    stale.list = lambda _path: listed  # type: ignore[method-assign]
    store = MetadataStore(TableLocation(file_io=stale, location=table.location, name="db.t"))
    with pytest.raises(StorageError, match=r"db\.t: 10 times in a row"):
        store.load_latest_snapshot()


@pytest.mark.parametrize("hint", [b"2", b"1", b"99", b"", b"x", None])
def test_the_earliest_snapshot_is_found_whatever_the_hint_says(hint: bytes | None) -> None:
    table = table_of(3)
    table.expire(1)
    if hint is not None:
        table.file_io.write(TableLayout(table.location).earliest_hint_path, hint)
    assert table.store.earliest_snapshot_id() == 2
    earliest = table.store.load_earliest_snapshot()
    assert earliest is not None
    assert earliest.id == 2


def test_a_table_without_commits_has_no_snapshots() -> None:
    store = MemoryTable().store
    assert store.load_latest_snapshot() is None
    assert store.load_earliest_snapshot() is None
    assert store.latest_snapshot_id() is None
    assert list(store.snapshots_between()) == []
    with pytest.raises(NotFoundError, match="nothing was committed"):
        store.load_snapshot(1)


def test_ids_are_ordered_as_numbers_and_other_files_are_ignored() -> None:
    table = table_of(11)
    for name in ("snapshot-x", "snapshot-12.tmp", "snapshot-007", "LATEST.tmp"):
        table.file_io.write(f"{table.location}/snapshot/{name}", b"{}")
    assert table.store.list_snapshot_ids() == tuple(range(1, 12))


def test_snapshots_between_includes_both_ends() -> None:
    table = table_of(5)
    assert [snapshot.id for snapshot in table.store.snapshots_between(2, 4)] == [2, 3, 4]
    assert [snapshot.id for snapshot in table.store.snapshots_between(first=4)] == [4, 5]


@pytest.mark.parametrize(
    ("snapshot_id", "words"),
    [(1, "has expired"), (9, "does not exist yet"), (0, "does not exist"), (-1, "does not exist")],
)
def test_a_missing_snapshot_names_what_is_there(snapshot_id: int, words: str) -> None:
    table = table_of(3)
    table.put_tag("kept", table.snapshots[0])
    table.expire(1)
    with pytest.raises(NotFoundError, match=words) as raised:
        table.store.load_snapshot(snapshot_id)
    assert "shop.orders" in str(raised.value)
    assert "snapshots 2 to 3 are there" in str(raised.value)
    if snapshot_id == 1:
        assert "'kept'" in str(raised.value)


def test_a_snapshot_missing_between_others_was_lost_unless_an_expiration_or_a_rollback_deletes_it() -> None:
    table = table_of(5)
    table.file_io.delete(table.store.layout.snapshot_path(3))
    with pytest.raises(NotFoundError, match=r"snapshot 3 is missing, .*restore .*/snapshot-3 from a copy .*fsck"):
        table.store.load_snapshot(3)
    table.file_io.write(table.store.layout.expiring_path, b"5")
    with pytest.raises(NotFoundError, match="snapshot 3 does not exist; snapshots 1 to 5 are there"):
        table.store.load_snapshot(3)


@pytest.mark.parametrize("data", [b"", b'{"id": 3, "version"', b"not json"])
def test_a_damaged_snapshot_is_a_format_error_that_names_the_file(data: bytes) -> None:
    table = table_of(3)
    path = TableLayout(table.location).snapshot_path(3)
    table.file_io.write(path, data)
    with pytest.raises(FormatError) as raised:
        table.store.load_latest_snapshot()
    assert path in str(raised.value)


def test_snapshots_are_read_again_since_ids_are_reused_after_a_rollback() -> None:
    table = table_of(2)
    store = table.store
    first = store.load_snapshot(2)
    table.put_snapshot(replace(first, commit_user="another"))
    assert store.load_snapshot(2).commit_user == "another"


def test_schemas_are_found_by_listing_and_read_once() -> None:
    table = table_of(1)
    table.put_schema(replace(table.schema, id=1))
    table.put_schema(replace(table.schema, id=10))
    recording = RecordingFileIO(table.file_io)
    store = MetadataStore(TableLocation(file_io=recording, location=table.location, name="shop.orders"))
    assert store.list_schema_ids() == (0, 1, 10)
    assert store.load_latest_schema().id == 10
    before = len(recording.calls)
    assert store.load_schema(10).id == 10
    assert len(recording.calls) == before


def test_no_schema_means_no_table() -> None:
    table = MemoryTable()
    store = MetadataStore(TableLocation(file_io=table.file_io, location=f"{table.location}-x", name="shop.x"))
    with pytest.raises(NotFoundError, match="is not a table"):
        store.load_latest_schema()
    with pytest.raises(NotFoundError, match="schema 7 is missing"):
        table.store.load_schema(7)
    table.file_io.write(TableLayout(table.location).schema_path(0), b"")
    with pytest.raises(FormatError, match="schema-0"):
        table.store.load_latest_schema()


def test_manifests_come_base_before_delta_and_are_read_once() -> None:
    table = table_of(3)
    recording = RecordingFileIO(table.file_io)
    store = MetadataStore(TableLocation(file_io=recording, location=table.location, name="shop.orders"))
    snapshot = table.snapshots[-1]
    for _ in range(2):
        metas = store.load_manifests(snapshot)
        names = [store.load_manifest(meta.file_name, meta.file_size)[0].file.file_name for meta in metas]
        assert names == ["f1.parquet", "f2.parquet", "f3.parquet"]
    assert len(recording.calls) == 5
    assert [entry.file.file_name for entry in store.load_delta(snapshot)] == ["f3.parquet"]


def test_the_cache_forgets_the_least_recently_used() -> None:
    table = table_of(3)
    (meta,) = table.store.load_delta_manifests(table.snapshots[-1])
    size = entry_bytes(table.store.load_manifest(meta.file_name, meta.file_size))
    recording = RecordingFileIO(table.file_io)
    place = TableLocation(file_io=recording, location=table.location, name="shop.orders")
    names = [meta.file_name for meta in MetadataStore(place).load_manifests(table.snapshots[-1])]
    store = MetadataStore(place, cache=MetadataCache(2 * size - 1))
    before = len(recording.calls)
    for place in (0, 1, 0, 2, 0, 1):
        store.load_manifest(names[place], 1)
    assert len(recording.calls) - before == 4


def test_a_missing_manifest_names_snapshot_file_and_cure() -> None:
    table = table_of(1)
    snapshot = table.snapshots[0]
    (meta,) = table.store.load_manifests(snapshot)
    path = TableLayout(table.location).manifest_path(meta.file_name)
    table.file_io.delete(path)
    with pytest.raises(NotFoundError) as raised:
        table.store.load_delta(snapshot)
    for word in ("shop.orders", "snapshot 1", path, "fsck", "roll back"):
        assert word in str(raised.value)


def test_a_manifest_list_that_expired_under_the_reader_says_so() -> None:
    table = table_of(2)
    snapshot = table.snapshots[0]
    table.expire(1)
    table.file_io.delete(TableLayout(table.location).manifest_path(snapshot.delta_manifest_list))
    with pytest.raises(NotFoundError, match=r"meanwhile expired.*snapshot 2 is there"):
        table.store.load_delta(snapshot)


def test_a_truncated_manifest_is_a_format_error() -> None:
    table = table_of(1)
    snapshot = table.snapshots[0]
    (meta,) = table.store.load_manifests(snapshot)
    path = TableLayout(table.location).manifest_path(meta.file_name)
    table.file_io.write(path, table.file_io.read(path)[:-20])
    with pytest.raises(FormatError, match="cut off"):
        table.store.load_delta(snapshot)
    table.file_io.write(TableLayout(table.location).manifest_path(snapshot.delta_manifest_list), b"")
    with pytest.raises(FormatError, match="manifest-list"):
        table.store.load_delta(snapshot)


def test_a_list_that_names_a_manifest_twice_is_damaged() -> None:
    table = table_of(1)
    [snapshot] = table.snapshots
    store = MetadataStore(table.ref)
    path = TableLayout(table.location).manifest_path(snapshot.delta_manifest_list)
    [meta] = decode_manifest_list(table.file_io.read(path), path)
    table.file_io.write(path, encode_manifest_list([meta] * 1_000))
    with pytest.raises(FormatError, match="names a manifest twice"):
        store.load_manifests(snapshot)


def test_tags_are_listed_and_loaded_by_name() -> None:
    table = table_of(2)
    table.put_tag("b", table.snapshots[0])
    table.put_tag("a tag", table.snapshots[1])
    assert table.store.list_tags() == ("a tag", "b")
    assert table.store.load_tag("b").snapshot.id == 1
    with pytest.raises(NotFoundError, match="no tag 'c'; its tags are 'a tag', 'b'"):
        table.store.load_tag("c")


def test_a_consumer_seen_half_written_is_read_again() -> None:
    table = table_of(1)
    path = TableLayout(table.location).consumer_path("etl")
    table.file_io.write(path, b'{"nextSn')
    sleeps: list[float] = []

    def finish(seconds: float) -> None:
        sleeps.append(seconds)
        table.file_io.write(path, b'{"nextSnapshot" : 7}')

    store = MetadataStore(table.ref, sleep=finish)
    assert store.load_consumer("etl") == 7
    assert len(sleeps) == 1
    assert store.list_consumers() == ("etl",)
    assert store.load_consumer("other") is None


def test_a_consumer_that_stays_broken_is_an_error() -> None:
    table = table_of(1)
    table.file_io.write(TableLayout(table.location).consumer_path("etl"), b"{")
    with pytest.raises(FormatError):
        table.store.load_consumer("etl")


def test_statistics_belong_to_one_schema() -> None:
    table = table_of(1)
    snapshot = replace(table.snapshots[0], statistics="stat-1")
    assert not table.store.is_statistics_of(snapshot, 0)
    table.file_io.write(TableLayout(table.location).statistics_path("stat-1"), b'{"snapshotId": 1, "schemaId": 0}')
    assert table.store.is_statistics_of(snapshot, 0)
    assert not table.store.is_statistics_of(snapshot, 1)
    assert not table.store.is_statistics_of(table.snapshots[0], 0)
