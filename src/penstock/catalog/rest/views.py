"""Views of a REST catalog; the counterpart of ``catalog.view_files``.

Source:
    Paimon ``api:rest/ResourcePaths.java``, ``api:rest/RESTApi.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.stored_view import View, parse_view, view_body
from penstock.errors import AlreadyExistsError, NotFoundError, TableStoreError, UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock.catalog.names import TableName
    from penstock.io.rest.server import RestServer


def list_views(server: RestServer, database: str) -> tuple[str, ...]:
    """Return the sorted names of the views of a database; none if the server does not support views."""
    try:
        return tuple(sorted(server.names("databases", database, "views", key="views", about=f"database {database}")))
    except UnsupportedFeatureError:
        return ()


def view_exists(server: RestServer, name: TableName) -> bool:
    """Whether the server has a view of that name."""
    try:
        load_view(server, name)
    except NotFoundError:
        return False
    return True


def load_view(server: RestServer, name: TableName) -> View:
    """Return a view. Raises ``FormatError``, or ``NotFoundError``, also if the server does not support views."""
    try:
        found = server.get(*_path(name), about=f"view {name}")
    except UnsupportedFeatureError as error:
        raise NotFoundError(str(error)) from error
    return parse_view(found.get("schema"), str(name))


def create_view(server: RestServer, name: TableName, view: View) -> None:
    """Create a view. Raises ``AlreadyExistsError``."""
    body = {"identifier": _identifier(name), "schema": view_body(view)}
    server.post("databases", name.database, "views", about=f"view {name}", body=body)


def replace_view(server: RestServer, name: TableName, view: View) -> None:
    """Drop a view and create it again: the protocol cannot change its columns. Raises ``NotFoundError``."""
    before = load_view(server, name)
    drop_view(server, name)
    try:
        create_view(server, name, view)
    except TableStoreError:
        create_view(server, name, before)
        raise


def drop_view(server: RestServer, name: TableName) -> None:
    """Remove a view. Raises ``NotFoundError``."""
    server.delete(*_path(name), about=f"view {name}")


def rename_view(server: RestServer, source: TableName, target: TableName) -> None:
    """Rename a view. Raises ``NotFoundError`` or ``AlreadyExistsError``."""
    if view_exists(server, target):  # a server may replace an existing one
        raise AlreadyExistsError(f"cannot rename {source} to {target}: there is a view of that name")
    body = {"source": _identifier(source), "destination": _identifier(target)}
    server.post("views", "rename", about=f"view {source}", body=body)


def _path(name: TableName) -> tuple[str, ...]:
    return ("databases", name.database, "views", name.table)


def _identifier(name: TableName) -> dict[str, str]:
    return {"database": name.database, "object": name.table}
