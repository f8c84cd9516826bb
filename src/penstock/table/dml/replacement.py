"""Commits files that another engine, such as Spark for UPDATE, has written to replace the files that it has read.

A change must add no row that breaks a rule for new rows, while rows that break it already may stay. For UPDATE and
MERGE, Spark rewrites all rows of a file and does not say which ones it has changed. So the rows that break a rule are
compared with those of the files that were read.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock.datafile.conform import without_padding
from penstock.datafile.types import to_arrow_type
from penstock.errors import CommitConflictError, SchemaMismatchError
from penstock.format.manifest.entry import FileKey
from penstock.format.snapshot import CommitKind
from penstock.io.failures import enough_memory
from penstock.table.actions.rewriting import (
    as_replacement,
    check_schema_of_rewritten,
    for_existing_rows,
)
from penstock.table.assumptions import check_same_table
from penstock.table.commit.cleanup import delete_new_files, new_files_of
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.vectors import VectorFrames
from penstock.table.message import CommitMessage
from penstock.table.read.batches import TableReader
from penstock.table.read.live import load_live_of_partitions
from penstock.table.read.prune import NO_FILTER, ColumnStatsReader
from penstock.table.read.scan import check_index_files, plan_scan
from penstock.table.read.split import make_unfiltered_split
from penstock.table.write.check_rows import conform_batch, has_limit, has_nested_not_null, plan_conform

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.format.types.data_types import DataField
    from penstock.predicate.tree import Predicate
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


_THREADS: Final = 4


def check_added_rows(
    ref: TableRef, store: MetadataStore, before: Iterable[DataSplit], written: Iterable[CommitMessage]
) -> None:
    """Raise if written files have a row with a forbidden NULL, or a value that is too long, that did not exist before.

    Args:
        before: the files that were read.
        written: the files that replace them.
    """
    rules = _Rules(ref, store)
    if not rules.fields:
        return
    added = Counter(rules.broken_rows(make_unfiltered_split(ref, each, new_files_of(each)) for each in written))
    if added:
        added.subtract(rules.broken_rows(before))
    for row, count in added.items():
        if count > 0:
            rules.raise_for(row)


class _Rules:
    """NOT NULL and lengths of a table's columns, found in its files.

    Attributes:
        fields: the columns with a rule.
    """

    def __init__(self, ref: TableRef, store: MetadataStore) -> None:
        schema = replace(ref.schema, fields=tuple(replace(each, default_value=None) for each in ref.schema.fields))
        self._ref = ref
        self.fields = tuple(field for field in schema.fields if not field.type.nullable or _is_limited(field))
        self._only_nulls = not any(map(_is_limited, self.fields))
        self._required = [field.name for field in self.fields if not field.type.nullable]
        names = tuple(field.name for field in self.fields)
        self._stats = ColumnStatsReader(store.load_schema, self.fields)
        self._probe = TableReader(for_existing_rows(ref), store, names)
        self._rows = TableReader(for_existing_rows(ref), store)
        # Without the other columns, whose types may be such that they cannot be checked.
        self._schema = replace(schema, fields=self.fields, partition_keys=(), primary_keys=())
        self._plan = plan_conform(self._schema, self._probe.schema, ref.name)
        self._examples: dict[str, pa.RecordBatch] = {}

    def broken_rows(self, splits: Iterable[DataSplit]) -> Iterator[str]:
        """Yield each row that breaks a rule as text."""
        whole = (replace(split, rest=NO_FILTER) for split in splits)
        files = [(split, file) for split in whole for file in split.files if self._may_break(file)]
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            answers = pool.map(lambda each: any(map(self._breaks, self._probe.read_file(*each))), files)
            broken = [each for each, answer in zip(files, answers, strict=True) if answer]
        for each in broken:
            for batch in self._rows.read_file(*each):
                yield from self._broken_in(batch)

    def raise_for(self, row: str) -> None:
        """Raise the error of a row."""
        conform_batch(self._examples[row], self._plan)

    def _may_break(self, file: DataFileMeta) -> bool:
        if not self._only_nulls:
            return True
        known = self._stats.read(file)
        found = (known.get(name) for name in self._required)
        return not all(stats is not None and stats.null_count == 0 for stats in found)

    def _broken_in(self, batch: pa.RecordBatch) -> Iterator[str]:
        names = [field.name for field in self.fields]
        checked = batch.select(names)
        is_null = np.zeros(batch.num_rows, dtype=bool)
        for name in self._required:
            is_null |= checked.column(name).is_null().to_numpy(zero_copy_only=False)
        others = np.flatnonzero(~is_null)
        places = [
            *np.flatnonzero(is_null),
            *(others[place] for place in self._search(checked.take(pa.array(others, pa.int64())))),
        ]
        # Spark pads CHAR, also in rows that it does not change.
        rows = without_padding(batch.take(pa.array(places, pa.int64())), self._ref.schema.fields)
        for place, row in zip(places, rows.to_pylist(), strict=True):
            text = repr(row)
            self._examples.setdefault(text, checked.slice(place, 1))
            yield text

    def _search(self, batch: pa.RecordBatch, start: int = 0) -> list[int]:
        """Return the places of the rows that break a rule, by halving."""
        if not batch.num_rows or not self._breaks(batch):
            return []
        if batch.num_rows == 1:
            return [start]
        half = batch.num_rows // 2
        return [*self._search(batch.slice(0, half), start), *self._search(batch.slice(half), start + half)]

    def _breaks(self, batch: pa.RecordBatch) -> bool:
        try:
            conform_batch(batch, self._plan)
        except SchemaMismatchError:
            return True
        return False


def _is_limited(field: DataField) -> bool:
    return has_limit(field.type) or has_nested_not_null(to_arrow_type(field.type))


# As for commits, see ``CommitOptions.timeout_ms``.
_DEFAULT_TIMEOUT_MS: Final = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFiles:
    """The files that a change has read.

    Attributes:
        snapshot: None if nothing was committed yet.
        predicate: excludes files without rows on which the change depends; None if it depends on all files.
        splits: the files that are replaced, each once.
        adds_rows: False if the new files have no other rows than these, so that no rule for new rows is checked.
    """

    snapshot: Snapshot | None
    predicate: Predicate | None
    splits: tuple[DataSplit, ...]
    adds_rows: bool = True


def commit_replacement(
    committer: TableCommitter, read: ReadFiles, written: tuple[CommitMessage, ...]
) -> Snapshot | None:
    """Replace the files that were read by the files that were written, in one commit.

    If others have committed meanwhile, it succeeds only if they have neither added a file that the predicate does not
    exclude nor removed a file that is to be replaced.

    Args:
        written: the new files, including all rows to keep of the files that were read. Messages of a queue say which
            of these each new file replaces.

    Returns:
        The snapshot, of kind OVERWRITE, or APPEND where nothing is replaced; None if there is nothing to commit.
    """
    try:
        messages = (*_removals(read.splits, written), *_as_replacements(committer.ref, written, read.splits))
        if read.adds_rows:
            check_added_rows(committer.ref, committer.store, read.splits, written)
    except BaseException:
        delete_new_files(committer.ref, written)
        raise
    return commit_changes(committer, read, messages)


def commit_changes(committer: TableCommitter, read: ReadFiles, messages: tuple[CommitMessage, ...]) -> Snapshot | None:
    """Commit messages that were made from the files that were read, under the conditions of ``commit_replacement``.

    Args:
        read: its splits are the files that the messages replace, or give deletion vectors.
    """
    if not messages:
        return None
    is_replacing = any(message.compact_before or message.new_vectors for message in messages)
    user = new_commit_user(committer.options.user_prefix)
    deadline = time.monotonic() + (committer.options.timeout_ms or _DEFAULT_TIMEOUT_MS) / 1000
    base = read.snapshot
    try:
        check_same_table(committer.ref)
        check_index_files(committer.store, read.snapshot)
        while True:
            request = CommitRequest(
                commit_user=user,
                kind=CommitKind.OVERWRITE if is_replacing else CommitKind.APPEND,
                messages=messages,
                has_read=True,
                read=base,
            )
            committer.may_be_committed = False
            try:
                with enough_memory(committer.ref.name):
                    return committer.commit(request)
            except CommitConflictError:
                tried, base = base, _unaffected_base(committer, read)
                # Without a commit of others, the next attempt would end in the same conflict.
                if base in {None, tried} or time.monotonic() > deadline:
                    raise
    except BaseException:
        if not committer.may_be_committed:
            delete_new_files(committer.ref, messages)
        raise


def _unaffected_base(committer: TableCommitter, read: ReadFiles) -> Snapshot | None:
    """Return the latest snapshot if the change would have read the same files from it, else None."""
    store, ref = committer.store, committer.ref
    latest = store.load_latest_snapshot()
    if latest is None or store.latest_schema_id() != ref.schema.id:
        return None
    before = _vectors_of(plan_scan(store, ref, read.snapshot, read.predicate, with_vectors=True))
    plan = plan_scan(store, ref, latest, read.predicate, with_vectors=True)
    frames = VectorFrames(ref)
    is_read = all(key in before and frames.are_same(before[key], place) for key, place in _vectors_of(plan).items())
    # The predicate excludes files that are only rewritten together with one that has such rows.
    partitions = frozenset(split.partition for split in read.splits)
    live = {entry.key for entry in load_live_of_partitions(store, ref.schema, latest, partitions).values()}
    is_there = all(
        key in live and frames.are_same(dict(split.vectors).get(file.file_name), plan.vectors.get(key))
        for split, file in _files(read.splits)
        for key in (FileKey(split.partition, split.bucket, file.file_name),)
    )
    return latest if is_read and is_there else None


def _vectors_of(plan: ScanPlan) -> dict[FileKey, VectorPlace | None]:
    """Return the files of a plan with their deletion vectors."""
    return {entry.key: plan.vectors.get(entry.key) for each in plan.partitions for entry in each.entries}


def _files(splits: Iterable[DataSplit]) -> Iterable[tuple[DataSplit, DataFileMeta]]:
    return ((split, file) for split in splits for file in split.files)


def _removals(splits: Sequence[DataSplit], written: Iterable[CommitMessage]) -> tuple[CommitMessage, ...]:
    """Return messages that remove the files which no written file replaces at its position."""
    replaced = {key for message in written for key in message.replaced}
    groups: dict[tuple[bytes, int, int], list[DataFileMeta]] = {}
    for split, file in _files(splits):
        if FileKey(split.partition, split.bucket, file.file_name) in replaced:
            continue
        groups.setdefault((split.partition, split.bucket, split.total_buckets), []).append(file)
    return tuple(
        CommitMessage(partition=partition, bucket=bucket, total_buckets=total, compact_before=tuple(files))
        for (partition, bucket, total), files in groups.items()
    )


def _as_replacements(
    ref: TableRef, written: tuple[CommitMessage, ...], splits: Sequence[DataSplit]
) -> tuple[CommitMessage, ...]:
    check_schema_of_rewritten(ref, (file for _, file in _files(splits)))
    by_partition: dict[bytes, list[DataFileMeta]] = {}
    for split, file in _files(splits):
        by_partition.setdefault(split.partition, []).append(file)
    return tuple(
        replace(message, new_files=as_replacement(ref, by_partition.get(message.partition, ()), message.new_files))
        for message in written
    )
