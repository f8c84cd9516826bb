"""Register the format ``penstock`` in a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.deferred import spark_entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make ``format("penstock")`` known to a session whose tasks would run another Python than the driver's.

    Spark finds the format by itself where ``python3``, or ``PYSPARK_PYTHON``, is a Python that has Penstock. In
    ``.venv/bin/python job.py`` without the environment being active it is not; with a local master, tasks of the
    session run with the Python of the driver from then on, unless somebody has chosen one.

    Raises:
        UnsupportedFeatureError: the chosen Python cannot import penstock; or PySpark is not installed.
    """
    spark_entry().register(spark)
