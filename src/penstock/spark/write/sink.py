"""Write DataFrames to data files, without a shuffle unless the table's options require one."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.shared_storage import check_files_arrived, mark_storage
from penstock.spark.write.distribute import distribute
from penstock.spark.write.native_sink import write_natively
from penstock.spark.write.task import OUTCOME_SCHEMA, TaskOutcome, WriteTask
from penstock.table.commit.discard import delete_job_files, delete_new_files
from penstock.table.write.writer import new_job_id
from penstock.table.write.writer_rule import warn_too_many_writers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


def write_dataframe(
    df: DataFrame,
    ref: TableRef,
    job_id: str | None = None,
    *,
    file_rows: int | None = None,
    is_staged: bool = False,
) -> tuple[CommitMessage, ...]:
    """Write the rows of a DataFrame to data files of a table; nothing is committed.

    Args:
        job_id: from ``new_job_id``; None to create one.
        file_rows: approximate number of rows that reach the target file size, if the caller knows it.
        is_staged: the table may have no schema on storage yet.

    Returns:
        Messages in the order of the DataFrame: one Spark partition after another, each in its own order.

    Raises:
        SchemaMismatchError: the rows do not match the table; no files are left.
        StorageError: a worker does not share the table's storage; the files that the driver sees are deleted.
    """
    job_id = job_id or new_job_id()
    native = write_natively(df, ref, job_id, file_rows)
    if native is not None:
        return native
    ensure_python_worker(df.sparkSession)
    names = tuple(df.columns)
    task = WriteTask(ref=ref, job_id=job_id, storage=mark_storage(ref, is_staged=is_staged), names=names)
    # mapInArrow looks up columns by name, which fails for names with a dot and for duplicate names.
    plain = df.toDF(*(f"c{number}" for number in range(len(names))))
    try:
        rows = distribute(plain, ref, names).mapInArrow(task, OUTCOME_SCHEMA).collect()
    except BaseException:
        # The messages of finished tasks are lost, so find their files by the job id.
        delete_job_files(ref, job_id, keep=())
        raise
    speculates = df.sparkSession.conf.get("spark.speculation", "false") == "true"
    return collect_messages(ref, [pickle.loads(row.outcome) for row in rows], job_id, speculates=speculates)  # noqa: S301 - our own tasks wrote it


def collect_messages(
    ref: TableRef, outcomes: Iterable[TaskOutcome], job_id: str, *, speculates: bool
) -> tuple[CommitMessage, ...]:
    """Join the messages of a job's tasks; delete the files of other attempts.

    Args:
        outcomes: in task order.
        speculates: whether speculative execution is on, so that tasks may have had other attempts.

    Raises:
        TableStoreError: a task failed (the error of the first such task); the files of all other tasks are deleted.
            Or the driver does not see a file that a task has written.
    """
    outcomes = tuple(outcomes)
    messages = tuple(message for outcome in outcomes for message in outcome.messages)
    for outcome in outcomes:
        if outcome.error is not None:
            delete_new_files(ref, messages)
            raise outcome.error
    check_files_arrived(ref, messages)
    if speculates or any(outcome.attempt > 0 for outcome in outcomes):
        delete_job_files(ref, job_id, keep={file.file_name for message in messages for file in message.new_files})
    warn_too_many_writers(ref, messages, tasks=sum(bool(outcome.messages) for outcome in outcomes))
    return messages
