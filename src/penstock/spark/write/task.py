"""Code that runs inside a Spark task that writes."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext

from penstock.errors import StorageError, TableStoreError
from penstock.spark.batches import from_spark_batch
from penstock.table.commit.cleanup import delete_job_files
from penstock.table.commit.put import flush_new_files
from penstock.table.write.check_rows import conform_batches, plan_conform
from penstock.table.write.writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from penstock.spark.shared_storage import StorageMark
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

OUTCOME_SCHEMA: Final = "outcome binary"
QUERY_ID: Final = "sql.streaming.queryId"
"""Local property of Spark with the id of the streaming query, which does not change over restarts."""
_WORKERS_END_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """Result that a write task sends to the driver.

    Attributes:
        messages: in the order of the task's rows; empty after an error.
        error: why no attempt can write the task's rows; None if they were written. It is returned, not raised: so the
            user gets it without a Java stack trace, and the driver knows the files of the other tasks.
        attempt: 0 for the first attempt of the task in its stage, which Spark may run again as a whole.
        stage_id: of the stage; None outside of Spark.
    """

    messages: tuple[CommitMessage, ...] = ()
    error: TableStoreError | None = None
    attempt: int = 0
    stage_id: int | None = None


def write_batches(ref: TableRef, batches: Iterable[pa.RecordBatch], *, job_id: str) -> tuple[CommitMessage, ...]:
    """Write the rows of a task to data files; a task that fails leaves no file.

    Args:
        batches: in the order to keep; all have the same schema, which may differ from the table's canonical one.
        job_id: prefix of the ids in the names of the files.
    """
    with TableWriter(ref, job_id=job_id) as writer:
        plan = None
        for spark_batch in batches:
            batch = from_spark_batch(spark_batch, ref.schema.fields)
            plan = plan or plan_conform(ref.schema, batch.schema, ref.name)
            for rows in conform_batches([batch], plan):
                writer.write(rows)
        messages = writer.prepare_commit()
        # Flush here: in parallel with the other tasks, on the machine that has the files in its page cache.
        flush_new_files(ref, messages)
        return messages


def delete_failed_job(ref: TableRef, job_id: str, keep: Collection[str] = ()) -> None:
    """Delete the data files of a job of which a task has failed, except those in ``keep``; it takes a second.

    Spark does not wait for the Python workers of tasks that fail or are killed. Such a worker sees the end of its rows,
    and creates its file then.
    """
    delete_job_files(ref, job_id, keep=keep)
    time.sleep(_WORKERS_END_SECONDS)
    delete_job_files(ref, job_id, keep=keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """Writes the rows of one task; Spark pickles it.

    Attributes:
        storage: identity of the table that the driver sees; None if storage is the same on every machine.
        names: names of the table's columns, in the order of a batch's columns; None if batches have these names.
    """

    ref: TableRef
    job_id: str
    storage: StorageMark | None
    names: tuple[str, ...] | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> TaskOutcome:
        """Write the rows. Raise only errors that a retry of the task may avoid; return the others."""
        context = TaskContext.get()
        answer = partial(TaskOutcome)
        if context is not None:
            answer = partial(TaskOutcome, attempt=context.attemptNumber(), stage_id=context.stageId())
        not_shared = None if self.storage is None else self.storage.error_here(self.ref)
        if not_shared is not None:
            return answer(error=not_shared)
        if self.names is not None:
            names = list(self.names)
            batches = (batch.rename_columns(names) for batch in batches)
        try:
            return answer(messages=write_batches(self.ref, batches, job_id=self.job_id))
        except StorageError:
            raise
        except TableStoreError as error:
            return answer(error=error)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows and yield the pickled outcome; for ``mapInArrow``."""
        yield pa.record_batch({"outcome": pa.array([pickle.dumps(self.run(batches))], pa.binary())})
