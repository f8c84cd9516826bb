"""Apache Paimon append tables for PySpark, in Python, without JARs."""

from penstock.api.catalog import Catalog
from penstock.api.table import Table
from penstock.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    FormatError,
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    InvalidSqlError,
    NotFoundError,
    OptionWarning,
    SchemaMismatchError,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.predicate.tree import col

__all__ = [
    "AlreadyExistsError",
    "Catalog",
    "CommitConflictError",
    "CommitUnknownError",
    "FormatError",
    "InvalidFilterError",
    "InvalidOptionError",
    "InvalidSchemaError",
    "InvalidSqlError",
    "NotFoundError",
    "OptionWarning",
    "SchemaMismatchError",
    "StorageError",
    "Table",
    "TableStoreError",
    "UnsupportedFeatureError",
    "col",
]
