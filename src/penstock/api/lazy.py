"""What is imported on first use: the package ``spark``, what imports pandas, and libraries for exports.

``import penstock`` must not need PySpark: plain Python works without it and without a JVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeatureError

__all__ = ["LazyModule", "import_library", "is_spark_object", "lazy_dataset", "lazy_spark"]


def import_library(name: str, table: str) -> Any:  # noqa: ANN401 - a module that is not there for a type checker
    """Import a library that Penstock does not depend on.

    Args:
        table: the table to export, for the error message.

    Raises:
        UnsupportedFeatureError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UnsupportedFeatureError(
            f"table {table}: {name} is not installed: pip install {name}, or 'penstock[frames]'; to_arrow needs neither"
        ) from error


class LazyModule:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        """Return a name of the module.

        Raises:
            UnsupportedFeatureError: the module needs PySpark, which is not installed.
        """
        try:
            module = importlib.import_module(self._name)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith(("pyspark", "py4j", "pandas")):
                raise
            raise UnsupportedFeatureError(
                f"this needs PySpark ({error.name} is missing): pip install 'penstock[spark]'"
            ) from error
        return getattr(module, name)


if TYPE_CHECKING:
    from penstock.spark import exports as lazy_spark
    from penstock.table.read import dataset as lazy_dataset
else:
    lazy_spark = LazyModule("penstock.spark.exports")
    # pyarrow.dataset imports pandas, where that is installed: about a second of the processor for each driver.
    lazy_dataset = LazyModule("penstock.table.read.dataset")


def is_spark_object(value: object) -> bool:
    """Whether a value is a PySpark object, without importing PySpark."""
    return type(value).__module__.partition(".")[0] == "pyspark"
