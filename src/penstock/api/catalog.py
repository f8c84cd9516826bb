"""The handle on a warehouse."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Final

from penstock.api.arguments import (
    FLAG,
    LOCATION,
    NAMES,
    NONE,
    TEXT,
    ArgumentType,
    Names,
    Options,
    SchemaLike,
    accepts,
    add_session_store_options,
    check_spark,
    encode_options,
    to_changes,
    to_columns,
    to_location,
    to_names,
)
from penstock.api.lazy import is_spark_object, lazy_spark
from penstock.api.migrate import Migrate, MigrateDatabase
from penstock.api.names import CatalogNames
from penstock.api.notebook import names_html, with_title
from penstock.api.operations.compaction import CompactDatabase
from penstock.api.operations.declaration import method
from penstock.api.procedures import PROCEDURES, UNSUPPORTED, call
from penstock.api.rows import rows_with_schema
from penstock.api.table import Table
from penstock.catalog.names import split_table_branch
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.stored_view import View, new_view
from penstock.catalog.system_tables import load_catalog_table
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import AlreadyExistsError, CommitUnknownError, InvalidOptionError, NotFoundError
from penstock.options import check_catalog_keys
from penstock.printable import mask_locations, mask_options, open_log

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import NoReturn

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.api.rows import Rows
    from penstock.catalog.changes import SchemaChange
    from penstock.spark.exports import CatalogSource


_LOG: Final = open_log(__name__)
_WATERMARK: Final = ArgumentType(
    "a pair of a column and a delay",
    lambda value: isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str | None) for each in value),
)
# Names of other libraries, with the name used here.
_OTHER_NAMES: Final = {
    **dict.fromkeys(("table", "get_table", "open_table", "load", "open", "read"), "load_table('database.table')"),
    **dict.fromkeys(("tables", "show_tables"), "list_tables('database')"),
    **dict.fromkeys(("databases", "show_databases", "list_namespaces"), "list_databases()"),
    **dict.fromkeys(("write_table", "save", "save_as_table", "insert"), "write('database.table', rows)"),
    **dict.fromkeys(("create", "new_table"), "create_table('database.table', 'id BIGINT')"),
    **dict.fromkeys(("create_namespace",), "create_database('name')"),
    **dict.fromkeys(("alter", "update_table"), "alter_table('database.table', AddColumn(...))"),
    **dict.fromkeys(("delete_table", "drop"), "drop_table('database.table')"),
    **dict.fromkeys(("view", "get_view"), "load_view('database.view')"),
    **dict.fromkeys(("views", "show_views"), "list_views('database')"),
}


class Catalog:
    """Databases and tables of a warehouse directory, in the layout of Paimon's file-system catalog.

    Args:
        warehouse: path or URI of the directory; ``<warehouse>/<database>.db/<table>`` are the tables. With the option
            ``metastore`` = ``rest``, the name of the catalog on the server at ``uri``.
        options: catalog options; ``table-default.<key>`` applies to new tables, ``penstock.external-paths.*`` and
            ``penstock.durable`` to all tables; ``penstock.views`` = ``false`` refuses views. Without store options,
            those of a Spark session in this process (``spark.hadoop.fs.s3a.*`` or ``fs.azure.*``) are used.

    Raises:
        InvalidOptionError: the location is invalid.
        UnsupportedFeatureError: the storage or the kind of catalog is not supported.
        StorageError: a REST server does not answer, or rejects the token.
    """

    @accepts(warehouse=LOCATION)
    def __init__(self, warehouse: str | os.PathLike[str], options: Options | None = None) -> None:
        location = to_location(warehouse)
        encoded = encode_options(options)
        check_catalog_keys(encoded)
        self._target = self._warehouse = open_warehouse(location, add_session_store_options(location, encoded))

    if not TYPE_CHECKING:  # A type checker must not see other names.

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that suggests the right name for a method of another library."""
            hint = f": say {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        options = mask_options(self._warehouse.options)
        more = f", options={options!r}" if options else ""
        return f"{type(self).__name__}({mask_locations(self.warehouse)!r}{more})"

    def _repr_html_(self) -> str:
        return names_html(repr(self), "database", self.list_databases())

    @property
    def warehouse(self) -> str:
        """Location of the warehouse."""
        return self._warehouse.location

    @accepts(name=TEXT, views=FLAG)
    def attach(self, spark: SparkSession, name: str = "penstock", *, views: bool = True) -> Catalog:
        """Add the warehouse to a Spark session as a catalog: ``spark.sql("SELECT * FROM penstock.db.table")``.

        Sessions that begin later, such as ``spark.newSession()``, have it too, unless sessions have attached different
        warehouses under this name.

        Args:
            name: of the catalog in statements.
            views: whether its views can be read; a view runs SQL of whoever wrote it in this session. False for a
                warehouse or a server that others than you and people whom you trust can write to; the same as the
                option ``penstock.views`` = ``false`` of the catalog.

        Returns:
            The catalog as it was attached: this one, or one without views.

        Raises:
            UnsupportedFeatureError: a Spark Connect session, or an unsupported version of Spark.
            InvalidOptionError: not a session, an empty name, or that of a catalog of another kind.
        """
        check_spark(spark, self.warehouse)
        if not views:
            catalog = copy(self)
            catalog._target = catalog._warehouse = self._warehouse.without_views()  # noqa: SLF001 - a copy
            return catalog.attach(spark, name)
        lazy_spark.attach(spark, name, self._source(name), open_source)
        return self

    def _source(self, name: str) -> CatalogSource:
        """Return what a session of Spark shows under a name."""

        def run(session: SparkSession, procedure: str, arguments: Mapping[str, str]) -> pa.Table:
            return call(CatalogNames({name: self}, name), session, procedure, arguments.items())

        parameters = {each: (*procedure.parameters, *procedure.aliases) for each, procedure in PROCEDURES.items()}
        procedures = lazy_spark.ProcedureSource(
            parameters=parameters,
            descriptions={each: procedure.description for each, procedure in PROCEDURES.items()},
            run=run,
            unsupported=UNSUPPORTED,
        )
        return lazy_spark.CatalogSource(warehouse=self._warehouse, procedures=procedures)

    @accepts(name=TEXT, if_not_exists=FLAG)
    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a database.

        Raises:
            AlreadyExistsError: it exists, and ``if_not_exists`` is false.
            InvalidSchemaError: the name is invalid.
        """
        self._warehouse.create_database(name, if_not_exists=if_not_exists)

    def list_databases(self) -> tuple[str, ...]:
        """Names of the databases, sorted; logs a warning if there is no such directory, which a database creates."""
        found = self._warehouse.list_databases()
        if not found and not self._warehouse.exists():
            _LOG.warning("there is no directory %s: check its name; create_database creates it", self.warehouse)
        return found

    @accepts(name=TEXT, if_exists=FLAG, cascade=FLAG)
    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Remove a database; with ``cascade`` its tables and views too.

        Raises:
            NotFoundError: it does not exist, and ``if_exists`` is false.
            InvalidOptionError: it has tables or views, and ``cascade`` is false.
        """
        self._warehouse.drop_database(name, if_exists=if_exists, cascade=cascade)

    @accepts(database=TEXT)
    def list_tables(self, database: str) -> tuple[str, ...]:
        """Names of the tables of a database, sorted. Raises ``NotFoundError``."""
        return self._warehouse.list_tables(database)

    @accepts(name=TEXT, partition_by=NAMES, comment=TEXT | NONE, watermark=_WATERMARK | TEXT | NONE, if_not_exists=FLAG)
    def create_table(  # noqa: PLR0913 - the clauses of a CREATE TABLE
        self,
        name: str,
        schema: SchemaLike,
        *,
        partition_by: Names = (),
        options: Options | None = None,
        comment: str | None = None,
        watermark: tuple[str, str | None] | str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table.

        Args:
            name: ``database.table``; ``table`` in the database ``default``, which the call creates if it is missing; or
                for a table outside of the warehouse its absolute path, ``./path`` or URI.
            schema: ``id BIGINT NOT NULL, name STRING``; names and types as a mapping or pairs; a pyarrow or Spark
                schema; or a DataFrame or Arrow data, whose columns the table gets without its rows: see ``write``.
            partition_by: partition columns; a single one may be given as a string.
            options: with Paimon's keys; ``bucket`` and ``bucket-key`` make the table a queue.
            watermark: the event time column and the delay, ``("order_time", "INTERVAL '5' SECOND")``; the column alone
                for no delay.
            if_not_exists: return an existing table, whatever its columns are.

        Raises:
            AlreadyExistsError: the table exists.
            NotFoundError: there is no such database.
            InvalidSchemaError: invalid names, columns, keys or watermark.
            InvalidOptionError: an invalid option, or options that contradict each other.
            UnsupportedFeatureError: a feature of the format that Penstock does not support.
        """
        definition = TableDefinition(
            columns=to_columns(schema),
            partition_by=to_names(partition_by) or (),
            options=tuple(encode_options(options).items()),
            comment=comment,
            watermark=(watermark, None) if isinstance(watermark, str) else watermark,
        )
        return Table(self._warehouse.create_table(name, definition, if_not_exists=if_not_exists))

    @accepts(name=TEXT, partition_by=NAMES, comment=TEXT | NONE)
    def write(
        self,
        name: str,
        rows: Rows,
        *,
        partition_by: Names = (),
        options: Options | None = None,
        comment: str | None = None,
    ) -> Table:
        """Create a table with the columns of some rows, and append them.

        Args:
            name: as for ``create_table``, whose arguments the others are.
            rows: as for ``Table.append``; columns of dicts have the types that pyarrow chooses.

        Returns:
            The new table. If the rows cannot be written, there is none.

        Raises:
            AlreadyExistsError: the table exists; ``load_table`` and ``append`` add rows to it.
            InvalidSchemaError: a column has no type that a table can have.
            CommitUnknownError: storage did not answer; the table exists, with or without the rows.
            SchemaMismatchError, NotFoundError, UnsupportedFeatureError: as ``create_table`` and ``append``.
        """
        if not is_spark_object(rows):
            rows = rows_with_schema(rows)
        try:
            table = self.create_table(name, rows, partition_by=partition_by, options=options, comment=comment)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(
                f"table {name} already exists; choose another name, or add the rows by load_table('{name}').append"
            ) from error
        try:
            table.append(rows)
        except CommitUnknownError:
            raise
        except BaseException:
            self.drop_table(name, if_exists=True)
            raise
        return table

    @accepts(name=TEXT, skip_damaged_schemas=FLAG)
    def load_table(self, name: str, options: Options | None = None, *, skip_damaged_schemas: bool = False) -> Table:
        """Load a table with its latest schema.

        Args:
            name: ``database.table``, ``database.table$branch_name``, the location of a table, or ``table`` in the
                database ``default``.
            options: of this handle; they override the stored options.
            skip_damaged_schemas: with the newest schema whose file is not damaged, to find and roll back the damage
                with ``inspect.fsck`` and ``rollback_to``.

        Raises:
            NotFoundError: there is none.
            FormatError: its schema file is damaged.
            UnsupportedFeatureError: its rows cannot be read correctly.
        """
        plain, branch = split_table_branch(name)
        table = Table(self._warehouse.load_table(plain, skip_damaged_schemas=skip_damaged_schemas))
        all_options = {"branch": branch, **(options or {})} if branch is not None else options
        return table.with_options(all_options) if all_options else table

    @accepts(name=TEXT)
    def system_table(self, name: str) -> pa.Table:
        """Return a system table of the whole catalog, ``sys.<name>`` in SQL.

        Args:
            name: ``tables``, ``partitions``, ``all_table_options`` or ``catalog_options``.

        Raises:
            NotFoundError: there is no such table.
        """
        return with_title(load_catalog_table(self._warehouse, name), f"{name} of {mask_locations(self.warehouse)}")

    @accepts(name=TEXT, if_exists=FLAG)
    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a table and its files. Raises ``NotFoundError`` unless ``if_exists``."""
        self._warehouse.drop_table(name, if_exists=if_exists)

    @accepts(source=TEXT, target=TEXT)
    def rename_table(self, source: str, target: str) -> None:
        """Rename a table within this warehouse. Raises ``NotFoundError`` or ``AlreadyExistsError``."""
        self._warehouse.rename_table(source, target)

    @accepts(name=TEXT)
    def alter_table(self, name: str, *changes: SchemaChange) -> Table:
        """Apply changes to a table's schema, all or none; concurrent changes by others are kept.

        Args:
            name: ``database.table``, ``database.table$branch_name`` or the location of a table.

        Raises:
            NotFoundError: no such table or column.
            InvalidSchemaError, InvalidOptionError, UnsupportedFeatureError: a change that is not allowed.
        """
        return Table(self._warehouse.alter_table(name, to_changes(changes, name)))

    @accepts(database=TEXT)
    def list_views(self, database: str) -> tuple[str, ...]:
        """Names of the views of a database, sorted. Raises ``NotFoundError``."""
        return self._warehouse.list_views(database)

    @accepts(name=TEXT)
    def load_view(self, name: str) -> View:
        """Return the definition of a view. To read its rows, use Spark or ``penstock.sql``.

        Args:
            name: ``database.view``.

        Raises:
            NotFoundError: there is none.
            FormatError: its file is damaged.
            UnsupportedFeatureError: the catalog was opened without views.
        """
        return self._warehouse.load_view(name)

    @accepts(name=TEXT, query=TEXT, comment=TEXT | NONE, replace=FLAG, if_not_exists=FLAG)
    def create_view(
        self,
        name: str,
        query: str,
        schema: SchemaLike,
        *,
        comment: str | None = None,
        replace: bool = False,
        if_not_exists: bool = False,
    ) -> View:
        """Create a view from the text of a query without checking it; ``CREATE VIEW`` through ``attach`` checks it.

        Args:
            name: ``database.view``.
            query: in Spark SQL. Unqualified names refer to the view's database.
            schema: the columns, in the order of the query's columns, whose names they replace; as for ``create_table``.
            replace: replace the definition of an existing view.
            if_not_exists: return an existing view unchanged.

        Raises:
            AlreadyExistsError: there is a table of that name, or a view and neither ``replace`` nor ``if_not_exists``
                is set.
            NotFoundError: there is no such database.
            InvalidSchemaError: invalid names or columns.
            InvalidOptionError: both ``replace`` and ``if_not_exists`` are set, or the text is empty.
        """
        if replace and if_not_exists:
            raise InvalidOptionError(f"view {name}: replace and if_not_exists exclude each other; give one of them")
        view = new_view(name, query, to_columns(schema), comment=comment)
        make = self._warehouse.create_or_replace_view if replace else self._warehouse.create_view
        try:
            make(name, view)
        except AlreadyExistsError:
            if if_not_exists and self._warehouse.view_exists(name):
                return self.load_view(name)
            raise
        return view

    @accepts(name=TEXT, if_exists=FLAG)
    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a view. Raises ``NotFoundError`` unless ``if_exists``."""
        try:
            self._warehouse.drop_view(name)
        except NotFoundError:
            if not if_exists:
                raise

    @accepts(source=TEXT, target=TEXT)
    def rename_view(self, source: str, target: str) -> None:
        """Rename a view within this warehouse. Raises ``NotFoundError`` or ``AlreadyExistsError``."""
        self._warehouse.rename_view(source, target)

    compact_database = method(CompactDatabase, "Catalog")
    migrate = method(Migrate, "Catalog")
    migrate_database = method(MigrateDatabase, "Catalog")


def open_source(name: str, options: dict[str, str]) -> CatalogSource:
    """Open the catalog that settings of Spark name."""
    warehouse = options.pop("warehouse", None)
    if not warehouse:
        raise InvalidOptionError(f"catalog '{name}': set spark.sql.catalog.{name}.warehouse to its directory")
    return Catalog(warehouse, options)._source(name)  # noqa: SLF001 - of this module
