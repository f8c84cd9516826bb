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
_SILENCE_SECONDS: Final = 3_600.0
_told: dict[str, float] = {}


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
    if now - _told.get(ref.location, -_SILENCE_SECONDS) < _SILENCE_SECONDS:
        return
    _told[ref.location] = now
    partitions = len({message.partition for message in messages})
    buckets = len({message.bucket for message in messages})
    cures = [f"fewer partitions in a batch than {partitions}"]
    if buckets > 1:
        cures.append(f"a smaller 'bucket' than {buckets}")
    if tasks > 1 and ref.parsed(WriteOptions).sink_strategy is SinkStrategy.NONE:
        cures.append("'partition.sink-strategy' = 'hash', so that each partition and bucket has one task")
    else:
        cures.append("more tasks with that strategy ('partition.sink-strategy' = 'hash' on Spark)")
    _LOG.warning(
        "table %s: a batch opened %d writers in %d tasks, each of which leaves a file; (partitions x buckets) / tasks "
        "should be below %d. What helps: %s",
        ref.name,
        len(messages),
        tasks,
        MOST_WRITERS,
        "; ".join(cures),
    )
