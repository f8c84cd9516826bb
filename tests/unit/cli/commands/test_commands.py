"""Metadata, tags, rollback, alter, import, fsck from the command line."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.table.commit_tables import append, committer, rows

from penstock.cli.exit_codes import ExitCode
from penstock.cli.output import render
from penstock.errors import InvalidOptionError
from penstock.format.schema import encode_schema
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command


@pytest.fixture
def history(orders: Command) -> Command:
    """Three snapshots of one row each, the first tagged ``one``."""
    for number in (1, 2, 3):
        line = f'{{"order_id": {number}, "dt": "2026-01-0{number}"}}\n'
        orders("append", "shop.orders", "-", "--input-format", "json", input=line)
    orders("tag", "create", "shop.orders", "one", "--snapshot-id", "1")
    return orders


@pytest.mark.parametrize(
    ("verb", "rows"),
    [
        ("snapshots", 3),
        ("schemas", 1),
        ("files", 3),
        ("partitions", 3),
        ("buckets", 3),
        ("manifests", 3),
        ("tags", 1),
        ("consumers", 0),
    ],
)
def test_system_tables_print_all_their_columns_as_json(history: Command, verb: str, rows: int) -> None:
    found = history.json(verb, "shop.orders")
    assert len(found) == rows
    table = history.catalog.load_table("shop.orders").inspect.system_table(verb)
    assert all(list(row) == table.schema.names for row in found)
    assert len(history(verb, "shop.orders").stdout.splitlines()) == rows + 2


def test_system_tables_speak_of_the_snapshot_asked_for(history: Command) -> None:
    for verb in ("files", "partitions", "buckets", "manifests"):
        assert len(history.json(verb, "shop.orders", "--snapshot-id", "1")) == 1


def test_wide_shows_the_columns_that_people_rarely_need(history: Command) -> None:
    assert "base_manifest_list" not in history("snapshots", "shop.orders").stdout
    assert "base_manifest_list" in history("snapshots", "shop.orders", "--wide").stdout
    assert "min_value_stats" in history("files", "shop.orders", "--wide").stdout


def test_listings_are_limited_and_the_newest_snapshots_come_first(
    history: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = history("snapshots", "shop.orders", "--limit", "2")
    assert [line.split()[0] for line in shown.stdout.splitlines()[2:]] == ["3", "2"]
    assert "these are the newest 2 of the snapshots: --limit 0 prints all" in shown.stderr
    assert [row["snapshot_id"] for row in history.json("snapshots", "shop.orders", "--limit", "2")] == [2, 3]
    for verb in ("files", "partitions", "buckets", "manifests"):
        cut = history(verb, "shop.orders", "--limit", "1")
        assert len(cut.stdout.splitlines()) == 3
        assert f"the first 1 of the {verb}" in cut.stderr
        assert history(verb, "shop.orders", "--limit", "3").stderr == ""
    monkeypatch.setattr("penstock.cli.commands.inspect._SHOWN", 2)
    for arguments, count in (((), 2), (("--limit", "0"), 3), (("--limit", "3"), 3)):
        assert len(history("snapshots", "shop.orders", *arguments).stdout.splitlines()) == count + 2
    assert len(history.json("snapshots", "shop.orders")) == 3


def test_a_limit_reads_no_more_snapshots_and_decodes_no_more_files(history: Command) -> None:
    table = history.catalog.load_table("shop.orders")
    table._ref.file_io.write(table._ref.layout.snapshot_path(1), b"")
    assert table.inspect.system_table("snapshots", limit=2)["snapshot_id"].to_pylist() == [2, 3]
    assert table.inspect.system_table("files", limit=0).num_rows == 0
    with pytest.raises(InvalidOptionError):
        table.inspect.system_table("files", limit=-1)


LISTINGS = {
    "snapshots": "snapshot schema kind committed rows change user",
    "schemas": "schema since columns partitioned by",
    "files": "partition bucket rows size first last schema file",
    "partitions": "partition rows size files last update",
    "buckets": "partition bucket rows size files last update",
    "manifests": "manifest size added deleted schema first partition last partition",
    "debt": "partition files small waiting waiting size fullest bucket compacted in",
    "tags": "tag snapshot schema committed rows created retained",
    "consumers": "consumer next snapshot",
    "branch list": "branch created",
    "lag": "reader next snapshots rows size oldest unread",
    "options": "key value",
}


@pytest.fixture
def busy(penstock: Command) -> Command:
    """A queue of 20 files in two partitions, one of them compacted, with a tag, a branch and a consumer."""
    penstock(
        "create", "shop.busy", "id BIGINT, at TIMESTAMP(3), dt STRING",
        "--partition-by", "dt", "-o", "bucket=1", "-o", "bucket-key=id", "-o", "write-only=true",
    )  # fmt: skip
    table = penstock.catalog.load_table("shop.busy")
    for number in range(20):
        at = pa.array([dt.datetime(2026, 1, 1, number)] * 1234, pa.timestamp("ms"))  # noqa: DTZ001 - without a zone
        table.append(pa.table({"id": range(1234), "at": at, "dt": [f"2026-01-0{1 + number % 2}"] * 1234}))
    penstock("compact", "shop.busy", "--partition", "dt=2026-01-01")
    penstock("tag", "create", "shop.busy", "first-of-the-month", "--time-retained", "30 d")
    penstock("branch", "create", "shop.busy", "trial", "--snapshot-id", "1")
    penstock("consumer", "reset", "shop.busy", "nightly-export-to-the-warehouse", "--to", "3")
    return penstock


@pytest.mark.parametrize("verb", LISTINGS)
def test_listings_fit_a_terminal_of_100_columns_and_have_a_line_for_each_row(
    busy: Command, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "_width", lambda: 100)
    lines = busy(*verb.split(), "shop.busy").stdout.splitlines()
    assert " ".join(lines[0].split()) == LISTINGS[verb]
    assert max(map(len, lines)) <= 100
    assert len(lines) == len(busy.json(*verb.split(), "shop.busy")) + 2


def test_figures_of_listings_have_units_and_zones_and_are_exact_if_wide(busy: Command) -> None:
    row = busy.json("partitions", "shop.busy")[0]
    (first, *_) = busy("partitions", "shop.busy").stdout.splitlines()[2:]
    assert " 12,340 " in first
    assert f" {bytes_text(row['file_size_in_bytes'])} " in first
    assert first.endswith("Z")
    assert row["last_update_time"].endswith("Z")
    wide = busy("partitions", "shop.busy", "--wide").stdout.splitlines()
    assert wide[0].split() == list(row)
    assert wide[2].split()[:3] == [row["partition"], "12340", str(row["file_size_in_bytes"])]
    shown = busy("show", "shop.busy").stdout
    assert " 24,680\n" in shown
    assert "waiting bytes" in shown
    assert "NULL" not in shown


def test_snapshots_and_lag_fit_with_watermarks_too(penstock: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "_width", lambda: 100)
    penstock("create", "shop.days", "k BIGINT, dt STRING", "--partition-by", "dt")
    ours = committer(penstock.catalog.load_table("shop.days")._ref)
    for watermark in (1_767_261_600_000, 1_767_265_200_000):
        ours.commit(append(rows(123_456, p="2026-01-01"), watermark=watermark))
    penstock("consumer", "reset", "shop.days", "nightly-export-to-the-warehouse", "--to", "2")
    (head, _, newest, _) = penstock("snapshots", "shop.days").stdout.splitlines()
    assert head.split()[-4:] == ["rows", "change", "watermark", "user"]
    assert "2026-01-01 11:00:00Z" in newest
    assert max(len(head), len(newest)) <= 100
    (head, _, reader) = penstock("lag", "shop.days").stdout.splitlines()
    assert " ".join(head.split()) == "reader next snapshots rows size event time lag oldest unread"
    assert " 1 h " in reader
    assert max(len(head), len(reader)) <= 100


@pytest.mark.parametrize("verb", ["files", "partitions", "buckets", "manifests", "debt"])
def test_partitions_are_written_in_one_way(busy: Command, verb: str) -> None:
    keys = ("partition", "min_partition_stats")
    values = {row[key] for row in busy.json(verb, "shop.busy") for key in keys if key in row}
    assert values == {"dt=2026-01-01", "dt=2026-01-02"}


def test_local_times_are_instants(busy: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files hold the wall clock of their writer, which is that of this machine."""
    now = dt.datetime.now(dt.UTC)
    for zone in ("Asia/Tokyo", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        table = busy.catalog.create_table(f"shop.{zone.partition('/')[0].lower()}", "id BIGINT")
        table.append(pa.table({"id": [1]}))
        (row,) = busy.json("partitions", table.name)
        assert abs(dt.datetime.fromisoformat(row["last_update_time"]) - now) < dt.timedelta(minutes=10)
    monkeypatch.undo()
    time.tzset()


def test_explain_shows_what_pruning_left(history: Command) -> None:
    where = ("--where", "dt = '2026-01-02'")
    assert "after partitions: 1 partition," in history("explain", "shop.orders", *where, "--quiet").stdout
    (plan,) = history.json("explain", "shop.orders", *where)
    assert (plan["files_total"], plan["files"], plan["rows"]) == (3, 1, 1)
    assert history.json("explain", "shop.orders", "--tag", "one")[0]["files_total"] == 1


def test_tags_are_created_listed_and_deleted(history: Command) -> None:
    history("tag", "create", "shop.orders", "keep", "--time-retained", "7 d")
    assert [tag["tag_name"] for tag in history.json("tag", "list", "shop.orders")] == ["keep", "one"]
    history("tag", "create", "shop.orders", "keep", code=4)
    assert history.json("tag", "delete", "shop.orders", "keep", "--dry-run")[0]["snapshot_id"] == 3
    history("tag", "delete", "shop.orders", "keep", "--yes")
    history("tag", "delete", "shop.orders", "keep", "--yes", code=3)
    assert "its tags are 'one'" in history("tag", "delete", "shop.orders", "keep", "--dry-run", code=3).stderr
    assert [tag["tag_name"] for tag in history.json("tags", "shop.orders")] == ["one"]


def test_a_tag_of_a_table_without_any_is_not_found(orders: Command) -> None:
    assert "it has no tags" in orders("tag", "delete", "shop.orders", "keep", "--dry-run", code=3).stderr


def test_a_branch_is_shown_before_it_goes(history: Command) -> None:
    history("branch", "create", "shop.orders", "trial", "--tag", "one")
    assert history.json("branch", "delete", "shop.orders", "trial", "--dry-run")[0]["dry_run"] is True
    history("branch", "delete", "shop.orders", "trial", "--yes")
    for name in ("trial", "main"):
        assert "none but main" in history("branch", "delete", "shop.orders", name, "--dry-run", code=3).stderr


def test_rollback_asks_says_what_goes_and_goes_back(history: Command) -> None:
    (plan,) = history.json("rollback", "shop.orders", "--tag", "one", "--dry-run")
    assert plan["removed_snapshots"] == [3, 2]
    assert "2 snapshots" in history("rollback", "shop.orders", "--snapshot-id", "1", input="n\n", code=1).stderr
    assert len(history.rows("shop.orders")) == 3
    history("rollback", "shop.orders", "--snapshot-id", "1", "--yes")
    assert [row["order_id"] for row in history.rows("shop.orders")] == [1]
    history("rollback", "shop.orders", "--snapshot-id", "9", "--yes", code=3)
    history("rollback", "shop.orders", code=2)
    history("rollback", "shop.orders", "--snapshot-id", "1", "--tag", "one", code=2)


def test_rollback_shows_ranges_of_snapshots_and_the_rows_that_are_left(history: Command) -> None:
    shown = history("rollback", "shop.orders", "--snapshot-id", "1", "--dry-run").stdout
    properties = dict(re.split(r"   +", line, maxsplit=1) for line in shown.splitlines()[2:])
    assert properties["removed snapshots"] == "2 to 3"
    assert properties["removed tags"] == "none"
    assert properties["rows left"] == "1"
    asked = history("rollback", "shop.orders", "--snapshot-id", "1", input="n\n", code=1).stderr
    assert "removes 2 snapshots and leaves 1 rows?" in asked


def test_rollback_as_latest_removes_nothing_and_can_be_undone(history: Command) -> None:
    name = "shop.orders"
    (plan,) = history.json("rollback", name, "--snapshot-id", "1", "--as-latest", "--dry-run")
    assert (plan["snapshot_id"], plan["removed_snapshots"], plan["dry_run"]) == (1, [], True)
    assert (
        "snapshot 4 of shop.orders has the rows of snapshot 1"
        in history("rollback", name, "--snapshot-id", "1", "--as-latest").stdout
    )
    assert history.catalog.load_table(name).to_arrow().num_rows == 1
    history("rollback", name, "--snapshot-id", "3", "--as-latest")
    assert history.catalog.load_table(name).to_arrow().num_rows == 3
    assert "nothing was committed" in history("rollback", name, "--snapshot-id", "3", "--as-latest").stdout


def test_rollback_to_a_time_takes_the_newest_snapshot_committed_until_then(history: Command) -> None:
    times = history.catalog.load_table("shop.orders").snapshots()["commit_time"].cast("int64").to_pylist()
    (plan,) = history.json("rollback", "shop.orders", "--timestamp", str(times[1]), "--dry-run")
    assert plan["snapshot_id"] == max(number for number, time in enumerate(times, 1) if time <= times[1])


def test_fsck_says_what_it_did_not_check(history: Command) -> None:
    assert "only 2 older snapshots and tags need were not checked" in history("fsck", "shop.orders").stderr
    assert "not checked" not in history("fsck", "shop.orders", "--all-snapshots").stderr


def test_alter_changes_columns_options_and_comments(history: Command) -> None:
    for change in (
        ["add-column", "shop.orders", "place", "ROW<city STRING>", "--after", "product", "--comment", "where"],
        ["add-column", "shop.orders", "place.zip", "INT"],
        ["rename-column", "shop.orders", "product", "article"],
        ["change-type", "shop.orders", "price", "DECIMAL(20, 2)"],
        ["drop-column", "shop.orders", "place.city"],
        ["set-nullable", "shop.orders", "order_id"],
        ["move-column", "shop.orders", "price", "--first"],
        ["column-comment", "shop.orders", "price", "in euro"],
        ["column-default", "shop.orders", "article", "tea"],
        ["comment", "shop.orders", "all orders"],
        ["set", "shop.orders", "snapshot.num-retained.min=5", "snapshot.num-retained.max=9"],
        ["reset", "shop.orders", "snapshot.num-retained.max"],
    ):
        before = history.json("show", "shop.orders")[0]
        history("alter", *change, "--dry-run")
        assert history.json("show", "shop.orders")[0] == before
        history("alter", *change)

    (shown,) = history.json("show", "shop.orders")
    columns = {column.pop("column"): column for column in shown["columns"]}
    assert list(columns) == ["price", "order_id", "article", "place", "dt"]
    assert columns["place"]["type"] == "ROW<zip INT>"
    assert columns["price"]["type"] == "DECIMAL(20, 2)"
    assert columns["price"]["comment"] == "in euro"
    assert columns["order_id"]["type"] == "BIGINT"
    assert columns["article"]["default"] == "tea"
    assert shown["comment"] == "all orders"
    assert shown["options"] == {"snapshot.num-retained.min": "5"}
    assert {row["order_id"] for row in history.rows("shop.orders")} == {1, 2, 3}


def test_alter_refuses_what_is_not_allowed(history: Command) -> None:
    history("alter", "drop-column", "shop.orders", "nope", code=3)
    history("alter", "drop-column", "shop.orders", "dt", code=2)
    history("alter", "add-column", "shop.orders", "price", "INT", code=4)
    history("alter", "move-column", "shop.orders", "price", code=2)
    history("alter", "move-column", "shop.orders", "price", "--first", "--after", "dt", code=2)
    assert "already" in history("alter", "reset", "shop.orders", "bucket").stdout


def test_import_copies_a_hive_directory_in_one_commit(orders: Command, tmp_path: Path) -> None:
    for day, ids in (("2026-01-01", [1, 2]), ("a%2Fb", [3]), ("__HIVE_DEFAULT_PARTITION__", [4])):
        directory = tmp_path / f"dt={day}"
        directory.mkdir()
        columns = {"order_id": ids, "product": ["x"] * len(ids), "price": pa.nulls(len(ids), pa.decimal128(10, 2))}
        pq.write_table(pa.table(columns), directory / "part-0.parquet")
        (directory / ".part-0.parquet.crc").write_text("x")
    (tmp_path / "_SUCCESS").write_text("")

    planned = orders.json("import", "shop.orders", str(tmp_path), "--dry-run")
    assert {file["partition"] for file in planned} == {"dt=2026-01-01", "dt=a/b", "dt=NULL"}
    assert orders.rows("shop.orders") == []
    output = orders("import", "shop.orders", str(tmp_path)).stdout

    assert "imported 3 files into shop.orders: snapshot 1, +4 rows" in output
    assert {row["order_id"]: row["dt"] for row in orders.rows("shop.orders")} == {
        1: "2026-01-01",
        2: "2026-01-01",
        3: "a/b",
        4: None,
    }
    orders("import", "shop.orders", str(tmp_path / "dt=2026-01-01"), code=9)
    orders("import", "shop.orders", str(tmp_path / "nowhere"), code=3)


def test_fsck_finds_nothing_wrong_and_then_what_is(history: Command) -> None:
    assert "all there" in history("fsck", "shop.orders", "--all-snapshots").stderr
    table = history.catalog.load_table("shop.orders")
    path = table.files().column("file_path")[0].as_py()
    table._ref.file_io.delete(path)

    result = history("fsck", "shop.orders", code=8)

    assert path in result.stdout
    assert "1 problem" in result.stderr
    (finding,) = [each for each in _findings(history) if each["kind"] == "missing"]
    assert finding["path"] == path
    assert "fsck" in history("read", "shop.orders", code=3).stderr


def test_fsck_names_the_next_command(history: Command) -> None:
    table = history.catalog.load_table("shop.orders")
    ref = table._ref
    path = table.files().column("file_path")[0].as_py()
    copy = ref.file_io.read(path)
    ref.file_io.delete(path)
    missing = history("fsck", "shop.orders", code=8)
    assert f"missing: data file of snapshot 3: {path}: 1 rows cannot be read" in missing.stdout
    call = "CALL sys.remove_unexisting_files('shop.orders', dry_run => TRUE)"
    assert f'next, if no copy can be restored: penstock sql -e "{call}"' in missing.stderr
    assert path in history("sql", "-e", call).stdout
    ref.file_io.write(path, copy)
    ref.file_io.write(ref.layout.snapshot_path(3), b"")
    ref.file_io.write(ref.layout.tag_path("one"), b"")
    damaged = history("fsck", "shop.orders", code=8).stderr
    assert "next, if no copy can be restored: penstock tag delete shop.orders one" in damaged
    assert "next, if no copy can be restored: penstock rollback shop.orders --snapshot-id 2" in damaged
    history("tag", "delete", "shop.orders", "one", "--yes")
    history("rollback", "shop.orders", "--snapshot-id", "2", "--yes")
    assert history("fsck", "shop.orders").stderr.splitlines()[0].endswith("all there")


def test_listings_beside_a_damaged_latest_snapshot_show_where_to_go_back_to(history: Command) -> None:
    ref = history.catalog.load_table("shop.orders")._ref
    ref.file_io.write(ref.layout.snapshot_path(3), b"")
    shown = history("snapshots", "shop.orders", code=ExitCode.DAMAGED)
    assert [line.split()[0] for line in shown.stdout.splitlines()[2:]] == ["2", "1"]
    for verb in ("schemas", "tags", "consumers", "branch list"):
        history(*verb.split(), "shop.orders")
    history("consumer", "reset", "shop.orders", "c", "--to", "1")
    for verb in ("show", "read", "lag", "watch --once", "report -o -"):
        result = history(*verb.split(), "shop.orders", code=ExitCode.DAMAGED)
        assert "penstock rollback shop.orders --snapshot-id 2" in result.stderr, verb


def test_a_lost_file_is_no_error_of_a_read_that_does_not_open_it(history: Command) -> None:
    """As in any engine: only fsck looks at all files."""
    table = history.catalog.load_table("shop.orders")
    lost = next(row["file_path"] for row in table.files().to_pylist() if row["partition"] == "{2026-01-03}")
    table._ref.file_io.delete(lost)
    assert len(history.rows("shop.orders", "--where", "dt = '2026-01-01'")) == 1
    history("read", "shop.orders", code=3)
    history("fsck", "shop.orders", code=8)


def _findings(command: Command) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(command("fsck", "shop.orders", "--format", "json", code=8).stdout)
    return found


def test_a_damaged_older_snapshot_is_left_out_by_name_and_the_exit_code_says_so(history: Command) -> None:
    table = history.catalog.load_table("shop.orders")
    table._ref.file_io.write(table._ref.layout.snapshot_path(2), b"")
    warning = "warning: table shop.orders: snapshot 2 cannot be read and is left out: 'penstock fsck shop.orders' shows"
    for command in (("snapshots",), ("watch", "--once"), ("debt",), ("report", "-o", "-")):
        result = history(command[0], "shop.orders", *command[1:], code=ExitCode.DAMAGED)
        assert warning in result.stderr, command
    listed = history("snapshots", "shop.orders", "--format", "json", code=ExitCode.DAMAGED).stdout
    assert [row["snapshot_id"] for row in json.loads(listed)] == [1, 3]
    seen = json.loads(history("watch", "shop.orders", "--once", "--format", "json", code=ExitCode.DAMAGED).stdout)
    assert [each["snapshot_id"] for each in seen["damaged_snapshots"]] == [2]
    assert "is empty" in seen["damaged_snapshots"][0]["message"]
    gone = history("expire", "shop.orders", "--retain-min", "1", "--retain-max", "1", "--yes", code=ExitCode.DAMAGED)
    assert "expired 2 snapshots of shop.orders (1 to 2)" in gone.stdout
    assert "snapshot 2 is damaged, and expires nevertheless" in gone.stderr
    history("snapshots", "shop.orders")
    history("fsck", "shop.orders")


def test_listings_leave_damaged_consumers_tags_and_schemas_out_by_name(
    history: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.table.store._CONSUMER_WAIT_SECONDS", 0)
    for name in ("good", "bad"):
        history("consumer", "reset", "shop.orders", name, "--to", "2")
        history("tag", "create", "shop.orders", name, "--snapshot-id", "2")
    history("alter", "add-column", "shop.orders", "note", "STRING")
    ref = history.catalog.load_table("shop.orders")._ref
    for path in (ref.layout.consumer_path("bad"), ref.layout.tag_path("bad"), ref.layout.schema_path(0)):
        ref.file_io.write(path, b"{")
    consumer = "warning: table shop.orders: consumer 'bad' is left out: "
    tag = "warning: table shop.orders: tag 'bad' is left out: "
    for command, warnings in {
        ("consumers",): (consumer, "penstock consumer reset TABLE bad"),
        ("consumer", "list"): (consumer,),
        ("lag",): (consumer,),
        ("tags",): (tag, "penstock tag delete TABLE bad"),
        ("schemas",): ("warning: table shop.orders: schema 0 is left out: ",),
    }.items():
        result = history(*command, "shop.orders", "--format", "json", code=ExitCode.DAMAGED)
        assert all(warning in result.stderr for warning in warnings), result.stderr
        assert "bad" not in result.stdout, command
        assert json.loads(result.stdout), command
    ref.file_io.write(ref.layout.schema_path(0), encode_schema(ref.schema))
    seen = history("watch", "shop.orders", "--once", "--format", "json", code=ExitCode.DAMAGED)
    assert all(warning in seen.stderr for warning in (consumer, tag))
    found = json.loads(seen.stdout)
    assert [(each["kind"], each["name"]) for each in found["damaged_files"]] == [("consumer", "bad"), ("tag", "bad")]
    assert [each["reader"] for each in found["readers"]] == ["good"]
    assert [each["tag_name"] for each in found["tags"]] == ["good", "one"]
    text = history("watch", "shop.orders", "--once", code=ExitCode.DAMAGED).stdout
    assert "damaged and left out, see penstock fsck shop.orders: consumer bad, tag bad" in text
    assert consumer in history("report", "shop.orders", "-o", "-", code=ExitCode.DAMAGED).stderr


def test_fsck_names_no_rollback_to_a_snapshot_that_needs_the_lost_schema_too(history: Command) -> None:
    history("alter", "add-column", "shop.orders", "note", "STRING")
    history("append", "shop.orders", "-", "--input-format", "json", input='{"order_id": 4, "dt": "2026-01-04"}')
    ref = history.catalog.load_table("shop.orders")._ref
    ref.file_io.write(ref.layout.schema_path(0), b"")
    result = history("fsck", "shop.orders", code=ExitCode.DAMAGED)
    assert "schema-0' is empty" in result.output
    assert "rollback" not in result.output


@pytest.mark.parametrize("directory", ["bucket-0", "manifest"])
def test_fsck_names_the_commands_for_a_damaged_file_that_the_table_can_do_without(
    history: Command, directory: str
) -> None:
    ref = history.catalog.load_table("shop.orders")._ref
    place = ref.layout.manifest_directory if directory == "manifest" else f"{ref.location}/dt=2026-01-01/bucket-0"
    path = next(
        status.path
        for status in ref.file_io.list(place)
        if status.name.startswith(("data-", "manifest-")) and "list" not in status.name
    )
    ref.file_io.write(path, b"x")
    lines = history("fsck", "shop.orders", code=ExitCode.DAMAGED).output.splitlines()
    procedure = "remove_unexisting_manifests" if directory == "manifest" else "remove_unexisting_files"
    call = f"CALL sys.{procedure}('shop.orders', dry_run => TRUE)"
    assert (
        f'next, if no copy can be restored: move {path} out of the table, then penstock sql -e "{call}", then without '
        "dry_run" in lines
    )
    ref.file_io.delete(path)
    history("sql", "-e", f"CALL sys.{procedure}('shop.orders')")
    history("fsck", "shop.orders")


def test_a_damaged_file_of_a_branch_is_named_by_its_path_there(history: Command) -> None:
    history("branch", "create", "shop.orders", "b", "--tag", "one")
    assert "branch b was not checked: penstock fsck 'shop.orders$branch_b'" in history("fsck", "shop.orders").output
    ref = history.catalog.load_table("shop.orders")._ref
    path = f"{ref.location}/branch/branch-b/snapshot/snapshot-1"
    ref.file_io.write(path, b"")
    assert path in history("read", "shop.orders$branch_b", code=ExitCode.DAMAGED).output
    assert path in history("fsck", "shop.orders$branch_b", code=ExitCode.DAMAGED).output
    path = f"{ref.location}/branch/branch-b/schema/schema-0"
    ref.file_io.write(path, b"")
    assert path in history("read", "shop.orders$branch_b", code=ExitCode.DAMAGED).output
