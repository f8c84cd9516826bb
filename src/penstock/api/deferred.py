"""The only module that imports other modules of Penstock on first use: the package ``spark``, and what imports pandas.

``import penstock`` must not need PySpark: plain Python works without it and without a JVM.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Final, cast

from penstock.errors import UnsupportedFeatureError
from penstock.io.object_store.address import SCHEMES, StoreKind, parse_address
from penstock.io.object_store.settings import store_settings
from penstock.options.object_store import store_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.dataset as ds

    from penstock.spark import entry
    from penstock.table.read.query import Query
    from penstock.table.store import MetadataStore

# Options that give no access: the catalog has none of its own with them.
_NO_ACCESS: Final = ("penstock.object-store.", "penstock.azure.account")


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


def to_dataset(query: Query, store: MetadataStore) -> ds.Dataset:
    """Call ``penstock.table.read.dataset.to_dataset``.

    It is imported on first use, because ``pyarrow.dataset`` imports pandas, where that is installed: about a second of
    the processor for each driver that starts.
    """
    module = importlib.import_module("penstock.table.read.dataset")
    return cast("ds.Dataset", module.to_dataset(query, store))


def with_store_options(location: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog's options, with the Spark session's for S3 or Azure if the catalog has none.

    This does not import PySpark: a process that has not imported it has no session.
    """
    kind = SCHEMES.get(location.partition(":")[0].lower())
    has_own = any(not key.startswith(_NO_ACCESS) for key in store_options(options))
    if kind not in {StoreKind.S3, StoreKind.AZURE} or has_own or "pyspark" not in sys.modules:
        return dict(options)
    address, _ = parse_address(location)
    return {**spark_entry().hadoop_store_options(store_settings(address, options)), **options}


def is_spark_object(value: object) -> bool:
    """Whether a value is a PySpark object, without importing PySpark."""
    return type(value).__module__.partition(".")[0] == "pyspark"
