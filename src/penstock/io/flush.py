"""Flush files and directories of the local file system to disk, so that they survive a power cut."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.io.failures import ABSENT

if TYPE_CHECKING:
    from collections.abc import Collection

# The system flushes several pending requests together; more threads do not reduce the waiting time
# (docs/robustness.md).
_THREADS: Final = 8
_FEW: Final = 2


def sync(path: Path) -> None:
    """Flush a file's content, or a directory's entries, to disk. Raises ``OSError``."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(files: Collection[str], root: str) -> None:
    """Flush files to disk, and their parent directories up to ``root``, each directory once.

    The flushes run in parallel, because ten take hardly longer than one. Their order does not matter, because no
    metadata refers to the files yet. Missing files are skipped.

    Args:
        files: paths below ``root``; of a path elsewhere only its own directory is flushed with it.

    Raises:
        OSError: a flush failed.
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
    """Create a directory and its missing parents; with ``durable`` their entries are flushed to disk."""
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
