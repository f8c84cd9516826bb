"""Deleting many files, and looking at many, several at once."""

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

# Starting threads costs more than a few local calls do.
_FEW: Final = 4


def thread_count(option: int | None) -> int:
    """Threads for file operations: what ``file-operation.thread-num`` says, else one a core."""
    return option or os.cpu_count() or 1


def map_parallel(function: Callable[[_Item], _Result], items: Sequence[_Item], *, threads: int) -> Iterable[_Result]:
    """Yield what the function returns for each item, in their order; what it raises comes out in its turn.

    Args:
        threads: with 1, or for a few items, all is done in the caller's thread.
    """
    if threads <= 1 or len(items) <= _FEW:
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
    """Delete files; those that are gone already are none the worse.

    Args:
        deleted: told after each file that it is gone.

    Raises:
        StorageError: at least one is still there; the others were tried all the same, so doing it again goes on.
    """
    errors: list[StorageError] = []
    for error in map_parallel(lambda path: _try_delete(file_io, path), paths, threads=threads):
        if error is None:
            deleted(1)
        else:
            errors.append(error)
    if errors:
        more = f" (and {len(errors) - 1} others)" if len(errors) > 1 else ""
        raise StorageError(f"{errors[0]}{more}", errors[0].retryable) from errors[0]


def delete_empty_directories(file_io: FileIO, directories: Collection[str], *, root: str) -> None:
    """Delete directories that are empty, and those above that this leaves empty, up to but without the root.

    A writer that made one of them a moment ago makes it again when it creates its file.
    """
    for directory in sorted(directories, key=len, reverse=True):
        path = directory
        while path.startswith(f"{root}/"):
            with suppress(StorageError):  # not empty
                if file_io.delete(path):
                    path = path.rpartition("/")[0]
                    continue
            break


def _try_delete(file_io: FileIO, path: str) -> StorageError | None:
    try:
        file_io.delete(path)
    except StorageError as error:
        return error
    return None
