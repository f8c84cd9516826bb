"""Compaction comes to an end: what it makes is not small again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.table.actions.changes import open_committer
from penstock.table.compact.background import CompactionWatch
from penstock.table.compact.commit import commit_compacted
from penstock.table.compact.rewrite import rewrite
from penstock.table.compact.task import CompactSizes
from penstock.table.compact.write import pack_new
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.api.table import Table
    from penstock.format.manifest.entry import DataFileMeta

TARGET_BYTES = 64 * 1024
SCALABLE_AND_QUEUE = pytest.mark.parametrize(
    "bucket", [{"bucket": "-1"}, {"bucket": "1", "bucket-key": "id"}], ids=["scalable", "queue"]
)


@pytest.mark.parametrize(
    ("file_format", "bucket"),
    [("parquet", {"bucket": "1", "bucket-key": "id"}), ("avro", {"bucket": "-1"})],
    ids=["queue-parquet", "scalable-avro"],
)
def test_rows_that_compress_well_are_not_merged_again_and_again(file_format: str, bucket: dict[str, str]) -> None:
    catalog = Catalog(f"memory://convergence-{file_format}-{bucket['bucket']}")
    catalog.create_database("db")
    options = {
        **bucket,
        "file.format": file_format,
        "target-file-size": f"{TARGET_BYTES} b",
        "source.split.open-file-cost": "1 kb",
    }
    table = catalog.create_table("db.t", "id BIGINT, text STRING", options=options)
    rows = 8_000
    for start in range(0, 12 * rows, rows):
        ids = range(start, start + rows)
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {n % 100} {'x' * 50}" for n in ids]}))
    before = table.files().num_rows
    assert table.compact().snapshots
    sizes = table.files()["file_size_in_bytes"].to_pylist()
    assert len(sizes) < before
    # The last file of each merge may be small; a merge of a scalable table makes about two files.
    assert sum(size < TARGET_BYTES * 0.7 for size in sizes) <= max(1, len(sizes) // 2)
    # Such last files of two merges may make one more.
    assert len(table.compact().snapshots) <= 1
    assert not table.compact().snapshots
    assert table.to_arrow().num_rows == 12 * rows


@SCALABLE_AND_QUEUE
def test_files_that_were_closed_by_their_rows_are_large_enough(bucket: dict[str, str]) -> None:
    catalog = Catalog(f"memory://convergence-rows-{bucket['bucket']}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT", options={**bucket, "target-file-row-num": "1000"})
    for start in range(0, 15_000, 2_500):
        table.append(pa.table({"id": pa.array(range(start, start + 2_500), pa.int64())}))
    (debt,) = table.inspect.compaction_debt().to_pylist()
    assert debt["small_file_count"] == 6
    # Nothing is left to do for the compaction beside a stream, nor before a commit.
    watch = CompactionWatch(table._ref, MetadataStore(table._ref))
    for _ in range(10):
        for task in watch.plan():
            message = rewrite(task, table._ref)
            commit_compacted(open_committer(table._ref), (message,), commit_user="u")
            watch.finish(task, is_done=True)
    assert watch.plan() == ()
    full = [file for file in files(table) if file.row_count == 1_000]
    assert pack_new(full, CompactSizes.of(table._ref), in_order=False) == ()
    table.compact()
    assert not table.compact().snapshots
    assert table.to_arrow().num_rows == 15_000


def files(table: Table) -> list[DataFileMeta]:
    store = MetadataStore(table._ref)
    latest = store.load_latest_snapshot()
    assert latest is not None
    return [entry.file for entry in load_live_entries(store, latest).values()]
