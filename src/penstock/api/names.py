"""Names of databases and tables in statements, resolved by the catalogs of a session and the current names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

from penstock.catalog.names import DEFAULT_DATABASE, TableName, check_name
from penstock.catalog.system_tables import CATALOG_TABLES, SYSTEM_DATABASE
from penstock.errors import InvalidSqlError, NotFoundError, UnsupportedFeatureError
from penstock.format.layout import split_branch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.api.table import Table

Path: TypeAlias = tuple[str, ...]
"""A name of one to three parts: table; database and table; or catalog, database and table."""
_MAX_PARTS: Final = 3


class TableCatalog(Protocol):
    """What names are resolved in; ``Catalog`` is one."""

    def load_table(
        self, name: str, options: Mapping[str, str] | None = None, /, *, skip_damaged_schemas: bool = False
    ) -> Table:
        """Load a table. Raises ``TableStoreError``."""

    def list_databases(self) -> tuple[str, ...]:
        """Return the names of the databases."""

    def list_tables(self, database: str, /) -> tuple[str, ...]:
        """Return the names of the tables of a database. Raises ``NotFoundError``."""


_Catalog = TypeVar("_Catalog", bound=TableCatalog)


def near_or_all(name: str, names: Sequence[str], before: str = "") -> str:
    """Return the end of an error text: the most similar of these names, or the list of all.

    Args:
        before: what is written before each name.
    """
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {before}{near[0]}?"
    return f"there are {', '.join(f'{before}{each}' for each in dict.fromkeys(names)) or 'none yet'}"


class CatalogNames(Generic[_Catalog]):
    """Resolves names.

    Attributes:
        catalogs: catalogs by name.
        catalog_name: of the current catalog.
        database: the current database.
    """

    def __init__(self, catalogs: dict[str, _Catalog], catalog_name: str) -> None:
        self.catalogs = catalogs
        self.catalog_name = catalog_name
        self.database = DEFAULT_DATABASE

    def full(self, path: Path) -> Path:
        """Return a table's name with its database and catalog.

        Raises:
            InvalidSqlError: the name has more than three parts.
            InvalidSchemaError: a part is not a valid name.
        """
        text = ".".join(path)
        if len(path) > _MAX_PARTS:
            raise InvalidSqlError(f"'{text}': a name has at most {_MAX_PARTS} parts: catalog.database.table")
        for part in path:
            check_name(part, f"name '{text}'")
        return (self.catalog_name, self.database)[: _MAX_PARTS - len(path)] + path

    def full_database(self, path: Path) -> Path:
        """Return a database's name with its catalog.

        Raises:
            InvalidSqlError: the name has more than two parts.
        """
        if len(path) > 2:
            raise InvalidSqlError(f"'{'.'.join(path)}' is not a database: write catalog.database")
        return path if len(path) == 2 else (self.catalog_name, *path)

    def catalog(self, name: str) -> _Catalog:
        """Return a catalog by its name. Raises ``NotFoundError``."""
        if name not in self.catalogs:
            raise NotFoundError(f"there is no catalog '{name}' in this session; {near_or_all(name, [*self.catalogs])}")
        return self.catalogs[name]

    def catalog_of(self, path: Path) -> tuple[_Catalog, str]:
        """Return the catalog of a table, and its name there: ``database.table``, with backquotes where needed.

        Raises:
            InvalidSqlError, InvalidSchemaError: as ``full``, or the name is reserved for system tables.
            NotFoundError: there is no such catalog.
            UnsupportedFeatureError: a branch of a table.
        """
        catalog, database, table = self.full(path)
        if database == SYSTEM_DATABASE:
            raise InvalidSqlError(
                f"{database}.{table}: {database} has system tables only, which queries read: "
                f"{', '.join(CATALOG_TABLES)}"
            )
        if split_branch(table)[1] is not None:
            raise UnsupportedFeatureError(
                f"{database}.{table}: this statement is for tables, not for their branches; CALL sys.delete_branch"
                " removes a branch"
            )
        return self.catalog(catalog), str(TableName(database=database, table=table))

    def load(
        self, path: Path, options: Mapping[str, str] | None = None, *, skip_damaged_schemas: bool = False
    ) -> Table:
        """Load a table of a catalog.

        Args:
            skip_damaged_schemas: as for ``Catalog.load_table``.

        Raises:
            TableStoreError: as ``Catalog.load_table``; if there is no such table, the message lists those that there
                are.
        """
        table, branch = split_branch(path[-1])
        path = (*path[:-1], table)
        if branch is not None:
            options = {"branch": branch, **(options or {})}
        try:
            if skip_damaged_schemas:
                catalog, name = self.catalog_of(path)
                return catalog.load_table(name, options, skip_damaged_schemas=True)
            return self._open(path, options)
        except NotFoundError as error:
            raise self._not_found(path, error) from error

    def _open(self, path: Path, options: Mapping[str, str] | None) -> Table:
        catalog, name = self.catalog_of(path)
        return catalog.load_table(name, options)

    def _session_names(self, catalog: str, database: str) -> tuple[str, ...]:
        """Return the names of a database that are not tables of its catalog."""
        del catalog, database
        return ()

    def _other_database(self, table: str) -> str:
        """Return how to name a table of another database."""
        return f"write database.{table}: Spark hands its current database to no procedure"

    def _not_found(self, path: Path, error: NotFoundError) -> NotFoundError:
        """Return an error that lists the existing names; return the given error if the table itself exists."""
        catalog, database, table = self.full(path)
        databases = self.catalog(catalog).list_databases()
        if database not in databases:
            if len(path) == 1:
                there = f"its databases are {', '.join(databases)}" if databases else "it has no databases yet"
                return NotFoundError(
                    f"there is no table {table}: the current database {database} has no tables; catalog {catalog}: "
                    f"{there}; {self._other_database(table)}"
                )
            others = databases if database == DEFAULT_DATABASE else (*databases, DEFAULT_DATABASE)
            return NotFoundError(
                f"there is no database {database} in catalog {catalog}; {near_or_all(database, others)}"
            )
        tables = self.catalog(catalog).list_tables(database)
        if table in tables:
            return error
        own = self._session_names(catalog, database)
        # As it has to be written: with the database if the name had one.
        before = "" if len(path) == 1 else f"{database}." if catalog == self.catalog_name else f"{catalog}.{database}."
        found = near_or_all(table, (*tables, *own), before)
        return NotFoundError(f"there is no table {database}.{table}; {found}")
