"""Add a warehouse to a session as a catalog."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.spark.connector.catalog import WarehouseCatalog
from penstock.spark.connector.failures import hide_expected_failures
from penstock.spark.connector.gateway import (
    explain_to_new_sessions,
    open_bridge,
    put_catalog,
    session_of_batches,
)
from penstock.spark.data_source.filters import FILTER_PUSHDOWN
from penstock.spark.data_source.source import BatchDataSource
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.stream.progress import listen
from penstock.table.commit.retry import on_change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.catalog.backend import Backend
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.procedures import ProcedureSource

# Settings of the session; values that the user has set are kept.
_SETTINGS: Final = {
    # Off by default, in which case a where on format("penstock") opens every file.
    FILTER_PUSHDOWN: "true",
    # The default of 100 is beyond the stack of a thread, so that views that read each other end in an overflow of it.
    "spark.sql.view.maxNestedViewDepth": "50",
}


def attach(spark: SparkSession, warehouse: Backend, name: str, procedures: ProcedureSource) -> None:
    """Add a warehouse to a session as the catalog ``name``; see ``penstock.attach``."""
    if not name.isidentifier() or name == "spark_catalog":
        raise InvalidOptionError(
            f"'{name}' cannot be the name of a catalog: take letters, digits and _, and not spark_catalog, Spark's own"
        )
    bridge = open_bridge(spark)
    hide_expected_failures()
    catalog = WarehouseCatalog(bridge, spark, warehouse, name, procedures)
    made = catalog.exposed(bridge.driver.sharedAnswers())
    put_catalog(spark._jsparkSession, name, made)
    bridge.driver.recacheAfterWrites(spark._jsparkSession)
    with suppress(UnsupportedFeatureError):  # a session that only uses Spark's own readers needs no Python in tasks
        ensure_python_worker(spark)
    spark.dataSource.register(BatchDataSource)
    for key, value in _SETTINGS.items():
        if not spark._jsparkSession.sessionState().conf().contains(key):
            spark.conf.set(key, value)
    # The micro-batches of a query run in a clone of the session, and clones have no catalogs.
    listen(spark).at_start(name, partial(_attach_clone, spark, name, made))
    on_change("cache of Spark", partial(_recache, bridge, spark))
    explain_to_new_sessions(spark, name, f"penstock.attach(session, '{warehouse.location}', name='{name}')")


def _recache(bridge: Bridge, spark: SparkSession, location: str) -> None:
    """Make the session's cached queries read a table again that this process has changed."""
    if spark.sparkContext._jsc is not None:  # None after a stop
        bridge.driver.recache(spark._jsparkSession, location)


def _attach_clone(spark: SparkSession, name: str, catalog: JavaObject, query_id: str) -> None:
    session = session_of_batches(spark, query_id)
    if session is not None:
        put_catalog(session, name, catalog)
