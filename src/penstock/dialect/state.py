"""State between statements: catalogs, current catalog and database, settings, session tables, views."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Final

from penstock.api.lazy import lazy_spark
from penstock.api.names import CatalogNames, Path
from penstock.catalog.names import DEFAULT_DATABASE, join_table_branch
from penstock.catalog.system_tables import CATALOG_TABLES, SYSTEM_DATABASE
from penstock.dialect.settings import MADE_FOR_SPARK, check_setting
from penstock.dialect.stored_views import view_of_catalog
from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NotFoundError,
    OptionWarning,
    TableStoreError,
    UnsupportedFeatureError,
    warn,
)
from penstock.format.layout import split_branch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.api.catalog import Catalog
    from penstock.api.table import Table
    from penstock.catalog.stored_view import View
    from penstock.dialect.parse.statements import CreateTable, CreateView

DEFAULT_CATALOG: Final = "paimon"


class SqlState(CatalogNames["Catalog"]):
    """Resolves names and stores the effects of statements; threads that use it share current names and settings.

    Attributes:
        has_named_query: whether a query of the statement set that runs has the name of the settings.
        catalogs: catalogs by name in this session; ``paimon`` is the catalog that the state is attached to.
    """

    def __init__(self) -> None:
        super().__init__({}, DEFAULT_CATALOG)
        self._calls = threading.local()
        self._lock = threading.Lock()
        self._attached = 0
        self.settings: dict[str, str] = {}
        self.has_named_query = False
        self.session_tables: dict[Path, CreateTable] = {}
        self.views: dict[Path, CreateView] = {}
        self._stored_views: dict[Path, View | None] = {}
        self._tables: dict[Path, Table] = {}

    @property
    def spark(self) -> SparkSession | None:
        """The Spark session of this thread's call; None if only statements without Spark are run."""
        found: SparkSession | None = getattr(self._calls, "spark", None)
        return found

    @contextmanager
    def attached(self, catalog: Catalog, spark: SparkSession | None) -> Iterator[None]:
        """Attach a catalog, and a Spark session if there is one, for the time of the ``with`` block.

        Calls may be inside of each other, as in ``foreachBatch``, and at the same time in several threads.
        """
        before = self.spark
        with self._lock:
            self._attached += 1
            self.catalogs[DEFAULT_CATALOG] = catalog
        self._calls.spark = spark
        try:
            yield
        finally:
            self._calls.spark = before
            with self._lock:
                self._attached -= 1
                if not self._attached:
                    del self.catalogs[DEFAULT_CATALOG]

    def at_catalog(self, name: str | None) -> SqlState:
        """Return the same state with another catalog, and its default database, as the current ones.

        Args:
            name: None, or the name of the current catalog, changes nothing.

        Raises:
            NotFoundError: there is no catalog of that name.
        """
        if name is None or name == self.catalog_name:
            return self
        self.catalog(name)
        other = copy(self)
        other.catalog_name, other.database = name, DEFAULT_DATABASE
        return other

    def forget_statement_caches(self) -> None:
        """Clear what the previous statement has read from storage."""
        self._stored_views.clear()
        self._tables.clear()

    def altered(self, path: Path) -> tuple[Catalog, str]:
        """Return the catalog and the name of a table or of a branch whose schema changes; errors as ``catalog_of``."""
        table, branch = split_branch(path[-1])
        catalog, name = self.catalog_of((*path[:-1], table))
        return catalog, name if branch is None else join_table_branch(name, branch)

    def session_table(self, path: Path) -> CreateTable | None:
        """Return a table that exists in this session only, or None."""
        return self.session_tables.get(self.full(path))

    def view(self, path: Path) -> CreateView | None:
        """Return a view of this session or of a catalog, or None.

        Raises:
            InvalidSqlError, UnsupportedFeatureError: it is a view of a catalog that only Spark's catalog can read.
        """
        full = self.full(path)
        stored = self.stored_view(path)
        return self.views.get(full) if stored is None else view_of_catalog(stored, full, self.catalogs)

    def stored_view(self, path: Path) -> View | None:
        """Return a view of a catalog, or None; also None if a name of the session hides it."""
        full = self.full(path)
        if full in self.views or full in self.session_tables:
            return None
        if full not in self._stored_views:
            self._stored_views[full] = self._load_view(full)
        return self._stored_views[full]

    def is_view(self, path: Path) -> bool:
        """Whether there is a view of that name, in this session or in a catalog."""
        return self.full(path) in self.views or self.stored_view(path) is not None

    def _load_view(self, path: Path) -> View | None:
        catalog_name, database, name = path
        if database == SYSTEM_DATABASE or "$" in name or catalog_name not in self.catalogs:
            return None
        catalog, full_name = self.catalog_of(path)
        try:  # there are more tables than views, and ``load`` takes the table that is found here
            self._tables[path] = catalog.load_table(full_name)
        except NotFoundError:
            with suppress(NotFoundError):
                return catalog.load_view(full_name)
        except TableStoreError:
            pass  # of a table, which ``load`` raises too
        return None

    def exists(self, path: Path) -> bool:
        """Whether a table or a view of that name exists."""
        if self.is_view(path) or self.session_table(path) is not None:
            return True
        catalog_name, database, table = self.full((*path[:-1], split_branch(path[-1])[0]))
        catalog = self.catalog(catalog_name)
        return database in catalog.list_databases() and table in catalog.list_tables(database)

    def load(
        self, path: Path, options: Mapping[str, str] | None = None, *, skip_damaged_schemas: bool = False
    ) -> Table:
        """Load a table of a catalog.

        Args:
            skip_damaged_schemas: as for ``Catalog.load_table``.

        Raises:
            UnsupportedFeatureError: the name is a session table or a view.
            TableStoreError: as ``Catalog.load_table``.
        """
        self._check_stored(path)
        return super().load(path, options, skip_damaged_schemas=skip_damaged_schemas)

    def _open(self, path: Path, options: Mapping[str, str] | None) -> Table:
        found = self._tables.pop(self.full(path), None)
        if found is None:
            return super()._open(path, options)
        return found.with_options(options) if options else found

    def _other_database(self, table: str) -> str:
        return f"write database.{table}, or USE one first"

    def _session_names(self, catalog: str, database: str) -> tuple[str, ...]:
        own = (place[2] for place in self.session_tables if place[:2] == (catalog, database))
        return (*self.view_names((catalog, database)), *own)

    def check_exists(self, path: Path) -> None:
        """Check that a name is that of a table of a catalog, whether or not its rows can be read.

        Raises:
            UnsupportedFeatureError: the name is a session table or a view.
            NotFoundError: there is no such table; the message lists those that there are.
        """
        self._check_stored(path)
        if not self.exists(path):
            raise self._not_found(path, NotFoundError(f"there is no table {'.'.join(path)}"))

    def _check_stored(self, path: Path) -> None:
        if self.is_view(path):
            raise UnsupportedFeatureError(
                f"{'.'.join(path)} is a view: it can be used in queries, DESCRIBE, SHOW CREATE VIEW and DROP VIEW"
            )
        if self.session_table(path) is not None:
            raise UnsupportedFeatureError(
                f"table {'.'.join(path)} belongs to this session and has a connector; it is not a table of a catalog"
            )

    def is_catalog_table(self, path: Path) -> bool:
        """Whether a name is that of a system table of a whole catalog, such as ``sys.tables``."""
        _, database, table = self.full(path)
        is_hidden = self.full(path) in self.views or self.session_table(path) is not None
        return database == SYSTEM_DATABASE and table in CATALOG_TABLES and not is_hidden

    def catalog_table(self, path: Path) -> pa.Table:
        """Return a system table of a whole catalog."""
        catalog, _, table = self.full(path)
        return self.catalog(catalog).system_table(table)

    def view_names(self, database: Path) -> tuple[str, ...]:
        """Return the sorted names of the views of a database, of the session and of its catalog."""
        catalog, name = self.full_database(database)
        stored: tuple[str, ...] = ()
        with suppress(NotFoundError):  # no such database yet
            stored = self.catalog(catalog).list_views(name)
        own = (path[2] for path in self.views if path[:2] == (catalog, name))
        return tuple(sorted({*stored, *own}))

    def add_session_table(self, table: CreateTable) -> bool:
        """Add a session table; return False if the name is taken and the statement has IF NOT EXISTS.

        Raises:
            AlreadyExistsError: the name is taken.
        """
        path = self.full(table.name)
        if path in self.session_tables or path in self.views:
            if table.if_not_exists:
                return False
            raise self.exists_already(path)
        self.session_tables[path] = table
        return True

    def exists_already(self, path: Path) -> AlreadyExistsError:
        """Return the error for a name that is taken."""
        name = ".".join(self.full(path)[1:])
        if self.stored_view(path) is not None:
            return AlreadyExistsError(
                f"view {name} already exists in the catalog; a TEMPORARY VIEW of that name would hide it, DROP VIEW"
                " removes it"
            )
        if not self.is_view(path) and self.session_table(path) is None:
            return AlreadyExistsError(f"table {name} already exists; a TEMPORARY VIEW of that name would hide it")
        kind = "view" if self.is_view(path) else "table"
        return AlreadyExistsError(f"{kind} {name} already exists in this session; drop it first")

    def put_setting(self, key: str, value: str) -> None:
        """Store a setting; Spark settings are also set in the Spark session.

        Raises:
            InvalidOptionError: the key does not accept the value, or it is a Spark setting and there is no session.
        """
        if key.startswith(MADE_FOR_SPARK):
            if self.spark is None:
                raise InvalidOptionError(f"SET '{key}': there is no Spark session to set it in")
            lazy_spark.set_conf(self.spark, key, value)
        elif not check_setting(key, value):
            warn(f"the setting '{key}' has no effect", OptionWarning)
        self.settings[key] = value

    def drop_setting(self, key: str) -> None:
        """Reset a setting to its default; do nothing if it is not set."""
        if self.settings.pop(key, None) is not None and key.startswith(MADE_FOR_SPARK) and self.spark is not None:
            self.spark.conf.unset(key)
