"""Expiration and orphan removal from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command

FUTURE = "2100-01-01"


@pytest.fixture
def history(penstock: Command) -> Command:
    """Five snapshots, each of which replaces its day's rows; the second is tagged ``two``."""
    penstock("create", "shop.days", "k BIGINT, dt STRING", "--partition-by", "dt")
    table = penstock.catalog.load_table("shop.days")
    for number in range(5):
        table.overwrite(pa.table({"k": [number], "dt": [f"2025-01-0{1 + number % 2}"]}))
    table.create_tag("two", snapshot_id=2)
    return penstock


def test_expire_says_what_went_and_who_keeps_what(history: Command) -> None:
    (would,) = history.json("expire", "shop.days", "--retain-min", "2", "--older-than", FUTURE, "--dry-run")
    assert (would["snapshots"], would["dry_run"]) == ([1, 2, 3], True)
    assert len(history.catalog.load_table("shop.days").snapshots()) == 5
    done = history("expire", "shop.days", "--retain-min", "2", "--older-than", FUTURE, "--yes")
    assert "expired 3 snapshots of shop.days (1 to 3) with 0 data files" in done.stdout
    assert "--retain-min keeps snapshots from 4 on" in done.stderr
    assert "snapshot.num-retained.min" not in done.stderr
    assert "tag two keeps 2 data files of expired snapshots" in done.stderr
    assert history.catalog.load_table("shop.days").snapshots().column("snapshot_id").to_pylist() == [4, 5]


def test_expire_names_the_argument_or_the_option_that_keeps_snapshots(history: Command) -> None:
    history.catalog.load_table("shop.days").versions.delete_tag("two")
    by_options = history("expire", "shop.days", "--dry-run").stderr
    assert "option snapshot.num-retained.min keeps snapshots from 1 on" in by_options
    by_time = history("expire", "shop.days", "--retain-min", "1", "--dry-run").stderr
    assert "option snapshot.time-retained keeps snapshots from 1 on" in by_time
    recent = ("expire", "shop.days", "--retain-min", "1", "--older-than", "2020-01-01")
    assert "--older-than keeps snapshots from 1 on" in history(*recent, "--dry-run").stderr
    limited = ("expire", "shop.days", "--retain-max", "1", "--retain-min", "1", "--max-deletes", "2")
    assert "--max-deletes keeps snapshots from 3 on" in history(*limited, "--dry-run").stderr
    asked = history("expire", "shop.days", "--retain-max", "1", "--retain-min", "1", input="y\n")
    assert "expire 4 snapshots of shop.days (1 to 4)" in asked.stderr
    assert "--retain-min keeps snapshots from 5 on" in asked.stderr
    assert "max-deletes" not in asked.stderr


def test_expire_without_anything_old_says_so(history: Command) -> None:
    assert "no snapshot of shop.days has expired" in history("expire", "shop.days").stdout
    assert "no snapshot of shop.days would expire" in history("expire", "shop.days", "--dry-run").stdout
    history("expire", "shop.days", "--retain-min", "3", "--retain-max", "1", code=2)


def test_orphans_are_shown_before_they_go(history: Command) -> None:
    table = history.catalog.load_table("shop.days")
    orphan = f"{table.location}/manifest/manifest-lost-0"
    table._ref.file_io.write(orphan, b"???")
    recent = ("--older-than", str(table._ref.file_io.list(f"{table.location}/manifest")[-1].modified_millis + 1))
    history("remove-orphan-files", "shop.days", *recent, code=2)
    assert history.json("remove-orphan-files", "shop.days", "--dry-run") == []
    options = (*recent, "--allow-recent")
    (shown,) = history.json("remove-orphan-files", "shop.days", *options, "--dry-run")
    assert (shown["file"], shown["bytes"], shown["kind"]) == (orphan, 3, "manifest")
    refused = history("remove-orphan-files", "shop.days", *options, input="n\n", code=1)
    assert "1 orphans (3 B)" in refused.stderr
    assert table._ref.file_io.exists(orphan)
    done = history("remove-orphan-files", "shop.days", *options, "--yes")
    assert "deleted 1 orphans of shop.days (3 B)" in done.stderr
    assert not table._ref.file_io.exists(orphan)


def test_partitions_that_have_expired_are_shown_before_they_go(history: Command) -> None:
    history("expire-partitions", "shop.days", code=2)
    found = history.json("expire-partitions", "shop.days", "--expiration-time", "1 d", "--dry-run")
    assert [(each["partition"], each["rows"]) for each in found] == [("dt=2025-01-01", 1), ("dt=2025-01-02", 1)]
    history("expire-partitions", "shop.days", "--expiration-time", "1 d", input="n\n", code=1)
    assert len(history.rows("shop.days")) == 2
    done = history("expire-partitions", "shop.days", "--expiration-time", "1 d", "--yes")
    assert "dropped 2 partitions of shop.days" in done.stderr
    assert history.rows("shop.days") == []
