"""A table with several writers, the model of its history, and a stream that follows it in pieces."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from tests.unit.table.commit_tables import append, committer, live, new_file, new_table, partition

from penstock.format.manifest.entry import DataFileMeta, FileSource
from penstock.format.schema import encode_schema
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import INT, DataField
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.partition_scope import WrittenPartitions
from penstock.table.read.split import value_order
from penstock.table.store import MetadataStore
from penstock.table.stream.limits import ReadLimits
from penstock.table.stream.offset import UNRESOLVED, Phase, StreamOffset, decode_offset, encode_offset
from penstock.table.stream.scanner import StreamScanner

PARTS = (None, "a", "b")
WRITERS = 3
SMALL = st.integers(0, 3)
# Partition, bucket, rows, creation: several in a commit.
FILES = st.lists(st.tuples(st.sampled_from(PARTS), SMALL, st.integers(1, 2), st.integers(0, 5)), max_size=8)
WRITES = [
    st.tuples(st.just("append"), st.integers(0, WRITERS - 1), FILES),
    st.tuples(st.just("append"), st.integers(0, WRITERS - 1), FILES),
    st.tuples(st.just("compact"), st.integers(0, 20), st.integers(2, 3), st.booleans()),
    st.tuples(st.just("compact"), st.integers(0, 20), st.integers(2, 3), st.booleans()),
    st.tuples(st.just("overwrite"), FILES),
    st.tuples(st.just("evolve")),
    st.tuples(st.just("expire"), SMALL),
]
READS = [st.tuples(st.just("read"), st.sampled_from([1, 2, 3, None]), st.booleans())] * 2
OPS = st.one_of(*WRITES, *READS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    part: str | None
    bucket: int
    created: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCommit:
    kind: CommitKind
    added: tuple[ModelFile, ...]
    live: tuple[ModelFile, ...]


def expected(
    history: list[ModelCommit], start: tuple[int, Phase], *, by_value: bool, overwrites: bool, created_from: int = 0
) -> Any:
    """What a stream delivers: bucket number to row numbers, in order. This is the whole model."""
    rows: dict[int, list[int]] = {}
    delivered = {CommitKind.APPEND, CommitKind.OVERWRITE} if overwrites else {CommitKind.APPEND}
    for snapshot_id, commit in enumerate(history, 1):
        if snapshot_id < start[0]:
            continue
        added = commit.added if commit.kind in delivered else ()
        files = commit.live if (snapshot_id, Phase.FULL) == start else added
        files = tuple(each for each in files if each.created >= created_from)
        created = {part: min([each.created for each in commit.live if each.part == part], default=0) for part in PARTS}
        places = {part: (0 if by_value else created[part], value_order([part])) for part in PARTS}
        for file in sorted(files, key=lambda each: (places[each.part], each.rows)):
            rows.setdefault(file.bucket, []).extend(file.rows)
    return rows


@dataclass
class World:
    """A table, its model, and a stream that follows it."""

    buckets: int
    options: dict[str, str]
    stored: dict[str, str] = field(default_factory=dict)
    rows: dict[str, ModelFile] = field(default_factory=dict)
    history: list[ModelCommit] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)
    ranges: list[Any] = field(default_factory=list)
    delivered: dict[int, list[int]] = field(default_factory=dict)
    offset: StreamOffset = UNRESOLVED
    expired: int = 0

    def __post_init__(self) -> None:
        sized = {"bucket": str(self.buckets)} | ({"bucket-key": "id"} if self.buckets > 0 else {})
        self.ref = new_table(sized | self.stored)
        self.writers = [committer(self.ref) for _ in range(WRITERS)]
        self.follower = self.fresh()

    def fresh(self) -> StreamScanner:
        return StreamScanner(self.ref.with_options(self.options), MetadataStore(self.ref, sleep=lambda _: None))

    def message(self, part: str | None, bucket: int, rows: int, created: int) -> CommitMessage:
        file = replace(new_file(rows), creation_millis=created)
        numbers = tuple(itertools.islice(self.numbers, rows))
        bucket = bucket % self.buckets if self.buckets > 0 else 0
        self.rows[file.file_name] = ModelFile(part=part, bucket=bucket, created=created, rows=numbers)
        return CommitMessage(partition=partition(part), bucket=bucket, total_buckets=self.buckets, new_files=(file,))

    def note(self, kind: CommitKind, added: list[DataFileMeta], gone: set[ModelFile]) -> None:
        new = tuple(self.rows[file.file_name] for file in added)
        kept = tuple(file for file in (self.history[-1].live if self.history else ()) if file not in gone)
        self.history.append(ModelCommit(kind=kind, added=new, live=kept + new))

    def append(self, writer: int, files: list[Any]) -> None:
        messages = [self.message(*file) for file in files]
        assert self.writers[writer].commit(append(*messages, commit_empty=True))
        self.note(CommitKind.APPEND, [each.new_files[0] for each in messages], set())

    def overwrite(self, files: list[Any]) -> None:
        messages = [self.message(*file) for file in files]
        touched = {file[0] for file in files}
        gone = {file for file in (self.history[-1].live if self.history else ()) if file.part in touched}
        request = CommitRequest(
            commit_user="o", kind=CommitKind.OVERWRITE, messages=tuple(messages), scope=WrittenPartitions()
        )
        if self.writers[0].commit(request):
            self.note(CommitKind.OVERWRITE, [each.new_files[0] for each in messages], gone)

    def compact(self, first: int, count: int, keeps_creation: bool) -> None:  # noqa: FBT001
        """Replace neighbours of one bucket; an engine that stamps its outputs anew makes the partition look young."""
        entries = live(self.ref)
        if not entries:
            return
        like = entries[first % len(entries)]
        bucket = like.bucket
        same = [entry.file for entry in entries if (entry.partition, entry.bucket) == (like.partition, bucket)]
        same.sort(key=lambda file: file.min_sequence_number)
        before = tuple(same[first % len(same) :][:count])
        models = [self.rows[file.file_name] for file in before]
        created = min(each.created for each in models) if keeps_creation else 5
        after = replace(
            new_file(sum(file.row_count for file in before)),
            min_sequence_number=before[0].min_sequence_number,
            max_sequence_number=before[-1].max_sequence_number,
            creation_millis=created,
            file_source=FileSource.COMPACT,
        )
        numbers = tuple(number for each in models for number in each.rows)
        self.rows[after.file_name] = replace(models[0], created=created, rows=numbers)
        message = CommitMessage(
            partition=like.partition,
            bucket=bucket,
            total_buckets=self.buckets,
            compact_before=before,
            compact_after=(after,),
        )
        assert self.writers[0].commit(CommitRequest(commit_user="c", kind=CommitKind.COMPACT, messages=(message,)))
        self.note(CommitKind.COMPACT, [after], set(models))

    def evolve(self) -> None:
        """Add a column; the stream's own schema stays as it began."""
        old = MetadataStore(self.ref).load_latest_schema()
        column = DataField(id=old.highest_field_id + 1, name=f"c{old.id}", type=INT)
        new = replace(old, id=old.id + 1, fields=(*old.fields, column), highest_field_id=column.id)
        self.ref.file_io.write(self.ref.layout.schema_path(new.id), encode_schema(new))

    def expire(self, count: int) -> None:
        """Expire the oldest snapshots that the stream does not need any more."""
        position = self.offset.position
        for _ in range(count):
            if position is not None and self.expired + 1 < min(position.snapshot_id, len(self.history)):
                self.expired += 1
                self.ref.file_io.delete(self.ref.layout.snapshot_path(self.expired))

    def read(self, max_files: int | None, restarts: bool) -> bool:  # noqa: FBT001
        """One micro-batch; whether the stream moved."""
        if restarts:
            self.follower, self.offset = self.fresh(), decode_offset(json.loads(json.dumps(encode_offset(self.offset))))
        start = self.offset
        end = self.follower.advance(start, ReadLimits(max_files=max_files))
        if end == start:
            return False
        tasks = self.follower.plan_range(start, end)
        assert self.fresh().plan_range(start, end) == tasks
        files = [file for task in tasks for split in task.splits for file in split.files]
        assert max_files is None or len(files) <= max_files
        for task in tasks:
            for file in (file for split in task.splits for file in split.files):
                self.delivered.setdefault(task.bucket, []).extend(self.rows[file.file_name].rows)
        if self.buckets > 0:
            assert len({task.bucket for task in tasks}) == len(tasks)
        self.ranges.append((self.expired, start, end, tasks))
        self.offset = end
        return True
