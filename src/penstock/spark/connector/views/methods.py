"""The methods of Spark's ``ViewCatalog``, and the names of a warehouse's databases, tables and views."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.catalog import tables, views
from penstock.catalog.names import join_name
from penstock.errors import AlreadyExistsError, InvalidSchemaError, NotFoundError, UnsupportedFeatureError
from penstock.spark.connector.failures import no_such_namespace, no_such_view, view_exists
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.views.definition import spark_view, stored_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.catalog.warehouse import Warehouse
    from penstock.spark.connector.gateway import Bridge, JavaObject


class ViewMethods(Proxy):
    """Views of a warehouse.

    Args:
        name: of the catalog in SQL.
    """

    def __init__(self, bridge: Bridge, warehouse: Warehouse, name: str) -> None:
        super().__init__(bridge, f"{name} {warehouse.location}")
        self._warehouse = warehouse
        self._name = name

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

    def invalidateView(self, ident: JavaObject) -> None:
        """Do nothing: views are loaded each time."""

    @from_spark
    def createView(self, ident: JavaObject, view: JavaObject) -> JavaObject:
        """Create a view."""
        name = self._needed_name(ident)
        with self._vacant(ident):
            views.create_view(self._warehouse, name, stored_view(view, self._name))
        return self.loadView(ident)

    @from_spark
    def replaceView(self, ident: JavaObject, view: JavaObject) -> JavaObject:
        """Replace the definition of a view."""
        name = self._needed_name(ident)
        try:
            before = views.load_view(self._warehouse, name)
            views.replace_view(self._warehouse, name, stored_view(view, self._name, before))
        except NotFoundError:
            raise no_such_view(self._bridge, ident) from None
        return self.loadView(ident)

    @from_spark
    def createOrReplaceView(self, ident: JavaObject, view: JavaObject) -> JavaObject:
        """Create a view, or replace an existing one."""
        name = self._needed_name(ident)
        try:
            before = views.load_view(self._warehouse, name)
        except NotFoundError:
            before = None
        with self._vacant(ident):
            views.create_or_replace_view(self._warehouse, name, stored_view(view, self._name, before))
        return self.loadView(ident)

    @from_spark
    def dropView(self, ident: JavaObject) -> bool:
        """Remove a view; return false if there is none."""
        name = self._name_of(ident)
        try:
            if name is None:
                return False
            views.drop_view(self._warehouse, name)
        except NotFoundError:
            return False
        return True

    @from_spark
    def renameView(self, old: JavaObject, new: JavaObject) -> None:
        """Rename a view."""
        target = self._new_name(old, new)
        if not self.viewExists(old):
            raise no_such_view(self._bridge, old)
        with self._vacant(new):
            views.rename_view(self._warehouse, self._needed_name(old), target)

    # Names

    def _view(self, ident: JavaObject) -> JavaObject | None:
        name = self._name_of(ident)
        if name is None or "$" in name:
            return None
        try:
            found = views.load_view(self._warehouse, name)
        except NotFoundError:
            return None
        return spark_view(self._bridge, found, self._name, str(ident.namespace()[0]))

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
        return tables.list_tables(self._warehouse, self._database(namespace))

    def _views(self, namespace: JavaObject) -> tuple[str, ...]:
        return views.list_views(self._warehouse, self._database(namespace))

    def _database(self, namespace: JavaObject) -> str:
        parts = [str(part) for part in namespace]
        try:
            if len(parts) == 1:
                tables.check_database_exists(self._warehouse, parts[0])
                return parts[0]
        except (NotFoundError, InvalidSchemaError):
            pass
        raise no_such_namespace(self._bridge, parts)

    def _needed_name(self, ident: JavaObject) -> str:
        name = self._name_of(ident)
        if name is None:
            raise no_such_namespace(self._bridge, [str(part) for part in ident.namespace()])
        return name

    def _new_name(self, old: JavaObject, new: JavaObject) -> str:
        """Return the name that a table or view gets; Spark passes it as it was written, with the catalog if it has one.

        Raises:
            UnsupportedFeatureError: it is a name in another catalog.
        """
        parts = self._bridge.parts(new)
        match parts:
            case [name]:
                return join_name([str(old.namespace()[0]), name])
            case [_, _]:
                return join_name(parts)
            case [self._name, *rest] if len(rest) == 2:
                return join_name(rest)
            case _:
                raise UnsupportedFeatureError(
                    f"{join_name(self._bridge.parts(old))} of catalog {self._name} cannot become {join_name(parts)}: "
                    "the new name is <name> or <database>.<name>, in the same catalog"
                )

    def _name_of(self, ident: JavaObject) -> str | None:
        parts = self._bridge.parts(ident)
        return join_name(parts) if len(parts) == 2 else None
