"""Write the rows of micro-batches: in the driver if there are few rows, else in tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.spark.compact.job import SparkMerger
from penstock.spark.watermark.task_times import TaskTimes, with_tasks
from penstock.spark.write.sink import write_dataframe
from penstock.spark.write.small_batch import collect_small, max_small_rows
from penstock.spark.write.task import write_batches
from penstock.table.compact.precommit import merge_if_asked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The written files of a micro-batch.

    Attributes:
        least_of_tasks: latest event time minus the delay, ms: the minimum over the tasks that had rows, or over the
            files if tasks wrote several. None if not asked for, or unknown.
    """

    messages: tuple[CommitMessage, ...]
    least_of_tasks: int | None = None


class RowWriter:
    """Writes the batches of one query.

    Args:
        sdf: the rows of the query.
        is_observed: whether the query observes metrics of the rows.
    """

    def __init__(self, sdf: DataFrame, *, is_observed: bool) -> None:
        # Small batches may read rows twice, and metrics would count them twice.
        self._max_rows = 0 if is_observed else max_small_rows(sdf)
        self._last_rows = 0

    def write(self, df: DataFrame, ref: TableRef, job_id: str, times: TaskTimes | None = None) -> Written:
        """Write the rows of a batch; nothing is committed.

        Args:
            times: reads event times of rows; None if they are not needed.

        Raises as ``write_dataframe``.
        """
        written = self._write_here(df, ref, job_id, times)
        if written is None:
            messages = write_dataframe(df, ref, job_id)
            written = Written(messages=messages, least_of_tasks=None if times is None else times.least(messages))
        self._last_rows = sum(file.row_count for message in written.messages for file in message.new_files)
        merged = merge_if_asked(written.messages, ref, SparkMerger(spark=df.sparkSession, ref=ref).execute)
        return Written(messages=merged, least_of_tasks=written.least_of_tasks)

    def _write_here(self, df: DataFrame, ref: TableRef, job_id: str, times: TaskTimes | None) -> Written | None:
        if self._last_rows >= self._max_rows:
            return None
        rows = collect_small(df if times is None else with_tasks(df), self._max_rows)
        if rows is None:
            return None
        least = None
        if times is not None:
            rows, least = times.split(rows)
        return Written(messages=write_batches(ref, rows.to_batches(), job_id=job_id), least_of_tasks=least)
