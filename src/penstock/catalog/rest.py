"""A catalog on a server that implements Paimon's REST protocol.

The server manages names and changes schemas; the table's directory holds its files, including schemas and snapshots.

Source:
    Paimon ``core:rest/RESTCatalog.java``, ``api:rest/ResourcePaths.java``, ``api:rest/RESTApi.java``; schema changes as
    JSON: ``api:schema/SchemaChange.java`` and ``SchemaChange`` in ``docs/static/rest-catalog-open-api.yaml``;
    design/0058.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, assert_never

from penstock.catalog.backend import Backend
from penstock.catalog.changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    path_of,
)
from penstock.catalog.checks.columns import check_schema
from penstock.catalog.checks.features import check_readable
from penstock.catalog.names import (
    TableName,
    check_database_name,
    is_location,
    parse_data_table_name,
    split_table_branch,
)
from penstock.catalog.new_schema import build_schema, table_defaults
from penstock.catalog.place import load_schema
from penstock.catalog.schema_changes import change_stored_schema
from penstock.catalog.stored_view import parse_view, view_body
from penstock.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    NotFoundError,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.format.types.text import encode_field, encode_type, parse_sql_type
from penstock.io.resolve import resolve
from penstock.io.rest.connect import connect
from penstock.io.rest.table import RestTableFileIO
from penstock.table.assumptions import new_creation_millis
from penstock.table.ref import TableRef, storage_of_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.catalog.changes import ColumnPath, Position, SchemaChange
    from penstock.catalog.new_schema import TableDefinition
    from penstock.catalog.place import TablePlace
    from penstock.catalog.stored_view import View
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataType
    from penstock.io.file_io import FileIO
    from penstock.io.rest.server import RestServer

_ColumnChange: TypeAlias = (
    AddColumn
    | RenameColumn
    | DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefault
)


def open_server(location: str, options: Mapping[str, str]) -> RestBackend:
    """Connect to the server at the option ``uri``; ``location`` is the name of the catalog there.

    Raises:
        StorageError: the server does not answer.
    """
    server, merged = connect(location, options)
    return RestBackend(location=location, options=tuple(merged.items()), server=server)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestBackend(Backend):
    """A catalog of a REST server."""

    puts_schemas: ClassVar[bool] = False

    server: RestServer

    def exists(self) -> bool:
        """Return true: the server has already answered."""
        return True

    def place_of(self, name: str) -> TablePlace:
        """Refuse: the server decides where its tables are."""
        raise UnsupportedFeatureError(
            f"table {name}: this needs a table in a directory, and the REST catalog at {self.server.uri} decides "
            "where its tables are"
        )

    # Databases

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a database."""
        check_database_name(name)
        try:
            self.server.post("databases", about=f"database {name}", body={"name": name, "options": {}})
        except AlreadyExistsError as error:
            if not if_not_exists:
                raise AlreadyExistsError(f"database {name} already exists in {self.location}") from error

    def list_databases(self) -> tuple[str, ...]:
        """Return the sorted names of the databases."""
        return tuple(sorted(self.server.names("databases", key="databases", about="list of the databases")))

    def list_tables(self, database: str, *, like: str | None = None) -> tuple[str, ...]:  # noqa: ARG002 - no filter
        """Return the names of all tables of a database, sorted."""
        check_database_name(database)
        path = ("databases", database, "tables")
        return tuple(sorted(self.server.names(*path, key="tables", about=f"database {database}")))

    def check_database_exists(self, name: str) -> None:
        """Ask the server for the database."""
        check_database_name(name)
        self.server.get("databases", name, about=f"database {name}")

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; the server deletes its tables."""
        try:
            tables = self.list_tables(name)
            held = tables if cascade else [*tables, *self._views(name)]
            if held and not cascade:
                raise InvalidOptionError(
                    f"database {name} is not empty: it has {', '.join(held[:5])}{', …' if len(held) > 5 else ''};"
                    " drop them first, or give cascade"
                )
            self.server.delete("databases", name, about=f"database {name}")
        except NotFoundError:
            if not if_exists:
                raise

    # Tables

    def plan_table(self, name: str, definition: TableDefinition) -> TableRef | None:
        """Create the table."""
        return self.create_table(name, definition)

    def create_table(self, name: str, definition: TableDefinition, *, if_not_exists: bool = False) -> TableRef:
        """Create a table; the server chooses its directory."""
        table = self._parsed(name)
        defaults = table_defaults(dict(self.options))
        schema = build_schema(definition, defaults=defaults, table=str(table), time_millis=new_creation_millis())
        if table.table in self._views(table.database):
            raise AlreadyExistsError(
                f"table {table} cannot be created: there is a view of that name; choose another one"
            )
        self.create_default_database(table.database)
        body = {"identifier": _identifier(table), "schema": _schema_body(schema)}
        try:
            self.server.post("databases", table.database, "tables", about=f"table {table}", body=body)
        except AlreadyExistsError as error:
            if not if_not_exists:
                raise AlreadyExistsError(
                    f"table {table} already exists; choose another name, or give if_not_exists"
                ) from error
        return self.load_table(name)

    def load_table(self, name: str, *, skip_damaged_schemas: bool = False) -> TableRef:  # noqa: ARG002 - no files
        """Load a table with the server's schema."""
        table = self._parsed(name)
        found = self.server.get(*_path(table), about=f"table {table}")
        location, schema_id = found.get("path"), found.get("schemaId")
        if not isinstance(location, str) or type(schema_id) is not int:
            raise FormatError(f"table {table}: the REST catalog at {self.server.uri} names no path or no schema of it")
        file_io, place = resolve(location, self._storage_options(table))
        try:
            schema = load_schema(file_io, place, schema_id)
        except NotFoundError as error:
            raise NotFoundError(
                f"table {table}: the REST catalog at {self.server.uri} has schema {schema_id} of it in {location}, "
                "and from here there is no such file: mount that storage under the same path, or give the "
                "options to reach it"
            ) from error
        if found.get("isExternal") is not True:
            file_io = RestTableFileIO(
                inner=file_io,
                server=self.server,
                database=table.database,
                table=table.table,
                table_id=str(found.get("id")),
                location=place,
            )
        ref = self._ref(table, place, file_io, schema)
        check_readable(ref)
        check_schema(schema, ref.name, is_stored=True)
        return ref

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a table; the server deletes its files. Raises ``NotFoundError``."""
        table = self._parsed(name)
        try:
            self.server.delete(*_path(table), about=f"table {table}")
        except NotFoundError:
            if not if_exists:
                raise

    def rename_table(self, source: str, target: str) -> None:
        """Rename a table. Raises ``NotFoundError`` or ``AlreadyExistsError``."""
        old, new = self._parsed(source), self._parsed(target)
        if new.table in [*self.list_tables(new.database), *self._views(new.database)]:  # a server may replace it
            raise AlreadyExistsError(f"cannot rename {old} to {new}: there is a table or view of that name")
        body = {"source": _identifier(old), "destination": _identifier(new)}
        self.server.post("tables", "rename", about=f"table {old}", body=body)

    def alter_table(self, name: str, changes: Sequence[SchemaChange]) -> TableRef:
        """Change a schema on the server, after the same checks as for a table in a directory."""
        if split_table_branch(name)[1] is not None:
            raise UnsupportedFeatureError(
                f"table {name}: the REST catalog at {self.server.uri} keeps the schemas of its tables; those of a "
                "branch cannot be changed through it"
            )
        ref = self.load_table(name)
        evolved = change_stored_schema(ref.schema, changes, table=ref.name, file_io=ref.file_io, location=ref.location)
        if evolved is ref.schema:
            return ref
        body = {"changes": [_encode_change(change) for change in changes]}
        self.server.post(*_path(self._parsed(name)), about=f"table {ref.name}", body=body)
        return self.load_table(name)

    def _storage_options(self, table: TableName) -> dict[str, str]:
        """Return the options for the storage, with the temporary keys that the server provides for this table."""
        options = dict(self.options)
        if options.get("data-token.enabled", "").lower() != "true":
            return options
        found = self.server.get(*_path(table), "token", about=f"keys to the files of table {table}")
        token = found.get("token")
        if not isinstance(token, dict):
            raise StorageError(f"table {table}: the REST catalog at {self.server.uri} gave no keys for its files")
        return {**options, **self.server.options(token)}

    def _ref(self, table: TableName, place: str, file_io: FileIO, schema: TableSchema) -> TableRef:
        options = self.use_options
        return TableRef(
            name=str(table),
            location=place,
            file_io=storage_of_table(file_io, place, schema.option_map, dict(options), str(table)),
            schema=schema,
            dynamic_options=options,
        )

    def _views(self, database: str) -> tuple[str, ...]:
        with suppress(NotFoundError):
            return self.list_views(database)
        return ()

    # Views

    def list_views(self, database: str) -> tuple[str, ...]:
        """Return the sorted names of the views of a database; none if the server does not support views."""
        try:
            return tuple(
                sorted(self.server.names("databases", database, "views", key="views", about=f"database {database}"))
            )
        except UnsupportedFeatureError:
            return ()

    def _view_exists(self, name: TableName) -> bool:
        try:
            self._load_view(name)
        except NotFoundError:
            return False
        return True

    def _load_view(self, name: TableName) -> View:
        try:
            found = self.server.get(*_view_path(name), about=f"view {name}")
        except UnsupportedFeatureError as error:
            raise NotFoundError(str(error)) from error
        return parse_view(found.get("schema"), str(name))

    def _create_view(self, name: TableName, view: View) -> None:
        body = {"identifier": _identifier(name), "schema": view_body(view)}
        self.server.post("databases", name.database, "views", about=f"view {name}", body=body)

    def _replace_view(self, name: TableName, view: View) -> None:
        """Drop a view and create it again: the protocol cannot change its columns. Raises ``NotFoundError``."""
        before = self._load_view(name)
        self._drop_view(name)
        try:
            self._create_view(name, view)
        except TableStoreError:
            self._create_view(name, before)
            raise

    def _drop_view(self, name: TableName) -> None:
        self.server.delete(*_view_path(name), about=f"view {name}")

    def _rename_view(self, source: TableName, target: TableName) -> None:
        if self._view_exists(target):  # a server may replace an existing one
            raise AlreadyExistsError(f"cannot rename {source} to {target}: there is a view of that name")
        body = {"source": _identifier(source), "destination": _identifier(target)}
        self.server.post("views", "rename", about=f"view {source}", body=body)

    def _parsed(self, name: str) -> TableName:
        if is_location(name):
            raise UnsupportedFeatureError(
                f"table {name}: the REST catalog at {self.server.uri} decides about commits to its tables, so they "
                "have no location: name the table 'database.table'"
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


def _view_path(name: TableName) -> tuple[str, ...]:
    return ("databases", name.database, "views", name.table)


def _encode_change(change: SchemaChange) -> dict[str, Any]:
    """Return the JSON of a change."""
    match change:
        case SetOption():
            return {"action": "setOption", "key": change.key, "value": change.value}
        case RemoveOption():
            return {"action": "removeOption", "key": change.key}
        case UpdateComment():
            return {"action": "updateComment", "comment": change.comment}
        case MoveColumn():
            return {"action": "updateColumnPosition", "move": _move(change.column, change.position)}
        case _:
            action, values = _column_change(change)
            return {"action": action, "fieldNames": list(path_of(change.column)), **values}


def _column_change(change: _ColumnChange) -> tuple[str, dict[str, Any]]:  # noqa: PLR0911 - one for each kind of change
    match change:
        case AddColumn():
            move = _move(change.column, change.position)
            return "addColumn", {"dataType": _type(change.type), "comment": change.description, "move": move}
        case RenameColumn():
            return "renameColumn", {"newName": change.new_name}
        case DropColumn():
            return "dropColumn", {}
        case UpdateColumnType():
            keeps = change.keep_nullability
            return "updateColumnType", {"newDataType": _type(change.type), "keepNullability": keeps}
        case UpdateColumnNullability():
            return "updateColumnNullability", {"newNullability": change.nullable}
        case UpdateColumnComment():
            return "updateColumnComment", {"newComment": change.comment}
        case UpdateColumnDefault():
            return "updateColumnDefaultValue", {"newDefaultValue": change.default}
        case other:
            assert_never(other)


def _type(declared: DataType | str) -> object:
    return encode_type(parse_sql_type(declared) if isinstance(declared, str) else declared)


def _move(column: ColumnPath, position: Position | None) -> dict[str, Any] | None:
    if position is None:
        return None
    return {
        "fieldName": path_of(column)[-1],
        "referenceFieldName": position.reference,
        "type": position.place.value,
    }
