"""Chooses which adjacent files of a queue's bucket are merged.

Only files that are adjacent in write order are merged, which preserves the order of the rows. In a merge no file has
more rows than all newer ones together, so a row is rewritten about once each time its file doubles, and a bucket has at
most twice ``compaction.min.file-num`` small files. Paimon's rule repeatedly merges the five oldest small files: every
fourth tiny commit rewrites the same rows, until their file reaches 0.7 of the target size. With 10,000 commits of one
row each, a row is rewritten 1,250 times on average by Paimon's rule, and 6 times by this one
(tests/unit/table/compact/test_queue.py).

Source:
    Paimon ``core:append/BucketedAppendCompactManager.java``; docs/spec/compaction.md section 3.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, dropwhile, groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.compact.task import CompactSizes

    _Block = tuple[DataFileMeta, ...]
    """Files of a bucket that are merged together or not at all."""

# A full merge of fewer files is not worth its cost (docs/spec/compaction.md section 3.3).
_FULL_MIN_FILES: Final = 3
_FULL_RUN_TARGETS: Final = 8


def plan_bucket(files: Iterable[DataFileMeta], sizes: CompactSizes) -> tuple[_Block, ...]:
    """Return the runs of adjacent files of one bucket to merge, each in write order.

    Args:
        files: the bucket's live files.

    Returns:
        Runs of at least two files. By the current rule, a run is larger than twice the target size only if it cannot
        be cut.
    """
    blocks = blocks_of(files)
    if sizes.max_files is not None:
        return _plan_by_older_rule(blocks, sizes)
    runs = []
    for is_small, group in groupby(blocks, key=lambda block: all(map(sizes.is_small, block))):
        if is_small:
            small = tuple(group)
            rows = [file.row_count for file in chain.from_iterable(small)]
            run = _from_file(small, _first_to_merge(rows, sizes.min_files))
            runs += [part for part in _cut(run, 2 * sizes.target_bytes) if len(part) > 1]
    return tuple(runs)


def plan_bucket_fully(files: Iterable[DataFileMeta], sizes: CompactSizes, *, force: bool) -> tuple[_Block, ...]:
    """Return the files that a full compaction of one bucket rewrites, in write order, cut into tasks of limited size.

    Args:
        force: rewrite every file (``compaction.force-rewrite-all-files``).

    Source:
        docs/spec/compaction.md section 3.3. Sorted by sequence number, where Java walks a heap's array.
    """
    blocks = blocks_of(files)
    if not force:
        blocks = tuple(dropwhile(lambda block: not any(map(sizes.is_small, block)), blocks))
        is_small = [sizes.is_small(file) for file in chain.from_iterable(blocks)]
        if len(is_small) < _FULL_MIN_FILES or 2 * sum(is_small) <= len(is_small):
            return ()
    return tuple(_cut(blocks, _FULL_RUN_TARGETS * sizes.target_bytes))


def in_write_order(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Sort files by the sequence number of their first row; files with equal numbers stay in manifest order."""
    return sorted(files, key=lambda file: file.min_sequence_number)


def blocks_of(files: Iterable[DataFileMeta]) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Return the files in write order; files that begin with the same sequence number form one block.

    A merged file begins with the number of its first input and is the last in the manifest, so it would be read after
    all files with the same number. Such files are therefore merged together or not at all. One compaction by Java may
    write several of them, and all files of pypaimon are such.
    """
    return tuple(tuple(block) for _, block in groupby(in_write_order(files), key=lambda file: file.min_sequence_number))


def _from_file(blocks: Sequence[_Block], first: int) -> Sequence[_Block]:
    """Return the blocks from the one with the file at index ``first`` on; none if the index is past the last file."""
    for place, block in enumerate(blocks):
        first -= len(block)
        if first < 0:
            return blocks[place:]
    return ()


def _first_to_merge(rows: Sequence[int], min_files: int) -> int:
    """Return the index of the first file to merge; the run ends with the newest file. ``len(rows)`` for no merge.

    Rows are compared, not bytes: a file of one row is nearly all footer, and a merge of five is hardly larger.
    """
    first = _last_run(rows, at_least=1)
    if len(rows) - first >= min_files:
        return first
    if len(rows) > 2 * min_files:
        return _last_run(rows, at_least=2)
    return len(rows)


def _last_run(rows: Sequence[int], *, at_least: int) -> int:
    """Return the first index of the longest run to the end in which no file has more rows than all newer ones together.

    Args:
        at_least: number of newest files that are in the run in any case.
    """
    first = len(rows) - at_least
    total = sum(rows[first:])
    while first > 0 and rows[first - 1] <= total:
        first -= 1
        total += rows[first]
    return first


def _cut(run: Iterable[_Block], most_bytes: int) -> list[_Block]:
    """Cut a run, between blocks, into parts of at most ``most_bytes``; a larger block is a part of its own."""
    parts: list[_Block] = []
    size = 0
    for block in run:
        block_size = _size_of(block)
        if parts and size + block_size <= most_bytes:
            parts[-1] += block
            size += block_size
        else:
            parts.append(block)
            size = block_size
    return parts


def _plan_by_older_rule(blocks: Sequence[_Block], sizes: CompactSizes) -> tuple[_Block, ...]:
    """Return the first run of ``min_files`` files that reach the target size, or of ``max_files`` files.

    This is the rule of ``compaction.max.file-num``.
    """
    window: deque[_Block] = deque()
    count, size = 0, 0
    for block in blocks:
        window.append(block)
        count += len(block)
        size += _size_of(block)
        reaches_target = size >= sizes.target_bytes
        if (reaches_target and count >= sizes.min_files) or count >= (sizes.max_files or 0):
            return (tuple(chain.from_iterable(window)),)
        if reaches_target:
            oldest = window.popleft()
            count -= len(oldest)
            size -= _size_of(oldest)
    return ()


def _size_of(files: Iterable[DataFileMeta]) -> int:
    return sum(file.file_size for file in files)
