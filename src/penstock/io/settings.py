"""Storage with other settings: within bounds, or flushing what it writes; what has none of them stays as it is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeatureError
from penstock.io.bounds import Bounds
from penstock.io.local import LocalFileIO
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from penstock.io.file_io import FileIO


def confine(file_io: FileIO, root: str, *, readable: Sequence[str] = (), deletable: Sequence[str] = ()) -> FileIO:
    """Return storage that goes nowhere else, where it has links that could lead there; see ``Bounds``.

    Args:
        root: directory of a table, in the form that the storage takes.
        readable: paths or URIs of other directories whose files may be opened; those of other storages do not count.
        deletable: likewise, whose files may be deleted.

    Raises:
        InvalidOptionError: one of them cannot be a location.
    """
    if not isinstance(file_io, LocalFileIO):
        return file_io
    bounds = Bounds(root=root, readable=_local_paths(readable), deletable=_local_paths(deletable))
    return replace(file_io, bounds=bounds)


def unconfined(file_io: FileIO) -> FileIO:
    """Return the storage without bounds: for what lies beside the tables."""
    return replace(file_io, bounds=None) if isinstance(file_io, LocalFileIO) else file_io


def _local_paths(locations: Sequence[str]) -> tuple[str, ...]:
    found = []
    for location in locations:
        with suppress(UnsupportedFeatureError):
            file_io, path = resolve(location)
            found += [path] if isinstance(file_io, LocalFileIO) else []
    return tuple(found)


def with_durability(file_io: FileIO, *, durable: bool) -> FileIO:
    """Return the storage so that what is written survives a power cut, or so that it does not wait for the disk."""
    return replace(file_io, durable=durable) if isinstance(file_io, LocalFileIO) else file_io


def is_durable(file_io: FileIO) -> bool:
    """Whether the storage waits for the disk where it is told to."""
    return isinstance(file_io, LocalFileIO) and file_io.durable


def relaxed(file_io: FileIO) -> FileIO:
    """Return the storage without waiting for the disk: for files whose loss harms nobody, such as hints and leases."""
    return with_durability(file_io, durable=False)


def flush(file_io: FileIO, files: Collection[str], *, root: str) -> None:
    """Put new files on the disk, with the directories from them up to ``root``, where the storage is durable.

    Raises:
        StorageError: the storage could not.
    """
    if isinstance(file_io, LocalFileIO):
        file_io.flush(files, root=root)


def is_object_store(file_io: FileIO) -> bool:
    """Whether files are objects of a store, which the environment of other processes may not open."""
    return isinstance(file_io, ObjectFileIO)


def storage_options(file_io: FileIO) -> dict[str, str]:
    """Return the options with which ``resolve`` finds the same storage in another process; they may hold keys."""
    return dict(file_io.settings.options) if isinstance(file_io, ObjectFileIO) else {}
