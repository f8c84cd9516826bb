"""The streaming source without a JVM: its offsets, its tasks and what it survives. ``micro_batches`` plays Spark."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles, ReadMaxRows, ReadMinRows
from pyspark.sql.types import IntegerType, StructField, StructType
from tests.spark.micro_batches import Checkpoint, Kill, Killed, Query

from penstock import Catalog, Table, col
from penstock.catalog.changes import AddColumn, DropColumn, RenameColumn
from penstock.errors import (
    InvalidFilterError,
    InvalidOptionError,
    LeaseHeldError,
    NotFoundError,
    OptionWarning,
    SchemaMismatchError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.stream import session as stream_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.spark.data_source.stream_reader import PenstockStreamReader

EARLIEST: Final = {"scan.mode": "earliest"}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


@pytest.fixture
def queue(catalog: Catalog) -> Table:
    """Four buckets, three snapshots of 100 rows: n counts, k is the bucket key, p the partition."""
    # Appends merge nothing, so that all snapshots are those of rows.
    options = {"bucket": "4", "bucket-key": "k", "compaction.min.file-num": "100"}
    table = catalog.create_table("d.q", "n BIGINT, k INT, p STRING", partition_by=["p"], options=options)
    for batch in range(3):
        append(table, range(100 * batch, 100 * batch + 100))
    return table


def append(table: Table, numbers: range, **more: object) -> None:
    rows = [{"n": n, "k": n % 13, "p": "xy"[n % 2], **more} for n in numbers]
    table.append(pa.Table.from_pylist(rows, table.arrow_schema))


def source(table: Table, **options: str) -> PenstockDataSource:
    return PenstockDataSource({"path": table.location, **options})


def report_of(reader: PenstockStreamReader) -> dict[str, Any]:
    report = reader.reportLatestOffset()
    assert report is not None
    return report


def bucket_order(table: Table) -> dict[tuple[str, int], list[int]]:
    """Numbers by partition and key in the order of a batch read, which keeps the order of writes."""
    rows = table.to_arrow(["n", "k", "p"]).to_pylist()
    order: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        order.setdefault((row["p"], row["k"]), []).append(row["n"])
    return order


# Offsets


def test_the_first_offset_is_a_constant_and_never_looks_at_the_table(queue: Table) -> None:
    stream = source(queue).streamReader(source(queue).schema())
    shutil.rmtree(queue.location)
    assert stream.initialOffset() == stream.initialOffset() == {"unresolved": True}


def test_an_offset_is_what_spark_can_keep_and_comes_back_as_the_same_text(queue: Table) -> None:
    stream = source(queue).streamReader(source(queue).schema())
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    kept = json.loads(json.dumps(end))
    assert json.dumps(stream.latestOffset(kept, ReadAllAvailable())) == json.dumps(end)
    assert stream.partitions(kept, kept) == []


MODES: Final[dict[str, tuple[dict[str, str], Callable[[int], bool]]]] = {
    "default": ({}, lambda _: True),
    "latest-full": ({"scan.mode": "latest-full"}, lambda _: True),
    "latest": ({"scan.mode": "latest"}, lambda n: n >= 300),
    "earliest": (EARLIEST, lambda _: True),
    "compacted-full": ({"scan.mode": "compacted-full"}, lambda _: True),
    "from-snapshot": ({"scan.snapshot-id": "2"}, lambda n: n >= 100),
    "from-snapshot-full": ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, lambda _: True),
    "from-timestamp": ({"scan.timestamp-millis": "0"}, lambda _: True),
    "from-file-creation-time": ({"scan.file-creation-time-millis": "0"}, lambda _: True),
}


@pytest.mark.parametrize("kill", Kill)
@pytest.mark.parametrize("mode", MODES)
def test_a_crash_in_the_first_batch_changes_nothing_whatever_is_committed_meanwhile(
    queue: Table, mode: str, kill: Kill
) -> None:
    options, expected = MODES[mode]
    checkpoint = Checkpoint()
    with pytest.raises(Killed):
        Query(queue, checkpoint, options, available_now=False).run(kill, 0)
    first = checkpoint.offsets[:]
    append(queue, range(300, 350))
    Query(queue, checkpoint, options, available_now=False).run()
    assert checkpoint.offsets[: len(first)] == first
    wanted = [n for n in range(350) if expected(n)]
    if kill is Kill.BEFORE_OFFSET and mode == "latest":  # nothing was kept, so it begins anew
        wanted = []
    assert sorted(checkpoint.values()) == wanted


@pytest.mark.parametrize("at_batch", range(5))
@pytest.mark.parametrize("kill", Kill)
def test_a_restart_after_a_crash_at_any_point_delivers_every_row_once_in_order(
    queue: Table, kill: Kill, at_batch: int
) -> None:
    options = {"read.stream.maxFilesPerTrigger": "5"}
    checkpoint = Checkpoint()
    with pytest.raises(Killed):
        Query(queue, checkpoint, options).run(kill, at_batch)
    append(queue, range(300, 400))
    Query(queue, checkpoint, options).run()
    assert sorted(checkpoint.values()) == list(range(400))
    assert ordered(checkpoint) == bucket_order(queue)


def ordered(checkpoint: Checkpoint) -> dict[tuple[str, int], list[int]]:
    """Numbers by partition and key as delivered; each key lives in one bucket, so in one task of a batch."""
    order: dict[tuple[str, int], list[int]] = {}
    for batch in sorted(checkpoint.rows):
        for task in checkpoint.rows[batch]:
            for row in task.to_pylist():
                order.setdefault((row["p"], row["k"]), []).append(row["n"])
    return order


def test_an_empty_table_is_waited_for(catalog: Catalog) -> None:
    table = catalog.create_table("d.e", "n BIGINT, k INT, p STRING")
    checkpoint = Query(table, Checkpoint()).run()
    assert checkpoint.sizes() == [0]
    query = Query(table, checkpoint, available_now=False)
    append(table, range(10))
    assert sorted(query.run().values()) == list(range(10))


# Tasks


def test_each_batch_has_one_task_a_bucket_and_unaware_tables_pack_files(queue: Table, catalog: Catalog) -> None:
    schema = source(queue).schema()
    stream = source(queue, **EARLIEST).streamReader(schema)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    tasks = stream.partitions(stream.initialOffset(), end)
    assert [task.task.bucket for task in tasks] == [0, 1, 2, 3]
    assert sum(split.row_count for task in tasks for split in task.task.splits) == 300
    scalable = catalog.create_table(
        "d.s", "n BIGINT, k INT, p STRING", options={"source.split.open-file-cost": "50 mb"}
    )
    for batch in range(5):
        append(scalable, range(batch * 10, batch * 10 + 10))
    checkpoint = Query(scalable, Checkpoint(), EARLIEST).run()
    assert [task.num_rows for task in checkpoint.rows[0]] == [20, 20, 10]
    assert checkpoint.values() == list(range(50))


def test_work_without_order_is_cut_for_all_cores_and_ordered_work_is_not(
    queue: Table, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    scalable = catalog.create_table(
        "d.s", "n BIGINT, k INT, p STRING", options={"source.split.open-file-cost": "100 b"}
    )
    for batch in range(10):
        append(scalable, range(batch * 10, batch * 10 + 10))
    for cores, tasks in ((1, 1), (3, 3), (100, 10)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        checkpoint = Query(scalable, Checkpoint(), EARLIEST).run()
        assert len(checkpoint.rows[0]) == tasks
        assert checkpoint.values() == list(range(100))
        assert len(Query(queue, Checkpoint(), EARLIEST).run().rows[0]) == 4


def test_columns_and_filters_are_applied_and_prune(queue: Table) -> None:
    options = {"filter": "p = 'x' AND n >= 100"}
    checkpoint = Query(queue, Checkpoint(), {**EARLIEST, **options}, columns=["k", "n"]).run()
    assert checkpoint.rows[0][0].column_names == ["k", "n"]
    assert sorted(checkpoint.values()) == list(range(100, 300, 2))
    stream = source(queue, **EARLIEST, **options).streamReader(StructType([StructField("k", IntegerType())]))
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    files = [
        (split.values, file)
        for task in stream.partitions(stream.initialOffset(), end)
        for split in task.task.splits
        for file in split.files
    ]
    assert {values for values, _ in files} == {("x",)}
    assert sum(file.row_count for _, file in files) == 100  # not those of the first snapshot


def test_a_changed_filter_does_not_move_the_place(queue: Table) -> None:
    options = {**EARLIEST, "read.stream.maxFilesPerTrigger": "3"}
    checkpoint = Checkpoint()
    with pytest.raises(Killed):
        Query(queue, checkpoint, {**options, "filter": "p = 'x'"}).run(Kill.BEFORE_OFFSET, 2)
    seen = set(checkpoint.values())
    assert all(n % 2 == 0 for n in seen)
    Query(queue, checkpoint, options).run()
    everything = checkpoint.values()
    assert len(everything) == len(set(everything))
    assert {n for n in everything if n % 2 == 0} == set(range(0, 300, 2))


# Limits


@pytest.mark.parametrize("prefix", ["read.stream.", ""])
def test_the_first_limit_that_is_reached_ends_a_batch(queue: Table, prefix: str) -> None:
    everything = list(range(300))
    one_file = {f"{prefix}maxFilesPerTrigger": "1", f"{prefix}maxRowsPerTrigger": "1000"}
    checkpoint = Query(queue, Checkpoint(), {**EARLIEST, **one_file}).run()
    files = sum(size > 0 for size in checkpoint.sizes())
    assert files == queue.files().num_rows
    assert sorted(checkpoint.values()) == everything
    rows = {f"{prefix}maxFilesPerTrigger": "100", f"{prefix}maxRowsPerTrigger": "40"}
    checkpoint = Query(queue, Checkpoint(), {**EARLIEST, **rows}).run()
    assert max(checkpoint.sizes()) <= 40
    assert sorted(checkpoint.values()) == everything
    size = {f"{prefix}maxBytesPerTrigger": "1 b"}
    assert len(Query(queue, Checkpoint(), size).run().sizes()) >= files


def test_the_full_phase_is_cut_too_and_later_snapshots_do_not_enter_it(queue: Table) -> None:
    options = {"read.stream.maxFilesPerTrigger": "2"}
    checkpoint = Checkpoint()
    with pytest.raises(Killed):
        Query(queue, checkpoint, options, available_now=False).run(Kill.BEFORE_COMMIT, 1)
    assert '"phase": "full"' in checkpoint.offsets[-1]
    append(queue, range(300, 320))
    Query(queue, checkpoint, options, available_now=False).run()
    assert sorted(checkpoint.values()) == list(range(320))
    assert checkpoint.values().index(300) > 100


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxFilesPerTrigger": "3"}, ReadMaxFiles(3)),
        ({"maxBytesPerTrigger": "1 kb"}, ReadMaxBytes(1024)),
        ({"maxFilesPerTrigger": "3", "maxRowsPerTrigger": "9"}, ReadMaxRows(9)),
        ({"minRowsPerTrigger": "9", "maxTriggerDelayMs": "50"}, ReadMinRows(9)),
        ({"scan.max-snapshot.count": "2"}, ReadMaxFiles(2**31 - 1)),
    ],
)
def test_spark_gets_one_of_the_limits(queue: Table, options: dict[str, str], limit: object) -> None:
    assert source(queue, **options).streamReader(source(queue).schema()).getDefaultReadLimit() == limit


def test_a_trigger_that_asks_for_everything_gets_it_whatever_the_limits(queue: Table) -> None:
    options = {**EARLIEST, "maxRowsPerTrigger": "10", "minRowsPerTrigger": "1000", "maxTriggerDelayMs": "60000"}
    options["scan.max-snapshot.count"] = "1"
    stream = source(queue, **options).streamReader(source(queue).schema())
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert end["position"]["snapshot"] == 4


def test_a_least_number_of_rows_waits_but_not_with_available_now(queue: Table) -> None:
    waits = {**EARLIEST, "minRowsPerTrigger": "301", "maxTriggerDelayMs": "60000"}
    query = Query(queue, Checkpoint(), waits, available_now=False)
    query.run()
    assert query.checkpoint.values() == []
    append(queue, range(300, 310))
    time.sleep(0.25)
    assert sorted(query.run().values()) == list(range(310))
    assert sorted(Query(queue, Checkpoint(), waits).run().values()) == list(range(310))


# Triggers


def test_available_now_ends_at_the_snapshot_that_was_the_latest_and_a_restart_goes_on(queue: Table) -> None:
    query = Query(queue, Checkpoint(), {**EARLIEST, "maxFilesPerTrigger": "4"})
    append(queue, range(300, 400))
    assert sorted(query.run().values()) == list(range(300))
    assert sorted(Query(queue, query.checkpoint, EARLIEST).run().values()) == list(range(400))
    before = len(query.checkpoint.offsets)
    Query(queue, query.checkpoint, EARLIEST).run()
    assert len(query.checkpoint.offsets) == before


def test_nothing_found_is_not_looked_for_again_before_the_discovery_interval(
    queue: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, now = source(queue).schema(), [0.0]
    monkeypatch.setitem(stream_session.StreamSession.__init__.__kwdefaults__, "clock", lambda: now[0])
    for options, waits in (({}, 0.2), ({"continuous.discovery-interval": "1 h"}, 3600)):
        stream = source(queue, **EARLIEST, **options).streamReader(schema)
        end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
        assert stream.latestOffset(end, ReadAllAvailable()) == end
        append(queue, range(10))
        assert stream.latestOffset(end, ReadAllAvailable()) == end
        assert report_of(stream)["snapshots_behind"] == 0
        now[0] += 0.9 * waits
        assert stream.latestOffset(end, ReadAllAvailable()) == end
        now[0] += 0.1 * waits + 0.001
        assert stream.latestOffset(end, ReadAllAvailable()) != end


# Progress


def test_the_reported_offset_says_how_far_the_batch_is_behind(queue: Table) -> None:
    stream = source(queue, **EARLIEST, maxFilesPerTrigger="1").streamReader(source(queue).schema())
    assert stream.reportLatestOffset() is None
    end = stream.latestOffset(stream.initialOffset(), ReadMaxFiles(1))
    report = report_of(stream)
    (task,) = stream.partitions(stream.initialOffset(), end)
    taken = sum(split.row_count for split in task.task.splits)
    files = queue.files().to_pylist()
    assert report["snapshot"] == 3
    assert report["snapshots_behind"] == 3
    assert report["files_behind"] == len(files) - 1
    assert report["rows_behind"] == 300 - taken
    assert 0 < report["bytes_behind"] < sum(file["file_size_in_bytes"] for file in files)
    assert report["table"] == queue.location
    while (after := stream.latestOffset(end, ReadMaxFiles(1))) != end:
        end = after
    behind = {key: value for key, value in report_of(stream).items() if key.endswith("_behind")}
    assert set(behind.values()) == {0}
    json.dumps(stream.reportLatestOffset())


# Consumers


def consumer_of(table: Table, name: str) -> int | None:
    path = Path(table.location, "consumer", f"consumer-{name}")
    return json.loads(path.read_text())["nextSnapshot"] if path.exists() else None


def test_a_consumer_follows_the_batch_before_and_holds_what_is_not_wholly_delivered(queue: Table) -> None:
    options = {"consumer-id": "c", "maxFilesPerTrigger": "5"}
    query = Query(queue, Checkpoint(), options)
    positions = []
    while query.step():
        positions.append(consumer_of(queue, "c"))
    phases = [json.loads(offset)["position"]["phase"] for offset in query.checkpoint.offsets]
    assert phases.count("full") >= 2
    assert set(positions) == {None}  # the rest of the first snapshot is no change that could be gone on with
    append(queue, range(300, 400))
    query.reader.stop()
    query = Query(queue, query.checkpoint, options)
    while query.step():
        assert consumer_of(queue, "c") == 4
    query.reader.stop()
    append(queue, range(400, 410))
    query = Query(queue, query.checkpoint, options)
    assert query.step()
    assert consumer_of(queue, "c") == 5
    query.reader.stop()
    # A new checkpoint goes on where the consumer stands, whatever the mode.
    anew = Query(queue, Checkpoint(), {"consumer-id": "c", "scan.mode": "latest-full"}).run()
    assert sorted(anew.values()) == list(range(400, 410))


def test_a_second_query_of_a_consumer_is_refused_with_the_holder_and_may_come_after_it(
    queue: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_session, "LEASE_MS", 300)
    options = {"consumer-id": "c"}
    first = Query(queue, Checkpoint(), options)
    with pytest.raises(LeaseHeldError, match=r"consumer-c.* in use by process \d+ on "):
        Query(queue, Checkpoint(), options)
    Query(queue, Checkpoint(), {"consumer-id": "other"}).reader.stop()
    first.reader.stop()
    second = Query(queue, Checkpoint(), options)
    second.reader.stop()


# The table changes


def test_a_query_keeps_its_columns_and_reads_new_files_by_evolution(queue: Table, catalog: Catalog) -> None:
    query = Query(queue, Checkpoint(), EARLIEST, available_now=False)
    query.run()
    changed = catalog.alter_table("d.q", AddColumn(column="extra", type="INT"), RenameColumn(column="n", new_name="m"))
    rows = [{"m": 300, "k": 1, "p": "x", "extra": 7}]
    changed.append(pa.Table.from_pylist(rows, changed.arrow_schema))
    time.sleep(0.25)
    assert sorted(query.run().values()) == list(range(301))
    assert query.checkpoint.rows[max(query.checkpoint.rows)][0].column_names == ["n", "k", "p"]
    changed.append(pa.Table.from_pylist([{**rows[0], "m": 301}], changed.arrow_schema))
    again = Query(changed, query.checkpoint, EARLIEST).run()
    assert again.rows[max(again.rows)][0].to_pylist() == [{"m": 301, "k": 1, "p": "x", "extra": 7}]


def test_columns_of_the_start_are_refused_where_later_snapshots_have_others(queue: Table, catalog: Catalog) -> None:
    options = {"scan.mode": "from-snapshot", "scan.snapshot-id": "2"}
    assert sorted(Query(queue, Checkpoint(), options).run().values()) == list(range(100, 300))
    changed = catalog.alter_table("d.q", AddColumn(column="extra", type="INT"))
    rows = [{"n": 300, "k": 1, "p": "x", "extra": 7}]
    changed.append(pa.Table.from_pylist(rows, changed.arrow_schema))
    asked = source(queue, **options).schema()
    chosen = StructType([StructField(field.name, field.dataType) for field in asked.fields])
    assert asked.fieldNames() == ["n", "k", "p"]
    for schema, is_refused in ((asked, True), (chosen, False), (source(queue).schema(), False)):
        _begin(source(queue, **options).streamReader(schema), is_refused=is_refused)


def _begin(stream: PenstockStreamReader, *, is_refused: bool) -> None:
    if not is_refused:
        assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable())["position"]["snapshot"] > 2
        return
    with pytest.raises(SchemaMismatchError, match=r"\(n bigint, k int, p string\), .*extra int\): .*readStream.schema"):
        stream.latestOffset(stream.initialOffset(), ReadAllAvailable())


def test_a_query_whose_column_is_gone_says_so_at_its_start(queue: Table, catalog: Catalog) -> None:
    declared = source(queue).schema()
    catalog.alter_table("d.q", DropColumn(column="n"))
    stream = source(queue).streamReader(declared)
    with pytest.raises(SchemaMismatchError, match=r"has no column 'n'"):
        stream.latestOffset(stream.initialOffset(), ReadAllAvailable())


def test_a_table_that_is_dropped_or_another_one_fails_the_query_by_its_name(queue: Table, catalog: Catalog) -> None:
    query = Query(queue, Checkpoint(), EARLIEST, available_now=False)
    query.run()
    catalog.drop_table("d.q")
    time.sleep(0.25)
    with pytest.raises(TableStoreError, match=queue.location):
        query.run()
    time.sleep(0.01)
    again = catalog.create_table("d.q", "n BIGINT, k INT, p STRING", options={"bucket": "4", "bucket-key": "k"})
    for number in range(5):
        append(again, range(number))
    with pytest.raises(TableStoreError, match=queue.location):
        query.run()
    with pytest.raises(TableStoreError, match=queue.location):
        Query(again, query.checkpoint, EARLIEST).run()


def test_snapshots_that_have_expired_or_were_rolled_back_are_missed(queue: Table) -> None:
    options = {**EARLIEST, "maxFilesPerTrigger": "1"}
    checkpoint = Checkpoint()
    with pytest.raises(Killed):
        Query(queue, checkpoint, options).run(Kill.BEFORE_OFFSET, 1)
    append(queue, range(300, 310))
    for snapshot_id in (1, 2):
        Path(queue.location, "snapshot", f"snapshot-{snapshot_id}").unlink()
    Path(queue.location, "snapshot", "EARLIEST").write_text("3")
    with pytest.raises(TableStoreError, match=r"snapshot.*expired.*snapshots 3 to 4|expired") as raised:
        Query(queue, checkpoint, options).run()
    assert "penstock.fail-on-data-loss" in str(raised.value)
    ahead = Query(queue, Checkpoint(), {"scan.mode": "latest"}).run()
    queue.rollback_to(snapshot_id=3)
    with pytest.raises(TableStoreError, match="roll"):
        Query(queue, ahead, {"scan.mode": "latest"}).run()


# Refused


def test_options_of_the_sink_warn_on_a_source(queue: Table) -> None:
    with pytest.warns(OptionWarning, match="'target-file-size'.* has no effect on a source"):
        source(queue, **{"target-file-size": "1 mb"}).streamReader(source(queue).schema())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"scan.tag-name": "t"}, InvalidOptionError, "scan.tag-name.*from-snapshot"),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"}, InvalidOptionError, "contradict|exactly one"),
        ({"scan.mode": "incremental", "incremental-between": "1,2"}, UnsupportedFeatureError, "batch reads"),
        ({"minRowsPerTrigger": "5"}, InvalidOptionError, "maxTriggerDelayMs"),
        ({"maxFilesPerTrigger": "0"}, InvalidOptionError, "maxFilesPerTrigger"),
        ({"streaming-read-overwrite": "true"}, InvalidOptionError, "streaming-read-append-overwrite"),
        ({"filter": "z = 1"}, InvalidFilterError, "unknown column 'z'"),
    ],
)
def test_what_cannot_be_streamed_is_refused_when_the_query_starts(
    queue: Table, options: Mapping[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Query(queue, Checkpoint(), options, columns=["n"]).run()


def test_system_tables_are_no_streams(queue: Table) -> None:
    shown = PenstockDataSource({"path": f"{queue.location}$snapshots"})
    with pytest.raises(InvalidOptionError, match=r"\$snapshots shows metadata as it is now"):
        shown.streamReader(shown.schema())


def test_a_start_where_a_batch_finds_nothing_has_columns_all_the_same(queue: Table) -> None:
    for options in ({"scan.mode": "earliest"}, {"scan.snapshot-id": "9"}, {"scan.timestamp-millis": "0"}):
        assert source(queue, **options).schema().fieldNames() == ["n", "k", "p"]
    with pytest.raises(NotFoundError):
        source(queue, **{"scan.snapshot-id": "9"}).reader(source(queue).schema())


def test_a_filter_may_be_a_python_expression_in_text(queue: Table) -> None:
    with pytest.raises(InvalidFilterError):
        source(queue, filter=repr(col("n"))).streamReader(source(queue).schema())
