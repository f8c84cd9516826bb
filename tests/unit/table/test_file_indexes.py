"""File indexes of other writers: tables with them are read, their files go with the data files, and rewrites drop them.

Source:
    Paimon ``core:io/DataFileMeta.java``: an index is a file beside the data file, or bytes in its manifest entry.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import penstock
from penstock.clocks import utc_millis
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.ref import FileLocator
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from penstock import Table


def _table_with_indexes(tmp_path: Path) -> Table:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, s STRING", options={"bucket": "-1"})
    ref = table._ref
    for first in (0, 10):
        rows = pa.Table.from_pylist(
            [{"k": k, "s": str(k)} for k in range(first, first + 10)], schema=table.arrow_schema
        )
        [message] = write_arrow(ref, rows)
        [file] = message.new_files
        file = replace(file, extra_files=(f"{file.file_name}.index",), embedded_file_index=b"bitmap")
        path = FileLocator.of(ref).path(message.partition, message.bucket, file)
        Path(f"{path}.index").write_bytes(b"bloom filter")
        commit_append(open_committer(ref), (replace(message, new_files=(file,)),))
    return table


def _indexes(table: Table) -> list[str]:
    return sorted(path.name for path in Path(table.location).rglob("*.index"))


def test_rows_are_read_and_indexes_stay_with_their_files(tmp_path: Path) -> None:
    table = _table_with_indexes(tmp_path)
    assert table.to_arrow(["k"], "k = 13 OR s = '4'")["k"].to_pylist() == [4, 13]
    assert not table.inspect.fsck().findings
    table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert len(_indexes(table)) == 2


def test_rewrites_drop_indexes_and_expiration_deletes_them(tmp_path: Path) -> None:
    table = _table_with_indexes(tmp_path)
    before = {row["file_path"] for row in table.files().to_pylist()}
    assert table.update({"s": "x"}, "k = 3").rows_updated == 1
    changed = [row for row in table.files().to_pylist() if row["file_path"] not in before]
    assert len(changed) == 1
    table.compact(strategy="full", options={"compaction.min.file-num": "2"})
    assert sorted(table.to_arrow()["k"].to_pylist()) == list(range(20))
    assert len(_indexes(table)) == 2
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert _indexes(table) == []
    assert not table.inspect.fsck().findings
