"""Tables without data files, for tests of the commit: the commit never opens one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.warehouse import open_warehouse
from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
from penstock.format.row.row import encode_row
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import STRING
from penstock.format.types.ddl import parse_columns
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef

_NUMBERS = itertools.count()


def new_table(options: dict[str, str] | None = None) -> TableRef:
    """``db.t (id BIGINT, p STRING)`` partitioned by ``p``, in a store of its own."""
    warehouse = open_warehouse(f"memory://commits-{next(_NUMBERS)}")
    warehouse.create_database("db")
    definition = TableDefinition(
        columns=parse_columns("id BIGINT, p STRING"), partition_by=("p",), options=tuple((options or {}).items())
    )
    return warehouse.create_table("db.t", definition)


def new_queue(buckets: int = 2, **options: str) -> TableRef:
    return new_table({"bucket": str(buckets), "bucket-key": "id", **options})


def on(ref: TableRef, file_io: FileIO) -> TableRef:
    """The same table through another storage."""
    return replace(ref, file_io=file_io)


def partition(value: str | None) -> bytes:
    return encode_row([value], [STRING])


def new_file(rows: int) -> DataFileMeta:
    return DataFileMeta(
        file_name=f"data-{next(_NUMBERS)}-0.parquet",
        file_size=100,
        row_count=rows,
        min_sequence_number=0,
        max_sequence_number=rows - 1,
        schema_id=0,
    )


def rows(*counts: int, p: str | None = "a", bucket: int = 0, total_buckets: int = -1) -> CommitMessage:
    """A message with a new file for each count."""
    files = tuple(map(new_file, counts))
    return CommitMessage(partition=partition(p), bucket=bucket, total_buckets=total_buckets, new_files=files)


def committer(ref: TableRef) -> TableCommitter:
    """A committer that never waits."""
    result = open_committer(ref)
    result.sleep = lambda _: None
    return result


def append(*messages: CommitMessage, user: str = "user", **attributes: Any) -> CommitRequest:
    return CommitRequest(commit_user=user, kind=CommitKind.APPEND, messages=messages, **attributes)


def live(ref: TableRef) -> list[ManifestEntry]:
    """Live files of the latest snapshot as a fresh process sees them."""
    store = MetadataStore(ref)
    latest = store.load_latest_snapshot()
    return list(load_live_entries(store, latest).values()) if latest else []


def row_counts(ref: TableRef) -> list[int]:
    return [entry.file.row_count for entry in live(ref)]
