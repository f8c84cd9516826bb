"""Which files orphan removal takes for left over, and when it stops."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.garbage import needed_files, stored_files, walk

from penstock import Catalog, Table
from penstock.clocks import utc_millis
from penstock.errors import FormatError, InvalidOptionError, StorageError
from penstock.format.layout import TableLayout
from penstock.format.snapshot import encode_snapshot
from penstock.format.tag import Tag, encode_tag
from penstock.table.commit.reused_ids import find_lost_latest
from penstock.table.expire import orphans
from penstock.table.expire.orphans import OrphanKind, remove_orphan_files
from penstock.table.expire.used_files import UsedFiles

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.table.expire.orphans import OrphanReport

DAY = 86_400_000


@pytest.fixture
def table() -> Table:
    """Three snapshots, each of which replaces what there was; the first is tagged."""
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, dt STRING", partition_by=["dt"])
    for number in (1, 2, 3):
        table.overwrite(pa.table({"k": [number], "dt": ["a"]}))
    table.create_tag("first", snapshot_id=1)
    return table


def put(table: Table, *names: str) -> list[str]:
    paths = [f"{table.location}/{name}" for name in names]
    for path in paths:
        table._ref.file_io.write(path, b"?")
    return sorted(paths)


def remove(table: Table, **how: Any) -> OrphanReport:
    now = utc_millis()
    return table.remove_orphan_files(**{"older_than": now, "allow_recent": True, "dry_run": False, **how})


def found(report: OrphanReport) -> dict[str, OrphanKind]:
    return {orphan.path: orphan.kind for orphan in report.orphans}


def test_only_files_of_stopped_jobs_are_removed(table: Table) -> None:
    before = set(walk(table._ref.file_io, table.location))
    kinds = {
        "dt=a/bucket-0/data-x-0.parquet": OrphanKind.DATA,
        "dt=a/bucket-0/data-x-0.parquet.index": OrphanKind.DATA,
        "dt=b/bucket-7/data-x-0.orc": OrphanKind.DATA,
        "dt=a/bucket-0/.data-x-0.parquet.5b1c.tmp": OrphanKind.TEMPORARY,
        "manifest/manifest-x-0": OrphanKind.MANIFEST,
        "manifest/manifest-list-x-0": OrphanKind.MANIFEST,
        "manifest/index-manifest-x-0": OrphanKind.MANIFEST,
        "index/index-x": OrphanKind.INDEX,
        "statistics/stat-x": OrphanKind.STATISTICS,
        "snapshot/.snapshot-4.5b1c.tmp": OrphanKind.TEMPORARY,
        "snapshot/.snapshot-4.5b1c.tmp.crc": OrphanKind.TEMPORARY,
        "schema/.schema-1.5b1c.tmp": OrphanKind.TEMPORARY,
        "tag/.tag-x.5b1c.tmp": OrphanKind.TEMPORARY,
        ".penstock/.clock.5b1c.tmp": OrphanKind.TEMPORARY,
        ".penstock/.expiring.5b1c.tmp": OrphanKind.TEMPORARY,
        ".penstock/queries/.q.5b1c.tmp": OrphanKind.TEMPORARY,
    }
    put(table, *kinds, ".penstock-job/part-0.parquet", ".penstock-job/_temporary/0/part-1.parquet")
    left_alone = put(table, "README", "other/data-x-0.parquet", "dt=a/_SUCCESS", "snapshot/notes", "manifest/notes")
    report = remove(table)
    expected = {f"{table.location}/{name}": kind for name, kind in kinds.items()}
    assert found(report) == {**expected, f"{table.location}/.penstock-job": OrphanKind.STAGING}
    assert report.bytes == len(kinds) + 2
    assert set(walk(table._ref.file_io, table.location)) == before | set(left_alone)
    assert stored_files(table._ref) - set(left_alone) == needed_files(table._ref)
    assert table.to_arrow(tag="first").column("k").to_pylist() == [1]
    assert table.to_arrow(snapshot_id=2).column("k").to_pylist() == [2]


def test_a_dry_run_which_is_the_default_deletes_nothing(table: Table) -> None:
    (path,) = put(table, "dt=a/bucket-0/data-x-0.parquet")
    report = remove(table, dry_run=True)
    assert (list(found(report)), report.is_dry_run) == ([path], True)
    assert table.remove_orphan_files().orphans == ()
    assert table._ref.file_io.exists(path)


def test_young_files_stay_and_are_counted(table: Table) -> None:
    put(table, "dt=a/bucket-0/data-x-0.parquet", "manifest/manifest-x-0")
    report = table.remove_orphan_files(dry_run=False)
    assert (report.orphans, report.young) == ((), 2)
    later = remove_orphan_files(table._ref, dry_run=False, clock_millis=lambda: utc_millis() + DAY + 1)
    assert len(later.orphans) == 2


@pytest.mark.parametrize("minutes", [0, 59])
def test_an_age_below_an_hour_needs_allow_recent(table: Table, minutes: int) -> None:
    with pytest.raises(InvalidOptionError, match="younger than an hour may belong to a job"):
        table.remove_orphan_files(older_than=utc_millis() - minutes * 60_000)


def test_a_time_in_the_future_is_refused(table: Table) -> None:
    with pytest.raises(InvalidOptionError, match="is in the future"):
        table.remove_orphan_files(older_than=utc_millis() + 60_000, allow_recent=True)


def test_files_that_only_a_branch_uses_stay(table: Table) -> None:
    file_io, branch = table._ref.file_io, TableLayout(table.location).branch("b").location
    file_io.write(f"{branch}/schema/schema-0", file_io.read(f"{table.location}/schema/schema-0"))
    file_io.write(TableLayout(branch).snapshot_path(1), encode_snapshot(table._store.load_snapshot(1)))
    file_io.write(TableLayout(branch).tag_path("two"), encode_tag(Tag(snapshot=table._store.load_snapshot(2))))
    for number in (1, 2):
        file_io.delete(TableLayout(table.location).snapshot_path(number))
    file_io.delete(TableLayout(table.location).tag_path("first"))
    before = stored_files(table._ref)
    assert remove(table).orphans == ()
    assert stored_files(table._ref) == before


def test_an_interrupted_creation_of_a_branch_retains_its_files_and_prevents_nothing(table: Table) -> None:
    file_io, branch, snapshot = (
        table._ref.file_io,
        TableLayout(table.location).branch("b").location,
        table._store.load_snapshot(1),
    )
    file_io.write(TableLayout(branch).snapshot_path(1), encode_snapshot(snapshot))
    lost = replace(snapshot, id=2, base_manifest_list="manifest-list-gone", delta_manifest_list="manifest-list-gone-1")
    file_io.write(TableLayout(branch).snapshot_path(2), encode_snapshot(lost))
    for number in (1, 2):
        file_io.delete(TableLayout(table.location).snapshot_path(number))
    before = needed_files(table._ref) | {
        path for path in stored_files(table._ref) if snapshot.delta_manifest_list in path
    }
    put(table, "dt=a/bucket-0/data-x-0.parquet")
    assert "data-x-0.parquet" in {orphan.name for orphan in remove(table).orphans}
    assert before <= stored_files(table._ref)


def test_changelogs_of_other_engines_use_files_too(table: Table) -> None:
    file_io = table._ref.file_io
    file_io.write(f"{table.location}/changelog/changelog-1", encode_snapshot(table._store.load_snapshot(1)))
    file_io.delete(TableLayout(table.location).snapshot_path(1))
    file_io.delete(TableLayout(table.location).tag_path("first"))
    before = stored_files(table._ref)
    assert remove(table).orphans == ()
    assert stored_files(table._ref) == before


@pytest.mark.parametrize("what", ["list", "manifest"])
@pytest.mark.parametrize("damage", [None, b"?"])
def test_unreadable_metadata_ends_the_removal_before_anything_is_deleted(
    table: Table, what: str, damage: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.table.expire.used_files._GONE_WAIT_SECONDS", 0)
    put(table, "dt=a/bucket-0/data-x-0.parquet")
    snapshot = table._store.load_snapshot(2)
    name = snapshot.delta_manifest_list
    if what == "manifest":
        name = table._store.load_delta_manifests(snapshot)[0].file_name
    path = TableLayout(table.location).manifest_path(name)
    if damage is None:
        table._ref.file_io.delete(path)
    else:
        table._ref.file_io.write(path, damage)
    before = set(walk(table._ref.file_io, table.location))
    with pytest.raises(FormatError, match="missing, which .*snapshot-[23] needs" if damage is None else "manifest"):
        remove(table)
    assert set(walk(table._ref.file_io, table.location)) == before


@pytest.mark.parametrize(("lost", "has_hint"), [([3], 1), ([2], 1), ([2], 0), ([1, 2, 3], 1), ([1, 2, 3], 0)])
def test_nothing_is_removed_while_snapshots_are_missing(table: Table, lost: list[int], has_hint: int) -> None:
    layout, file_io = TableLayout(table.location), table._ref.file_io
    table.versions.delete_tag("first")
    for each in lost:
        file_io.delete(layout.snapshot_path(each))
    if not has_hint:
        file_io.delete(layout.latest_hint_path)
    before = set(walk(file_io, table.location))
    with pytest.raises(FormatError, match="it is unknown which files are used"):
        remove(table)
    assert set(walk(file_io, table.location)) == before


def test_nothing_is_removed_while_snapshots_of_a_branch_are_missing(table: Table) -> None:
    table.versions.create_branch("b")
    table.with_options({"branch": "b"}).append(pa.table({"k": [5], "dt": ["a"]}))
    layout = TableLayout(table.location).branch("b")
    table._ref.file_io.delete(layout.snapshot_path(1))
    with pytest.raises(FormatError, match=r"files of snapshot 1 in .*branch-b/snapshot are missing"):
        remove(table)


def test_a_rollback_that_was_stopped_before_its_last_hint_is_repeated(table: Table) -> None:
    layout, file_io = TableLayout(table.location), table._ref.file_io
    table.rollback_to(snapshot_id=2)
    file_io.write(layout.latest_hint_path, b"4")
    with pytest.raises(FormatError, match=r"snapshots 3 to 4 .* repeat it"):
        remove(table)
    table.rollback_to(snapshot_id=2)
    assert {orphan.kind for orphan in remove(table).orphans} == {OrphanKind.DATA, OrphanKind.MANIFEST}


def test_a_hint_above_the_listing_is_accepted_while_a_rollback_runs_or_a_commit_was_put_since(table: Table) -> None:
    layout, file_io = TableLayout(table.location), table._ref.file_io
    assert find_lost_latest(table._store, 2, 3) is None
    file_io.write(layout.latest_hint_path, b"4")
    assert find_lost_latest(table._store, 3, 4) == 4
    file_io.write(layout.rolling_back_path("x"), b"2")
    assert find_lost_latest(table._store, 3, 4) is None


def used(table: Table, sleep: Any = time.sleep) -> frozenset[str]:
    ref = table._ref
    return UsedFiles(ref, threads=1, sleep=sleep).collect()


def test_a_concurrently_expired_snapshot_is_skipped(table: Table) -> None:
    table.versions.delete_tag("first")
    kept = used(table)
    table._ref.file_io.delete(
        TableLayout(table.location).manifest_path(table._store.load_snapshot(1).delta_manifest_list)
    )

    def expire(_seconds: float) -> None:
        table._ref.file_io.delete(TableLayout(table.location).snapshot_path(1))

    assert used(table, sleep=expire) <= kept


def test_a_concurrent_snapshot_is_included(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    load_roots = UsedFiles._load_roots

    def commit_once(self: UsedFiles, roots: Any) -> None:
        monkeypatch.setattr(UsedFiles, "_load_roots", load_roots)
        load_roots(self, roots)
        Table.at(table.location).append(pa.table({"k": [9], "dt": ["b"]}))

    monkeypatch.setattr(UsedFiles, "_load_roots", commit_once)
    report = remove(table)
    assert report.orphans == ()
    assert used(table) >= {path.rpartition("/")[2] for path in needed_files(table._ref)}


def test_a_listing_that_fails_stops_it(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    put(table, "dt=a/bucket-0/data-x-0.parquet")
    before = set(walk(table._ref.file_io, table.location))

    def fail(_self: Any, path: str) -> Any:
        message = f"list {path}: down"
        raise StorageError(message)

    with monkeypatch.context() as patch:
        patch.setattr(type(table._ref.file_io), "list", fail)
        with pytest.raises(StorageError, match="down"):
            remove(table)
    assert set(walk(table._ref.file_io, table.location)) == before


def test_an_unknown_clock_of_the_storage_ends_the_removal(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    (young,) = put(table, "dt=a/bucket-0/data-x-0.parquet")
    write = type(table._ref.file_io).write

    def fail(self: Any, path: str, data: bytes) -> None:
        if ".clock." in path:
            raise StorageError("cannot write: 503", True)  # noqa: FBT003 - as in the library
        write(self, path, data)

    monkeypatch.setattr(type(table._ref.file_io), "write", fail)
    monkeypatch.setattr(orphans, "utc_millis", lambda: utc_millis() + 3 * DAY)
    with pytest.raises(StorageError, match="503"):
        table.remove_orphan_files(dry_run=False)
    assert table._ref.file_io.exists(young)


def test_old_empty_directories_go_with_them(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, dt STRING", partition_by=["dt"])
    table.append(pa.table({"k": [1], "dt": ["a"]}))
    root = tmp_path / "db.db" / "t"
    for name in ("dt=old/bucket-0", "dt=young/bucket-0", "dt=lost/bucket-0", "other/bucket-0"):
        (root / name).mkdir(parents=True)
    lost = root / "dt=lost" / "bucket-0" / "data-x-0.parquet"
    lost.write_bytes(b"?")
    long_ago = time.time() - 3 * 86_400
    for path in (lost, lost.parent, root / "dt=old" / "bucket-0", root / "other" / "bucket-0"):
        os.utime(path, (long_ago, long_ago))
    report = table.remove_orphan_files(dry_run=False)
    assert [orphan.name for orphan in report.orphans] == ["data-x-0.parquet"]
    there = {path.name for path in root.iterdir()}
    assert {"dt=a", "dt=young", "other"} <= there
    assert not {"dt=old", "dt=lost"} & there


def test_leases_that_are_not_renewed_are_removed_after_an_hour_at_the_earliest(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT")
    table.append(pa.table({"k": [1]}))
    leases = tmp_path / "db.db" / "t" / ".penstock" / "leases"
    leases.mkdir(parents=True)
    for name, minutes in (("query-a-1", 0), ("query-b-1", 70)):
        (leases / name).write_bytes(b"{}")
        os.utime(leases / name, (time.time() - minutes * 60,) * 2)
    report = remove(table)
    assert [orphan.name for orphan in report.orphans] == ["query-b-1"]
    assert report.young == 0


def test_many_files_are_listed_and_deleted_by_threads(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "k BIGINT, dt STRING", partition_by=["dt"], options={"file-operation.thread-num": "4"}
    )
    for number in range(20):
        table.append(pa.table({"k": [number], "dt": [f"d{number}"]}))
        path = tmp_path / "db.db" / "t" / f"dt=d{number}" / "bucket-0" / "data-lost-0.parquet"
        path.write_bytes(b"?")
    told: list[int] = []
    now = utc_millis()
    report = remove_orphan_files(
        table._ref,
        older_than_millis=now,
        allow_recent=True,
        dry_run=False,
        progress=lambda count, _: told.append(count),
    )
    assert len(report.orphans) == 20
    assert told[-1] == 20
    assert stored_files(table._ref) == needed_files(table._ref)


@pytest.mark.parametrize("name", ["bucket-1", "manifest", "index", "statistics", "branch/branch-b/tag", ".penstock-x"])
def test_files_beyond_a_symbolic_link_are_retained(tmp_path: Path, name: str) -> None:
    catalog = Catalog(f"{tmp_path}/warehouse")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT")
    table.append(pa.table({"k": [1]}))
    location, outside = tmp_path / "warehouse/db.db/t", tmp_path / "outside"
    outside.mkdir()
    link = location / name
    if name == "manifest":
        shutil.copytree(link, outside, dirs_exist_ok=True)
        shutil.rmtree(link)
    if name.startswith("branch"):
        shutil.copytree(location / "schema", location / "branch/branch-b/schema")
    link.symlink_to(outside)
    for precious in ("manifest-x", ".x.tmp", "any.parquet"):
        (outside / precious).write_text("?")
    there = sorted(outside.iterdir())
    with contextlib.suppress(StorageError):  # it may stop, and says then what is a link
        remove(table)
    assert sorted(outside.iterdir()) == there


@pytest.mark.parametrize("days", [3, -3])
def test_the_clock_of_the_storage_decides_what_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    catalog = Catalog(f"{tmp_path}/warehouse")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT")
    table.append(pa.table({"k": [1]}))
    (young,) = put(table, "bucket-0/data-x-0.parquet")
    monkeypatch.setattr(orphans, "utc_millis", lambda: utc_millis() + days * DAY)
    report = remove_orphan_files(table._ref, dry_run=False)
    assert (report.orphans, report.young) == ((), 1)
    assert table._ref.file_io.exists(young)
    assert not list((tmp_path / "warehouse/db.db/t/.penstock").iterdir())
