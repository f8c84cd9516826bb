"""Storage with changed settings: bounds or durability. A storage without these settings is returned unchanged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.io.bounds import Bounds
from penstock.io.branch import BranchFileIO
from penstock.io.hdfs import HdfsFileIO
from penstock.io.local import LocalFileIO
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.resolve import resolve
from penstock.io.rest.table import RestTableFileIO

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from penstock.io.file_io import FileIO
    from penstock.io.object_store.settings import StoreSettings

_WRAPPERS: Final = (BranchFileIO, RestTableFileIO)


def confine(file_io: FileIO, root: str, *, readable: Sequence[str] = (), deletable: Sequence[str] = ()) -> FileIO:
    """Return the storage, limited to directories if it supports links that could lead elsewhere; see ``Bounds``.

    Args:
        root: directory of a table, in the storage's path form.
        readable: paths or URIs of other directories whose files may be opened; those of other storages are ignored.
        deletable: likewise, directories whose files may be deleted.

    Raises:
        InvalidOptionError: one of them is not a valid location.
    """
    if isinstance(file_io, _WRAPPERS):
        inner = confine(file_io.inner, root, readable=readable, deletable=deletable)
        return replace(file_io, inner=inner)
    if not isinstance(file_io, LocalFileIO):
        return file_io
    bounds = Bounds(root=root, readable=_local_paths(readable), deletable=_local_paths(deletable))
    return replace(file_io, bounds=bounds)


def unconfined(file_io: FileIO) -> FileIO:
    """Return the storage without bounds, for files outside of the table directories."""
    return replace(file_io, bounds=None) if isinstance(file_io, LocalFileIO) else file_io


def _local_paths(locations: Sequence[str]) -> tuple[str, ...]:
    found = []
    for location in locations:
        with suppress(UnsupportedFeatureError):
            file_io, path = resolve(location)
            found += [path] if isinstance(file_io, LocalFileIO) else []
    return tuple(found)


def with_durability(file_io: FileIO, *, durable: bool) -> FileIO:
    """Return the storage with ``durable`` set: whether writes are flushed to disk, to survive a power cut."""
    if isinstance(file_io, _WRAPPERS):
        return replace(file_io, inner=with_durability(file_io.inner, durable=durable))
    return replace(file_io, durable=durable) if isinstance(file_io, LocalFileIO) else file_io


def is_durable(file_io: FileIO) -> bool:
    """Whether the storage flushes writes to disk."""
    if isinstance(file_io, _WRAPPERS):
        return is_durable(file_io.inner)
    return isinstance(file_io, LocalFileIO) and file_io.durable


def relaxed(file_io: FileIO) -> FileIO:
    """Return the storage without flushing to disk: for files whose loss is harmless, such as hints and leases."""
    return with_durability(file_io, durable=False)


def flush(file_io: FileIO, files: Collection[str], *, root: str) -> None:
    """Flush new files to disk, with their parent directories up to ``root``, if the storage is durable.

    Raises:
        StorageError: a flush failed.
    """
    if isinstance(file_io, BranchFileIO):
        flush(file_io.inner, [file_io.real(path) for path in files], root=root)
    if isinstance(file_io, RestTableFileIO):
        flush(file_io.inner, files, root=root)
    if isinstance(file_io, LocalFileIO):
        file_io.flush(files, root=root)


def storage_of_files(file_io: FileIO) -> FileIO:
    """Return the storage that holds the files, without the layer of a branch or a catalog's server."""
    return storage_of_files(file_io.inner) if isinstance(file_io, _WRAPPERS) else file_io


def is_object_store(file_io: FileIO) -> bool:
    """Whether files are objects of a store that decides about commits, of a table or of a branch; not of a server."""
    if isinstance(file_io, BranchFileIO):
        return is_object_store(file_io.inner)
    return isinstance(file_io, ObjectFileIO)


def settings_of_store(file_io: FileIO) -> StoreSettings | None:
    """Return how the object store that holds the files is opened; None if they are on no object store."""
    if isinstance(file_io, _WRAPPERS):
        return settings_of_store(file_io.inner)
    return file_io.settings if isinstance(file_io, ObjectFileIO) else None


def storage_options(file_io: FileIO) -> dict[str, str]:
    """Return the options with which ``resolve`` returns the same storage in another process; they may hold keys."""
    if isinstance(file_io, _WRAPPERS):
        return storage_options(file_io.inner)
    if isinstance(file_io, HdfsFileIO):
        return dict(file_io.settings)
    return dict(file_io.settings.options) if isinstance(file_io, ObjectFileIO) else {}
