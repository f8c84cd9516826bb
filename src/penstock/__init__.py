"""Apache Paimon append tables for PySpark, in Python, without JARs."""

import importlib
from typing import TYPE_CHECKING, Final

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
    "register",
    "sql",
]

if TYPE_CHECKING:
    from penstock.api.catalog import Catalog
    from penstock.api.register import register
    from penstock.api.table import Table
    from penstock.dialect.session import sql
    from penstock.predicate.tree import col

# Imported when they are asked for: a worker that only unpickles an error, and a command that prints its help, need no
# Arrow, and sqlglot is for SQL alone.
_HOMES: Final = {
    "Catalog": "penstock.api.catalog",
    "Table": "penstock.api.table",
    "col": "penstock.predicate.tree",
    "register": "penstock.api.register",
    "sql": "penstock.dialect.session",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found: object = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
