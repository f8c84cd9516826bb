"""Databases and tables of a REST catalog; the counterpart of ``catalog.databases`` and ``catalog.filesystem``.

The server manages names and changes schemas; the table's directory holds its files, including schemas and snapshots.

Source:
    Paimon ``core:rest/RESTCatalog.java``; design/0058.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.catalog.checks.features import check_readable
from penstock.catalog.checks.schema import check_schema
from penstock.catalog.names import (
    TableName,
    check_database_name,
    is_location,
    parse_data_table_name,
    split_table_branch,
)
from penstock.catalog.new_schema import build_schema, table_defaults
from penstock.catalog.rest.change_json import encode_change
from penstock.catalog.rest.views import list_views
from penstock.catalog.schema_files import load_schema
from penstock.catalog.stored_changes import change_stored_schema
from penstock.catalog.warehouse import use_options
from penstock.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from penstock.format.types.text import encode_field
from penstock.io.resolve import resolve
from penstock.io.rest.table import RestTableFileIO
from penstock.table.identity import new_creation_millis
from penstock.table.ref import TableRef, storage_of_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.catalog.new_schema import TableDefinition
    from penstock.catalog.warehouse import Warehouse
    from penstock.format.schema import TableSchema
    from penstock.io.file_io import FileIO
    from penstock.io.rest.server import RestServer


def create_database(warehouse: Warehouse, server: RestServer, name: str, *, if_not_exists: bool) -> None:
    """Create a database. Raises as ``databases.create_database``."""
    check_database_name(name)
    try:
        server.post("databases", about=f"database {name}", body={"name": name, "options": {}})
    except AlreadyExistsError as error:
        if not if_not_exists:
            raise AlreadyExistsError(f"database {name} already exists in {warehouse.location}") from error


def list_databases(server: RestServer) -> tuple[str, ...]:
    """Return the sorted names of the databases."""
    return tuple(sorted(server.names("databases", key="databases", about="list of the databases")))


def list_tables(server: RestServer, database: str) -> tuple[str, ...]:
    """Return the sorted names of the tables of a database. Raises ``NotFoundError``."""
    check_database_name(database)
    path = ("databases", database, "tables")
    return tuple(sorted(server.names(*path, key="tables", about=f"database {database}")))


def check_database_exists(server: RestServer, name: str) -> None:
    """Check that a database exists. Raises ``NotFoundError`` or ``InvalidSchemaError``."""
    check_database_name(name)
    server.get("databases", name, about=f"database {name}")


def drop_database(server: RestServer, name: str, *, if_exists: bool, cascade: bool) -> None:
    """Drop a database; the server deletes its tables. Raises as ``databases.drop_database``."""
    try:
        tables = list_tables(server, name)
        held = tables if cascade else [*tables, *_views(server, name)]
        if held and not cascade:
            raise InvalidOptionError(
                f"database {name} is not empty: it has {', '.join(held[:5])}{', …' if len(held) > 5 else ''};"
                " drop them first, or give cascade"
            )
        server.delete("databases", name, about=f"database {name}")
    except NotFoundError:
        if not if_exists:
            raise


def create_table(
    warehouse: Warehouse, server: RestServer, name: str, definition: TableDefinition, *, if_not_exists: bool
) -> TableRef:
    """Create a table; the server chooses its directory. Raises as ``filesystem.create_table``."""
    table = _parsed(server, name)
    defaults = table_defaults(dict(warehouse.options))
    schema = build_schema(definition, defaults=defaults, table=str(table), time_millis=new_creation_millis())
    if table.table in _views(server, table.database):
        raise AlreadyExistsError(f"table {table} cannot be created: there is a view of that name; choose another one")
    body = {"identifier": _identifier(table), "schema": _schema_body(schema)}
    try:
        server.post("databases", table.database, "tables", about=f"table {table}", body=body)
    except AlreadyExistsError as error:
        if not if_not_exists:
            raise AlreadyExistsError(
                f"table {table} already exists; choose another name, or give if_not_exists"
            ) from error
    return load_table(warehouse, server, name)


def load_table(warehouse: Warehouse, server: RestServer, name: str) -> TableRef:
    """Load a table with the server's schema. Raises as ``filesystem.load_table``."""
    table = _parsed(server, name)
    found = server.get(*_path(table), about=f"table {table}")
    location, schema_id = found.get("path"), found.get("schemaId")
    if not isinstance(location, str) or type(schema_id) is not int:
        raise FormatError(f"table {table}: the REST catalog at {server.uri} names no path or no schema of it")
    file_io, place = resolve(location, _storage_options(warehouse, server, table))
    try:
        schema = load_schema(file_io, place, schema_id)
    except NotFoundError as error:
        raise NotFoundError(
            f"table {table}: the REST catalog at {server.uri} has schema {schema_id} of it in {location}, and from "
            "here there is no such file: mount that storage under the same path, or give the options to reach it"
        ) from error
    if found.get("isExternal") is not True:
        file_io = RestTableFileIO(
            inner=file_io,
            server=server,
            database=table.database,
            table=table.table,
            table_id=str(found.get("id")),
            location=place,
        )
    ref = _ref(warehouse, table, place, file_io, schema)
    check_readable(ref)
    check_schema(schema, ref.name, is_stored=True)
    return ref


def drop_table(server: RestServer, name: str, *, if_exists: bool) -> None:
    """Drop a table; the server deletes its files. Raises ``NotFoundError``."""
    table = _parsed(server, name)
    try:
        server.delete(*_path(table), about=f"table {table}")
    except NotFoundError:
        if not if_exists:
            raise


def rename_table(server: RestServer, source: str, target: str) -> None:
    """Rename a table. Raises ``NotFoundError`` or ``AlreadyExistsError``."""
    old, new = _parsed(server, source), _parsed(server, target)
    if new.table in [*list_tables(server, new.database), *_views(server, new.database)]:  # a server may replace it
        raise AlreadyExistsError(f"cannot rename {old} to {new}: there is a table or view of that name")
    body = {"source": _identifier(old), "destination": _identifier(new)}
    server.post("tables", "rename", about=f"table {old}", body=body)


def alter_table(warehouse: Warehouse, server: RestServer, name: str, changes: Sequence[SchemaChange]) -> TableRef:
    """Change a schema on the server, after the same checks as for a table in a directory.

    Raises as ``filesystem.alter_table``.
    """
    if split_table_branch(name)[1] is not None:
        raise UnsupportedFeatureError(
            f"table {name}: the REST catalog at {server.uri} keeps the schemas of its tables; those of a branch "
            "cannot be changed through it"
        )
    ref = load_table(warehouse, server, name)
    evolved = change_stored_schema(ref.schema, changes, table=ref.name, file_io=ref.file_io, location=ref.location)
    if evolved is ref.schema:
        return ref
    body = {"changes": [encode_change(change) for change in changes]}
    server.post(*_path(_parsed(server, name)), about=f"table {ref.name}", body=body)
    return load_table(warehouse, server, name)


def _views(server: RestServer, database: str) -> tuple[str, ...]:
    """Return the views of a database; none if there is no such database."""
    with suppress(NotFoundError):
        return list_views(server, database)
    return ()


def _parsed(server: RestServer, name: str) -> TableName:
    if is_location(name):
        raise UnsupportedFeatureError(
            f"table {name}: the REST catalog at {server.uri} decides about commits to its tables, so they have no "
            "location: name the table 'database.table'"
        )
    return parse_data_table_name(name)


def _path(table: TableName) -> tuple[str, ...]:
    return ("databases", table.database, "tables", table.table)


def _identifier(table: TableName) -> dict[str, str]:
    return {"database": table.database, "object": table.table}


def _schema_body(schema: TableSchema) -> dict[str, Any]:
    return {
        "fields": [encode_field(field) for field in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": [],
        "options": dict(schema.options),
        "comment": schema.comment,
    }


def _storage_options(warehouse: Warehouse, server: RestServer, table: TableName) -> dict[str, str]:
    """Return the options for the storage, with the temporary keys that the server provides for this table."""
    options = dict(warehouse.options)
    if options.get("data-token.enabled", "").lower() != "true":
        return options
    found = server.get(*_path(table), "token", about=f"keys to the files of table {table}")
    token = found.get("token")
    if not isinstance(token, dict):
        raise StorageError(f"table {table}: the REST catalog at {server.uri} gave no keys for its files")
    return {**options, **server.options(token)}


def _ref(warehouse: Warehouse, table: TableName, place: str, file_io: FileIO, schema: TableSchema) -> TableRef:
    given = use_options(warehouse)
    return TableRef(
        name=str(table),
        location=place,
        file_io=storage_of_table(file_io, place, schema.option_map, dict(given), str(table)),
        schema=schema,
        dynamic_options=given,
    )
