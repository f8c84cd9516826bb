"""Merges the small files of one commit before the commit, so that readers never see them (``precommit-compact``).

Source:
    Paimon ``core:append/AppendPreCommitCompactCoordinator.java``;
    docs/spec/compaction.md section 5. The reference does this for scalable tables only; in a queue only adjacent files
    are merged, which preserves the order.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from penstock.table.commit.cleanup import delete_new_files
from penstock.table.compact.task import CompactSizes, CompactTask
from penstock.table.message import CommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.compact.job import Execute
    from penstock.table.compact.task import MergedFiles
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

    Raises:
        TableStoreError: a merge failed; all files, including those of the messages, are deleted.
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
