"""What works with a session of Spark Connect; run by ``test_spark_connect`` as a program.

Arguments: address of the server, a directory. Prints one JSON object: for each step its result or its error.
"""

import json
import os
import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession

import penstock
from penstock.spark import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock import Catalog, Table

ROWS = 1_000


def main() -> None:
    root = sys.argv[2]
    spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    catalog = penstock.Catalog(f"{root}/warehouse")
    catalog.create_database("d")
    steps = {
        **rows(spark, catalog),
        **writes(spark, catalog),
        **sql(spark, catalog, root),
        **streams(spark, catalog, root),
        **refused(spark, catalog, root),
    }
    found: dict[str, dict[str, object]] = {}
    for name, step in steps.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = {"is": step()}
            except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
                found[name] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(found, default=str), flush=True)  # noqa: T201 - its result
    # Threads of PySpark that watch streaming queries keep a client from ending.
    os._exit(0)


def ids(table: "Table") -> list[int]:
    return sorted(table.to_arrow(["id"])["id"].to_pylist())


def rows(spark: SparkSession, catalog: "Catalog") -> "dict[str, Callable[[], object]]":
    """Return steps with DataFrames."""
    table = catalog.create_table("d.t", "id BIGINT, k BIGINT")
    queue = catalog.create_table("d.q", "id BIGINT, k BIGINT", options={"bucket": "2", "bucket-key": "id"})
    frame = spark.range(0, ROWS, 1, 2).selectExpr("id", "id % 7 AS k")

    def pinned() -> list[int]:
        read = table.to_spark(spark, filter="k = 3", columns=["id"])
        before = read.count()
        table.append([{"id": -1, "k": 3}])
        return [before, read.count(), table.to_spark(spark, filter="k = 3").count()]

    def travel() -> list[int]:
        return [
            table.to_spark(spark, snapshot_id=1).count(),
            table.to_spark(spark, options={"incremental-between": "1,2"}).count(),
            catalog.create_table("d.empty", "id BIGINT").to_spark(spark).count(),
        ]

    def altered() -> list[object]:
        old = catalog.create_table("d.altered", "id BIGINT, v STRING")
        old.append(spark.createDataFrame([("x", 1)], "v STRING, id BIGINT"))
        catalog.alter_table(
            "d.altered",
            penstock.AddColumn(column="w", type="INT"),
            penstock.RenameColumn(column="v", new_name="u"),
        )
        new = catalog.load_table("d.altered")
        read = new.to_spark(spark, filter="u = 'x' AND w IS NULL", columns=["w", "u"])
        return [list(row) for row in read.collect()]

    def merge() -> list[int]:
        result = table.merge(spark.createDataFrame([(-1, 5), (ROWS, 5)], "id BIGINT, k BIGINT"), on="id",
                             matched=penstock.MergeUpdate(), not_matched=penstock.MergeInsert())  # fmt: skip
        return [result.rows_updated, result.rows_inserted]

    return {
        "append": lambda: table.append(frame).id,  # type: ignore[union-attr]
        "append toArrow": lambda: queue.append(frame.toArrow()).id,  # type: ignore[union-attr]
        "to_spark": lambda: table.to_spark(spark).count(),
        "pinned": pinned,
        "travel": travel,
        "altered": altered,
        "merge": merge,
        "write": lambda: catalog.write("d.written", frame).to_arrow().num_rows,
        "compact here": lambda: len(table.compact(strategy="full").snapshots),
        "register": lambda: penstock.register(spark),
        "format filter": lambda: spark.read.format("penstock").load(table.location).where("k = 3").count(),
        "format system table": lambda: spark.read.format("penstock").load(f"{table.location}$snapshots").count() > 0,
    }


def writes(spark: SparkSession, catalog: "Catalog") -> "dict[str, Callable[[], object]]":
    """Return steps that replace rows, or write them again."""
    days = catalog.create_table("d.days", "id BIGINT, day STRING", partition_by=["day"])
    two = spark.createDataFrame([(1, "a"), (2, "b")], "id BIGINT, day STRING")

    def overwrite() -> list[object]:
        days.append(two)
        days.overwrite(spark.createDataFrame([(3, "b")], two.schema))
        dynamic = ids(days)
        days.overwrite(spark.createDataFrame([(4, "a")], two.schema), partition={"day": "a"})
        one = ids(days)
        emptied = days.overwrite(two.where("false"), partition={})
        return [dynamic, one, ids(days), emptied is not None, days.append(two.where("false"))]

    def twice() -> list[object]:
        """As a client runs a write again whose server has gone."""
        given: list[dict[str, str]] = []
        real = connect._with_storage
        writer = type(two.write)
        options = writer.options
        writer.options = lambda self, **more: (given.append(more), options(self, **more))[1]  # type: ignore[assignment,method-assign,func-returns-value]
        try:
            first = days.append(two)
        finally:
            writer.options = options  # type: ignore[method-assign]
        assert real(days._ref, {}) == {}
        two.write.format("penstock").mode("append").options(**given[0]).save(days.location)
        return [first is not None, ids(days)]

    def transaction() -> list[object]:
        counted = catalog.create_table("d.counted", "id BIGINT, day STRING")
        for version in (0, 0, 1, 1):
            write = two.write.format("penstock").mode("append")
            write.option("txnAppId", "job").option("txnVersion", version).save(counted.location)
        try:
            write.option("txnAppId", "job").option("txnVersion", 0).save(counted.location)
        except Exception as error:  # noqa: BLE001 - of the server
            return [ids(counted), "was set back" in str(error)]
        return []

    def floats() -> list[object]:
        table = catalog.create_table("d.floats", "id BIGINT, p DOUBLE", partition_by=["p"])
        values = [float("nan"), -0.0, 0.0, float("inf")]
        table.append([{"id": number, "p": value} for number, value in enumerate(values)])
        for value in (values[0], *values[2:]):
            table.overwrite(spark.createDataFrame([(9, value)], "id BIGINT, p DOUBLE"), partition={"p": value})
        filters = [penstock.col("p") == values[0], pc.field("p") < 1.5]
        return [ids(table), *(table.to_spark(spark, filter=each).count() for each in filters)]

    return {
        "overwrite": overwrite,
        "twice": twice,
        "transaction": transaction,
        "floats": floats,
        "task error": lambda: days.append(spark.createDataFrame([(1.5, "a")], "id DOUBLE, day STRING")),
        "query error": lambda: days.append(spark.sql("SELECT 1L AS id, raise_error('x') AS day")),
        "no column": lambda: days.to_spark(spark, columns=["ids"]),
    }


def sql(spark: SparkSession, catalog: "Catalog", root: str) -> "dict[str, Callable[[], object]]":
    """Return steps of penstock.sql."""

    def run(text: str) -> object:
        value: Any = penstock.sql(spark, catalog, text)
        if hasattr(value, "collect"):
            return [list(row) for row in value.collect()]
        return value.to_pylist() if hasattr(value, "to_pylist") else value

    def streamed() -> list[int]:
        run(f"SET 'execution.runtime-mode' = 'streaming'; SET 'execution.checkpointing.dir' = '{root}/sql'")
        run("SET 'table.dml-sync' = 'true'")
        statement = "INSERT INTO d.streamed SELECT a, b FROM d.s /*+ OPTIONS('scan.bounded' = 'true') */ WHERE a < 3"
        for _ in range(2):
            run(statement)
        run("SET 'execution.runtime-mode' = 'batch'")
        return sorted(catalog.load_table("d.streamed").to_arrow()["a"].to_pylist())

    merged = "(SELECT 9 AS a, 'w' AS b, 'n' AS day)"
    later = "FOR SYSTEM_TIME AS OF TIMESTAMP '2099-01-01 00:00:00'"
    return {
        "sql create": lambda: run("CREATE TABLE d.s (a BIGINT, b STRING, day STRING) PARTITIONED BY (day)"),
        "sql values": lambda: run("INSERT INTO d.s VALUES (1, '{x}', 'm'), (2, 'y', 'n')").id,  # type: ignore[attr-defined]
        "sql insert": lambda: run("INSERT INTO d.s SELECT a + 2, b, day FROM d.s").id,  # type: ignore[attr-defined]
        "sql select": lambda: run("SELECT count(*), max(a) FROM d.s WHERE day = 'm' AND b = '{x}'"),
        "sql join": lambda: run("SELECT x.a, y.b FROM d.s x JOIN d.s y ON x.a = y.a + 2 ORDER BY 1"),
        "sql files": lambda: pruned(spark, catalog),
        "sql overwrite": lambda: run("INSERT OVERWRITE d.s PARTITION (day = 'n') SELECT 9, 'z'").id,  # type: ignore[attr-defined]
        "sql changes": lambda: [run(text) is not None for text in (
            "UPDATE d.s SET b = 'u' WHERE a = 9",
            "DELETE FROM d.s WHERE a = 3",
            f"MERGE INTO d.s USING {merged} q ON s.a = q.a WHEN MATCHED THEN UPDATE SET b = q.b",
        )],
        "sql call": lambda: run("CALL sys.create_tag('d.s', 'now'); CALL sys.compact(`table` => 'd.s')") is not None,
        "sql travel": lambda: run(f"SELECT a, b FROM d.s {later} ORDER BY a"),  # noqa: S608 - of this test
        "sql view": lambda: run("CREATE VIEW d.v AS SELECT a * 2 AS b FROM d.s; SELECT sum(b) FROM d.v"),
        "sql as": lambda: run("CREATE TABLE d.streamed AS SELECT a, b FROM d.s WHERE a > 100"),
        "sql stream": streamed,
        "sql explain": lambda: "Physical Plan" in str(run("EXPLAIN SELECT a FROM d.s")),
        "sql error": lambda: run("SELECT a,\n  nope(a) FROM d.s"),
        "sql column": lambda: run("SELECT nope FROM d.s"),
    }  # fmt: skip


def pruned(spark: SparkSession, catalog: "Catalog") -> list[str]:
    """Return the options with which a query reads its table."""
    frame: Any = penstock.sql(spark, catalog, "SELECT a FROM d.s WHERE day = 'm' AND a > 1")
    del frame
    seen: list[dict[str, str]] = []
    reader = type(spark.read)
    option = reader.option
    reader.option = lambda self, key, value: (seen.append({key: str(value)}), option(self, key, value))[1]  # type: ignore[assignment,method-assign,func-returns-value]
    try:
        penstock.sql(spark, catalog, "SELECT a FROM d.s WHERE day = 'm' AND a > 1")
    finally:
        reader.option = option  # type: ignore[method-assign]
    return [value for each in seen for key, value in each.items() if key == "filter"]


def streams(spark: SparkSession, catalog: "Catalog", root: str) -> "dict[str, Callable[[], object]]":
    """Return steps with streaming queries."""
    source = catalog.create_table("d.source", "id BIGINT, k BIGINT")
    source.append([{"id": number, "k": number % 3} for number in range(9)])

    def copied() -> list[object]:
        copy = catalog.create_table("d.copy", "id BIGINT")
        found: list[object] = []
        for _ in range(2):
            stream = source.read_stream(spark, columns=["id"], filter="k = 1")
            query = copy.write_stream(stream, checkpoint=f"{root}/copy", trigger={"availableNow": True})
            query.awaitTermination(120)
            found.append(ids(copy))
            source.append([{"id": 10, "k": 1}])
        return found

    def each_batch() -> list[object]:
        """Each batch runs again after its commit, as after a crash."""
        target = catalog.create_table("d.batches", "id BIGINT")
        write = partial(write_twice, location=target.location)
        stream = source.read_stream(spark, {"scan.mode": "earliest"}, columns=["id"])
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{root}/batches")
        query.trigger(availableNow=True).start().awaitTermination(120)
        return [ids(target) == ids(source), target.snapshots().num_rows]

    def watermark() -> object:
        timed = catalog.create_table("d.timed", "t TIMESTAMP(3)", watermark=("t", "INTERVAL '5' SECOND"))
        plain = timed.read_stream(spark, {"penstock.read.watermark": "false"})
        return [plain.isStreaming, str(timed.read_stream(spark))]

    return {"streams": copied, "foreachBatch": each_batch, "stream watermark": watermark}


def write_twice(frame: Any, batch_id: int, location: str) -> None:
    for _ in range(2):
        write = frame.write.format("penstock").mode("append").option("txnAppId", "batches")
        write.option("txnVersion", batch_id).save(location)


def refused(spark: SparkSession, catalog: "Catalog", root: str) -> "dict[str, Callable[[], object]]":
    """Return steps that have another way."""
    table = catalog.load_table("d.t")

    def branch() -> object:
        table.versions.create_branch("b")
        return catalog.load_table("d.t$branch_b").to_spark(spark)

    def connector() -> object:
        return penstock.sql(
            spark,
            catalog,
            "CREATE TEMPORARY TABLE g (a BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3');"
            "SELECT * FROM g",
        )

    return {
        "compact": lambda: table.compact(spark),
        "attach": lambda: penstock.attach(spark, f"{root}/warehouse"),
        "ship": lambda: penstock.ship(spark),
        "branch": branch,
        "new files": lambda: table.to_spark(spark, options={"scan.file-creation-time-millis": "1"}),
        "connector": connector,
        "sql stream without a checkpoint": lambda: penstock.sql(
            spark,
            penstock.Catalog(f"{root}/warehouse"),
            "SET 'execution.runtime-mode' = 'streaming'; INSERT INTO d.t SELECT * FROM d.source",
        ),
        "sort": lambda: penstock.sql(
            spark, catalog, "CALL sys.compact(`table` => 'd.t', order_strategy => 'order', order_by => 'k')"
        ),
    }


if __name__ == "__main__":
    main()
