"""Compaction from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog
from penstock.table.compact import job
from penstock.table.compact import local as dedicated
from penstock.table.compact.background import LEASE_NAME
from penstock.table.lease import find_holder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command

    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.ref import TableRef

PATIENCE_SECONDS = 60


@pytest.fixture
def days(penstock: Command) -> Command:
    """``shop.days`` with 6, 3 and 1 small files in three days, and ``shop.other`` with two in one."""
    penstock("create", "shop.days", "k BIGINT, dt STRING", "--partition-by", "dt")
    penstock("create", "shop.other", "k BIGINT, dt STRING", "--partition-by", "dt", "--option", "write-only=true")
    for name, counts in (("days", (6, 3, 1)), ("other", (2,))):
        table = penstock.catalog.load_table(f"shop.{name}")
        for day, count in enumerate(counts, 1):
            for k in range(count):
                table.append(pa.table({"k": pa.array([k], pa.int64()), "dt": [f"2026-01-0{day}"]}))
    return penstock


def files(penstock: Command, table: str = "shop.days") -> list[int]:
    rows = sorted(penstock.json("partitions", table), key=lambda row: row["partition"])
    return [row["file_count"] for row in rows]


def test_every_partition_gets_a_line_and_the_table_a_summary(days: Command) -> None:
    result = days("compact", "shop.days", "--format", "json", "--threads", "2")
    rows = json.loads(result.stdout)
    assert [(row["partition"], row["files_before"], row["files_in"], row["files_out"]) for row in rows] == [
        ("dt=2026-01-01", 6, 6, 1),
        ("dt=2026-01-02", 3, 3, 1),
        ("dt=2026-01-03", 1, 0, 0),
    ]
    assert [row["skipped"] for row in rows] == [None, None, "too few small files"]
    assert rows[0]["bytes_in"] > rows[0]["bytes_out"] > 0
    assert rows[0]["seconds"] > 0
    assert "merged 9 files (" in result.stderr
    assert ": snapshot 11" in result.stderr
    assert files(days) == [1, 1, 1]
    again = days("compact", "shop.days")
    assert again.stderr == "nothing to merge in shop.days\n"
    assert again.stdout.splitlines()[0].split() == [
        *("partition", "files", "merged", "merged", "size", "into", "new", "size", "time", "skipped")
    ]
    assert days("compact", "shop.days", "--format", "csv").stdout.splitlines()[0].replace('"', "").split(",") == [
        *("table", "partition", "files_before", "bytes_before", "files_in", "bytes_in"),
        *("files_out", "bytes_out", "seconds", "skipped"),
    ]


def test_files_that_one_task_cannot_take_are_left_with_the_command_that_merges_them(
    days: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.table.compact.plan._MAX_FILES", 4)
    command = ("compact", "shop.days", "--partition", "dt=2026-01-01", "-o", "source.split.open-file-cost=1 gb")
    first = days(*command)
    assert files(days)[0] == 2
    assert "2 files are small still: penstock compact shop.days merges them" in first.stderr
    assert "small still" not in days(*command).stderr
    assert files(days)[0] == 1


def test_a_dry_run_says_what_would_be_merged(days: Command) -> None:
    result = days("compact", "shop.days", "--dry-run", "--strategy", "minor", "--format", "csv")
    assert '"shop.days","dt=2026-01-01","6",' in result.stdout
    assert "would merge 6 files (" in result.stderr
    assert files(days) == [6, 3, 1]


def test_partitions_are_named_or_found(days: Command) -> None:
    days("compact", "shop.days", "--partition", "dt=2026-01-02", "--partition", "dt=2026-01-03")
    assert files(days) == [6, 1, 1]
    assert "written to within the idle time" in days("compact", "shop.days", "--idle-time", "1 h").stdout
    days("compact", "shop.days", "--where", "dt < '2026-01-02'", "-o", "compaction.min.file-num=2")
    assert files(days) == [1, 1, 1]


def test_many_tables_are_chosen_by_patterns_and_one_that_cannot_be_stops_no_other(days: Command) -> None:
    options = ("clustering.incremental=true", "clustering.columns=k", "num-levels=1")
    days("create", "shop.leveled", "k BIGINT", *(text for option in options for text in ("-o", option)))
    result = days("compact", "--database", "shop", "--excluding", "shop.d.*", "--format", "json")
    assert [(row["table"], row["files_in"]) for row in json.loads(result.stdout)] == [
        ("shop.leveled", None),
        ("shop.other", 2),
    ]
    assert "'num-levels' = '1' leaves no level for clustered files" in result.stderr
    assert (files(days), files(days, "shop.other")) == ([6, 3, 1], [1])
    days("compact", "--including", "da.s")
    assert files(days) == [1, 1, 1]
    assert "no database is called 'nope'" in days("compact", "--database", "nope", code=3).stderr
    assert "not a regular expression" in days("compact", "--including", "(", code=2).stderr


def test_a_live_file_that_is_missing_fails_the_command(days: Command) -> None:
    table = days.catalog.load_table("shop.days")
    table._ref.file_io.delete(table.files().column("file_path")[0].as_py())
    assert "is missing" in days("compact", "shop.days", code=3).stderr
    assert files(days) == [6, 1, 1]


def test_dropped_merges_are_reported(days: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    real = job.merge_one

    def late(task: CompactTask, ref: TableRef) -> MergedFiles:
        merged = real(task, ref)
        days.catalog.load_table("shop.days").truncate()
        return merged

    monkeypatch.setattr(dedicated, "merge_one", late)
    result = days("compact", "shop.days")
    assert "dropped 2 merges of shop.days: another commit replaced the files meanwhile" in result.stderr


def test_of_many_tables_the_first_failure_is_the_exit_code(days: Command) -> None:
    table = days.catalog.load_table("shop.days")
    path = table.files().column("file_path")[0].as_py()
    table._ref.file_io.write(path, b"rubbish")
    result = days("compact", "--database", "shop", code=8)
    assert files(days) == [6, 1, 1]
    assert files(days, "shop.other") == [1]
    assert "shop.days" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("shop.days", "--database", "shop"),
        ("shop.days", "--follow", "--where", "dt = '1'"),
        ("--database", "shop", "--follow"),
        ("shop.days", "--spark", "local", "--threads", "1"),
        ("shop.days", "--strategy", "most"),
        ("shop.days", "--partition", "2026-01-01"),
        ("shop.days", "--partition", "dt=1", "--where", "dt = '1'"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(days: Command, arguments: tuple[str, ...]) -> None:
    days("compact", *arguments, code=2)
    assert files(days) == [6, 3, 1]


def test_a_table_that_can_never_be_compacted_is_not_followed(days: Command) -> None:
    days("create", "shop.leveled", "k BIGINT", "--option", "clustering.incremental=true", "-o", "clustering.columns=k")
    assert "which merging or sorting them would destroy" in days("compact", "shop.leveled", "--follow", code=10).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_follows_a_write_only_table_ends_cleanly_on_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.q", "k BIGINT", options={"bucket": "1", "bucket-key": "k", "write-only": "true"})
    command = [sys.executable, "-c", "from penstock.cli.main import main; main()", "-w", str(tmp_path)]
    process = subprocess.Popen(
        [*command, "compact", "db.q", "--follow", "--interval", "200 ms", "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr is not None
        assert "compacting db.q as it grows" in process.stderr.readline()
        for k in range(6):
            table.append(pa.table({"k": pa.array([k], pa.int64())}))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while table.files().num_rows > 5:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert err.splitlines() == ["error: interrupted"]
    assert out.splitlines()[0].startswith('"time","merges","files_in"')
    assert table.to_arrow()["k"].to_pylist() == list(range(6))
    kinds = table.snapshots()["commit_kind"].to_pylist()
    assert (kinds.count("APPEND"), len(kinds) - 6) == (6, len(out.splitlines()) - 1)
    assert find_holder(table._ref.file_io, table.location, LEASE_NAME) is None


def test_sorting_is_planned_without_spark_and_refused_to_run_without(days: Command) -> None:
    sort = ("compact", "shop.days", "--order-strategy", "zorder", "--order-by", "k", "--where", "dt < '2026-01-03'")
    rows = json.loads(days(*sort, "--dry-run", "--format", "json").stdout)
    assert [(row["partition"], row["files_in"]) for row in rows] == [("dt=2026-01-01", 6), ("dt=2026-01-02", 3)]
    assert "--spark" in days(*sort, code=2).stderr
    assert "'minor'" in days(*sort, "--strategy", "minor", code=2).stderr
    for by, text in (("dt", "partition column"), ("kk", "did you mean 'k'"), ("k,k", "twice")):
        assert text in days("compact", "shop.days", "--order-by", by, code=2).stderr
    assert "'zorder'" in days("compact", "shop.days", "--order-strategy", "z", code=2).stderr
