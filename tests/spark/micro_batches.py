"""What Spark does with a streaming source, without Spark: triggers, the checkpoint, kills and restarts.

As Spark's micro-batches do: the offset is written before a batch runs, the commit after it; the batch before is
committed to the source when the next one has its offset; a batch without its commit runs again after a restart.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.types import to_spark_schema
from penstock.table.read.batches import select_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql.datasource import InputPartition

    from penstock import Table
    from penstock.spark.data_source.stream_reader import PenstockStreamReader


class Kill(Enum):
    """Where a process dies: before the offset is written, before the batch ran, before its commit is written."""

    BEFORE_OFFSET = "before offset"
    BEFORE_RUN = "before run"
    BEFORE_COMMIT = "before commit"


@dataclass
class Checkpoint:
    """What survives, as JSON texts.

    Attributes:
        rows: by batch the tables that its tasks have delivered; a batch that runs again replaces them.
    """

    offsets: list[str] = field(default_factory=list)
    commits: int = 0
    rows: dict[int, list[pa.Table]] = field(default_factory=dict)

    def values(self, column: str = "n") -> list[Any]:
        """All values of a column, batch by batch and task by task."""
        return [value for batch in sorted(self.rows) for task in self.rows[batch] for value in task[column].to_pylist()]

    def sizes(self) -> list[int]:
        """Rows of each batch."""
        return [sum(task.num_rows for task in self.rows[batch]) for batch in sorted(self.rows)]


class Query:
    """One run of a query."""

    def __init__(
        self,
        table: Table,
        checkpoint: Checkpoint,
        options: Mapping[str, str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        available_now: bool = True,
    ) -> None:
        self.checkpoint = checkpoint
        source = PenstockDataSource({"path": table.location, **{k.lower(): v for k, v in (options or {}).items()}})
        declared = source.schema() if columns is None else to_spark_schema(select_fields(table._ref, columns))
        self.reader: PenstockStreamReader = source.streamReader(declared)
        # Spark pickles another one for the tasks.
        self._for_tasks = pickle.dumps(source.streamReader(declared))
        if available_now:
            self.reader.prepareForTriggerAvailableNow()
        self._limit = self.reader.getDefaultReadLimit()
        if len(checkpoint.offsets) > checkpoint.commits:
            self._run(kill=None)

    def run(self, kill: Kill | None = None, at_batch: int = -1) -> Checkpoint:
        """Run batches until there is nothing to read, or until the kill."""
        while self.step(kill if len(self.checkpoint.offsets) == at_batch else None):
            if kill is not None and len(self.checkpoint.offsets) > at_batch >= 0:
                break
        return self.checkpoint

    def step(self, kill: Kill | None = None) -> bool:
        """Do what one trigger does; False when there was nothing to read."""
        offsets = self.checkpoint.offsets
        start = json.loads(offsets[-1]) if offsets else self.reader.initialOffset()
        end = json.dumps(self.reader.latestOffset(start, self._limit))
        json.dumps(self.reader.reportLatestOffset())
        if offsets and end == offsets[-1]:
            return False
        if kill is Kill.BEFORE_OFFSET:
            raise Killed
        offsets.append(end)
        if len(offsets) > 1:
            self.reader.commit(json.loads(offsets[-2]))
        if kill is Kill.BEFORE_RUN:
            raise Killed
        self._run(kill)
        return True

    def _run(self, kill: Kill | None) -> None:
        offsets = self.checkpoint.offsets
        start = json.loads(offsets[-2]) if len(offsets) > 1 else self.reader.initialOffset()
        partitions = pickle.dumps(self.reader.partitions(start, json.loads(offsets[-1])))
        tasks = [self._task(partition) for partition in pickle.loads(partitions)]
        self.checkpoint.rows[len(offsets) - 1] = [task for task in tasks if task is not None]
        if kill is Kill.BEFORE_COMMIT:
            raise Killed
        self.checkpoint.commits = len(offsets)

    def _task(self, partition: InputPartition) -> pa.Table | None:
        reader = pickle.loads(self._for_tasks)
        batches = list(reader.read(partition))
        return pa.Table.from_batches(batches) if batches else None


class Killed(Exception):  # noqa: N818 - no error
    """The process is gone."""
