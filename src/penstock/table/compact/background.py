"""Background compaction of a stream: a thread that plans after commits, merges a few tasks in parallel, commits them.

It never delays or fails a commit of the stream: it has its own committer and its own thread. A merge that loses a race
is discarded and planned again. A merge that fails is logged and retried after a pause, as is any other error. If
several streams write to a table, a lease lets only one of them compact; when its process dies, another one takes over.

The table's small files are followed from snapshot to snapshot.

Source:
    Paimon ``core:append/AppendCompactCoordinator.java``, ``flink:sink/AppendCompactWorkerOperator.java``;
    docs/spec/compaction.md section 4.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import CommitConflictError, LeaseHeldError, TableStoreError
from penstock.format.snapshot import CommitKind
from penstock.options import BucketOptions, CompactOptions
from penstock.printable import open_log
from penstock.table.actions.changes import open_committer
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.compact.commit import MergeGroup, is_lost
from penstock.table.compact.coordinator import SmallFiles
from penstock.table.compact.plan import check_compactable, merges_on_its_own
from penstock.table.compact.queue_files import QueueFiles
from penstock.table.compact.task import CompactionState, CompactSizes, waiting_of
from penstock.table.lease import LeaseKeeper, acquire, find_holder
from penstock.table.read.live import load_deltas, load_live_files, snapshots_since
from penstock.table.read.scan import load_vector_places
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import DataFileMeta, FileKey
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.compact.commit import Compacted
    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.ref import TableRef


@dataclass(slots=True)
class CompactionWatch:
    """Plans merges while a table grows. For one thread; keeps only the small files in memory.

    It scans the whole table at the start, after a rollback, and when snapshots expired before it saw them. In between
    it reads the deltas only.

    Attributes:
        ref: replace it by ``use`` when the table's options have changed.
    """

    ref: TableRef
    store: MetadataStore
    _files: SmallFiles | QueueFiles = field(init=False)
    _seen: Snapshot | None = field(init=False, default=None)
    _commits: int = field(init=False, default=0)
    # Running tasks by their first file, which is in no other task.
    _assigned: dict[FileKey, CompactTask] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Start without any snapshot read."""
        self._files = self._new_files()

    def waiting(self) -> dict[bytes, list[DataFileMeta]]:
        """Return the small files that wait for a merge, by partition."""
        return self._files.waiting()

    def use(self, ref: TableRef) -> None:
        """Use the changed options of a table from the next round on."""
        if ref.schema.id != self.ref.schema.id:
            self.ref = ref
            self._seen = None

    def plan(self) -> tuple[CompactTask, ...]:
        """Read the snapshots committed since the last call, and plan.

        The caller must return every task by ``finish``.

        Raises:
            StorageError, FormatError: metadata cannot be read; call again.
            UnsupportedFeatureError: merges would change the meaning of the table's files.
        """
        latest = self.store.load_latest_snapshot()
        if latest is None:
            return ()
        check_compactable(self.ref)
        if not self._follow(latest):
            self._files = self._new_files()
            self._files.start(load_live_files(self.store, latest))
            for task in self._assigned.values():
                self._files.hold(task)
            self._seen = latest
        places = load_vector_places(self.store, latest)
        tasks = tuple(task.with_vectors(places) for task in self._cut((*self._files.plan(), *self._full_tasks())))
        self._assigned.update((task.keys[0], task) for task in tasks)
        return tasks

    def finish(self, task: CompactTask, *, is_done: bool) -> None:
        """Take back a task.

        Args:
            is_done: the merge was committed; if not, its files are planned again where they are still live.
        """
        self._assigned.pop(task.keys[0], None)
        self._files.finish(task, is_done=is_done)

    def _cut(self, tasks: Iterable[CompactTask]) -> Iterator[CompactTask]:
        """Yield as many tasks as one round may have, at least one; the others wait for the next round."""
        max_files = CompactSizes.of(self.ref).round_files
        files = 0
        for task in tasks:
            if files and files + len(task.files) > max_files:
                self.finish(task, is_done=False)
            else:
                files += len(task.files)
                yield task

    def _full_tasks(self) -> tuple[CompactTask, ...]:
        """Return the merges of ``full-compaction.delta-commits``, if enough commits were made since the last ones."""
        every = self.ref.parsed(CompactOptions).delta_commits
        if every is None or self._commits < every or not isinstance(self._files, QueueFiles):
            return ()
        self._commits = 0
        return self._files.plan_fully()

    def _follow(self, latest: Snapshot) -> bool:
        """Apply the snapshots since the last call; False when a full scan is necessary."""
        snapshots = None if self._seen is None else snapshots_since(self.store, self._seen, latest)
        deltas = None if snapshots is None else load_deltas(self.store, snapshots)
        if deltas is None:
            return False
        for snapshot, entries in deltas:
            self._files.take(entries)
            if entries and snapshot.commit_kind is CommitKind.APPEND:
                self._commits += 1
            self._seen = snapshot
        return True

    def _new_files(self) -> SmallFiles | QueueFiles:
        sizes = CompactSizes.of(self.ref)
        is_queue = self.ref.parsed(BucketOptions).bucket > 0
        return QueueFiles(sizes) if is_queue else SmallFiles(sizes)


_MAX_PAUSE_SECONDS: Final = 60.0
_DOUBLINGS: Final = 10


@dataclass(slots=True, kw_only=True)
class RetryQueue:
    """Failed tasks of one round, and the pause before their retry, which grows with each failed round.

    Attributes:
        first_pause_seconds: half of the pause after one failure; each further failure doubles it, up to a minute.
        failures: failures in a row, of rounds and of whole attempts to plan and commit.
    """

    first_pause_seconds: float
    failures: int = 0
    _tasks: list[CompactTask] = field(default_factory=list)
    _due: float = 0.0

    def __bool__(self) -> bool:
        """Whether any task waits for its retry."""
        return bool(self._tasks)

    @property
    def pause_seconds(self) -> float:
        """Pause before the next retry, which depends on ``failures``."""
        return min(self.first_pause_seconds * (1 << min(self.failures, _DOUBLINGS)), _MAX_PAUSE_SECONDS)

    def put(self, task: CompactTask) -> None:
        """Add a failed task to the others of its round."""
        if not self._tasks:
            self.failures += 1
            self._due = time.monotonic() + self.pause_seconds
        self._tasks.append(task)

    def take_due(self) -> list[CompactTask]:
        """Remove and return all tasks if their retry is due; else none."""
        return self.take_all() if time.monotonic() >= self._due else []

    def take_all(self) -> list[CompactTask]:
        """Remove and return all tasks."""
        tasks, self._tasks = self._tasks, []
        return tasks


LEASE_NAME: Final = "compaction"
_LOG: Final = open_log(__name__)
_IDLE_SECONDS: Final = 10.0
_GROUP_SECONDS: Final = 10.0


class BackgroundCompactor:
    """Compacts a table until ``stop``.

    Args:
        ref: the table; changes of its stored options take effect while the compactor runs.
        merge: runs one merge of the table it is given, on any thread; ``merge_one``, or a function that runs it
            elsewhere.
        commit_user: of the COMPACT snapshots.
        max_tasks: maximum number of parallel merges.
        idle_seconds: pause between checks of the table if ``wake`` is not called.
        cancel: ends calls of ``merge`` early, those that run and later ones.
    """

    def __init__(
        self,
        ref: TableRef,
        merge: Callable[[CompactTask, TableRef], MergedFiles],
        *,
        commit_user: str,
        max_tasks: int,
        idle_seconds: float = _IDLE_SECONDS,
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self._watch = CompactionWatch(ref, MetadataStore(ref))
        self._committer: TableCommitter = open_committer(ref, adds_rows=False)
        self._locator = FileLocator.of(ref)
        self._merge = merge
        self._group = MergeGroup(commit_user=commit_user, seconds=_GROUP_SECONDS)
        self._max_tasks = max_tasks
        self._idle_seconds = idle_seconds
        self._cancel = cancel
        self._queue: deque[CompactTask] = deque()
        self._running: dict[Future[MergedFiles], CompactTask] = {}
        self._state = CompactionState()
        self._is_stopping = False
        self._is_finishing = False
        self._retries = RetryQueue(first_pause_seconds=idle_seconds)
        self._last_logged: tuple[int, str] | None = None
        self._wakeup = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"compact {ref.name}", daemon=True)

    @property
    def state(self) -> CompactionState:
        """Progress so far; may be read from any thread."""
        return self._state

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Notify the thread of a new commit. Returns immediately."""
        self._wakeup.set()

    def stop(self) -> None:
        """Cancel running merges, delete uncommitted files, release the lease; returns when that is done."""
        self._is_stopping = True
        self._wakeup.set()
        self._cancel()
        self._thread.join()

    def finish(self) -> None:
        """Run all merges that are possible now, then release the lease; returns when that is done.

        Returns without a merge if another process holds the lease. An error, or ``stop``, ends it early.
        """
        self._is_finishing = True
        self._wakeup.set()
        self._thread.join()

    def _run(self) -> None:
        with ThreadPoolExecutor(max_workers=self._max_tasks, thread_name_prefix="merge") as pool:
            while not self._is_stopping:
                try:
                    keeper = self._take_lease()
                    if keeper is not None:
                        with keeper:
                            self._compact(pool, keeper)
                except (TableStoreError, MemoryError) as error:
                    self._retries.failures += 1
                    self._note_error(error)
                except RuntimeError as error:
                    # The program exits, and Python starts no more threads for merges and commits. It refuses them while
                    # its main thread is alive, too.
                    if threading.main_thread().is_alive() and "shutdown" not in str(error):
                        raise
                    return
                if self._is_finishing:
                    break
                self._wait(self._retries.pause_seconds)

    def _take_lease(self) -> LeaseKeeper | None:
        """Take the lease if it is free; return None while another process holds it."""
        ref = self._watch.ref
        if find_holder(ref.file_io, ref.location, LEASE_NAME) is not None:
            return None
        try:
            lease = acquire(ref.file_io, ref.location, LEASE_NAME)
        except LeaseHeldError:
            return None
        self._state = replace(self._state, is_active=True)
        return LeaseKeeper(lease)

    def _compact(self, pool: ThreadPoolExecutor, keeper: LeaseKeeper) -> None:
        """Compact as the holder of the lease, until stopped; raises when the lease is lost or an operation fails."""
        try:
            while not self._is_stopping:
                is_last = self._is_finishing
                merges_before = self._state.committed_merges
                keeper.check()
                self._release(self._retries.take_due())
                self._plan_changes()
                self._submit(pool)
                self._commit_finished()
                if not self._queue and not self._running:
                    if not self._retries:
                        self._retries.failures = 0
                        self._state = replace(self._state, last_error=None)
                    # A merge that ended in this pass has a result that was not planned yet, and may be merged again.
                    if is_last and self._state.committed_merges == merges_before:
                        return
                if not self._queue or self._is_at_work():
                    self._wait(self._idle_seconds)
        finally:
            self._abandon()
            self._state = replace(self._state, is_active=False, running_tasks=0)

    def _plan_changes(self) -> None:
        """Plan for the commits since the last call, with the table's current options."""
        store = self._watch.store
        latest = store.load_latest_schema()
        if latest.id != self._watch.ref.schema.id:
            ref = replace(self._watch.ref, schema=latest)
            self._watch.use(ref)
            self._committer = open_committer(ref, adds_rows=False)
        if not merges_on_its_own(self._watch.ref):
            return  # the option was set while the stream runs: a dedicated job compacts the table
        self._queue.extend(self._watch.plan())
        found = self._watch.waiting()
        self._state = replace(
            self._state,
            waiting_files=sum(map(len, found.values())),
            waiting_bytes=sum(file.file_size for files in found.values() for file in files),
            waiting=waiting_of(found, self._locator),
            running_tasks=len(self._queue) + len(self._running) + len(self._group.tasks),
        )

    def _submit(self, pool: ThreadPoolExecutor) -> None:
        while self._queue and not self._is_at_work():
            task = self._queue.popleft()
            future = pool.submit(self._merge, task, self._watch.ref)
            self._running[future] = task
            future.add_done_callback(lambda _: self._wakeup.set())

    def _is_at_work(self) -> bool:
        """Whether ``max_tasks`` merges are running."""
        return sum(not future.done() for future in self._running) >= self._max_tasks

    def _commit_finished(self) -> None:
        """Commit the finished merges as one snapshot, when there are enough, one has failed, or no other is running.

        Failed merges go to the retry queue; until their retry, their files are in no other task.
        """
        failed: list[tuple[CompactTask, BaseException | None]] = []
        for future in [future for future in self._running if future.done()]:
            task = self._running.pop(future)
            error = future.exception() or future.result().error
            if error is None and future.result().message is not None:
                self._group.add(future.result())
            else:
                failed.append((task, error))
        is_last = not self._queue and not self._running
        if is_last or failed or self._group.is_due:
            self._commit()
            self._retry_later(failed)

    def _retry_later(self, failed: Sequence[tuple[CompactTask, BaseException | None]]) -> None:
        """Count a merge as lost if an input was replaced and has expired; log other errors and retry those merges."""
        for task, error in failed:
            if self._is_stopping or error is None:
                self._watch.finish(task, is_done=False)
            elif is_lost(self._committer, task, error):
                self._watch.finish(task, is_done=False)
                self._state = replace(self._state, lost=self._state.lost + 1)
            else:
                self._retries.put(task)
                self._note_error(error)

    def _release(self, tasks: Iterable[CompactTask]) -> None:
        """Let the files of uncommitted tasks be planned again."""
        for task in tasks:
            self._watch.finish(task, is_done=False)

    def _commit(self) -> None:
        """Commit the group, and report to the watch for each task whether it was committed."""
        tasks = self._group.tasks
        done: Compacted | None = None
        try:
            done = self._group.commit(self._committer)
        except CommitConflictError:
            # Appends won every race. Only the work of the merges is lost; the stream's commits have priority.
            self._state = replace(self._state, lost=self._state.lost + len(tasks))
        finally:
            committed = set() if done is None else {each.replaced[0] for each in done.committed}
            for task in tasks:
                self._watch.finish(task, is_done=task.keys[0] in committed)
        if done is not None:
            self._count(done)

    def _count(self, done: Compacted) -> None:
        inputs = [file for message in done.committed for file in message.compact_before]
        outputs = [file for message in done.committed for file in message.compact_after]
        state = self._state
        self._state = replace(
            state,
            committed_merges=state.committed_merges + len(done.committed),
            lost=state.lost + len(done.lost),
            files_in=state.files_in + len(inputs),
            bytes_in=state.bytes_in + sum(file.file_size for file in inputs),
            files_out=state.files_out + len(outputs),
            bytes_out=state.bytes_out + sum(file.file_size for file in outputs),
        )

    def _abandon(self) -> None:
        """Cancel the running merges, wait for them, and delete their files."""
        if self._running:
            self._cancel()
        for future in self._running:
            message = future.result().message if future.exception() is None else None
            if message is not None:
                delete_new_files(self._watch.ref, (message,))
        self._release((*self._running.values(), *self._group.tasks, *self._queue, *self._retries.take_all()))
        self._group.discard(self._watch.ref)
        self._running.clear()
        self._queue.clear()

    def _note_error(self, error: BaseException) -> None:
        self._state = replace(self._state, last_error=str(error))
        # A single failure is normal; repeated ones are worth a warning.
        level = logging.INFO if self._retries.failures == 1 else logging.WARNING
        if (level, str(error)) != self._last_logged:
            _LOG.log(
                level, "table %s: background compaction failed and will be retried: %s", self._watch.ref.name, error
            )
        self._last_logged = (level, str(error))

    def _wait(self, seconds: float) -> None:
        if not self._is_stopping:
            self._wakeup.wait(seconds)
        self._wakeup.clear()
