"""The only place that imports the package ``spark``, and only on first use.

``import penstock`` must not need PySpark: plain Python works without it and without a JVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock.spark import entry


def spark_entry() -> type[entry.SparkEntry]:
    """Return the functions that need PySpark, importing them on first use.

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
    """Whether a value is a PySpark object, without importing PySpark."""
    return type(value).__module__.partition(".")[0] == "pyspark"
