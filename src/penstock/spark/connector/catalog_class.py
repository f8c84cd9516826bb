"""The class ``penstock.Catalog``, which Spark loads by its name as a catalog, in each session of the application.

It is made at run time (``CatalogClass.java``), so that Spark finds catalogs by its own settings, as those of a JAR:
``spark.sql.catalog.<name>``, and options below it. An object of the class asks ``CatalogMaker`` for the catalog of its
name and options at its first use.

Anybody who may set a session's settings, such as a client of Spark Connect, may name the class with a warehouse of
their choice, which would then be read with the rights of this process. So a catalog has the options with which the
application was started, or which its driver has named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from penstock.errors import InvalidOptionError
from penstock.spark.connector.catalog import WarehouseCatalog
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.data_source.filters import FILTER_PUSHDOWN
from penstock.spark.versions.facts import interfaces_here
from penstock.table.commit.retry import on_change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from penstock.catalog.backend import Backend
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.procedures import ProcedureSource

    OpenCatalog: TypeAlias = Callable[[str, dict[str, str]], "CatalogSource"]

SETTINGS: Final = "spark.sql.catalog."
"""Prefix of the settings of catalogs, before the name."""
_ATTACHED: Final = "penstock.attached"
# Value of that option for sessions that cannot know which of several warehouses is meant.
_SEVERAL: Final = "several"
# Settings of the session; values that the user has set are kept.
_SESSION_SETTINGS: Final = {
    # Off by default, in which case a where on format("penstock") opens every file.
    FILTER_PUSHDOWN: "true",
    # The default of 100 is beyond the stack of a thread, so that views that read each other end in an overflow of it.
    "spark.sql.view.maxNestedViewDepth": "50",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSource:
    """What a catalog of Spark shows, and the procedures that it has."""

    warehouse: Backend
    procedures: ProcedureSource


class CatalogRegistry:
    """The catalogs that an application has, by their names in SQL. Thread-safe."""

    def __init__(self) -> None:
        self._application = ""
        self._attached: dict[tuple[str, str], CatalogSource] = {}
        self._named: dict[str, list[dict[str, str]]] = {}
        self._opened: dict[tuple[str, frozenset[tuple[str, str]]], CatalogSource] = {}
        self._open: OpenCatalog | None = None
        self._lock = RLock()

    def open_by(self, open_catalog: OpenCatalog) -> None:
        """Set the function that opens catalogs of settings."""
        self._open = open_catalog

    def attach(self, application: str, session: str, name: str, source: CatalogSource) -> str:
        """Add the catalog of a session, or replace it.

        Args:
            application: id; catalogs of another application, whose context was stopped, are forgotten.
            session: id.

        Returns:
            The id by which later sessions find it; they are refused if several warehouses have the name.
        """
        with self._lock:
            self._begin(application)
            self._attached[name, session] = source
            found = {
                (each.warehouse.location, each.warehouse.options)
                for (taken, _), each in self._attached.items()
                if taken == name
            }
            return session if len(found) == 1 else _SEVERAL

    def allow(self, application: str, name: str, options: dict[str, str]) -> None:
        """Let sessions of an application have a catalog with these options."""
        with self._lock:
            self._begin(application)
            self._named.setdefault(name, []).append(options)

    def find(
        self, application: str, name: str, options: dict[str, str], started_with: dict[str, str] | None
    ) -> CatalogSource:
        """Return the catalog that a session has under a name.

        Args:
            options: those of the session's settings.
            started_with: the options of that name with which the application was started; None without such a catalog.

        Raises:
            InvalidOptionError: the application has no such catalog, or another one.
        """
        with self._lock:
            self._begin(application)
            if _ATTACHED in options:
                return self._attached_source(name, options[_ATTACHED])
            known = [*self._named.get(name, ()), *([] if started_with is None else [started_with])]
            if options not in known:
                raise _not_allowed(name, options, known)
            key = name, frozenset(options.items())
            if key not in self._opened:
                if self._open is None:
                    raise InvalidOptionError(f"catalog '{name}': call penstock.serve(spark) in the driver first")
                self._opened[key] = self._open(name, dict(options))
            return self._opened[key]

    def _attached_source(self, name: str, session: str) -> CatalogSource:
        found = self._attached.get((name, session))
        if found is not None:
            return found
        what = (
            "sessions have attached different warehouses under this name"
            if session == _SEVERAL
            else "no session of this application has attached it"
        )
        raise InvalidOptionError(f"catalog '{name}': {what}: call penstock.attach(session, warehouse, name='{name}')")

    def _begin(self, application: str) -> None:
        if application != self._application:
            self._application = application
            self._attached.clear()
            self._named.clear()


def _not_allowed(name: str, options: Mapping[str, str], known: list[dict[str, str]]) -> InvalidOptionError:
    if not known:
        return InvalidOptionError(
            f"catalog '{name}' is not one of this application: its driver can add it with penstock.attach(spark, "
            f"warehouse, name='{name}'), or start with the setting {SETTINGS}{name}"
        )
    last = known[-1]
    changed = sorted(key for key in {*options, *last} if options.get(key) != last.get(key))
    return InvalidOptionError(
        f"catalog '{name}': this session has another {', '.join(changed)} than the application, whose driver alone can "
        f"change the settings {SETTINGS}{name}.*"
    )


class CatalogMaker(Proxy):
    """Makes the catalog for an object of the class."""

    interfaces: ClassVar = ("java.util.function.BiFunction",)

    def __init__(self, bridge: Bridge, registry: CatalogRegistry) -> None:
        super().__init__(bridge, "of catalogs")
        self._registry = registry

    @from_spark
    def apply(self, name: str, options: JavaObject) -> JavaObject:
        """Return the catalog of a name for the session that uses it first.

        Args:
            options: map of the settings below ``spark.sql.catalog.<name>``.
        """
        bridge = self._bridge
        session = bridge.python_session(bridge.session())
        given = json.loads(bridge.driver.options(options))
        application = str(session.sparkContext.applicationId)
        source = self._registry.find(application, name, given, started_with(bridge, session, name))
        prepare_session(bridge, session)
        catalog = WarehouseCatalog(bridge, session, source.warehouse, name, source.procedures)
        return catalog.exposed(bridge.driver.sharedAnswers())


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogClass:
    """The class in a JVM.

    Attributes:
        name: value of the settings that name it.
    """

    name: str
    registry: CatalogRegistry


def catalog_class(bridge: Bridge) -> CatalogClass:
    """Return the class; the first call defines it."""

    def define() -> CatalogClass:
        registry = CatalogRegistry()
        maker = CatalogMaker(bridge, registry).exposed()
        name = bridge.define_catalog(interfaces_here(WarehouseCatalog.interfaces), maker)
        return CatalogClass(name=name, registry=registry)

    made: CatalogClass = bridge.cached_once("class of catalogs", define)
    return made


def set_attached(bridge: Bridge, spark: SparkSession, name: str, source: CatalogSource) -> None:
    """Let a session, and sessions that begin later, have a catalog under a name.

    Raises:
        InvalidOptionError: the name is that of a catalog of another class.
    """
    kind = catalog_class(bridge)
    key = f"{SETTINGS}{name}"
    java_session: JavaObject = spark._jsparkSession
    if spark.conf.get(key, kind.name) != kind.name:
        raise _taken(name, str(spark.conf.get(key)))
    session = str(java_session.sessionUUID())
    of_later = kind.registry.attach(str(spark.sparkContext.applicationId), session, name, source)
    for conf, value in ((spark.conf, session), (java_session.sharedState().conf(), of_later)):
        conf.set(f"{key}.{_ATTACHED}", value)
        conf.set(key, kind.name)
    if not bridge.reload_catalog(java_session, name, kind.name):
        raise _taken(name, "another one")


def _taken(name: str, kind: str) -> InvalidOptionError:
    return InvalidOptionError(f"catalog '{name}' of this session is {kind}: attach the warehouse under another name")


def serve_settings(bridge: Bridge, spark: SparkSession, open_catalog: OpenCatalog) -> tuple[str, ...]:
    """Let all sessions have the catalogs that a session's settings name, and return their names."""
    kind = catalog_class(bridge)
    kind.registry.open_by(open_catalog)
    settings: dict[str, str] = json.loads(bridge.driver.settings(spark._jsparkSession, SETTINGS))
    names = tuple(sorted(name for name, value in settings.items() if value == kind.name and "." not in name))
    shared: JavaObject = spark._jsparkSession.sharedState().conf()
    for name in names:
        options = _below(name, settings)
        if _ATTACHED in options:
            continue
        kind.registry.allow(str(spark.sparkContext.applicationId), name, options)
        for key, value in {"": kind.name, **{f".{key}": value for key, value in options.items()}}.items():
            shared.set(f"{SETTINGS}{name}{key}", value)
    return names


def started_with(bridge: Bridge, spark: SparkSession, name: str) -> dict[str, str] | None:
    """Return the options of a catalog with which the application was started; None if it was started without it."""
    settings: dict[str, str] = json.loads(bridge.driver.applicationSettings(spark._jsparkSession, SETTINGS))
    return _below(name, settings) if settings.get(name) == catalog_class(bridge).name else None


def _below(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(f"{name}."): value for key, value in settings.items() if key.startswith(f"{name}.")}


def prepare_session(bridge: Bridge, spark: SparkSession) -> None:
    """Give a session what catalogs need besides their class."""
    for key, value in _SESSION_SETTINGS.items():
        if not spark._jsparkSession.sessionState().conf().contains(key):
            spark.conf.set(key, value)
    bridge.driver.recacheAfterWrites(spark._jsparkSession)
    on_change("cache of Spark", partial(_recache, bridge, spark))


def _recache(bridge: Bridge, spark: SparkSession, location: str) -> None:
    """Make the session's cached queries read a table again that this process has changed."""
    if spark.sparkContext._jsc is not None:  # None after a stop
        bridge.driver.recache(spark._jsparkSession, location)
