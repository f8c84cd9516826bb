"""Make Penstock known to a Spark session and to its executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.deferred import spark_entry
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make ``format("penstock")`` known to a session whose tasks would run another Python than the driver's.

    Spark finds the format by itself where ``python3``, or ``PYSPARK_PYTHON``, is a Python that has Penstock. In
    ``.venv/bin/python job.py`` without the environment being active it is not; with a local master, tasks of the
    session run with the Python of the driver from then on, unless somebody has chosen one.

    Call it also in each other thread that writes through the format: it makes the session the active one of the calling
    thread, and Spark's writers find formats in Python by that.

    Raises:
        UnsupportedFeatureError: the chosen Python cannot import penstock; or PySpark is not installed.
    """
    spark_entry().register(spark)


def ship(spark: SparkSession) -> tuple[str, ...]:
    """Send Penstock to the executors of a cluster that do not have it.

    Call it once, after the session has started. What is sent is what they cannot import: Penstock itself, and packages
    such as pyarrow and fastavro, from the environment of this process. So the executors need the same version of Python
    on the same platform, and nothing else. Then ``format("penstock")`` is registered as by ``register``.

    Returns:
        Names of the distributions that were sent; empty if the executors have all of them, as with a local master.

    Raises:
        UnsupportedFeatureError: the executors have another version of Python or another platform, or their Python does
            not start; or a session of Spark Connect.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise UnsupportedFeatureError(
            "penstock.ship does not work with Spark Connect: install penstock in the Python of the Connect server and "
            "of its executors"
        )
    sent = spark_entry().ship(spark)
    spark_entry().register(spark)
    return sent
