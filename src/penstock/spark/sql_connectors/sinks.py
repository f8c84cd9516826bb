"""Write rows to files, to Kafka, to standard output, or nowhere, as a batch or as a stream."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from penstock.errors import InvalidOptionError, SchemaMismatchError
from penstock.options.connectors import BlackholeOptions, FilesystemTable, KafkaTable, PrintOptions
from penstock.spark.kafka.encode import kafka_writer_input
from penstock.spark.sql_connectors.files import check_no_stream_log, file_writer_input
from penstock.spark.types import to_spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.format.types.data_types import DataField
    from penstock.options.connectors import ConnectorTable

_PRINT: Final = "print"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSink:
    """The sink of an ``INSERT``.

    Attributes:
        fields: the columns of the rows.
        partition_by: columns whose values become names of directories.
        name: of the table, for messages.
    """

    connector: ConnectorTable
    fields: Sequence[DataField]
    partition_by: Sequence[str]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStart:
    """How a streaming query starts."""

    checkpoint: str
    trigger: Mapping[str, object] | None
    query_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A writer of Spark, or of this module for ``print``."""

    rows: DataFrame
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()


def write_connector(rows: DataFrame, sink: ConnectorSink, *, is_overwrite: bool) -> None:
    """Write rows as a batch.

    Args:
        is_overwrite: replace the partitions that the rows belong to; all rows if the table has no partitions.
    """
    if is_overwrite and not isinstance(sink.connector, FilesystemTable):
        raise InvalidOptionError(f"table {sink.name}: it cannot be overwritten; INSERT INTO adds rows")
    _check_types(rows, sink)
    target = _target(rows, sink)
    if target.format == _PRINT:
        _print(target.rows, sink.connector)
        return
    if isinstance(sink.connector, FilesystemTable):
        check_no_stream_log(rows.sparkSession, sink.connector, sink.name)
    options = {**target.options, **({"partitionOverwriteMode": "dynamic"} if target.partition_by else {})}
    writer = target.rows.write.format(target.format).options(**options)
    if target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    is_noop = target.format == "noop"
    writer.mode("overwrite" if is_overwrite or is_noop else "append").save()


def start_connector(rows: DataFrame, sink: ConnectorSink, start: QueryStart) -> StreamingQuery:
    """Start a query that writes a stream."""
    _check_types(rows, sink)
    target = _target(rows, sink)
    writer = target.rows.writeStream.option("checkpointLocation", start.checkpoint)
    if start.trigger is not None:
        trigger: Any = start.trigger
        writer = writer.trigger(**trigger)
    if start.query_name is not None:
        writer = writer.queryName(start.query_name)
    if target.format == _PRINT:
        connector = sink.connector
        return writer.foreachBatch(lambda batch, _: _print(batch, connector)).start()
    if target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    return writer.format(target.format).options(**target.options).start()


def _check_types(rows: DataFrame, sink: ConnectorSink) -> None:
    for each in sink.fields:
        found, wanted = rows.schema[each.name].dataType, to_spark_type(each.type)
        if found.simpleString() != wanted.simpleString():
            raise SchemaMismatchError(
                f"table {sink.name}: column '{each.name}' is {wanted.simpleString().upper()}, and the rows have "
                f"{found.simpleString().upper()}: write a CAST in the query"
            )


def _target(rows: DataFrame, sink: ConnectorSink) -> _Target:
    match sink.connector:
        case FilesystemTable() as files:
            try:
                shaped, kind = file_writer_input(rows, files, sink.fields, sink.partition_by, table=sink.name)
            except AnalysisException as error:
                raise InvalidOptionError(f"table {sink.name}: {str(error).partition(chr(10))[0]}") from error
            return _Target(
                rows=shaped, format=kind, options={"path": files.options.path}, partition_by=sink.partition_by
            )
        case KafkaTable() as kafka:
            shaped, options = kafka_writer_input(rows, kafka, sink.fields, sink.name)
            return _Target(rows=shaped, format="kafka", options=options)
        case PrintOptions():
            return _Target(rows=rows, format=_PRINT)
        case BlackholeOptions():
            return _Target(rows=rows, format="noop")
        case _:
            raise InvalidOptionError(
                f"table {sink.name}: its rows are generated, so there is nothing to insert into: insert into another "
                "table, and read from this one"
            )


def _print(rows: DataFrame, connector: object) -> None:
    """Print rows as Flink does: ``+I[1, text]``, after the identifier if there is one."""
    identifier = connector.identifier if isinstance(connector, PrintOptions) else None
    stream = sys.stderr if isinstance(connector, PrintOptions) and connector.to_standard_error else sys.stdout
    before = "" if identifier is None else f"{identifier}> "
    for row in rows.toLocalIterator():
        stream.write(f"{before}+I[{', '.join(map(_text, row))}]\n")
    stream.flush()


def _text(value: object) -> str:
    for kind, to_text in _TEXTS.items():
        if isinstance(value, kind):
            return to_text(value)
    return str(value)


# A Row is a tuple.
_TEXTS: Final[dict[type | tuple[type, ...], Callable[[Any], str]]] = {
    type(None): lambda _: "null",
    bool: lambda value: str(value).lower(),
    date: lambda value: value.isoformat(),
    (bytes, bytearray): lambda value: f"[{', '.join(map(str, value))}]",
    dict: lambda value: "{" + ", ".join(f"{_text(key)}={_text(each)}" for key, each in value.items()) + "}",
    list: lambda value: f"[{', '.join(map(_text, value))}]",
    tuple: lambda value: f"+I[{', '.join(map(_text, value))}]",
}
