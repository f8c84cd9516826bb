"""Going back to an older snapshot, and what a reader sees while that is under way."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.commit.interleaved import PausedFileIO, commit_rows
from tests.unit.table.commit_tables import append, committer, new_queue, new_table, on, row_counts, rows

from penstock import Catalog, sql
from penstock.catalog.changes import AddColumn, DropColumn
from penstock.errors import CommitConflictError, FormatError, InvalidOptionError, NotFoundError, StorageError
from penstock.format.snapshot import ROLLED_BACK_TO, encode_hint, encode_snapshot
from penstock.table.actions.changes import truncate
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.read.live import load_live_entries
from penstock.table.read.travel import NO_WATERMARK
from penstock.table.store import MetadataStore
from penstock.table.stream.consumers import record_progress
from penstock.table.tags import create_tag
from penstock.testing.file_io import FailingFileIO, Fault, ProcessDiedError

if TYPE_CHECKING:
    from penstock import Table
    from penstock.table.ref import TableRef

FAULTS = list(Fault)


def history(ref: TableRef, *, snapshots: int = 5) -> MetadataStore:
    """Snapshot n adds a file of n rows; snapshot 2 is tagged ``two``, snapshot 4 ``four``."""
    ours = committer(ref)
    for number in range(1, snapshots + 1):
        ours.commit(append(rows(number)))
    store = MetadataStore(ref)
    create_tag(store, "two", snapshot_id=2)
    create_tag(store, "four", snapshot_id=4)
    return store


def expire(ref: TableRef, *snapshot_ids: int) -> None:
    """Take the snapshot files away, as an expiration does that spares what tags need."""
    for snapshot_id in snapshot_ids:
        ref.file_io.delete(ref.layout.snapshot_path(snapshot_id))
        ref.file_io.write(ref.layout.earliest_hint_path, encode_hint(snapshot_id + 1))


def test_a_plan_names_what_would_go_and_changes_nothing() -> None:
    ref = new_table()
    store = history(ref)
    plan = plan_rollback(store, snapshot_id=3)
    assert (plan.target.id, plan.is_recreated, plan.snapshot_ids, plan.tags) == (3, False, (5, 4), ("four",))
    assert row_counts(ref) == [1, 2, 3, 4, 5]
    assert plan_rollback(store, tag="four").snapshot_ids == (5,)
    assert plan_rollback(store, tag="four").tags == ()


def test_a_rollback_makes_the_target_the_latest() -> None:
    ref = new_table()
    store = history(ref)
    assert apply_rollback(store, plan_rollback(store, snapshot_id=3)).id == 3
    assert row_counts(ref) == [1, 2, 3]
    fresh = MetadataStore(ref)
    assert (fresh.list_snapshot_ids(), fresh.list_tags()) == ((1, 2, 3), ("two",))
    assert ref.file_io.read(ref.layout.latest_hint_path) == b"3"


@pytest.mark.parametrize("damage", [b"", b"{", b"no json"])
@pytest.mark.parametrize("damaged", [(5,), (4, 5)])
@pytest.mark.parametrize("target", ["snapshot_id", "timestamp_millis", "tag"])
def test_a_rollback_goes_past_damaged_snapshots(damage: bytes, damaged: tuple[int, ...], target: str) -> None:
    ref = new_table()
    store = history(ref)
    time_millis = store.load_snapshot(2).time_millis
    for snapshot_id in damaged:
        ref.file_io.write(ref.layout.snapshot_path(snapshot_id), damage)
    arguments = {"snapshot_id": 2, "timestamp_millis": time_millis, "tag": "two"}
    plan = plan_rollback(store, **{target: arguments[target]})  # type: ignore[arg-type]
    assert apply_rollback(store, plan).id == plan.target.id
    assert row_counts(ref) == list(range(1, plan.target.id + 1))
    committer(ref).commit(append(rows(9)))
    assert row_counts(ref) == [*range(1, plan.target.id + 1), 9]


def test_an_old_plan_brings_nothing_back_that_was_rolled_back_since() -> None:
    ref = new_table()
    store = history(ref)
    old = plan_rollback(store, snapshot_id=3)
    apply_rollback(store, plan_rollback(store, snapshot_id=1))
    for number in (20, 30, 40):
        committer(ref).commit(append(rows(number)))
    with pytest.raises(CommitConflictError, match="snapshot 3 was rolled back or has expired since"):
        apply_rollback(MetadataStore(ref), old)
    assert row_counts(ref) == [1, 20, 30, 40]


def test_consumers_that_have_read_what_goes_continue_after_the_target() -> None:
    ref = new_table()
    store = history(ref)
    for position in (2, 3, 4, 6):
        record_progress(store, f"at-{position}", position)
    store.file_io.write(ref.layout.consumer_path("damaged"), b"{")
    apply_rollback(MetadataStore(ref, sleep=lambda _: None), plan_rollback(store, snapshot_id=2))
    assert [store.load_consumer(f"at-{position}") for position in (2, 3, 4, 6)] == [2, 3, 3, 3]


@pytest.mark.parametrize("target", [2, 4])
def test_consumers_continue_after_a_fence_that_stays(target: int) -> None:
    ref = new_table()
    store = history(ref)
    for position in (2, target + 1, 6):
        record_progress(store, f"at-{position}", position)
    paused = PausedFileIO(ref.file_io, "/snapshot-5", before=lambda: commit_rows(ref, 9))
    apply_rollback(MetadataStore(on(ref, paused)), plan_rollback(store, snapshot_id=target))
    added = store.list_snapshot_ids()[-1]
    assert row_counts(ref) == [*range(1, target + 1), 9]
    assert [store.load_consumer(f"at-{position}") for position in (2, target + 1, 6)] == [2, added, added]


def test_a_rollback_to_the_latest_snapshot_keeps_everything() -> None:
    ref = new_table()
    store = history(ref)
    apply_rollback(store, plan_rollback(store, snapshot_id=5))
    assert row_counts(ref) == [1, 2, 3, 4, 5]
    assert MetadataStore(ref).list_tags() == ("four", "two")


def test_a_rollback_brings_back_what_was_truncated() -> None:
    ref = new_table()
    store = history(ref)
    truncate(committer(ref))
    assert row_counts(ref) == []
    apply_rollback(store, plan_rollback(store, snapshot_id=5))
    assert row_counts(ref) == [1, 2, 3, 4, 5]


def test_a_tag_whose_snapshot_expired_brings_it_back() -> None:
    ref = new_table()
    store = history(ref)
    expire(ref, 1, 2, 3)
    plan = plan_rollback(store, tag="two")
    assert plan.is_recreated
    apply_rollback(store, plan)
    fresh = MetadataStore(ref)
    assert (fresh.list_snapshot_ids(), fresh.earliest_snapshot_id(), fresh.latest_snapshot_id()) == ((2,), 2, 2)
    assert row_counts(ref) == [1, 2]
    committer(ref).commit(append(rows(7)))
    assert row_counts(ref) == [1, 2, 7]
    assert MetadataStore(ref).list_snapshot_ids() == (2, 3)


def test_commits_of_a_handle_that_lived_through_it_follow_the_new_history() -> None:
    ref = new_queue(1)
    ours = committer(ref)
    for number in range(1, 6):
        ours.commit(append(rows(number, total_buckets=1)))
    apply_rollback(ours.store, plan_rollback(ours.store, snapshot_id=2))
    committer(ref).commit(append(rows(10, total_buckets=1)))
    snapshot = ours.commit(append(rows(20, total_buckets=1)))
    assert snapshot is not None
    assert (snapshot.id, snapshot.total_record_count) == (4, 33)
    entries = load_live_entries(MetadataStore(ref), snapshot).values()
    assert [(e.file.min_sequence_number, e.file.max_sequence_number) for e in entries] == [
        (0, 0), (1, 2), (3, 12), (13, 32),
    ]  # fmt: skip


def test_exactly_one_target_is_to_be_named_and_must_be_there() -> None:
    store = history(new_table())
    with pytest.raises(InvalidOptionError, match="or a tag, or a timestamp, or a watermark"):
        plan_rollback(store)
    with pytest.raises(InvalidOptionError, match="or a tag, or a timestamp, or a watermark"):
        plan_rollback(store, snapshot_id=1, tag="two")
    with pytest.raises(NotFoundError, match=r"snapshot 9 does not exist yet; snapshots 1 to 5 are there"):
        plan_rollback(store, snapshot_id=9)
    with pytest.raises(NotFoundError, match=r"no tag 'three'; its tags are 'four', 'two'"):
        plan_rollback(store, tag="three")


def seen(ref: TableRef) -> list[int]:
    return sorted(row_counts(ref))


# Each call fails in one way, the ways taking turns; the long version fails each call in all ways.
@pytest.mark.parametrize("turn", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, len(FAULTS)))])
@pytest.mark.parametrize("expired", [(), (1, 2, 3)])
def test_wherever_it_stops_the_table_reads_as_a_whole_snapshot_and_it_can_be_done_again(
    turn: int, expired: tuple[int, ...]
) -> None:
    counting = new_table()
    store = history(counting)
    expire(counting, *expired)
    clean = FailingFileIO(counting.file_io)
    apply_rollback(MetadataStore(on(counting, clean)), plan_rollback(store, tag="two"))
    assert clean.call_count >= 5
    for at in range(1, clean.call_count + 1):
        ref = new_table()
        store = history(ref)
        expire(ref, *expired)
        plan = plan_rollback(store, tag="two")
        failing = FailingFileIO(ref.file_io, FAULTS[(at + turn) % len(FAULTS)], at)
        try:
            apply_rollback(MetadataStore(on(ref, failing)), plan)
        except (ProcessDiedError, StorageError) as error:
            told = str(error)
        else:  # the lists of its fence would be orphans, and no more
            told = str(at) if "/manifest/" in failing.calls[at - 1].path else ""
        assert str(at) in told
        assert seen(ref) in [list(range(1, last + 1)) for last in range(2, 6)]
        apply_rollback(store, plan_rollback(store, tag="two"))
        assert seen(ref) == [1, 2]
        for number in range(3, 8):  # across where the deleted snapshots were
            committer(ref).commit(append(rows(number)))
        assert seen(ref) == list(range(1, 8))
        fresh = MetadataStore(ref)
        assert fresh.earliest_snapshot_id() == fresh.list_snapshot_ids()[0]


@pytest.mark.parametrize("expired", [(), (1, 2, 3)])
def test_a_commit_on_a_rollback_that_died_half_way_loses_nothing_that_was_seen(expired: tuple[int, ...]) -> None:
    for at in range(1, 9):
        ref = new_table()
        store = history(ref)
        expire(ref, *expired)
        plan = plan_rollback(store, tag="two")
        with contextlib.suppress(ProcessDiedError):
            apply_rollback(MetadataStore(on(ref, FailingFileIO(ref.file_io, Fault.CRASH_BEFORE, at))), plan)
        before = seen(ref)
        for number in range(10, 15):
            committer(ref).commit(append(rows(number)))
            assert seen(ref) == [*before, *range(10, number + 1)]


def with_watermarks(*watermarks: int | None) -> MetadataStore:
    ref = new_table()
    for watermark in watermarks:
        snapshot = committer(ref).commit(append(rows(1), watermark=None))
        assert snapshot is not None
        # Straight into the file: other engines drop a watermark, or store what means none.
        path = ref.layout.snapshot_path(snapshot.id)
        ref.file_io.write(path, encode_snapshot(replace(snapshot, watermark=watermark)))
    return MetadataStore(ref)


@pytest.mark.parametrize(
    ("watermarks", "until", "target"),
    [
        ((10, 20, 30), 20, 2),
        ((10, 20, 30), 29, 2),
        ((10, 20, 30), 99, 3),
        ((10, 20, 20, 20, 30), 20, 4),
        ((None, NO_WATERMARK, 10, None, 20), 10, 4),
        ((None, 10, NO_WATERMARK), 15, 3),
        ((10,), 10, 1),
    ],
)
def test_a_watermark_leads_to_the_newest_snapshot_that_is_not_beyond_it(
    watermarks: tuple[int | None, ...], until: int, target: int
) -> None:
    store = with_watermarks(*watermarks)
    plan = plan_rollback(store, watermark=until)
    assert plan.target.id == target
    assert apply_rollback(store, plan).id == target
    assert store.list_snapshot_ids() == tuple(range(1, target + 1))


@given(
    steps=st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=12),
    until=st.integers(-1, 20),
    expired=st.integers(0, 3),
    gap=st.one_of(st.just(range(0)), st.builds(range, st.integers(2, 6), st.integers(3, 11))),
)
def test_the_search_finds_what_looking_at_each_finds(
    steps: list[int | None], until: int, expired: int, gap: range
) -> None:
    reached = 0
    watermarks = [None if step is None else (reached := reached + step) for step in steps]
    store = with_watermarks(*watermarks)
    expired = min(expired, len(steps) - 1)
    gone = {*range(1, expired + 1), *(each for each in gap if each < len(steps))}
    for snapshot_id in gone:
        store.file_io.delete(store.layout.snapshot_path(snapshot_id))
    for below, snapshot in pairwise(list(store.snapshots_between())):
        if below.id + 1 < snapshot.id:  # a rollback beside a commit leaves a gap
            properties = ((ROLLED_BACK_TO, str(below.id - 1)),)
            path = store.layout.snapshot_path(snapshot.id)
            store.file_io.write(path, encode_snapshot(replace(snapshot, properties=properties)))
    known, counted = None, {}
    for snapshot_id, watermark in enumerate(watermarks, start=1):
        if snapshot_id in gone:
            continue
        known = known if watermark is None else watermark
        counted[snapshot_id] = known
    wanted = [each for each, watermark in counted.items() if watermark is not None and watermark <= until]
    if wanted:
        assert plan_rollback(store, watermark=until).target.id == wanted[-1]
    else:
        with pytest.raises(NotFoundError, match=r"no snapshot has a watermark of 19.* or earlier"):
            plan_rollback(store, watermark=until)


@pytest.mark.parametrize(
    ("watermarks", "says"),
    [
        ((1_000, 2_000), r"of 1970-01-01 00:00:00.999\+00:00 \(999\) or earlier; the least is .* \(1000\)$"),
        ((None, 1_000), r"the least is 1970-01-01 00:00:01.000\+00:00 \(1000\)$"),
        ((None, NO_WATERMARK), "none of them has one$"),
        ((), "nothing was committed yet"),
    ],
)
def test_where_all_watermarks_are_beyond_it_nothing_is_rolled_back(
    watermarks: tuple[int | None, ...], says: str
) -> None:
    store = with_watermarks(*watermarks)
    with pytest.raises(NotFoundError, match=says):
        plan_rollback(store, watermark=999)
    assert len(store.list_snapshot_ids()) == len(watermarks)


def test_a_watermark_and_another_target_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="or a tag, or a timestamp, or a watermark"):
        plan_rollback(with_watermarks(1), snapshot_id=1, watermark=1)


def test_a_tag_of_a_snapshot_after_the_latest_is_no_target() -> None:
    ref = new_table()
    committer(ref).commit(append(rows(1)))
    committer(ref).commit(append(rows(2)))
    store = MetadataStore(ref)
    crafted = replace(store.load_snapshot(2), id=999)
    ref.file_io.write(ref.layout.tag_path("late"), encode_snapshot(crafted))
    with pytest.raises(NotFoundError, match="names snapshot 999, and the latest snapshot is 2"):
        plan_rollback(store, tag="late")
    assert store.list_snapshot_ids() == (1, 2)


def _table_of_two_schemas() -> tuple[Catalog, Table]:
    """Return a table with snapshots 1 of schema 0, 2 of schema 1, and a schema 2 that no snapshot names."""
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n BIGINT")
    table.append(pa.table({"n": [1]}))
    table = catalog.alter_table("d.t", AddColumn(column="a", type="STRING"))
    table.append(pa.table({"n": [2], "a": ["x"]}))
    return catalog, catalog.alter_table("d.t", DropColumn(column="a"))


@pytest.mark.parametrize("damage", [b"", b"{", b"no json"])
@pytest.mark.parametrize(("damaged", "target"), [((2,), 2), ((2,), 1), ((1, 2), 1), ((1,), 1)])
def test_a_rollback_deletes_damaged_schemas_after_that_of_its_target(
    damage: bytes, damaged: tuple[int, ...], target: int
) -> None:
    catalog, table = _table_of_two_schemas()
    for schema_id in damaged:
        table._ref.file_io.write(table._ref.layout.schema_path(schema_id), damage)
    if 2 in damaged:
        with pytest.raises(FormatError, match="schema-2"):
            catalog.load_table("d.t")
    loaded = catalog.load_table("d.t", skip_damaged_schemas=True)
    assert [finding.path[-8:] for finding in loaded.inspect.fsck().findings][:1] == [f"schema-{min(damaged)}"]
    plan = loaded.rollback_to(snapshot_id=target, dry_run=True)
    assert plan.damaged_schema_ids == damaged
    assert loaded._store.list_schema_ids() == (0, 1, 2)
    loaded.rollback_to(snapshot_id=target)
    table = catalog.load_table("d.t")
    assert table._store.list_schema_ids() == tuple(each for each in (0, 1, 2) if each not in damaged)
    assert table.inspect.fsck().findings == ()
    assert table.to_arrow()["n"].to_pylist() == [1, 2][:target]
    table = catalog.alter_table("d.t", AddColumn(column="other", type="BIGINT"))
    table.append(pa.table({name: pa.array([None], pa.null()) for name in table.to_arrow().column_names}))


@pytest.mark.parametrize(
    "statement",
    [
        "CALL sys.rollback('d.t', '1')",
        "CALL sys.rollback_to(`table` => 'd.t', snapshot_id => 1)",
        "CALL sys.rollback_to_timestamp('d.t', {millis})",
    ],
)
def test_rollback_procedures_go_past_damaged_schemas(statement: str) -> None:
    catalog, table = _table_of_two_schemas()
    first = table._store.load_snapshot(1)
    for schema_id in (1, 2):
        table._ref.file_io.write(table._ref.layout.schema_path(schema_id), b"")
    sql(None, catalog, statement.format(millis=first.time_millis))
    table = catalog.load_table("d.t")
    assert table.to_arrow().to_pylist() == [{"n": 1}]
    assert table._store.list_schema_ids() == (0,)


def test_a_rollback_as_the_latest_names_what_deletes_a_damaged_schema() -> None:
    catalog, table = _table_of_two_schemas()
    table._ref.file_io.write(table._ref.layout.schema_path(2), b"")
    loaded = catalog.load_table("d.t", skip_damaged_schemas=True)
    cure = "'penstock rollback d.t --snapshot-id 2' deletes it, and no snapshot; then repeat this"
    for attempt in (
        lambda: loaded.versions.rollback_to_as_latest(snapshot_id=1),
        lambda: sql(None, catalog, "CALL sys.rollback_to_as_latest(`table` => 'd.t', snapshot_id => 1)"),
    ):
        with pytest.raises(FormatError, match=cure):
            attempt()
    assert loaded.inspect.tags().num_rows == 0
    loaded.rollback_to(snapshot_id=2)
    table = catalog.load_table("d.t")
    assert table._store.list_snapshot_ids() == (1, 2)
    table.versions.rollback_to_as_latest(snapshot_id=1)
    assert table.to_arrow()["n"].to_pylist() == [1]


def test_a_rollback_as_the_latest_needs_the_schema_of_the_latest_snapshot() -> None:
    catalog, table = _table_of_two_schemas()
    for schema_id in (1, 2):
        table._ref.file_io.write(table._ref.layout.schema_path(schema_id), b"")
    table._ref.file_io.delete(table._ref.layout.schema_path(2))
    loaded = catalog.load_table("d.t", skip_damaged_schemas=True)
    with pytest.raises(FormatError, match="roll back without as-latest to a snapshot with an older schema"):
        loaded.versions.rollback_to_as_latest(snapshot_id=1)
    loaded.rollback_to(snapshot_id=1)
    assert catalog.load_table("d.t").to_arrow()["n"].to_pylist() == [1]


@pytest.mark.parametrize("data", [b"", None])
def test_a_snapshot_whose_schema_cannot_be_read_is_no_target(data: bytes | None) -> None:
    catalog, table = _table_of_two_schemas()
    path = table._ref.layout.schema_path(1)
    if data is None:
        table._ref.file_io.delete(path)
    else:
        table._ref.file_io.write(path, data)
    with pytest.raises((FormatError, NotFoundError), match="schema-1"):
        catalog.load_table("d.t").rollback_to(snapshot_id=2)
