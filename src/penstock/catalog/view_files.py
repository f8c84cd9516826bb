"""Views in a warehouse directory: one file per view, in ``.views`` of the database (design/0073).

Paimon does not support views there. Its engines do not mistake the directory for a table, as it has no schema and
begins with a dot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.stored_view import View, decode_view, encode_view
from penstock.catalog.warehouse import location_of_database
from penstock.errors import AlreadyExistsError, InvalidSchemaError, NotFoundError
from penstock.format.file_name import check_length

if TYPE_CHECKING:
    from penstock.catalog.names import TableName
    from penstock.catalog.warehouse import Warehouse
    from penstock.io.file_io import FileIO

_DIRECTORY: Final = ".views"
_SUFFIX: Final = ".json"


def list_views(warehouse: Warehouse, database: str) -> tuple[str, ...]:
    """Return the sorted names of the views of a database; none if there is no such database."""
    found = _storage(warehouse, database).list(f"{location_of_database(warehouse, database)}/{_DIRECTORY}")
    names = (status.name for status in found if not status.is_dir and not status.name.startswith("."))
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def view_exists(warehouse: Warehouse, name: TableName) -> bool:
    """Whether there is a view of that name."""
    return _storage(warehouse, name.database).exists(_path(warehouse, name))


def load_view(warehouse: Warehouse, name: TableName) -> View:
    """Return a view. Raises ``NotFoundError`` or ``FormatError``."""
    try:
        data = _storage(warehouse, name.database).read(_path(warehouse, name))
    except NotFoundError:
        raise _missing(warehouse, name) from None
    return decode_view(data, str(name))


def create_view(warehouse: Warehouse, name: TableName, view: View) -> None:
    """Create a view; of concurrent creators one succeeds. Raises ``AlreadyExistsError``."""
    check_length(name.table, f"view {name}", InvalidSchemaError)
    if not _storage(warehouse, name.database).put_if_absent(_path(warehouse, name), encode_view(view)):
        raise AlreadyExistsError(f"view {name} already exists; choose another name, or replace it")


def replace_view(warehouse: Warehouse, name: TableName, view: View) -> None:
    """Replace the definition of a view atomically; of concurrent calls the last one wins. Raises ``NotFoundError``."""
    if not view_exists(warehouse, name):
        raise _missing(warehouse, name)
    _storage(warehouse, name.database).write(_path(warehouse, name), encode_view(view))


def drop_view(warehouse: Warehouse, name: TableName) -> None:
    """Remove a view. Raises ``NotFoundError``."""
    if not _storage(warehouse, name.database).delete(_path(warehouse, name)):
        raise _missing(warehouse, name)


def rename_view(warehouse: Warehouse, source: TableName, target: TableName) -> None:
    """Rename a view; a crash in between leaves it under both names. Raises as ``create_view``, ``drop_view``."""
    create_view(warehouse, target, load_view(warehouse, source))
    drop_view(warehouse, source)


def _storage(warehouse: Warehouse, database: str) -> FileIO:
    """Return the storage of the view files of a database, which follows no link below its directory."""
    return warehouse.file_io.confined(location_of_database(warehouse, database))


def _path(warehouse: Warehouse, name: TableName) -> str:
    return f"{location_of_database(warehouse, name.database)}/{_DIRECTORY}/{name.table}{_SUFFIX}"


def _missing(warehouse: Warehouse, name: TableName) -> NotFoundError:
    return NotFoundError(f"view {name} does not exist in {warehouse.location}; check the name")
