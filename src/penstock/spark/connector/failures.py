"""Convert Penstock's errors to exceptions that Spark and its users expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import (
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    SchemaMismatchError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.spark.failures import SparkFailureError, without_trace
from penstock.spark.versions.facts import ERROR_CLASS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject

WRONG_USE: Final = (InvalidFilterError, InvalidOptionError, InvalidSchemaError, SchemaMismatchError)
"""Errors that Spark's users expect as an ``IllegalArgumentException``."""


def to_java(bridge: Bridge, error: TableStoreError, *, is_named: bool = False) -> SparkFailureError:
    """Return the JVM exception for an error: an unchecked one with the same message.

    Args:
        is_named: whether the message begins with the name of the error's class.
    """
    message = f"{type(error).__name__}: {error}" if is_named else str(error)
    if isinstance(error, WRONG_USE):
        return without_trace(bridge.java("java.lang.IllegalArgumentException")(message))
    if isinstance(error, UnsupportedFeatureError):
        return without_trace(bridge.java("java.lang.UnsupportedOperationException")(message))
    return runtime_failure(bridge, message)


def runtime_failure(bridge: Bridge, message: str) -> SparkFailureError:
    """Return a ``SparkRuntimeException`` with only a message, which PySpark shows without a Java trace."""
    # Spark's exceptions have error classes with text templates; the template of this one is only its message.
    return _runtime(bridge, ERROR_CLASS, errorMessage=message)


def not_a_table(bridge: Bridge, name: str, operation: str) -> SparkFailureError:
    """Return the exception for a view whose rows are to change, with the condition of Spark's own catalog.

    Spark allows no ``AnalysisException`` but for missing tables where a table is loaded.
    """
    return _runtime(bridge, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", viewName=name, operation=operation)


def _runtime(bridge: Bridge, condition: str, **parameters: str) -> SparkFailureError:
    no_context = bridge.array(bridge.java("org.apache.spark.QueryContext"), ())
    kind = bridge.java("org.apache.spark.SparkRuntimeException")
    return without_trace(kind(condition, bridge.scala_map(parameters), None, no_context, ""))


def unchecked(bridge: Bridge, thrown: JavaObject) -> SparkFailureError:
    """Return an exception of the JVM or, in place of one that Java calls checked, another one with its message."""
    runtime = bridge.java_class("java.lang.RuntimeException"), bridge.java_class("java.lang.Error")
    if any(kind.isInstance(thrown) for kind in runtime):
        return SparkFailureError(thrown)
    return runtime_failure(bridge, str(thrown.getMessage() or thrown.toString()))


def no_such_table(bridge: Bridge, ident: JavaObject) -> SparkFailureError:
    """Return the exception for a missing table; Spark reports it as TABLE_OR_VIEW_NOT_FOUND."""
    return _analysis(bridge, "NoSuchTableException", ident)


def no_such_view(bridge: Bridge, ident: JavaObject) -> SparkFailureError:
    """Return the exception for a missing view."""
    return _analysis(bridge, "NoSuchViewException", ident)


def view_exists(bridge: Bridge, ident: JavaObject) -> SparkFailureError:
    """Return the exception for a view whose name is taken."""
    return _analysis(bridge, "ViewAlreadyExistsException", ident)


def no_such_namespace(bridge: Bridge, namespace: Sequence[str]) -> SparkFailureError:
    """Return the exception for a missing database."""
    return _analysis(bridge, "NoSuchNamespaceException", bridge.strings(namespace))


def table_exists(bridge: Bridge, ident: JavaObject) -> SparkFailureError:
    """Return the exception for a table that already exists."""
    return _analysis(bridge, "TableAlreadyExistsException", ident)


def namespace_exists(bridge: Bridge, namespace: Sequence[str]) -> SparkFailureError:
    """Return the exception for a database that already exists."""
    return _analysis(bridge, "NamespaceAlreadyExistsException", bridge.strings(namespace))


def namespace_not_empty(bridge: Bridge, namespace: Sequence[str]) -> SparkFailureError:
    """Return the exception for a database that still has tables."""
    return _analysis(bridge, "NonEmptyNamespaceException", bridge.strings(namespace))


def _analysis(bridge: Bridge, name: str, *arguments: JavaObject) -> SparkFailureError:
    return SparkFailureError(bridge.java(f"org.apache.spark.sql.catalyst.analysis.{name}")(*arguments))
