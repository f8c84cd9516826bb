"""A write of rows whose files are written: merges before its commit, commit or deletion of the files, merges after it.

Whether merges are due after an append to a queue is determined from what the commit reads anyway: the entries of the
partitions to which it adds files, from which it takes the next sequence numbers. So an append without due merges makes
no additional request. Scalable tables are compacted only by streams and jobs, as in Paimon.

With ``precommit-compact``, the small files of one commit are merged before the commit, so that readers never see them.
The reference does this for scalable tables only; in a queue only adjacent files are merged, which preserves the order.

Source:
    docs/spec/compaction.md section 3; Paimon ``core:append/BucketedAppendCompactManager.java``;
    ``core:append/AppendPreCommitCompactCoordinator.java``; docs/spec/compaction.md section 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import TableStoreError, UnsupportedFeatureError
from penstock.options import BucketOptions, CompactOptions
from penstock.printable import open_log
from penstock.table.actions.changes import commit_append, commit_overwrite, open_committer
from penstock.table.assumptions import at_latest_schema
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.background import LEASE_NAME
from penstock.table.compact.job import run_compaction
from penstock.table.compact.local import run_here
from penstock.table.compact.plan import CompactStrategy, merges_on_its_own, plan_compaction
from penstock.table.compact.queue_files import OpenTails
from penstock.table.compact.task import CompactSizes, CompactTask
from penstock.table.lease import find_holder
from penstock.table.message import CommitMessage
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.compact.job import CompactionResult, Execute
    from penstock.table.compact.task import MergedFiles
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef

    Key = tuple[bytes, int, int]
    """Serialized partition, bucket, total buckets."""


def merge_before_commit(
    messages: tuple[CommitMessage, ...], ref: TableRef, execute: Execute
) -> tuple[CommitMessage, ...]:
    """Merge the small files that several tasks wrote into the same bucket; delete them after all merges are done.

    Args:
        messages: in input order, not committed yet.
        execute: runs the merges.

    Returns:
        One message for each partition and bucket, with its files in the order of the rows; ``messages`` unchanged if
        there is nothing to merge.
    """
    sizes = CompactSizes.of(ref)
    buckets: dict[Key, list[DataFileMeta]] = {}
    for message in messages:
        buckets.setdefault((message.partition, message.bucket, message.total_buckets), []).extend(message.new_files)
    tasks = {
        files[0].file_name: CompactTask(partition=key[0], bucket=key[1], total_buckets=key[2], files=files)
        for key, all_files in buckets.items()
        for files in pack_new(all_files, sizes, in_order=key[2] > 0)
    }
    if not tasks:
        return messages
    merged = _run(tuple(tasks.values()), messages, ref, execute)
    outputs = {done.task.files[0].file_name: done.message.compact_after for done in merged if done.message is not None}
    inputs = {file.file_name for task in tasks.values() for file in task.files}
    result = tuple(
        CommitMessage(
            partition=partition,
            bucket=bucket,
            total_buckets=total,
            new_files=tuple(
                chain.from_iterable(
                    outputs.get(file.file_name, () if file.file_name in inputs else (file,)) for file in files
                )
            ),
        )
        for (partition, bucket, total), files in buckets.items()
    )
    _delete_inputs(messages, inputs, ref)
    return result


def pack_new(
    files: Iterable[DataFileMeta], sizes: CompactSizes, *, in_order: bool
) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Pack the small files of one bucket into merges of about the target size, each of at least two files.

    Args:
        files: in the order of the rows.
        in_order: merge adjacent files only: no merge crosses a file that is large enough.
    """
    bins: list[list[DataFileMeta]] = [[]]
    weight = 0
    for file in files:
        is_small = sizes.is_small(file)
        if is_small:
            bins[-1].append(file)
            weight += file.file_size
        if weight >= sizes.target_bytes or (in_order and not is_small):
            bins.append([])
            weight = 0
    return tuple(tuple(files) for files in bins if len(files) > 1)


def _run(
    tasks: Sequence[CompactTask], messages: tuple[CommitMessage, ...], ref: TableRef, execute: Execute
) -> list[MergedFiles]:
    done: list[MergedFiles] = []
    try:
        for merged in execute(tasks):
            done.append(merged)
            _check(merged)
    except BaseException:
        delete_new_files(ref, (*messages, *(merged.message for merged in done if merged.message is not None)))
        raise
    return done


def _check(merged: MergedFiles) -> None:
    if merged.error is not None:
        raise merged.error


def _delete_inputs(messages: Iterable[CommitMessage], names: set[str], ref: TableRef) -> None:
    """Delete the inputs of the merges; a file that cannot be deleted remains as an orphan."""
    delete_new_files(
        ref,
        (
            replace(message, new_files=tuple(file for file in message.new_files if file.file_name in names))
            for message in messages
        ),
    )


MergeOn: TypeAlias = "Callable[[TableRef], Execute]"
"""Returns the function that runs merges of a table."""

_LOG: Final = open_log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWrite:
    """One write, whoever wrote its files: a table's method, Spark SQL, the data source or a stream.

    Attributes:
        ref: the table, with the options of the write.
        merge_on: returns the function that runs merges: in this process, or on executors.
    """

    ref: TableRef
    merge_on: MergeOn = run_here

    def merge(self, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
        """Merge the small files of the write before its commit, if the option ``precommit-compact`` is set."""
        if not self.ref.parsed(CompactOptions).precommit:
            return messages
        return merge_before_commit(messages, self.ref, self.merge_on(self.ref))

    def commit(self, messages: tuple[CommitMessage, ...], scope: OverwriteScope | None = None) -> Snapshot | None:
        """Commit the rows in place of those in scope, None for an append, with the merges before and after it."""
        messages = self.merge(messages)
        committer = open_appender(self.ref)
        if scope is not None:
            return commit_overwrite(committer, messages, scope)
        snapshot = commit_append(committer, messages)
        compact_appended(committer, messages, self.merge_on)
        return snapshot


def open_appender(ref: TableRef, store: MetadataStore | None = None) -> TableCommitter:
    """Return a committer for ``compact_appended``; arguments as in ``open_committer``."""
    committer = open_committer(ref, store)
    if ref.parsed(BucketOptions).bucket > 0 and merges_on_its_own(ref):
        committer.index.watch = OpenTails(CompactSizes.of(ref))
    return committer


def compact_appended(
    committer: TableCommitter, messages: Iterable[CommitMessage], merge_on: MergeOn = run_here
) -> CompactionResult | None:
    """Merge small files of the buckets to which an append has added files, if there are enough of them.

    The rows are already committed, so an error is logged and not raised.

    Args:
        committer: of the append, from ``open_appender``.
        messages: of the append.

    Returns:
        None if nothing was due, another job is compacting the table, or the merges failed.
    """
    tails = committer.index.watch
    if not isinstance(tails, OpenTails):
        return None
    due = frozenset(
        partition for partition, _ in tails.buckets_to_merge((e.partition, e.bucket) for e in messages if e.new_files)
    )
    if not due or _has_compactor(committer.ref):
        return None
    user = new_commit_user(committer.options.user_prefix)
    return _merge(committer.ref, committer.store, due, user, merge_on, before=committer)


def compact_written(ref: TableRef, messages: Sequence[CommitMessage], *, commit_user: str) -> CompactionResult | None:
    """Merge small files of the partitions to which a commit has added files, by the rule of ``minor``, in this process.

    The rows are already committed, so an error is logged and not raised.

    Args:
        messages: of the commit.

    Returns:
        None if the table is ``write-only`` or clustered, the commit had no files, or the merges failed.
    """
    if not merges_on_its_own(ref):
        return None
    written = frozenset(message.partition for message in messages if message.new_files)
    return _merge(ref, MetadataStore(ref), written, commit_user, run_here)


def _merge(
    ref: TableRef,
    store: MetadataStore,
    partitions: frozenset[bytes],
    commit_user: str,
    merge_on: MergeOn,
    before: TableCommitter | None = None,
) -> CompactionResult | None:
    if not partitions:
        return None
    try:
        latest = at_latest_schema(ref, store)
        plan = plan_compaction(latest, store, strategy=CompactStrategy.MINOR, scope=partitions)
        committer = open_committer(latest, store, adds_rows=False, before=before)
        return run_compaction(plan, committer, merge_on(latest), commit_user=commit_user)
    except UnsupportedFeatureError as error:  # of every merge of this table
        _LOG.info("table %s: its small files are not merged: %s", ref.name, error)
    except Exception as error:  # noqa: BLE001 - the rows are committed: the caller must not take that for failed
        _LOG.warning("table %s: its small files were not merged; the rows are committed: %s", ref.name, error)
    return None


def _has_compactor(ref: TableRef) -> bool:
    try:
        return find_holder(ref.file_io, ref.location, LEASE_NAME) is not None
    except TableStoreError:
        return False
