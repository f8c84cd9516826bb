"""Background compaction of a streaming write: jobs of one task that run after pending tasks of micro-batches."""

from __future__ import annotations

import atexit
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.options import CompactOptions
from penstock.spark.compact.job import SparkMerger
from penstock.spark.python_worker import ensure_python_worker
from penstock.table.compact.background import BackgroundCompactor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.table.compact.task import CompactionState, CompactTask, MergedFiles
    from penstock.table.ref import TableRef

_MAX_TASKS: Final = 64
# Maximum time a merge waits while tasks of other jobs wait for a core; after that it runs, or small files would pile
# up.
_MAX_WAIT_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05


class StreamCompaction:
    """Compacts the table of one query, from the first commit of the query to its end."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._compactor: BackgroundCompactor | None = None
        self._is_over = False
        self._lock = threading.Lock()

    @property
    def state(self) -> CompactionState | None:
        """State of the compaction; None if it has not started."""
        return None if self._compactor is None else self._compactor.state

    def note_commit(self, ref: TableRef, query_id: str) -> None:
        """Make the compaction plan again after a commit; the first call starts it. Returns immediately.

        Args:
            ref: the table as it is now.
        """
        with self._lock:
            if self._is_over:
                return
            if self._compactor is None:
                self._compactor = self._start(ref, query_id)
            self._compactor.wake()

    def end(self, *, is_at_once: bool) -> None:
        """End the compaction, either after the pending merges or immediately, deleting unfinished files."""
        with self._lock:
            is_first, self._is_over = not self._is_over, True
        if self._compactor is None:
            return
        if is_at_once:
            self._compactor.stop()
        elif is_first:
            self._compactor.finish()
        atexit.unregister(self._end_with_process)

    def _start(self, ref: TableRef, query_id: str) -> BackgroundCompactor:
        ensure_python_worker(self._spark)
        merger = SparkMerger(spark=self._spark, ref=ref)
        cores = self._spark.sparkContext.defaultParallelism
        most = ref.parsed(CompactOptions).max_tasks or max(1, cores - 1)
        compactor = BackgroundCompactor(
            ref,
            partial(self._merge, merger),
            commit_user=f"{query_id}-compact",
            max_tasks=min(most, _MAX_TASKS),
            cancel=partial(_cancel, merger),
        )
        # Runs before PySpark ends its JVM, because handlers run in reverse order of registration.
        atexit.register(self._end_with_process)
        compactor.start()
        return compactor

    def _end_with_process(self) -> None:
        self.end(is_at_once=True)

    def _merge(self, merger: SparkMerger, task: CompactTask, ref: TableRef) -> MergedFiles:
        """Run one merge, after tasks of other jobs that currently wait for a core."""
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        while self._others_wait() and time.monotonic() < deadline and not self._is_over:
            time.sleep(_LOOK_SECONDS)
        return merger.merge_at(task, ref)

    def _others_wait(self) -> bool:
        """Whether tasks of active stages wait for a core."""
        tracker = self._spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
        return any(
            stage.numTasks > stage.numCompletedTasks + stage.numActiveTasks for stage in stages if stage is not None
        )


def _cancel(merger: SparkMerger) -> None:
    # A stopped session has cancelled its jobs and has no context.
    with suppress(PySparkException, Py4JError, AttributeError):
        merger.cancel()
