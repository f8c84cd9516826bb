"""Add a warehouse to a session as a catalog, and let sessions have the catalogs of their settings."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.spark.connector.catalog_class import catalog_class, prepare_session, serve_settings, set_attached
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.data_source.source import BatchDataSource, register_format
from penstock.spark.failures import hide_expected_failures
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.versions.facts import PYTHON_SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.connector.catalog_class import CatalogSource, OpenCatalog


def attach(spark: SparkSession, name: str, source: CatalogSource, open_catalog: OpenCatalog) -> None:
    """Add a warehouse to a session as the catalog ``name``; see ``Catalog.attach``.

    Args:
        open_catalog: as for ``serve``.
    """
    if not name.isidentifier() or name == "spark_catalog":
        raise InvalidOptionError(
            f"'{name}' cannot be the name of a catalog: take letters, digits and _, and not spark_catalog, Spark's own"
        )
    bridge = open_bridge(spark)
    hide_expected_failures()
    catalog_class(bridge).registry.open_by(open_catalog)
    set_attached(bridge, spark, name, source)
    prepare_session(bridge, spark)
    with suppress(UnsupportedFeatureError):  # a session that only uses Spark's own readers needs no Python in tasks
        ensure_python_worker(spark)
    if PYTHON_SOURCES.is_here:
        register_format(spark, BatchDataSource)


def serve(spark: SparkSession, open_catalog: OpenCatalog) -> tuple[str, ...]:
    """Let all sessions of the application have the catalogs that this session's settings name.

    Args:
        open_catalog: called with a name and the options of its settings, at the first use of a catalog.

    Returns:
        Their names.
    """
    bridge = open_bridge(spark)
    hide_expected_failures()
    return serve_settings(bridge, spark, open_catalog)
