"""Run Flink SQL: parse text to statements, and run statements as calls on the API handles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.lazy import LazyModule

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

    from penstock.api.catalog import Catalog
    from penstock.dialect import session as lazy_session
    from penstock.dialect.outcome import Value
else:
    lazy_session = LazyModule("penstock.dialect.session")


def sql(spark: SparkSession | None, catalog: Catalog | str | os.PathLike[str], text: str) -> Value:
    """Run a Flink SQL script.

    Scripts with the same ``Catalog`` object share settings, the current names and declarations; with the location of a
    warehouse each call is a separate session.

    Args:
        spark: None for statements that need no engine: all except ``INSERT`` of a query and most ``SELECT`` statements.
        text: statements separated by semicolons.

    Returns:
        The result of the last statement. For a query: with ``spark`` a DataFrame (a streaming one if a table is read as
        a stream), else a pyarrow Table. For ``SHOW``, ``DESCRIBE`` and ``CALL``: a pyarrow Table. For a row change: the
        snapshot, or None if nothing changed. For an ``INSERT`` from a stream: the started ``StreamingQuery``. Otherwise
        None.

    Raises:
        InvalidSqlError: a statement cannot be parsed; the message has the line and column, and nothing was run.
        UnsupportedFeatureError: sqlglot is not installed: ``pip install 'penstock[sql]'``.
        InvalidOptionError: arguments of other types, or in another order.
        TableStoreError: a statement failed; the effects of the statements before it remain.
    """
    return lazy_session.run_text(spark, catalog, text)
