"""Appends to a queue merge its small files when enough of them are there."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import AddColumn, Catalog
from penstock.errors import StorageError
from penstock.format.snapshot import CommitKind
from penstock.table.compact import job

if TYPE_CHECKING:
    from pathlib import Path

    from penstock import Table
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_database("db")
    return catalog


def queue(catalog: Catalog, name: str = "db.q", **options: str) -> Table:
    return catalog.create_table(
        name, "id BIGINT, v STRING", options={"bucket": "1", "bucket-key": "id", **options}, if_not_exists=True
    )


def append(table: Table, *numbers: int, rows: int = 10) -> None:
    for number in numbers:
        first = number * rows
        table.append(pa.table({"id": pa.array(range(first, first + rows), pa.int64()), "v": ["x"] * rows}))


def kinds(table: Table) -> list[str]:
    found: list[str] = table.snapshots()["commit_kind"].to_pylist()
    return found


def test_the_fifth_append_merges_the_files_by_a_commit_of_its_own(catalog: Catalog) -> None:
    table = queue(catalog)
    append(table, *range(12))
    assert kinds(table) == [*["APPEND"] * 5, "COMPACT", *["APPEND"] * 5, "COMPACT", *["APPEND"] * 2]
    assert table.to_arrow()["id"].to_pylist() == list(range(120))
    assert len(table.files()) == 3
    assert table.inspect.fsck().findings == ()


def test_append_returns_the_snapshot_of_the_rows(catalog: Catalog) -> None:
    table = queue(catalog)
    append(table, *range(4))
    snapshot = table.append(pa.table({"id": range(10), "v": ["y"] * 10}))
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind) == (5, CommitKind.APPEND)
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.id, latest.commit_kind) == (6, CommitKind.COMPACT)


def test_processes_that_append_once_each_merge_too(catalog: Catalog) -> None:
    queue(catalog)
    for number in range(6):
        append(catalog.load_table("db.q"), number)
    table = catalog.load_table("db.q")
    assert kinds(table) == [*["APPEND"] * 5, "COMPACT", "APPEND"]
    assert table.to_arrow()["id"].to_pylist() == list(range(60))


def test_writers_that_take_turns_merge_and_keep_the_order(catalog: Catalog) -> None:
    queue(catalog)
    tables = [catalog.load_table("db.q"), catalog.load_table("db.q")]
    for number in range(40):
        append(tables[number % 2], number)
    assert tables[0].to_arrow()["id"].to_pylist() == list(range(400))
    assert kinds(tables[0]).count("COMPACT") > 3
    assert len(tables[0].files()) <= 10


@pytest.mark.parametrize(
    ("options", "appends"),
    [
        ({"write-only": "true"}, 12),
        ({"compaction.min.file-num": "20"}, 12),
        ({"bucket": "-1", "bucket-key": ""}, 12),
    ],
)
def test_nothing_is_merged_where_it_is_not_due(catalog: Catalog, options: dict[str, str], appends: int) -> None:
    given = {key: value for key, value in {"bucket": "1", "bucket-key": "id", **options}.items() if value}
    table = catalog.create_table("db.other", "id BIGINT, v STRING", options=given)
    append(table, *range(appends))
    assert kinds(table) == ["APPEND"] * appends


def test_only_partitions_that_got_rows_are_merged(catalog: Catalog) -> None:
    options = {"bucket": "1", "bucket-key": "id"}
    table = catalog.create_table("db.p", "id BIGINT, dt STRING", partition_by="dt", options=options)
    for number in range(5):
        quiet = {"id": [number], "dt": ["quiet"]}
        table.with_options({"write-only": "true"}).append(pa.table(quiet))
    for number in range(5):
        table.append(pa.table({"id": [number], "dt": ["busy"]}))
    assert kinds(table) == [*["APPEND"] * 10, "COMPACT"]
    assert sorted((each["partition"], each["file_count"]) for each in table.partitions().to_pylist()) == [
        ("dt=busy", 1),
        ("dt=quiet", 5),
    ]


def test_the_merges_of_many_buckets_come_together(catalog: Catalog) -> None:
    table = catalog.create_table("db.many", "id BIGINT, v STRING", options={"bucket": "8", "bucket-key": "id"})
    append(table, *range(40), rows=100)
    assert 4 <= kinds(table).count("COMPACT") <= 12
    assert max(table.inspect.buckets()["file_count"].to_pylist()) <= 11
    rows = table.to_arrow()["id"].to_pylist()
    assert sorted(rows) == list(range(4000))
    assert table.inspect.fsck().findings == ()


def test_an_overwrite_starts_again(catalog: Catalog) -> None:
    table = queue(catalog)
    append(table, *range(4))
    table.overwrite(pa.table({"id": [1], "v": ["a"]}))
    append(table, 1, 2, 3)
    assert "COMPACT" not in kinds(table)
    append(table, 4)
    assert kinds(table)[-1] == "COMPACT"


def test_an_append_is_acknowledged_when_its_merge_fails(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = queue(catalog)
    append(table, *range(4))

    def fail(*_args: object, **_kwargs: object) -> None:
        raise StorageError("no space", False)  # noqa: FBT003 - positional, so that pickling works

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(job, "rewrite", fail)
        append(table, 4)
    assert "not merged; the rows are committed: no space" in caplog.text
    assert table.to_arrow()["id"].to_pylist() == list(range(50))
    append(table, 5)
    assert kinds(table) == [*["APPEND"] * 6, "COMPACT"]


def test_a_merge_that_loses_the_race_is_dropped(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = queue(catalog)
    append(table, *range(4))
    rewrite = job.rewrite
    calls: list[CompactTask] = []

    def race(task: CompactTask, ref: TableRef, *, job_id: str | None = None) -> CommitMessage | None:
        calls.append(task)
        message = rewrite(task, ref, job_id=job_id)
        if len(calls) == 1:
            catalog.load_table("db.q").compact()
        return message

    monkeypatch.setattr(job, "rewrite", race)
    append(table, 4)
    assert len(calls) == 2
    assert kinds(table) == [*["APPEND"] * 5, "COMPACT"]
    assert table.to_arrow()["id"].to_pylist() == list(range(50))
    assert table.inspect.fsck().findings == ()


def test_columns_that_were_added_meanwhile_are_kept(catalog: Catalog) -> None:
    table = queue(catalog)
    append(table, *range(3))
    catalog.alter_table("db.q", AddColumn(column="w", type="INT"))
    fresh = catalog.load_table("db.q").with_options({"write-only": "true"})
    fresh.append(pa.table({"id": [30], "v": ["n"], "w": pa.array([7], pa.int32())}))
    append(table, 4)  # knows nothing of the column
    latest = catalog.load_table("db.q")
    assert kinds(latest)[-1] == "COMPACT"
    assert [row["w"] for row in latest.to_arrow().to_pylist() if row["id"] == 30] == [7]
