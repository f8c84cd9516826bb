"""Changes of each commit, and stalls of the watermark."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.inspect.history.histories import commit
from tests.unit.table.metadata_tables import MemoryTable

from penstock import Catalog, Table
from penstock.clocks import END_OF_TIME_MS
from penstock.errors import DamagedFileWarning, FormatError, NotFoundError
from penstock.format.layout import TableLayout
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import CommitKind
from penstock.table.compact.task import CompactSizes
from penstock.table.inspect.history.commits import ChangeReader, find_stalled_watermarks
from penstock.table.inspect.history.history import HistoryReader, load_history
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


def new_table(options: dict[str, str] | None = None) -> Table:
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", "n BIGINT, dt STRING", partition_by=["dt"], options=options or {})


def add(table: Table, *days: str) -> None:
    table.append(pa.table({"n": list(range(len(days))), "dt": list(days)}))


def recorded(ref: TableRef) -> tuple[TableRef, RecordingFileIO]:
    log = RecordingFileIO(ref.file_io)
    return replace(ref, file_io=log), log


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "n"}], ids=["scalable", "queue"])
def test_what_the_table_held_is_what_each_snapshot_lists(options: dict[str, str]) -> None:
    table = new_table(options)
    for number in range(6):
        add(table, "a", "b" if number % 2 else "a")
    table.compact(strategy="full")
    add(table, "c")
    table.overwrite(pa.table({"n": [9, 8], "dt": ["a", "a"]}))
    table.drop_partitions({"dt": "b"})
    add(table, "b")
    table.truncate()
    add(table, "d", "d", "d")

    commits = load_history(table._ref, MetadataStore(table._ref))

    assert [each.snapshot.id for each in commits] == list(range(1, table.latest_snapshot().id + 1))  # type: ignore[union-attr]
    sizes = CompactSizes.of(table._ref)
    kinds = set()
    for each in commits:
        store = MetadataStore(table._ref)
        files = [entry.file for entry in load_live_entries(store, each.snapshot).values()]
        assert each.live.files == len(files)
        assert each.live.rows == sum(file.row_count for file in files) == each.snapshot.total_record_count
        assert each.live.bytes == sum(file.file_size for file in files)
        assert each.live.small_files == sum(map(sizes.is_small, files))
        change = each.change
        assert change.added.rows - change.removed.rows == each.snapshot.delta_record_count
        assert change.brings_rows == (each.snapshot.commit_kind is not CommitKind.COMPACT and change.added.rows > 0)
        kinds.add(each.snapshot.commit_kind)
    assert kinds == {CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE}


def test_each_list_is_read_once_and_no_base_but_the_newest() -> None:
    made = MemoryTable()
    for number in range(30):
        made.commit(made.entry(made.file(f"f{number}")))
    ref, log = recorded(made.ref)
    load_history(ref, MetadataStore(ref))
    lists = [path.rpartition("/")[2] for path in log.paths(Operation.READ, containing="manifest-list")]
    assert sorted(lists) == sorted(
        [each.delta_manifest_list for each in made.snapshots] + [made.snapshots[-1].base_manifest_list]
    )
    manifests = log.paths(Operation.READ, containing="/manifest/manifest-")
    assert len(manifests) == len(set(manifests))
    assert len(log.paths(Operation.READ, containing="/snapshot/snapshot-")) == 30


def test_a_second_look_reads_only_what_is_new() -> None:
    made = MemoryTable()
    for number in range(10):
        made.commit(made.entry(made.file(f"f{number}")))
    ref, log = recorded(made.ref)
    reader = HistoryReader(ref, MetadataStore(ref))
    reader.load()
    log.forget()
    before = reader.load()
    assert log.paths(Operation.READ, containing="/manifest/") == ()
    # Whether the newest is still the same one, after a rollback.
    assert [path.rpartition("/")[2] for path in log.paths(Operation.READ, containing="/snapshot/snapshot-")] == [
        "snapshot-10"
    ]
    log.forget()
    made.commit(made.entry(made.file("new")))
    after = reader.load()
    assert [commit.snapshot.id for commit in after.commits] == [*(each.snapshot.id for each in before.commits), 11]
    assert len(log.paths(Operation.READ, containing="/manifest/")) == 3, "two lists and the manifest of the new one"


def test_only_the_newest_are_looked_at_and_the_others_are_counted() -> None:
    made = MemoryTable()
    for number in range(7):
        made.commit(made.entry(made.file(f"f{number}")))
    ref, log = recorded(made.ref)
    loaded = ChangeReader(ref, MetadataStore(ref)).load(3)
    assert [change.snapshot.id for change in loaded.changes] == [5, 6, 7]
    assert loaded.left_out == 4
    assert len(log.paths(Operation.READ, containing="/snapshot/snapshot-")) == 3
    commits = load_history(made.ref, made.store, limit=3)
    assert [commit.live.files for commit in commits] == [5, 6, 7]


def test_snapshots_that_expire_meanwhile_end_the_look() -> None:
    made = MemoryTable()
    for number in range(5):
        made.commit(made.entry(made.file(f"f{number}")))
    gone = made.snapshots[1]
    store = made.store
    ids = store.list_snapshot_ids()
    store.list_snapshot_ids = lambda: ids  # type: ignore[method-assign]
    made.file_io.delete(TableLayout(made.location).manifest_path(gone.delta_manifest_list))
    made.expire(gone.id)
    loaded = ChangeReader(made.ref, store).load()
    assert [change.snapshot.id for change in loaded.changes] == [3, 4, 5]
    assert loaded.left_out == 2


def test_a_manifest_that_a_snapshot_has_lost_is_an_error() -> None:
    made = MemoryTable()
    made.commit(made.entry(made.file("a")))
    made.file_io.delete(TableLayout(made.location).manifest_path(made.snapshots[0].delta_manifest_list))
    with pytest.raises(NotFoundError, match="penstock fsck"):
        ChangeReader(made.ref, made.store).load()


@pytest.mark.parametrize("is_lost", [True, False])
def test_the_state_before_a_lost_or_damaged_snapshot_is_read(*, is_lost: bool) -> None:
    made = MemoryTable()
    for number in range(6):
        made.commit(made.entry(made.file(f"f{number}")))
    path = TableLayout(made.location).snapshot_path(4)
    if is_lost:
        made.file_io.delete(path)
        commits = load_history(made.ref, made.store)
    else:
        made.file_io.write(path, b"{")
        with pytest.warns(DamagedFileWarning, match="snapshot 4 cannot be read and is left out: 'penstock fsck"):
            commits = load_history(made.ref, made.store)
    assert [(commit.snapshot.id, commit.live.files) for commit in commits] == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    ref, log = recorded(made.ref)
    reader = HistoryReader(ref, MetadataStore(ref))
    history = reader.load()
    assert [(each.snapshot.id, each.live.files) for each in history.commits] == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    assert [snapshot_id for snapshot_id, _ in history.unreadable] == ([] if is_lost else [4])
    assert history.left_out == 0
    log.forget()
    reader.load()
    assert log.paths(Operation.READ, containing="/manifest/") == (), "the state before the gap is read once"


def test_a_damaged_latest_snapshot_has_no_history() -> None:
    made = MemoryTable()
    for number in range(2):
        made.commit(made.entry(made.file(f"f{number}")))
    made.file_io.write(TableLayout(made.location).snapshot_path(2), b"")
    with pytest.raises(FormatError, match=f"snapshot-2.*: penstock rollback {made.ref.name} --snapshot-id 1"):
        load_history(made.ref, made.store)


def test_after_a_rollback_the_new_snapshots_are_reported() -> None:
    made = MemoryTable()
    for number in range(4):
        made.commit(made.entry(made.file(f"f{number}")))
    reader = ChangeReader(made.ref, made.store)
    reader.load()
    for snapshot_id in (3, 4):
        made.expire(snapshot_id)
    made.snapshots = made.snapshots[:2]
    made._base = made._base[:2]
    made.commit(
        made.entry(made.file("other", row_count=77)),
        made.entry(made.file("f0"), kind=FileKind.DELETE),
        time_millis=9_999,
    )
    changes = reader.load().changes
    assert [change.snapshot.id for change in changes] == [1, 2, 3]
    assert changes[-1].added.rows == 77
    assert changes[-1].removed.files == 1


def test_the_lag_is_commit_time_less_watermark() -> None:
    made = MemoryTable()
    for watermark in (None, -(2**63), 400, 7_000, END_OF_TIME_MS, 2**63 - 1):
        made.commit(made.entry(made.file(f"w{watermark}")), watermark=watermark, time_millis=5_000)
    commits = load_history(made.ref, made.store)
    assert [commit.event_time_lag_ms for commit in commits] == [None, None, 4_600, -2_000, None, None]
    assert commits[1].watermark is None


WATERMARKS = st.one_of(st.none(), st.integers(0, 3))


def test_rows_that_do_not_move_it_make_a_standstill() -> None:
    found = find_stalled_watermarks([commit(1, 0, 10), commit(2, 100, 20), commit(3, 200, 20), commit(4, 350, 30)])
    assert [(each.watermark, each.from_millis, each.to_millis, each.commits, each.is_open) for each in found] == [
        (20, 100, 200, 1, False)
    ]
    assert found[0].duration_ms == 100


def test_the_last_one_is_open_until_something_moves_it() -> None:
    found = find_stalled_watermarks([commit(1, 0, 10), commit(2, 100, 10), commit(3, 300, 10)])
    assert [(each.from_millis, each.to_millis, each.commits, each.is_open) for each in found] == [(0, 300, 2, True)]


def test_time_in_which_nothing_comes_does_not_count() -> None:
    later = 10**9
    found = find_stalled_watermarks(
        [commit(1, 0, 10), commit(2, 100, 10), commit(3, later, 10, rows=0), commit(4, later, 20)]
    )
    assert [(each.from_millis, each.to_millis) for each in found] == [(0, 100)]


def test_merges_do_not_count() -> None:
    merges = [commit(number, number * 100, 10, rows=0) for number in range(2, 5)]
    assert find_stalled_watermarks([commit(1, 0, 10), *merges]) == ()
    assert find_stalled_watermarks([commit(1, 0, 10), *merges, commit(6, 700, 10)])[0].commits == 1


def test_without_a_watermark_no_stall_is_reported() -> None:
    assert find_stalled_watermarks([commit(1, 0, None), commit(2, 100, None), commit(3, 200, 5)]) == ()
    assert find_stalled_watermarks([]) == ()


@given(st.lists(st.tuples(WATERMARKS, st.booleans()), max_size=12))
def test_every_commit_with_rows_and_the_watermark_of_the_one_before_it_is_counted_once(
    history: list[tuple[int | None, bool]],
) -> None:
    commits = [
        commit(number, number * 10, watermark, rows=int(has_rows))
        for number, (watermark, has_rows) in enumerate(history, start=1)
    ]
    stuck = sum(
        after[1] and after[0] is not None and after[0] == before[0] for before, after in itertools.pairwise(history)
    )
    found = find_stalled_watermarks(commits)
    assert sum(each.commits for each in found) == stuck
    assert not any(each.is_open for each in found[:-1])
    assert all(before.to_millis <= after.from_millis for before, after in itertools.pairwise(found))
