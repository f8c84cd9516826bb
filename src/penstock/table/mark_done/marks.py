"""Which partitions were marked after their last rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clocks import to_wall_clock
from penstock.options import RetentionOptions
from penstock.table.bulk_files import map_parallel, thread_count
from penstock.table.mark_done.ledger import Marked
from penstock.table.success import find_success

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.success_file import SuccessFile
    from penstock.table.mark_done.ledger import Ledger
    from penstock.table.mark_done.marker import LivePartition
    from penstock.table.ref import TableRef


def is_remembered(partition: LivePartition, ledger: Ledger) -> bool:
    """Whether the ledger's entry of a partition is current: the same number of rows, none later than the mark."""
    entry = ledger.partitions.get(partition.directory)
    return entry is not None and entry.rows == partition.rows and _is_current(entry.millis, partition)


def load_marked(ref: TableRef, partitions: Sequence[LivePartition], ledger: Ledger) -> dict[str, Marked]:
    """Load the marks of partitions that have one since their last rows, by directory.

    If the ledger's entry is missing or outdated, the success file is read, several in parallel.
    """
    unsure = [each for each in partitions if not is_remembered(each, ledger)]
    paths = [ref.layout.partition_success_path(each.directory) for each in unsure]
    threads = thread_count(ref.parsed(RetentionOptions).file_operation_threads, ref.file_io)
    found = map_parallel(lambda path: find_success(ref.file_io, path), paths, threads=threads)
    marked = {
        each.directory: Marked(rows=each.rows, millis=success.modification_millis)
        for each, success in zip(unsure, found, strict=True)
        if success is not None and _covers(success, each, ledger.partitions.get(each.directory))
    }
    unknown = {each.directory for each in unsure}
    known = {each.directory: ledger.partitions[each.directory] for each in partitions if each.directory not in unknown}
    return {**known, **marked}


def _covers(success: SuccessFile, partition: LivePartition, entry: Marked | None) -> bool:
    # The ledger's mark was for other rows: only a later mark by another job counts.
    is_other = entry is None or success.modification_millis > entry.millis
    return is_other and _is_current(success.modification_millis, partition)


def _is_current(mark_millis: int, partition: LivePartition) -> bool:
    """Whether a mark is not older than a partition's files, ignoring merged files, which have the time of an input."""
    return partition.written_millis is None or partition.written_millis <= to_wall_clock(mark_millis)
