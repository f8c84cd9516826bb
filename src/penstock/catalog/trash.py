"""Drop a directory so that no reader sees a part of it.

The directory is first renamed into the trash, which is one step on the storage, and deleted there. A crash in between
leaves files that no reader opens; the next drop in the same warehouse deletes them.

Object stores cannot rename directories. There the schema files are deleted first, the latest one last: a directory
without schemas is not a table, and the next drop of the same name deletes its files.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock.catalog.schema_files import list_schema_ids
from penstock.catalog.warehouse import trash_path
from penstock.errors import NotFoundError, StorageError, UnsupportedFeatureError
from penstock.format.layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.io.file_io import FileIO


def discard(file_io: FileIO, path: str, trash: str, name: str, *, tables: Sequence[str] = ()) -> None:
    """Rename a directory into the trash, then empty the trash.

    Args:
        tables: directories of tables in it.

    Raises:
        NotFoundError: the directory does not exist, or another process has dropped it.
        StorageError: the rename failed and the directory is unchanged; or it was renamed and its files are not deleted
            yet.
    """
    aside = trash_path(trash, name)
    try:
        is_renamed = file_io.rename_dir(path, aside)
    except UnsupportedFeatureError:
        _delete_in_place(file_io, path, tables)
        return
    if not is_renamed:
        raise StorageError(f"cannot drop {path}: {aside} is taken", True)  # noqa: FBT003 - see StorageError
    file_io.delete(aside, recursive=True)
    _empty(file_io, trash)


def _delete_in_place(file_io: FileIO, path: str, tables: Sequence[str]) -> None:
    for table in tables:
        for schema_id in list_schema_ids(file_io, table):
            file_io.delete(TableLayout(table).schema_path(schema_id))
    if not file_io.delete(path, recursive=True) and not tables:
        raise NotFoundError(f"cannot drop {path}: it does not exist")
    if path not in tables and file_io.exists(path):
        raise StorageError(
            f"the tables of {path} are dropped, but it is still there: another process has made a table in it, or "
            f"another engine an object {path}/ to mark the directory, which Penstock cannot delete; delete that object "
            "with a tool of the store"
        )


def _empty(file_io: FileIO, trash: str) -> None:
    """Delete the files of earlier drops; ignore errors, because another process may delete them at the same time."""
    for status in file_io.list(trash):
        with contextlib.suppress(StorageError, NotFoundError):
            file_io.delete(status.path, recursive=True)
    with contextlib.suppress(StorageError, NotFoundError):
        file_io.delete(trash)
