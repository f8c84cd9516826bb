"""What a catalog is kept in: names of databases, tables and views, and the schemas of the tables.

A new kind of catalog is one module with a subclass of ``Backend``, and a line in ``warehouse.BACKENDS``, which opens it
by the option ``metastore``. The data of a table always lie in a directory: a backend only names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.catalog.names import DEFAULT_DATABASE, parse_data_table_name
from penstock.errors import AlreadyExistsError, NotFoundError, UnsupportedFeatureError
from penstock.options.external import PREFIX, VIEWS_KEY, ViewOptions
from penstock.options.write import DURABLE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.catalog.names import TableName
    from penstock.catalog.new_schema import TableDefinition
    from penstock.catalog.place import TablePlace
    from penstock.catalog.stored_view import View
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(ABC):
    """Databases, tables and views of one catalog. Picklable.

    Names of tables and views are ``database.name``; those of tables may be a location where the backend allows it.

    Attributes:
        location: path without a trailing slash in the form that the storage accepts; on a server the catalog's name.
        options: pairs of catalog options; ``table-default.<key>`` options apply to new tables.
    """

    location: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    puts_schemas: ClassVar[bool] = True
    """Whether this process puts a schema into the table's directory in one step; a server may change it step by step
    and create the directory itself."""

    @property
    def use_options(self) -> tuple[tuple[str, str], ...]:
        """Catalog options that apply to all handles of its tables."""
        return tuple((key, value) for key, value in self.options if key == DURABLE_KEY or key.startswith(PREFIX))

    def without_views(self) -> Self:
        """Return the backend with the option that refuses its views."""
        return replace(self, options=tuple({**dict(self.options), VIEWS_KEY: "false"}.items()))

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is such a catalog."""

    @abstractmethod
    def place_of(self, name: str) -> TablePlace:
        """Return the location of a table that exists or will be created.

        Args:
            name: ``database.table``, or a path or URI, which contains a slash.

        Raises:
            InvalidSchemaError: the name is not valid.
            UnsupportedFeatureError: the backend decides where its tables are.
        """

    # Databases

    @abstractmethod
    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a database.

        Raises:
            AlreadyExistsError: the database exists, and ``if_not_exists`` is false.
            InvalidSchemaError: the name is not valid.
        """

    @abstractmethod
    def list_databases(self) -> tuple[str, ...]:
        """Return the sorted names of the databases; names that are not valid are skipped."""

    @abstractmethod
    def check_database_exists(self, name: str) -> None:
        """Check that a database exists. Raises ``NotFoundError`` or ``InvalidSchemaError``."""

    @abstractmethod
    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database.

        Args:
            cascade: drop its tables and views too; otherwise a database with any is not dropped.

        Raises:
            FormatError: a directory in it has snapshots or manifests, but no schema; nothing is deleted.
            NotFoundError: the database does not exist, and ``if_exists`` is false.
            InvalidOptionError: the database has tables or views, and ``cascade`` is false.
        """

    # Tables

    @abstractmethod
    def list_tables(self, database: str, *, like: str | None = None) -> tuple[str, ...]:
        """Return the sorted names of the tables of a database; names that are not valid are skipped.

        Args:
            like: only names that differ from it in nothing but case, if the backend finds these faster than all.

        Raises:
            NotFoundError: the database does not exist.
        """

    @abstractmethod
    def create_table(self, name: str, definition: TableDefinition, *, if_not_exists: bool = False) -> TableRef:
        """Create a table; of concurrent creators one succeeds.

        Args:
            if_not_exists: return the existing table, even if its columns differ.

        Raises:
            AlreadyExistsError: the table exists, or there are other files in its directory.
            NotFoundError: the database does not exist.
            InvalidSchemaError: names, columns, keys or the watermark are invalid.
            InvalidOptionError: an option is invalid, or two options exclude each other.
            UnsupportedFeatureError: the table uses a feature of the format that Penstock does not support.
        """

    @abstractmethod
    def plan_table(self, name: str, definition: TableDefinition) -> TableRef | None:
        """Return a new table whose first schema is not put yet; None if there is a table. Raises as ``create_table``.

        Where ``puts_schemas`` is false, the table is created: only the server knows its directory.
        """

    @abstractmethod
    def load_table(self, name: str, *, skip_damaged_schemas: bool = False) -> TableRef:
        """Load a table with its latest schema.

        Args:
            skip_damaged_schemas: with the newest schema whose file is not damaged, if the backend reads the files.

        Raises:
            NotFoundError: the table does not exist.
            FormatError: the schema is damaged.
            UnsupportedFeatureError: the rows cannot be read correctly: a primary key, another kind of table, and so on.
            InvalidSchemaError, InvalidOptionError: the schema violates a rule of the format.
        """

    @abstractmethod
    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a table and its files. Raises ``NotFoundError`` unless ``if_exists``, or ``StorageError``."""

    @abstractmethod
    def rename_table(self, source: str, target: str) -> None:
        """Rename a table within the catalog; readers and writers that use the old name fail.

        Raises:
            NotFoundError: the table or the target database does not exist.
            AlreadyExistsError: the new name is taken.
            InvalidSchemaError: a name is not valid.
        """

    @abstractmethod
    def alter_table(self, name: str, changes: Sequence[SchemaChange]) -> TableRef:
        """Apply changes to the schema of a table, or of a branch ``database.table$branch_b``, all or none.

        Concurrent changes by other writers are kept.

        Returns:
            The table with its new schema, or with its current one if the changes have no effect.

        Raises:
            NotFoundError: the table or a column does not exist.
            AlreadyExistsError: a column of that name exists.
            InvalidSchemaError, InvalidOptionError, UnsupportedFeatureError: a change is not allowed.
        """

    def create_default_database(self, database: str | None) -> None:
        """Create a database that does not exist, if it is the one of names without a database, as Flink does."""
        if database == DEFAULT_DATABASE:
            self.create_database(database, if_not_exists=True)

    # Views, which no backend gives the name of a table

    @abstractmethod
    def list_views(self, database: str) -> tuple[str, ...]:
        """Return the sorted names of the views of a database. Raises ``NotFoundError``: there is no such database."""

    def view_exists(self, name: str) -> bool:
        """Whether there is a view of that name."""
        return self._view_exists(parse_data_table_name(name))

    def load_view(self, name: str) -> View:
        """Return a view.

        Raises:
            NotFoundError: there is none.
            FormatError: its definition is damaged.
            UnsupportedFeatureError: the user of the catalog does not allow views.
        """
        parsed = parse_data_table_name(name)
        found = self._load_view(parsed)
        self._check_views_allowed(parsed)
        return found

    def create_view(self, name: str, view: View) -> None:
        """Create a view.

        Raises:
            AlreadyExistsError: there is a view or a table of that name.
            NotFoundError: the database does not exist.
            InvalidSchemaError: the name is not valid.
            UnsupportedFeatureError: the user of the catalog does not allow views.
        """
        self.create_default_database(parse_data_table_name(name).database)
        parsed = self._vacant(name)
        self._check_views_allowed(parsed)
        self._create_view(parsed, view)

    def replace_view(self, name: str, view: View) -> None:
        """Replace the definition of a view. Raises as ``load_view``."""
        parsed = parse_data_table_name(name)
        self._check_views_allowed(parsed)
        self._replace_view(parsed, view)

    def create_or_replace_view(self, name: str, view: View) -> None:
        """Create a view, or replace an existing one. Raises as ``create_view``."""
        while True:  # repeated only if another process created or dropped the view in between
            try:
                return self.replace_view(name, view)
            except NotFoundError:
                pass
            try:
                return self.create_view(name, view)
            except AlreadyExistsError:
                if not self.view_exists(name):  # a table has the name
                    raise

    def drop_view(self, name: str) -> None:
        """Remove a view. Raises ``NotFoundError``."""
        self._drop_view(parse_data_table_name(name))

    def rename_view(self, source: str, target: str) -> None:
        """Rename a view. Raises ``NotFoundError``; or as ``create_view`` for the new name."""
        self._rename_view(parse_data_table_name(source), self._vacant(target))

    @abstractmethod
    def _view_exists(self, name: TableName) -> bool: ...

    @abstractmethod
    def _load_view(self, name: TableName) -> View: ...

    @abstractmethod
    def _create_view(self, name: TableName, view: View) -> None: ...

    @abstractmethod
    def _replace_view(self, name: TableName, view: View) -> None: ...

    @abstractmethod
    def _drop_view(self, name: TableName) -> None: ...

    @abstractmethod
    def _rename_view(self, source: TableName, target: TableName) -> None: ...

    def _vacant(self, name: str) -> TableName:
        parsed = parse_data_table_name(name)
        if parsed.table in self.list_tables(parsed.database):
            raise AlreadyExistsError(
                f"view {name} cannot be created: there is a table of that name; choose another one"
            )
        return parsed

    def _check_views_allowed(self, name: TableName) -> None:
        """Raise unless views may be read: the text of a view runs in the session of its reader."""
        if not ViewOptions.parse(dict(self.options)).allowed:
            raise UnsupportedFeatureError(
                f"view {name} is not read: the catalog {self.location} was opened without views ('{VIEWS_KEY}' ="
                " 'false'), because a view runs SQL that others wrote; if you trust them, open it with views"
            )
