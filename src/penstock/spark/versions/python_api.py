"""Functions and classes of PySpark that differ between versions."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
    from pyspark.sql.types import StructType

__all__ = [
    "ReadAllAvailable",
    "ReadMaxBytes",
    "ReadMaxFiles",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
]

# Newer versions need the zone of instants, which older ones write as UTC.
_ZONE: Final = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark derives from its own; instants are in UTC."""
    return to_arrow_schema(schema, **_ZONE)  # type: ignore[arg-type] # of two parameters, one takes text


class _Absent:
    """Stands for a class that PySpark does not have: classes may inherit it, but Spark never makes objects of them."""

    def __init__(self, *_: object) -> None:
        pass


def _class(module: str, name: str) -> Any:  # noqa: ANN401 - a class, whose type is declared above
    try:
        return getattr(importlib.import_module(module), name, _Absent)
    except ModuleNotFoundError:
        return _Absent


if not TYPE_CHECKING:
    ReadAllAvailable = _class("pyspark.sql.streaming.datasource", "ReadAllAvailable")
    ReadMaxBytes = _class("pyspark.sql.streaming.datasource", "ReadMaxBytes")
    ReadMaxFiles = _class("pyspark.sql.streaming.datasource", "ReadMaxFiles")
    ReadMaxRows = _class("pyspark.sql.streaming.datasource", "ReadMaxRows")
    ReadMinRows = _class("pyspark.sql.streaming.datasource", "ReadMinRows")
    SupportsTriggerAvailableNow = _class("pyspark.sql.streaming.datasource", "SupportsTriggerAvailableNow")
