"""The one place where the package ``spark`` is imported late.

``import penstock`` must not need PySpark: plain Python works without it and without a JVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock.spark import entry


def spark_entry() -> type[entry.SparkEntry]:
    """Return the calls that need PySpark.

    Raises:
        UnsupportedFeatureError: PySpark is not installed.
    """
    try:
        module = importlib.import_module("penstock.spark.entry")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(("pyspark", "pandas")):
            raise
        raise UnsupportedFeatureError(
            f"this needs PySpark 4.2 or newer ({error.name} is missing): pip install 'penstock[spark]'"
        ) from error
    return cast("type[entry.SparkEntry]", module.SparkEntry)


def is_spark_object(value: object) -> bool:
    """Whether a value is one of PySpark's, without importing it."""
    return type(value).__module__.partition(".")[0] == "pyspark"
