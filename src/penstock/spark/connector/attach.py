"""Make a warehouse a catalog of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError
from penstock.spark.connector.catalog import WarehouseCatalog
from penstock.spark.connector.failures import hide_expected_failures
from penstock.spark.connector.gateway import open_bridge, put_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.catalog.warehouse import Warehouse
    from penstock.spark.connector.procedures import ProcedureSource


def attach(spark: SparkSession, warehouse: Warehouse, name: str, procedures: ProcedureSource | None = None) -> None:
    """Add a warehouse to a session as the catalog ``name``; see ``penstock.attach``."""
    if not name.isidentifier() or name == "spark_catalog":
        raise InvalidOptionError(
            f"'{name}' cannot be the name of a catalog: take letters, digits and _, and not spark_catalog, Spark's own"
        )
    bridge = open_bridge(spark)
    hide_expected_failures()
    put_catalog(spark._jsparkSession, name, WarehouseCatalog(bridge, spark, warehouse, name, procedures))
