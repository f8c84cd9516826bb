"""Getting files and directories of the local file system onto the disk, so that a power cut does not undo them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.io.failures import ABSENT

if TYPE_CHECKING:
    from collections.abc import Collection

# The system writes what several wait for in one go; more threads than this wait no less (docs/robustness.md).
_THREADS: Final = 8
_FEW: Final = 2


def sync(path: Path) -> None:
    """Return once the file's content, or the directory's names, are on the disk. Raises ``OSError``."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(files: Collection[str], root: str) -> None:
    """Put files on the disk, and the directories that lead to them from ``root`` on, each once.

    Several at once: the disk needs hardly longer for ten than for one, and nothing names them before all are there.
    What is not there is passed over.

    Args:
        files: below ``root``, or elsewhere: then only their own directory is flushed with them.

    Raises:
        OSError: the storage could not.
    """
    paths = [Path(file) for file in files]
    directories: set[Path] = set()
    for path in paths:
        directory = path.parent
        while directory not in directories:
            directories.add(directory)
            if str(directory) == root or not str(directory).startswith(f"{root}/"):
                break
            directory = directory.parent
    everything = [*paths, *sorted(directories, key=lambda each: len(each.parts), reverse=True)]
    if len(everything) <= _FEW:
        for path in everything:
            _sync_if_there(path)
    else:
        with ThreadPoolExecutor(min(_THREADS, len(everything)), thread_name_prefix="penstock-flush") as pool:
            list(pool.map(_sync_if_there, everything))


def make_directory(directory: Path, *, durable: bool) -> None:
    """Make a directory and those above it that are missing; with ``durable`` their names are on the disk."""
    missing = []
    above = directory
    while durable and not above.exists():
        missing.append(above)
        above = above.parent
    directory.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync(made.parent)


def _sync_if_there(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        if error.errno not in ABSENT:
            raise
