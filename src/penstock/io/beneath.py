"""Delete files below a directory without following links, even a link that another process creates during the call.

Each directory on the path is opened relative to its parent, with a flag that refuses links. The last component is
removed by name from its opened parent. If another process replaces a directory with a link during the call, the call
either raises an error or deletes the content of the original directory, as the caller requested.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 3


def delete_beneath(base: str, parts: Sequence[str], *, recursive: bool) -> None:
    """Delete a file, a link or a directory.

    Args:
        base: an existing directory; the path to it may contain links, which are followed.
        parts: path components from ``base`` to the file or directory to delete; at least one.
        recursive: delete a directory with all its content; without it only an empty directory is deleted.

    Raises:
        OSError: the error of the operating system; ``ENOTDIR`` or ``ELOOP`` if a path component is a link.
    """
    with _opened(base, parts[:-1]) as parent:
        name = parts[-1]
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
        elif recursive:
            _delete_tree(parent, name)
        else:
            os.rmdir(name, dir_fd=parent)


@contextlib.contextmanager
def _opened(base: str, parts: Sequence[str]) -> Iterator[int]:
    """Open the directory at the end of ``parts``."""
    at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            below = os.open(part, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _delete_tree(parent: int, name: str) -> None:
    """Delete the content of a directory, then the directory; retry if other processes add files meanwhile."""
    for attempt in range(1, _TRIES + 1):
        with _opened_below(parent, name) as directory:
            with os.scandir(directory) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for entry_name, is_dir in found:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    if is_dir:
                        _delete_tree(directory, entry_name)
                    else:
                        os.unlink(entry_name, dir_fd=directory)
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY and attempt < _TRIES:
                continue
            raise
        return


@contextlib.contextmanager
def _opened_below(parent: int, name: str) -> Iterator[int]:
    directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        yield directory
    finally:
        os.close(directory)
