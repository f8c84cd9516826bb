"""``writeStream.toTable``: each micro-batch is committed exactly once, as by ``Table.write_stream``."""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException, UnsupportedOperationException
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from tests.spark.needs import needs
from tests.spark.stream_feed import (
    COLUMNS,
    Feed,
    commits,
    data_files,
    forget_last_batch,
    live_files,
    new_feed,
    numbers,
)

import penstock
from penstock.catalog.changes import AddColumn
from penstock.errors import StorageError
from penstock.spark.connector.staged_files import StagedFiles, WriterFactories
from penstock.spark.connector.stream.table_write import StreamTableWrite
from penstock.spark.stream import micro_batches
from penstock.spark.versions.facts import PYTHON_WRITES
from penstock.spark.write import native_sink
from penstock.table.lease import LeaseKeeper, acquire
from penstock.table.stream_sink.committer import BATCH_DIGEST, StreamCommitter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock import Catalog, Table

pytestmark = needs(PYTHON_WRITES)

QUEUE = {"bucket": "2", "bucket-key": "k"}


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Catalog:
    catalog = penstock.attach(spark, tmp_path / "warehouse")
    catalog.create_database("d")
    return catalog


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return new_feed(spark, tmp_path / "feed", 10, 20, 30)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def run(rows: DataFrame, checkpoint: Path, mode: str = "append", **options: str) -> StreamingQuery:
    """Run the query over everything that is there, into ``d.t``."""
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).options(**options).outputMode(mode)
    query = writer.trigger(availableNow=True).toTable("penstock.d.t")
    assert query.awaitTermination(120)
    return query


def fail(rows: DataFrame, checkpoint: Path, text: str) -> None:
    with pytest.raises(StreamingQueryException, match=text) as raised:
        run(rows, checkpoint)
    assert 'File "' not in str(raised.value).partition("JVM stacktrace")[0]


@pytest.mark.parametrize(
    ("options", "partition_by"),
    [
        pytest.param({}, [], id="scalable", marks=pytest.mark.slow),
        pytest.param(QUEUE, ["s"], id="queue with partitions"),
    ],
)
def test_each_micro_batch_is_one_snapshot_and_a_restart_goes_on(
    catalog: Catalog, feed: Feed, checkpoint: Path, options: dict[str, str], partition_by: list[str]
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=options, partition_by=partition_by)
    rows = feed.stream().withColumn("s", F.expr("if(n < 25, 'a', 'b')"))
    query = run(rows, checkpoint)
    assert commits(table) == [(1, "APPEND", 10), (2, "APPEND", 20), (3, "APPEND", 30)]
    feed.add(5)
    assert run(rows, checkpoint).id == query.id
    assert commits(table)[3:] == [(4, "APPEND", 5)]
    assert numbers(table) == list(range(65))
    for batch_id in range(4):
        snapshot = table._store.load_snapshot(batch_id + 1)
        assert (snapshot.commit_user, snapshot.commit_identifier) == (query.id, batch_id)
        assert len(dict(snapshot.properties)[BATCH_DIGEST]) == 32
    assert data_files(table) == live_files(table)
    found = table.to_arrow().to_pylist()
    assert {(row["n"], row["s"]) for row in found} == {(n, "a" if n < 25 else "b") for n in range(65)}
    for key in {row["k"] for row in found} if options else ():
        numbers_of_key = [row["n"] for row in found if row["k"] == key]
        assert numbers_of_key == sorted(numbers_of_key), "rows stay in their order"
    assert sorted(path.name for path in (checkpoint / "penstock").iterdir()) == ["base-2", "base-3", "table"]


def writers(table: Table) -> set[str]:
    """Return the libraries that wrote the live files of a table, which has no other files left."""
    directory = Path(table.location)
    assert [path for path in directory.rglob(".penstock-*") if path.is_dir()] == []
    files = [path for path in directory.rglob("*.parquet") if path.name in live_files(table)]
    return {pq.read_metadata(path).created_by.split()[0] for path in files}


@pytest.mark.parametrize(
    ("options", "partition_by", "expected"),
    [
        ({}, [], "parquet-mr"),
        ({}, ["s", "p"], "parquet-cpp-arrow"),
        (QUEUE, [], "parquet-cpp-arrow"),
        ({"file.compression": "brotli"}, [], "parquet-cpp-arrow"),
    ],
    ids=["scalable", "partitions", "queue", "codec"],
)
def test_spark_writes_the_files_that_it_writes_as_we_do(
    catalog: Catalog, feed: Feed, checkpoint: Path, options: dict[str, str], partition_by: list[str], expected: str
) -> None:
    table = catalog.create_table("d.t", f"{COLUMNS}, p INT", options=options, partition_by=partition_by)
    text = F.expr("CASE n % 4 WHEN 0 THEN 'a' WHEN 1 THEN '' WHEN 2 THEN 'a/b' END")
    rows = feed.stream().withColumn("s", text).selectExpr("if(n % 3 = 0, null, n % 3) AS p", "s", "k", "n")
    rows = rows.withColumn("p", F.col("p").cast("int"))
    run(rows, checkpoint)
    assert writers(table) == {expected}
    assert commits(table) == [(1, "APPEND", 10), (2, "APPEND", 20), (3, "APPEND", 30)]
    texts = {0: "a", 1: "", 2: "a/b", 3: None}
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["n"])
    assert found == [{"n": n, "k": n % 5, "s": texts[n % 4], "p": n % 3 or None} for n in range(60)]
    partitions = [(row["s"], row["p"]) for row in found] if partition_by else [()]
    assert len({row["partition"] for row in table.files().to_pylist()}) == len(set(partitions))


def test_micro_batches_share_writers_and_try_no_dictionaries_that_the_batch_before_did_without(
    spark: SparkSession, catalog: Catalog, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"write-only": "true"})
    tried: list[frozenset[str]] = []
    made: list[dict[str, str]] = []
    make, new = WriterFactories.make, WriterFactories._new

    def noted_make(self: WriterFactories, *arguments: Any) -> Any:
        tried.append(self.dictionaries._without)
        return make(self, *arguments)

    def noted_new(self: WriterFactories, columns: Any, options: dict[str, str], directory: str) -> Any:
        made.append({key: value for key, value in options.items() if "#" in key})
        return new(self, columns, options, directory)

    monkeypatch.setattr(WriterFactories, "make", noted_make)
    monkeypatch.setattr(WriterFactories, "_new", noted_new)
    monkeypatch.setattr(native_sink, "_WRITES_WITHOUT", 2)
    feed = new_feed(spark, tmp_path / "many", *[20_001] * 5, 10)
    run(feed.stream().withColumn("s", F.lit(None).cast("string")), checkpoint)
    plain = frozenset({"n"})
    assert tried == [frozenset(), plain, plain, frozenset(), plain, plain]
    assert made == [{}, {"parquet.enable.dictionary#n": "false"}]
    files = [pq.read_metadata(path) for path in Path(table.location).rglob("data-*.parquet")]
    encodings = [tuple(file.row_group(0).column(place).encodings for place in (0, 1)) for file in files]
    assert len(files) == 6
    assert {any("DICTIONARY" in name for name in n) for n, _ in encodings} == {False}
    assert {any("DICTIONARY" in name for name in k) for _, k in encodings} == {True}
    assert numbers(table) == list(range(5 * 20_001 + 10))


def test_tasks_get_the_configuration_of_hadoop_once_and_without_the_sources_of_its_values(
    spark: SparkSession, catalog: Catalog, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"write-only": "true"})
    made: list[Any] = []
    new = WriterFactories._new

    def noted(self: WriterFactories, *arguments: Any) -> Any:
        made.append(new(self, *arguments))
        return made[-1]

    monkeypatch.setattr(WriterFactories, "_new", noted)
    run(new_feed(spark, tmp_path / "in", 3).stream().withColumn("s", F.lit(None).cast("string")), checkpoint)
    assert numbers(table) == [0, 1, 2]
    (factory,) = made
    jvm: Any = spark._jvm
    configuration = factory.description().serializableHadoopConf().value()
    out = jvm.java.io.ByteArrayOutputStream()
    jvm.java.io.ObjectOutputStream(out).writeObject(factory)
    written = jvm.java.io.ByteArrayOutputStream()
    jvm.org.apache.hadoop.conf.Configuration(configuration).write(jvm.java.io.DataOutputStream(written))
    # Spark's own factory has it twice, with the sources.
    assert out.size() < 0.75 * written.size()
    copy = jvm.org.apache.hadoop.conf.Configuration(False)
    own = jvm.java.io.ByteArrayOutputStream()
    configuration.write(jvm.java.io.DataOutputStream(own))
    copy.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(own.toByteArray())))
    assert copy.getPropsWithPrefix("").equals(configuration.getPropsWithPrefix(""))


def test_files_of_attempts_that_spark_has_not_taken_are_not_read(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    finish, copies = StagedFiles.finish, []

    def with_another_attempt(self: StagedFiles, messages: Any) -> int:
        directory = Path(self.staging.path)
        for path in list(directory.glob("part-*.parquet")):
            name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
            copies.append(shutil.copy(path, directory / name))
        return finish(self, messages)

    monkeypatch.setattr(StagedFiles, "finish", with_another_attempt)
    run(feed.stream(), checkpoint)
    assert len(copies) >= 3
    assert (numbers(table), writers(table)) == (list(range(60)), {"parquet-mr"})
    assert data_files(table) == live_files(table)


def test_rows_of_a_queue_go_to_python_in_batches_limited_by_rows(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options=QUEUE)
    found: list[str | None] = []
    commit = StreamTableWrite.commit

    def before_the_job(self: StreamTableWrite) -> bool:
        found.append(self._bridge.local_property("spark.sql.execution.arrow.maxBytesPerBatch"))
        found.append(self._bridge.local_property("spark.sql.execution.arrow.maxRecordsPerBatch"))
        return True

    def after_the_job(self: StreamTableWrite, batch_id: int, messages: Any) -> None:
        found.append(self._bridge.local_property("spark.sql.execution.arrow.maxBytesPerBatch"))
        commit(self, batch_id, messages)

    monkeypatch.setattr(StreamTableWrite, "useCommitCoordinator", before_the_job)
    monkeypatch.setattr(StreamTableWrite, "commit", after_the_job)
    run(feed.stream(), checkpoint)
    assert found == [str(2**31 - 1), "1000", None] * 3
    assert numbers(table) == list(range(60))


def test_null_in_a_column_that_is_not_null_ends_the_query_and_leaves_nothing(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS.replace("k INT", "k INT NOT NULL"))
    fail(feed.stream().withColumn("k", F.expr("nullif(k, 3)")), checkpoint, "column 'k' is NOT NULL, but 2 rows")
    assert (commits(table), data_files(table), writers(table)) == ([], [], set())
    run(feed.stream(), checkpoint)
    assert (numbers(table), writers(table)) == (list(range(60)), {"parquet-mr"})


def test_a_batch_that_spark_forgot_is_found_again_and_nothing_is_written(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"write-only": "true"})
    run(feed.stream(), checkpoint)
    table.append(table.to_arrow().slice(0, 1))
    before = (commits(table), data_files(table))
    forget_last_batch(checkpoint)
    assert run(feed.stream(), checkpoint).lastProgress["batchId"] == 2
    assert (commits(table), data_files(table)) == before
    # And write_stream continues the query from the same checkpoint.
    feed.add(5)
    done = {"availableNow": True}
    table.write_stream(feed.stream(), checkpoint=str(checkpoint), trigger=done).awaitTermination()
    assert commits(table)[4:] == [(5, "APPEND", 5)]


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_batch_that_dies_around_its_commit_is_there_once_after_the_restart(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    original = StreamCommitter.commit

    def dies(self: StreamCommitter, batch: Any, messages: Any) -> Any:
        if batch.id == 1 and when == "before":
            raise RuntimeError("killed")
        snapshot = original(self, batch, messages)
        if batch.id == 1:
            raise RuntimeError("killed")
        return snapshot

    with monkeypatch.context() as patched:
        patched.setattr(StreamCommitter, "commit", dies)
        with pytest.raises(StreamingQueryException, match="killed"):
            run(feed.stream(), checkpoint)
    assert len(commits(table)) == (1 if when == "before" else 2)
    run(feed.stream(), checkpoint)
    assert commits(table) == [(1, "APPEND", 10), (2, "APPEND", 20), (3, "APPEND", 30)]
    assert numbers(table) == list(range(60))
    assert data_files(table) == live_files(table)


def test_a_first_batch_that_was_committed_by_the_format_is_not_written_again(
    catalog: Catalog, spark: SparkSession, checkpoint: Path, tmp_path: Path, format_streams: None
) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"write-only": "true"})
    feed = new_feed(spark, tmp_path / "one", 10)
    writer = feed.stream().writeStream.format("penstock").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(table.location)
    assert query.awaitTermination(120)
    before = (commits(table), data_files(table))
    # The driver dies before Spark notes the batch.
    forget_last_batch(checkpoint)
    assert run(feed.stream(), checkpoint).id == query.id
    assert (commits(table), data_files(table)) == before
    feed.add(5)
    run(feed.stream(), checkpoint)
    assert numbers(table) == list(range(15))


@pytest.mark.slow
def test_a_batch_whose_task_fails_leaves_nothing(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", "n BIGINT NOT NULL, k INT, s STRING")
    fail(feed.stream().withColumn("n", F.expr("if(n = 17, null, n)")), checkpoint, "column 'n' is NOT NULL")
    fail(feed.stream().withColumn("n", F.expr("if(n = 17, raise_error('stop'), n)")), checkpoint, "stop")
    assert commits(table) == [(1, "APPEND", 10)]
    assert data_files(table) == live_files(table)


@pytest.mark.slow
def test_a_second_process_and_a_foreign_checkpoint_are_refused(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro_batches, "_END_WAIT_MS", 0)
    table = catalog.create_table("d.t", COLUMNS)
    query = run(feed.stream(), checkpoint)
    feed.add(5)
    lease = acquire(table._ref.file_io, table.location, f"query-{query.id}", ttl_ms=600)
    with LeaseKeeper(lease):
        fail(feed.stream(), checkpoint, f"LeaseHeldError: .*'query-{query.id}' is in use by process")
    assert len(commits(table)) == 3
    run(feed.stream(), checkpoint)
    assert numbers(table) == list(range(65))
    catalog.rename_table("d.t", "d.other")
    catalog.create_table("d.t", COLUMNS)
    feed.add(5)
    fail(feed.stream(), checkpoint, "it was dropped and created again since the query")
    catalog.drop_table("d.t")
    catalog.create_table("d.t", "n BIGINT")
    fail(feed.stream(), checkpoint.parent / "new", "column 'k' is not in the table")


@pytest.mark.slow
def test_complete_output_replaces_the_table_each_time_and_its_state_survives_a_replay(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", "k INT, c BIGINT NOT NULL")
    counts = feed.stream().groupBy("k").agg(F.count("*").alias("c"))
    for rows, count in ((0, 12), (0, 12), (10, 14)):
        if rows:
            feed.add(rows)
        run(counts, checkpoint, "complete")
        found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])
        assert found == [{"k": k, "c": count} for k in range(5)]
        forget_last_batch(checkpoint)
    assert len(commits(table)) == 4
    assert {kind for _, kind, _ in commits(table)} == {"OVERWRITE"}


def test_snapshots_have_the_watermark_of_their_rows_and_event_times_without_a_zone_stay(
    spark: SparkSession, catalog: Catalog, checkpoint: Path
) -> None:
    source, table = (
        catalog.create_table(f"d.{name}", "n BIGINT, at TIMESTAMP(3)", watermark=("at", "INTERVAL '5' SECOND"))
        for name in ("source", "t")
    )
    one_by_one = {"scan.mode": "earliest", "read.stream.maxFilesPerTrigger": "1"}
    for times in ([60_000, 90_000], [100_000], [70_000], [120_000]):
        rows = [{"n": time, "at": time} for time in times]
        source.append(pa.Table.from_pylist(rows, source.arrow_schema))
        if times != [100_000]:
            run(source.read_stream(spark, one_by_one), checkpoint)
    assert table.to_arrow().to_pylist() == source.to_arrow().to_pylist()
    found = table.snapshots().select(["commit_kind", "watermark"]).to_pylist()
    assert [row["watermark"] for row in found if row["commit_kind"] == "APPEND"] == [85_000, 95_000, 95_000, 115_000]


def running(feed: Feed, checkpoint: Path) -> StreamingQuery:
    """Return a query that waits for more."""
    query = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).toTable("penstock.d.t")
    query.processAllAvailable()
    return query


def test_rows_in_another_order_than_the_columns_survive_a_replay_and_a_change_of_the_table(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    rows = feed.stream().select("s", "k", "n")
    run(rows, checkpoint)
    forget_last_batch(checkpoint)
    query = rows.writeStream.option("checkpointLocation", str(checkpoint)).toTable("penstock.d.t")
    query.processAllAvailable()
    assert (len(commits(table)), writers(table)) == (3, {"parquet-mr"})
    catalog.alter_table("d.t", AddColumn(column="more", type="INT"))
    feed.add(2)
    query.processAllAvailable()
    query.stop()
    found = sorted(catalog.load_table("d.t").to_arrow().to_pylist(), key=lambda row: row["n"])
    assert found == [{"n": n, "k": n % 5, "s": f"row {n}", "more": None} for n in range(62)]
    assert writers(catalog.load_table("d.t")) == {"parquet-mr", "parquet-cpp-arrow"}


def test_columns_added_while_the_query_runs_are_null_and_a_recreated_table_ends_it(
    catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    catalog.create_table("d.t", COLUMNS)
    query = running(feed, checkpoint)
    catalog.alter_table("d.t", AddColumn(column="more", type="ROW<x INT, y STRING>"))
    feed.add(2)
    query.processAllAvailable()
    rows = catalog.load_table("d.t").to_arrow().to_pylist()
    assert [row["more"] for row in rows] == [None] * 62
    catalog.drop_table("d.t")
    anew = catalog.create_table("d.t", COLUMNS)
    feed.add(5)
    with pytest.raises(StreamingQueryException, match=r"table d\.t: it was dropped and created again"):
        query.processAllAvailable()
    assert commits(anew) == []
    assert data_files(anew) == []


def test_what_cannot_be_done_ends_the_query_in_its_first_batch(
    spark: SparkSession, catalog: Catalog, feed: Feed, checkpoint: Path
) -> None:
    table, rows = catalog.create_table("d.t", COLUMNS), feed.stream()
    counts = rows.groupBy("k").count().selectExpr("count n", "k", "'' s")
    now = {"availableNow": True}
    cases: list[tuple[DataFrame, str, dict[str, Any], str]] = [
        (rows, "update", now, r"table d\.t: output mode 'update' .*; use 'append' with a watermark"),
        (counts, "update", now, "output mode 'update'"),
        (rows.drop("k"), "append", now, "table d.t: column 'k' is missing"),
        (rows.withColumn("x", F.lit(1)), "append", now, "column 'x' is not in the table"),
        (rows.withColumn("k", F.col("s")), "append", now, "column 'k' is given as string"),
    ]
    for number, (frame, mode, trigger, text) in enumerate(cases):
        writer = frame.writeStream.option("checkpointLocation", f"{checkpoint}-{number}").outputMode(mode)
        with pytest.raises(StreamingQueryException, match=text):
            writer.trigger(**trigger).toTable("penstock.d.t").awaitTermination(60)
    continuous = spark.readStream.format("rate").load().selectExpr("value n", "0 k", "'' s").writeStream
    continuous = continuous.option("checkpointLocation", f"{checkpoint}-continuous").trigger(continuous="1 second")
    with pytest.raises(UnsupportedOperationException, match=r"table d\.t: .* runs none: use the trigger processingT"):
        continuous.toTable("penstock.d.t")
    assert commits(table) == []
    assert data_files(table) == []
    # A checkpoint that saw only such errors can be used once the query is right.
    run(rows, checkpoint.with_name(f"{checkpoint.name}-2"))
    assert numbers(table) == list(range(60))


def test_a_checkpoint_of_another_table_or_sink_is_refused(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    catalog.create_table("d.other", COLUMNS)
    table = catalog.create_table("d.t", COLUMNS)
    done = {"availableNow": True}
    for name, start in (
        ("other", lambda writer: writer.toTable("penstock.d.other")),
        ("noop", lambda writer: writer.format("noop").start()),
    ):
        place = checkpoint.with_name(name)
        start(feed.stream().writeStream.option("checkpointLocation", str(place)).trigger(**done)).awaitTermination()
        feed.add(5)
        texts = {"other": r"table d\.t: .* belongs to another table, at .*/other; use a new", "noop": "somewhere else"}
        fail(feed.stream(), place, texts[name])
        assert commits(table) == []


def test_a_stop_that_interrupts_our_work_is_no_failure(
    catalog: Catalog, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    query, original = running(feed, checkpoint), StreamCommitter.begin
    stopping = threading.Thread(target=query.stop)

    def interrupted(self: StreamCommitter, batch: Any) -> Any:
        stopping.start()
        while query.isActive:
            time.sleep(0.01)
        raise StorageError("cannot write base-3: java.io.InterruptedIOException", False)

    with monkeypatch.context() as patched:
        patched.setattr(StreamCommitter, "begin", interrupted)
        feed.add(5)
        query.awaitTermination(60)
    stopping.join()
    assert StreamCommitter.begin is original
    assert query.exception() is None
    run(feed.stream(), checkpoint)
    assert commits(table)[3:] == [(4, "APPEND", 5)]


def test_small_files_are_merged_while_the_query_runs(catalog: Catalog, feed: Feed, checkpoint: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS, options={"compaction.min.file-num": "3"})
    query = running(feed, checkpoint)
    try:
        deadline = time.monotonic() + 60
        while "COMPACT" not in {kind for _, kind, _ in commits(table)}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        query.stop()
    assert {row["commit_user"] for row in table.snapshots().to_pylist()} == {query.id, f"{query.id}-compact"}
    assert numbers(table) == list(range(60))


@pytest.mark.slow
def test_queries_of_threads_and_of_other_sessions_write_at_once(
    spark: SparkSession, catalog: Catalog, feed: Feed, tmp_path: Path
) -> None:
    sessions = [spark, spark.newSession()]
    penstock.attach(sessions[1], catalog.warehouse)
    tables = [catalog.create_table(f"d.t{number}", COLUMNS) for number in range(2)]
    failures: list[BaseException] = []

    def start(session: SparkSession, target: int, checkpoint: Path) -> None:
        try:
            rows = Feed(session, feed.directory).stream()
            writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
            assert writer.toTable(f"penstock.d.t{target}").awaitTermination(100)
        except BaseException as failure:  # noqa: BLE001 - for the test's thread
            failures.append(failure)

    def start_in(batch: DataFrame, batch_id: int) -> None:
        if batch_id == 0:
            start(batch.sparkSession, 0, tmp_path / "inner")

    threads = [
        threading.Thread(target=start, args=(session, target, tmp_path / f"c{number}"))
        for number, (session, target) in enumerate(((spark, 0), (spark, 1), (sessions[1], 0)))
    ]
    for thread in threads:
        thread.start()
    outer = feed.stream().writeStream.foreachBatch(start_in).option("checkpointLocation", str(tmp_path / "outer"))
    outer.trigger(availableNow=True).start().awaitTermination()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [sorted(numbers(table)) for table in tables] == [sorted([*range(60)] * 3), [*range(60)]]


@pytest.mark.slow
def test_a_missing_table_is_created_for_the_format(spark: SparkSession, catalog: Catalog, feed: Feed) -> None:
    checkpoint = feed.directory.parent / "checkpoint"
    writer = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    with pytest.raises(UnsupportedOperationException, match=r'table d\.t: USING csv: .*add \.format\("penstock"\)'):
        writer.format("csv").toTable("penstock.d.t")
    writer.format("penstock").partitionBy("k").toTable("penstock.d.t").awaitTermination()
    table = catalog.load_table("d.t")
    assert numbers(table) == list(range(60))
    assert table.partitions().num_rows == 5


@pytest.mark.slow
def test_a_missing_table_is_created_with_the_default_format(catalog: Catalog, feed: Feed) -> None:
    checkpoint = feed.directory.parent / "checkpoint"
    writer = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.toTable("penstock.d.u").awaitTermination()
    assert numbers(catalog.load_table("d.u")) == list(range(60))
