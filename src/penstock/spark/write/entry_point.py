"""``writeStream.format("penstock")``: Spark's own door for streams.

It does less than ``Table.write_stream``, because it commits in a process that sees neither the query's checkpoint nor
the query: no digest tells a checkpoint that was set back by one batch from a replay, no lease refuses a second live
query, the search for the query's own snapshots begins at the latest one and reads all of them when there is none, a
query whose last snapshot has expired is refused, and columns that the table gets later end the query.

Source:
    PySpark's Python Data Source API: the writer is made anew in each process of each batch; the tasks see
    ``sql.streaming.queryId``; ``abort`` is called after a failed ``commit`` too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.errors import InvalidOptionError
from penstock.spark.plain_errors import without_frames
from penstock.spark.shared_storage import mark_storage
from penstock.spark.write.sink import collect_messages
from penstock.spark.write.task import TaskOutcome, WriteTask
from penstock.table.commit.discard import delete_job_files, delete_new_files
from penstock.table.compact.local import run_here
from penstock.table.compact.precommit import merge_if_asked
from penstock.table.stream_sink.committer import Batch, commit_unnoted
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.table.ref import TableRef

QUERY_ID: Final = "sql.streaming.queryId"
"""Local property of Spark: the query's id, which it keeps over restarts."""


@dataclass
class StreamOutcome(WriterCommitMessage):
    """What one task hands to ``commit``, which sees no local properties.

    Attributes:
        job_id: of the writer that the task had; the one that commits is another.
    """

    outcome: TaskOutcome
    commit_user: str
    job_id: str


class PenstockStreamWriter(DataSourceStreamArrowWriter):
    """Writes in the tasks, commits once for all of them: one snapshot a micro-batch, each exactly once.

    Args:
        overwrite: output mode ``complete``: each batch takes the place of all rows. (Spark itself refuses ``update``.)
    """

    def __init__(self, ref: TableRef, *, overwrite: bool) -> None:
        self._task = WriteTask(ref=ref, job_id=new_job_id(), storage=mark_storage(ref))
        self._overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override] # PySpark's own classes differ so too
        """Write one task's rows."""
        context = TaskContext.get()
        query_id = context.getLocalProperty(QUERY_ID) if context is not None else None
        if query_id is None:
            raise InvalidOptionError(
                f"table {self._task.ref.name}: Spark does not say which query this is; write with Table.write_stream"
            )
        return StreamOutcome(self._task.run(iterator), query_id, self._task.job_id)

    @without_frames
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        """Make the rows of all tasks one snapshot, unless the batch has one."""
        found = _outcomes(messages)
        if not found:
            return  # no tasks, no rows
        ref = self._task.ref
        files = collect_messages(ref, [each.outcome for each in found], found[0].job_id, speculates=False)
        files = merge_if_asked(files, ref, run_here(ref))
        commit_unnoted(ref, Batch(commit_user=found[0].commit_user, id=batchId), files, is_overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - PySpark's
        """Delete what the tasks of a failed job have written."""
        found = _outcomes(messages)
        if not found or len(found) == len(messages):
            # All tasks were done, so it was the commit that failed: it knows which files may be live, we do not.
            return
        for each in found:
            delete_new_files(self._task.ref, each.outcome.messages)
        delete_job_files(self._task.ref, found[0].job_id, keep=())


def _outcomes(messages: list[WriterCommitMessage | None]) -> list[StreamOutcome]:
    return [cast("StreamOutcome", message) for message in messages if message is not None]
