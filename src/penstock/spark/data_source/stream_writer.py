"""``writeStream.format("penstock")``: streaming writes through Spark's own API.

It guarantees less than ``Table.write_stream``, because the committing process has no access to the query or its
checkpoint:

- No digest distinguishes a checkpoint that was set back by one batch from a replay.
- No lease refuses a second live query.
- The search for the query's own snapshots begins at the latest snapshot, and reads all snapshots if the query has none.
- A query whose last snapshot has expired is refused.
- Columns that are added to the table later end the query.

Source:
    PySpark's Python Data Source API: each process of each batch creates its own writer; the tasks see
    ``sql.streaming.queryId``; ``abort`` is called after a failed ``commit`` too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark import TaskContext

from penstock.errors import InvalidOptionError
from penstock.spark.data_source.tracebacks import without_frames
from penstock.spark.shared_storage import mark_storage
from penstock.spark.versions.python_api import datasource
from penstock.spark.write.sink import collect_messages
from penstock.spark.write.task import QUERY_ID, TaskOutcome, WriteTask, delete_failed_job
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.compact.write import TableWrite, compact_written
from penstock.table.partition_scope import WholeTable
from penstock.table.stream_sink.committer import Batch, commit_unnoted
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.table.ref import TableRef


@dataclass
class StreamOutcome(datasource.WriterCommitMessage):
    """Result that one task sends to ``commit``, which cannot read Spark's local properties.

    Attributes:
        job_id: job id of the writer in the task; the writer that commits is another object, with another id.
    """

    outcome: TaskOutcome
    commit_user: str
    job_id: str


class PenstockStreamWriter(datasource.DataSourceStreamArrowWriter):
    """Writes files in the tasks and commits once for all tasks: one snapshot per micro-batch, each exactly once.

    Args:
        overwrite: output mode ``complete``: each batch replaces all rows. (Spark itself refuses ``update``.)
    """

    def __init__(self, ref: TableRef, *, overwrite: bool) -> None:
        self._task = WriteTask(ref=ref, job_id=new_job_id(), storage=mark_storage(ref))
        self._overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> datasource.WriterCommitMessage:  # type: ignore[override] # PySpark's own classes differ so too
        """Write the rows of one task."""
        context = TaskContext.get()
        query_id = context.getLocalProperty(QUERY_ID) if context is not None else None
        if query_id is None:
            raise InvalidOptionError(
                f"table {self._task.ref.name}: Spark does not say which query this is; write with Table.write_stream"
            )
        return StreamOutcome(self._task.run(iterator), query_id, self._task.job_id)

    @without_frames
    def commit(self, messages: list[datasource.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        """Commit the rows of all tasks as one snapshot, unless the batch is already committed; then merge small files.

        The process ends with the micro-batch, so it merges before it returns.
        """
        found = _outcomes(messages)
        if not found:
            return  # no tasks, no rows
        ref = self._task.ref
        files = collect_messages(ref, [each.outcome for each in found], found[0].job_id, None)
        files = TableWrite(ref=ref).merge(files)
        query_id = found[0].commit_user
        scope = WholeTable() if self._overwrite else None
        commit_unnoted(ref, Batch(commit_user=query_id, id=batchId), files, scope=scope)
        if not self._overwrite:
            compact_written(ref, files, commit_user=f"{query_id}-compact")

    def abort(self, messages: list[datasource.WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - PySpark's
        """Delete the files that the tasks of a failed job have written."""
        found = _outcomes(messages)
        if not found or len(found) == len(messages):
            # All tasks succeeded, so the commit failed. Only the commit knows which files may be live: delete none.
            return
        for each in found:
            delete_new_files(self._task.ref, each.outcome.messages)
        delete_failed_job(self._task.ref, found[0].job_id)


def _outcomes(messages: list[datasource.WriterCommitMessage | None]) -> list[StreamOutcome]:
    return [cast("StreamOutcome", message) for message in messages if message is not None]
