"""Views of a catalog, in files of a warehouse or on a REST server.

Names are ``database.view``. A view and a table cannot have the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog import tables, view_files
from penstock.catalog.names import TableName, parse_data_table_name
from penstock.catalog.rest import views as rest
from penstock.errors import AlreadyExistsError, NotFoundError, UnsupportedFeatureError
from penstock.options.external import VIEWS_KEY, ViewOptions

if TYPE_CHECKING:
    from penstock.catalog.stored_view import View
    from penstock.catalog.warehouse import Warehouse


def list_views(warehouse: Warehouse, database: str) -> tuple[str, ...]:
    """Return the sorted names of the views of a database. Raises ``NotFoundError``: there is no such database."""
    if warehouse.server is not None:
        return rest.list_views(warehouse.server, database)
    tables.check_database_exists(warehouse, database)
    return view_files.list_views(warehouse, database)


def view_exists(warehouse: Warehouse, name: str) -> bool:
    """Whether there is a view of that name."""
    parsed = parse_data_table_name(name)
    if warehouse.server is not None:
        return rest.view_exists(warehouse.server, parsed)
    return view_files.view_exists(warehouse, parsed)


def load_view(warehouse: Warehouse, name: str) -> View:
    """Return a view.

    Raises:
        NotFoundError: there is none.
        FormatError: its definition is damaged.
        UnsupportedFeatureError: the user of the catalog does not allow views.
    """
    parsed = parse_data_table_name(name)
    if warehouse.server is not None:
        found = rest.load_view(warehouse.server, parsed)
    else:
        found = view_files.load_view(warehouse, parsed)
    _check_allowed(warehouse, parsed)
    return found


def create_view(warehouse: Warehouse, name: str, view: View) -> None:
    """Create a view.

    Raises:
        AlreadyExistsError: there is a view or a table of that name.
        NotFoundError: the database does not exist.
        InvalidSchemaError: the name is not valid.
        UnsupportedFeatureError: the user of the catalog does not allow views.
    """
    parsed = _vacant(warehouse, name)
    _check_allowed(warehouse, parsed)
    if warehouse.server is not None:
        rest.create_view(warehouse.server, parsed, view)
    else:
        view_files.create_view(warehouse, parsed, view)


def replace_view(warehouse: Warehouse, name: str, view: View) -> None:
    """Replace the definition of a view. Raises ``NotFoundError``, or ``UnsupportedFeatureError`` as ``load_view``."""
    parsed = parse_data_table_name(name)
    _check_allowed(warehouse, parsed)
    if warehouse.server is not None:
        rest.replace_view(warehouse.server, parsed, view)
    else:
        view_files.replace_view(warehouse, parsed, view)


def create_or_replace_view(warehouse: Warehouse, name: str, view: View) -> None:
    """Create a view, or replace an existing one. Raises as ``create_view``."""
    while True:  # repeated only if another process created or dropped the view in between
        try:
            return replace_view(warehouse, name, view)
        except NotFoundError:
            pass
        try:
            return create_view(warehouse, name, view)
        except AlreadyExistsError:
            if not view_exists(warehouse, name):  # a table has the name
                raise


def drop_view(warehouse: Warehouse, name: str) -> None:
    """Remove a view. Raises ``NotFoundError``."""
    parsed = parse_data_table_name(name)
    if warehouse.server is not None:
        rest.drop_view(warehouse.server, parsed)
    else:
        view_files.drop_view(warehouse, parsed)


def rename_view(warehouse: Warehouse, source: str, target: str) -> None:
    """Rename a view. Raises ``NotFoundError``; or as ``create_view`` for the new name."""
    old, new = parse_data_table_name(source), _vacant(warehouse, target)
    if warehouse.server is not None:
        rest.rename_view(warehouse.server, old, new)
    else:
        view_files.rename_view(warehouse, old, new)


def _vacant(warehouse: Warehouse, name: str) -> TableName:
    parsed = parse_data_table_name(name)
    if parsed.table in tables.list_tables(warehouse, parsed.database):
        raise AlreadyExistsError(f"view {name} cannot be created: there is a table of that name; choose another one")
    return parsed


def _check_allowed(warehouse: Warehouse, name: TableName) -> None:
    """Raise unless views may be read: the text of a view runs in the session of its reader."""
    if not ViewOptions.parse(dict(warehouse.options)).allowed:
        raise UnsupportedFeatureError(
            f"view {name} is not read: the catalog {warehouse.location} was opened without views ('{VIEWS_KEY}' ="
            " 'false'), because a view runs SQL that others wrote; if you trust them, open it with views"
        )
