"""What a change would do, and what a table says of its progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import AddColumn, Catalog, InvalidOptionError, NotFoundError, Table, TimedOutError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "n INT, p STRING", partition_by=["p"], options={"bucket": "-1"})
    for number in range(3):
        table.append([{"n": number, "p": "a"}, {"n": number, "p": "b"}])
    return table


def test_a_preview_returns_what_would_be_removed_and_changes_nothing(table: Table) -> None:
    before = table.latest_snapshot()
    found = table.preview.overwrite([{"n": 9, "p": "b"}])
    assert (found.partitions, found.files, found.rows) == (1, 3, 3)
    assert table.preview.overwrite([], partition={}).rows == table.preview.truncate().rows == 6
    assert table.preview.drop_partitions("p=a").rows == 3
    with pytest.raises(InvalidOptionError):
        table.preview.drop_partitions()
    assert table.latest_snapshot() == before
    table.overwrite([{"n": 9, "p": "b"}])
    assert table.to_arrow().num_rows == 6 - found.rows + 1


def test_a_preview_of_a_change_of_the_schema_is_what_is_written(table: Table, tmp_path: Path) -> None:
    change = AddColumn(column="note", type="STRING")
    planned = table.preview.alter(change)
    written = Catalog(tmp_path / "warehouse").alter_table("db.t", change).schema
    assert (planned.id, planned.fields) == (written.id, written.fields)


def test_an_import_lists_its_files(table: Table, tmp_path: Path) -> None:
    folder = tmp_path / "hive" / "p=c"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), folder / "part-0.parquet")
    (file,) = table.preview.hive_import(tmp_path / "hive")
    assert file.partition == (("p", "c"),)
    with pytest.raises(NotFoundError):
        table.preview.hive_import(tmp_path / "warehouse" / "nothing")


def test_a_summary_has_the_main_numbers(table: Table) -> None:
    table.create_tag("one")
    table.maintenance.reset_consumer("reader", "latest")
    summary = table.inspect.summary()
    assert (summary.snapshots, summary.partitions, summary.rows, summary.files) == (3, 2, 6, 6)
    assert (summary.waiting_files, summary.tags, summary.consumers) == (6, ("one",), ("reader",))


def test_a_dry_run_of_a_reset_names_both_positions(table: Table) -> None:
    table.maintenance.reset_consumer("reader", 2)
    planned = table.maintenance.reset_consumer("reader", "earliest", dry_run=True)
    assert (planned.next_snapshot_id, planned.previous_next_snapshot_id) == (1, 2)
    assert table.inspect.consumers()["next_snapshot_id"].to_pylist() == [2]
    table.maintenance.delete_consumer("reader", dry_run=True)
    assert table.inspect.consumers().num_rows == 1
    with pytest.raises(NotFoundError):
        table.maintenance.delete_consumer("nobody", dry_run=True)


def test_progress_goes_to_functions(table: Table) -> None:
    started: list[int] = []
    merged: list[object] = []
    table.compact(threads=1, on_start=started.append, on_done=merged.append)
    assert (len(started), len(merged)) == (1, 2)
    texts: list[str] = []
    with pytest.raises(TimedOutError):
        table.wait_until(1, timeout=0, on_poll=texts.append)
    assert "has no watermark" in texts[0]
    counts: list[int] = []
    table.inspect.fsck(progress=lambda files, _bytes: counts.append(files))
    assert counts[-1] == 2
    seen: list[tuple[int, bool]] = []
    list(table.follow(once=True, on_snapshot=lambda number, is_whole: seen.append((number, is_whole))))
    assert seen == [(4, True)]


def test_a_background_compactor_merges_existing_files(table: Table) -> None:
    compactor = table.maintenance.compact_in_background(
        options={"compaction.min.file-num": "2"}, threads=1, idle_seconds=0.05
    )
    compactor.start()
    compactor.finish()
    assert compactor.state.committed_merges == 2
    assert table.inspect.summary().files == 2
