"""Rewrites the files in which rows change, batch by batch and in the same order.

Source:
    Paimon ``spark:commands/DeleteFromPaimonTableCommand.scala``, ``UpdatePaimonTableCommand.scala``.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.options import WriteOptions
from penstock.table.actions.rewriting import as_replacement, for_existing_rows
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.dml.result import ChangedFile
from penstock.table.locate import FileLocator
from penstock.table.memory import enough_memory
from penstock.table.message import CommitMessage
from penstock.table.read.batches import TableReader
from penstock.table.read.prune import NO_FILTER
from penstock.table.write.assign import Group
from penstock.table.write.rolling import GroupWriter, plan_files
from penstock.table.write.writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.dml.change import ChangedBatch, RowChange
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutcome:
    """The result of a change for files that are rewritten together; no change if ``messages`` is empty.

    Attributes:
        messages: the replacement first, then rows that moved to other buckets.
        matched: see ``ChangedBatch``.
    """

    messages: tuple[CommitMessage, ...] = ()
    changes: tuple[ChangedFile, ...] = ()
    matched: tuple[npt.NDArray[np.int64], ...] = ()


@dataclass(slots=True)
class _Counts:
    deleted: int = 0
    updated: int = 0
    matched: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def add(self, changed: ChangedBatch) -> None:
        self.deleted += changed.deleted
        self.updated += changed.updated
        if changed.matched is not None and len(changed.matched):
            self.matched.append(changed.matched)


class FileRewriter:
    """Applies a change to files of one table. Shared by threads.

    Args:
        ref: the table with its latest schema, which the new files get.
        is_dry_run: write nothing.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, change: RowChange, *, is_dry_run: bool) -> None:
        self._ref = for_existing_rows(ref)
        self._change = change
        self._is_dry_run = is_dry_run
        self._rows = TableReader(self._ref, store)
        self._probe = TableReader(self._ref, store, change.probe_columns)
        self._locator = FileLocator.of(ref)

    def count_hits(self, split: DataSplit, file: DataFileMeta) -> int:
        """Return how many rows of a file may change; reads only the required columns."""
        return sum(self._change.count_hits(batch) for batch in self._probe.read_file(split, file))

    def drop(self, split: DataSplit, files: tuple[DataFileMeta, ...]) -> FileOutcome:
        """Return the outcome for files whose rows are all deleted."""
        message = CommitMessage(
            partition=split.partition, bucket=split.bucket, total_buckets=split.total_buckets, compact_before=files
        )
        changes = tuple(self._changed(split, file, _Counts(deleted=file.row_count)) for file in files)
        return FileOutcome(messages=(message,), changes=changes)

    def rewrite(self, split: DataSplit, files: tuple[DataFileMeta, ...]) -> FileOutcome:
        """Rewrite the rows of files of one bucket, in order.

        Raises:
            TableStoreError: a file cannot be read or written, or a new value does not fit; the new files are deleted.
        """
        target = plan_files(self._ref, self._ref.parsed(WriteOptions))
        with enough_memory(self._ref.name), TableWriter(self._ref) as mover, ExitStack() as on_error:
            writer = GroupWriter(target, Group(partition=split.partition, bucket=split.bucket))
            on_error.callback(writer.abort)
            counts = []
            for file in files:
                count = _Counts()
                for changed in self._changed_batches(split, file):
                    count.add(changed)
                    if not self._is_dry_run:
                        writer.write(changed.kept)
                        if changed.moved is not None:
                            mover.write(changed.moved)
                counts.append(count)
            writer.finish_file()
            moved = mover.prepare_commit()
            on_error.callback(delete_new_files, self._ref, moved)
            message = writer.take_message()
            on_error.pop_all()
        changes = tuple(self._changed(split, *each) for each in zip(files, counts, strict=True))
        matched = tuple(array for count in counts for array in count.matched)
        if not any(count.deleted or count.updated for count in counts):
            # The clauses of a MERGE left all rows as they were.
            delete_new_files(self._ref, (message, *moved))
            return FileOutcome(matched=matched)
        replaced = CommitMessage(
            partition=split.partition,
            bucket=split.bucket,
            total_buckets=split.total_buckets,
            compact_before=files,
            compact_after=_as_outputs(files, as_replacement(self._ref, files, message.new_files)),
        )
        return FileOutcome(messages=(replaced, *moved), changes=changes, matched=matched)

    def _changed_batches(self, split: DataSplit, file: DataFileMeta) -> Iterator[ChangedBatch]:
        whole = replace(split, rest=NO_FILTER)
        for batch in self._rows.read_file(whole, file):
            yield self._apply(batch, split)

    def _apply(self, batch: pa.RecordBatch, split: DataSplit) -> ChangedBatch:
        return self._change.apply(batch, split.rest)

    def _changed(self, split: DataSplit, file: DataFileMeta, counts: _Counts) -> ChangedFile:
        return ChangedFile(
            partition=self._locator.partition_name(split.partition),
            bucket=split.bucket,
            file_name=file.file_name,
            rows=file.row_count,
            deleted=counts.deleted,
            updated=counts.updated,
        )


def _as_outputs(files: tuple[DataFileMeta, ...], outputs: tuple[DataFileMeta, ...]) -> tuple[DataFileMeta, ...]:
    """Give the new files the position of the old ones in the order of the bucket.

    All get the same range of sequence numbers: files with equal first numbers are read in the order of the manifest,
    and ascending numbers could pass those of the next file where ranges of several writers overlap.
    """
    first = files[0].min_sequence_number
    last = max(file.max_sequence_number for file in files)
    return tuple(replace(output, min_sequence_number=first, max_sequence_number=last) for output in outputs)
