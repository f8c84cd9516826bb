"""Views of a warehouse in Spark's ``ViewCatalog``, and the names of its databases, tables and views.

Paimon's view format has no fields for what Spark stores in addition to the text, so options that begin with
``spark.view.`` hold it. The names of a view without these options, created by another engine, are resolved in the
catalog and database where it is stored.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.catalog.names import SYSTEM_TABLE_MARK, in_stored_case, is_path_part, join_name, split_name
from penstock.catalog.stored_view import (
    CATALOG,
    COLUMNS,
    NAMESPACE,
    OWN,
    SPARK,
    STORED_IN,
    View,
    view_fields,
    view_names,
)
from penstock.errors import AlreadyExistsError, InvalidSchemaError, NotFoundError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.spark.connector.failures import no_such_namespace, no_such_view, not_a_table, view_exists
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.types import from_spark_schema, to_spark_schema
from penstock.spark.versions.facts import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock.catalog.backend import Backend
    from penstock.spark.connector.gateway import Bridge, JavaObject

_MODE: Final = f"{OWN}schema-mode"
_CONFIG: Final = f"{OWN}config."
_EVOLVING: Final = frozenset({"EVOLUTION", "TYPE EVOLUTION"})
_COMMENT: Final = "comment"
# Spark's own properties, without meaning for a stored view.
_IGNORED: Final = frozenset({"owner", "table_type", _COMMENT})
_Result = TypeVar("_Result")


def stored_view(view: JavaObject, catalog: str, before: View | None = None) -> View:
    """Return the stored form of a Spark view.

    Args:
        view: a ``View``.
        catalog: name of the catalog that will contain it; the stored form omits this name, so that the view also works
            if the catalog is attached under another name.
        before: the view that it replaces; if the text is unchanged, the texts for other engines are kept too.
    """
    text = str(view.queryText())
    properties = _pairs(view.properties())
    options = {key: value for key, value in properties.items() if key not in _IGNORED and not key.startswith(OWN)}
    options |= {f"{_CONFIG}{key}": value for key, value in _pairs(view.sqlConfigs()).items()}
    current = view.currentCatalog()
    if current is not None and current != catalog:
        options[CATALOG] = str(current)
    is_same = before is not None and before.text_for(SPARK) == text
    options[STORED_IN] = catalog if before is None or not is_same else dict(before.options).get(STORED_IN, catalog)
    options[NAMESPACE] = _texts(view.currentNamespace())
    options[COLUMNS] = _texts(view.queryColumnNames())
    if view.schemaMode() is not None:
        options[_MODE] = str(view.schemaMode())
    others = before.dialects if before is not None and is_same else ()
    return View(
        fields=view_fields(from_spark_schema(schema_of(view.schema()))),
        query=text,
        dialects=tuple({**dict(others), SPARK: text}.items()),
        comment=properties.get(_COMMENT),
        options=tuple(options.items()),
    )


def is_evolving(view: View) -> bool:
    """Whether the columns of a view, or their types, are those that its query has at the time of a read."""
    return dict(view.options).get(_MODE) in _EVOLVING


def spark_view(bridge: Bridge, view: View, catalog: str, database: str, schema: JavaObject | None = None) -> JavaObject:
    """Return the ``View`` for a stored view.

    Args:
        catalog: name of the catalog that has it.
        database: where it is stored.
        schema: its columns, if they are not those that are stored.
    """
    options = dict(view.options)
    text = view.text_for(SPARK)
    meant = view_names(view, database)
    names: Sequence[str] = meant.columns
    if COLUMNS not in options:  # created by another engine, with columns matched by position
        names = [field.name for field in view.fields]
        text = f"SELECT * FROM ({text}) AS v({', '.join(map(quoted, names))})"  # noqa: S608 - a view is the text of a query
    shown = {key: value for key, value in options.items() if not key.startswith(OWN)}
    configs = {key.removeprefix(_CONFIG): value for key, value in options.items() if key.startswith(_CONFIG)}
    made = bridge.connector("catalog.View$Builder")()
    made.withSchema(bridge.schema(to_spark_schema(view.fields)) if schema is None else schema)
    made.withProperties(bridge.java_map(shown))
    made.withQueryText(text)
    made.withCurrentCatalog(meant.catalog or catalog)
    made.withCurrentNamespace(bridge.strings(meant.namespace))
    made.withQueryColumnNames(bridge.strings(names))
    made.withSqlConfigs(bridge.java_map(configs))
    if view.comment is not None:
        made.withComment(view.comment)
    if _MODE in options:
        made.withSchemaMode(options[_MODE])
    return made.build()


def _pairs(found: JavaObject) -> Mapping[str, str]:
    return {} if found is None else {str(key): str(found.get(key)) for key in found.keySet()}


def _texts(found: JavaObject) -> str:
    return json.dumps([str(each) for each in found or ()], ensure_ascii=False)


class ViewMethods(Proxy):
    """Views of a warehouse.

    Args:
        name: of the catalog in SQL.
    """

    def __init__(self, bridge: Bridge, warehouse: Backend, name: str) -> None:
        super().__init__(bridge, f"{name} {warehouse.location}")
        self._warehouse = warehouse
        self._name = name
        # A view is resolved on one thread, with the views that it reads.
        self._resolving = threading.local()

    # ViewCatalog

    @from_spark
    def listViews(self, namespace: JavaObject) -> JavaObject:
        """Return the views of a database."""
        identifier = self._bridge.connector("catalog.Identifier")
        names = self._views(namespace)
        return self._bridge.array(identifier, [identifier.of(namespace, name) for name in names])

    @from_spark
    def loadView(self, ident: JavaObject) -> JavaObject:
        """Return a view."""
        found = self._view(ident)
        if found is None:
            raise no_such_view(self._bridge, ident)
        return found

    @from_spark
    def viewExists(self, ident: JavaObject) -> bool:
        """Whether there is a view of that name."""
        return self._view(ident) is not None

    @from_spark
    def createView(self, ident: JavaObject, view: JavaObject) -> JavaObject:
        """Create a view."""
        with self._vacant(ident):
            self._warehouse.create_view(self._vacant_name(ident), stored_view(view, self._name))
        return self.loadView(ident)

    @from_spark
    def replaceView(self, ident: JavaObject, view: JavaObject) -> JavaObject:
        """Replace the definition of a view."""

        def replace(name: str) -> None:
            before = self._warehouse.load_view(name)
            self._warehouse.replace_view(name, stored_view(view, self._name, before))

        try:
            self._in_any_case(self._needed_name(ident), replace)
        except NotFoundError:
            raise no_such_view(self._bridge, ident) from None
        return self.loadView(ident)

    @from_spark
    def createOrReplaceView(self, ident: JavaObject, view: JavaObject) -> JavaObject:
        """Create a view, or replace an existing one."""
        if self._view(ident) is not None:
            return self.replaceView(ident, view)
        with self._vacant(ident):
            self._warehouse.create_or_replace_view(self._vacant_name(ident), stored_view(view, self._name))
        return self.loadView(ident)

    @from_spark
    def dropView(self, ident: JavaObject) -> bool:
        """Remove a view; return false if there is none."""
        name = self._name_of(ident)
        try:
            if name is None:
                return False
            self._in_any_case(name, self._warehouse.drop_view)
        except NotFoundError:
            return False
        return True

    @from_spark
    def renameView(self, old: JavaObject, new: JavaObject) -> None:
        """Rename a view."""
        if not self.viewExists(old):
            raise no_such_view(self._bridge, old)
        with self._vacant(new):
            target = self._new_name(old, new)
            self._in_any_case(self._needed_name(old), lambda stored: self._warehouse.rename_view(stored, target))

    # Names

    def _view(self, ident: JavaObject) -> JavaObject | None:
        name = self._name_of(ident)
        if name is None or "$" in name:
            return None
        try:
            found = self._in_any_case(name, self._warehouse.load_view)
        except NotFoundError:
            return None
        VIEWS.check(f"view {name}")
        schema = self._query_schema(ident) if is_evolving(found) else None
        return spark_view(self._bridge, found, self._name, self._database(ident.namespace()), schema)

    def _check_is_no_view(self, ident: JavaObject, operation: str) -> None:
        """Refuse a view in place of a table; versions of Spark without views refuse each."""
        if self._view(ident) is not None:
            name = ".".join(map(quoted, (self._name, *self._bridge.identifier_parts(ident))))
            raise not_a_table(self._bridge, name, operation)

    def _query_schema(self, ident: JavaObject) -> JavaObject | None:
        """Return the columns that the query of a view has now; None while they are looked up.

        Spark would store them itself after it has resolved the view, but only in its own catalog.
        """
        parts = (self._name, *self._bridge.identifier_parts(ident))
        name, resolving = join_name(parts), self._resolving.__dict__
        if name in resolving:
            return None
        resolving[name] = True
        try:
            return self._bridge.query_schema(parts)
        finally:
            del resolving[name]

    @contextmanager
    def _vacant(self, ident: JavaObject) -> Iterator[None]:
        """Raise Spark's errors if the name is taken or its database is missing."""
        try:
            yield
        except AlreadyExistsError:
            raise view_exists(self._bridge, ident) from None
        except NotFoundError:
            raise no_such_namespace(self._bridge, [str(part) for part in ident.namespace()]) from None

    def _summaries(self, namespace: JavaObject, kinds: Mapping[str, Iterable[str]]) -> JavaObject:
        identifier = self._bridge.connector("catalog.Identifier")
        summary = self._bridge.connector("catalog.TableSummary")
        found = [summary.of(identifier.of(namespace, name), kind) for kind, names in kinds.items() for name in names]
        return self._bridge.array(summary, found)

    def _tables(self, namespace: JavaObject) -> tuple[str, ...]:
        return self._warehouse.list_tables(self._database(namespace))

    def _views(self, namespace: JavaObject) -> tuple[str, ...]:
        return self._warehouse.list_views(self._database(namespace))

    def _database(self, namespace: JavaObject) -> str:
        parts = [str(part) for part in namespace]
        if len(parts) == 1 and is_path_part(parts[0]):
            try:
                self._warehouse.check_database_exists(parts[0])
                return parts[0]
            except (NotFoundError, InvalidSchemaError):
                stored = self._stored_database(parts[0])
            if stored is not None:
                return stored
        raise no_such_namespace(self._bridge, parts)

    def _ignores_case(self) -> bool:
        return not self._bridge.session().sessionState().conf().caseSensitiveAnalysis()

    def _stored_database(self, name: str) -> str | None:
        """Return the name of a database as it is stored; None if there is none."""
        names = self._warehouse.list_databases()
        if not self._ignores_case():
            return name if name in names else None
        return in_stored_case(name, names, "database")

    def _other_case(self, name: str) -> str | None:
        """Return the name of the table or view that differs only in case; None if there is none, or one of the name."""
        if not self._ignores_case():
            return None
        database, last = split_name(name)
        stored = self._stored_database(database)
        if stored is None:
            return None
        table, mark, rest = last.partition(SYSTEM_TABLE_MARK)
        names = (*self._warehouse.list_tables(stored, like=table), *self._views([stored]))
        found = in_stored_case(table, names, f"table {stored}.")
        if found is None or (stored, found) == (database, table):
            return None
        return join_name((stored, f"{found}{mark}{rest}"))

    def _in_any_case(self, name: str, action: Callable[[str], _Result]) -> _Result:
        """Call a function with a name and, if there is nothing of that name, with the one that differs only in case."""
        try:
            return action(name)
        except NotFoundError:
            other = self._other_case(name)
            if other is None:
                raise
        return action(other)

    def _vacant_name(self, ident: JavaObject) -> str:
        """Return the name of a new table or view."""
        return self._checked_new(self._needed_name(ident))

    def _checked_new(self, name: str, old: str = "") -> str:
        """Return a new name, in its database as that is stored.

        Args:
            old: the name of the table or view that gets the new one.
        """
        other = self._other_case(name)
        if other is not None and other.lower() != old.lower():
            raise AlreadyExistsError(f"{name} differs from {other} only in case")
        database, last = split_name(name)
        return join_name((self._stored_database(database) or database, last))

    def _needed_name(self, ident: JavaObject) -> str:
        parts = self._bridge.identifier_parts(ident)
        if len(parts) != 2:
            raise no_such_namespace(self._bridge, parts[:-1])
        return join_name(parts)

    def _new_name(self, old: JavaObject, new: JavaObject) -> str:
        """Return the name that a table or view gets; Spark passes it as it was written, with or without the catalog."""
        parts = self._bridge.identifier_parts(new)
        before = self._needed_name(old)
        match parts:
            case [name]:
                return self._checked_new(join_name([str(old.namespace()[0]), name]), before)
            case [_, _]:
                return self._checked_new(join_name(parts), before)
            case [self._name, *rest] if len(rest) == 2:
                return self._checked_new(join_name(rest), before)
            case _:
                raise UnsupportedFeatureError(
                    f"{join_name(self._bridge.identifier_parts(old))} of catalog {self._name} cannot become "
                    f"{join_name(parts)}: the new name is <name> or <database>.<name>, in the same catalog"
                )

    def _name_of(self, ident: JavaObject) -> str | None:
        """Return the name of a table or view; None if there cannot be one, as for a path: Spark reads that itself."""
        parts = self._bridge.identifier_parts(ident)
        return join_name(parts) if len(parts) == 2 and all(map(is_path_part, parts)) else None
