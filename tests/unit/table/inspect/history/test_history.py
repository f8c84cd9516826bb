from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock import Catalog, Table
from penstock.format.snapshot import CommitKind
from penstock.table.inspect.history.history import HISTORY_SCHEMA, Debt, HistoryReader


@pytest.fixture
def queue() -> Table:
    """Three commits, a merge, one more; a consumer at the second, a tag at the third."""
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        "n BIGINT, t TIMESTAMP(3), dt DATE",
        partition_by=["dt"],
        options={"bucket": "2", "bucket-key": "n"},
        watermark=("t", "INTERVAL '5' SECOND"),
    )
    for number in range(4):
        if number == 3:
            table.compact(strategy="full")
        days = pa.array([20_000] * 8, pa.int32()).cast(pa.date32())
        table.append(pa.table({"n": list(range(8)), "t": pa.nulls(8, pa.timestamp("ms")), "dt": days}))
    table.maintenance.reset_consumer("nightly", 2)
    table.create_tag("third", snapshot_id=3)
    return table


def test_a_story_has_all_there_is(queue: Table) -> None:
    history = HistoryReader(queue._ref, queue._store).load()
    assert history.name == "shop.orders"
    assert (history.total_buckets, history.partition_keys, history.event_time_column) == (2, ("dt",), "t")
    assert [commit.snapshot.commit_kind for commit in history.commits] == [
        CommitKind.APPEND, CommitKind.APPEND, CommitKind.APPEND, CommitKind.COMPACT, CommitKind.APPEND,
    ]  # fmt: skip
    assert history.latest is history.last_rows is history.commits[-1]
    assert history.last_merge is history.commits[3]
    assert [(each.partition, each.bucket, each.files) for each in history.buckets] == [
        ("dt=2024-10-04", 0, 2),
        ("dt=2024-10-04", 1, 2),
    ], "days as they are written, not counted"
    assert sum(each.rows for each in history.buckets) == 32
    assert history.order is not None
    assert (history.order.buckets, history.order.files, history.order.overlaps) == (2, 4, 0)
    assert [(each.name, each.next_snapshot_id, each.snapshots, each.rows) for each in history.readers] == [
        ("nightly", 2, 3, 24)
    ]
    assert history.readers[0].unread_since_millis == history.commits[1].snapshot.time_millis
    assert [(tag.name, tag.snapshot_id) for tag in history.tags] == [("third", 3)]
    sums = queue.inspect.compaction_debt().to_pylist()
    assert history.debt == Debt(
        small_files=sum(row["small_file_count"] for row in sums),
        small_bytes=sum(row["small_file_bytes"] for row in sums),
        waiting_files=sum(row["waiting_file_count"] for row in sums),
        waiting_bytes=sum(row["waiting_bytes"] for row in sums),
        usual_small_files=2 * 5 * 2,
    )


def test_a_table_without_snapshots_has_an_empty_story() -> None:
    made = MemoryTable()
    history = HistoryReader(made.ref, made.store).load()
    assert (history.commits, history.latest, history.last_rows, history.last_merge, history.order) == (
        (),
        None,
        None,
        None,
        None,
    )
    assert history.debt == Debt(small_files=0, small_bytes=0, waiting_files=0, waiting_bytes=0, usual_small_files=0)


def test_what_we_do_not_compact_is_reported() -> None:
    made = MemoryTable(options={"clustering.incremental": "true", "bucket": "1"})
    made.commit(made.entry(made.file("a")))
    history = HistoryReader(made.ref, made.store).load()
    assert history.debt is None
    assert "clustering.incremental" in (history.no_debt or "")


def test_a_poll_after_a_commit_reports_it(queue: Table) -> None:
    reader = HistoryReader(queue._ref, queue._store)
    before = reader.load()
    queue.append(pa.table({"n": [1], "t": pa.nulls(1, pa.timestamp("ms")), "dt": pa.nulls(1, pa.date32())}))
    after = reader.load()
    assert after.latest is not None
    assert after.latest.live.rows == 33
    assert len(after.buckets) == len(before.buckets) + 1
    assert after.debt != before.debt
    assert replace(after, seen_millis=0).tags == before.tags


def test_history_is_a_row_a_commit(queue: Table) -> None:
    history = queue.inspect.history()
    assert history.schema == HISTORY_SCHEMA
    rows = history.to_pylist()
    snapshots = queue.snapshots().to_pylist()
    for row, snapshot in zip(rows, snapshots, strict=True):
        assert {name: row[name] for name in ("snapshot_id", "commit_kind", "commit_time", "commit_user")} == {
            name: snapshot[name] for name in ("snapshot_id", "commit_kind", "commit_time", "commit_user")
        }
        assert row["rows"] == snapshot["total_record_count"]
        assert row["added_rows"] - row["removed_rows"] == snapshot["delta_record_count"]
    assert [row["files"] for row in rows] == [2, 4, 6, 2, 4]
    assert [row["snapshot_id"] for row in queue.inspect.history(limit=2).to_pylist()] == [4, 5]


def test_a_tag_that_is_deleted_meanwhile_is_left_out() -> None:
    made = MemoryTable()
    made.put_tag("kept", made.commit(made.entry(made.file("a"))))
    store = made.store
    store.list_tags = lambda: ("gone", "kept")  # type: ignore[method-assign]
    assert [tag.name for tag in HistoryReader(made.ref, store).load().tags] == ["kept"]
