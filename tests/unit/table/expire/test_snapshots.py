"""What expiration of snapshots deletes, and what retains the rest."""

from __future__ import annotations

import gc
import logging
import uuid
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.garbage import needed_files, stored_files

from penstock import Catalog, Table
from penstock.clocks import utc_millis
from penstock.errors import DamagedFileWarning, FormatError, InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.consumer import encode_consumer
from penstock.format.layout import TableLayout
from penstock.format.snapshot import CommitKind, encode_snapshot
from penstock.format.tag import Tag, encode_tag
from penstock.io.memory import MemoryFileIO
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.expire.plan import Retainer, RetainerKind
from penstock.table.expire.snapshots import Chunk
from penstock.table.message import CommitMessage
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.expire.snapshots import Expiration

FUTURE = 4_000_000_000_000


def new_table(**options: str) -> Table:
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    catalog.create_database("db")
    return catalog.create_table(
        "db.t", "k BIGINT, dt STRING", partition_by=["dt"], options={"write-only": "true", **options}
    )


def rows(*numbers: int, dt: str = "2026-01-01") -> pa.Table:
    return pa.table({"k": pa.array(numbers, pa.int64()), "dt": [dt] * len(numbers)})


def overwritten(count: int, **options: str) -> Table:
    """A table of which each snapshot replaces what there was."""
    table = new_table(**options)
    for number in range(1, count + 1):
        table.overwrite(rows(number))
    return table


def expire(table: Table, **how: Any) -> Expiration:
    return table.expire_snapshots(**{"retain_min": 1, "older_than": FUTURE, **how})


def test_a_history_of_appends_expires_without_a_look_at_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    for number in range(5):
        table.append(rows(number))
    with monkeypatch.context() as patch:
        patch.setattr(MetadataStore, "load_manifest", lambda _self, name, *_, **__: pytest.fail(f"{name} was read"))
        report = expire(table)
    assert (len(report.snapshot_ids), report.data_files) == (4, 0)
    assert stored_files(table._ref) == needed_files(table._ref)
    assert table.to_arrow().num_rows == 5


def test_files_of_an_expired_snapshot_are_deleted_if_no_other_reads_them() -> None:
    table = overwritten(5)
    found = expire(table, retain_min=2)
    assert found.snapshot_ids == (1, 2, 3)
    assert (found.data_files, found.earliest_id, found.is_dry_run) == (3, 4, False)
    assert found.data_bytes > 0
    assert stored_files(table._ref) == needed_files(table._ref)
    assert table.to_arrow(snapshot_id=4).column("k").to_pylist() == [4]


def test_live_files_are_retained_whatever_their_age() -> None:
    table = new_table()
    for number in range(6):
        table.append(rows(number))
    found = expire(table)
    assert (found.snapshot_ids, found.data_files) == ((1, 2, 3, 4, 5), 0)
    assert sorted(table.to_arrow().column("k").to_pylist()) == [0, 1, 2, 3, 4, 5]


def test_a_dry_run_returns_what_would_expire_and_changes_nothing() -> None:
    table = overwritten(5)
    before = stored_files(table._ref)
    would = expire(table, dry_run=True)
    assert stored_files(table._ref) == before
    did = expire(table)
    assert replace(would, is_dry_run=False) == did
    assert did.metadata_files > 0


def test_the_result_names_what_retains_snapshots() -> None:
    table = overwritten(6)
    table.create_tag("second", snapshot_id=2)
    table._ref.file_io.write(TableLayout(table.location).consumer_path("slow"), encode_consumer(5))
    found = expire(table)
    assert found.snapshot_ids == (1, 2, 3, 4)
    assert found.data_files == 3
    assert Retainer(kind=RetainerKind.CONSUMER, name="slow", snapshot_id=5) in found.holds
    assert Retainer(kind=RetainerKind.TAG, name="second", files=1) in found.holds
    assert table.to_arrow(tag="second").column("k").to_pylist() == [2]


def test_deleting_a_tag_deletes_the_files_that_only_it_retained() -> None:
    table = overwritten(6)
    table.create_tag("second", snapshot_id=2)
    table.create_tag("twin", snapshot_id=2)
    expire(table)
    table.versions.delete_tag("second")
    assert table.to_arrow(tag="twin").column("k").to_pylist() == [2]
    table.versions.delete_tag("twin")
    assert stored_files(table._ref) == needed_files(table._ref)


def test_a_branch_retains_what_it_added_before_a_fast_forward() -> None:
    table = new_table()
    for number in range(1, 5):
        table.append(rows(number))
    table.create_tag("t", snapshot_id=3)
    file_io, branch = table._ref.file_io, TableLayout(table.location).branch("b").location
    file_io.write(f"{branch}/schema/schema-0", file_io.read(f"{table.location}/schema/schema-0"))
    for number in range(1, 5):
        file_io.write(
            TableLayout(branch).snapshot_path(number), file_io.read(TableLayout(table.location).snapshot_path(number))
        )
    forwarded = table._store.load_snapshot(4)
    table.overwrite(rows(9))
    found = expire(table)
    table.versions.delete_tag("t")
    assert found.snapshot_ids == (1, 2, 3, 4)
    assert [(hold.name, hold.files) for hold in found.holds if hold.kind is RetainerKind.BRANCH] == [("b", 1)]
    file_io.write(TableLayout(table.location).tag_path("branch"), encode_tag(Tag(snapshot=forwarded)))
    assert sorted(table.to_arrow(tag="branch").column("k").to_pylist()) == [1, 2, 3, 4]
    assert not table.remove_orphan_files().orphans


@pytest.mark.parametrize("source", ["main", "b"])
def test_a_branch_shares_files_that_java_merges_from_one_to_the_other(source: str) -> None:
    main = new_table()
    main.versions.create_branch("b")
    tables = {"main": main, "b": main.with_options({"branch": "b"})}
    for name, table in tables.items():
        for number in range(5 if name == "b" else 2):
            table.append(rows(number))
    (target,) = (table for name, table in tables.items() if name != source)
    # As ``sys.merge_branch`` does: the live files of one are new files of the other.
    latest = tables[source].latest_snapshot()
    assert latest is not None
    messages = tuple(
        CommitMessage(partition=each.partition, bucket=each.bucket, total_buckets=-1, new_files=(each.file,))
        for each in load_live_entries(tables[source]._store, latest).values()
    )
    assert commit_append(open_committer(target._ref), messages) is not None
    expected = sorted(tables["b"].to_arrow()["k"].to_pylist())
    main.create_tag("t")
    main.overwrite(rows(9))
    expire(main)
    main.versions.delete_tag("t")
    assert sorted(tables["b"].to_arrow()["k"].to_pylist()) == expected


def test_a_branch_retains_its_initial_files() -> None:
    table = overwritten(4)
    file_io, branch = table._ref.file_io, TableLayout(table.location).branch("b").location
    second = table._store.load_snapshot(2)
    file_io.write(f"{branch}/schema/schema-0", file_io.read(f"{table.location}/schema/schema-0"))
    file_io.write(TableLayout(branch).snapshot_path(2), encode_snapshot(second))
    found = expire(table)
    assert Retainer(kind=RetainerKind.BRANCH, name="b", files=1) in found.holds
    file_io.write(TableLayout(table.location).tag_path("branch"), encode_tag(Tag(snapshot=second)))
    assert table.to_arrow(tag="branch").column("k").to_pylist() == [2]


def test_files_that_a_later_snapshot_adds_again_are_retained() -> None:
    """Newer Paimon rolls back by adding the old files again."""
    table = overwritten(3)
    first = table._store.load_delta(table._store.load_snapshot(1))[0]
    table.append(rows(4))
    # As such a writer does it: a snapshot of its own, whose delta adds the first file again.
    latest = table.latest_snapshot()
    assert latest is not None
    committer = open_committer(table._ref)
    writer = committer._new_writer()
    delta = writer.write_list(writer.write_manifests([first], schema_id=0))
    base = writer.write_list(table._store.load_manifests(latest))
    brought_back = replace(
        latest,
        id=5,
        commit_kind=CommitKind.OVERWRITE,
        base_manifest_list=base.name,
        base_manifest_list_size=base.size,
        delta_manifest_list=delta.name,
        delta_manifest_list_size=delta.size,
        writer_version=None,
        total_record_count=(latest.total_record_count or 0) + 1,
    )
    table._ref.file_io.write(TableLayout(table.location).snapshot_path(5), encode_snapshot(brought_back))
    expire(table, retain_min=2)
    assert sorted(Table.at(table.location).to_arrow().column("k").to_pylist()) == [1, 3, 4]


def test_files_that_a_snapshot_added_again_are_retained_if_an_expiration_stopped_after_its_manifests() -> None:
    table = overwritten(2)
    table.versions.rollback_to_as_latest(snapshot_id=1)
    for name in table.inspect.tags().column("tag_name").to_pylist():
        table.versions.delete_tag(name)
    table.append(rows(4))
    table.maintenance.compact_manifests()
    table.append(rows(5))
    store = table._store
    kept = {meta.file_name for meta in store.load_manifests(store.load_snapshot(6))}
    gone = {meta.file_name for meta in store.load_delta_manifests(store.load_snapshot(3))} - kept
    assert gone
    for name in gone:
        table._ref.file_io.delete(store.layout.manifest_path(name))
    again = Table(table._ref)
    assert expire(again).snapshot_ids == (1, 2, 3, 4, 5)
    assert sorted(again.to_arrow().column("k").to_pylist()) == [1, 4, 5]
    assert needed_files(table._ref) <= stored_files(table._ref)


@pytest.mark.parametrize("retain", [1, 2, 3])
def test_files_whose_deletion_was_lost_with_a_manifest_are_retained(retain: int) -> None:
    """The snapshot that omits the manifest is below the first kept one, that one, or above it."""
    options = {"manifest.target-file-size": "3 kb", "manifest.merge-min-count": "2"}
    table = new_table(**options, **{"manifest.full-compaction-threshold-size": "1 gb"})
    table.append(pa.table({"k": range(60), "dt": [f"2026-02-{day % 28:02}-{day}" for day in range(60)]}))
    table.drop_partitions({"dt": "2026-02-01-1"})
    for number in range(3):
        table.append(rows(100 + number))
    store, latest = table._store, table.latest_snapshot()
    assert latest is not None
    own = {meta.file_name for meta in store.load_delta_manifests(store.load_snapshot(2))}
    (lost,) = {meta.file_name for meta in store.load_manifests(latest) if meta.num_deleted_files} - own
    table._ref.file_io.delete(store.layout.manifest_path(lost))
    table = Table(table._ref)
    assert [each.deleted_files for each in table.maintenance.remove_missing_manifests()] == [1]
    assert 1 in table.to_arrow()["k"].to_pylist()
    table.append(rows(7))
    expire(table, retain_min=retain)
    assert 1 in table.to_arrow()["k"].to_pylist()
    assert retain == 3 or needed_files(table._ref) <= stored_files(table._ref)


def damage(table: Table, snapshot_id: int) -> None:
    table._ref.file_io.write(TableLayout(table.location).snapshot_path(snapshot_id), b"")


def test_files_that_a_rollback_as_the_latest_adds_again_are_retained_without_its_tag() -> None:
    table = overwritten(2)
    table.versions.rollback_to_as_latest(snapshot_id=1)
    for name in table.inspect.tags().column("tag_name").to_pylist():
        table.versions.delete_tag(name)
    assert expire(table, retain_min=2).snapshot_ids == (1,)
    assert table.to_arrow().column("k").to_pylist() == [1]
    assert table.inspect.fsck().findings == ()


@pytest.mark.parametrize("retain_min", [1, 3])
@pytest.mark.parametrize("is_lost", [True, False])
def test_files_that_a_lost_or_damaged_snapshot_added_again_are_retained(retain_min: int, *, is_lost: bool) -> None:
    """The snapshot is below the first kept one, or above it."""
    table = overwritten(2)
    table.versions.rollback_to_as_latest(snapshot_id=1)
    for name in table.inspect.tags().column("tag_name").to_pylist():
        table.versions.delete_tag(name)
    table.append(rows(4))
    if is_lost:
        table._ref.file_io.delete(TableLayout(table.location).snapshot_path(3))
        expire(table, retain_min=retain_min)
    else:
        damage(table, 3)
        with pytest.warns(DamagedFileWarning, match="snapshot 3 is damaged"):
            expire(table, retain_min=retain_min)
    assert sorted(table.to_arrow().column("k").to_pylist()) == [1, 4]
    assert Table.at(table.location).inspect.fsck().findings == () or retain_min == 3


@pytest.mark.parametrize(
    ("damaged", "retain_min", "expired", "kept"),
    [
        pytest.param(3, 2, (1, 2, 3, 4), (5, 6), id="among those that expire"),
        pytest.param(5, 2, (1, 2, 3), (4, 5, 6), id="the first that is kept"),
        pytest.param(5, 3, (1, 2, 3), (4, 5, 6), id="after the first that is kept"),
        pytest.param(1, 2, (1, 2, 3, 4), (5, 6), id="the earliest"),
    ],
)
def test_an_expiration_goes_past_a_damaged_snapshot(
    damaged: int, retain_min: int, expired: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    table = overwritten(6)
    damage(table, damaged)
    with pytest.warns(DamagedFileWarning, match=f"table db.t: snapshot {damaged} is damaged") as warned:
        found = expire(table, retain_min=retain_min)
    cure = "remove-orphan-files" if damaged in expired else "penstock fsck db.t"
    assert cure in str(warned[0].message)
    assert warned[0].filename == __file__
    assert (found.snapshot_ids, found.unreadable_ids) == (expired, (damaged,))
    assert table._store.list_snapshot_ids() == kept
    assert table.to_arrow().column("k").to_pylist() == [6]
    assert [each.snapshot_id for each in table.inspect.fsck(all_snapshots=True).findings] == [
        each for each in kept if each == damaged
    ]
    table.overwrite(rows(7))
    table.overwrite(rows(8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedFileWarning)
        assert expire(table, retain_min=1).earliest_id == 8


def test_a_damaged_snapshot_keeps_what_its_age_may_keep() -> None:
    table = overwritten(4)
    times = [snapshot.time_millis for snapshot in table._store.snapshots_between()]
    damage(table, 2)
    # Whether snapshot 2 is older than the cutoff is not known; snapshot 3 is not.
    assert expire(table, older_than=times[2], retain_max=4).snapshot_ids == ()


def test_an_expiration_next_to_a_damaged_latest_snapshot_deletes_nothing() -> None:
    table = overwritten(4)
    damage(table, 4)
    before = stored_files(table._ref)
    with pytest.raises(FormatError, match="snapshot-4"):
        expire(table, retain_min=2)
    assert stored_files(table._ref) == before


def test_states_of_the_table_since_a_time_stay_readable() -> None:
    table = overwritten(4)
    times = [table._store.load_snapshot(each).time_millis for each in (1, 2, 3, 4)]
    moment = datetime.fromtimestamp(times[2] / 1000, UTC)
    found = expire(table, older_than=moment)
    # Up to the commit of the third the table was what the second says.
    first_kept = next(each for each in (1, 2, 3) if times[each] >= times[2])
    assert found.snapshot_ids == tuple(range(1, first_kept))


def test_a_missing_earliest_hint_is_written_again() -> None:
    table = overwritten(3)
    path = f"{table.location}/snapshot/EARLIEST"
    table._ref.file_io.delete(path)
    expire(table, retain_min=3)
    assert table._ref.file_io.read(path) == b"1"
    expire(table)
    assert table._ref.file_io.read(path) == b"3"


def test_a_tag_that_cannot_be_read_stops_everything() -> None:
    table = overwritten(3)
    table._ref.file_io.write(TableLayout(table.location).tag_path("broken"), b"{")
    before = stored_files(table._ref)
    with pytest.raises(FormatError, match="tag-broken"):
        expire(table)
    assert stored_files(table._ref) == before


def test_changelogs_of_other_engines_are_refused() -> None:
    table = overwritten(3)
    table._ref.file_io.write(f"{table.location}/changelog/changelog-1", b"{}")
    with pytest.raises(UnsupportedFeatureError, match="keeps changelogs longer than snapshots"):
        expire(table)


def test_rules_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="at least 5 and at most 2"):
        expire(overwritten(3), retain_min=5, retain_max=2)


def test_an_empty_table_has_nothing_to_expire() -> None:
    assert expire(new_table()).snapshot_ids == ()


def test_many_snapshots_expire_in_several_steps() -> None:
    table = new_table()
    for number in range(1, 8):
        table.overwrite(rows(number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.table.expire.snapshots._CHUNK", 2)
        found = expire(table)
    assert found.snapshot_ids == (1, 2, 3, 4, 5, 6)
    assert (found.data_files, found.earliest_id) == (6, 7)
    assert stored_files(table._ref) == needed_files(table._ref)


def test_empty_directories_are_deleted_if_the_option_is_set(tmp_path: Any) -> None:
    for wanted in ("true", "false"):
        catalog = Catalog(str(tmp_path / wanted))
        catalog.create_database("db")
        table = catalog.create_table(
            "db.t", "k BIGINT, dt STRING", partition_by=["dt"], options={"snapshot.clean-empty-directories": wanted}
        )
        table.append(rows(1, dt="a"))
        table.append(rows(2, dt="b"))
        table.drop_partitions({"dt": "a"})
        expire(table)
        assert (tmp_path / wanted / "db.db" / "t" / "dt=a").exists() == (wanted == "false")
        assert (tmp_path / wanted / "db.db" / "t" / "dt=b" / "bucket-0").exists()


# After commits

QUICK = {"write-only": "false", "snapshot.time-retained": "0 ms", "snapshot.num-retained.min": "2"}


def ids(table: Table) -> tuple[int, ...]:
    return table._store.list_snapshot_ids()


def test_commits_expire_old_snapshots() -> None:
    table = new_table(**QUICK)
    for number in range(30):
        table.overwrite(rows(number))
    assert 2 <= len(ids(table)) <= 4  # those of one millisecond stay together
    assert stored_files(table._ref) == needed_files(table._ref)


def test_commits_of_a_write_only_table_expire_nothing() -> None:
    table = new_table(**{**QUICK, "write-only": "true"})
    for number in range(5):
        table.overwrite(rows(number))
    assert len(ids(table)) == 5


def test_a_commit_expires_at_most_the_configured_number() -> None:
    table = overwritten(9)
    table.with_options({**QUICK, "snapshot.expire.limit": "3", "snapshot.num-retained.max": "2"}).append(rows(1))
    assert ids(table) == (4, 5, 6, 7, 8, 9, 10)


def test_expiration_runs_in_a_thread_if_the_option_is_set() -> None:
    table = overwritten(9).with_options(
        {**QUICK, "snapshot.expire.execution-mode": "async", "snapshot.num-retained.max": "2"}
    )
    table.append(rows(1))
    table._handle.committer().after_commit.__self__.wait()  # type: ignore[attr-defined] # a bound method
    assert ids(table) == (9, 10)


def test_a_failed_expiration_is_logged_once_and_fails_no_commit(caplog: pytest.LogCaptureFixture) -> None:
    table = overwritten(9)
    table._ref.file_io.write(TableLayout(table.location).tag_path("broken"), b"{")
    writer = table.with_options({**QUICK, "snapshot.num-retained.max": "2"})
    with caplog.at_level(logging.WARNING):
        assert writer.append(rows(1)) is not None
        writer._handle.committer().after_commit.__self__._retention._next_look = 0  # type: ignore[attr-defined] # a bound method
        assert writer.append(rows(2)) is not None
    assert len(ids(table)) == 11
    assert len([each for each in caplog.records if "tag-broken" in each.message]) == 1


class HalfExpired(RecordingFileIO):
    """Says of some lists that they are gone, as while another job expires the snapshot that names them."""

    gone: tuple[str, ...] = ()

    def read(self, path: str) -> bytes:
        if path.rpartition("/")[2] in self.gone:
            raise NotFoundError(path)
        return super().read(path)


def test_a_concurrent_expiration_causes_no_warning_unless_it_persists(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = overwritten(9)
    storage = HalfExpired(table._ref.file_io)
    options = {"write-only": "false", **QUICK, "snapshot.num-retained.min": "4"}
    writer = Table(replace(table._ref, file_io=storage, dynamic_options=tuple(options.items())))
    committer = writer._handle.committer()
    with caplog.at_level(logging.INFO):
        storage.gone = (table._store.load_snapshot(7).base_manifest_list,)
        commit_append(committer, writer._write(rows(1)))
        assert (len(ids(table)), [each.levelname for each in caplog.records]) == (10, ["INFO"])
        storage.gone = (table._store.load_snapshot(8).base_manifest_list,)
        commit_append(committer, writer._write(rows(2)))
        assert [each.levelname for each in caplog.records] == ["INFO", "WARNING"]
        storage.gone = ()
        commit_append(committer, writer._write(rows(3)))
    assert ids(table) == (9, 10, 11, 12)


def test_a_dry_run_writes_nothing_not_even_a_hint() -> None:
    table = overwritten(5)
    table._ref.file_io.delete(TableLayout(table.location).earliest_hint_path)
    before = stored_files(table._ref)
    assert expire(table, dry_run=True).snapshot_ids == (1, 2, 3, 4)
    assert stored_files(table._ref) == before
    assert not table._ref.file_io.exists(TableLayout(table.location).earliest_hint_path)


@pytest.mark.usefixtures("small_heap")
def test_a_long_expiration_does_not_hold_the_names_of_deleted_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.table.expire.snapshots._CHUNK", 2)
    table = overwritten(12)
    table.create_tag("t", snapshot_id=1)
    table.create_tag("u", snapshot_id=6)
    held: list[int] = []

    def count(_: int) -> None:
        gc.collect()
        held.append(sum(isinstance(each, Chunk) for each in gc.get_objects()))

    monkeypatch.setattr("penstock.table.expire.snapshots.delete_files", lambda *_, deleted, **__: count(deleted(1)))
    found = expire(table)
    assert max(held) <= 2  # the one at hand, and the one before it
    assert found.snapshot_ids == tuple(range(1, 12))
    assert (found.data_files, found.metadata_files > 9, found.earliest_id) == (9, True, 12)
    assert [(hold.name, hold.files) for hold in found.holds if hold.kind is RetainerKind.TAG] == [("t", 1), ("u", 1)]


def test_most_commits_send_no_requests_for_expiration() -> None:
    table = overwritten(12)
    recording = RecordingFileIO(table._ref.file_io)
    writer = Table(replace(table._ref, file_io=recording, dynamic_options=(("write-only", "false"),)))
    counts = []
    for number in range(4):
        recording.forget()
        writer.append(rows(number))
        counts.append(len(recording.calls))
    quiet = Table(replace(table._ref, file_io=recording, dynamic_options=(("write-only", "true"),)))
    quiet.append(rows(1))
    recording.forget()
    quiet.append(rows(1))
    assert counts[2] == counts[3] == len(recording.calls)


def test_expired_tags_and_consumers_are_deleted_after_a_commit() -> None:
    table = overwritten(3)
    old = datetime.now(UTC) - timedelta(days=3)
    stale = Tag(
        snapshot=table._store.load_snapshot(1),
        create_time=int(old.timestamp()) * 10**9,
        retained_seconds=Decimal(60),
    )
    table._ref.file_io.write(TableLayout(table.location).tag_path("stale"), encode_tag(stale))
    table.create_tag("fresh", time_retained="1 d")
    table.create_tag("lasting")
    table._ref.file_io.write(TableLayout(table.location).consumer_path("silent"), encode_consumer(1))
    clock = utc_millis() + 10_000
    writer = table.with_options({"write-only": "false", "consumer.expiration-time": "1 s"})
    writer._handle.committer().clock_millis = lambda: clock
    writer.append(rows(1))
    assert table._store.list_tags() == ("fresh", "lasting")
    assert table._store.list_consumers() == ()


def test_an_expiration_stopped_before_its_snapshot_files_is_finished_by_a_shorter_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = overwritten(8)
    delete = MemoryFileIO.delete

    def stop(self: MemoryFileIO, path: str, *, recursive: bool = False) -> bool:
        if "/snapshot/snapshot-" in path:
            raise KeyboardInterrupt
        return delete(self, path, recursive=recursive)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileIO, "delete", stop)
        with pytest.raises(KeyboardInterrupt):
            expire(table, retain_min=2)
    assert table.to_arrow().num_rows == 1
    # What the snapshots named that lost their lists is not asked for: orphan removal goes on.
    report = table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert report.orphans == ()
    assert expire(table, retain_min=2, max_deletes=2).snapshot_ids == (1, 2, 3, 4, 5, 6)
    assert stored_files(table._ref) == needed_files(table._ref)
    table.overwrite(rows(9))
    assert expire(table, retain_min=2, max_deletes=1).snapshot_ids == (7,)
