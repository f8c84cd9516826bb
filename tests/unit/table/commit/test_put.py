from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

import penstock
from penstock.format.snapshot import encode_snapshot
from penstock.table.commit.put import is_put

if TYPE_CHECKING:
    from pathlib import Path


def test_a_snapshot_that_a_server_wrote_without_its_uuid_is_known_as_ours(tmp_path: Path) -> None:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT")
    snapshot = table.append(pa.table({"id": [1]}))
    assert snapshot is not None
    ref = table._handle.ref
    assert is_put(ref, snapshot)
    path = ref.layout.snapshot_path(snapshot.id)
    ref.file_io.write(path, encode_snapshot(replace(snapshot, uuid=None)))
    assert is_put(ref, snapshot)
    assert not is_put(ref, replace(snapshot, delta_manifest_list="manifest-list-of-another-0"))
    ref.file_io.write(path, encode_snapshot(replace(snapshot, uuid="another")))
    assert not is_put(ref, snapshot)
