"""Runs a DELETE, UPDATE or MERGE: finds the files with matching rows, rewrites them, and makes one commit.

The commit succeeds only on the snapshot from which the change was computed. If others committed in between, the change
is evaluated again: only new files are read, and results for files that are no longer live are discarded. So a row that
is appended concurrently is either changed, too, or was appended after the change. If others altered the table, the
change is computed again for the latest schema.

Files are rewritten batch by batch and in the same order. In a table with ``deletion-vectors.enabled``, files stay, and
get a deletion vector of the rows that are deleted or updated; the updated rows are appended.

Source:
    Paimon ``spark:commands/PaimonRowLevelCommand.scala``; docs/spec/commit.md section 5.1;
    ``spark:commands/DeleteFromPaimonTableCommand.scala``, ``UpdatePaimonTableCommand.scala``.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import CommitConflictError, NotFoundError
from penstock.format.deletion_vector import encode_deletion_vector
from penstock.format.manifest.index_manifest import NewVector
from penstock.format.snapshot import CommitKind
from penstock.io.failures import enough_memory
from penstock.options import DeletionVectorOptions, WriteOptions
from penstock.table.actions.rewriting import as_replacement, check_schema_of_rewritten, for_existing_rows
from penstock.table.assumptions import at_latest_schema, check_same_table
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.expiring import is_expiring
from penstock.table.dml.change import ChangedFile, ChangeResult, count_rows
from penstock.table.message import CommitMessage
from penstock.table.read.batches import DeletedRows, TableReader, are_among_data_files
from penstock.table.read.live import load_live_of_partitions
from penstock.table.read.prune import NO_FILTER, PartitionPruneResult
from penstock.table.read.scan import check_index_files, plan_scan
from penstock.table.read.split import make_split, with_vectors
from penstock.table.ref import FileLocator
from penstock.table.row_tracking import with_numbers
from penstock.table.write.assign import Group
from penstock.table.write.rolling import GroupWriter, plan_files
from penstock.table.write.writer import TableWriter, write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from penstock.format.manifest.entry import DataFileMeta, FileKey, ManifestEntry
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.dml.change import ChangedBatch, RowChange, Rows
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import BucketFiles, DataSplit
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
        self.deleted += count_rows(changed.deleted)
        self.updated += count_rows(changed.updated)
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
        self._store = store
        self._rows = TableReader(self._ref, store)
        self._probe = TableReader(self._ref, store, change.probe_columns)
        self._locator = FileLocator.of(ref)
        self._deleted = DeletedRows(ref)

    def count_hits(self, split: DataSplit, file: DataFileMeta) -> int:
        """Return how many rows of a file may change; reads only the required columns."""
        return sum(self._change.count_hits(batch) for batch in self._probe.read_file(split, file))

    def count_rows(self, split: DataSplit, files: tuple[DataFileMeta, ...]) -> int:
        """Return how many rows files have, without deleted ones."""
        return sum(file.row_count for file in files) - self._deleted.count(files, split.vectors)

    def drop(self, split: DataSplit, files: tuple[DataFileMeta, ...]) -> FileOutcome:
        """Return the outcome for files whose rows are all deleted."""
        changes = tuple(self._changed(split, file, _Counts(deleted=self.count_rows(split, (file,)))) for file in files)
        return FileOutcome(messages=(removal_of(split, files),), changes=changes)

    def rewrite(self, split: DataSplit, files: tuple[DataFileMeta, ...]) -> FileOutcome:
        """Rewrite the rows of files of one bucket, in order."""
        counts = [_Counts() for _ in files]
        messages = write_in_place(self._ref, split, files, self._counted(split, files, counts))
        with ExitStack() as unless_changed:
            unless_changed.callback(delete_new_files, self._ref, messages)
            changes = tuple(self._changed(split, *each) for each in zip(files, counts, strict=True))
            matched = tuple(array for count in counts for array in count.matched)
            if not any(count.deleted or count.updated for count in counts):
                # The clauses of a MERGE left all rows as they were.
                return FileOutcome(matched=matched)
            unless_changed.pop_all()
        return FileOutcome(messages=messages, changes=changes, matched=matched)

    def mark(self, split: DataSplit, files: tuple[DataFileMeta, ...]) -> FileOutcome:
        """Give one file a vector of the rows that are deleted or updated, and append the updated ones."""
        (file,), count = files, _Counts()
        check_schema_of_rewritten(self._ref, files)
        with enough_memory(self._ref.name), ExitStack() as unless_changed:
            gone = np.zeros(file.row_count, dtype=bool)
            written = write_rows(self._ref, split, self._updated(split, file, count, gone))
            unless_changed.callback(delete_new_files, self._ref, written)
            matched = tuple(count.matched)
            if not count.deleted and not count.updated:
                return FileOutcome(matched=matched)
            outcome = FileOutcome(
                messages=as_marked(self._ref, split, file, gone, written),
                changes=(self._changed(split, file, count),),
                matched=matched,
            )
            unless_changed.pop_all()
        return outcome

    def _updated(self, split: DataSplit, file: DataFileMeta, count: _Counts, gone: Rows) -> Iterator[ChangedBatch]:
        """Yield the updated rows of a file, and note in ``gone`` which of its rows are deleted, before or now."""
        place = dict(split.vectors).get(file.file_name)
        if place is not None:
            gone[self._deleted.load(file, place)] = True
        whole = replace(split, rest=NO_FILTER, vectors=())
        reader = TableReader(self._ref, self._store, split.rest.columns) if self._change.only_deletes else self._rows
        first = 0
        for batch in reader.read_file(whole, file):
            stays = ~gone[first : first + batch.num_rows]
            changed = self._change.apply(batch.filter(pa.array(stays)), split.rest)
            count.add(changed)
            gone[np.flatnonzero(stays)[changed.old_places()] + first] = True
            if changed.updated is not None and not self._is_dry_run:
                yield changed.only_updated()
            first += batch.num_rows

    def _counted(
        self, split: DataSplit, files: Sequence[DataFileMeta], counts: Sequence[_Counts]
    ) -> Iterator[ChangedBatch]:
        """Yield the rows to write, and count the changes of each file."""
        for file, count in zip(files, counts, strict=True):
            for changed in self._changed_batches(split, file):
                count.add(changed)
                if not self._is_dry_run:
                    yield changed

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
            rows=self.count_rows(split, (file,)),
            deleted=counts.deleted,
            updated=counts.updated,
        )


def write_in_place(
    ref: TableRef, split: DataSplit, files: tuple[DataFileMeta, ...], rows: Iterable[ChangedBatch]
) -> tuple[CommitMessage, ...]:
    """Write the rows that replace those of files of one bucket; a failure leaves no file.

    Args:
        ref: the table, without the rules for new rows.
        split: the bucket.
        files: to replace, in order.

    Returns:
        The replacement, at the position of the files in the order of the bucket; then the rows that moved.
    """
    message, *moved = write_rows(ref, split, rows)
    replaced = replace(
        message,
        new_files=(),
        compact_before=files,
        compact_after=_as_outputs(files, as_replacement(ref, files, message.new_files)),
    )
    return (replaced, *moved)


def write_rows(ref: TableRef, split: DataSplit, rows: Iterable[ChangedBatch]) -> tuple[CommitMessage, ...]:
    """Write the rows that stay in a bucket, and those that move; a failure leaves no file.

    Returns:
        A message of the bucket, which has the number of buckets that its partition has; then those of the rows that
        moved.
    """
    target = replace(plan_files(ref, ref.parsed(WriteOptions)), total_buckets=split.total_buckets)
    with enough_memory(ref.name), TableWriter(ref) as mover, ExitStack() as on_error:
        writer = GroupWriter(target, Group(partition=split.partition, bucket=split.bucket))
        on_error.callback(writer.abort)
        for each in rows:
            writer.write(each.kept())
            moved_rows = each.rows_of(each.moved)
            if moved_rows is not None:
                mover.write(moved_rows)
        writer.finish_file()
        moved = mover.prepare_commit()
        on_error.callback(delete_new_files, ref, moved)
        message = writer.take_message()
        on_error.pop_all()
    return (message, *moved)


def removal_of(split: DataSplit, files: tuple[DataFileMeta, ...]) -> CommitMessage:
    """Return a message that removes files of one bucket."""
    return CommitMessage(
        partition=split.partition, bucket=split.bucket, total_buckets=split.total_buckets, compact_before=files
    )


def as_marked(
    ref: TableRef, split: DataSplit, file: DataFileMeta, gone: Rows, written: Iterable[CommitMessage]
) -> tuple[CommitMessage, ...]:
    """Return messages that give a file a vector, or remove it if it has no row left, and add its updated rows.

    Args:
        gone: which rows are deleted, before or now.
        written: by ``write_rows``.
    """
    marked = removal_of(split, (file,))
    if not gone.all():
        rows = np.flatnonzero(gone)
        framed = encode_deletion_vector(rows, is_64=ref.parsed(DeletionVectorOptions).is_64)
        vector = NewVector(data_file=file.file_name, framed=framed, row_count=len(rows))
        marked = replace(marked, compact_before=(), new_vectors=(vector,))
    return (marked, *(_as_replacement(ref, split, file, message) for message in written if message.new_files))


def _as_replacement(ref: TableRef, split: DataSplit, file: DataFileMeta, message: CommitMessage) -> CommitMessage:
    if message.partition != split.partition:
        return message
    return replace(message, new_files=as_replacement(ref, (file,), message.new_files))


def _as_outputs(files: tuple[DataFileMeta, ...], outputs: tuple[DataFileMeta, ...]) -> tuple[DataFileMeta, ...]:
    """Give the new files the position of the old ones in the order of the bucket.

    All get the same range of sequence numbers: files with equal first numbers are read in the order of the manifest,
    and ascending numbers could pass those of the next file where ranges of several writers overlap. With row tracking,
    rows have numbers of their own.
    """
    first = files[0].min_sequence_number
    last = max(file.max_sequence_number for file in files)
    return tuple(with_numbers(output, first, last) for output in outputs)


_MAX_THREADS: Final = 4
# As for commits, see ``CommitOptions.timeout_ms``.
_DEFAULT_TIMEOUT_MS: Final = 120_000


_Version: TypeAlias = "tuple[FileKey, VectorPlace | None]"
"""A file with its deletion vector."""
_Place: TypeAlias = "tuple[bytes, int, int]"
"""Partition, bucket and first sequence number of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Files that are rewritten together, because their order is only that of the manifest; usually one."""

    split: DataSplit
    keys: tuple[_Version, ...]


@dataclass(slots=True)
class _Progress:
    """Results so far, which are reused when the change is evaluated again.

    Attributes:
        hits: number of rows of a file that may change.
        outcomes: results of the files with matching rows that were rewritten together.
    """

    hits: dict[_Version, int] = field(default_factory=dict)
    outcomes: dict[tuple[_Version, ...], FileOutcome] = field(default_factory=dict)


def run_change(
    committer: TableCommitter, new_change: Callable[[TableRef], RowChange], *, dry_run: bool = False
) -> ChangeResult:
    """Change rows in one commit; no commit if there is no row to change.

    Args:
        new_change: makes the change for the table with its latest schema; called again if others alter the table.
        dry_run: only find what would change.

    Raises:
        InvalidFilterError: the predicate does not fit the table.
        UnsupportedFeatureError: the table has index files, which would have to be rewritten.
        SchemaMismatchError: a new value does not fit its column.
        CommitConflictError: others committed at every attempt; nothing was changed.
        CommitUnknownError: the storage did not answer whether the commit succeeded.
    """
    return _ChangeRun(committer, new_change, is_dry_run=dry_run).run()


class _ChangeRun:
    def __init__(
        self, committer: TableCommitter, new_change: Callable[[TableRef], RowChange], *, is_dry_run: bool
    ) -> None:
        self._store = committer.store
        self._new_change = new_change
        self._is_dry_run = is_dry_run
        self._tried: Snapshot | None = None
        self._begin(committer)
        self._user = new_commit_user(committer.options.user_prefix)

    def _begin(self, committer: TableCommitter) -> None:
        self._committer = committer
        self._ref = committer.ref
        self._change = self._new_change(self._ref)
        self._marks = marks_rows(self._ref)
        self._rewriter = FileRewriter(self._ref, self._store, self._change, is_dry_run=self._is_dry_run)
        self._locator = FileLocator.of(self._ref)
        self._progress = _Progress()

    def run(self) -> ChangeResult:
        options = self._committer.options
        deadline = time.monotonic() + (options.timeout_ms or _DEFAULT_TIMEOUT_MS) / 1000
        tries = 0
        try:
            while True:
                try:
                    return self._try_once()
                except CommitConflictError:
                    tries += 1
                    is_spent = options.max_retries is not None and tries > options.max_retries
                    if is_spent or time.monotonic() > deadline or self._is_unchanged():
                        raise
        except BaseException:
            if not self._committer.may_be_committed:
                self._discard(tuple(self._progress.outcomes))
            raise

    def _is_unchanged(self) -> bool:
        """Whether others have not changed the table since the last attempt, so that the next one would end like it."""
        return (
            self._store.load_latest_snapshot() == self._tried and self._store.latest_schema_id() == self._ref.schema.id
        )

    def _try_once(self) -> ChangeResult:
        self._committer.may_be_committed = False
        check_same_table(self._ref)
        snapshot = self._tried = self._store.load_latest_snapshot()
        # Loaded after the snapshot, so the schema is not older than that of any of its files.
        ref = at_latest_schema(self._ref, self._store)
        if ref is not self._ref:
            self._discard(tuple(self._progress.outcomes))
            self._begin(replace(self._committer, ref=ref))
        try:
            return self._change_rows(snapshot)
        except NotFoundError as error:
            if snapshot is None or not is_expiring(self._store, snapshot.id):
                raise
            raise CommitConflictError(
                f"table {self._ref.name}: snapshot {snapshot.id}, of which the change has read the rows, has expired "
                "or was rolled back meanwhile; nothing was committed: repeat the change, and if snapshots expire "
                "sooner than it ends, raise 'snapshot.time-retained' or 'snapshot.num-retained.min'"
            ) from error

    def _change_rows(self, snapshot: Snapshot | None) -> ChangeResult:
        check_index_files(self._store, snapshot)
        units = self._plan_units(plan_scan(self._store, self._ref, snapshot, self._change.predicate, with_vectors=True))
        wanted = {unit.keys for unit in units}
        self._discard(tuple(keys for keys in self._progress.outcomes if keys not in wanted))
        self._rewrite([unit for unit in units if unit.keys not in self._progress.outcomes])
        outcomes = [self._progress.outcomes[unit.keys] for unit in units]
        return self._commit(snapshot, outcomes)

    def _plan_units(self, plan: ScanPlan) -> list[_Unit]:
        """Return the files with rows that may change, in the order of the plan."""
        splits = [
            (self._split(entry, plan, PartitionPruneResult(values=each.values, rest=each.rest)), entry)
            for each in plan.partitions
            # Rows that move to another bucket keep their order; a file that was replaced comes last in the manifests.
            for entry in sorted(each.entries, key=lambda entry: entry.file.min_sequence_number)
        ]
        known = self._progress.hits
        version_of = partial(_version, plan)
        unknown = [(split, entry) for split, entry in splits if version_of(entry) not in known]
        with ThreadPoolExecutor(max_workers=_threads()) as pool:
            counts = pool.map(lambda each: self._rewriter.count_hits(each[0], each[1].file), unknown)
            known.update(zip((version_of(entry) for _, entry in unknown), counts, strict=True))
        hit = [(split, entry) for split, entry in splits if known[version_of(entry)]]
        peers = load_peers(self._ref, self._store, plan.snapshot, [(split, entry.file) for split, entry in hit])
        units: dict[tuple[_Version, ...], _Unit] = {}
        for split, entry in hit:
            entries = peers.get(place_of(split, entry.file), (entry,))
            keys = tuple(map(version_of, entries))
            files = tuple(each.file for each in entries)
            units[keys] = _Unit(split=with_vectors(replace(split, files=files), plan.vectors), keys=keys)
        return list(units.values())

    def _split(self, entry: ManifestEntry, plan: ScanPlan, verdict: PartitionPruneResult) -> DataSplit:
        snapshot_id = plan.snapshot.id if plan.snapshot else 0
        return with_vectors(make_split(self._locator, snapshot_id, entry, (entry.file,), verdict), plan.vectors)

    def _rewrite(self, units: Sequence[_Unit]) -> None:
        with ThreadPoolExecutor(max_workers=_threads()) as pool:
            futures = [pool.submit(self._outcome, unit) for unit in units]
        errors = []
        for unit, future in zip(units, futures, strict=True):
            error = future.exception()
            if error is None:
                self._progress.outcomes[unit.keys] = future.result()
            else:
                errors.append(error)
        if errors:
            raise errors[0]

    def _outcome(self, unit: _Unit) -> FileOutcome:
        files = tuple(unit.split.files)
        hits = sum(self._progress.hits.get(key, 0) for key in unit.keys)
        if self._change.only_deletes and hits == self._rewriter.count_rows(unit.split, files):
            return self._rewriter.drop(unit.split, files)
        return (self._rewriter.mark if self._marks else self._rewriter.rewrite)(unit.split, files)

    def _commit(self, snapshot: Snapshot | None, outcomes: Sequence[FileOutcome]) -> ChangeResult:
        changes = tuple(each for outcome in outcomes for each in outcome.changes)
        rows = self._change.new_rows([each for outcome in outcomes for each in outcome.matched])
        inserted = rows.num_rows if rows is not None else 0
        messages = tuple(message for outcome in outcomes for message in outcome.messages)
        committed: Snapshot | None = None
        added: tuple[CommitMessage, ...] = ()
        if not self._is_dry_run and (messages or inserted):
            added = write_arrow(self._ref, rows) if rows is not None and inserted else ()
            committed = self._commit_files(snapshot, messages, added)
        return ChangeResult(
            snapshot=committed,
            is_dry_run=self._is_dry_run,
            files=tuple(each for each in changes if each.deleted or each.updated),
            files_added=sum(len(each.compact_after) + len(each.new_files) for each in (*messages, *added)),
            rows_deleted=sum(each.deleted for each in changes),
            rows_updated=sum(each.updated for each in changes),
            rows_inserted=inserted,
        )

    def _commit_files(
        self, snapshot: Snapshot | None, messages: tuple[CommitMessage, ...], added: tuple[CommitMessage, ...]
    ) -> Snapshot | None:
        request = CommitRequest(
            commit_user=self._user,
            kind=CommitKind.OVERWRITE if messages else CommitKind.APPEND,
            messages=(*messages, *added),
            has_read=True,
            read=snapshot,
        )
        try:
            with enough_memory(self._ref.name):
                return self._committer.commit(request)
        except BaseException:
            # The inserted rows depend on all files, so they are written again at each attempt.
            if not self._committer.may_be_committed:
                delete_new_files(self._ref, added)
            raise

    def _discard(self, keys: Iterable[tuple[_Version, ...]]) -> None:
        for each in keys:
            delete_new_files(self._ref, self._progress.outcomes.pop(each).messages)


def marks_rows(ref: TableRef) -> bool:
    """Whether row changes delete rows by deletion vectors. Paimon reads these only if the table has the option."""
    is_enabled = DeletionVectorOptions.parse(ref.schema.option_map, table=ref.name).is_enabled
    return is_enabled and ref.parsed(DeletionVectorOptions).is_enabled and not are_among_data_files(ref)


def load_peers(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot | None, files: Iterable[tuple[BucketFiles, DataFileMeta]]
) -> dict[_Place, tuple[ManifestEntry, ...]]:
    """Load the files of queues that begin with the same sequence number as a file to rewrite, in manifest order.

    Only this order determines which is first, so they have to be replaced together. A rewrite that splits a file
    creates such files, and so do writers that do not number rows at commit.

    Args:
        files: with their buckets; those in no queue have no peers.
    """
    places = {place_of(*each) for each in files if each[0].total_buckets > 0}
    if snapshot is None or not places or marks_rows(ref):
        return {}
    found: dict[_Place, list[ManifestEntry]] = {}
    for entry in load_live_of_partitions(store, ref.schema, snapshot, frozenset(each[0] for each in places)).values():
        if (place := place_of(entry, entry.file)) in places:
            found.setdefault(place, []).append(entry)
    return {place: tuple(entries) for place, entries in found.items()}


def place_of(like: BucketFiles, file: DataFileMeta) -> _Place:
    """Return the place of a file in its queue."""
    return like.partition, like.bucket, file.min_sequence_number


def _version(plan: ScanPlan, entry: ManifestEntry) -> _Version:
    return entry.key, plan.vectors.get(entry.key)


def _threads() -> int:
    return min(os.cpu_count() or 1, _MAX_THREADS)
