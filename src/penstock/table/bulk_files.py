"""File operations on many files in parallel: map a function over files, delete files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from penstock.io.file_io import FileIO

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# For so few items, starting threads costs more than the calls themselves on a local disk.
_MAX_SEQUENTIAL_ITEMS: Final = 4


def thread_count(option: int | None, file_io: FileIO) -> int:
    """Return how many threads file operations use: ``file-operation.thread-num``, or the default of the storage."""
    return option or file_io.parallel_calls


def map_parallel(function: Callable[[_Item], _Result], items: Sequence[_Item], *, threads: int) -> Iterable[_Result]:
    """Yield the function's result for each item, in the order of the items.

    An error that the function raises for an item is raised when the iteration reaches that item.

    Args:
        threads: with 1, or for a few items, all calls run in the caller's thread. More threads than cores indicate that
            the calls mostly wait for responses; then threads are used for a few items, too.
    """
    waits_for_answers = threads > (os.cpu_count() or 1)
    if threads <= 1 or len(items) <= (1 if waits_for_answers else _MAX_SEQUENTIAL_ITEMS):
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(max_workers=min(threads, len(items)), thread_name_prefix="penstock-files")
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)


def delete_files(
    file_io: FileIO, paths: Sequence[str], *, threads: int, deleted: Callable[[int], None] = lambda _count: None
) -> None:
    """Delete files; missing files are not an error.

    Args:
        deleted: called with the number of files that each step has deleted.
    """
    errors: list[StorageError] = []
    size = file_io.delete_batch_size
    parts = [paths[start : start + size] for start in range(0, len(paths), size)]
    for part, error in zip(
        parts, map_parallel(lambda each: _try_delete(file_io, each), parts, threads=threads), strict=True
    ):
        if error is None:
            deleted(len(part))
        else:
            errors.append(error)
    if errors:
        more = f" (and {len(errors) - 1} others)" if len(errors) > 1 else ""
        raise StorageError(f"{errors[0]}{more}", errors[0].retryable) from errors[0]


def delete_empty_directories(file_io: FileIO, directories: Collection[str], *, root: str) -> None:
    """Delete the empty directories of those given, and each parent below the root that becomes empty.

    This is safe for a concurrent writer that has just created such a directory: the writer creates the directory again
    when it creates its file.
    """
    if not file_io.has_directories:
        return
    for directory in sorted(directories, key=len, reverse=True):
        path = directory
        while path.startswith(f"{root}/"):
            with suppress(StorageError):  # not empty
                if file_io.delete(path):
                    path = path.rpartition("/")[0]
                    continue
            break


def _try_delete(file_io: FileIO, paths: Sequence[str]) -> StorageError | None:
    try:
        file_io.delete_many(paths)
    except StorageError as error:
        return error
    return None
