"""Compaction comes to an end: what it makes is not small again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog

TARGET_BYTES = 64 * 1024


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
@pytest.mark.parametrize("bucket", [{"bucket": "-1"}, {"bucket": "1", "bucket-key": "id"}], ids=["scalable", "queue"])
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
