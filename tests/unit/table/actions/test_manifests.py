"""Manifest compaction: what it rewrites, and how often it reads a manifest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, new_table, on, rows

from penstock.format.row.row import decode_row
from penstock.format.types.data_types import STRING
from penstock.table.actions.changes import drop_partitions, open_committer
from penstock.table.actions.manifests import compact_manifests
from penstock.table.metadata_cache import clear_metadata_cache
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

DAYS = "acb"


def grown(options: dict[str, str]) -> tuple[TableRef, RecordingFileIO]:
    """A table of twelve commits to three partitions, one of which was dropped; and its storage."""
    ref = new_table({"manifest.merge-min-count": "1000", **options})
    committer = open_committer(ref)
    for number in range(12):
        committer.commit(append(rows(number + 1, p=DAYS[number % 3])))
    drop_partitions(committer, [{"p": "c"}])
    clear_metadata_cache()
    file_io = RecordingFileIO(ref.file_io)
    return on(ref, file_io), file_io


@pytest.mark.parametrize("options", [{}, {"manifest-sort.enabled": "true"}])
def test_all_manifests_become_one_and_each_is_read_once(options: dict[str, str]) -> None:
    ref, file_io = grown(options)
    store = MetadataStore(ref)
    before = load_live_entries(store, store.load_latest_snapshot())
    dry = compact_manifests(open_committer(ref), dry_run=True)
    assert (dry.manifests_before, dry.rewritten, dry.snapshot) == (13, 13, None)
    clear_metadata_cache()
    file_io.forget()
    result = compact_manifests(open_committer(ref))
    reads = Counter(path for path in file_io.paths(Operation.READ) if "/manifest-" in path and "-list-" not in path)
    assert (result.manifests_before, result.rewritten, result.manifests_after) == (13, 13, 1)
    assert set(reads.values()) == {1}
    assert len(reads) == 13
    after = load_live_entries(store, store.load_latest_snapshot())
    assert after.keys() == before.keys()
    values = [decode_row(entry.partition, [STRING])[0] for entry in after.values()]
    assert values == (sorted(values) if options else ["a", "b"] * 4)
    assert compact_manifests(open_committer(ref)).snapshot is None
