"""The only module that imports other modules of Penstock on first use: the package ``spark``, and what imports pandas.

``import penstock`` must not need PySpark: plain Python works without it and without a JVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeatureError

__all__ = ["LazyModule", "lazy_dataset", "lazy_spark"]


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
            if error.name is None or not error.name.startswith(("pyspark", "pandas")):
                raise
            raise UnsupportedFeatureError(
                f"this needs PySpark 4.2 or newer ({error.name} is missing): pip install 'penstock[spark]'"
            ) from error
        return getattr(module, name)


if TYPE_CHECKING:
    from penstock.spark import exports as lazy_spark
    from penstock.table.read import dataset as lazy_dataset
else:
    lazy_spark = LazyModule("penstock.spark.exports")
    # pyarrow.dataset imports pandas, where that is installed: about a second of the processor for each driver.
    lazy_dataset = LazyModule("penstock.table.read.dataset")
