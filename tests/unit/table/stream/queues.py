"""Tables to follow: metadata only, in memory, with a log of what storage was asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.unit.table.metadata_tables import MemoryTable

from penstock.format.snapshot import CommitKind
from penstock.predicate.parse import parse_filter
from penstock.table.store import MetadataStore
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, StreamOffset
from penstock.table.stream.scanner import StreamScanner
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.stream.files import StreamTask


@dataclass(kw_only=True)
class Queue(MemoryTable):
    """A table whose files are named by the test; ``file_io`` writes down what readers ask."""

    buckets: int = 2

    def __post_init__(self) -> None:
        if self.buckets > 0:
            self.options = {"bucket": str(self.buckets), "bucket-key": "id", **self.options}
        super().__post_init__()
        self.log = RecordingFileIO(self.file_io)
        self.next_number: dict[tuple[object, int], int] = {}

    def append(self, *files: str, **values: Any) -> Snapshot:
        """Add files ``[partition/]bucket:name[@created]`` of ten rows, numbered in the order of their bucket."""
        return self.commit(*(self.entry_of(text) for text in files), **values)

    def overwrite(self, *files: str, **values: Any) -> Snapshot:
        return self.append(*files, commit_kind=CommitKind.OVERWRITE, **values)

    def compact(self, *files: str, **values: Any) -> Snapshot:
        return self.append(*files, commit_kind=CommitKind.COMPACT, **values)

    def entry_of(self, text: str) -> Any:
        place, _, name = text.rpartition(":")
        partition, _, bucket = place.rpartition("/")
        name, _, created = name.partition("@")
        number = int(bucket or 0)
        first = self.next_number.get((partition, number), 0)
        self.next_number[partition, number] = first + 10
        file = self.file(
            name,
            min_sequence_number=first,
            max_sequence_number=first + 9,
            creation_millis=int(created) if created else len(self.snapshots),
        )
        values = (partition,) if self.partition_keys else ()
        return self.entry(file, values, bucket=number, total_buckets=self.buckets)

    def follower(self, filter: str | None = None, clock: int = 10**9, **options: str) -> StreamScanner:
        """A fresh follower, as after a restart."""
        ref = replace(self.ref, file_io=self.log).with_options(
            {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
        )
        predicate = None if filter is None else parse_filter(filter)
        store = MetadataStore(ref, sleep=lambda _: None)
        return StreamScanner(ref, store, predicate=predicate, clock_millis=lambda: clock)

    def with_options(self, options: dict[str, str], **more: Any) -> StreamScanner:
        ref = replace(self.ref, file_io=self.log).with_options(options)
        return StreamScanner(ref, MetadataStore(ref, sleep=lambda _: None), clock_millis=lambda: 10**9, **more)

    def roll_back(self, snapshot_id: int) -> None:
        """Forget the snapshots after one, as a rollback does."""
        from penstock.format.layout import TableLayout
        from penstock.format.snapshot import encode_hint

        while len(self.snapshots) > snapshot_id:
            self.expire(self.snapshots.pop().id)
        self.file_io.write(TableLayout(self.location).latest_hint_path, encode_hint(snapshot_id))


def name_of(file: DataFileMeta) -> str:
    return file.file_name.removesuffix(".parquet")


def names(tasks: Sequence[StreamTask]) -> list[list[str]]:
    """Files of each task, in order."""
    return [[name_of(file) for split in task.splits for file in split.files] for task in tasks]


def batches(
    follower: StreamScanner, limits: ReadLimits = NO_LIMITS, offset: StreamOffset = UNRESOLVED, **arguments: Any
) -> tuple[list[list[list[str]]], StreamOffset]:
    """Run micro-batches until the offset stands still; the files of each micro-batch's tasks, and the last offset."""
    found = []
    while (reached := follower.advance(offset, limits, **arguments)) != offset:
        found.append(names(follower.plan_range(offset, reached)))
        offset = reached
    return found, offset


def flat(found: list[list[list[str]]]) -> list[str]:
    return [name for batch in found for task in batch for name in task]
