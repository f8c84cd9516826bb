"""DataFrames become snapshots: order, files, and what is left when something goes wrong."""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.ways import READ_FORMAT_IF_SLOW

from penstock import Catalog, Table, attach
from penstock.errors import SchemaMismatchError, TableStoreError
from penstock.spark.versions.facts import MEASURES_BATCHES
from penstock.spark.write import sink
from penstock.spark.write.native_sink import Dictionaries, StreamRows
from penstock.spark.write.sink import collect_messages, distribute, write_dataframe
from penstock.spark.write.task import TaskOutcome, WriteTask, write_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from penstock.table.ref import TableRef

pytestmark = READ_FORMAT_IF_SLOW

ROWS = 30_000
TASKS = 5


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


def data_files(table: Table) -> list[str]:
    """Names of all data files on storage, live or not."""
    return sorted(path.name for path in Path(table.location).rglob("data-*"))


def live_files(table: Table) -> list[str]:
    return sorted(Path(path).name for path in table.files()["file_path"].to_pylist())


def numbered(spark: SparkSession) -> DataFrame:
    """Rows numbered in the DataFrame's order, in several tasks and many batches."""
    return spark.range(0, ROWS, 1, TASKS).select(
        F.col("id").alias("number"),
        (F.col("id") * 7919 % 101).cast("int").alias("k"),
        F.concat(F.lit("p"), F.col("id") % 3).alias("p"),
    )


def descriptions(spark: SparkSession) -> set[str]:
    """What Spark's UI shows of the jobs of this session."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty(10_000)
    jobs = context.statusStore().jobsList(None)
    found = [jobs.apply(place).description() for place in range(jobs.size())]
    return {text.get() for text in found if text.isDefined()}


@pytest.mark.parametrize("file_format", ["parquet", "avro"])  # written by Spark's own writer, and by Python workers
def test_jobs_have_a_description_unless_their_thread_has_one(
    spark: SparkSession, catalog: Catalog, file_format: str
) -> None:
    table = catalog.create_table(f"d.jobs_{file_format}", "id BIGINT", options={"file.format": file_format})
    spark.sparkContext.setLocalProperty("spark.job.description", None)  # job groups of other tests have one
    table.append(spark.range(5))
    assert f"d.jobs_{file_format}: writing rows" in descriptions(spark)
    context = spark.sparkContext
    assert context.getLocalProperty("spark.job.description") is None
    context.setJobDescription(f"mine, {file_format}")
    try:
        table.append(spark.range(5))
        assert context.getLocalProperty("spark.job.description") == f"mine, {file_format}"
    finally:
        context.setLocalProperty("spark.job.description", None)
    assert f"mine, {file_format}" in descriptions(spark)


def queue(catalog: Catalog, **options: str) -> Table:
    return catalog.create_table(
        "d.queue",
        "number BIGINT, k INT, p STRING",
        partition_by=["p"],
        options={"bucket": "4", "bucket-key": "k", **options},
    )


def numbers_by_bucket(table: Table) -> dict[tuple[str, int], list[int]]:
    """Numbers of each (partition, bucket) in read order; every number must be there once."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    bucket_of: dict[int, tuple[str, int]] = {}
    for path, partition, bucket in zip(
        *(table.files()[name].to_pylist() for name in ("file_path", "partition", "bucket")), strict=True
    ):
        for number in pq.read_table(path, columns=["number"])["number"].to_pylist():
            assert number not in bucket_of
            bucket_of[number] = (partition, bucket)
    for number in table.to_arrow(["number"])["number"].to_pylist():
        found[bucket_of[number]].append(number)
    assert len(bucket_of) == sum(map(len, found.values())) == ROWS
    return found


def test_order_is_kept_in_every_bucket_without_a_shuffle(spark: SparkSession, catalog: Catalog) -> None:
    table = queue(catalog, **{"write-only": "true"})
    snapshot = table.append(numbered(spark))
    assert (snapshot.id, snapshot.total_record_count) == (1, ROWS)
    found = numbers_by_bucket(table)
    assert len(found) == 3 * 4
    assert all(numbers == sorted(numbers) for numbers in found.values())
    # Each task wrote to every bucket: rows stayed where they were.
    assert len(live_files(table)) == 3 * 4 * TASKS
    assert data_files(table) == live_files(table)
    table.append(numbered(spark).limit(10))
    assert table.latest_snapshot().id == 2


@pytest.mark.skipif(not MEASURES_BATCHES, reason="this Spark does not limit the bytes of a batch")
def test_batches_for_python_are_limited_by_rows_unless_the_query_depends_on_them(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[int, int]] = []

    def limits(df: DataFrame, ref: TableRef, names: tuple[str, ...]) -> DataFrame:
        conf: Any = df._jdf.sparkSession().sessionState().conf()
        found.append((conf.arrowMaxBytesPerBatch(), conf.arrowMaxRecordsPerBatch()))
        return distribute(df, ref, names)

    monkeypatch.setattr(sink, "distribute", limits)
    default = spark._jsparkSession.sessionState().conf().arrowMaxBytesPerBatch()
    table = queue(catalog)
    table.append(numbered(spark))
    assert found.pop() == (2**31 - 1, 1_000)
    observation = Observation()
    table.append(numbered(spark).observe(observation, F.count("*").alias("rows")))
    assert found.pop() == (default, 10_000)
    assert observation.get == {"rows": ROWS}
    plus = F.udf(lambda number: number + ROWS, "bigint")
    table.append(numbered(spark).withColumn("number", plus("number")))
    assert found.pop() == (default, 10_000)
    rows = spark.createDataFrame([(ROWS * 2, 1, "p")], numbered(spark).schema)
    write_dataframe(rows, table._ref)
    assert found.pop() == (default, 10_000)
    write_dataframe(rows, table._ref, query=StreamRows(rows=numbered(spark), dictionaries=Dictionaries()))
    assert found.pop() == (2**31 - 1, 1_000)
    images = catalog.create_table(
        "d.images", "k INT, image ROW<content BYTES>", options={"bucket": "2", "bucket-key": "k"}
    )
    images.append(spark.sql("SELECT 1 AS k, named_struct('content', X'00') AS image"))
    assert found.pop() == (default, 10_000)
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", "1m")
    try:
        table.append(numbered(spark))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxBytesPerBatch")
    assert found == [(2**20, 10_000)]
    assert sorted(table.to_arrow()["number"].to_pylist()) == sorted([*range(ROWS)] * 3 + [*range(ROWS, 2 * ROWS)])


def test_hash_strategy_keeps_the_order_and_gives_each_bucket_one_task(spark: SparkSession, catalog: Catalog) -> None:
    table = queue(catalog, **{"partition.sink-strategy": "hash"})
    assert table.append(numbered(spark)).id == 1
    found = numbers_by_bucket(table)
    assert all(numbers == sorted(numbers) for numbers in found.values())
    assert len(found) == len(live_files(table)) == 3 * 4
    assert data_files(table) == live_files(table)


def test_dataframe_without_rows_makes_no_snapshot(spark: SparkSession, catalog: Catalog) -> None:
    table = queue(catalog)
    assert table.append(numbered(spark).limit(0)) is None
    assert table.append(numbered(spark).where("number < 0")) is None
    assert (table.latest_snapshot(), data_files(table)) == (None, [])


@pytest.mark.parametrize("strategy", ["none", "hash"])
def test_columns_come_by_name_in_any_order_with_any_characters(
    spark: SparkSession, catalog: Catalog, strategy: str
) -> None:
    columns = "`a.b` INT, `with space` STRING, `Ünï` BIGINT, `c``d` INT, `1` STRING"
    table = catalog.create_table(
        "d.odd", columns, options={"bucket": "2", "bucket-key": "a.b", "partition.sink-strategy": strategy}
    )
    frame = spark.createDataFrame([("x", 4, 3, "w", 1)], ["1", "c`d", "Ünï", "with space", "a.b"])
    frame = frame.withColumn("c`d", F.col("`c``d`").cast("int")).withColumn("a.b", F.col("`a.b`").cast("int"))
    table.append(frame)
    row = {"a.b": 1, "with space": "w", "Ünï": 3, "c`d": 4, "1": "x"}
    assert table.to_arrow().to_pylist() == [row]
    assert [found.asDict() for found in table.to_spark(spark).collect()] == [row]
    chosen = table.to_spark(spark, columns=["c`d", "a.b"], filter="`a.b` = 1 AND `with space` LIKE 'w%'")
    assert chosen.collect() == [(4, 1)]


def test_columns_that_do_not_fit_are_all_named_and_nothing_is_written(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "a INT, b STRING, n BIGINT NOT NULL")
    cases = {
        "SELECT 1 AS a, 'x' AS b, 2L AS n, 3 AS c": "column 'c' is not in the table",
        "SELECT 1 AS a, 2L AS n": "column 'b' is missing",
        "SELECT 1 AS a, 'x' AS b, 2L AS n, 3 AS a": "column 'a' is given more than once",
        "SELECT 'one' AS a, 'x' AS b, 2L AS n": "column 'a' is given as string, but the table expects int32",
        "SELECT 1 AS a, 'x' AS b, cast(NULL AS BIGINT) AS n": "column 'n' is NOT NULL",
        "SELECT 1 AS a, 'x' AS B, 2L AS n": "column 'b' is missing",
    }
    for query, text in cases.items():
        with pytest.raises(SchemaMismatchError, match=text) as raised:
            table.append(spark.sql(query))
        assert "\n" not in str(raised.value)
    assert (table.latest_snapshot(), data_files(table)) == (None, [])


@pytest.mark.parametrize("strategy", ["none", "hash"])
def test_row_that_does_not_fit_in_one_of_several_tasks_leaves_no_file(
    spark: SparkSession, catalog: Catalog, strategy: str
) -> None:
    table = catalog.create_table(
        "d.t",
        "number BIGINT NOT NULL, k INT",
        options={"bucket": "2", "bucket-key": "k", "partition.sink-strategy": strategy},
    )
    frame = spark.range(0, 4000, 1, 4).select(
        F.when(F.col("id") != 3500, F.col("id")).alias("number"), (F.col("id") % 5).cast("int").alias("k")
    )
    with pytest.raises(SchemaMismatchError, match="column 'number' is NOT NULL") as raised:
        table.append(frame)
    assert "\n" not in str(raised.value)
    assert (table.latest_snapshot(), data_files(table)) == (None, [])


@pytest.mark.parametrize("entry_point", ["append", "save"])
def test_task_that_fails_leaves_no_file_and_no_snapshot(
    spark: SparkSession, catalog: Catalog, entry_point: str
) -> None:
    table = catalog.create_table("d.t", "number BIGINT")
    table.append(pa.table({"number": [-1]}))
    before = data_files(table)

    def check_number(number: int) -> int:  # late, so that there are rows to take back
        if number == 39_000:
            raise RuntimeError("a bad row")
        return number

    frame = spark.range(0, 40_000, 1, 4).select(F.udf(check_number, "bigint", useArrow=False)("id").alias("number"))
    writes = {"append": table.append, "save": frame.write.format("penstock").mode("append").save}
    with pytest.raises(Exception, match="a bad row"):
        writes[entry_point](frame if entry_point == "append" else table.location)
    assert table.latest_snapshot().id == 1
    assert data_files(table) == before


def test_overwrite_replaces_partitions_of_the_rows_or_what_is_named(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "a INT, p STRING", partition_by=["p"])

    def frame(*rows: tuple[int, str]) -> DataFrame:
        return spark.createDataFrame(list(rows), "a INT, p STRING")

    def rows() -> list[tuple[int, str]]:
        return sorted((row["a"], row["p"]) for row in table.to_arrow().to_pylist())

    table.append(frame((1, "x"), (2, "y")))
    assert table.overwrite(frame((3, "x"))).commit_kind == "OVERWRITE"
    assert rows() == [(2, "y"), (3, "x")]
    table.overwrite(frame((4, "y")), partition={"p": "y"})
    assert rows() == [(3, "x"), (4, "y")]
    with pytest.raises(TableStoreError):
        table.overwrite(frame((5, "x")), partition={"p": "y"})
    assert data_files(table) != live_files(table)  # files of earlier snapshots stay until those expire
    known = len(data_files(table))
    table.overwrite(frame((6, "z")), partition={})
    assert rows() == [(6, "z")]
    assert len(data_files(table)) == known + 1


@pytest.mark.parametrize("way", ["append", "dynamic overwrite"])
def test_a_stage_that_spark_runs_again_leaves_no_file_of_the_first_time(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, way: str
) -> None:
    table = catalog.create_table("d.t", "number BIGINT, k BIGINT", partition_by=["k"])
    scratch, flags = Path(str(spark.sparkContext.getConf().get("spark.local.dir"))), tmp_path / "flags"

    def straggle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lose the files of the shuffle before the third task begins; both attempts at the first one end before it."""
        place = TaskContext.get().partitionId()
        yield from batches
        if place == 0:
            is_first = not flags.exists()
            flags.mkdir(exist_ok=True)
            for path in scratch.rglob("shuffle_*") if is_first else ():
                path.unlink()
            (flags / f"begun {is_first}").touch()
            while not (flags / "begun False").exists():
                time.sleep(0.01)
            (flags / f"ended {is_first}").touch()
        while place == 1 and not (flags / "begun True").exists():
            time.sleep(0.01)
        while place == 2 and len(list(flags.glob("ended *"))) < 2:
            time.sleep(0.01)

    numbers = spark.range(0, 900, 1, 2).repartitionByRange(3, "id").mapInArrow(straggle, "id BIGINT")
    rows = numbers.select(F.col("id").alias("number"), (F.col("id") % 2).alias("k"))
    if way == "append":
        table.append(rows)
    else:
        attach(spark, catalog, name="again")
        rows.writeTo("again.d.t").overwritePartitions()
    assert sorted(path.name for path in flags.glob("ended *")) == ["ended False", "ended True"]
    assert sorted(table.to_arrow()["number"].to_pylist()) == list(range(900))
    assert data_files(table) == live_files(table)


def test_table_is_made_with_the_columns_of_a_dataframe(spark: SparkSession, catalog: Catalog) -> None:
    frame = spark.sql("SELECT 1 AS a, timestamp'2024-03-10 02:30:00' AS t, array(struct('x' AS s)) AS l")
    table = catalog.create_table("d.t", frame.schema)
    table.append(frame)
    assert table.to_spark(spark).collect() == frame.collect()


# The driver's part, without a session


def outcome_of(table: Table, job_id: str, *numbers: int, attempt: int = 0) -> TaskOutcome:
    batch = pa.record_batch({"number": pa.array(numbers, pa.int64())})
    return TaskOutcome(messages=write_batches(table._ref, [batch], job_id=job_id), attempt=attempt)


def names_in(outcomes: Iterable[TaskOutcome]) -> list[str]:
    return sorted(file.file_name for one in outcomes for message in one.messages for file in message.new_files)


@pytest.mark.parametrize(("attempt", "speculates"), [(1, "false"), (0, "true")])
def test_files_of_attempts_that_do_not_count_are_deleted(catalog: Catalog, attempt: int, speculates: str) -> None:
    table = catalog.create_table("d.t", "number BIGINT")
    other_job = outcome_of(table, "other", 1)
    lost = outcome_of(table, "job", 2)
    counting = [outcome_of(table, "job", 2, attempt=attempt), outcome_of(table, "job", 3)]
    session: Any = SimpleNamespace(conf={"spark.speculation": speculates})
    messages = collect_messages(table._ref, counting, "job", session)
    assert sorted(file.file_name for message in messages for file in message.new_files) == names_in(counting)
    assert data_files(table) == sorted(names_in(counting) + names_in([other_job]))
    assert not set(names_in([lost])) & set(data_files(table))


def test_nothing_is_listed_where_every_task_had_one_attempt(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "number BIGINT")
    stray = outcome_of(table, "job", 1)
    collect_messages(table._ref, [outcome_of(table, "job", 2)], "job", None)
    assert set(names_in([stray])) <= set(data_files(table))


def test_first_error_of_the_tasks_is_raised_and_the_files_of_the_others_are_deleted(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "number BIGINT")
    good = outcome_of(table, "job", 1)
    bad = [TaskOutcome(error=SchemaMismatchError("first")), TaskOutcome(error=SchemaMismatchError("second"))]
    with pytest.raises(SchemaMismatchError, match="first"):
        collect_messages(table._ref, [good, *bad, outcome_of(table, "job", 2)], "job", None)
    assert data_files(table) == []
    lost = outcome_of(table, "job", 1)
    with pytest.raises(SchemaMismatchError, match="first"):
        collect_messages(table._ref, [*bad, outcome_of(table, "job", 1, attempt=1)], "job", None)
    assert lost.messages
    assert data_files(table) == []


def test_messages_keep_the_order_of_the_tasks(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "number BIGINT")
    outcomes = [outcome_of(table, "job", number) for number in range(3)]
    messages = collect_messages(table._ref, outcomes, "job", None)
    assert list(messages) == [message for one in outcomes for message in one.messages]


def test_task_hands_over_what_no_other_attempt_could_do_better(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "number BIGINT")
    task = WriteTask(ref=table._ref, job_id="job", storage=None, names=("number",))
    fitting = pa.record_batch({"c0": pa.array([1], pa.int64())})
    misfit = pa.record_batch({"c0": pa.array([dt.date(2024, 1, 1)])})
    assert isinstance(task.run([misfit]).error, SchemaMismatchError)
    assert (task.run([fitting]).error, len(task.run([fitting]).messages)) == (None, 1)

    def broken() -> Any:
        yield fitting
        raise OSError("a machine that fails")

    before = data_files(table)
    with pytest.raises(OSError, match="a machine that fails"):
        replace(task, job_id="other").run(broken())
    assert data_files(table) == before


def test_every_way_in_merges_small_files_of_a_queue_in_order(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.small", "number BIGINT, k INT", options={"bucket": "1", "bucket-key": "k"})
    catalog.attach(spark, "ways")
    ways = [
        lambda rows: catalog.load_table("d.small").append(rows),
        lambda rows: rows.writeTo("ways.d.small").append(),
        lambda rows: rows.write.format("penstock").mode("append").save(table.location),
        lambda rows: run_sql(spark, rows, "INSERT INTO ways.d.small SELECT * FROM news"),
        lambda rows: table.append(rows.toArrow()),
    ]
    numbers = 0
    for turn in range(3):
        for write in ways[turn:] + ways[:turn]:
            write(spark.range(numbers, numbers + 10, 1, 1).select(F.col("id").alias("number"), F.lit(1).alias("k")))
            numbers += 10
    kinds = table.snapshots()["commit_kind"].to_pylist()
    # The fifth, tenth and fifteenth append find enough files; each was made in another way.
    assert kinds == [*["APPEND"] * 5, "COMPACT"] * 3
    assert table.to_arrow()["number"].to_pylist() == list(range(numbers))
    spark.conf.unset("spark.sql.catalog.ways")


def run_sql(spark: SparkSession, rows: DataFrame, text: str) -> None:
    rows.createOrReplaceTempView("news")
    spark.sql(text)
