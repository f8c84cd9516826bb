"""Cut unordered tasks so that every core gets work."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from penstock.table.stream.tasks import StreamTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.read.split import DataSplit


def spread_tasks(tasks: Sequence[StreamTask], *, parallelism: int, least_bytes: int) -> tuple[StreamTask, ...]:
    """Cut unordered tasks if fewer tasks than ``parallelism`` exist; ordered tasks are not changed.

    Args:
        parallelism: number of tasks that run at the same time.
        least_bytes: smallest size of the files of a new task, in bytes on storage.

    Returns:
        Tasks with the same files in the same order; new tasks have about equal bytes. No file is divided.
    """
    loose = [(split, file) for task in tasks if task.bucket < 0 for split in task.splits for file in split.files]
    total_bytes = sum(file.file_size for _, file in loose)
    count = min(parallelism, total_bytes // max(1, least_bytes))
    if len(tasks) >= count:
        return tuple(tasks)
    runs: list[list[tuple[DataSplit, DataFileMeta]]] = [[] for _ in range(count)]
    before = 0
    for split, file in loose:
        # Assign a file by its middle, so that no run gets much more than its share.
        middle = min(before + file.file_size // 2, total_bytes - 1)
        runs[middle * count // total_bytes].append((split, file))
        before += file.file_size
    ordered = [task for task in tasks if task.bucket >= 0]
    return (*ordered, *(StreamTask(bucket=-1, splits=_joined(run)) for run in runs if run))


def _joined(run: Sequence[tuple[DataSplit, DataFileMeta]]) -> tuple[DataSplit, ...]:
    groups = (list(group) for _, group in groupby(run, key=lambda each: id(each[0])))
    return tuple(replace(group[0][0], files=tuple(file for _, file in group)) for group in groups)
