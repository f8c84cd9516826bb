"""Java Paimon and we read the same changes between snapshots, tags and times of one table."""

from pathlib import Path
from typing import Final

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import JavaPaimon, Row

from penstock import UnsupportedFeatureError

pytestmark = pytest.mark.jvm

BUCKETS: Final = pytest.mark.parametrize(
    "bucket", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}], ids=["scalable", "queue"]
)
DIFF: Final = {"incremental-between-scan-mode": "diff"}
TAGS_AS_SNAPSHOTS: Final = {"incremental-between-tag-to-snapshot": "true"}


def history(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> list[int]:
    """Append, compact, overwrite, append, expire; return the times of the snapshots that are left, from the second."""
    ours.create(location, "id INT, p STRING", partition_by=["p"], options=bucket)
    for number in range(3):
        ours.append(location, [{"id": 10 * number + i, "p": "xy"[i % 2]} for i in range(6)])
    table = ours.load(location)
    table.create_tag("first", snapshot_id=1)
    java.ask("compact", location)
    ours.overwrite(location, [{"id": 100, "p": "y"}], {"p": "y"})
    ours.append(location, [{"id": 110 + i, "p": "z"} for i in range(6)])
    table.create_tag("last")
    java.ask("expire", location, retain=5)
    snapshots = table.snapshots()
    assert snapshots["commit_kind"].to_pylist() == ["APPEND", "APPEND", "COMPACT", "OVERWRITE", "APPEND"]
    return [table._store.load_snapshot(snapshot_id).time_millis for snapshot_id in range(2, 7)]


def both(java: JavaPaimon, location: Path, options: dict[str, str]) -> list[Row]:
    """Return what both deliver."""
    rows = ours.read(location, options=options)
    assert rows == sort_rows(java.ask("read", location, options=options)["rows"]), options
    return rows


@BUCKETS
def test_the_same_changes_are_read_between_two_snapshots(
    java: JavaPaimon, location: Path, bucket: dict[str, str]
) -> None:
    history(java, location, bucket)
    counts = {}
    for first in range(1, 7):
        for last in range(first, 7):
            counts[first, last] = len(both(java, location, {"incremental-between": f"{first},{last}"}))
            if first > 1:
                both(java, location, {"incremental-between": f"{first},{last}"} | DIFF)
    assert (counts[1, 2], counts[1, 6], counts[3, 5], counts[5, 6]) == (6, 18, 0, 6)
    assert len(both(java, location, {"incremental-between": "2,6"} | DIFF)) == 9 + 1 + 6


@BUCKETS
def test_the_same_changes_are_read_between_two_tags(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> None:
    history(java, location, bucket)
    tags = {"incremental-between": "first,last"}
    difference = both(java, location, tags)
    assert difference == both(java, location, tags | {"incremental-between-scan-mode": "delta"})
    assert len(both(java, location, tags | TAGS_AS_SNAPSHOTS)) == 18
    assert both(java, location, {"incremental-between": "last,last"}) == []


@BUCKETS
def test_the_same_changes_are_read_between_two_times(java: JavaPaimon, location: Path, bucket: dict[str, str]) -> None:
    times = history(java, location, bucket)
    edges = sorted({edge for time in times for edge in (time - 1, time)} | {times[-1] + 1})
    found = set()
    for first in edges:
        for last in edges[edges.index(first) :]:
            for mode in ({}, DIFF):
                found.add(len(both(java, location, {"incremental-between-timestamp": f"{first},{last}"} | mode)))
    assert {0, 6, 12, 18} <= found


def test_a_filter_and_columns_apply_to_changes(java: JavaPaimon, location: Path) -> None:
    history(java, location, {"bucket": "2", "bucket-key": "id"})
    options = {"incremental-between": "1,6"}
    found = ours.read(location, options=options, filter="p = 'z' AND id > 112", columns=["id"])
    theirs = java.ask("read", location, options=options, columns=["id"], filter=[["p", "=", "z"], ["id", ">", 112]])
    assert found == sort_rows(theirs["rows"]) == [{"id": 113}, {"id": 114}, {"id": 115}]


def test_changes_have_the_columns_of_today(java: JavaPaimon, location: Path) -> None:
    ours.create(location, "id INT")
    ours.append(location, [{"id": 0}])
    ours.append(location, [{"id": 1}])
    java.ask("alter", location, changes=[["add", "v", "STRING"]])
    ours.append(location, [{"id": 2, "v": "new"}])
    for options in ({"incremental-between": "1,2"}, {"incremental-between": "1,2"} | DIFF):
        assert both(java, location, options) == [{"id": 1, "v": None}]
    ours.load(location).create_tag("one", snapshot_id=1)
    ours.load(location).create_tag("two", snapshot_id=2)
    assert both(java, location, {"incremental-between": "one,two"}) == [{"id": 1, "v": None}]


@BUCKETS
def test_the_same_changes_are_read_of_a_table_with_deletion_vectors(
    java: JavaPaimon, location: Path, bucket: dict[str, str]
) -> None:
    marked = {"deletion-vectors.enabled": "true", "write-only": "true"}
    ours.create(location, "id INT, p STRING", options=bucket | marked)
    for first in (0, 10, 20):
        ours.append(location, [{"id": first + i, "p": "x"} for i in range(6)])
        ours.load(location).delete(f"id = {first + 1}")
        ours.load(location).update({"p": "y"}, f"id IN ({first}, {first // 2})")
    counts = {
        last: len(both(java, location, {"incremental-between": f"{first},{last}"}))
        for first in range(1, 9)
        for last in range(first, 10)
    }
    assert counts[9] == 0
    with pytest.raises(UnsupportedFeatureError, match="deletion vectors"):
        ours.read(location, options={"incremental-between": "2,9"} | DIFF)
