"""Latest event time in each task of a micro-batch, for sources that do not report event times per partition.

Such a source counts as one partition, and one of its tasks may lag behind another: so the event time of the source is
the minimum, over its tasks, of the latest event time of each task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.options import SinkStrategy, WriteOptions
from penstock.table.store import MetadataStore
from penstock.table.stream.event_time import EventTimes, usable_watermark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from penstock.format.watermark import DeclaredWatermark
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_TASK: Final = "__penstock_task"


def with_tasks(df: DataFrame) -> DataFrame:
    """Return the rows with the number of the task that has each row."""
    return df.withColumn(_TASK, F.spark_partition_id())


def task_times(ref: TableRef, *, shuffles: bool) -> TaskTimes | None:
    """Return the reader of event times by task; None if the table declares no watermark, or if rows are shuffled."""
    declared = usable_watermark(ref)
    is_spread = ref.parsed(WriteOptions).sink_strategy is not SinkStrategy.NONE
    return None if declared is None or is_spread or shuffles else TaskTimes(ref, declared)


class TaskTimes:
    """Reads event times, in ms minus the declared delay, of rows that are written to one table."""

    def __init__(self, ref: TableRef, declared: DeclaredWatermark) -> None:
        self._declared = declared
        self._files = EventTimes(ref, MetadataStore(ref))

    def split(self, rows: pa.Table) -> tuple[pa.Table, int | None]:
        """Return the rows without the column of ``with_tasks``, and the minimum over tasks (None: no time)."""
        times = rows.select([_TASK, self._declared.column]).group_by(_TASK)
        latest = times.aggregate([(self._declared.column, "max")])[f"{self._declared.column}_max"]
        return rows.drop_columns([_TASK]), self._less_delay(pc.min(latest))

    def least(self, messages: Iterable[CommitMessage]) -> int | None:
        """Return the minimum over the files, which is never later than that over tasks; None without a time."""
        files = (file for message in messages for file in message.new_files)
        return min((time for file in files if (time := self._files.latest_millis(file)) is not None), default=None)

    def _less_delay(self, latest: pa.TimestampScalar) -> int | None:
        if not latest.is_valid:
            return None
        millis = pc.cast(pc.cast(latest, pa.timestamp("ms", latest.type.tz), safe=False), pa.int64()).as_py()
        return int(millis) - (self._declared.delay_millis or 0)
