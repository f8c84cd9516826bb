"""Which adjacent files of a queue's bucket are merged.

Only neighbours in write order are, so the order of rows stays; and only files of which none is larger than all newer
ones together, so a row is rewritten about once each time its file has doubled, and a bucket has twice
``compaction.min.file-num`` small files at most. Paimon's rule merges the five oldest small files again and again: tiny
commits are rewritten with every fourth one until they weigh 0.7 of the target. Of 10,000 commits of one row each, a
row is rewritten 1,250 times on average there, and 6 times here (tests/unit/table/compact/test_queue.py).

Source:
    Paimon ``core:append/BucketedAppendCompactManager.java``; spec/compaction.md section 3.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.spec.manifest import DataFileMeta
    from penstock.table.compact.task import CompactSizes

# A full merge of less is not worth its while (spec/compaction.md section 3.3).
_FULL_MIN_FILES: Final = 3
_FULL_RUN_TARGETS: Final = 8


def plan_bucket(files: Iterable[DataFileMeta], sizes: CompactSizes) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Return runs of adjacent files of one bucket to be merged, each in write order.

    Args:
        files: the bucket's live files.

    Returns:
        Runs of at least two files; together no more than twice the target size, where they are more than two.
    """
    ordered = in_write_order(files)
    if sizes.max_files is not None:
        return _plan_by_older_rule(ordered, sizes)
    runs = []
    for is_small, group in groupby(ordered, key=sizes.is_small):
        if is_small:
            small = tuple(group)
            run = small[_first_to_merge([file.row_count for file in small], sizes.min_files) :]
            runs += [part for part in _cut(run, 2 * sizes.target_bytes) if len(part) > 1]
    return tuple(runs)


def plan_bucket_fully(
    files: Iterable[DataFileMeta], sizes: CompactSizes, *, force: bool
) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Return what a full compaction of one bucket rewrites, in write order; cut where one task would take minutes.

    Args:
        force: rewrite every file (``compaction.force-rewrite-all-files``).

    Source:
        spec/compaction.md section 3.3. Sorted by sequence number, where Java walks a heap's array.
    """
    ordered = in_write_order(files)
    if force:
        return tuple(_cut(ordered, _FULL_RUN_TARGETS * sizes.target_bytes)) if ordered else ()
    is_small = [sizes.is_small(file) for file in ordered]
    first = is_small.index(True) if True in is_small else len(ordered)
    rest, smalls = ordered[first:], sum(is_small[first:])
    if len(rest) < _FULL_MIN_FILES or smalls <= len(rest) - smalls:
        return ()
    return tuple(_cut(rest, _FULL_RUN_TARGETS * sizes.target_bytes))


def in_write_order(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Sort files by the sequence number of their first row; equal ones stay in manifest order."""
    return sorted(files, key=lambda file: file.min_sequence_number)


def _first_to_merge(rows: Sequence[int], min_files: int) -> int:
    """Return where the run to merge begins, which reaches to the newest file; ``len(rows)`` for none.

    Rows are what is compared, not bytes: a file of one row is nearly all footer, and five of them make no larger one.
    """
    first = _last_run(rows, at_least=1)
    if len(rows) - first >= min_files:
        return first
    if len(rows) > 2 * min_files:
        return _last_run(rows, at_least=2)
    return len(rows)


def _last_run(rows: Sequence[int], *, at_least: int) -> int:
    """Return where the longest run at the end begins of which no file is larger than all newer ones together.

    Args:
        at_least: newest files that belong to it in any case.
    """
    first = len(rows) - at_least
    total = sum(rows[first:])
    while first > 0 and rows[first - 1] <= total:
        first -= 1
        total += rows[first]
    return first


def _cut(run: Sequence[DataFileMeta], most_bytes: int) -> list[tuple[DataFileMeta, ...]]:
    """Cut a run into parts that one task each can merge in a few seconds."""
    parts: list[list[DataFileMeta]] = [[]]
    size = 0
    for file in run:
        if parts[-1] and size + file.file_size > most_bytes:
            parts.append([])
            size = 0
        parts[-1].append(file)
        size += file.file_size
    return [tuple(part) for part in parts]


def _plan_by_older_rule(ordered: Sequence[DataFileMeta], sizes: CompactSizes) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Return what ``compaction.max.file-num`` asks for: ``min_files`` that reach the target size, or ``max_files``."""
    window: list[DataFileMeta] = []
    size = 0
    for file in ordered:
        window.append(file)
        size += file.file_size
        reaches_target = size >= sizes.target_bytes
        if (reaches_target and len(window) >= sizes.min_files) or len(window) >= (sizes.max_files or 0):
            return (tuple(window),)
        if reaches_target:
            size -= window.pop(0).file_size
    return ()
