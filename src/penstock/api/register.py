"""Make Penstock known to a Spark session and its executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.arguments import FLAG, LOCATION, TEXT, accepts, check_spark, instance_of
from penstock.api.catalog import Catalog, open_source
from penstock.api.lazy import is_connect_object, lazy_spark
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession


@accepts(warehouse=LOCATION | instance_of(Catalog), name=TEXT, views=FLAG)
def attach(
    spark: SparkSession, warehouse: str | os.PathLike[str] | Catalog, name: str = "penstock", *, views: bool = True
) -> Catalog:
    """Add a warehouse to a Spark session as a catalog, and return it, as ``Catalog.attach`` does.

    Args:
        warehouse: path or URI of the directory; or a catalog, with its options.
        name: of the catalog in statements.
        views: whether its views can be read; see ``Catalog.attach``.

    Raises:
        UnsupportedFeatureError: a Spark Connect session, or an unsupported version of Spark.
        InvalidOptionError: not a session, an invalid location, or an empty name.
    """
    catalog = warehouse if isinstance(warehouse, Catalog) else Catalog(warehouse)
    return catalog.attach(spark, name, views=views)


def serve(spark: SparkSession) -> tuple[str, ...]:
    """Let all sessions of a Spark application use the catalogs of its settings.

    The settings are ``spark.sql.catalog.<name>`` = ``penstock.Catalog``, ``spark.sql.catalog.<name>.warehouse``, and
    options of ``Catalog`` below the name. Those with which the application was started and those of this session count;
    other sessions, such as those of clients of Spark Connect, cannot name catalogs.

    Returns:
        The names of the catalogs.

    Raises:
        UnsupportedFeatureError: a Spark Connect session, or an unsupported version of Spark.
        InvalidOptionError: not a session.
    """
    check_spark(spark, None)
    return lazy_spark.serve(spark, open_source)


def register(spark: SparkSession) -> None:
    """Register ``format("penstock")`` with a session whose tasks would run a different Python from the driver's.

    Spark finds the format automatically if ``python3``, or ``PYSPARK_PYTHON``, is a Python that has Penstock. This is
    not the case for ``.venv/bin/python job.py`` without activating the environment. With a local master, this call
    makes the session's tasks run with the driver's Python, unless another one was set.

    Also call it in every other thread that writes through the format: it makes the session active in the calling
    thread, which Spark's writers need to find Python data sources.

    Afterwards, streams of the format are refused with the calls that guarantee more, except in Spark Connect, which has
    no others.

    Raises:
        UnsupportedFeatureError: the configured Python cannot import penstock, or PySpark is not installed.
    """
    check_spark(spark, None)
    lazy_spark.register(spark)


def ship(spark: SparkSession) -> tuple[str, ...]:
    """Send Penstock to executors of a cluster that do not have it.

    Call it once, after the session has started. It sends the packages that the executors cannot import, Penstock itself
    and packages such as pyarrow and fastavro, from the environment of this process. The executors need only the same
    version of Python on the same platform. It also registers ``format("penstock")`` as ``register`` does.

    Returns:
        Names of the distributions that were sent; empty if the executors have all of them, as with a local master.

    Raises:
        UnsupportedFeatureError: the executors have another version of Python or another platform, or their Python does
            not start; or a Spark Connect session.
    """
    check_spark(spark, None)
    if is_connect_object(spark):
        raise UnsupportedFeatureError(
            "penstock.ship does not work with Spark Connect: install penstock in the Python of the Connect server and "
            "of its executors"
        )
    sent = lazy_spark.ship(spark)
    if lazy_spark.PYTHON_SOURCES.is_here:
        lazy_spark.register(spark)
    return sent
