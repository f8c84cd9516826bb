"""The watermark that a table declares, in the streams that read it. The session's zone has daylight saving."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql import types as spark_types
from tests.spark.golden import LOCATIONS
from tests.spark.stream_feed import DONE

from penstock import Catalog, SchemaMismatchError, Table, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# Half past two does not exist there on the first of these days, and twice on the second.
NO_SUCH_HOUR = datetime(2026, 3, 8, 2, 30)  # noqa: DTZ001 - a wall clock
HOUR_TWICE = datetime(2026, 11, 1, 1, 30)  # noqa: DTZ001 - a wall clock
COLUMNS = "k INT, t TIMESTAMP(3), other TIMESTAMP(3)"
BY_KEY = {"bucket": "2", "bucket-key": "k"}
EARLIEST = {"scan.mode": "earliest", "scan.max-snapshot.count": "1"}


@pytest.fixture(autouse=True)
def no_views_left(spark: SparkSession) -> Iterator[None]:
    """Streams into memory leave their results in the session under their names."""
    yield
    # Not by the catalog: its lists need compiled queries.
    for view in spark.sql("SHOW TABLES").collect():
        if view.isTemporary:
            spark.catalog.dropTempView(view.tableName)


@pytest.fixture
def source(catalog: Catalog) -> Table:
    return catalog.create_table("d.source", COLUMNS, watermark=("t", "INTERVAL '5' SECOND"), options=BY_KEY)


def append(table: Table, times: Sequence[datetime | None]) -> None:
    column = pa.array(times, pa.timestamp("ms"))
    table.append(pa.table({"k": pa.array(range(len(times)), pa.int32()), "t": column, "other": column}))


def seconds(*after: int) -> list[datetime]:
    return [NO_SUCH_HOUR + timedelta(seconds=number) for number in after]


def write(table: Table, sdf: DataFrame, checkpoint: Path) -> None:
    table.write_stream(sdf, checkpoint=str(checkpoint), trigger=DONE).awaitTermination()


def collect(sdf: DataFrame, name: str) -> list[tuple[object, ...]]:
    sdf.writeStream.format("memory").queryName(name).trigger(**DONE).start().awaitTermination()
    return sorted(tuple(row) for row in sdf.sparkSession.table(name).collect())


def test_the_event_time_is_an_instant_whose_wall_clock_is_utc(spark: SparkSession, source: Table) -> None:
    append(source, [NO_SUCH_HOUR, HOUR_TWICE, None])
    stream = source.read_stream(spark)
    found = {field.name: field for field in stream.schema.fields}
    assert isinstance(found["t"].dataType, spark_types.TimestampType)
    assert found["t"].metadata["comment"] == "event time; its wall clock is taken as UTC"
    assert isinstance(found["other"].dataType, spark_types.TimestampNTZType)
    micros = [row for (row,) in collect(stream.select(F.unix_micros("t")).where("t IS NOT NULL"), "instants")]
    assert [datetime.fromtimestamp(each / 1e6, UTC).replace(tzinfo=None) for each in micros] == [
        NO_SUCH_HOUR,
        HOUR_TWICE,
    ]


def test_without_the_watermark_no_column_is_another_one(spark: SparkSession, source: Table) -> None:
    append(source, [NO_SUCH_HOUR])
    plain = source.read_stream(spark, {"penstock.read.watermark": "false"})
    assert collect(plain, "plain") == [(0, NO_SUCH_HOUR, NO_SUCH_HOUR)]
    assert "EventTimeWatermark" not in plain._jdf.queryExecution().analyzed().toString()
    # Without that column there is nothing to have a watermark.
    assert source.read_stream(spark, columns=["k"]).columns == ["k"]


def test_windows_need_nothing_but_the_table(spark: SparkSession, source: Table) -> None:
    for times in (seconds(0, 3), seconds(12), seconds(4), seconds(26), seconds(27), seconds(1)):
        append(source, times)
    counts = source.read_stream(spark, EARLIEST).groupBy(F.window("t", "10 seconds")).count()
    query = counts.writeStream.format("memory").queryName("windows").trigger(**DONE).start()
    query.awaitTermination()
    # The second window waits for its end; the last row came when the first window had been told, and is left out.
    rows = spark.table("windows").select(F.unix_seconds("window.start"), "count").collect()
    start = int(NO_SUCH_HOUR.replace(tzinfo=UTC).timestamp())
    assert sorted(tuple(row) for row in rows) == [(start, 3), (start + 10, 1)]
    dropped = [state["numRowsDroppedByWatermark"] for each in query.recentProgress for state in each["stateOperators"]]
    assert sum(dropped) == 1
    assert query.recentProgress[-1]["eventTime"]["watermark"] == "2026-03-08T02:30:22.000Z"


@pytest.mark.parametrize("options", [{}, BY_KEY], ids=["scalable", "queue"])
@pytest.mark.parametrize("rows", [2, 50_000], ids=["in the driver", "in tasks"])
def test_what_is_written_back_is_what_was_read(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path, options: dict[str, str], rows: int
) -> None:
    append(source, [NO_SUCH_HOUR, HOUR_TWICE, None, *seconds(*range(rows))])
    copy = catalog.create_table("d.copy", COLUMNS, options=options)
    stream = source.read_stream(spark)
    write(copy, stream.select("other", F.col("t").alias("t"), "k").where("k >= 0"), tmp_path / "checkpoint")
    assert copy.to_arrow().sort_by("k") == source.to_arrow().sort_by("k")


def test_windows_are_stored_as_the_batch_has_them(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    append(source, seconds(0, 3, 3_599, 3_600, 4_000, 90_000, 180_000))
    result = catalog.create_table("d.result", "start TIMESTAMP(3), `end` TIMESTAMP(3), newest TIMESTAMP(3), n BIGINT")
    counts = (
        source.read_stream(spark, EARLIEST)
        .groupBy(F.window("t", "1 hour"))
        .agg(F.max("t").alias("newest"), F.count("*").alias("n"))
    )
    write(result, counts.select("window.start", "window.end", "newest", "n"), tmp_path / "checkpoint")
    batch = (
        source.to_spark(spark).groupBy(F.window("t", "1 hour")).agg(F.max("t").alias("newest"), F.count("*").alias("n"))
    )
    wanted = sorted(tuple(row) for row in batch.select("window.start", "window.end", "newest", "n").collect())
    assert sorted(tuple(row.values()) for row in result.to_arrow().to_pylist()) == wanted[:-1]
    assert len(wanted) == 4


def test_other_instants_are_not_taken_for_wall_clocks(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    stream = source.read_stream(spark)
    mixed = stream.select("k", F.current_timestamp().alias("t"), "other").union(stream.select("k", "t", "other"))
    for sdf in (mixed, stream.withColumn("t", F.current_timestamp())):
        with pytest.raises(SchemaMismatchError, match=r"column 't' is given as timestamp.*with a time zone"):
            catalog.load_table("d.source").write_stream(sdf, checkpoint=str(tmp_path / "checkpoint"))


def test_a_watermark_that_only_flink_can_compute_is_reported_as_none(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Table.at(str(LOCATIONS["f_watermark_expr"])).read_stream(spark)
    assert "EventTimeWatermark" not in stream._jdf.queryExecution().analyzed().toString()
    (record,) = (each for each in caplog.records if "its watermark" in each.getMessage())
    assert "is an expression of Flink's that is not evaluated here, so this stream has none" in record.getMessage()


def test_a_second_watermark_is_refused_before_spark_does(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    result = catalog.create_table("d.result", "n BIGINT")
    own = source.read_stream(spark).withWatermark("t", "1 hour").groupBy(F.window("t", "1 hour"))
    with pytest.raises(UnsupportedFeatureError, match="read that table with the option"):
        result.write_stream(own.agg(F.count("*").alias("n")).select("n"), checkpoint=str(tmp_path / "checkpoint"))


@pytest.mark.usefixtures("format_streams")
def test_plain_spark_may_ask_for_instants_too(spark: SparkSession, source: Table) -> None:
    append(source, [NO_SUCH_HOUR])
    reader = spark.readStream.format("penstock").schema("k INT, t TIMESTAMP, other TIMESTAMP_NTZ")
    ((micros,),) = collect(reader.load(source.location).select(F.unix_micros("t")), "asked")
    assert datetime.fromtimestamp(micros / 1e6, UTC).replace(tzinfo=None) == NO_SUCH_HOUR
