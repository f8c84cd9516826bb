"""Apache Paimon append tables for PySpark, in Python, without JARs."""

import importlib
from typing import TYPE_CHECKING

from penstock.api.catalog import Catalog
from penstock.api.table import Table
from penstock.errors import (
    AlreadyExistsError,
    CheckpointError,
    CommitConflictError,
    CommitUnknownError,
    DataLossError,
    DataLossWarning,
    FormatError,
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    InvalidSqlError,
    LeaseHeldError,
    NotFoundError,
    OptionWarning,
    SchemaMismatchError,
    StorageError,
    TableStoreError,
    TimedOutError,
    UnsupportedFeatureError,
)
from penstock.predicate.tree import col

__all__ = [
    "AlreadyExistsError",
    "Catalog",
    "CheckpointError",
    "CommitConflictError",
    "CommitUnknownError",
    "DataLossError",
    "DataLossWarning",
    "FormatError",
    "InvalidFilterError",
    "InvalidOptionError",
    "InvalidSchemaError",
    "InvalidSqlError",
    "LeaseHeldError",
    "NotFoundError",
    "OptionWarning",
    "SchemaMismatchError",
    "StorageError",
    "Table",
    "TableStoreError",
    "TimedOutError",
    "UnsupportedFeatureError",
    "col",
    "sql",
]

if TYPE_CHECKING:
    from penstock.dialect.session import sql


def __getattr__(name: str) -> object:
    """Find ``sql`` when it is asked for: it needs sqlglot, which an import of the package must not wait for."""
    if name == "sql":
        return importlib.import_module("penstock.dialect.session").sql
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
