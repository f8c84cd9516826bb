"""Queries whose batches tests commit one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import CheckpointError, LeaseHeldError
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore
from penstock.table.stream_sink.batch_log import BatchNotes, claim_checkpoint
from penstock.table.stream_sink.committer import (
    Batch,
    StreamCommitter,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.table.checkpoints import MemoryCheckpoint

    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.stream_sink.committer import QueryOwnership

QUERY = "query-1"


@dataclass
class FakeOwnership:
    """Ownership of a query without a lease; counts how often the storage would be read."""

    may_have_rival: bool = False
    is_lost: bool = False
    looks: int = 0

    def verify(self) -> None:
        self.looks += 1
        if self.is_lost:
            raise LeaseHeldError("taken over")


def batch(batch_id: int, digest: str | None = None) -> Batch:
    return Batch(commit_user=QUERY, id=batch_id, digest=digest or f"offsets of {batch_id}")


def start(
    ref: TableRef, files: MemoryCheckpoint, *, ownership: QueryOwnership | None = None, **arguments: Any
) -> StreamCommitter:
    """Start the query, or start it again in a new process."""
    notes = BatchNotes(files)
    given = {"base_id": MetadataStore(ref).latest_snapshot_id() or 0, "has_batches": False, "accept_unknown": False}
    is_overwrite = arguments.pop("is_overwrite", False)
    mark = claim_checkpoint(ref, notes, **(given | arguments))
    result = StreamCommitter(ref, notes, mark, is_overwrite=is_overwrite, ownership=ownership)
    result.committer.sleep = lambda _: None
    return result


def run(query: StreamCommitter, which: Batch, *messages: CommitMessage) -> Snapshot | None:
    """Run one batch as the sink does; None when it was there already."""
    query.load_ref()
    return None if query.begin(which) is None else query.commit(which, messages)


def snapshot_of(ref: TableRef, snapshot_id: int) -> Snapshot:
    return MetadataStore(ref).load_snapshot(snapshot_id)


def metadata_files(ref: TableRef) -> list[str]:
    return [
        status.path
        for directory in ("snapshot", "manifest", "schema")
        for status in ref.file_io.list(f"{ref.location}/{directory}")
    ]


def unchanged(ref: TableRef, action: Callable[[], object], text: str, error: type[Exception] = CheckpointError) -> None:
    """The action is refused with that text, and leaves the table's metadata as they were."""
    before = metadata_files(ref)
    with pytest.raises(error, match=text):
        action()
    assert metadata_files(ref) == before


def expire(ref: TableRef, up_to: int) -> None:
    for snapshot_id in range(1, up_to + 1):
        ref.file_io.delete(ref.layout.snapshot_path(snapshot_id))


def files_of(ref: TableRef, *messages: CommitMessage) -> list[str]:
    """Make the messages' files; returns their paths."""
    locator = FileLocator.of(ref)
    paths = [
        locator.path(message.partition, message.bucket, file) for message in messages for file in message.new_files
    ]
    for path in paths:
        ref.file_io.write(path, b"x")
    return paths
