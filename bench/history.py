"""Tables with a long history, metadata only, and commits to them with counts of what they read."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import penstock
from bench.many_files import COLUMNS, new_file
from penstock.catalog.place import load_location
from penstock.format.manifest.entry import EMPTY_ROW
from penstock.format.row.row import encode_row
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import STRING
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef

QUEUE_BUCKETS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A committer, and the log of its storage calls."""

    committer: TableCommitter
    file_io: RecordingFileIO

    def manifests_read(self) -> int:
        """Return the number of manifests, without manifest lists, read since the last call."""
        paths = self.file_io.paths(Operation.READ, Operation.OPEN_INPUT, containing="/manifest/manifest-")
        self.file_io.forget()
        return sum("/manifest-list-" not in path for path in paths)


def make_history(warehouse: str, name: str, snapshots: int, *, is_queue: bool) -> TableRef:
    """Return a new table with the given number of APPEND snapshots, each with one new file, or one per bucket."""
    catalog = penstock.Catalog(warehouse)
    catalog.create_database("bench", if_not_exists=True)
    options = {"bucket": str(QUEUE_BUCKETS), "bucket-key": "product_id"} if is_queue else {}
    table = catalog.create_table(f"bench.{name}", COLUMNS, options=options)
    ref = load_location(table.location)
    committer = open_committer(ref)
    for _ in range(snapshots):
        append_once(committer)
    return ref


def open_recorded(ref: TableRef) -> Recorded:
    """Return a new committer whose storage logs its calls."""
    file_io = RecordingFileIO(ref.file_io)
    return Recorded(committer=open_committer(replace(ref, file_io=file_io)), file_io=file_io)


def append_once(committer: TableCommitter, days: Sequence[str] = ()) -> None:
    """Commit the files of a micro-batch in a partition: one file, or in a queue one for each bucket.

    Args:
        committer: of a table with the columns of ``many_files``.
        days: the partitions, if the table is partitioned by ``dt``.
    """
    ref = committer.ref
    buckets = int(ref.options.get("bucket", "-1"))
    template = new_file(ref.schema, 0, "day-000")
    partitions = [encode_row([day], [STRING]) for day in days] or [EMPTY_ROW]
    messages = tuple(
        CommitMessage(
            partition=partition,
            bucket=bucket,
            total_buckets=buckets,
            new_files=(replace(template, file_name=f"data-{uuid.uuid4()}-0.parquet"),),
        )
        for partition in partitions
        for bucket in range(max(buckets, 1))
    )
    committer.commit(CommitRequest(commit_user="bench", kind=CommitKind.APPEND, messages=messages))
