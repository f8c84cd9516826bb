"""A job whose clock a test moves, and the marks that it leaves."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.unit.table.commit_tables import append, committer, partition, rows

from penstock.clocks import to_wall_clock
from penstock.format.manifest.entry import FileSource
from penstock.format.snapshot import CommitKind
from penstock.table.commit.delta import CommitRequest
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def local(text: str) -> int:
    """Ms at which this machine's clock shows a time."""
    return int(time.mktime(time.strptime(text, "%Y-%m-%d"))) * 1000


START = local("2026-01-01")
FIRST, SECOND = "2026-01-01", "2026-01-02"
DAILY = {"partition.time-interval": "1 d", "partition.idle-time-to-done": "15 min"}
BY_WATERMARK = {**DAILY, "partition.mark-done-action.mode": "watermark"}
UTC_START = 1_767_225_600_000


class Job:
    """A stream that commits to a table; its clock moves when it is told to."""

    def __init__(self, ref: TableRef, now: int = START) -> None:
        self.now = now
        self.ref = ref
        self.committer = committer(ref)
        self.committer.clock_millis = lambda: self.now

    def commit(
        self, *partitions: str | None, at: int | None = None, watermark: int | None = None, identifier: int = 1
    ) -> Snapshot:
        """Add a row to each partition at a time; without any make an empty snapshot."""
        self.now = self.now if at is None else at
        made = self.committer.commit(
            append(
                *(self.row(p) for p in partitions), commit_identifier=identifier, watermark=watermark, commit_empty=True
            )
        )
        assert made is not None
        return made

    def row(self, p: str | None) -> CommitMessage:
        message = rows(1, p=p)
        files = tuple(replace(file, creation_millis=to_wall_clock(self.now)) for file in message.new_files)
        return replace(message, new_files=files)

    def merge(self, p: str) -> None:
        """Make one file of those of a partition, as old as the oldest of them."""
        store = MetadataStore(self.ref)
        latest = store.load_latest_snapshot()
        assert latest is not None
        files = [entry.file for entry in load_live_entries(store, latest, lambda data: data == partition(p)).values()]
        merged = replace(
            rows(sum(file.row_count for file in files), p=p).new_files[0],
            creation_millis=min(file.creation_millis or 0 for file in files),
            file_source=FileSource.COMPACT,
        )
        message = replace(rows(p=p), compact_before=tuple(files), compact_after=(merged,))
        self.committer.commit(CommitRequest(commit_user="c", kind=CommitKind.COMPACT, messages=(message,)))


def marks(ref: TableRef, *partitions: str) -> dict[str, tuple[int, int]]:
    """Creation and modification time of the marks that there are, by partition."""
    found = {}
    for p in partitions or (FIRST, SECOND):
        path = ref.layout.partition_success_path(f"p={p}")
        if ref.file_io.exists(path):
            said = json.loads(ref.file_io.read(path))
            assert set(said) == {"creationTime", "modificationTime"}
            found[p] = (said["creationTime"], said["modificationTime"])
    return found


def batch(ref: TableRef, *partitions: str, now: int = START) -> Job:
    job = Job(ref, now)
    job.commit(*partitions, identifier=2**63 - 1)
    return job
