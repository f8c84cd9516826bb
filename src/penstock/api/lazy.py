"""What is imported on first use: what needs a library that only some features need, or imports pandas.

``import penstock`` must not need PySpark: plain Python works without it and without a JVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import UnsupportedFeatureError

__all__ = [
    "LazyModule",
    "import_library",
    "is_connect_object",
    "is_spark_object",
    "lazy_dataset",
    "lazy_progress",
    "lazy_spark",
    "load_module",
]

# By the first names of modules: what is missing without them, and the extra that installs them.
_EXTRAS: Final = {
    **dict.fromkeys(("pyspark", "py4j", "pandas"), ("PySpark", "spark")),
    "sqlglot": ("a parser of SQL", "sql"),
    "prompt_toolkit": ("a prompt", "sql"),
}


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


def load_module(name: str) -> Any:  # noqa: ANN401 - a module that is imported late
    """Import a module of Penstock that needs a library on which only some features depend.

    Raises:
        UnsupportedFeatureError: the library is not installed; the message names the extra that installs it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        needed = _EXTRAS.get(library)
        if needed is None:
            raise
        what, extra = needed
        raise UnsupportedFeatureError(
            f"this needs {what} ({library} is missing): pip install 'penstock[{extra}]'"
        ) from error


class LazyModule:
    """A module that is imported, as by ``load_module``, when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        """Return a name of the module. Raises as ``load_module``."""
        return getattr(load_module(self._name), name)


if TYPE_CHECKING:
    from penstock.api import progress as lazy_progress
    from penstock.spark import exports as lazy_spark
    from penstock.table.read import dataset as lazy_dataset
else:
    lazy_spark = LazyModule("penstock.spark.exports")
    # pyarrow.dataset imports pandas, where that is installed: about a second of the processor for each driver.
    lazy_dataset = LazyModule("penstock.table.read.dataset")
    # It imports rich, which only operations that take seconds need.
    lazy_progress = LazyModule("penstock.api.progress")


def is_spark_object(value: object) -> bool:
    """Whether a value is a PySpark object, without importing PySpark."""
    return type(value).__module__.partition(".")[0] == "pyspark"


def is_connect_object(value: object) -> bool:
    """Whether a value is an object of Spark Connect, which has no JVM in this process, without importing PySpark."""
    return type(value).__module__.startswith("pyspark.sql.connect.")
