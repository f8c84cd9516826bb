"""Commits files that another engine, such as Spark for UPDATE, has written to replace the files that it has read."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import CommitConflictError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.rewriting import as_replacement, check_index_files, check_schema_of_rewritten
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.dml.added_rows import check_added_rows
from penstock.table.identity import check_same_table
from penstock.table.memory import enough_memory
from penstock.table.message import CommitMessage
from penstock.table.read.scan import plan_scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef

# As for commits, see ``CommitOptions.timeout_ms``.
_DEFAULT_TIMEOUT_MS: Final = 120_000


class _FileKey(NamedTuple):
    partition: bytes
    bucket: int
    name: str


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
        written: the new files, including all rows to keep of the files that were read.

    Returns:
        The snapshot, of kind OVERWRITE, or APPEND where nothing is replaced; None if there is nothing to commit.

    Raises:
        CommitConflictError: others changed such files or the columns; the written files are deleted.
        SchemaMismatchError: a row was added that breaks a rule for new rows; the written files are deleted.
        CommitUnknownError: the storage did not answer whether the commit succeeded.
    """
    removed = _removals(read.splits)
    if not removed and not written:
        return None
    user = new_commit_user(committer.options.user_prefix)
    deadline = time.monotonic() + (committer.options.timeout_ms or _DEFAULT_TIMEOUT_MS) / 1000
    base = read.snapshot
    try:
        messages = (*removed, *_as_replacements(committer.ref, written, read.splits))
        if read.adds_rows:
            check_added_rows(committer.ref, committer.store, read.splits, written)
        check_same_table(committer.ref)
        check_index_files(committer.ref.name, read.snapshot)
        while True:
            request = CommitRequest(
                commit_user=user,
                kind=CommitKind.OVERWRITE if removed else CommitKind.APPEND,
                messages=messages,
                has_read=True,
                read=base,
            )
            committer.may_be_committed = False
            try:
                with enough_memory(committer.ref.name):
                    return committer.commit(request)
            except CommitConflictError:
                base = _unaffected_base(committer, read)
                if base is None or time.monotonic() > deadline:
                    raise
    except BaseException:
        if not committer.may_be_committed:
            delete_new_files(committer.ref, written)
        raise


def _unaffected_base(committer: TableCommitter, read: ReadFiles) -> Snapshot | None:
    """Return the latest snapshot if the change would have read the same files from it, else None."""
    store, ref = committer.store, committer.ref
    if store.latest_schema_id() != ref.schema.id:
        return None
    latest = store.load_latest_snapshot()
    before = _keys_of(plan_scan(store, ref, read.snapshot, read.predicate))
    now = _keys_of(plan_scan(store, ref, latest, read.predicate))
    replaced = {_FileKey(split.partition, split.bucket, file.file_name) for split, file in _files(read.splits)}
    return latest if now <= before and replaced <= now else None


def _keys_of(plan: ScanPlan) -> set[_FileKey]:
    return {
        _FileKey(entry.partition, entry.bucket, entry.file.file_name)
        for each in plan.partitions
        for entry in each.entries
    }


def _files(splits: Iterable[DataSplit]) -> Iterable[tuple[DataSplit, DataFileMeta]]:
    return ((split, file) for split in splits for file in split.files)


def _removals(splits: Sequence[DataSplit]) -> tuple[CommitMessage, ...]:
    groups: dict[tuple[bytes, int, int], list[DataFileMeta]] = {}
    for split, file in _files(splits):
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
