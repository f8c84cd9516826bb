"""Run merges as Spark jobs of one task each.

A task takes a few seconds, so other work of the session soon gets a core, even with Spark's default scheduler. With a
job of many tasks, a micro-batch would wait for all of them. No row passes through the JVM.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException

from penstock.errors import StorageError, TableStoreError
from penstock.options import CompactOptions
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.shared_storage import check_files_arrived, mark_storage
from penstock.table.commit.cleanup import delete_job_files
from penstock.table.compact.job import merge_in_threads, merge_one
from penstock.table.compact.task import MergedFiles
from penstock.table.write.rolling import new_job_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from penstock.spark.shared_storage import StorageMark
    from penstock.table.compact.task import CompactTask
    from penstock.table.compact.write import MergeOn
    from penstock.table.ref import TableRef

OURS: Final = "penstock.errors."
"""What the names of Penstock's errors begin with in texts of Spark."""

# Spark puts the error of the task at the end of the line: "... (host executor driver): java.io.IOException: ...".
_TASK_ERROR: Final = re.compile(r"most recent failure: .*?\)\s*:\s*(?P<error>.+)")
POOL: Final = "penstock-compaction"
"""Scheduler pool of the merges, where the session has a fair scheduler."""

# Spark kills the Python of a cancelled task after two pauses of 2 s each (spark.python.task.killTimeout).
_KILL_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.05


def failed_job(ref: TableRef, work: str, error: Exception) -> TableStoreError:
    """Return the error to raise instead of Spark's.

    Args:
        work: what the job does, for example ``merges 3 files``.
    """
    cause = spark_cause(error)
    text = f"table {ref.name}: the Spark job that {work} failed or was cancelled, and it left no files: {cause}"
    return StorageError(text) if f"{OURS}StorageError" in cause else TableStoreError(text)


def spark_cause(error: Exception) -> str:
    """Return the part of Spark's error text that names the cause, without stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(OURS)]
    if ours:
        return ours[-1]
    of_task = [found["error"] for line in lines if (found := _TASK_ERROR.search(line))]
    return (of_task or lines or [type(error).__name__])[0]


def merge_on_executors(spark: SparkSession, *, is_staged: bool = False) -> MergeOn:
    """Return what runs merges of a table on the executors; ``is_staged`` as for ``SparkMerger``."""
    return lambda ref: SparkMerger(spark=spark, ref=ref, is_staged=is_staged).execute


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMerger:
    """Runs merges of one table on the executors. Thread-safe.

    Attributes:
        is_staged: the table may have no schema on storage yet.
        tag: tag of its Spark jobs, by which they are cancelled.
        is_cancelled: set when no further job may start.
    """

    spark: SparkSession
    ref: TableRef
    is_staged: bool = False
    tag: str = field(default_factory=lambda: f"{POOL}-{uuid.uuid4()}")
    is_cancelled: threading.Event = field(default_factory=threading.Event)

    def merge(self, task: CompactTask) -> MergedFiles:
        """Merge the files of one task in a separate Spark job, and wait for it."""
        job_id = new_job_id()
        try:
            merged, is_alone = self._run(task, job_id)
            if merged.message is not None:
                check_files_arrived(self.ref, [merged.message])
        except BaseException as error:
            self._wait_for_tasks(job_id)
            delete_job_files(self.ref, job_id, keep=())
            if isinstance(error, Py4JError | PySparkException):
                raise failed_job(self.ref, f"merges {len(task.files)} files", error) from error
            raise
        if not is_alone:
            self._wait_for_tasks(job_id)
            kept = merged.message.compact_after if merged.message is not None else ()
            delete_job_files(self.ref, job_id, keep={file.file_name for file in kept})
        return merged

    def merge_at(self, task: CompactTask, ref: TableRef) -> MergedFiles:
        """Call ``merge`` with the current state of the table, whose options may have changed."""
        return replace(self, ref=ref).merge(task)

    def execute(self, tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        """Run tasks, limited by the table's options or the number of cores; yield results as they complete."""
        if not tasks:
            return
        ensure_python_worker(self.spark)
        most = self.ref.parsed(CompactOptions).max_tasks
        threads = most or max(1, self.spark.sparkContext.defaultParallelism)
        yield from merge_in_threads(tasks, self.merge, threads=threads, ref=self.ref, cancel=self.cancel)

    def cancel(self) -> None:
        """Cancel the running jobs, and prevent further jobs from starting."""
        self.is_cancelled.set()
        self.spark.sparkContext.cancelJobsWithTag(self.tag)

    def _run(self, task: CompactTask, job_id: str) -> tuple[MergedFiles, bool]:
        """Run the job; return its result, and whether no other attempt can have left files behind."""
        context = self.spark.sparkContext
        context.setJobGroup(job_id, f"{self.ref.name}: merging {len(task.files)} files")
        context.addJobTag(self.tag)
        # Spark cancels running jobs only, not jobs that start later.
        if self.is_cancelled.is_set():
            raise TableStoreError(f"table {self.ref.name}: a merge was cancelled before it began")
        context.setLocalProperty("spark.scheduler.pool", POOL)
        # Not first(), which does not read all rows: Spark would end the Python worker, and the next merge would wait
        # for a new worker.
        rows = context.parallelize([task], 1).map(
            partial(_merge, ref=self.ref, job_id=job_id, storage=mark_storage(self.ref, is_staged=self.is_staged))
        )
        ((attempt, merged),) = rows.collect()
        speculates = context.getConf().get("spark.speculation", "false") == "true"
        return merged, attempt == 0 and not speculates

    def _wait_for_tasks(self, job_id: str) -> None:
        """Wait until no task of the job is running: a cancelled task continues to write until Spark kills it."""
        tracker = self.spark.sparkContext.statusTracker()
        deadline = time.monotonic() + _KILL_SECONDS
        while time.monotonic() < deadline:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(job_id)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            if not any(stage.numActiveTasks for stage in stages if stage is not None):
                return
            time.sleep(_LOOK_SECONDS)


def _merge(task: CompactTask, *, ref: TableRef, job_id: str, storage: StorageMark | None) -> tuple[int, MergedFiles]:
    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    not_shared = None if storage is None else storage.error_here(ref)
    if not_shared is not None:
        return attempt, MergedFiles(task=task, message=None, error=not_shared, seconds=0.0)
    merged = merge_one(task, ref, job_id=job_id)
    if isinstance(merged.error, StorageError) and not isinstance(merged.error, LookupError):
        raise merged.error  # a retry of the task may succeed
    return attempt, merged
