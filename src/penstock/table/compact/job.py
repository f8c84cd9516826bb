"""Runs a planned compaction: the caller's executor runs the merges, finished merges are committed in groups."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import TableStoreError
from penstock.format.snapshot import CommitKind
from penstock.printable import Result, open_log
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.compact.commit import MergeGroup, is_lost
from penstock.table.compact.rewrite import rewrite
from penstock.table.compact.task import MergedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.compact.plan import CompactionPlan, PartitionPlan
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_GROUP_SECONDS: Final = 60.0


Execute: TypeAlias = "Callable[[Sequence[CompactTask]], Iterator[MergedFiles]]"
"""Runs tasks, in any order and any number in parallel; yields each result when its task is done."""

_LOG: Final = open_log("penstock.compaction")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """The result of a compaction for one partition.

    Attributes:
        files_before: live files at planning, with ``bytes_before``.
        files_in: files merged away, with ``bytes_in``.
        files_out: files that replaced them, with ``bytes_out``.
        skipped: why nothing, or only a part of the plan, was done; None if the whole plan was done.
        seconds: sum over all rewrites of the partition.
        dropped: number of merges that were discarded because another commit had replaced their files.
    """

    partition: str
    files_before: int
    bytes_before: int
    files_in: int
    bytes_in: int
    files_out: int
    bytes_out: int
    skipped: str | None
    seconds: float
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompactionResult(Result):
    """The result of a compaction.

    Attributes:
        snapshots: its snapshots, oldest first; empty if there was nothing to do, or no merge was committed.
        partitions: one result for each partition in scope, in manifest order.
    """

    snapshots: tuple[Snapshot, ...]
    partitions: tuple[PartitionResult, ...]


def run_compaction(
    plan: CompactionPlan,
    committer: TableCommitter,
    execute: Execute,
    *,
    commit_user: str,
    kind: CommitKind = CommitKind.COMPACT,
    on_done: Callable[[MergedFiles], None] = lambda _: None,
) -> CompactionResult:
    """Run all tasks of a plan and commit the merged files.

    A merge is discarded if another commit has replaced its inputs, even if these have already expired; the result of
    its partition counts it.

    Args:
        kind: as for ``commit_compacted``.
        on_done: called for every finished task, for a progress bar.
    """
    run = _Run(committer, MergeGroup(commit_user=commit_user, kind=kind, seconds=_GROUP_SECONDS))
    done = execute(plan.tasks)
    try:
        for merged in done:
            run.take(merged)
            on_done(merged)
        run.commit()
        run.check()
    except BaseException:
        run.discard(done)
        raise
    result = CompactionResult(
        snapshots=tuple(run.snapshots), partitions=tuple(run.result_of(partition) for partition in plan.partitions)
    )
    _LOG.info(
        "table %s: merged %s files into %s in %s snapshots",
        *(committer.ref.name, sum(each.files_in for each in result.partitions)),
        *(sum(each.files_out for each in result.partitions), len(result.snapshots)),
    )
    return result


def plan_only(plan: CompactionPlan) -> CompactionResult:
    """Return the result of a dry run: the inputs of the plan, without outputs."""
    return CompactionResult(
        snapshots=(),
        partitions=tuple(
            _result(
                partition,
                (file for task in partition.tasks for file in task.files),
                files_out=0,
                bytes_out=0,
                seconds=0.0,
                skipped=partition.skipped,
            )
            for partition in plan.partitions
        ),
    )


def merge_in_threads(
    tasks: Sequence[CompactTask],
    merge: Callable[[CompactTask], MergedFiles],
    *,
    threads: int,
    ref: TableRef,
    cancel: Callable[[], None] = lambda: None,
) -> Iterator[MergedFiles]:
    """Run ``merge`` on ``threads`` tasks in parallel.

    If the caller closes the iterator early, it waits for the running merges and deletes their files.

    Args:
        merge: ``merge_one`` bound to a table, or a function that runs it elsewhere.
        cancel: ends running calls of ``merge`` early.
    """
    waiting = deque(tasks)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        running: set[Future[MergedFiles]] = set()
        finished: set[Future[MergedFiles]] = set()
        try:
            while waiting or running:
                while waiting and len(running) < threads:
                    running.add(pool.submit(merge, waiting.popleft()))
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                while finished:
                    yield finished.pop().result()
        finally:
            # Not empty only if the caller closed the iterator or a merge raised: these are never committed.
            if running:
                cancel()
            for future in (*running, *finished):
                message = future.result().message if future.exception() is None else None
                if message is not None:
                    delete_new_files(ref, (message,))


def merge_one(task: CompactTask, ref: TableRef, *, job_id: str | None = None) -> MergedFiles:
    """Rewrite one task; a ``TableStoreError`` is returned in the result."""
    started = time.perf_counter()
    answer = partial(MergedFiles, task=task)
    try:
        message = rewrite(task, ref, job_id=job_id)
    except TableStoreError as error:
        return answer(message=None, error=error, seconds=time.perf_counter() - started)
    return answer(message=message, error=None, seconds=time.perf_counter() - started)


@dataclass(slots=True)
class _Run:
    committer: TableCommitter
    group: MergeGroup
    snapshots: list[Snapshot] = field(default_factory=list)
    _committed: dict[bytes, list[CommitMessage]] = field(default_factory=dict)
    _seconds: dict[bytes, float] = field(default_factory=dict)
    _dropped: dict[bytes, int] = field(default_factory=dict)
    _error: TableStoreError | None = None

    def take(self, merged: MergedFiles) -> None:
        partition = merged.task.partition
        self._seconds[partition] = self._seconds.get(partition, 0.0) + merged.seconds
        if merged.message is None:
            if is_lost(self.committer, merged.task, merged.error):
                self._drop(partition)
            else:
                self._error = self._error or merged.error
            return
        self.group.add(merged)
        if self.group.is_due:
            self.commit()

    def commit(self) -> None:
        done = self.group.commit(self.committer)
        if done.snapshot is not None:
            self.snapshots.append(done.snapshot)
        for message in done.committed:
            self._committed.setdefault(message.partition, []).append(message)
        for message in done.lost:
            self._drop(message.partition)

    def check(self) -> None:
        """Raise the error of the first merge that failed."""
        if self._error is not None:
            raise self._error

    def discard(self, done: Iterator[MergedFiles]) -> None:
        """Delete the merged files that will not be committed."""
        close = getattr(done, "close", None)
        if close is not None:
            close()
        self.group.discard(self.committer.ref)

    def result_of(self, partition: PartitionPlan) -> PartitionResult:
        messages = self._committed.get(partition.data, [])
        outputs = [file for message in messages for file in message.compact_after]
        dropped = self._dropped.get(partition.data, 0)
        result = _result(
            partition,
            (file for message in messages for file in message.compact_before),
            files_out=len(outputs),
            bytes_out=sum(file.file_size for file in outputs),
            seconds=self._seconds.get(partition.data, 0.0),
            skipped="another commit replaced the files meanwhile" if dropped else partition.skipped,
        )
        return replace(result, dropped=dropped)

    def _drop(self, partition: bytes) -> None:
        self._dropped[partition] = self._dropped.get(partition, 0) + 1


def _result(
    partition: PartitionPlan,
    inputs: Iterable[DataFileMeta],
    *,
    files_out: int,
    bytes_out: int,
    seconds: float,
    skipped: str | None,
) -> PartitionResult:
    inputs = tuple(inputs)
    return PartitionResult(
        partition=partition.name,
        files_before=partition.files,
        bytes_before=partition.bytes,
        files_in=len(inputs),
        bytes_in=sum(file.file_size for file in inputs),
        files_out=files_out,
        bytes_out=bytes_out,
        skipped=skipped,
        seconds=seconds,
    )
