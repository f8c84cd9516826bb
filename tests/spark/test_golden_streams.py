"""Tables that Flink's streaming jobs wrote, read by a streaming query, snapshot by snapshot."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.interop.canonical import dumps, rows_of
from tests.spark.golden import LOCATIONS, STATES, expected_in_spark, states_of
from tests.spark.stream_feed import DONE
from tests.spark.ways import STREAM_FORMAT_IF_SLOW

from penstock import Table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog

PATHS: Final = {path.stem: path for path in STATES}


def bag(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(map(dumps, rows))


def batches_of(spark: SparkSession, name: str, checkpoint: Path, **options: str) -> list[Counter[str]]:
    """Return the rows of each micro-batch that has some; one takes one snapshot."""
    found = []

    def keep(frame: DataFrame, _batch: int) -> None:
        found.append(bag(expected_in_spark(rows_of(frame.toArrow()), fields)))

    fields = Table.at(str(LOCATIONS[name])).schema.fields
    given = {"scan.mode": "earliest", "scan.max-snapshot.count": "1", "penstock.read.watermark": "false"} | options
    frame = Table.at(str(LOCATIONS[name])).read_stream(spark, given)
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(90), query.status
    return [rows for rows in found if rows]


@STREAM_FORMAT_IF_SLOW
@pytest.mark.parametrize("name", ["f_watermark", "f_stream_bucket8", "f_stream_unaware"])
def test_a_query_gets_flinks_commits_one_by_one(spark: SparkSession, tmp_path: Path, name: str) -> None:
    fields = Table.at(str(LOCATIONS[name])).schema.fields
    states = [bag(expected_in_spark(state["rows"], fields)) for state in states_of(PATHS[name])]
    # Compactions and the empty last commit add nothing, so they are no micro-batch.
    added = [rows - before for before, rows in zip([Counter[str](), *states], states, strict=False)]
    assert batches_of(spark, name, tmp_path / "checkpoint") == [rows for rows in added if rows]


@STREAM_FORMAT_IF_SLOW
def test_a_query_ends_at_flinks_watermark(spark: SparkSession, tmp_path: Path) -> None:
    bound = {"scan.bounded.watermark": "1704067285000"}
    found = batches_of(spark, "f_watermark", tmp_path / "checkpoint", **bound)
    assert [rows.total() for rows in found] == [30, 30, 30]


def windows_of(rows: DataFrame) -> DataFrame:
    """What the job asked that wrote Flink's table."""
    windows = rows.groupBy(F.window("order_time", "1 minute")).agg(
        F.count("*").alias("cnt"), F.sum("amount").cast("decimal(38, 2)").alias("total")
    )
    return windows.select(F.col("window.start").alias("w_start"), F.col("window.end").alias("w_end"), "cnt", "total")


def test_windows_of_flinks_stream_are_flinks_windows(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    orders, flinks = (Table.at(str(LOCATIONS[name])) for name in ("f_watermark", "f_window_out"))
    ours = catalog.create_table("d.windows", flinks.to_arrow().schema)
    rows = orders.read_stream(spark, {"scan.mode": "earliest", "scan.max-snapshot.count": "1"})
    ours.write_stream(windows_of(rows), checkpoint=str(tmp_path / "checkpoint"), trigger=DONE).awaitTermination()
    wanted = flinks.to_arrow().sort_by("w_start")
    # At the end of its input Flink tells the two windows that are not over, which Spark keeps for what may follow.
    assert ours.to_arrow().sort_by("w_start") == wanted.slice(0, 3)
    assert ours.latest_snapshot().watermark == flinks.latest_snapshot().watermark == 1_704_067_435_000
    batch = windows_of(orders.to_spark(spark)).toArrow().sort_by("w_start")
    assert batch.to_pylist() == wanted.to_pylist()
