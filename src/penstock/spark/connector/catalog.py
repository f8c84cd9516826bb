"""A warehouse as a Spark catalog."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from penstock.catalog.names import is_path_part, join_name, split_name, split_table_branch
from penstock.catalog.system_tables import CATALOG_TABLES, SYSTEM_DATABASE, load_catalog_table
from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidSchemaError,
    NotFoundError,
    UnsupportedFeatureError,
)
from penstock.format.layout import split_branch
from penstock.options import KNOWN_KEYS, check_keys
from penstock.spark.connector.definition import changes_of
from penstock.spark.connector.failures import (
    WRONG_USE,
    namespace_exists,
    namespace_not_empty,
    no_such_table,
    runtime_failure,
    table_exists,
)
from penstock.spark.connector.local_rows import SystemTable
from penstock.spark.connector.procedures import SparkProcedure
from penstock.spark.connector.proxy import from_spark
from penstock.spark.connector.staging import StagingMethods
from penstock.spark.connector.table import CatalogTable, check_columns_of_now
from penstock.spark.types import columns_at_start, to_spark_schema
from penstock.spark.versions.facts import VIEWS
from penstock.table.inspect.system import AUDIT_LOG, INSERTION, ROW_KIND, ROW_TABLES, SYSTEM_TABLES, load_system_table
from penstock.table.read.branch import at_branch
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.catalog.backend import Backend
    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.procedures import ProcedureSource
    from penstock.table.ref import TableRef

_CATALOG: Final = "org.apache.spark.sql.connector.catalog."
_SYSTEM: Final = "sys"
_SETTINGS: Final = "spark.paimon."
_MAX_TABLES: Final = 1_000
_SYSTEM_TABLE_NAMES: Final = frozenset({*SYSTEM_TABLES, *ROW_TABLES})
# Spark sets these for every database.
_IGNORED_PROPERTIES: Final = frozenset({"owner"})


class WarehouseCatalog(StagingMethods):
    """Databases, tables and views of a warehouse; a namespace is the name of one database."""

    interfaces: ClassVar = (
        f"{_CATALOG}RelationCatalog",
        f"{_CATALOG}StagingTableCatalog",
        f"{_CATALOG}SupportsNamespaces",
        f"{_CATALOG}ProcedureCatalog",
        f"{_CATALOG}FunctionCatalog",
    )
    shared_methods: ClassVar = frozenset({"name", "capabilities"})
    driver_methods: ClassVar = frozenset({"loadFunction"})

    def __init__(
        self,
        bridge: Bridge,
        spark: SparkSession,
        warehouse: Backend,
        name: str,
        procedures: ProcedureSource,
    ) -> None:
        super().__init__(bridge, spark, warehouse, name)
        self._procedures = procedures
        self._answers: dict[str, JavaObject] = {}
        self._states: dict[str, str] = {}

    # CatalogPlugin

    def name(self) -> str:
        """Return the name of the catalog in SQL."""
        return self._name

    def initialize(self, name: str, options: JavaObject) -> None:
        """Do nothing: this object was not created by Spark."""

    # TableCatalog

    @from_spark
    def capabilities(self) -> JavaObject:
        """Return that columns may have default values."""
        return self._bridge.java_set(
            [self._bridge.value_of("catalog.TableCatalogCapability", "SUPPORT_COLUMN_DEFAULT_VALUE")]
        )

    @from_spark
    def listTables(self, namespace: JavaObject) -> JavaObject:
        """Return the tables of a database."""
        identifier = self._bridge.connector("catalog.Identifier")
        names = self._tables(namespace)
        return self._bridge.array(identifier, [identifier.of(namespace, name) for name in names])

    @from_spark
    def listTableSummaries(self, namespace: JavaObject) -> JavaObject:
        """Return the tables of a database, with their kind."""
        return self._summaries(namespace, {"MANAGED": self._tables(namespace)})

    @from_spark
    def loadTable(self, ident: JavaObject, point: object = None, _options: JavaObject = None) -> JavaObject:
        """Load a table.

        Args:
            point: a version as a string, a time in microseconds, the set of privileges that a statement needs, or Spark
                4.3's ``TableContext`` with these.
            _options: of the read, which Spark passes to the scan again.
        """
        privileges, travel = _privileges(point), _time_travel(point)
        found = self._found(ident, travel, changes_rows=not privileges.isdisjoint(("UPDATE", "DELETE")))
        if found is None:
            if privileges or travel or not VIEWS.is_here:
                self._check_is_no_view(ident, "time travel" if travel else ", ".join(sorted(privileges)))
            raise no_such_table(self._bridge, ident)
        return found

    @from_spark
    def tableExists(self, ident: JavaObject) -> bool:
        """Whether there is a table of that name."""
        name = self._name_of(ident)
        if name is None:
            return False
        if name.partition(".")[0] == SYSTEM_DATABASE and str(ident.name()) in CATALOG_TABLES:
            return True
        *namespace, last = self._bridge.identifier_parts(ident)
        path = _path_of(namespace, last)
        try:
            self._loaded(*((name, None) if path is None else path[:2]))
        except NotFoundError:
            return False
        return True

    @from_spark
    def createTable(self, ident: JavaObject, *definition: JavaObject) -> JavaObject:
        """Create a table.

        Args:
            definition: a ``TableInfo``; or columns, partitioning and properties, from older callers.
        """
        with self._creation(ident):
            name = self._vacant_name(ident)
            made = self._definition(name, definition)
            ref = self._warehouse.create_table(name, made)
        return self._table(name, ref)

    @from_spark
    def createTableLike(self, ident: JavaObject, info: JavaObject, source: JavaObject) -> JavaObject:
        """Create a table with the columns of another one, also with those types that Spark does not have."""
        name = self._needed_name(ident)
        types = {field.name: field.type for field in self._fields_of(str(source.name()))}
        made = self._definition(name, (info,))
        columns = tuple(replace(each, type=types.get(each.name, each.type)) for each in made.columns)
        with self._creation(ident):
            ref = self._warehouse.create_table(name, replace(made, columns=columns))
        return self._table(name, ref)

    @from_spark
    def alterTable(self, ident: JavaObject, changes: JavaObject) -> JavaObject:
        """Change columns, options and the comment of a table or a branch, all or nothing."""
        name = self._needed_name(ident)
        try:
            with self._table_is_there(ident):
                ref = self._loaded(*split_table_branch(name))
                settings = self._session_options(ref.name)
                if settings:
                    check_columns_of_now(ref, columns_at_start(ref.with_options(settings)))
                fields = ref.schema.fields
                default_of = self._defaults_of(to_spark_schema(fields), name)
                wanted = changes_of(changes, fields, name, default_of, ignores_case=self._ignores_case())
                ref = self._in_any_case(name, lambda stored: self._warehouse.alter_table(stored, wanted))
        except WRONG_USE as error:
            # Spark wraps an IllegalArgumentException of this method in one that PySpark shows with its Java trace.
            raise runtime_failure(self._bridge, str(error)) from None
        return self._table(ref.name, ref)

    @from_spark
    def dropTable(self, ident: JavaObject) -> bool:
        """Remove a table; return false if there is none."""
        name = self._name_of(ident)
        try:
            if name is None:
                return False
            self._in_any_case(name, self._warehouse.drop_table)
        except NotFoundError:
            return False
        return True

    def purgeTable(self, ident: JavaObject) -> bool:
        """Remove a table; ``dropTable`` also deletes its files."""
        return self.dropTable(ident)

    @from_spark
    def renameTable(self, old: JavaObject, new: JavaObject) -> None:
        """Rename a table."""
        try:
            target = self._new_name(old, new)
            with self._table_is_there(old):
                self._in_any_case(self._needed_name(old), lambda stored: self._warehouse.rename_table(stored, target))
        except AlreadyExistsError:
            raise table_exists(self._bridge, new) from None

    @from_spark
    def loadChangelog(self, ident: JavaObject, *context: JavaObject) -> JavaObject:
        """Refuse: append tables have none."""
        raise UnsupportedFeatureError("append tables have no changelog: read what was added with incremental-between")

    # RelationCatalog

    @from_spark
    def loadRelation(self, ident: JavaObject) -> JavaObject:
        """Load a table or, if there is none of the name, a view."""
        found = self._found(ident, {}) or self._view(ident)
        if found is None:
            raise no_such_table(self._bridge, ident)
        return found

    @from_spark
    def listRelationSummaries(self, namespace: JavaObject) -> JavaObject:
        """Return the tables and views of a database, with their kind."""
        return self._summaries(namespace, {"MANAGED": self._tables(namespace), "VIEW": self._views(namespace)})

    # SupportsNamespaces

    @from_spark
    def listNamespaces(self, parent: JavaObject = None) -> JavaObject:
        """Return the databases; databases are not nested."""
        names = self._warehouse.list_databases() if parent is None or not len(parent) else ()
        if not names and parent is not None and len(parent):
            self._database(parent)
        texts = self._bridge.java("java.lang.String")
        made = self._bridge.gateway.new_array(texts, len(names), 1)
        for place, name in enumerate(names):
            made[place][0] = name
        return made

    @from_spark
    def namespaceExists(self, namespace: JavaObject) -> bool:
        """Whether there is a database of that name."""
        parts = list(namespace)
        return len(parts) == 1 and self._stored_database(str(parts[0])) is not None

    @from_spark
    def loadNamespaceMetadata(self, namespace: JavaObject) -> JavaObject:
        """Return the metadata of a database."""
        name = self._database(namespace)
        return self._bridge.java_map({"location": f"{self._warehouse.location}/{name}.db"})

    @from_spark
    def createNamespace(self, namespace: JavaObject, metadata: JavaObject) -> None:
        """Create a database."""
        parts = [str(part) for part in namespace]
        if len(parts) != 1:
            raise UnsupportedFeatureError(f"'{'.'.join(parts)}': a database is in the warehouse, not in another one")
        properties = sorted({str(key) for key in metadata.keySet()} - _IGNORED_PROPERTIES)
        if properties:
            raise _no_properties(parts[0], properties)
        try:
            self._warehouse.create_database(parts[0])
        except AlreadyExistsError:
            raise namespace_exists(self._bridge, parts) from None

    @from_spark
    def alterNamespace(self, namespace: JavaObject, changes: JavaObject) -> None:
        """Refuse: there is nothing to change."""
        raise _no_properties(self._database(namespace), [str(change.property()) for change in changes])

    @from_spark
    def dropNamespace(self, namespace: JavaObject, cascade: bool) -> bool:  # noqa: FBT001 - Spark's signature
        """Remove a database; with ``cascade`` its tables too."""
        name = self._database(namespace)
        try:
            self._warehouse.drop_database(name, cascade=cascade)
        except InvalidOptionError:
            raise namespace_not_empty(self._bridge, [name]) from None
        return True

    # ProcedureCatalog

    @from_spark
    def loadProcedure(self, ident: JavaObject) -> JavaObject:
        """Return a procedure of ``sys``."""
        name = str(ident.name())
        if [str(part) for part in ident.namespace()] != [_SYSTEM] or name not in self._procedures.parameters:
            raise self._procedures.missing(str(ident.toString()), name)
        return SparkProcedure(self._bridge, self._procedures, name)

    @from_spark
    def listProcedures(self, namespace: JavaObject) -> JavaObject:
        """Return the procedures of ``sys``."""
        is_system = [str(part) for part in namespace] == [_SYSTEM]
        identifier = self._bridge.connector("catalog.Identifier")
        names = self._procedures.parameters if is_system else ()
        return self._bridge.array(identifier, [identifier.of(namespace, name) for name in names])

    # FunctionCatalog

    @from_spark
    def listFunctions(self, namespace: JavaObject) -> JavaObject:
        """Return no functions: those of buckets are not for queries."""
        if len(namespace):
            self._database(namespace)
        return self._bridge.no_items("catalog.Identifier")

    # Helpers

    def _found(self, ident: JavaObject, options: Mapping[str, str], *, changes_rows: bool = False) -> JavaObject | None:
        *namespace, last = self._bridge.identifier_parts(ident)
        if namespace == [SYSTEM_DATABASE] and last in CATALOG_TABLES:
            return self._catalog_table(last, options)
        path = _path_of(namespace, last)
        if path is None:
            return None
        try:
            name, ref = self._ref_at(path, options)
        except NotFoundError:
            if path.branch is not None and self._is_table(path.name):
                raise  # the message lists the branches
            return None
        if path.system_table is not None:
            return self._system_table(name, ref, path.system_table)
        table = self._new_table(name, ref)
        if table.is_behind:
            table = self._new_table(*self._ref_at(path, options))
        table.changes_rows = changes_rows
        if self._has_changed(table):
            self._bridge.driver.awaitWrites(self._session.get()._jsparkSession)
        return self._exposed(table)

    def _ref_at(self, path: _TablePath, options: Mapping[str, str]) -> tuple[str, TableRef]:
        ref = self._loaded(path.name, path.branch)
        return ref.name, ref.with_options({**self._session_options(ref.name), **options})

    def _session_options(self, name: str) -> dict[str, str]:
        """Return the table options among the settings of the session.

        Source:
            Paimon ``spark:util/OptionUtils.scala``: ``spark.paimon.<key>`` for all tables, overridden by
            ``spark.paimon.<catalog>.<database>.<table>.<key>``, where ``*`` stands for any name.
        """
        settings: dict[str, str] = json.loads(self._bridge.driver.settings(_SETTINGS))
        of_all, of_table = {}, {}
        for key, value in settings.items():
            parts = key.split(".", 3)
            # Keys of Penstock begin with its name, as those of its catalog do.
            if key in KNOWN_KEYS or len(parts) < 4 or parts[0] not in (self._name, "*"):
                of_all[key] = value
            elif all(part in (own, "*") for part, own in zip(parts[1:3], split_name(name), strict=True)):
                of_table[parts[3]] = value
        found = {**of_all, **of_table}
        check_keys(found, table=name)
        return found

    def _is_table(self, name: str) -> bool:
        try:
            self._loaded(name, None)
        except NotFoundError:
            return False
        return True

    def _fields_of(self, title: str) -> tuple[DataField, ...]:
        """Return the columns of a table of this catalog; none if another catalog has it."""
        if not title.startswith(f"{self._name}."):
            return ()
        try:
            return self._loaded(*split_table_branch(title.removeprefix(f"{self._name}."))).schema.fields
        except (NotFoundError, InvalidSchemaError):
            return ()

    def _loaded(self, name: str, branch: str | None) -> TableRef:
        ref = self._in_any_case(name, self._warehouse.load_table)
        return ref if branch is None else at_branch(ref, branch)

    def _table(self, name: str, ref: TableRef) -> JavaObject:
        return self._exposed(self._new_table(name, ref))

    def _new_table(self, name: str, ref: TableRef) -> CatalogTable:
        return CatalogTable(self._bridge, self._session, f"{self._name}.{name}", ref)

    def _has_changed(self, table: CatalogTable) -> bool:
        """Whether the table has another state than when it was last loaded, so that cached rows of it may be old."""
        if len(self._states) >= _MAX_TABLES:
            self._states.clear()
        last = self._states.get(table.schema_key, table.state)
        self._states[table.schema_key] = table.state
        return last != table.state

    def _exposed(self, table: CatalogTable) -> JavaObject:
        answers = self._answers.get(table.schema_key)
        if answers is None:
            if len(self._answers) >= _MAX_TABLES:
                self._answers.clear()
            answers = self._answers[table.schema_key] = self._bridge.driver.sharedAnswers()
        return table.exposed(answers)

    def _catalog_table(self, name: str, travel: Mapping[str, str]) -> SystemTable:
        title = f"{SYSTEM_DATABASE}.{name}"

        def load(options: Mapping[str, str]) -> pa.Table:
            if options or travel:
                raise UnsupportedFeatureError(f"{title} shows the catalog as it is: leave options and time travel out")
            return load_catalog_table(self._warehouse, name)

        return SystemTable(self._bridge, f"{self._name}.{title}", load)

    def _system_table(self, name: str, ref: TableRef, system_table: str) -> SystemTable:
        if system_table in ROW_TABLES:
            wanted = f"'{INSERTION}' AS {ROW_KIND}, *" if system_table == AUDIT_LOG else "*"
            raise UnsupportedFeatureError(
                f"table {name}: '{system_table}' would be read in the driver; {wanted} of the table has the same rows"
            )

        def load(options: Mapping[str, str]) -> pa.Table:
            return load_system_table(system_table, ref.with_options(options), MetadataStore(ref))

        return SystemTable(self._bridge, f"{self._name}.{name}.{system_table}", load)

    @contextmanager
    def _table_is_there(self, ident: JavaObject) -> Iterator[None]:
        """Raise Spark's error if the table is missing; Penstock's error for a missing column is not changed."""
        if not self.tableExists(ident):
            raise no_such_table(self._bridge, ident)
        yield


class _TablePath(NamedTuple):
    """The parts of a name such as ``d.t$branch_b$snapshots``.

    Attributes:
        name: of the table, with its database.
        branch: None for the main branch.
        system_table: None for the rows of the table.
    """

    name: str
    branch: str | None
    system_table: str | None


def _path_of(namespace: list[str], name: str) -> _TablePath | None:
    """Split a name such as ``t``, ``t$snapshots``, ``t.snapshots`` or ``t$branch_b``; None if it cannot be a table."""
    if len(namespace) == 2 and name in _SYSTEM_TABLE_NAMES:
        (database, table), system_table = namespace, name
    elif len(namespace) == 1:
        database, table, system_table = namespace[0], name, None
        base, _, last = name.rpartition("$")
        if last in _SYSTEM_TABLE_NAMES:
            table, system_table = base, last
    else:
        return None
    if not is_path_part(database) or not is_path_part(table):
        return None
    table, branch = split_branch(table)
    return _TablePath(join_name((database, table)), branch, system_table)


def _time_travel(point: JavaObject) -> dict[str, str]:
    """Return the option for ``VERSION AS OF`` and ``TIMESTAMP AS OF``; none for a set of privileges."""
    if hasattr(point, "getClass") and str(point.getClass().getSimpleName()) == "TableContext":
        point = _point_of(point.timeTravel())
    match point:
        case str():
            return {"scan.version": point}
        case int():
            return {"scan.timestamp-millis": str(point // 1000)}
        case _:
            return {}


def _privileges(point: JavaObject) -> frozenset[str]:
    """Return the privileges that a statement needs; none for a read."""
    text = str(point.toString()) if hasattr(point, "getClass") else ""
    return frozenset(word for word in ("INSERT", "UPDATE", "DELETE") if word in text)


def _point_of(time_travel: JavaObject) -> str | int | None:
    """Return the version or the microseconds of an optional ``TimeTravel``."""
    if not time_travel.isPresent():
        return None
    point = time_travel.get()
    return str(point.version()) if str(point.getClass().getSimpleName()) == "AsOfVersion" else int(point.micros())


def _no_properties(database: str, properties: list[str]) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"database {database}: it is a directory and nothing else, so it has no {', '.join(properties)}"
    )
