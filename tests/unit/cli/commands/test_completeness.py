"""Waiting from the command line."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, rows

from penstock.cli.output.progress import status_line
from penstock.cli.session import Session

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command


@pytest.fixture
def days(penstock: Command) -> Command:
    """Three snapshots of ``shop.days``, the second and third with watermarks of ten and eleven o'clock UTC."""
    penstock("create", "shop.days", "k BIGINT, dt STRING", "--partition-by", "dt")
    ours = committer(penstock.catalog.load_table("shop.days")._ref)
    for watermark in (None, 1_767_261_600_000, 1_767_265_200_000):
        ours.commit(append(rows(1, p="2026-01-01"), watermark=watermark))
    return penstock


def test_wait_prints_the_snapshot_that_has_reached_the_time(days: Command) -> None:
    found = days.json("wait", "shop.days", "--watermark", "2026-01-01T12:00:00+01:00", "--timeout", "0 s")
    assert found == [{"table": "shop.days", "snapshot_id": 3, "watermark": 1_767_265_200_000}]
    said = days("wait", "shop.days", "--watermark", "1767261600000").stdout
    assert said == "shop.days has reached 2026-01-01 11:00:00.000+00:00: snapshot 3\n"


def test_wait_ends_with_13_when_its_time_is_up(days: Command) -> None:
    options = ("--watermark", "2026-01-02T00:00:00Z", "--timeout", "20 ms", "--interval", "5 ms")
    failed = days("wait", "shop.days", *options, code=13)
    assert failed.stderr.startswith("error: table shop.days: waited 0.0 s for watermark 2026-01-02 00:00:00.000+00:00")
    assert failed.stdout == ""
    assert (
        "--watermark 'noon': expected a time such as" in days("wait", "shop.days", "--watermark", "noon", code=2).stderr
    )
    days("wait", "shop.days", code=2)
    days("wait", "shop.nothing", "--watermark", "0", code=3)


def test_rollback_goes_to_the_newest_snapshot_that_is_not_beyond_a_time(days: Command) -> None:
    (plan,) = days.json("rollback", "shop.days", "--watermark", "2026-01-01T10:30:00Z", "--dry-run")
    assert (plan["snapshot_id"], plan["removed_snapshots"]) == (2, [3])
    days("rollback", "shop.days", "--watermark", "2026-01-01T09:00:00Z", "--yes", code=3)
    days("rollback", "shop.days", "--watermark", "0", "--snapshot-id", "1", code=2)
    done = days("rollback", "shop.days", "--watermark", "1767263400000", "--yes")
    assert done.stdout == "rolled shop.days back to snapshot 2\n"
    assert days.json("snapshots", "shop.days")[-1]["snapshot_id"] == 2


def test_mark_done_marks_partitions_by_name_or_those_that_are_due(days: Command) -> None:
    marked = ("mark-done", "shop.days", "--partition", "dt=2026-01-01", "--partition", "dt=2026-01-02")
    would = days.json(*marked, "--dry-run")
    assert [(each["partition"], each["rows"]) for each in would] == [("dt=2026-01-01", 3), ("dt=2026-01-02", 0)]
    table = days.catalog.load_table("shop.days")
    path = f"{table.location}/dt=2026-01-01/_SUCCESS"
    assert not table._ref.file_io.exists(path)
    done = days(*marked)
    assert done.stderr == "2 partitions of shop.days are marked done\n"
    assert table._ref.file_io.exists(path)
    assert "'partition.time-interval'" in days("mark-done", "shop.days", code=2).stderr
    days("alter", "set", "shop.days", "partition.time-interval=1 d", "partition.idle-time-to-done=1 ms")
    assert days("mark-done", "shop.days", "--dry-run").stderr == "0 partitions of shop.days would be marked done\n"
    days("mark-done", "shop.days", "--partition", "day=1", code=2)


class Terminal(io.StringIO):
    """An error stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_line_says_how_far_the_table_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for quiet, shown in ((False, True), (True, False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with status_line(Session(quiet=quiet), "waiting [for] days") as say:
            say("waiting [for] days: 0:01:40 behind")
        assert ("waiting [for] days: 0:01:40 behind" in terminal.getvalue()) is shown
