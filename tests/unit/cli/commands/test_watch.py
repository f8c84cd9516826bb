"""Watching a table: one look, or one after the other until interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command


@pytest.fixture
def queue(penstock: Command) -> Command:
    """A queue with four commits, a merge and a consumer."""
    penstock("create", "shop.q", "n BIGINT, t TIMESTAMP(3)", "-o", "bucket=2", "-o", "bucket-key=n",
             "--watermark", "t - INTERVAL '5' SECOND")  # fmt: skip
    table = penstock.catalog.load_table("shop.q")
    for _ in range(4):
        table.append(pa.table({"n": list(range(10)), "t": pa.nulls(10, pa.timestamp("ms"))}))
    table.compact(strategy="full")
    table.maintenance.reset_consumer("nightly", 3)
    return penstock


def test_one_look_shows_what_there_is(queue: Command) -> None:
    text = queue("watch", "shop.q", "--once").stdout
    lines = text.splitlines()
    assert lines[0].startswith("shop.q  queue of 2 buckets, snapshot 5: 40 rows, ")
    assert "5 snapshots, 1 to 5, of" in lines[1]
    assert "○ watermark declared on t, in no snapshot yet" in text
    assert "● files     2 files, 2 small" in text
    assert "● order     holds: 2 files in 2 buckets are in order of their sequence numbers" in text
    assert next(line.split() for line in lines if line.startswith("nightly"))[1:4] == ["3", "2", "20"]
    kinds = [line.split()[2] for line in lines if line[:2] == "20" and line.split()[2] in {"APPEND", "COMPACT"}]
    assert kinds == ["COMPACT", *["APPEND"] * 4], "the newest first"
    assert all(line == line.rstrip() for line in lines)


def test_marks_are_explained(queue: Command) -> None:
    legend = "● good   ▲ needs attention   ○ not used here, or not enough data"
    assert legend in queue("watch", "shop.q", "--once").stdout.splitlines()
    assert legend in queue("report", "shop.q", "-o", "-").stdout


def test_rows_that_a_row_change_copies_are_no_new_rows(penstock: Command) -> None:
    penstock("create", "shop.days", "n BIGINT, dt STRING", "--partition-by", "dt", "-o", "write-only=true")
    table = penstock.catalog.load_table("shop.days")
    table.append(pa.table({"n": list(range(3000)), "dt": [f"{number % 30}" for number in range(3000)]}))
    table.delete("n >= 2970")
    shown = penstock("watch", "shop.days", "--once").stdout
    assert "3,000 rows in snapshot 1" in shown
    assert "30 files, 30 small, none to merge with another" in shown
    assert "max 3k / " in shown
    assert "small; nothing to merge" in penstock("report", "shop.days", "-o", "-").stdout
    table.overwrite(pa.table({"n": [1, 2], "dt": ["1", "1"]}))
    assert "2 rows in snapshot 3" in penstock("watch", "shop.days", "--once").stdout


def test_what_needs_attention_names_the_next_command(penstock: Command) -> None:
    penstock("create", "shop.days", "n BIGINT", "-o", "write-only=true", "-o", "compaction.min.file-num=2")
    table = penstock.catalog.load_table("shop.days")
    for number in range(9):
        table.append(pa.table({"n": [number]}))
    shown = penstock("watch", "shop.days", "--once").stdout
    assert "▲ files     9 files, 9 small; compact would take 9 " in shown
    assert ": penstock compact shop.days;" in shown
    assert "small; a compaction would merge 9" in penstock("report", "shop.days", "-o", "-").stdout
    table.maintenance.reset_consumer("nightly", 2)
    table._ref.file_io.delete(table._ref.layout.snapshot_path(1))
    consumer = table._ref.layout.consumer_path("nightly")
    table._ref.file_io.write(consumer, b'{"nextSnapshot": 1}')
    table._ref.file_io.write(table._ref.layout.earliest_hint_path, b"2")
    shown = penstock("watch", "shop.days", "--once").stdout
    assert "penstock consumer reset shop.days nightly --to earliest" in shown


def test_json_has_the_values(queue: Command) -> None:
    table = queue.catalog.load_table("shop.q")
    found = json.loads(queue("watch", "shop.q", "--once", "--format", "json").stdout)
    assert found["table"] == "shop.q"
    assert [sign["topic"] for sign in found["signs"]] == ["flow", "watermark", "files", "readers", "order"]
    assert found["event_time_column"] == "t"
    history = table.inspect.history().to_pylist()
    assert [row["snapshot_id"] for row in found["history"]] == [1, 2, 3, 4, 5]
    for row, expected in zip(found["history"], history, strict=True):
        text = expected["commit_time"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert row == {**expected, "commit_time": text}
    lag = table.inspect.lag().to_pylist()[0]
    assert found["readers"] == [
        {name: lag[name] for name in (
            "reader", "kind", "next_snapshot_id", "snapshots_behind", "files_behind", "bytes_behind", "rows_behind",
            "event_time_lag_ms", "expired_snapshots",
        )} | {"unread_since": found["history"][2]["commit_time"]}
    ]  # fmt: skip
    assert found["order"] == {"buckets": 2, "files": 2, "overlaps": 0}
    assert [(each["bucket"], each["files"]) for each in found["buckets"]] == [(0, 1), (1, 1)]
    assert found["left_out_snapshots"] == 0
    assert (
        json.loads(queue("watch", "shop.q", "--once", "--limit", "2", "--format", "json").stdout)["left_out_snapshots"]
        == 3
    )


def test_csv_has_the_commits_of_one_look(queue: Command) -> None:
    header, *rows = queue("watch", "shop.q", "--once", "--format", "csv").stdout.splitlines()
    assert header.startswith('"snapshot_id","commit_kind","commit_time","commit_user","added_rows"')
    assert len(rows) == 5
    assert "--format csv prints the commits once" in queue("watch", "shop.q", "--format", "csv", code=2).stderr


def test_a_table_that_is_not_there_or_is_empty(penstock: Command) -> None:
    penstock("watch", "shop.nope", "--once", code=3)
    penstock("create", "shop.empty", "n BIGINT")
    text = penstock("watch", "shop.empty", "--once").stdout
    assert "○ flow      nothing was ever committed" in text
    found = json.loads(penstock("watch", "shop.empty", "--once", "--format", "json").stdout)
    assert (found["history"], found["readers"], found["order"]) == ([], [], None)


def test_looks_come_one_after_the_other_until_interrupted(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "n BIGINT")
    table.append(pa.table({"n": [1]}))
    process = subprocess.Popen(
        [sys.executable, "-c", "from penstock.cli.main import main; main()", "-w", str(tmp_path), "watch", "shop.t",
         "--interval", "50 ms", "--format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    assert len(first["history"]) == 1
    table.append(pa.table({"n": [2]}))
    while len(json.loads(process.stdout.readline())["history"]) == 1:
        pass
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "error: interrupted\n"
