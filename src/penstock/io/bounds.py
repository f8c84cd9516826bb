"""The directories of the local file system that the storage of one table may access."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Final

from penstock.errors import StorageError
from penstock.io.failures import ABSENT, to_storage_error

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
