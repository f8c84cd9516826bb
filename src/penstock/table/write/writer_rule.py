"""The recommended limit of writers per task: (partitions x buckets) / tasks < 100.

Source:
    Paimon's documentation of append tables: "(N * B) / P < 100"; more writers per task mean small files and much
    memory.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.options import SinkStrategy, WriteOptions
from penstock.printable import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

MOST_WRITERS: Final = 100
_LOG: Final = open_log("penstock.write")
_REPEAT_SECONDS: Final = 3_600.0
_warned: dict[str, float] = {}


def warn_too_many_writers(
    ref: TableRef,
    messages: Sequence[CommitMessage],
    *,
    tasks: int,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Log a warning if tasks opened too many writers on average, at most once an hour for each table.

    Args:
        messages: of all tasks, one for each writer.
        tasks: number of tasks that wrote.
    """
    if tasks < 1 or len(messages) < MOST_WRITERS * tasks:
        return
    now = clock()
    if now - _warned.get(ref.location, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
        return
    _warned[ref.location] = now
    partitions = len({message.partition for message in messages})
    buckets = len({message.bucket for message in messages})
    cures = [f"write fewer than {partitions} partitions at a time"]
    if buckets > 1:
        cures.append(f"use fewer than {buckets} buckets")
    if tasks > 1 and ref.parsed(WriteOptions).sink_strategy is SinkStrategy.NONE:
        cures.append(
            "set 'partition.sink-strategy' = 'hash', so that one task writes all rows of a partition and bucket"
        )
    else:
        cures.append("write with more Spark tasks and 'partition.sink-strategy' = 'hash'")
    _LOG.warning(
        "table %s: an append wrote %d files in %d %s, one for each partition and bucket of a task; write fewer than %d "
        "per task, since many small files slow down reads and open writers take memory: %s",
        ref.name,
        len(messages),
        tasks,
        "task" if tasks == 1 else "tasks",
        MOST_WRITERS,
        ", or ".join(cures),
    )
