"""Iceberg tables, read from one of their metadata files with the session's JAR.

``read.format("iceberg").load(path)`` uses an Iceberg catalog, and Spark 4.2 rejects the catalogs of Iceberg 1.11, which
was built for Spark 4.1. Tables and scans of that JAR work there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame

from penstock.errors import UnsupportedFeatureError
from penstock.spark.versions.python_api import classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_iceberg(spark: SparkSession, metadata: str) -> DataFrame:
    """Return the rows of a table as of a metadata file.

    Args:
        metadata: path or URI of the file, for Hadoop.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to a table without a catalog
    java_session: Any = spark._jsparkSession  # noqa: SLF001 - as above
    iceberg = jvm.org.apache.iceberg
    # Py4J returns a package for a class that does not exist.
    if not isinstance(iceberg.spark.source.SparkTable, JavaClass):
        raise UnsupportedFeatureError("the session of Spark does not have the JAR of Iceberg")
    storage = iceberg.hadoop.HadoopFileIO(java_session.sessionState().newHadoopConf())
    table = iceberg.BaseTable(iceberg.StaticTableOperations(metadata, storage), metadata)
    relation = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
    nothing = jvm.scala.Option.empty()
    plan = relation.create(iceberg.spark.source.SparkTable(table), nothing, nothing)
    return DataFrame(classic(jvm).Dataset.ofRows(java_session, plan), spark)
