from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.table.metadata_tables import MemoryTable

from penstock import Catalog, RenameColumn
from penstock.errors import DataLossError, InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.snapshot import ROLLED_BACK_TO, CommitKind, Snapshot
from penstock.format.types.data_types import BIGINT, DataField
from penstock.options import ReadOptions
from penstock.table.commit.expiring import announce_expiration
from penstock.table.read.incremental import plan_changes
from penstock.table.read.travel import (
    NO_WATERMARK,
    at_snapshot,
    find_at_or_after,
    find_at_or_before,
    newest_by_time,
    resolve_read,
    resolve_snapshot,
    translate_as_of,
)
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Snapshot n was committed at 1000 n; watermarks where they are None count as the one before.
WATERMARKS = (None, 10, 20, None, NO_WATERMARK, 30, None)


@pytest.fixture(scope="module")
def table() -> MemoryTable:
    made = MemoryTable()
    for number, watermark in enumerate(WATERMARKS, 1):
        kind = CommitKind.COMPACT if number in {3, 5} else CommitKind.APPEND
        made.commit(watermark=watermark, commit_kind=kind)
    made.put_tag("first", made.snapshots[0])
    made.put_tag("2", made.snapshots[4])
    made.expire(1)
    return made


def resolved(table: MemoryTable, options: dict[str, str]) -> int | None:
    snapshot = resolve_read(table.store, ReadOptions.parse(options)).snapshot
    return None if snapshot is None else snapshot.id


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 7),
        ({"scan.mode": "latest-full"}, 7),
        ({"scan.mode": "FULL"}, 7),
        ({"scan.mode": "latest"}, 7),
        ({"scan.mode": "compacted-full"}, 5),
        ({"scan.snapshot-id": "3"}, 3),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}, 3),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"}, 3),
        ({"scan.tag-name": "first"}, 1),
        ({"scan.timestamp-millis": "4000"}, 4),
        ({"scan.timestamp-millis": "4999"}, 4),
        ({"scan.timestamp-millis": "99999"}, 7),
        ({"scan.timestamp-millis": "2000"}, 2),
        ({"scan.watermark": "1"}, 2),
        ({"scan.watermark": "10"}, 2),
        ({"scan.watermark": "11"}, 3),
        ({"scan.watermark": "21"}, 6),
        ({"scan.watermark": "30"}, 6),
        ({"scan.version": "2"}, 5),
        ({"scan.version": "first"}, 1),
        ({"scan.version": "3"}, 3),
        ({"scan.version": "watermark-15"}, 3),
        ({"scan.creation-time-millis": "3500"}, 4),
    ],
)
def test_a_position_names_its_snapshot(table: MemoryTable, options: dict[str, str], expected: int) -> None:
    assert resolved(table, options) == expected


@pytest.mark.parametrize(("millis", "expected"), [(1500, 1), (2999, 2), (3000, 3), (4500, 5), (6500, 7), (9000, 9)])
def test_clocks_that_go_back_do_not_bring_what_is_younger(millis: int, expected: int) -> None:
    table = MemoryTable()
    for number in range(1, 10):  # a search by halves meets 5 first
        table.commit(time_millis={5: 200, 7: 100}.get(number, 1000 * number))
    assert resolved(table, {"scan.timestamp-millis": str(millis)}) == expected
    spans = {"incremental-between-timestamp": f"0,{millis}"}
    assert plan_changes(table.store, table.ref, ReadOptions.parse(spans)).snapshot == table.snapshots[expected - 1]


def test_a_clock_far_ahead_hides_later_snapshots_until_its_time() -> None:
    table = MemoryTable()
    for number in range(1, 600):
        table.commit(time_millis=10**9 if number == 400 else 1000 * number)
    assert resolved(table, {"scan.timestamp-millis": "450000"}) == 399
    assert resolved(table, {"scan.timestamp-millis": str(10**9)}) == 599


@pytest.mark.parametrize("earliest", [1, 2, 3])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scan.timestamp-millis": "3000"}, 3),
        ({"scan.timestamp-millis": "6000"}, 3),
        ({"scan.timestamp-millis": "9000"}, 9),
        ({"scan.timestamp-millis": "11000"}, 11),
        ({"scan.watermark": "31"}, 9),
        ({"scan.watermark": "90"}, 9),
        ({"scan.watermark": "30"}, 3),
        ({"scan.watermark": "101"}, 11),
        ({"scan.mode": "compacted-full"}, 3),
        ({"scan.creation-time-millis": "3001"}, 9),
        ({"scan.creation-time-millis": "9500"}, 10),
    ],
)
def test_a_gap_of_ids_is_no_end_of_history(options: dict[str, str], expected: int, earliest: int) -> None:
    """A rollback beside a commit leaves one."""
    table = MemoryTable()
    for number in range(1, 12):
        kind = CommitKind.COMPACT if number == 3 else CommitKind.APPEND
        properties = ((ROLLED_BACK_TO, "2"),) if number == 9 else ()
        table.commit(watermark=10 * number if number != 10 else None, commit_kind=kind, properties=properties)
    for gone in (*range(1, earliest), *range(4, 9)):
        table.expire(gone)
    assert resolved(table, options) == expected


GAP_POSITIONS = [
    {"scan.timestamp-millis": "3000"},
    {"scan.timestamp-millis": "8999"},
    {"scan.creation-time-millis": "3001"},
    {"scan.creation-time-millis": "9000"},
    {"scan.watermark": "31"},
    {"scan.watermark": "90"},
    {"scan.version": "watermark-90"},
    {"scan.mode": "compacted-full"},
]


def gap() -> MemoryTable:
    """Snapshots 1 to 3 and 9 to 11; the third is of a compaction."""
    table = MemoryTable()
    for number in range(1, 12):
        kind = CommitKind.COMPACT if number == 3 else CommitKind.APPEND
        table.commit(watermark=10 * number, commit_kind=kind)
    for gone in range(4, 9):
        table.expire(gone)
    return table


@pytest.mark.parametrize("options", GAP_POSITIONS)
def test_a_position_next_to_lost_snapshots_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(DataLossError, match="the files of snapshots 4 to 8 are missing, and no rollback deleted them"):
        resolved(gap(), options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scan.timestamp-millis": "2999"}, 2),
        ({"scan.timestamp-millis": "9000"}, 9),
        ({"scan.timestamp-millis": "11000"}, 11),
        ({"scan.creation-time-millis": "2500"}, 3),
        ({"scan.watermark": "30"}, 3),
        ({"scan.watermark": "91"}, 10),
        ({"scan.snapshot-id": "3"}, 3),
        ({"scan.snapshot-id": "9"}, 9),
    ],
)
def test_positions_away_from_lost_snapshots_are_found(options: dict[str, str], expected: int) -> None:
    assert resolved(gap(), options) == expected


@pytest.mark.parametrize(("options", "expected"), [*zip(GAP_POSITIONS, [None, None, 11, 11, 9, 9, 9, 11], strict=True)])
def test_an_expiration_that_deletes_in_no_order_leaves_no_older_state(
    options: dict[str, str], expected: int | None
) -> None:
    table = gap()
    announce_expiration(table.store, 9)
    with nullcontext() if expected else pytest.raises(NotFoundError, match="no snapshot at or before"):
        assert resolved(table, options) == expected


@pytest.mark.parametrize(
    ("snapshot_id", "before", "after"), [(0, None, 2), (1, None, 2), (2, 2, 2), (3, 2, 5), (5, 5, 5), (6, 5, None)]
)
def test_missing_ids_are_skipped_to_the_nearest_snapshot(
    snapshot_id: int, before: int | None, after: int | None
) -> None:
    table = MemoryTable()
    for _ in range(5):
        table.commit()
    for gone in (1, 3, 4):
        table.expire(gone)
    ids = {each.id: each for each in table.snapshots}
    assert find_at_or_before(table.store, snapshot_id) == ids.get(before or 0)
    assert find_at_or_after(table.store, snapshot_id) == ids.get(after or 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scan.snapshot-id": "1"}, "has expired"),
        ({"scan.snapshot-id": "8"}, "does not exist yet"),
        ({"scan.tag-name": "none"}, "its tags are '2', 'first'"),
        ({"scan.timestamp-millis": "1999"}, "the earliest that is still there, snapshot 2"),
        ({"scan.watermark": "31"}, "no snapshot has a watermark"),
        ({"scan.version": "nothing"}, "is not a tag"),
        ({"scan.version": "watermark-x"}, "is not a tag"),
    ],
)
def test_a_position_without_a_snapshot_says_what_there_is(
    table: MemoryTable, options: dict[str, str], words: str
) -> None:
    with pytest.raises(NotFoundError, match=words) as raised:
        resolved(table, options)
    assert "shop.orders" in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"scan.snapshot-id": "3", "scan.tag-name": "first"},
        {"scan.snapshot-id": "3", "scan.timestamp-millis": "1"},
        {"scan.timestamp-millis": "1", "scan.timestamp": "2024-01-01"},
        {"scan.mode": "latest", "scan.snapshot-id": "3"},
        {"scan.mode": "from-snapshot"},
        {"scan.mode": "from-timestamp", "scan.snapshot-id": "3"},
        {"scan.mode": "from-snapshot-full", "scan.tag-name": "first"},
        {"scan.mode": "compacted-full", "scan.watermark": "3"},
        {"scan.mode": "latest-full", "incremental-between": "1,2"},
        {"scan.mode": "incremental"},
        {"scan.mode": "incremental", "scan.snapshot-id": "3"},
        {"incremental-between": "1,2", "scan.tag-name": "first"},
        {"incremental-between": "1,2", "scan.timestamp-millis": "5"},
        {"incremental-between": "1,2", "scan.file-creation-time-millis": "5"},
        {"incremental-between": "1,2", "incremental-between-timestamp": "1,2"},
        {"incremental-between": "1,2", "incremental-to-auto-tag": "first"},
        {"scan.mode": "from-snapshot", "scan.snapshot-id": "3", "incremental-between": "1,2"},
        {"scan.mode": "latest-delta", "scan.snapshot-id": "3"},
        {"scan.timestamp": "yesterday"},
    ],
)
def test_options_that_contradict_each_other_are_refused(table: MemoryTable, options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        resolved(table, options)


def test_a_mode_of_streams_is_refused_with_what_to_use_instead(table: MemoryTable) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"scan\.mode 'earliest' is for streams: read the table as one"):
        resolved(table, {"scan.mode": "earliest"})


def test_a_local_time_is_of_this_machines_zone(table: MemoryTable) -> None:
    local = dt.datetime.fromtimestamp(4.5, dt.UTC).astimezone().replace(tzinfo=None)
    assert resolved(table, {"scan.timestamp": local.isoformat(sep=" ", timespec="milliseconds")}) == 4


def test_arguments_say_the_same_as_options(table: MemoryTable) -> None:
    store = table.store
    found = [
        resolve_snapshot(store),
        resolve_snapshot(store, snapshot_id=3),
        resolve_snapshot(store, tag="first"),
        resolve_snapshot(store, timestamp_millis=4000),
        resolve_snapshot(store, watermark=11),
    ]
    assert [snapshot and snapshot.id for snapshot in found] == [7, 3, 1, 4, 3]
    with pytest.raises(InvalidOptionError, match="exactly one"):
        resolve_snapshot(store, snapshot_id=3, tag="first")


def test_only_files_created_later_are_taken_from_the_latest(table: MemoryTable) -> None:
    point = resolve_read(table.store, ReadOptions.parse({"scan.file-creation-time-millis": "5"}))
    assert point.snapshot is not None
    assert (point.snapshot.id, point.created_from_millis) == (7, 5)
    point = resolve_read(table.store, ReadOptions.parse({"scan.creation-time-millis": "99999"}))
    assert point.created_from_millis == 99999


def test_an_empty_table_has_a_latest_state_and_no_other() -> None:
    store = MemoryTable().store
    assert resolve_snapshot(store) is None
    with pytest.raises(NotFoundError, match="nothing was committed"):
        resolve_snapshot(store, snapshot_id=1)


def test_a_past_state_has_the_columns_of_then_and_the_options_of_now() -> None:
    table = MemoryTable()
    snapshot = table.commit()
    fields = (*table.schema.fields, DataField(id=9, name="added", type=BIGINT))
    table.put_schema(replace(table.schema, id=1, fields=fields, options=(("bucket", "-1"),)))
    then = at_snapshot(table.ref, table.store, snapshot)
    assert then.schema.field_names == ("id", "name", "dt")
    assert then.options == {"bucket": "-1"}


@pytest.mark.parametrize("names", [("w", "v"), ("v", "k")])
def test_a_past_state_is_pruned_by_its_bucket_key_whatever_its_columns_are_called_now(names: tuple[str, str]) -> None:
    catalog = Catalog(f"memory://past-keys-{names[0]}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, v INT", options={"bucket": "8", "bucket-key": "k"})
    table.append([{"k": number, "v": 100 - number} for number in range(100)])
    steps = (("k", "x"), ("v", names[1]), ("x", names[0]))
    changes = [RenameColumn(column=old, new_name=new) for old, new in steps if old != new]
    table = catalog.alter_table("d.t", *changes)
    for condition in ("k = 7", "v = 7"):
        assert table.to_arrow(snapshot_id=1, filter=condition).num_rows == 1
    assert "after buckets: 1 partition, 1 bucket," in table.explain(snapshot_id=1, filter="k = 7")


TEN = 1_767_261_600_000  # 2026-01-01T10:00:00Z


@pytest.mark.parametrize("value", ["3", "first"])
def test_a_version_is_a_tag_or_the_id_of_a_snapshot(value: str) -> None:
    assert translate_as_of({"VERSIONASOF": value, "a": "1"}, "t") == {"a": "1", "scan.version": value}


@pytest.mark.parametrize(
    ("text", "zone", "millis"),
    [
        ("2026-01-01T10:00:00Z", None, TEN),
        ("2026-01-01 11:00:00.5+01:00", "America/New_York", TEN + 500),
        ("2026-01-01 11:00:00 Europe/Berlin", None, TEN),
        (" 2026-01-01 11:00:00 ", "Europe/Berlin", TEN),
        ("2026-01-01 12:00:00", "+02:00", TEN),
        ("2026-01-01", "UTC", TEN - 36_000_000),
    ],
)
def test_a_time_is_of_its_own_zone_or_else_of_the_readers(text: str, zone: str | None, millis: int) -> None:
    assert translate_as_of({"timestampAsOf": text}, "t", zone) == {"scan.timestamp-millis": str(millis)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timestampAsOf": "2026-01-01 10:00:00"}, r"zone of this time is not known here: .*'2026-01-01T10:00:00Z'"),
        ({"timestampAsOf": "yesterday"}, "expected a time such as"),
        (
            {"timestampAsOf": "2026-01-01 10:00:00 Nowhere/At_All"},
            "'timestampAsOf' = 'Nowhere/At_All': expected the name",
        ),
        ({"timestampAsOf": "0001-01-01 00:00:00+10:00"}, "outside of the calendar"),
        ({"versionAsOf": "1", "timestampAsOf": "2026-01-01"}, "'versionAsOf' and 'timestampAsOf' contradict"),
        ({"versionAsOf": "1", "scan.snapshot-id": "1"}, "'versionAsOf' and 'scan.snapshot-id' contradict"),
    ],
)
def test_what_names_no_single_state_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"table t: .*{words}"):
        translate_as_of(options, "t")


def test_options_without_either_stay_as_they_are() -> None:
    assert translate_as_of({"scan.mode": "latest"}, "t") == {"scan.mode": "latest"}


class Snapshots:
    """The snapshots of a store in memory; counts its requests."""

    snapshots_at_once = 64

    def __init__(self, times: dict[int, int]) -> None:
        some = MemoryTable()
        some.commit()
        base = some.store.load_latest_snapshot()
        assert base is not None
        self.snapshots = {}
        for below, each in pairwise((0, *sorted(times))):  # rollbacks leave the gaps
            properties = ((ROLLED_BACK_TO, str(below - 1)),)
            self.snapshots[each] = replace(base, id=each, time_millis=times[each], properties=properties)
        self.requests = 0

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        self.requests += 1
        return self.snapshots.get(snapshot_id)

    def find_snapshots(self, ids: Sequence[int]) -> Iterator[Snapshot]:
        self.requests += 1
        return (self.snapshots[each] for each in ids if each in self.snapshots)

    def list_snapshot_ids(self) -> tuple[int, ...]:
        self.requests += 1
        return tuple(sorted(self.snapshots))

    def load_earliest_snapshot(self) -> Snapshot | None:
        return self.snapshots[min(self.snapshots)]


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 400), st.integers(0, 60), min_size=1, max_size=120),
    st.integers(0, 60),
    st.booleans(),
    st.sampled_from([1, 2, 64]),
)
def test_the_snapshot_of_a_time_is_before_the_first_one_that_is_late(
    times: dict[int, int],
    millis: int,
    or_equal: bool,  # noqa: FBT001
    at_once: int,
) -> None:
    # Fewer snapshots than are checked for times that go back, so the answer is exact.
    store: Any = Snapshots(times)
    store.snapshots_at_once = at_once
    latest = store.snapshots[max(times)]
    found = newest_by_time(store, latest, millis, or_equal=or_equal)
    expected = None
    for each in sorted(times):
        if not (times[each] <= millis if or_equal else times[each] < millis):
            break
        expected = each
    # The binary search may end at an earlier one if times go back; it never returns one after a late one.
    assert (found and found.id) == expected or (found is not None and expected is not None and found.id <= expected)


def test_the_snapshots_before_a_time_are_requested_several_at_once() -> None:
    store: Any = Snapshots({each: each for each in range(1, 1_001)})
    found = newest_by_time(store, store.snapshots[1_000], 900)
    assert found is not None
    assert found.id == 899
    assert store.requests == 2 + 4


def test_the_snapshots_around_a_watermark_are_requested_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, requests = MemoryTable(), []
    for number in range(1, 301):
        table.commit(watermark=number if number % 2 else None)
    for name in ("find_snapshot", "find_snapshots"):
        original = getattr(MetadataStore, name)

        def counted(*arguments: Any, _original: Any = original, _name: str = name) -> Any:
            requests.append(_name)
            return _original(*arguments)

        monkeypatch.setattr(MetadataStore, name, counted)
    assert resolved(table, {"scan.watermark": "200"}) == 201
    assert len([each for each in requests if each == "find_snapshot"]) <= 2
    assert len(requests) < 20
