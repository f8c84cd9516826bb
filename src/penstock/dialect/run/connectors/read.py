"""Read tables of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.lazy import lazy_spark
from penstock.dialect.run.connectors.declared import KAFKA, connector_of, connector_table, fields_of
from penstock.dialect.run.event_time import event_time_of
from penstock.errors import InvalidOptionError
from penstock.options.connectors import DatagenTable, FilesystemTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.parse.statements import CreateTable
    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState


def connector_frame(
    state: SqlState, spark: SparkSession, own: CreateTable, use: TableUse, *, is_stream: bool
) -> DataFrame:
    """Return the rows of a table of a session.

    Raises:
        InvalidOptionError: the table is only a sink, or an option is invalid.
    """
    name, fields = ".".join(own.name), fields_of(own)
    if connector_of(own) == KAFKA:
        return lazy_spark.read_kafka(
            spark,
            {**dict(own.options), **dict(use.options)},
            fields,
            is_stream=is_stream,
            table=name,
            watermark=event_time_of(state, use),
            metadata={column.name: column.key for column in own.metadata},
        )
    match connector_table(own, use.options):
        case FilesystemTable() as files:
            return lazy_spark.read_files(spark, files, fields, own.partition_by, table=name)
        case DatagenTable() as generated:
            return lazy_spark.read_generated(spark, generated, fields, table=name)
        case _:
            raise InvalidOptionError(
                f"table {name}: its connector, {connector_of(own)}, takes rows only: INSERT INTO it, and read another"
            )
