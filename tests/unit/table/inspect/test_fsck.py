"""What fsck finds when files of a table are gone, cut off or damaged."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.catalog.place import load_location
from penstock.format.consumer import encode_consumer
from penstock.format.manifest import columns
from penstock.format.manifest.columns import EncodedEntries
from penstock.format.snapshot import ROLLED_BACK_TO, decode_snapshot, encode_snapshot
from penstock.table.commit.expiring import announce_expiration
from penstock.table.inspect.fsck import Finding, FindingKind, FsckReport, check_table
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


@pytest.fixture
def ref() -> TableRef:
    """A table of three snapshots with one file each; the first is tagged, the third replaces everything."""
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT, dt STRING", partition_by=["dt"])
    table.append(pa.table({"id": [1], "dt": ["a"]}))
    table.create_tag("first")
    table.append(pa.table({"id": [2, 3], "dt": ["b", "b"]}))
    table.overwrite(pa.table({"id": [4], "dt": ["c"]}), partition={})
    return load_location(table.location)


def _check(ref: TableRef, *, all_snapshots: bool = True) -> FsckReport:
    return check_table(ref, all_snapshots=all_snapshots)


def _only(report: FsckReport) -> Finding:
    (finding,) = report.findings
    return finding


def _data_files(ref: TableRef, partition: str) -> list[str]:
    return [status.path for status in ref.file_io.list(f"{ref.location}/dt={partition}/bucket-0")]


def test_a_whole_table_has_no_findings_and_says_what_was_looked_at(ref: TableRef) -> None:
    told: list[int] = []
    latest = check_table(ref, progress=lambda files, _: told.append(files))
    everything = _check(ref)
    assert (latest.snapshots, latest.files, latest.findings) == (1, 1, ())
    assert told == [1]
    assert (everything.snapshots, everything.files, everything.findings) == (3, 3, ())
    assert everything.bytes == sum(
        status.size for name in "abc" for status in ref.file_io.list(f"{ref.location}/dt={name}/bucket-0")
    )


def test_a_missing_data_file_is_found_where_a_snapshot_needs_it(ref: TableRef) -> None:
    (old,), (new,) = _data_files(ref, "a"), _data_files(ref, "c")
    ref.file_io.delete(old)
    assert _check(ref, all_snapshots=False).findings == ()
    assert (_only(_check(ref)).path, _only(_check(ref)).snapshot_id) == (old, 2)
    ref.file_io.delete(new)
    finding = _only(_check(ref, all_snapshots=False))
    assert (finding.kind, finding.what, finding.path) == (FindingKind.MISSING, "data file", new)
    assert "1 rows" in finding.message


def test_files_without_a_problem_are_checked_without_entries(ref: TableRef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MIN_RECORDS", 1)
    decoded: list[int] = []
    decode = EncodedEntries.entries
    monkeypatch.setattr(EncodedEntries, "entries", lambda each, rows: decoded.append(len(rows)) or decode(each, rows))
    assert (_check(ref).files, _check(ref).findings) == (3, ())
    assert decoded == []
    (lost,) = _data_files(ref, "a")
    ref.file_io.delete(lost)
    assert (_check(ref).files, _only(_check(ref)).path) == (3, lost)
    assert {*decoded} == {1}


def test_a_data_file_of_another_size_is_found(ref: TableRef) -> None:
    (path,) = _data_files(ref, "c")
    ref.file_io.write(path, ref.file_io.read(path)[:-1])
    finding = _only(_check(ref))
    assert (finding.kind, finding.path) == (FindingKind.SIZE, path)


@pytest.mark.parametrize("data", [None, b"", b"Obj\x01"], ids=["gone", "empty", "cut"])
@pytest.mark.parametrize("which", ["manifest-list", "manifest"])
def test_a_manifest_that_cannot_be_read_is_found_once(ref: TableRef, which: str, data: bytes | None) -> None:
    store = MetadataStore(ref)
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    name = (
        snapshot.delta_manifest_list if which == "manifest-list" else store.load_delta_manifests(snapshot)[0].file_name
    )
    path = f"{ref.location}/manifest/{name}"
    assert list(store.iter_manifests(store.load_manifests(snapshot)))  # the process has cached them
    if data is None:
        ref.file_io.delete(path)
    else:
        ref.file_io.write(path, data)

    finding = _only(_check(ref, all_snapshots=False))

    assert finding.path == path
    assert finding.kind is (FindingKind.MISSING if data is None else FindingKind.DAMAGED)


def test_a_damaged_snapshot_is_found_and_the_others_are_still_looked_at(ref: TableRef) -> None:
    path = f"{ref.location}/snapshot/snapshot-2"
    ref.file_io.write(path, b"{")
    report = _check(ref)
    assert (_only(report).kind, _only(report).path) == (FindingKind.DAMAGED, path)
    assert report.snapshots == 2


def test_a_damaged_tag_is_found_and_a_tag_keeps_its_expired_snapshot_in_sight(ref: TableRef) -> None:
    ref.file_io.delete(f"{ref.location}/snapshot/snapshot-1")
    assert _check(ref).snapshots == 3
    ref.file_io.write(f"{ref.location}/tag/tag-first", b"")
    finding = _only(_check(ref))
    assert (finding.what, finding.kind) == ("tag", FindingKind.DAMAGED)
    assert "penstock tag delete" in finding.message


def test_a_snapshot_that_is_missing_between_others_is_found_unless_a_rollback_deleted_it(ref: TableRef) -> None:
    ref.file_io.delete(ref.layout.snapshot_path(2))
    finding = _only(_check(ref, all_snapshots=False))
    assert (finding.kind, finding.what, finding.snapshot_id) == (FindingKind.MISSING, "snapshot", 2)
    latest = MetadataStore(ref).load_snapshot(3)
    properties = ((ROLLED_BACK_TO, "0"),)
    ref.file_io.write(ref.layout.snapshot_path(3), encode_snapshot(replace(latest, properties=properties)))
    assert _check(ref, all_snapshots=False).findings == ()


@pytest.mark.parametrize("lost", [[3], [1, 2, 3]])
def test_newest_snapshots_that_are_missing_are_found(ref: TableRef, lost: list[int]) -> None:
    for each in lost:
        ref.file_io.delete(ref.layout.snapshot_path(each))
    finding = _only(_check(ref, all_snapshots=False))
    assert (finding.kind, finding.what, finding.snapshot_id) == (FindingKind.MISSING, "snapshot", 3)


@pytest.mark.parametrize("sign", ["tag/tag-first", "snapshot/EARLIEST"])
def test_a_table_without_snapshots_that_had_some_is_not_whole(ref: TableRef, sign: str) -> None:
    data = ref.file_io.read(f"{ref.location}/{sign}")
    for directory in (ref.layout.snapshot_directory, ref.layout.tag_directory):
        ref.file_io.delete(directory, recursive=True)
    assert "if its first job was stopped, nothing is lost" in _only(_check(ref)).message
    ref.file_io.write(f"{ref.location}/{sign}", data)
    finding = _only(_check(ref))
    assert (finding.kind, finding.path) == (FindingKind.MISSING, ref.layout.snapshot_directory)


def test_snapshots_below_the_end_of_an_expiration_may_be_missing(ref: TableRef) -> None:
    """Where many files are deleted with one request, a stopped expiration leaves any of them."""
    ref.file_io.delete(ref.layout.snapshot_path(2))
    announce_expiration(MetadataStore(ref), 3)
    assert _check(ref, all_snapshots=False).findings == ()


def test_a_damaged_consumer_is_found(ref: TableRef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.table.store._CONSUMER_WAIT_SECONDS", 0)
    ref.file_io.write(ref.layout.consumer_path("good"), encode_consumer(2))
    ref.file_io.write(ref.layout.consumer_path("bad"), b"{")
    finding = _only(_check(ref, all_snapshots=False))
    assert (finding.what, finding.kind, finding.path) == (
        "consumer",
        FindingKind.DAMAGED,
        ref.layout.consumer_path("bad"),
    )
    assert "penstock consumer reset" in finding.message


def test_a_schema_that_files_need_is_missed(ref: TableRef) -> None:
    moved = replace(ref.schema, id=1)
    ref.file_io.delete(f"{ref.location}/schema/schema-0")
    finding = _only(check_table(replace(ref, schema=moved)))
    assert (finding.what, finding.path) == ("schema", f"{ref.location}/schema/schema-0")


def test_a_snapshot_that_counts_other_rows_than_its_files_is_found(ref: TableRef) -> None:
    path = f"{ref.location}/snapshot/snapshot-3"
    snapshot = decode_snapshot(ref.file_io.read(path), path)
    ref.file_io.write(path, encode_snapshot(replace(snapshot, total_record_count=7)))
    finding = _only(_check(ref))
    assert (finding.kind, finding.path) == (FindingKind.ROWS, path)


def test_a_table_without_commits_is_whole() -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    ref = load_location(catalog.create_table("shop.t", "id INT").location)
    assert _check(ref) == FsckReport(snapshots=0, unchecked=0, manifests=0, files=0, bytes=0, findings=())


@pytest.mark.parametrize("has_tag", [True, False])
def test_the_loss_of_all_snapshots_and_hints_is_found(ref: TableRef, *, has_tag: bool) -> None:
    for status in ref.file_io.list(ref.layout.snapshot_directory):
        ref.file_io.delete(status.path)
    if not has_tag:
        ref.file_io.delete(ref.layout.tag_path("first"))
    finding = _only(_check(ref))
    assert (finding.kind, finding.what, finding.path) == (
        FindingKind.MISSING,
        "snapshot",
        ref.layout.snapshot_directory,
    )
    assert "restore the snapshots from a copy" in finding.message
    assert ("'penstock rollback TABLE --tag NAME'" in finding.message) == has_tag
    assert ("remove-orphan-files" in finding.message) != has_tag


def test_a_tag_brings_its_state_back_if_all_snapshots_are_lost(ref: TableRef) -> None:
    for status in ref.file_io.list(ref.layout.snapshot_directory):
        ref.file_io.delete(status.path)
    table = Table.at(ref.location)
    table.rollback_to(tag="first")
    assert table.to_arrow().column("id").to_pylist() == [1]
    table.append(pa.table({"id": [9], "dt": ["b"]}))
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 9]
    assert _check(ref).findings == ()


def test_manifests_of_a_branch_are_no_lost_snapshots(ref: TableRef) -> None:
    table = Catalog(ref.location.rpartition("/")[0].rpartition("/")[0]).create_table("shop.t", "id INT")
    table.versions.create_branch("b")
    table.with_options({"branch": "b"}).append([{"id": 1}])
    assert _check(load_location(table.location)).findings == ()
    assert _check(table.with_options({"branch": "b"})._ref).findings == ()


@pytest.mark.parametrize("snapshot_id", [1, 2])
def test_a_damaged_file_of_an_older_snapshot_is_found_without_reading_its_data(ref: TableRef, snapshot_id: int) -> None:
    path = ref.layout.snapshot_path(snapshot_id)
    ref.file_io.write(path, b"")
    report = _check(ref, all_snapshots=False)
    assert (_only(report).kind, _only(report).path) == (FindingKind.DAMAGED, path)
    assert (report.snapshots, report.unchecked) == (1, 1)


def test_a_lost_manifest_list_of_an_older_snapshot_is_found_without_reading_its_data(ref: TableRef) -> None:
    snapshot = MetadataStore(ref).load_snapshot(2)
    ref.file_io.delete(ref.layout.manifest_path(snapshot.delta_manifest_list))
    report = _check(ref, all_snapshots=False)
    assert (_only(report).kind, _only(report).what, _only(report).snapshot_id) == (
        FindingKind.MISSING,
        "manifest list",
        2,
    )


def test_the_files_of_the_newest_readable_snapshot_are_checked_if_the_latest_is_damaged(ref: TableRef) -> None:
    ref.file_io.write(ref.layout.snapshot_path(3), b"{")
    report = _check(ref, all_snapshots=False)
    assert (report.snapshots, report.files, report.unchecked) == (1, 2, 1)
    assert _only(report).snapshot_id == 3


def test_a_damaged_schema_that_no_snapshot_names_is_found(ref: TableRef) -> None:
    ref.file_io.write(ref.layout.schema_path(1), b"")
    finding = _only(_check(ref))
    assert (finding.kind, finding.what, finding.path, finding.snapshot_id) == (
        FindingKind.DAMAGED,
        "schema",
        ref.layout.schema_path(1),
        None,
    )
