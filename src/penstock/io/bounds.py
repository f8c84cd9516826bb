"""The directories of the local file system that the storage of one table may access, and deletions that stay in them.

A deletion follows no link, even one that another process creates during the call: each directory on the path is opened
relative to its parent, with a flag that refuses links, and the last component is removed by name from its opened
parent. If another process replaces a directory with a link meanwhile, the call either raises an error or deletes the
content of the original directory, as the caller requested.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import StorageError
from penstock.io.failures import ABSENT, to_storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UP: Final = ".."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Directories outside of which no file is opened, listed, written or deleted.

    Links in the paths of these directories are followed, so a warehouse may be reached through a link. Links below
    these directories are not followed: otherwise a user who can put files into a table could have any file of the
    machine read or deleted.

    Attributes:
        root: the table's directory.
        readable: other directories whose files may be opened.
        deletable: other directories whose files may be deleted.
    """

    root: str
    readable: tuple[str, ...] = ()
    deletable: tuple[str, ...] = ()

    def check_read(self, action: str, path: str) -> None:
        """Raise ``StorageError`` unless the path may be opened; ``action`` is an infinitive."""
        self._check(action, path, (self.root, *self.readable), is_followed=True)

    def check_write(self, action: str, path: str) -> None:
        """Raise ``StorageError`` unless something may be created at the path."""
        self._check(action, path, (self.root,), is_followed=True)

    def check_delete(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Raise ``StorageError`` unless the path may be deleted; if it is a link, the link itself is deleted.

        Returns:
            The directory that permits it, and the path components below that directory; empty for the directory itself.
        """
        return self._check("delete", path, (self.root, *self.deletable), is_followed=False)

    def _check(
        self, action: str, path: str, bases: tuple[str, ...], *, is_followed: bool
    ) -> tuple[str, tuple[str, ...]]:
        if "\0" in path:
            raise StorageError(f"cannot {action} {path!a}: no path has a NUL in it")
        base = next((each for each in bases if path == each or path.startswith(f"{each}/")), None)
        parts = () if base is None else tuple(part for part in path[len(base) :].split("/") if part)
        if base is None or _UP in parts:
            raise StorageError(f"cannot {action} {path!a}: it is outside of the table's directory {self.root}")
        link = _first_link(base, parts if is_followed else parts[:-1])
        if link is not None:
            raise StorageError(
                f"cannot {action} {path}: {link} is a symbolic link, and below {base} none is followed; put the files "
                "themselves there, or mount their directory"
            )
        return base, parts


def _first_link(base: str, parts: tuple[str, ...]) -> str | None:
    path = base
    for part in parts:
        path = f"{path}/{part}"
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            if error.errno in ABSENT:
                return None  # a missing path cannot be a link
            raise to_storage_error("look at", path, error) from error
        if stat.S_ISLNK(mode):
            return path
    return None


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
