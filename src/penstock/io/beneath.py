"""Deleting below a directory without following a link, even one that is put there during the call.

Each directory on the way is opened relative to the one above it, and a link is never opened; what is at the end is
removed by its name in the last of them. So somebody who replaces a directory by a link meanwhile gets an error, or has
what was in the old directory deleted, which is what was asked for.
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
        base: a directory, which may be a link or lie behind one.
        parts: names from it to what goes; at least one.
        recursive: delete a directory with all that is in it, else only an empty one.

    Raises:
        OSError: as the system has it; ``ENOTDIR`` or ``ELOOP`` where a link is in the place of a directory.
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
    """Delete what is below, then the directory; again if others still added to it."""
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
