from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock.errors import DataLossError, InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.manifest.entry import FileKind
from penstock.format.manifest.stats import ColumnStats
from penstock.format.snapshot import ROLLED_BACK_TO, CommitKind
from penstock.predicate.parse import parse_filter
from penstock.table.inspect.explain import explain_plan
from penstock.table.read.query import plan_query, read_ref
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.table.read.scan import ScanPlan
    from penstock.table.ref import TableRef


@pytest.fixture
def table() -> MemoryTable:
    """Files named by their snapshot; 3 compacts a and b, 5 overwrites d, and the first snapshot has expired.

    Snapshot n was committed at 1000 n.
    """
    made = MemoryTable(partition_keys=("dt",))

    def add(name: str, dt: str = "x", low: int = 0, high: int = 9) -> ManifestEntry:
        stats = {"id": ColumnStats(min=low, max=high, null_count=0)}
        return made.entry(made.file(name, stats), (dt,), bucket=0)

    def drop(name: str, dt: str = "x") -> ManifestEntry:
        return made.entry(made.file(name), (dt,), kind=FileKind.DELETE)

    made.commit(add("a"))
    made.commit(add("b"), add("b2", "y", 100, 109))
    made.commit(drop("a"), drop("b"), add("ab"), commit_kind=CommitKind.COMPACT)
    made.commit(add("d"))
    made.commit(drop("d"), add("e"), commit_kind=CommitKind.OVERWRITE)
    made.commit(add("f", "y"))
    made.put_tag("one", made.snapshots[0])
    made.put_tag("four", made.snapshots[3])
    made.put_tag("six", made.snapshots[5])
    made.expire(1)
    return made


def planned(table: MemoryTable, options: Mapping[str, str], where: str | None = None) -> ScanPlan:
    return plan_query(with_options(table, options), table.store, parse_filter(where) if where else None).plan


def with_options(table: MemoryTable, options: Mapping[str, str]) -> TableRef:
    return table.ref.with_options(options)


def files(table: MemoryTable, options: Mapping[str, str], where: str | None = None) -> list[str]:
    return sorted(entry.file.file_name.removesuffix(".parquet") for entry in planned(table, options, where).entries)


DIFF = {"incremental-between-scan-mode": "diff"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"incremental-between": "1,2"}, ["b", "b2"]),
        ({"incremental-between": "1,6"}, ["b", "b2", "d", "f"]),
        ({"incremental-between": " 2 , 4 "}, ["d"]),
        ({"incremental-between": "2,3"}, []),
        ({"incremental-between": "4,5"}, []),
        ({"incremental-between": "4,4"}, []),
        ({"scan.mode": "incremental", "incremental-between": "5,6", "incremental-between-scan-mode": "delta"}, ["f"]),
        ({"incremental-between": "2,6"} | DIFF, ["ab", "e", "f"]),
        ({"incremental-between": "3,4"} | DIFF, ["d"]),
        ({"incremental-between": "4,6"} | DIFF, ["e", "f"]),
        # Two tags are a difference, whatever the mode; expired snapshots live on in them.
        ({"incremental-between": "one,six"}, ["ab", "b2", "e", "f"]),
        ({"incremental-between": "one,six", "incremental-between-scan-mode": "delta"}, ["ab", "b2", "e", "f"]),
        ({"incremental-between": "six,six"}, []),
        ({"incremental-between": "four,six", "incremental-between-tag-to-snapshot": "true"}, ["f"]),
        ({"incremental-between": "one,six", "incremental-between-tag-to-snapshot": "true"}, ["b", "b2", "d", "f"]),
        ({"incremental-between": "four,six", "incremental-between-tag-to-snapshot": "true"} | DIFF, ["e", "f"]),
        ({"incremental-between-timestamp": "2000,4000"}, ["d"]),
        ({"incremental-between-timestamp": "2999,3999"}, []),
        ({"incremental-between-timestamp": "1999,4000"}, ["b", "b2", "d"]),
        ({"incremental-between-timestamp": "5,1999"}, []),
        ({"incremental-between-timestamp": "6000,9999"}, []),
        ({"incremental-between-timestamp": "4000,4000"}, []),
        ({"incremental-between-timestamp": "4000,9999"} | DIFF, ["e", "f"]),
        # What the expired first snapshot held is not known, so the earliest that is left is the start.
        ({"incremental-between-timestamp": "5,9999"} | DIFF, ["ab", "e", "f"]),
        ({"scan.mode": "latest-delta"}, ["f"]),
    ],
)
def test_changes_are_those_behind_the_start_up_to_the_end(
    table: MemoryTable, options: dict[str, str], expected: list[str]
) -> None:
    assert files(table, options) == expected


def six_snapshots(*, rolled_back_to: int | None = None) -> MemoryTable:
    """Snapshots 1 to 6 append files a to f; the fifth may be that of a rollback."""
    table = MemoryTable()
    for name in "abcdef":
        is_fence = name == "e" and rolled_back_to is not None
        properties = ((ROLLED_BACK_TO, str(rolled_back_to)),) if is_fence else ()
        table.commit(table.entry(table.file(name)), properties=properties)
    return table


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({"incremental-between": "0,6"}, "3 to 4"),
        ({"incremental-between": "2,5"}, "3 to 4"),
        ({"incremental-between-timestamp": "1000,6000"}, "3 to 4"),
        ({"incremental-between-timestamp": "1000,4500"}, "3 to 4"),
        ({"incremental-between-timestamp": "3500,6000"}, "3 to 4"),
        ({"incremental-between-timestamp": "3500,6000"} | DIFF, "3 to 4"),
    ],
)
@pytest.mark.parametrize("rolled_back_to", [None, 2])
def test_changes_of_lost_snapshots_are_refused(options: dict[str, str], lost: str, rolled_back_to: int | None) -> None:
    """A rollback to snapshot 2 leaves a snapshot 3."""
    table = six_snapshots(rolled_back_to=rolled_back_to)
    for gone in (3, 4):
        table.expire(gone)
    with pytest.raises(DataLossError, match=f"snapshots {lost} are missing"):
        files(table, options)


def test_changes_next_to_lost_snapshots_are_read() -> None:
    table = six_snapshots()
    for gone in (3, 4):
        table.expire(gone)
    assert files(table, {"incremental-between": "0,2"}) == ["a", "b"]
    assert files(table, {"incremental-between": "4,6"}) == ["e", "f"]
    assert files(table, {"incremental-between-timestamp": "5000,6000"}) == ["f"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"incremental-between": "0,6"}, ["a", "b", "e", "f"]),
        ({"incremental-between": "2,5"}, ["e"]),
        ({"incremental-between": "4,6"}, ["e", "f"]),
        ({"incremental-between-timestamp": "1000,5000"}, ["b", "e"]),
        ({"incremental-between-timestamp": "3500,6000"}, ["e", "f"]),
    ],
)
def test_changes_reach_over_a_gap_of_ids(options: dict[str, str], expected: list[str]) -> None:
    """A rollback beside a commit leaves one."""
    table = six_snapshots(rolled_back_to=1)
    for gone in (3, 4):
        table.expire(gone)
    assert files(table, options) == expected


def test_changes_of_an_expired_snapshot_are_missing_beside_a_gap_too() -> None:
    table = six_snapshots(rolled_back_to=2)
    for gone in (1, 4):
        table.expire(gone)
    assert files(table, {"incremental-between": "1,6"}) == ["b", "c", "e", "f"]
    with pytest.raises(NotFoundError, match="snapshots 2 to 6 are there"):
        files(table, {"incremental-between": "0,6"})


def test_a_difference_with_the_table_before_its_first_snapshot_is_its_state() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("a")))
    table.commit(table.entry(table.file("b")))
    assert files(table, {"incremental-between": "0,2"} | DIFF) == ["a", "b"]
    assert files(table, {"incremental-between": "0,2"}) == ["a", "b"]
    assert files(table, {"incremental-between-timestamp": "5,1500"} | DIFF) == ["a"]
    assert files(table, {"incremental-between-timestamp": "5,1500"}) == ["a"]


def test_the_latest_delta_of_a_compaction_is_empty(table: MemoryTable) -> None:
    table.commit(commit_kind=CommitKind.COMPACT)
    assert files(table, {"scan.mode": "latest-delta"}) == []


def test_two_local_times_are_of_this_machines_zone(table: MemoryTable) -> None:
    start, end = (
        dt.datetime.fromtimestamp(seconds, dt.UTC).astimezone().replace(tzinfo=None).isoformat(sep=" ")
        for seconds in (3, 4.5)
    )
    assert files(table, {"incremental-between-timestamp": f"{start},{end}"}) == ["d"]


@pytest.mark.parametrize("mode", ["delta", "diff"])
def test_a_filter_prunes_changes_too(table: MemoryTable, mode: str) -> None:
    options = {"incremental-between": "2,6", "incremental-between-scan-mode": mode}
    assert files(table, options, "dt = 'y'") == ["f"]
    assert files(table, {"incremental-between-timestamp": "5,4000"}, "id > 50") == ["b2"]
    assert files(table, {"incremental-between": "one,four"}, "id > 50") == ["b2"]


def test_manifests_of_other_partitions_stay_unread(table: MemoryTable) -> None:
    plan = planned(table, {"incremental-between": "2,6"}, "dt = 'y'")
    assert (plan.funnel.manifests_total, plan.funnel.manifests_read) == (2, 1)


def test_a_read_of_changes_has_the_columns_of_today(table: MemoryTable) -> None:
    ref = with_options(table, {"incremental-between": "2,4"})
    assert read_ref(ref, table.store) is ref
    query = plan_query(ref, table.store)
    assert query.ref is ref
    assert query.plan.snapshot is not None
    assert (query.plan.after_snapshot_id, query.plan.snapshot.id) == (2, 4)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"incremental-between": "0,4"}, NotFoundError, "snapshots 2 to 6 are there, so the first may be 1 at least"),
        ({"incremental-between": "4,7"}, NotFoundError, "the second 6 at most"),
        ({"incremental-between": "1,4"} | DIFF, NotFoundError, "snapshot 1 has expired"),
        ({"incremental-between": "4,2"}, InvalidOptionError, "swap them"),
        ({"incremental-between": "six,four"}, InvalidOptionError, "swap them"),
        ({"incremental-between-timestamp": "4,2"}, InvalidOptionError, "swap them"),
        ({"incremental-between": "4"}, InvalidOptionError, "with a comma between them"),
        ({"incremental-between": "4,"}, InvalidOptionError, "with a comma between them"),
        ({"incremental-between-timestamp": "4,5,6"}, InvalidOptionError, "with a comma between them"),
        ({"incremental-between": "one,two"}, InvalidOptionError, "its tags are 'four', 'one', 'six'"),
        ({"incremental-between": "one,6"}, InvalidOptionError, "two tags or two snapshot ids"),
        ({"incremental-between-timestamp": "noon,midnight"}, InvalidOptionError, "'noon': expected 'yyyy-MM-dd"),
        (
            {"incremental-between": "2,4", "incremental-between-scan-mode": "changelog"},
            UnsupportedFeatureError,
            "an append table has 'delta'",
        ),
        ({"incremental-to-auto-tag": "six"}, UnsupportedFeatureError, "'incremental-between' = '<earlier tag>,six'"),
    ],
)
def test_what_is_no_span_is_refused(
    table: MemoryTable, options: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        planned(table, options)
    assert "shop.orders" in str(raised.value)


def test_an_append_that_deletes_is_refused_in_delta_mode_only() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("a")))
    table.commit(table.entry(table.file("a"), kind=FileKind.DELETE), table.entry(table.file("b")))
    with pytest.raises(UnsupportedFeatureError, match="snapshot 2: this APPEND also deletes files"):
        files(table, {"incremental-between": "1,2"})
    assert files(table, {"incremental-between": "1,2"} | DIFF) == ["b"]


def test_a_table_without_snapshots_has_no_changes() -> None:
    table = MemoryTable()
    for options in ({"incremental-between": "1,2"}, {"incremental-between-timestamp": "1,2"}):
        plan = planned(table, options)
        assert (plan.snapshot, plan.file_count) == (None, 0)


def test_a_read_of_changes_explains_itself(table: MemoryTable) -> None:
    lines = explain_plan(planned(table, {"incremental-between": "1,5"}, "dt = 'x'")).splitlines()
    assert lines[0] == "changes after snapshot 1 up to snapshot 5 (OVERWRITE), schema 0"
    assert "appended files: 3, rows: unknown" in lines
    lines = explain_plan(planned(table, {"incremental-between": "2,6"} | DIFF)).splitlines()
    assert lines[0] == "changes after snapshot 2 up to snapshot 6 (APPEND), schema 0"
    assert "live files: 4, rows: unknown" in lines
    assert "not in the start: 2 partitions, 2 buckets, 3 files, 2.9 KiB, 30 rows" in lines


def test_only_manifests_of_appends_are_read(table: MemoryTable) -> None:
    class Counting(MetadataStore):
        loads = 0

        def load_manifest(self, name: str, size: int, *, snapshot_id: int | None = None) -> Sequence[ManifestEntry]:
            self.loads += 1
            return super().load_manifest(name, size, snapshot_id=snapshot_id)

    store = Counting(table.ref)
    plan_query(with_options(table, {"incremental-between": "1,6"}), store)
    assert store.loads == 3
