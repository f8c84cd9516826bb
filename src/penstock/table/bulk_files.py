"""Deleting many files, and looking at many, several at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.errors import StorageError
from penstock.io.shortcuts import DELETED_AT_ONCE, calls_at_once, delete_at_once, deletes_at_once, has_directories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from penstock.io.file_io import FileIO

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Starting threads costs more than a few local calls do.
_FEW: Final = 4


def thread_count(option: int | None, file_io: FileIO) -> int:
    """Threads for file operations: what ``file-operation.thread-num`` says, else what makes sense on the storage."""
    return option or calls_at_once(file_io)


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
        deleted: told how many more are gone.

    Raises:
        StorageError: at least one is still there; the others were tried all the same, so doing it again goes on.
    """
    errors: list[StorageError] = []
    size = DELETED_AT_ONCE if deletes_at_once(file_io) else 1
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
    """Delete directories that are empty, and those above that this leaves empty, up to but without the root.

    A writer that made one of them a moment ago makes it again when it creates its file.
    """
    if not has_directories(file_io):
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
        if deletes_at_once(file_io):
            delete_at_once(file_io, paths)
        else:
            for path in paths:
                file_io.delete(path)
    except StorageError as error:
        return error
    return None
