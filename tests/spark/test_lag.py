"""How far Spark's own queries are behind, told from the checkpoints that Spark wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.errors import NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EARLIEST = {"scan.mode": "earliest"}


def append(table: Table, count: int) -> None:
    table.append(pa.table({"n": pa.array(range(count), pa.int64())}))


def run(frame: DataFrame, checkpoint: Path) -> None:
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None


def test_a_checkpoint_says_how_far_each_of_its_sources_is_behind(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    queue, other, unread = (catalog.create_table(f"d.{name}", "n BIGINT") for name in ("queue", "other", "unread"))
    for table in (queue, other, unread):
        append(table, 10)
    checkpoint = tmp_path / "checkpoint"
    options = {**EARLIEST, "maxFilesPerTrigger": "1"}

    def both() -> DataFrame:
        return queue.read_stream(spark, options).union(other.read_stream(spark, options))

    run(both(), checkpoint)
    append(queue, 20)
    append(queue, 30)
    append(other, 40)
    (row,) = queue.inspect.lag(str(checkpoint)).to_pylist()
    assert (row["kind"], row["reader"]) == ("checkpoint", str(checkpoint))
    assert (row["next_snapshot_id"], row["snapshots_behind"], row["rows_behind"]) == (2, 2, 50)
    assert row["oldest_unread_ms"] > 0
    assert other.inspect.lag(f"file://{checkpoint}").to_pylist()[0]["rows_behind"] == 40
    with pytest.raises(NotFoundError, match="no source of the query with the checkpoint"):
        unread.inspect.lag(str(checkpoint))
    run(both(), checkpoint)
    assert [table.inspect.lag(str(checkpoint)).to_pylist()[0]["rows_behind"] for table in (queue, other)] == [0, 0]
