"""Errors of ours as the exceptions that Spark and its users know."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError

from penstock.errors import (
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    SchemaMismatchError,
    TableStoreError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject

_WRONG_USE: Final = (InvalidFilterError, InvalidOptionError, InvalidSchemaError, SchemaMismatchError)
_LOGGERS: Final = ("py4j.clientserver", "py4j.java_gateway")


class SparkFailureError(Py4JJavaError):  # type: ignore[misc] # Py4J has no types
    """An exception of the JVM that a call from Spark ends with."""

    def __init__(self, java_exception: JavaObject) -> None:
        super().__init__("", java_exception)


def to_java(bridge: Bridge, error: TableStoreError) -> SparkFailureError:
    """Return the exception of the JVM for an error: one that every method may end with, with the same message."""
    lang = bridge.jvm.java.lang
    message = str(error)
    if isinstance(error, _WRONG_USE):
        return SparkFailureError(lang.IllegalArgumentException(message))
    if isinstance(error, UnsupportedFeatureError):
        return SparkFailureError(lang.UnsupportedOperationException(message))
    # Spark's exceptions have classes of errors with texts to fill in; this one is nothing but its text.
    parameters = bridge.scala_map({"errorMessage": message})
    no_context = bridge.array(bridge.jvm.org.apache.spark.QueryContext, ())
    return SparkFailureError(
        bridge.jvm.org.apache.spark.SparkRuntimeException(
            "USER_RAISED_EXCEPTION", parameters, None, no_context, bridge.nothing()
        )
    )


def no_such_table(bridge: Bridge, ident: JavaObject) -> SparkFailureError:
    """Return what a catalog says of a table that it does not have; Spark makes TABLE_OR_VIEW_NOT_FOUND of it."""
    return _analysis(bridge, "NoSuchTableException", ident)


def no_such_namespace(bridge: Bridge, namespace: Sequence[str]) -> SparkFailureError:
    """Return what a catalog says of a database that it does not have."""
    return _analysis(bridge, "NoSuchNamespaceException", bridge.strings(namespace))


def table_exists(bridge: Bridge, ident: JavaObject) -> SparkFailureError:
    """Return what a catalog says of a table that is there already."""
    return _analysis(bridge, "TableAlreadyExistsException", ident)


def namespace_exists(bridge: Bridge, namespace: Sequence[str]) -> SparkFailureError:
    """Return what a catalog says of a database that is there already."""
    return _analysis(bridge, "NamespaceAlreadyExistsException", bridge.strings(namespace))


def namespace_not_empty(bridge: Bridge, namespace: Sequence[str]) -> SparkFailureError:
    """Return what a catalog says of a database that has tables."""
    return _analysis(bridge, "NonEmptyNamespaceException", bridge.strings(namespace))


def hide_expected_failures() -> None:
    """Keep Py4J from logging a trace for exceptions that are answers, such as that there is no table."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_defect)


def _is_defect(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], SparkFailureError))


def _analysis(bridge: Bridge, name: str, *arguments: JavaObject) -> SparkFailureError:
    return SparkFailureError(getattr(bridge.jvm, f"org.apache.spark.sql.catalyst.analysis.{name}")(*arguments))
