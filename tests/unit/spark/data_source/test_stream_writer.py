"""What the sink of ``writeStream.format("penstock")`` does at the end of a micro-batch, without Spark."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.spark.data_source.stream_writer import PenstockStreamWriter, StreamOutcome

QUERY = "5f2b3a3e-0000-4000-8000-000000000001"


def table_of(folder: Path, **options: str) -> Table:
    catalog = Catalog(folder)
    catalog.create_database("d")
    return catalog.create_table("d.t", "a INT", options=options)


def run(table: Table, *batches: int, overwrite: bool = False) -> None:
    for batch in batches:
        writer = PenstockStreamWriter(table._ref, overwrite=overwrite)
        rows = pa.record_batch({"a": pa.array([batch], pa.int32())})
        writer.commit([StreamOutcome(writer._task.run([rows]), QUERY, writer._task.job_id)], batch)


@pytest.mark.parametrize("options", [{"bucket": "1", "bucket-key": "a"}, {"bucket": "-1"}], ids=["queue", "scalable"])
def test_small_files_of_a_query_are_merged_and_a_replay_merges_nothing(tmp_path: Path, options: dict[str, str]) -> None:
    table = table_of(tmp_path, **options)
    run(table, *range(12))
    snapshots = table.snapshots().to_pylist()
    compacted = [row for row in snapshots if row["commit_kind"] == "COMPACT"]
    assert compacted
    assert {row["commit_user"] for row in compacted} == {f"{QUERY}-compact"}
    assert sum(row["commit_kind"] == "APPEND" for row in snapshots) == 12
    assert table.files().num_rows < 6
    assert sorted(table.to_arrow()["a"].to_pylist()) == list(range(12))
    run(table, 11)
    assert table.snapshots().num_rows == len(snapshots)


def test_a_write_only_table_keeps_its_small_files(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"write-only": "true"})
    run(table, *range(12))
    assert set(table.snapshots()["commit_kind"].to_pylist()) == {"APPEND"}


def test_rows_that_each_micro_batch_replaces_are_not_merged(tmp_path: Path) -> None:
    table = table_of(tmp_path, bucket="1", **{"bucket-key": "a"})
    run(table, *range(7), overwrite=True)
    assert set(table.snapshots()["commit_kind"].to_pylist()) == {"OVERWRITE"}
