from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import NotFoundError
from penstock.format.snapshot import encode_snapshot
from penstock.io.file_io import ServerSnapshotCommit, SnapshotCommit
from penstock.io.wrapper import WrappingFileIO
from penstock.table.commit.put import is_put, put_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFileIO(WrappingFileIO):
    """Storage whose server refuses every snapshot."""

    asked: list[tuple[str | None, Sequence[dict[str, Any]]]] = field(default_factory=list)

    def commit(self, data: bytes, base_uuid: str | None, statistics: Sequence[dict[str, Any]]) -> bool:
        assert data
        self.asked.append((base_uuid, statistics))
        return False

    def rollback(self, snapshot_id: int, latest_id: int | None) -> None:
        raise AssertionError(snapshot_id, latest_id)

    @property
    def snapshot_commit(self) -> SnapshotCommit:
        return ServerSnapshotCommit(self)


def test_a_storage_with_its_own_strategy_decides_and_may_refuse_a_free_id(tmp_path: Path) -> None:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT")
    first = table.append(pa.table({"id": [1]}))
    assert first is not None
    plain, storage = table._handle.ref, ServedFileIO(inner=table._handle.ref.file_io)
    served = replace(plain, file_io=storage)
    following = replace(first, id=2)
    assert not put_snapshot(served, first, following, (), encode_snapshot(following))
    assert storage.asked == [(first.uuid, [])]
    assert not is_put(served, following)
    with pytest.raises(NotFoundError):
        is_put(plain, following)
    assert put_snapshot(plain, first, following, (), encode_snapshot(following))
    assert is_put(plain, following)


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
